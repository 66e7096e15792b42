//! Keys of `_meta` that the protocol reserves
//! (<https://modelcontextprotocol.io/specification/2026-07-28/basic/index#meta>).

/// The member that holds them.
pub const META: &str = "_meta";
/// Opts a request into progress.
pub const PROGRESS_TOKEN: &str = "progressToken";
/// The revision of a request; what makes it modern.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Who asks; optional and not verified.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// What the client can do for this request.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The least severe log message that the client wants for this request.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// Who answers.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The listen that a notification belongs to.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The task that a message belongs to.
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// The keys that belong to one hop: an edge reads them and takes them out, and writes its own.
pub const OF_ONE_HOP: &[&str] = &[
    PROGRESS_TOKEN,
    PROTOCOL_VERSION,
    CLIENT_INFO,
    CLIENT_CAPABILITIES,
    LOG_LEVEL,
    SERVER_INFO,
    SUBSCRIPTION_ID,
];
