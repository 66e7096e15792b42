//! Accepts connections and serves a router on them.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http::Response;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
#[cfg(unix)]
use tokio::net::UnixListener;
use tokio_util::sync::CancellationToken;
use tower_service::Service as _;

use super::bodies::{RequestBody, ResponseBody};
use super::client_limits::ClientLimits;
use super::endpoint::Endpoint;
#[cfg(unix)]
use super::options::Options;
use super::plain::{answer, is_plain};
use super::response;
use super::write_timeout::WriteTimeout;
use crate::accept;
use crate::limits::{ConnectionSlot, Full};

/// How long a client may take to send a request's head.
const HEAD: Duration = Duration::from_secs(30);
/// What a connection holds back at most, read and not yet worked on, or written and not yet sent: the longest head.
const BUFFER: usize = 64 << 10;
/// How long a connection on which no request is worked on may stay open when the process is to end: its last answer
/// may still be on its way.
const LEAVING: Duration = Duration::from_millis(500);
/// How long a client is listened to that there is no room for, so that it gets to read why.
const REFUSED: Duration = Duration::from_secs(1);

/// What answers the requests of a connection.
#[derive(Clone)]
struct Answers {
    /// Takes the plain requests to its paths, without the router.
    endpoint: Option<Arc<Endpoint>>,
    router: Router,
}

/// Serves an endpoint, and a router that holds its routes and others, until the endpoint's shutdown; then lets running
/// requests end for a while.
///
/// # Errors
/// When the listener fails for good.
pub async fn serve(listener: TcpListener, endpoint: Arc<Endpoint>, router: Router) -> io::Result<()> {
    let (shutdown, limits, write_timeout) =
        (endpoint.shutdown.clone(), endpoint.limits.clone(), endpoint.options.write_timeout);
    let (token, connections) = (shutdown.clone(), Arc::clone(&limits.connections));
    let answers = Answers { endpoint: Some(endpoint), router };
    let serve = move |stream, slot| {
        connection(
            WriteTimeout::new(stream, write_timeout),
            answers.clone(),
            slot,
            limits.clone(),
            token.clone(),
        )
    };
    accept::tcp(listener, shutdown, connections, serve, refuse).await;
    Ok(())
}

/// Serves a Unix socket until `shutdown` is cancelled.
#[cfg(unix)]
pub async fn serve_unix(listener: UnixListener, router: Router, shutdown: CancellationToken) {
    let options = Options::default();
    let (token, limits) = (shutdown.clone(), ClientLimits::new(&options));
    let connections = Arc::clone(&limits.connections);
    let answers = Answers { endpoint: None, router };
    let serve = move |stream, slot| {
        connection(
            WriteTimeout::new(stream, options.write_timeout),
            answers.clone(),
            slot,
            limits.clone(),
            token.clone(),
        )
    };
    accept::unix(listener, shutdown, connections, serve, refuse).await;
}

impl Answers {
    async fn answer(
        mut self,
        request: hyper::Request<RequestBody>,
        slot: &Arc<ConnectionSlot>,
    ) -> Result<Response<Body>, Infallible> {
        match &self.endpoint {
            Some(endpoint) if is_plain(endpoint, &request) => {
                Ok(answer(endpoint, request, slot.owner()).await)
            }
            _ => {
                let mut request = request.map(Body::new);
                request.extensions_mut().insert(Arc::clone(slot));
                self.router.call(request).await
            }
        }
    }
}

/// Serves one connection.
async fn connection<S>(
    stream: S,
    answers: Answers,
    slot: Arc<ConnectionSlot>,
    limits: ClientLimits,
    shutdown: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let leaving = limits.response_bytes.holding(slot.owner(), slot.evict().clone());
    let at = Arc::clone(&slot);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let (slot, leaving) = (Arc::clone(&at), Arc::clone(&leaving));
        let request = RequestBody::of(request, &slot);
        let answers = answers.clone();
        async move {
            answers.answer(request, &slot).await.map(|response| ResponseBody::of(response, &slot, &leaving))
        }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        _ = &mut connection => return,
        () = shutdown.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    // What was begun is worked on; who has sent half a request does not hold up the end.
    loop {
        tokio::select! {
            _ = &mut connection => return,
            () = tokio::time::sleep(LEAVING) => if slot.is_waiting() { return },
        }
    }
}

/// A whole response, after which the connection is closed.
fn closing(response: &Response<Bytes>) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {}\r\n", response.status()).into_bytes();
    for (name, value) in response.headers() {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            text.extend_from_slice(part);
        }
    }
    let rest = format!("content-length: {}\r\nconnection: close\r\n\r\n", response.body().len());
    text.extend_from_slice(rest.as_bytes());
    text.extend_from_slice(response.body());
    text
}

/// Says to a client that there is no room for its connection.
async fn refuse(mut stream: impl AsyncRead + AsyncWrite + Unpin, full: Full) {
    let text = closing(&response::full(&full).response());
    let refused = async {
        stream.write_all(&text).await?;
        stream.shutdown().await?;
        // What it has said meanwhile would have the answer thrown away.
        let mut said = [0; 4096];
        for _ in 0..16 {
            if stream.read(&mut said).await? == 0 {
                break;
            }
        }
        io::Result::Ok(())
    };
    let _ = tokio::time::timeout(REFUSED, refused).await;
}
