//! `dateline status`.

use gateway::admin::{ServerStatus, Status};

use crate::admin::client;
use crate::escape;
use crate::exit::Failure;
use crate::options::AdminOptions;
use crate::terminal::print;

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
    print(&if as_json { escape::json(&status) } else { table(&status) })
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
        escape::line(&server.name),
        server.state.word().to_owned(),
        or_dash(escape::line(server.revision.as_deref().unwrap_or_default())),
        escape::line(&server.transport),
        or_dash(pids.join(",")),
        server.tools.to_string(),
        server.calls.to_string(),
        server.errors.to_string(),
        server.restarts.to_string(),
        escape::line(&server.since),
    ]
}

/// What is wrong with a server, one line each.
fn troubles(server: &ServerStatus) -> String {
    let mut lines = String::new();
    if let Some(why) = &server.why {
        lines += &format!("  {}\n", escape::line(why));
    }
    for stale in &server.stale {
        lines += &format!(
            "  {} may be out of date, and is read again: {}\n",
            escape::line(&stale.list),
            escape::line(&stale.why)
        );
    }
    for entry in &server.left_out {
        let name = escape::line(&entry.name);
        lines += &format!("  {}: {name:?}: {}\n", escape::line(&entry.list), escape::line(&entry.why));
    }
    let more = server.left_out_count.saturating_sub(server.left_out.len());
    if more > 0 {
        lines += &format!("  and {more} more; `dateline logs {}` shows them\n", escape::line(&server.name));
    }
    lines
}
