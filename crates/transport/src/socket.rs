//! The framing of stdio on sockets: a message a line, on Unix sockets and TCP.
//!
//! <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio>

use std::sync::Arc;

use proto::Principal;
use proto::downstream::Served;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
#[cfg(unix)]
use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;

use crate::limits::{Budget, ConnectionSlot, Connections, Share, shared_by_default};
use crate::pipe::serve_connection;
use crate::{ADDRESS_SHARE, CONNECTIONS, REQUEST_BYTES, accept};

/// What the clients of one socket hold together.
struct ClientLimits {
    connections: Arc<Connections>,
    request_bytes: Arc<Budget>,
}

impl ClientLimits {
    fn new() -> ClientLimits {
        let share = |all, what| Share { all, each: all / 100 * usize::from(ADDRESS_SHARE), what };
        ClientLimits {
            connections: Connections::new(share(CONNECTIONS, "connections"), shared_by_default()),
            request_bytes: Budget::new(share(REQUEST_BYTES, "bytes of messages that are on their way in")),
        }
    }
}

/// Serves each connection to a TCP address as a pipe of its own, until `shutdown` is cancelled. A connection whose
/// first line is no message is closed: browsers can be made to send HTTP anywhere.
pub async fn serve_tcp(listener: TcpListener, served: Arc<Served>, shutdown: CancellationToken) {
    let (token, limits) = (shutdown.clone(), ClientLimits::new());
    let connections = Arc::clone(&limits.connections);
    let serve = move |stream: TcpStream, slot| {
        let (reader, writer) = stream.into_split();
        let limits = (slot, Arc::clone(&limits.request_bytes));
        one(reader, writer, Arc::clone(&served), Principal::anonymous(), token.clone(), limits)
    };
    accept::tcp(listener, shutdown, connections, serve, |_, _| async {}).await;
}

/// Serves each connection to a Unix socket in the same way. Who can reach it is up to the file's mode.
#[cfg(unix)]
pub async fn serve_unix_lines(listener: UnixListener, served: Arc<Served>, shutdown: CancellationToken) {
    let (token, limits) = (shutdown.clone(), ClientLimits::new());
    let connections = Arc::clone(&limits.connections);
    let serve = move |stream: UnixStream, slot| {
        let (reader, writer) = stream.into_split();
        let limits = (slot, Arc::clone(&limits.request_bytes));
        one(reader, writer, Arc::clone(&served), Principal::local(), token.clone(), limits)
    };
    accept::unix(listener, shutdown, connections, serve, |_, _| async {}).await;
}

async fn one(
    reader: impl AsyncRead + Unpin + Send,
    writer: impl AsyncWrite + Unpin,
    served: Arc<Served>,
    principal: Principal,
    shutdown: CancellationToken,
    limits: (Arc<ConnectionSlot>, Arc<Budget>),
) {
    if let Err(error) = serve_connection(reader, writer, served, principal, shutdown, limits).await {
        tracing::debug!(%error, "a connection broke off");
    }
}
