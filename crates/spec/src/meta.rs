//! Keys of `_meta` that the protocol reserves
//! (<https://modelcontextprotocol.io/specification/2026-07-28/basic/index#meta>).

/// The name of the member that holds these keys.
pub const META: &str = "_meta";
/// Asks for progress notifications; each of them repeats the value.
pub const PROGRESS_TOKEN: &str = "progressToken";
/// Names the revision of a request. A request that has this key is a modern one.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Names the program that asks. It is optional, and nobody verifies it.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// Declares what the client can do while it waits for this request.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Names the least severe level of the log messages that the client wants for this request.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// Names the program that answers.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// Names the `subscriptions/listen` request that a notification belongs to.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// Names the task that a message belongs to.
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// The keys that concern two neighbours only. Whoever receives a message removes them, and writes its own where it
/// sends the message on.
pub const OF_ONE_HOP: &[&str] = &[
    PROGRESS_TOKEN,
    PROTOCOL_VERSION,
    CLIENT_INFO,
    CLIENT_CAPABILITIES,
    LOG_LEVEL,
    SERVER_INFO,
    SUBSCRIPTION_ID,
];
