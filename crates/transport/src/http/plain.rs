//! The short way of a request that no page sent: straight from its connection to the endpoint.
//!
//! A router finds a path among many, boxes bodies and futures, and asks each layer. Nearly all requests are calls of
//! programs to the endpoint's own path and need nothing of that. The checks are the same as on the way through the router.

use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderValue, Method as Verb, Request, Response, header};

use super::endpoint::Endpoint;
use super::handle;
use super::response::refused;
use crate::limits::Owner;

/// Whether a request needs no router: it is to the endpoint's path, and no page sent it.
pub(crate) fn is_plain<B>(endpoint: &Endpoint, request: &Request<B>) -> bool {
    let path = request.uri().path();
    endpoint.paths.iter().any(|of_endpoint| of_endpoint == path)
        && request.method() == Verb::POST
        && !request.headers().contains_key(header::ORIGIN)
}

/// Answers a plain request.
pub(crate) async fn answer<B>(endpoint: &Arc<Endpoint>, request: Request<B>, owner: Owner) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    let (head, mut body) = request.into_parts();
    let answered = match endpoint.guard.check(&head.uri, &head.headers) {
        Ok(()) => handle(endpoint, head, &mut body, owner).await,
        Err(refusal) => Err(refusal),
    };
    let mut response = answered.unwrap_or_else(refused);
    // A page would get another answer.
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("origin"));
    super::unread::close(&mut response, body.is_end_stream());
    response
}
