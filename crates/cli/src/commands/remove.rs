//! `dateline remove`.

use crate::config;
use crate::config_commands::{config_path, running_state};
use crate::escape;
use crate::exit::Failure;
use crate::options::{AdminOptions, ConfigOptions};
use crate::terminal::print;

#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  dateline remove time")]
pub(crate) struct Args {
    /// The server's name.
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) configured: ConfigOptions,
    #[command(flatten)]
    pub(crate) admin: AdminOptions,
}

/// `dateline remove`.
pub(crate) async fn run(args: Args) -> Result<(), Failure> {
    let path = config_path(&args.configured)?;
    config::remove(&path, &args.name).map_err(Failure::Usage)?;
    let state = running_state(&args.admin, &path, &args.name, false).await;
    print(&format!("{} was removed from {}; {state}\n", escape::line(&args.name), path.display()))
}
