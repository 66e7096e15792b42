//! `dateline serve`.

use std::path::PathBuf;

use dateline::Revisions;

use crate::admin::server as admin;
use crate::admin::token::Tokens;
use crate::config;
use crate::config_commands::count_servers;
use crate::configured_gateway::{follow, gateway};
use crate::exit::Failure;
use crate::keys::Keyring;
use crate::listeners::{Listeners, require_loopback};
use crate::options::{AdminOptions, ConfigOptions, KeyOptions, ListenOptions};
use crate::signals::on_signal;

#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  dateline serve\n  dateline serve --config ~/mcp.json --listen 4401\n  dateline serve --listen 0.0.0.0:4400 --allow-remote --allow-host gateway.example"
)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) configured: ConfigOptions,
    #[command(flatten)]
    pub(crate) listen: ListenOptions,
    #[command(flatten)]
    pub(crate) admin: AdminOptions,
    /// Serve the admin API over HTTP too, under /v1.
    ///
    /// On an address that other machines can reach, this needs
    /// --admin-token-file.
    #[arg(long)]
    pub(crate) admin_http: bool,
    /// A file of tokens for the admin API over HTTP, one per line, as `dateline key` prints them.
    ///
    /// Each request to the admin API over HTTP then needs
    /// `Authorization: Bearer TOKEN` with one of them. The file is read again when it changes, and on SIGHUP.
    #[arg(long, value_name = "FILE", requires = "admin_http")]
    pub(crate) admin_token_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) keys: KeyOptions,
}

/// `dateline serve`.
pub(crate) async fn run(args: Args) -> Result<(), Failure> {
    let config = config::load(&args.configured)?;
    let shutdown = on_signal()?;
    let keys = Keyring::open(args.keys.key_file, &shutdown)?;
    let token = Tokens::open(args.admin_token_file, &shutdown)?;
    if args.admin_http && token.is_none() {
        require_loopback(&args.listen)?;
    }
    let gateway = gateway(&args.configured, config.as_ref(), true, keys)?;
    let what = match &config {
        None => "a demo, since nothing is configured,".to_owned(),
        // Those that cannot be used have just been named.
        Some(config) => count_servers(config.usable()),
    };
    follow(&args.configured, config, &gateway, &shutdown);
    let served = async {
        let revisions = Revisions::ALL;
        let admin = admin::open(&args.admin).await;
        let listening = Listeners::new(gateway.clone(), revisions, &args.listen, &shutdown, &what).await?;
        let admin = admin::serve(admin, gateway.clone(), shutdown.clone());
        let router = args.admin_http.then(|| admin::over_http(gateway.clone(), token));
        tokio::join!(listening.serve(router), admin).0
    };
    let served = served.await;
    gateway.close().await;
    served
}
