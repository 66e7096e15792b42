//! HTTP responses: one JSON object, an event stream, or a refusal.

use std::convert::Infallible;
use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, poll, stream};
use http::{HeaderValue, Response, StatusCode, header};

use proto::downstream::Frame;
use proto::downstream::http::{Accept, Refusal};
use proto::wire::Id;

use crate::limits::Full;
use crate::sse;

/// The messages that answer a modern request.
pub(crate) trait Frames: Send + 'static {
    /// Waits for the next one. It is not called again after the last one. Nothing is lost when the future is dropped.
    fn next(&mut self) -> impl Future<Output = Option<Frame>> + Send;
}

/// Answers with one message that is there already, in the form that the client takes.
pub(crate) fn one(bytes: Bytes, accept: Accept) -> Response<Body> {
    match accept.object() {
        true => json(StatusCode::OK, bytes),
        false => event_stream(stream::iter([sse::event(bytes)])),
    }
}

/// A JSON body.
pub(crate) fn json(status: StatusCode, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The response to a request that is refused.
pub(crate) fn refused(refusal: Refusal) -> Response<Body> {
    refusal.response().map(Body::from)
}

/// Refuses an HTTP request because a limit is reached.
pub(crate) fn full(full: &Full) -> Refusal {
    Refusal::limit(full.own(), &full.to_string())
}

/// Refuses a JSON-RPC request because a limit is reached.
pub(crate) fn full_for(id: &Id, full: &Full) -> Refusal {
    Refusal::limit_for(id, full.own(), &full.to_string())
}

/// Nothing is answered: the message asks for nothing, or the call was given up.
pub(crate) fn accepted() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

/// An event stream of these messages. Dropping the response drops them.
pub(crate) fn events(first: Option<Frame>, frames: impl Frames, keep_alive: Duration) -> Response<Body> {
    let body = stream::unfold(Some((first, frames)), move |state| async move {
        let (first, mut frames) = state?;
        let frame = match first {
            Some(first) => Some(Some(first)),
            None => within(keep_alive, frames.next()).await,
        };
        match frame {
            Some(Some(Frame::Part(bytes))) => Some((sse::event(bytes), Some((None, frames)))),
            Some(Some(Frame::Last(_, bytes))) => Some((sse::event(bytes), None)),
            Some(None) => None,
            None => Some((Bytes::from_static(sse::KEEP_ALIVE), Some((None, frames)))),
        }
    });
    event_stream(body)
}

/// Waits for a future, but no longer than this; `None` where it is not ready by then. No timer is made for a future that is
/// ready at once.
pub(crate) async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    tokio::pin!(future);
    match poll!(&mut future) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => tokio::time::timeout(limit, future).await.ok(),
    }
}

/// A response that is an event stream of these bytes.
pub(crate) fn event_stream(body: impl Stream<Item = Bytes> + Send + 'static) -> Response<Body> {
    let mut response = Response::new(Body::from_stream(body.map(Ok::<_, Infallible>)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // Not even to be asked for again: a browser that writes a stream into its cache sends a DELETE twice that ends it.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
