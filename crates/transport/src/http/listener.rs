//! Accepts connections and serves a router on them.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower_service::Service as _;

use crate::GRACE;

/// Connections that may be open at once; further ones wait.
const CONNECTIONS: usize = 16_384;
/// How long a client may take to send a request's head.
const HEAD: Duration = Duration::from_secs(30);

/// Serves until `shutdown` is cancelled, and then lets running requests end for a while.
///
/// # Errors
/// When the listener fails for good.
pub async fn serve(listener: TcpListener, router: Router, shutdown: CancellationToken) -> io::Result<()> {
    let accept = || async {
        let (stream, _) = listener.accept().await?;
        // A small answer must not wait for the acknowledgement of another.
        let _ = stream.set_nodelay(true);
        Ok(stream)
    };
    run(accept, router, shutdown).await;
    Ok(())
}

/// Serves a Unix socket until `shutdown` is cancelled.
pub async fn serve_unix(listener: UnixListener, router: Router, shutdown: CancellationToken) {
    let accept = || async { listener.accept().await.map(|(stream, _)| stream) };
    run(accept, router, shutdown).await;
}

async fn run<S, F>(accept: impl Fn() -> F, router: Router, shutdown: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Future<Output = io::Result<S>>,
{
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let permit = Arc::clone(&room).acquire_owned().await;
        let accepted = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = accept() => accepted,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
        };
        let stream = match accepted {
            Ok(stream) => stream,
            Err(error) => {
                // Out of files, or a client that left while it was let in: the next one may do.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let (router, shutdown) = (router.clone(), shutdown.clone());
        connections.spawn(async move {
            let _permit = permit;
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
        });
    }
    let rest = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(GRACE, rest).await;
}
