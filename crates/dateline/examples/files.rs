//! A folder of files as resources, and the skills in it where there are any: `files FOLDER [--listen ADDRESS]`.

use dateline::{Directory, Http, Server, Skills};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let folder = arguments.first().ok_or("which folder?")?;
    let files = Directory::new(folder, "file:///project")?.name("Project").max_bytes(64 * 1024);
    let server = Server::new("files", "1.0.0").define(files).define(Skills::from_folder(folder)?).build()?;
    match arguments.get(1).map(String::as_str) {
        Some("--listen") => {
            let bound = Http::new(server).bind(arguments.get(2).ok_or("which address?")?).await?;
            eprintln!("serving {}", bound.url());
            bound.serve().await?;
        }
        _ => dateline::stdio(server).await?,
    }
    Ok(())
}
