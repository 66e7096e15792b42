//! Accepts connections and serves a router on them.

use std::io;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio_util::sync::CancellationToken;
use tower_service::Service as _;

use crate::accept;

/// How long a client may take to send a request's head.
const HEAD: Duration = Duration::from_secs(30);

/// Serves until `shutdown` is cancelled, and then lets running requests end for a while.
///
/// # Errors
/// When the listener fails for good.
pub async fn serve(listener: TcpListener, router: Router, shutdown: CancellationToken) -> io::Result<()> {
    let token = shutdown.clone();
    accept::tcp(listener, shutdown, move |stream| connection(stream, router.clone(), token.clone())).await;
    Ok(())
}

/// Serves a Unix socket until `shutdown` is cancelled.
pub async fn serve_unix(listener: UnixListener, router: Router, shutdown: CancellationToken) {
    let token = shutdown.clone();
    accept::unix(listener, shutdown, move |stream| connection(stream, router.clone(), token.clone())).await;
}

/// Serves one connection.
async fn connection<S>(stream: S, router: Router, shutdown: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let mut router = router.clone();
        async move { router.call(request.map(Body::new)).await }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        _ = &mut connection => return,
        () = shutdown.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
