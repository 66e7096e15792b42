//! A server with one tool, over standard input and output.

use dateline::{Args, Server, Tool};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Who {
    name: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let greet = |Args(who): Args<Who>| async move { format!("Hello, {}!", who.name) };
    let server = Server::new("hello", "1.0.0").tool(Tool::new("greet", "Greets someone.", greet)).build()?;
    dateline::stdio(server).await?;
    Ok(())
}
