//! HTTP connections to one server. Whoever uses a connection drives it within its own task, so that a call needs no
//! other task, and a connection ends with the call that is dropped. Unused connections are kept for a while.

use std::future::{Future, poll_fn};
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, response};
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, SendRequest};
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::route::{Route, Stream};

/// How long a connection may be unused before the client closes it. Servers close theirs after five seconds or more, and
/// a request that is sent while the server closes the connection may be lost.
const UNUSED: Duration = Duration::from_secs(4);

/// A connection to the server.
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    /// Reads and writes; `None` once the connection is closed.
    driver: Option<http1::Connection<Box<dyn Stream>, Full<Bytes>>>,
    /// Whether a response has come on it.
    pub(super) is_used: bool,
}

impl Connection {
    /// Opens a connection.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub(super) async fn open(route: &Route) -> Result<Connection, Box<dyn std::error::Error + Send + Sync>> {
        let (sender, driver) = http1::handshake(route.connect().await?).await?;
        Ok(Connection { sender, driver: Some(driver), is_used: false })
    }

    fn drive(&mut self, cx: &mut Context<'_>) {
        if let Some(driver) = &mut self.driver
            && Pin::new(driver).poll(cx).is_ready()
        {
            self.driver = None;
        }
    }

    /// Whether a request can be sent.
    fn is_ready(&mut self) -> bool {
        self.drive(&mut unwoken());
        self.driver.is_some() && self.sender.is_ready()
    }

    /// Sends a request.
    ///
    /// # Errors
    /// When the connection breaks before the head of the response has come. The error has the request where nothing of
    /// it was sent.
    pub(super) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<http::Response<Incoming>, TrySendError<Request<Full<Bytes>>>> {
        let sending = self.sender.try_send_request(request);
        tokio::pin!(sending);
        poll_fn(|cx| {
            self.drive(cx);
            sending.as_mut().poll(&mut unwoken())
        })
        .await
    }
}

/// For what only [`Connection::drive`] can make ready: after that it is polled again in any case.
fn unwoken() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

/// A response whose body is read as it comes. When it is dropped, its connection can be used again where the body was
/// read to its end, and is closed otherwise.
pub(in crate::client) struct Response {
    head: response::Parts,
    body: Incoming,
    /// `None` once it was given back.
    connection: Option<Connection>,
    /// Where the connection goes; `None` where it is used once.
    pool: Option<Arc<Pool>>,
}

impl Response {
    pub(super) fn new(
        response: http::Response<Incoming>,
        connection: Connection,
        pool: Option<Arc<Pool>>,
    ) -> Response {
        let (head, body) = response.into_parts();
        Response { head, body, connection: Some(connection), pool }
    }

    /// The status.
    pub(in crate::client) fn status(&self) -> StatusCode {
        self.head.status
    }

    /// The headers.
    pub(in crate::client) fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// The next part of the body; `None` at its end. Dropping the future loses nothing.
    ///
    /// # Errors
    /// When the connection breaks.
    pub(in crate::client) async fn chunk(&mut self) -> Result<Option<Bytes>, hyper::Error> {
        poll_fn(|cx| self.poll_chunk(cx)).await
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, hyper::Error>> {
        loop {
            let mut frame = Pin::new(&mut self.body).poll_frame(&mut unwoken());
            if frame.is_pending() {
                // The body has asked for more, so that the connection reads it.
                if let Some(connection) = &mut self.connection {
                    connection.drive(cx);
                }
                frame = Pin::new(&mut self.body).poll_frame(&mut unwoken());
            }
            return match frame {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => Poll::Ready(Ok(Some(data))),
                    // Trailers mean nothing here.
                    Err(_) => continue,
                },
                Poll::Ready(Some(Err(error))) => Poll::Ready(Err(error)),
                Poll::Ready(None) => Poll::Ready(Ok(None)),
                Poll::Pending => Poll::Pending,
            };
        }
    }
}

impl Drop for Response {
    fn drop(&mut self) {
        let Some(pool) = self.pool.take() else { return };
        // The end may have come with the last part that was read.
        let is_read = self.body.is_end_stream()
            || matches!(self.poll_chunk(&mut unwoken()), Poll::Ready(Ok(None)))
            || self.body.is_end_stream();
        if is_read && let Some(connection) = self.connection.take() {
            pool.put(connection);
        }
    }
}

/// The connections that nobody uses.
#[derive(Default)]
pub(super) struct Pool(Mutex<Unused>);

#[derive(Default)]
struct Unused {
    /// Each with the time since when it is unused; the oldest one is first.
    connections: Vec<(Instant, Connection)>,
    /// Whether a task closes those that are unused for long.
    is_swept: bool,
}

impl Pool {
    fn unused(&self) -> MutexGuard<'_, Unused> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the connection that was used last. Those that the server has closed are dropped.
    pub(super) fn take(&self) -> Option<Connection> {
        loop {
            let (since, mut connection) = self.unused().connections.pop()?;
            if since.elapsed() < UNUSED && connection.is_ready() {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection. Outside a runtime nothing would close it, so that it is closed at once.
    fn put(self: Arc<Self>, mut connection: Connection) {
        if !connection.is_ready() {
            return;
        }
        let Ok(runtime) = Handle::try_current() else { return };
        let mut unused = self.unused();
        unused.connections.push((Instant::now(), connection));
        if !mem::replace(&mut unused.is_swept, true) {
            runtime.spawn(sweep(Arc::downgrade(&self)));
        }
    }
}

/// Closes the connections that are unused for long, until there are none.
async fn sweep(pool: Weak<Pool>) {
    loop {
        tokio::time::sleep(UNUSED).await;
        let Some(pool) = pool.upgrade() else { return };
        let mut unused = pool.unused();
        unused.connections.retain(|(since, _)| since.elapsed() < UNUSED);
        if unused.connections.is_empty() {
            unused.is_swept = false;
            return;
        }
    }
}
