//! Names of HTTP headers.

use crate::revision::{Revision, Revisions};

/// The revision of a request.
pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// The session, visible ASCII.
pub const SESSION_ID: &str = "mcp-session-id";
/// The body's method, mirrored.
pub const METHOD: &str = "mcp-method";
/// The body's name or URI, mirrored.
pub const NAME: &str = "mcp-name";
/// What precedes the name of a mirrored tool parameter.
pub const PARAM_PREFIX: &str = "mcp-param-";
/// The last event that a reconnecting client saw.
pub const LAST_EVENT_ID: &str = "last-event-id";

/// The argument's schema keyword that asks for it to be mirrored.
pub const PARAM_KEYWORD: &str = "x-mcp-header";

/// Every header with its lifetime.
pub const ROWS: &[(&str, Revisions)] = &[
    (PROTOCOL_VERSION, Revisions::since(Revision::V2025_06_18)),
    (SESSION_ID, Revisions::LEGACY.and(Revisions::since(Revision::V2025_03_26))),
    (METHOD, Revisions::MODERN),
    (NAME, Revisions::MODERN),
    (PARAM_PREFIX, Revisions::MODERN),
    (LAST_EVENT_ID, Revisions::LEGACY.and(Revisions::since(Revision::V2025_03_26))),
];
