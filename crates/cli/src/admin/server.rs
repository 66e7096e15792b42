//! Serves the admin API under `/v1`, on the admin socket and, when asked to, over HTTP.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use gateway::Gateway;
use gateway::admin::{self, LogLine, LogsQuery, NoSuchServer, RestartQuery, Status};
use serde::Serialize;
use tokio::sync::broadcast::error::RecvError;
use transport::CancellationToken;

use super::socket_path;
use super::token::{self, Tokens};
use crate::exit;
use crate::options::AdminOptions;
use crate::socket::Socket;

/// How long to wait before the next attempt to open a socket that another dateline has.
const SOCKET_RETRY: Duration = Duration::from_secs(1);

/// How long a request to start a server again waits for the server to come up.
const RESTART_WAIT: Duration = Duration::from_secs(15);

/// The admin API without tokens.
fn router(gateway: Gateway) -> Router {
    Router::new()
        .route(admin::STATUS, get(status))
        .route(admin::LOGS, get(logs))
        .route(admin::RESTART, post(restart))
        .with_state(gateway)
}

/// The admin API over HTTP. If there are tokens, each request needs one of them.
pub(crate) fn over_http(gateway: Gateway, tokens: Option<Arc<Tokens>>) -> Router {
    match tokens {
        None => router(gateway),
        Some(tokens) => router(gateway).layer(from_fn_with_state(tokens, token::require)),
    }
}

/// The admin socket, or why it could not be opened.
pub(crate) struct AdminSocket {
    path: PathBuf,
    /// `None` while another dateline has the socket.
    opened: std::io::Result<Option<Socket>>,
}

/// Opens the admin socket; `None` when no folder for it is known. The caller does this before dateline prints that it
/// serves, since whoever reads that may run `dateline status` at once.
pub(crate) async fn open(admin: &AdminOptions) -> Option<AdminSocket> {
    let path = socket_path(admin)?;
    let opened = Socket::open(&path).await;
    Some(AdminSocket { path, opened })
}

/// Serves the admin socket until `shutdown`. While another dateline has it, this one waits for it.
pub(crate) async fn serve(socket: Option<AdminSocket>, gateway: Gateway, shutdown: CancellationToken) {
    let Some(AdminSocket { path, mut opened }) = socket else { return };
    let mut warned = false;
    loop {
        match opened {
            Ok(Some(Socket { listener, file })) => {
                transport::http::serve_unix(listener, router(gateway), shutdown).await;
                drop(file);
                return;
            }
            Ok(None) if !warned => {
                tracing::warn!(socket = %path.display(), "another dateline uses the admin socket; `dateline status` shows the servers of that one");
                warned = true;
            }
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(socket = %path.display(), %error, "the admin socket cannot be opened, so `dateline status`, `logs` and `restart` do not reach this dateline");
                return;
            }
        }
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(SOCKET_RETRY) => {}
        }
        opened = Socket::open(&path).await;
    }
}

async fn status(State(gateway): State<Gateway>) -> Response {
    let status = Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        config: gateway.source(),
        servers: gateway.status(),
    };
    json(StatusCode::OK, &status)
}

/// Starts a server again, and answers with its status once it is up or down, or after [`RESTART_WAIT`].
async fn restart(State(gateway): State<Gateway>, Query(query): Query<RestartQuery>) -> Response {
    match gateway.restart(&query.server, RESTART_WAIT).await {
        Some(status) => json(StatusCode::OK, &status),
        None => {
            let servers = names(&gateway);
            let error = Some(no_such_server(&query.server, &servers));
            json(StatusCode::NOT_FOUND, &NoSuchServer { error, servers })
        }
    }
}

/// The names of the servers.
fn names(gateway: &Gateway) -> Vec<String> {
    gateway.status().into_iter().map(|server| server.name).collect()
}

fn no_such_server(name: &str, servers: &[String]) -> String {
    let meant = exit::suggestion(name, servers.iter().map(String::as_str));
    match servers {
        [] => format!("there is no server {name:?}: none are configured"),
        _ if meant.is_empty() => format!("there is no server {name:?}; there are {}", servers.join(", ")),
        _ => format!("there is no server {name:?}{meant}"),
    }
}

async fn logs(State(gateway): State<Gateway>, Query(query): Query<LogsQuery>) -> Response {
    let (kept, follow) = gateway.logs(query.server.as_deref());
    if let Some(server) = query.server.as_deref().filter(|_| kept.is_empty()) {
        // A server that was removed still has lines, and a new one may have none yet.
        let servers = names(&gateway);
        if !servers.iter().any(|name| name == server) {
            return json(StatusCode::NOT_FOUND, &NoSuchServer { error: None, servers });
        }
    }
    let kept = stream::iter(kept);
    let lines = if query.follow {
        let following = stream::unfold(follow, |mut follow| async move {
            loop {
                match follow.recv().await {
                    Ok(line) => return Some((line, follow)),
                    // A client that reads too slowly misses lines.
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return None,
                }
            }
        });
        kept.chain(following).boxed()
    } else {
        kept.boxed()
    };
    let lines = lines.map(|line| Ok::<_, std::convert::Infallible>(json_line(&line)));
    ([("content-type", "application/x-ndjson")], Body::from_stream(lines)).into_response()
}

fn json(status: StatusCode, body: &impl Serialize) -> Response {
    let body = serde_json::to_string(body).unwrap_or_default();
    (status, [("content-type", "application/json")], body).into_response()
}

fn json_line(line: &LogLine) -> Bytes {
    Bytes::from(serde_json::to_string(line).unwrap_or_default() + "\n")
}
