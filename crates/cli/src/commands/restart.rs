//! `dateline restart`.

use gateway::admin::{RestartQuery, ServerState};

use crate::admin::client;
use crate::escape;
use crate::exit::Failure;
use crate::options::AdminOptions;
use crate::terminal::print;

#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  dateline restart time")]
pub(crate) struct Args {
    /// The server's name.
    pub(crate) server: String,
    #[command(flatten)]
    pub(crate) admin: AdminOptions,
}

/// Starts a server of the running dateline again, and says whether it is up.
pub(crate) async fn run(args: Args, as_json: bool) -> Result<(), Failure> {
    let query = RestartQuery { server: args.server };
    let status = client::restart(&args.admin, &query).await?.map_err(|none| {
        Failure::Usage(none.error.unwrap_or_else(|| {
            "the running dateline has no such server, or is too old to restart one".to_owned()
        }))
    })?;
    if as_json {
        print(&escape::json(&status))?;
    } else if status.state != ServerState::Down {
        print(&format!(
            "{} was started again and is {}\n",
            escape::line(&query.server),
            status.state.word()
        ))?;
    }
    match status.state {
        ServerState::Down => Err(Failure::Unreachable(format!(
            "{} was started again and is down: {}; dateline tries it again",
            query.server,
            status.why.unwrap_or_default()
        ))),
        _ => Ok(()),
    }
}
