//! Accepts connections: as many as may be open at once, and until the process is to end.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
#[cfg(unix)]
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::GRACE;
use crate::limits::{ConnectionSlot, Connections, Full};

/// How long accepting pauses where there was no room for a connection.
const PAUSE: Duration = Duration::from_millis(50);
/// How many clients are told at once that there is no room for them; further ones are told nothing.
const TOLD: usize = 64;
/// How often it is said in the log that connections were refused.
const SAID: Duration = Duration::from_secs(10);

/// Serves TCP connections, each by a future of its own, until `shutdown` is cancelled; then lets them end for a
/// while. One that there is no room for is told so by `refuse`.
pub(crate) async fn tcp<F, R>(
    listener: TcpListener,
    shutdown: CancellationToken,
    connections: Arc<Connections>,
    serve: impl Fn(TcpStream, Arc<ConnectionSlot>) -> F,
    refuse: impl Fn(TcpStream, Full) -> R,
) where
    F: Future<Output = ()> + Send + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let accept = async move || {
        let (stream, from) = listener.accept().await?;
        // A small answer must not wait for the acknowledgement of another.
        let _ = stream.set_nodelay(true);
        Ok((stream, Some(from.ip())))
    };
    run(accept, shutdown, connections, serve, refuse).await;
}

/// Serves connections to a Unix socket in the same way.
#[cfg(unix)]
pub(crate) async fn unix<F, R>(
    listener: UnixListener,
    shutdown: CancellationToken,
    connections: Arc<Connections>,
    serve: impl Fn(UnixStream, Arc<ConnectionSlot>) -> F,
    refuse: impl Fn(UnixStream, Full) -> R,
) where
    F: Future<Output = ()> + Send + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let accept = async move || listener.accept().await.map(|(stream, _)| (stream, None));
    run(accept, shutdown, connections, serve, refuse).await;
}

async fn run<S, F, R>(
    accept: impl AsyncFn() -> io::Result<(S, Option<IpAddr>)>,
    shutdown: CancellationToken,
    connections: Arc<Connections>,
    serve: impl Fn(S, Arc<ConnectionSlot>) -> F,
    refuse: impl Fn(S, Full) -> R,
) where
    F: Future<Output = ()> + Send + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let told = Arc::new(Semaphore::new(TOLD));
    let mut said: Option<tokio::time::Instant> = None;
    let mut open = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = accept() => accepted,
            Some(_) = open.join_next(), if !open.is_empty() => continue,
        };
        match accepted.map(|(stream, from)| (stream, connections.enter(from))) {
            Ok((stream, Ok(slot))) => {
                let slot = Arc::new(slot);
                let serving = serve(stream, Arc::clone(&slot));
                open.spawn(async move {
                    tokio::select! {
                        () = serving => {}
                        // Others need its place.
                        () = slot.evict().cancelled() => {}
                    }
                });
            }
            Ok((stream, Err(full))) => {
                if said.is_none_or(|at| at.elapsed() > SAID) {
                    said = Some(tokio::time::Instant::now());
                    tracing::warn!("connections are refused: {full}");
                }
                if let Ok(permit) = Arc::clone(&told).try_acquire_owned() {
                    let refusing = refuse(stream, full);
                    open.spawn(async move {
                        refusing.await;
                        drop(permit);
                    });
                }
            }
            Err(error) => {
                // Out of files, or a client that left while it was let in: the next one may do.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    // The socket closes with what has it: who comes from now on is refused, and not left waiting.
    drop(accept);
    let rest = async { while open.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(GRACE, rest).await;
}
