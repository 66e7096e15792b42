//! Listens at the places of `--listen`, over HTTP, TCP and Unix sockets.

use std::net::SocketAddr;
use std::path::Path;

use dateline::{Bound, CancellationToken, Http, HttpOptions, Limits, Revisions};
use futures_util::future::{BoxFuture, join_all, try_join_all};
use proto::Service;

use crate::exit::Failure;
use crate::options::ListenOptions;
use crate::socket::Socket;
use crate::terminal::say;

pub(crate) fn limits(listen: &ListenOptions) -> Limits {
    Limits { message: listen.max_message, ..Limits::default() }
}

/// A place to listen at: a value of `--listen`.
enum ListenPlace<'a> {
    Http(&'a str),
    Unix(&'a Path),
    Tcp(&'a str),
}

impl ListenPlace<'_> {
    fn read(listen: &str) -> ListenPlace<'_> {
        match listen.split_once(':') {
            Some(("unix", path)) => ListenPlace::Unix(Path::new(path)),
            Some(("tcp", address)) => ListenPlace::Tcp(address),
            _ => ListenPlace::Http(listen),
        }
    }
}

/// Whether an address can be reached from this machine only.
fn is_loopback(address: &str) -> bool {
    let parsed: Option<SocketAddr> = address.parse().ok();
    parsed.map_or(address.starts_with("localhost:"), |a| a.ip().is_loopback())
}

/// Refuses an address that other machines can reach, unless that is allowed.
fn allowed(address: &str, listen: &ListenOptions) -> Result<(), Failure> {
    if is_loopback(address) || listen.allow_remote {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "other machines can reach {address}, and clients need no login. Listen on 127.0.0.1, or add --allow-remote to \
         allow it"
    )))
}

/// Refuses to serve the admin API without tokens on an address that other machines can reach.
pub(crate) fn require_loopback(listen: &ListenOptions) -> Result<(), Failure> {
    let http = listen.listen.iter().filter_map(|place| match ListenPlace::read(place) {
        ListenPlace::Http(address) => Some(address),
        ListenPlace::Unix(_) | ListenPlace::Tcp(_) => None,
    });
    let Some(address) = http.into_iter().find(|address| !is_loopback(address)) else { return Ok(()) };
    allowed(address, listen)?;
    Err(Failure::Usage(format!(
        "other machines could use the admin API at {address}, since clients need no login. Make a token with `dateline key \
         > FILE && chmod 600 FILE` and add --admin-token-file FILE; or leave out --admin-http, which `dateline status` \
         on this machine does not need"
    )))
}

/// The endpoints that listen.
pub(crate) struct Listeners {
    http: Vec<Bound>,
    lines: Vec<BoxFuture<'static, ()>>,
}

impl Listeners {
    /// Listens at each place, and prints the places to standard error.
    pub(crate) async fn new(
        service: impl Service + Clone,
        revisions: Revisions,
        listen: &ListenOptions,
        shutdown: &CancellationToken,
        what: &str,
    ) -> Result<Listeners, Failure> {
        let mut listening = Listeners { http: Vec::new(), lines: Vec::new() };
        let failed = |why: String| {
            Failure::CannotListen(format!(
                "{why}. Is another dateline running? Choose another address with --listen"
            ))
        };
        let limits = limits(listen);
        for place in &listen.listen {
            let (service, token) = (service.clone(), shutdown.clone());
            match ListenPlace::read(place) {
                ListenPlace::Http(address) => {
                    allowed(address, listen)?;
                    let options = HttpOptions {
                        hosts: Some(listen.allow_hosts.clone()),
                        origins: listen.allow_origins.clone(),
                        ..listen.limits.options()
                    };
                    let http = Http::new(service).revisions(revisions).limits(limits);
                    let bound = http.options(options).until(token).bind(address).await;
                    let bound = bound.map_err(|e| failed(e.to_string()))?;
                    say(&format!("dateline serves {what} at {}", bound.url()));
                    listening.http.push(bound);
                }
                ListenPlace::Tcp(address) => {
                    allowed(address, listen)?;
                    let cannot = |e| failed(format!("cannot listen on {address}: {e}"));
                    let listener = tokio::net::TcpListener::bind(address).await.map_err(cannot)?;
                    let at = listener.local_addr().map_err(cannot)?;
                    say(&format!("dateline serves {what} at tcp:{at}"));
                    listening
                        .lines
                        .push(Box::pin(dateline::tcp(listener, service, revisions, limits, token)));
                }
                ListenPlace::Unix(path) => {
                    let cannot = |why: String| failed(format!("cannot listen on {}: {why}", path.display()));
                    let socket = Socket::open(path).await.map_err(|e| cannot(e.to_string()))?;
                    let Socket { listener, file } =
                        socket.ok_or_else(|| cannot("another process listens there".into()))?;
                    say(&format!("dateline serves {what} at unix:{}", path.display()));
                    listening.lines.push(Box::pin(async move {
                        dateline::unix(listener, service, revisions, limits, token).await;
                        drop(file);
                    }));
                }
            }
        }
        Ok(listening)
    }

    /// Serves until `shutdown`. Each HTTP endpoint serves `beside` too, behind the same checks.
    pub(crate) async fn serve(self, beside: Option<axum::Router>) -> Result<(), Failure> {
        let http = self.http.into_iter().map(|bound| bound.serve_beside(beside.clone().unwrap_or_default()));
        let (served, _) = tokio::join!(try_join_all(http), join_all(self.lines));
        served.map(drop).map_err(|e| Failure::Other(format!("the listener failed: {e}")))
    }
}
