//! What a client remembers of the tools that a server listed.

use std::sync::Arc;

use proto::{HeaderParam, Object, Raw, header};

/// What a client has to know of a tool to call it over HTTP.
#[derive(Clone)]
pub(super) struct Tool {
    /// The arguments that are repeated in headers.
    pub(super) header_params: Arc<[HeaderParam]>,
    /// The server says that the tool only reads, or that a second call with the same arguments changes nothing.
    pub(super) is_repeatable: bool,
}

/// Reads the tools, by name, from the result of `tools/list`.
pub(super) fn listed(result: &Object) -> impl Iterator<Item = (String, Tool)> {
    let tools = result.get("tools").and_then(|raw| raw.array().ok()).unwrap_or_default();
    tools.into_iter().filter_map(|tool| {
        let tool = tool.object().ok()?;
        let params = tool.get("inputSchema").and_then(|schema| header::header_params(schema).ok());
        let hints = tool.get("annotations").and_then(|raw| raw.object().ok()).unwrap_or_default();
        let says = |hint: &str| hints.get(hint).is_some_and(Raw::is_true);
        let known = Tool {
            header_params: params.unwrap_or_default().into(),
            is_repeatable: says("readOnlyHint") || says("idempotentHint"),
        };
        Some((tool.string("name")?.to_string(), known))
    })
}
