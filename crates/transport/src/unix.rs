//! HTTP over a Unix socket, asked.

use std::path::Path;

use bytes::Bytes;
use futures_util::Stream;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, BodyStream, Empty};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio_stream::StreamExt as _;

/// Asks a server on a Unix socket, without a body; gives the status and the body as it arrives.
///
/// # Errors
/// When nobody listens there, or what listens does not speak HTTP.
pub async fn ask(
    socket: &Path,
    method: Method,
    uri: &str,
) -> Result<(StatusCode, impl Stream<Item = Result<Bytes, String>> + Unpin + use<>), String> {
    let stream = UnixStream::connect(socket).await.map_err(|e| format!("{}: {e}", socket.display()))?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|e| e.to_string())?;
    tokio::spawn(connection);
    let request = Request::builder()
        .method(method)
        .uri(uri)
        .header(header::HOST, "localhost")
        .body(Empty::<Bytes>::new());
    let response =
        sender.send_request(request.map_err(|e| e.to_string())?).await.map_err(|e| e.to_string())?;
    let status = response.status();
    let body = BodyStream::new(response.into_body().map_err(|e| e.to_string()));
    let data = body.filter_map(|frame| frame.map(|frame| frame.into_data().ok()).transpose());
    Ok((status, Box::pin(data)))
}
