//! The framing of stdio on sockets: a message a line, on Unix sockets and TCP.
//!
//! <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio>

use std::sync::Arc;

use proto::Principal;
use proto::edge::Served;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio_util::sync::CancellationToken;

use crate::accept;
use crate::pipe::serve_connection;

/// Serves each connection to a TCP address as a pipe of its own, until `shutdown` is cancelled. A connection whose
/// first line is no message is closed: browsers can be made to send HTTP anywhere.
pub async fn serve_tcp(listener: TcpListener, served: Arc<Served>, shutdown: CancellationToken) {
    let token = shutdown.clone();
    accept::tcp(listener, shutdown, move |stream| {
        let (reader, writer) = stream.into_split();
        one(reader, writer, Arc::clone(&served), Principal::anonymous(), token.clone())
    })
    .await;
}

/// The same for a Unix socket, which only its owner can reach where the file's mode says so.
pub async fn serve_unix_lines(listener: UnixListener, served: Arc<Served>, shutdown: CancellationToken) {
    let token = shutdown.clone();
    accept::unix(listener, shutdown, move |stream| {
        let (reader, writer) = stream.into_split();
        one(reader, writer, Arc::clone(&served), Principal::local(), token.clone())
    })
    .await;
}

async fn one(
    reader: impl AsyncRead + Unpin + Send,
    writer: impl AsyncWrite + Unpin,
    served: Arc<Served>,
    principal: Principal,
    shutdown: CancellationToken,
) {
    if let Err(error) = serve_connection(reader, writer, served, principal, shutdown).await {
        tracing::debug!(%error, "a connection broke off");
    }
}
