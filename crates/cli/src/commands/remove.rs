//! `dateline remove`.

use crate::config;
use crate::configure::{own, served};
use crate::exit::Failure;
use crate::options::{AdminOptions, ConfigOptions};
use crate::terminal::print;
use crate::words;

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
    let path = own(&args.configured)?;
    config::remove(&path, &args.name).map_err(Failure::Usage)?;
    let served = served(&args.admin, &path, &args.name, false).await;
    print(&format!("{} is no longer in {}; {served}\n", words::line(&args.name), path.display()))
}
