//! Sessions over Streamable HTTP: they are opened, read and ended.
//!
//! <https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http>

use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use proto::Principal;
use proto::downstream::Session;
use proto::downstream::http::{self as rules, HttpSession, Random, Refusal};
use proto::wire::Id;
use spec::header as name;

use super::drive::Driver;
use super::endpoint::Endpoint;
use super::response::{full, json};
use super::session::OpenSession;
use super::sessions::random;
use crate::limits::Owner;

/// Puts a new session into the table; `reply` gets its id.
///
/// # Errors
/// Refuses it where the system gives no randomness.
pub(crate) fn open(
    endpoint: &Endpoint,
    session: Session,
    owner: Owner,
    request: &Id,
    mut reply: Response<Body>,
) -> Result<Response<Body>, Refusal> {
    let (options, sessions) = (&endpoint.options, &endpoint.sessions);
    let random = random().zip(random()).map(|(id, events)| Random { id, events });
    let (id, session) = HttpSession::open(session, request, random, options.replay)?;
    let session = OpenSession::new(session, Arc::clone(sessions.kept()), Arc::clone(&endpoint.served));
    sessions.insert(&id, owner, session, endpoint.limits.sessions, options.session_idle);
    if let Ok(id) = HeaderValue::from_str(&id) {
        reply.headers_mut().insert(HeaderName::from_static(name::SESSION_ID), id);
    }
    Ok(reply)
}

/// Ends a session.
///
/// # Errors
/// Refuses a session that is not open, and another revision than its own.
pub(crate) fn delete(
    endpoint: &Endpoint,
    headers: &HeaderMap,
    id: &str,
    principal: &Principal,
) -> Result<Response<Body>, Refusal> {
    let session = endpoint.sessions.find(id, principal).ok_or_else(rules::no_session)?;
    rules::delete(headers, session.rules())?;
    endpoint.sessions.end(id);
    Ok(json(StatusCode::OK, Bytes::from_static(b"{}")))
}

/// Opens a stream of a session, or goes on with one that broke off.
///
/// # Errors
/// Refuses a session that is not open, another revision than its own, and a stream that cannot be read.
pub(crate) fn get(
    endpoint: &Endpoint,
    headers: &HeaderMap,
    id: &str,
    principal: &Principal,
    owner: Owner,
) -> Result<Response<Body>, Refusal> {
    let session = endpoint.sessions.find(id, principal).ok_or_else(rules::no_session)?;
    rules::get(headers, session.rules())?;
    let room = endpoint.limits.listens.enter(owner).map_err(|limit| full(&limit))?;
    let driver = Driver::new(session, &endpoint.sessions, endpoint.options.write_timeout);
    driver.stream(headers, &endpoint.options, &endpoint.shutdown, room)
}
