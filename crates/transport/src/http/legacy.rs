//! Sessions over Streamable HTTP: they are opened, read and ended.
//!
//! <https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http>

use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use proto::downstream::Session;
use proto::downstream::http::{self as rules, Refusal};
use proto::wire::Id;
use proto::{Principal, Rejection};
use spec::header as name;

use super::drive::Driver;
use super::endpoint::Endpoint;
use super::response::{full, json};
use super::session::OpenSession;
use super::sessions::session_id;
use crate::crowd::Who;

/// Puts a new session into the table; `reply` gets its id.
///
/// # Errors
/// Refuses it where the system gives no randomness.
pub(crate) fn open(
    endpoint: &Endpoint,
    session: Session,
    who: Who,
    request: &Id,
    mut reply: Response<Body>,
) -> Result<Response<Body>, Refusal> {
    let unmade = || {
        let why = Rejection::Internal("no session id could be made".into());
        Refusal::of(request, &why).status(StatusCode::SERVICE_UNAVAILABLE)
    };
    let id = session_id().ok_or_else(unmade)?;
    let value = HeaderValue::from_str(&id).map_err(|_| unmade())?;
    let mut name_of_events = [0; 4];
    getrandom::fill(&mut name_of_events).map_err(|_| unmade())?;
    let (options, sessions) = (&endpoint.options, &endpoint.sessions);
    let session = OpenSession::new(
        session,
        u32::from_ne_bytes(name_of_events),
        options.replay,
        Arc::clone(sessions.kept()),
        Arc::clone(&endpoint.served),
    );
    sessions.insert(&id, who, session, endpoint.crowd.sessions, options.session_idle);
    reply.headers_mut().insert(HeaderName::from_static(name::SESSION_ID), value);
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
    who: Who,
) -> Result<Response<Body>, Refusal> {
    let session = endpoint.sessions.find(id, principal).ok_or_else(rules::no_session)?;
    rules::get(headers, session.rules())?;
    let room = endpoint.crowd.listens.enter(who).map_err(|limit| full(&limit))?;
    let driver = Driver::new(session, &endpoint.sessions, endpoint.options.stall);
    driver.stream(headers, &endpoint.options, &endpoint.shutdown, room)
}
