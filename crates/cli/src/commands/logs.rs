//! `dateline logs`.

use futures_util::StreamExt as _;
use gateway::admin::{LogLine, LogsQuery};

use crate::admin::client;
use crate::escape;
use crate::exit::{Failure, suggestion};
use crate::options::AdminOptions;
use crate::terminal::print;

#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  dateline logs time\n  dateline logs --follow")]
pub(crate) struct Args {
    /// The server whose log is shown. Default: all servers.
    pub(crate) server: Option<String>,
    /// Go on and print each new line.
    #[arg(short, long)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) admin: AdminOptions,
}

/// Prints the log of one server or of all.
pub(crate) async fn run(args: Args, as_json: bool) -> Result<(), Failure> {
    let query = LogsQuery { server: args.server, follow: args.follow };
    let mut body = client::logs(&args.admin, &query).await?.map_err(|none| {
        let server = query.server.as_deref().unwrap_or_default();
        let meant = suggestion(server, none.servers.iter().map(String::as_str));
        let servers = if none.servers.is_empty() { "none".to_owned() } else { none.servers.join(", ") };
        Failure::Usage(format!("the running dateline has no server {server:?}{meant}; it has: {servers}"))
    })?;
    let mut buffer = Vec::new();
    while let Some(chunk) = body.next().await {
        buffer.extend_from_slice(&chunk?);
        while let Some(end) = buffer.iter().position(|b| *b == b'\n') {
            let line: Vec<u8> = buffer.drain(..=end).collect();
            let shown = match serde_json::from_slice::<LogLine>(&line) {
                Ok(LogLine { at, server, text }) if !as_json => {
                    format!("{} {} {}\n", escape::line(&at), escape::line(&server), escape::line(&text))
                }
                _ => escape::json_text(&String::from_utf8_lossy(&line)),
            };
            print(&shown)?;
        }
    }
    Ok(())
}
