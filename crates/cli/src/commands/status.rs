//! `dateline status`.

use gateway::admin::{ServerStatus, Status};

use crate::admin::client;
use crate::exit::Failure;
use crate::options::AdminOptions;
use crate::terminal::print;
use crate::words;

#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  dateline status\n  dateline status --json")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) admin: AdminOptions,
}

/// The headings of the table.
const COLUMNS: [&str; 10] =
    ["server", "state", "revision", "transport", "pid", "tools", "calls", "errors", "restarts", "since"];

/// Prints the status of the running dateline's servers.
pub(crate) async fn run(args: Args, as_json: bool) -> Result<(), Failure> {
    let status = client::status(&args.admin).await?;
    print(&if as_json { words::json(&status) } else { table(&status) })
}

/// The status as a table for people: one line per server, and below it what is wrong with it.
fn table(status: &Status) -> String {
    if status.servers.is_empty() {
        return "no servers are configured\n".to_owned();
    }
    let rows: Vec<_> = status.servers.iter().map(row).collect();
    let width =
        |at: usize| rows.iter().map(|row| row[at].chars().count()).fold(COLUMNS[at].len(), usize::max);
    let widths: [usize; COLUMNS.len()] = std::array::from_fn(width);
    let format = |cells: &[String]| {
        let padded: Vec<_> = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        padded.join("  ").trim_end().to_owned() + "\n"
    };
    let mut shown = format(&COLUMNS.map(str::to_owned));
    for (server, row) in status.servers.iter().zip(&rows) {
        shown += &format(row);
        shown += &troubles(server);
    }
    shown
}

/// The cells of a server, below [`COLUMNS`].
fn row(server: &ServerStatus) -> [String; COLUMNS.len()] {
    let pids: Vec<_> = server.pids.iter().map(u32::to_string).collect();
    let or_dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    [
        words::line(&server.name),
        server.state.word().to_owned(),
        or_dash(words::line(server.revision.as_deref().unwrap_or_default())),
        words::line(&server.transport),
        or_dash(pids.join(",")),
        server.tools.to_string(),
        server.calls.to_string(),
        server.errors.to_string(),
        server.restarts.to_string(),
        words::line(&server.since),
    ]
}

/// What is wrong with a server, one line each.
fn troubles(server: &ServerStatus) -> String {
    let mut lines = String::new();
    if let Some(why) = &server.why {
        lines += &format!("  {}\n", words::line(why));
    }
    for stale in &server.stale {
        lines += &format!(
            "  {} is not as the server has it now, and is read again: {}\n",
            words::line(&stale.list),
            words::line(&stale.why)
        );
    }
    for entry in &server.left_out {
        let name = words::line(&entry.name);
        lines += &format!("  {}: {name:?}: {}\n", words::line(&entry.list), words::line(&entry.why));
    }
    let more = server.left_out_count.saturating_sub(server.left_out.len());
    if more > 0 {
        lines += &format!("  and {more} more; `dateline logs {}` has them\n", words::line(&server.name));
    }
    lines
}
