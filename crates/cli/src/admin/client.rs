//! Requests to the admin API of the running dateline, over its socket.

use axum::http::{Method, StatusCode};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use gateway::admin::{self, LogsQuery, NoSuchServer, RestartQuery, ServerStatus, Status};
use serde::de::DeserializeOwned;
use url::form_urlencoded;

use super::socket_path;
use crate::exit::Failure;
use crate::options::AdminOptions;

/// The status of the running dateline and of its servers.
pub(crate) async fn status(admin: &AdminOptions) -> Result<Status, Failure> {
    let (status, body) = send(admin, Method::GET, admin::STATUS).await?;
    accepted(status)?;
    whole(body).await
}

/// Starts a server again. The inner error says that there is no such server.
pub(crate) async fn restart(
    admin: &AdminOptions,
    query: &RestartQuery,
) -> Result<Result<ServerStatus, NoSuchServer>, Failure> {
    let uri = format!("{}?{}", admin::RESTART, encoded(&[("server", &query.server)]));
    let (status, body) = send(admin, Method::POST, &uri).await?;
    if status == StatusCode::NOT_FOUND {
        return Ok(Err(whole(body).await?));
    }
    accepted(status)?;
    whole(body).await.map(Ok)
}

/// The log of one server or of all, as lines of JSON. The inner error says that there is no such server.
pub(crate) async fn logs(
    admin: &AdminOptions,
    query: &LogsQuery,
) -> Result<Result<impl Stream<Item = Result<Bytes, Failure>> + Unpin + use<>, NoSuchServer>, Failure> {
    let follow = query.follow.to_string();
    let mut pairs = vec![("follow", follow.as_str())];
    pairs.extend(query.server.as_deref().map(|server| ("server", server)));
    let (status, body) = send(admin, Method::GET, &format!("{}?{}", admin::LOGS, encoded(&pairs))).await?;
    if status == StatusCode::NOT_FOUND && query.server.is_some() {
        return Ok(Err(whole(body).await?));
    }
    accepted(status)?;
    Ok(Ok(body.map(|chunk| chunk.map_err(Failure::Unreachable))))
}

/// The pairs as the query of a URL.
fn encoded(pairs: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

fn accepted(status: StatusCode) -> Result<(), Failure> {
    if status.is_success() {
        return Ok(());
    }
    Err(Failure::ServerError(format!("the running dateline answered with the HTTP status {status}")))
}

async fn send(
    admin: &AdminOptions,
    method: Method,
    uri: &str,
) -> Result<(StatusCode, impl Stream<Item = Result<Bytes, String>> + Unpin + use<>), Failure> {
    let socket = socket_path(admin).ok_or_else(|| {
        Failure::Usage(
            "the admin socket cannot be found, since $HOME is not set; name it with --admin-socket".into(),
        )
    })?;
    transport::unix::ask(&socket, method, uri).await.map_err(|why| {
        Failure::Unreachable(format!("no dateline is running ({why}); start one with `dateline serve`"))
    })
}

/// Reads the whole body of an answer.
async fn whole<T: DeserializeOwned>(
    mut body: impl Stream<Item = Result<Bytes, String>> + Unpin,
) -> Result<T, Failure> {
    let mut text = Vec::new();
    while let Some(chunk) = body.next().await {
        text.extend_from_slice(&chunk.map_err(Failure::Unreachable)?);
    }
    serde_json::from_slice(&text).map_err(|why| {
        Failure::ServerError(format!(
            "the answer at the admin socket cannot be read: {why}; if another version of dateline is running, start it again with this one"
        ))
    })
}
