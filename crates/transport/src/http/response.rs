//! HTTP responses: one JSON object, an event stream, or a refusal.

use std::convert::Infallible;
use std::pin::Pin;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use http::{HeaderValue, Response, StatusCode, header};

use proto::downstream::http::{Accept, Refusal};
use proto::wire::Id;

use crate::crowd::Full;
use crate::sse;

/// A message of a call.
#[derive(Debug)]
pub(crate) enum Frame {
    /// More will follow.
    Part(Bytes),
    /// The last one, with the status for an answer that consists of it alone.
    Last(StatusCode, Bytes),
}

/// The messages of a call.
pub(crate) type Frames = Pin<Box<dyn Stream<Item = Frame> + Send>>;

/// Answers with one JSON object where the call has nothing else to say, and with an event stream where it has,
/// or where it takes longer than a quiet connection should. Dropping the response drops the frames.
pub(crate) async fn respond(mut frames: Frames, accept: Accept, keep_alive: Duration) -> Response<Body> {
    if !accept.stream() {
        // The client takes one object only: what goes before the answer is not for it.
        while let Some(frame) = frames.next().await {
            if let Frame::Last(status, bytes) = frame {
                return json(status, bytes);
            }
        }
        return accepted();
    }
    match tokio::time::timeout(keep_alive, frames.next()).await {
        Ok(None) => accepted(),
        // A status that is not 200 goes before any stream, in whatever form.
        Ok(Some(Frame::Last(status, bytes))) if accept.object() || status != StatusCode::OK => {
            json(status, bytes)
        }
        Ok(Some(frame)) => events(Box::pin(stream::iter([frame]).chain(frames)), keep_alive),
        Err(_) => events(frames, keep_alive),
    }
}

/// Answers with one message that is there already, in the form that the client takes.
pub(crate) fn one(bytes: Bytes, accept: Accept, keep_alive: Duration) -> Response<Body> {
    match accept.object() {
        true => json(StatusCode::OK, bytes),
        false => events(Box::pin(stream::iter([Frame::Last(StatusCode::OK, bytes)])), keep_alive),
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

/// An event stream of frames.
pub(crate) fn events(frames: Frames, keep_alive: Duration) -> Response<Body> {
    let state = Some(frames);
    let body = stream::unfold(state, move |state| async move {
        let mut frames = state?;
        match tokio::time::timeout(keep_alive, frames.next()).await {
            Ok(None) => None,
            Ok(Some(Frame::Part(bytes))) => Some((sse::event(bytes), Some(frames))),
            Ok(Some(Frame::Last(_, bytes))) => Some((sse::event(bytes), None)),
            Err(_) => Some((Bytes::from_static(sse::KEEP_ALIVE), Some(frames))),
        }
    });
    event_stream(body)
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
