//! A server without Rust types for its tools: definitions from JSON, arguments and results as they stand on the wire.
//! This is how one passes on what is described elsewhere, byte for byte.

use dateline::{BuildError, Context, Server, Tool, ToolResult};
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

fn tool(definition: &Value) -> Result<Tool, BuildError> {
    // The arguments were checked against the schema; a number such as 1e400 is still what the client wrote.
    Tool::from_json(definition, |cx: Context| async move { ToolResult::raw(cx.arguments().clone()) })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tools: Vec<Value> = serde_json::from_str(TOOLS)?;
    let mut server = Server::new("raw", "1.0.0").identity("websiteUrl", json!("https://example.com/"));
    for definition in &tools {
        server = server.tool(tool(definition)?);
    }
    dateline::stdio(server.build()?).await?;
    Ok(())
}
