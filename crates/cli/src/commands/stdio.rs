//! `dateline stdio`.

use dateline::{Limits, Revisions};

use crate::config;
use crate::configured_gateway::{follow, gateway};
use crate::exit::Failure;
use crate::keys::Keyring;
use crate::options::ConfigOptions;
use crate::signals::on_signal;

#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  dateline stdio --config ~/mcp.json")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) configured: ConfigOptions,
}

/// `dateline stdio`.
pub(crate) async fn run(args: Args) -> Result<(), Failure> {
    let config = config::load(&args.configured)?;
    let shutdown = on_signal()?;
    let gateway = gateway(&args.configured, config.as_ref(), false, Keyring::process()?)?;
    follow(&args.configured, config, &gateway, &shutdown);
    let served = dateline::stdio_until(gateway.clone(), Revisions::ALL, Limits::default(), shutdown).await;
    gateway.close().await;
    served.map_err(|e| Failure::Other(format!("standard input or output failed: {e}")))
}
