//! `dateline serve`, `dateline stdio` and `dateline demo`.

use std::net::SocketAddr;
use std::sync::Arc;

use dateline::{CancellationToken, Http, HttpOptions, Limits, Revisions};
use gateway::{Gateway, Target};
use transport::client::Settings;

use crate::args::{Configured, Demo, EraArg, Listen, Serve};
use crate::config;
use crate::exit::Failure;

/// `dateline serve`.
pub(crate) async fn serve(args: Serve) -> Result<(), Failure> {
    let gateway = gateway(&args.configured)?;
    let shutdown = on_signal()?;
    let http = Http::new(gateway.clone()).limits(limits(&args.listen));
    let what = match gateway.status().len() {
        _ if gateway.status().iter().all(|(name, _)| name == DEMO) => {
            "a demo, since nothing is configured,".to_owned()
        }
        1 => "1 server".to_owned(),
        many => format!("{many} servers"),
    };
    let served = http_until(http, &args.listen, shutdown, &what).await;
    gateway.close().await;
    served
}

/// `dateline stdio`.
pub(crate) async fn stdio(args: Configured) -> Result<(), Failure> {
    let gateway = gateway(&args)?;
    let shutdown = on_signal()?;
    let served = dateline::stdio_until(gateway.clone(), Revisions::ALL, Limits::default(), shutdown).await;
    gateway.close().await;
    served.map_err(|e| Failure::Other(format!("standard input or output failed: {e}")))
}

/// What is served where nothing is configured.
const DEMO: &str = "demo";

fn gateway(configured: &Configured) -> Result<Gateway, Failure> {
    let targets = match config::load(configured)? {
        Some(servers) => servers.into_iter().map(|p| (p.name.clone(), Target::Program(p))).collect(),
        None => {
            let demo = demo::server(false).map_err(Failure::Other)?;
            vec![(DEMO.to_owned(), Target::Local(Arc::new(demo)))]
        }
    };
    Gateway::start(targets, &Settings::new("dateline", env!("CARGO_PKG_VERSION"))).map_err(Failure::Other)
}

/// `dateline demo`.
pub(crate) async fn demo(args: Demo) -> Result<(), Failure> {
    let server = demo::server(true).map_err(Failure::Other)?;
    let revisions = match args.era {
        None => Revisions::ALL,
        Some(EraArg::Legacy) => Revisions::LEGACY,
        Some(EraArg::Modern) => Revisions::MODERN,
    };
    let limits = limits(&args.listen);
    let shutdown = on_signal()?;
    if args.stdio {
        let served = dateline::stdio_until(server, revisions, limits, shutdown).await;
        return served.map_err(|e| Failure::Other(format!("standard input or output failed: {e}")));
    }
    let http = Http::new(server).revisions(revisions).limits(limits);
    http_until(http, &args.listen, shutdown, "the demo").await
}

pub(crate) fn limits(listen: &Listen) -> Limits {
    Limits { message: listen.max_message, ..Limits::default() }
}

/// Serves HTTP where it was asked for, and says on stderr where that is.
pub(crate) async fn http_until(
    http: Http,
    listen: &Listen,
    shutdown: CancellationToken,
    what: &str,
) -> Result<(), Failure> {
    let address: Option<SocketAddr> = listen.listen.parse().ok();
    let loopback = address.map_or(listen.listen.starts_with("localhost:"), |a| a.ip().is_loopback());
    if !loopback && !listen.allow_remote {
        return Err(Failure::Usage(format!(
            "{} can be reached from other machines, and nobody has to log in. Listen on 127.0.0.1, or add \
             --allow-remote if that is what you want",
            listen.listen
        )));
    }
    let mut options = HttpOptions::default();
    if !loopback {
        options.hosts = None;
    }
    let http = http.options(options).until(shutdown);
    let bound = http.bind(&listen.listen).await.map_err(|e| {
        Failure::Listen(format!("{e}. Is another dateline running? Choose another address with --listen"))
    })?;
    eprintln!("dateline serves {what} at {}", bound.url());
    bound.serve().await.map_err(|e| Failure::Other(format!("the listener failed: {e}")))
}

/// Cancelled by the first SIGINT or SIGTERM; the second one ends the process at once.
pub(crate) fn on_signal() -> Result<CancellationToken, Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let failed = |e| Failure::Other(format!("signals cannot be caught: {e}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let token = CancellationToken::new();
    let shutdown = token.clone();
    tokio::spawn(async move {
        for last in [false, true] {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if last {
                std::process::exit(1);
            }
            shutdown.cancel();
        }
    });
    Ok(token)
}
