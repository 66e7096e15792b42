//! Says that the connection is closed with an answer that was given before all of the request was read.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::middleware::Next;
use http::{HeaderValue, Request, Response, header};
use hyper::body::{Body as _, Frame, SizeHint};

/// A body that notes its end.
struct Noting {
    body: Body,
    ended: Arc<AtomicBool>,
}

impl hyper::body::Body for Noting {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if matches!(polled, Poll::Ready(None)) || self.body.is_end_stream() {
            self.ended.store(true, Ordering::Relaxed);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Closes the connection after a response where its request was not read to the end: what is left of it cannot be told
/// from the next request, unless it is read for nothing.
pub(crate) fn close(response: &mut Response<Body>, was_read: bool) {
    if !was_read {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
}

/// Does so for the responses of a router.
pub(crate) async fn close_unread(request: Request<Body>, next: Next) -> Response<Body> {
    let ended = Arc::new(AtomicBool::new(request.body().is_end_stream()));
    let note = Arc::clone(&ended);
    let mut response = next.run(request.map(|body| Body::new(Noting { body, ended: note }))).await;
    close(&mut response, ended.load(Ordering::Relaxed));
    response
}
