//! A server without Rust types for its tools: definitions from JSON, arguments and results as they stand on the wire.
//! This is how one passes on what is described elsewhere, byte for byte.

use dateline::{Cx, Server, Tool, ToolResult};
use serde_json::{Value, json};

/// What could come from a file or another service.
const TOOLS: &str = r#"[
    {
        "name": "mirror",
        "description": "Gives the arguments back.",
        "inputSchema": {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"value": {}, "region": {"type": "string", "x-mcp-header": "Region"}},
            "required": ["value"]
        },
        "outputSchema": {"type": "object", "properties": {"value": {}}},
        "annotations": {"readOnlyHint": true},
        "_meta": {"com.example/from": "a file"}
    }
]"#;

fn tool(definition: &Value) -> Tool {
    let text = |name: &str| definition[name].as_str().unwrap_or_default();
    // The arguments were checked against the schema; a number such as 1e400 is still what the client wrote.
    let handler = |cx: Cx| async move { ToolResult::raw(cx.arguments().clone()) };
    let tool = Tool::new(text("name"), text("description"), handler);
    ["inputSchema", "outputSchema", "annotations", "_meta"]
        .into_iter()
        .fold(tool, |tool, member| tool.with(member, &definition[member]))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tools: Vec<Value> = serde_json::from_str(TOOLS)?;
    let server = tools.iter().fold(Server::new("raw", "1.0.0"), |server, one| server.tool(tool(one)));
    let server = server.identity("websiteUrl", json!("https://example.com/")).build()?;
    dateline::stdio(server).await?;
    Ok(())
}
