//! Names of HTTP headers.

use crate::revision::{Revision, Revisions};

/// Names the revision that a request is written in.
pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// Names the session that a request belongs to; its value is visible ASCII.
pub const SESSION_ID: &str = "mcp-session-id";
/// Repeats the method that the body names.
pub const METHOD: &str = "mcp-method";
/// Repeats the name or the URI that the body's params hold.
pub const NAME: &str = "mcp-name";
/// Begins the name of each header that repeats an argument of a tool.
pub const PARAM_PREFIX: &str = "mcp-param-";
/// Names the last event that a client received before it connected again.
pub const LAST_EVENT_ID: &str = "last-event-id";

/// The keyword in an argument's schema that asks clients to repeat the argument in a header.
pub const PARAM_KEYWORD: &str = "x-mcp-header";

/// Every header, with the revisions that have it.
pub const ROWS: &[(&str, Revisions)] = &[
    (PROTOCOL_VERSION, Revisions::since(Revision::V2025_06_18)),
    (SESSION_ID, Revisions::LEGACY.and(Revisions::since(Revision::V2025_03_26))),
    (METHOD, Revisions::MODERN),
    (NAME, Revisions::MODERN),
    (PARAM_PREFIX, Revisions::MODERN),
    (LAST_EVENT_ID, Revisions::LEGACY.and(Revisions::since(Revision::V2025_03_26))),
];
