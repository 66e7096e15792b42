//! Accepts connections: as many as may be open at once, and until the process is to end.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::GRACE;

/// Connections that may be open at once; further ones wait.
const CONNECTIONS: usize = 16_384;
/// How long accepting pauses where there was no room for a connection.
const PAUSE: Duration = Duration::from_millis(50);

/// Serves TCP connections, each by a future of its own, until `shutdown` is cancelled; then lets them end for a
/// while.
pub(crate) async fn tcp<F>(listener: TcpListener, shutdown: CancellationToken, serve: impl Fn(TcpStream) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let accept = async move || {
        let (stream, _) = listener.accept().await?;
        // A small answer must not wait for the acknowledgement of another.
        let _ = stream.set_nodelay(true);
        Ok(stream)
    };
    run(accept, shutdown, serve).await;
}

/// The same for a Unix socket.
pub(crate) async fn unix<F>(
    listener: UnixListener,
    shutdown: CancellationToken,
    serve: impl Fn(UnixStream) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    run(async move || listener.accept().await.map(|(stream, _)| stream), shutdown, serve).await;
}

async fn run<S, F>(
    accept: impl AsyncFn() -> io::Result<S>,
    shutdown: CancellationToken,
    serve: impl Fn(S) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
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
        match accepted {
            Ok(stream) => {
                let serving = serve(stream);
                connections.spawn(async move {
                    let _permit = permit;
                    serving.await;
                });
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
    let rest = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(GRACE, rest).await;
}
