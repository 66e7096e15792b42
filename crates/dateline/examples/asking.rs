//! A tool that asks before it acts. The same code asks a client of every revision that can be asked; run it with
//! an address as its argument to serve HTTP.

use dateline::{Args, Context, ElicitForm, Http, Result, Server, Tool};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct File {
    name: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Confirmation {
    sure: bool,
}

async fn delete(Args(file): Args<File>, cx: Context) -> Result<String> {
    let form = ElicitForm::<Confirmation>::new(format!("Delete {}?", file.name));
    // On the first round this ends the call with the question; with the answer it starts again and comes through.
    let filled = cx.elicit("sure", form).await?.accepted();
    Ok(match filled {
        Some(Confirmation { sure: true }) => format!("{} would be gone now", file.name),
        _ => format!("{} stays", file.name),
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server =
        Server::new("asking", "1.0.0").tool(Tool::new("delete", "Deletes a file.", delete)).build()?;
    match std::env::args().nth(1) {
        None => dateline::stdio(server).await?,
        Some(address) => {
            let bound = Http::new(server).bind(&address).await?;
            eprintln!("serving {}", bound.url());
            bound.serve().await?;
        }
    }
    Ok(())
}
