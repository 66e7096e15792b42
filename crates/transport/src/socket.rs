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

use crate::crowd::{Budget, Connections, Seat, Share, shared_by_default};
use crate::pipe::serve_connection;
use crate::{ARRIVING, CONNECTIONS, SHARE, accept};

/// What the clients of one socket hold together.
struct Crowd {
    connections: Arc<Connections>,
    arriving: Arc<Budget>,
}

impl Crowd {
    fn new() -> Crowd {
        let share = |all, what| Share { all, each: all / 100 * usize::from(SHARE), what };
        Crowd {
            connections: Connections::new(share(CONNECTIONS, "connections"), shared_by_default()),
            arriving: Budget::new(share(ARRIVING, "bytes of messages that are on their way in")),
        }
    }
}

/// Serves each connection to a TCP address as a pipe of its own, until `shutdown` is cancelled. A connection whose
/// first line is no message is closed: browsers can be made to send HTTP anywhere.
pub async fn serve_tcp(listener: TcpListener, served: Arc<Served>, shutdown: CancellationToken) {
    let (token, crowd) = (shutdown.clone(), Crowd::new());
    let connections = Arc::clone(&crowd.connections);
    let serve = move |stream: TcpStream, seat| {
        let (reader, writer) = stream.into_split();
        let crowd = (seat, Arc::clone(&crowd.arriving));
        one(reader, writer, Arc::clone(&served), Principal::anonymous(), token.clone(), crowd)
    };
    accept::tcp(listener, shutdown, connections, serve, |_, _| async {}).await;
}

/// Serves each connection to a Unix socket in the same way. Who can reach it is up to the file's mode.
#[cfg(unix)]
pub async fn serve_unix_lines(listener: UnixListener, served: Arc<Served>, shutdown: CancellationToken) {
    let (token, crowd) = (shutdown.clone(), Crowd::new());
    let connections = Arc::clone(&crowd.connections);
    let serve = move |stream: UnixStream, seat| {
        let (reader, writer) = stream.into_split();
        let crowd = (seat, Arc::clone(&crowd.arriving));
        one(reader, writer, Arc::clone(&served), Principal::local(), token.clone(), crowd)
    };
    accept::unix(listener, shutdown, connections, serve, |_, _| async {}).await;
}

async fn one(
    reader: impl AsyncRead + Unpin + Send,
    writer: impl AsyncWrite + Unpin,
    served: Arc<Served>,
    principal: Principal,
    shutdown: CancellationToken,
    crowd: (Arc<Seat>, Arc<Budget>),
) {
    if let Err(error) = serve_connection(reader, writer, served, principal, shutdown, crowd).await {
        tracing::debug!(%error, "a connection broke off");
    }
}
