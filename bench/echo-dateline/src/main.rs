//! The server of the benchmark by dateline: `echo`, `steps` that reports progress first, `change` that tells that the list of
//! tools changed, and as many further tools as asked for.

use std::error::Error;

use clap::{Parser, ValueEnum};
use dateline::{Args, CancellationToken, Context, Http, HttpOptions, Limits, Revisions, Server, Tool};

#[derive(Parser)]
struct Options {
    /// Where to serve HTTP; standard input and output where it is not given.
    #[arg(long)]
    listen: Option<String>,
    /// How many tools the list has.
    #[arg(long, default_value_t = 3)]
    tools: usize,
    /// Serves clients of one era only.
    #[arg(long)]
    era: Option<Only>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Only {
    Legacy,
    Modern,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Text {
    /// What comes back.
    text: String,
}

async fn echo(Args(Text { text }): Args<Text>) -> String {
    text
}

async fn steps(Args(Text { text }): Args<Text>, cx: Context) -> String {
    cx.progress(1.0, Some(2.0), None).await;
    text
}

async fn change(Args(Text { text }): Args<Text>, cx: Context) -> String {
    cx.notifier().tools_changed();
    text
}

fn server(tools: usize) -> Result<Server, Box<dyn Error>> {
    let mut server = Server::new("echo", "1.0.0")
        // One page holds the list, as with the other contenders.
        .page_size(tools.max(3))
        .tool(Tool::new("echo", "Gives the text back", echo))
        .tool(Tool::new("steps", "Reports progress and gives the text back", steps))
        .tool(Tool::new("change", "Tells that the list of tools changed", change));
    for number in 3..tools {
        server = server.tool(Tool::new(&format!("echo_{number}"), "Gives the text back", echo));
    }
    Ok(server.build()?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let server = server(options.tools)?;
    let revisions = match options.era {
        None => Revisions::ALL,
        Some(Only::Legacy) => Revisions::LEGACY,
        Some(Only::Modern) => Revisions::MODERN,
    };
    let Some(address) = options.listen else {
        dateline::stdio_until(server, revisions, Limits::default(), CancellationToken::new()).await?;
        return Ok(());
    };
    let bound = Http::new(server).revisions(revisions).options(HttpOptions::default()).bind(&address).await?;
    eprintln!("serving {}", bound.url());
    bound.serve().await?;
    Ok(())
}
