//! Streamable HTTP, served: one endpoint for every revision that has it.
//!
//! <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http>

mod authenticate;
mod bodies;
mod client_limits;
mod cors;
mod drive;
mod endpoint;
mod http_sse;
mod legacy;
mod listener;
mod modern;
mod options;
mod plain;
mod reading;
mod request_guard;
mod response;
mod session;
mod sessions;
mod unread;
mod write_timeout;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::middleware::{from_fn, from_fn_with_state};
use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use proto::downstream::http::{self as rules, Head, Posted, Refusal};
use spec::{Era, Revisions};

pub use authenticate::{Anonymous, Authenticate, Challenge};
pub use endpoint::Endpoint;
pub use listener::serve;
#[cfg(unix)]
pub use listener::serve_unix;
pub use options::{Options, Paths};
pub use proto::downstream::http::Replay;
pub use request_guard::{host, origin};

use bodies::read;
use drive::Driver;
use endpoint::either;
use response::{accepted, one, refused};

use crate::limits::Owner;

/// Makes the routes of an endpoint, to be served by [`serve`] or as a part of an application.
pub fn router(endpoint: &Arc<Endpoint>) -> Router {
    let legacy = endpoint.served.revisions.serves(Era::Legacy);
    let mut router = Router::new();
    for path in &endpoint.paths {
        router = router.route(path, axum::routing::any(answer));
    }
    let mut router = router.with_state(Arc::clone(endpoint));
    if let Some(sse) = endpoint.sse.as_deref().filter(|_| legacy) {
        let mut beside = Router::new();
        for path in either(sse) {
            beside = beside.route(&path, axum::routing::any(http_sse::stream));
        }
        for path in either(&rules::http_sse::message_path(sse)) {
            beside = beside.route(&path, axum::routing::any(http_sse::message));
        }
        router = router.merge(beside.with_state(http_sse::HttpSse::new(Arc::clone(endpoint))));
    }
    // The last layer is the outermost: whom the guard refuses learns nothing of what is behind it.
    router
        .route_layer(from_fn_with_state(cors::layer(), cors::answer))
        .route_layer(from_fn_with_state(Arc::clone(&endpoint.guard), request_guard::guard_requests))
        .route_layer(from_fn(unread::close_unread))
}

/// Serves another router behind the same checks of `Host` and `Origin`.
pub fn guarded(router: Router, options: Options) -> Router {
    let guard = request_guard::RequestGuard::new(options);
    router
        .layer(from_fn_with_state(guard, request_guard::guard_requests))
        .layer(from_fn(unread::close_unread))
}

/// Answers requests to all other paths, behind the same checks: says at which path the endpoint is.
pub fn elsewhere(paths: &Paths, revisions: Revisions, options: Options) -> Router {
    let sse = paths.sse.as_ref().filter(|_| revisions.serves(Era::Legacy));
    let sse = sse.map(|sse| format!(", and HTTP+SSE at {sse}")).unwrap_or_default();
    let there = format!("this server speaks Streamable HTTP at {}{sse}", paths.endpoint);
    let answer = move |request: Request<Body>| {
        let path = request_guard::shown(request.uri().path().as_bytes());
        let refusal = Refusal::new(StatusCode::NOT_FOUND, &format!("there is nothing at {path}; {there}"));
        std::future::ready(refused(refusal))
    };
    let router = Router::new().fallback(answer).layer(from_fn_with_state(cors::layer(), cors::answer));
    guarded(router, options)
}

async fn answer(State(endpoint): State<Arc<Endpoint>>, request: Request<Body>) -> Response<Body> {
    let (mut head, body) = request.into_parts();
    let owner = endpoint.limits.owner(&mut head.extensions);
    handle(&endpoint, head, body, owner).await.unwrap_or_else(refused)
}

/// Does with a request what the rules of the protocol say.
async fn handle(
    endpoint: &Arc<Endpoint>,
    mut head: Parts,
    body: impl http_body::Body<Data = Bytes> + Unpin,
    owner: Owner,
) -> Result<Response<Body>, Refusal> {
    let principal = endpoint.options.authenticate.authenticate(&mut head).await?;
    let head = Arc::new(head);
    let (headers, served) = (&head.headers, &endpoint.served);
    let accept = match rules::head(&head.method, headers, served.revisions)? {
        Head::Post(accept) => accept,
        Head::Get(id) => return legacy::get(endpoint, headers, id, &principal, owner),
        Head::Delete(id) => return legacy::delete(endpoint, headers, id, &principal),
    };
    let body = read(body, headers, owner, endpoint).await?;
    let session = rules::session_id(headers).and_then(|id| endpoint.sessions.find(id, &principal));
    let of_session = session.as_ref().map(|session| session.rules());
    match rules::post(&head, body, accept, of_session, served, &principal)? {
        Posted::Session(payload) => match session {
            Some(session) => {
                let driver = Driver::new(session, &endpoint.sessions, endpoint.options.write_timeout);
                Ok(driver.post(payload, accept, &endpoint.options).await)
            }
            None => Err(rules::no_session()),
        },
        Posted::Open { id, session, reply } => {
            legacy::open(endpoint, *session, owner, &id, one(reply, accept))
        }
        Posted::Call(call, request) => Ok(modern::call(endpoint, *call, *request, accept).await),
        Posted::Listen(call, filter, peer) => modern::listen(endpoint, *call, filter, peer, owner).await,
        Posted::Reply(bytes) => Ok(one(bytes, accept)),
        Posted::Accepted => Ok(accepted()),
    }
}
