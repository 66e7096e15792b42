//! `dateline restart`.

use gateway::admin::{RestartQuery, ServerState};

use crate::admin::client;
use crate::exit::Failure;
use crate::options::AdminOptions;
use crate::terminal::print;
use crate::words;

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
        Failure::Usage(none.error.unwrap_or_else(|| "it has no such server, or is an older one".to_owned()))
    })?;
    if as_json {
        print(&words::json(&status))?;
    } else if status.state != ServerState::Down {
        print(&format!("{} was started again and is {}\n", words::line(&query.server), status.state.word()))?;
    }
    match status.state {
        ServerState::Down => Err(Failure::Reach(format!(
            "{} was started again and is down: {}; it is tried again by itself",
            query.server,
            status.why.unwrap_or_default()
        ))),
        _ => Ok(()),
    }
}
