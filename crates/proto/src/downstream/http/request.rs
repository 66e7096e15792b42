//! What is done with one HTTP request to the endpoint of Streamable HTTP.
//!
//! <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http>

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method as Verb, StatusCode};
use spec::{Era, Revision, Revisions, Rules, header as name};

use crate::downstream::call::{Call, Opening};
use crate::downstream::era::{EraChoice, choose};
use crate::downstream::http::accept::{Accept, content_type};
use crate::downstream::http::refusal::Refusal;
use crate::downstream::output::Served;
use crate::downstream::session::Session;
use crate::model::listen::Filter;
use crate::model::rejection::Rejection;
use crate::model::request::{Peer, Principal, Request};
use crate::rpc::wire::{self, Batch, Id, Message, Unreadable};

/// Said to a request that names an open session and another revision than its own.
const OTHER_REVISION: &str = "the version header does not name this session's revision";
/// Said to a request that names a session which is not open.
const NO_SESSION: &str = "there is no such session; open a new one with initialize";

/// What the head of a request asks for.
#[derive(Debug)]
pub enum Head<'a> {
    /// The client posts a message: read the body, and give it to [`post`].
    Post(Accept),
    /// The client wants a stream of the session with this id: find it, and ask [`get`].
    Get(&'a str),
    /// The client ends the session with this id: find it, and ask [`delete`].
    Delete(&'a str),
}

/// What a body holds that is for an open session.
#[derive(Debug)]
pub enum Payload {
    /// One message.
    Message(Message),
    /// An array of messages.
    Batch(Batch),
}

/// What is done with a message that was posted.
#[derive(Debug)]
pub enum Posted {
    /// Give it to the session that the request names.
    Session(Payload),
    /// Open a session, and send the reply with the session's id.
    Open {
        /// The id of the `initialize` request.
        id: Id,
        /// The session.
        session: Box<Session>,
        /// The response to the `initialize` request.
        reply: Bytes,
    },
    /// Call the service for a modern request.
    Call(Box<Call>, Box<Request>),
    /// Start a listen for a modern request.
    Listen(Box<Call>, Filter, Arc<Peer>),
    /// Send this response.
    Reply(Bytes),
    /// Nothing is answered.
    Accepted,
}

/// Says what the head of a request asks for, where these revisions are served.
///
/// # Errors
/// Refuses HTTP methods that the endpoint does not take, and bodies and forms of response that it does not have.
pub fn head<'a>(verb: &Verb, headers: &'a HeaderMap, served: Revisions) -> Result<Head<'a>, Refusal> {
    match *verb {
        Verb::POST => {
            let accept = Accept::read(headers)?;
            content_type(headers)?;
            Ok(Head::Post(accept))
        }
        Verb::GET => named(headers, served).map(Head::Get),
        Verb::DELETE => named(headers, served).map(Head::Delete),
        _ => Err(Refusal::method("POST", "this endpoint takes POST, and GET and DELETE of a session")),
    }
}

/// The session id of a request that needs one.
fn named(headers: &HeaderMap, served: Revisions) -> Result<&str, Refusal> {
    let sent = headers.get(name::SESSION_ID).filter(|_| served.serves(Era::Legacy));
    let Some(sent) = sent else {
        return Err(Refusal::method("POST", "GET and DELETE are of a session; this request names none"));
    };
    sent.to_str().map_err(|_| no_session())
}

/// The session id that a request names.
pub fn session_id(headers: &HeaderMap) -> Option<&str> {
    headers.get(name::SESSION_ID)?.to_str().ok()
}

/// Refuses a request that names a session which is not open. The client opens a new one.
pub fn no_session() -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, NO_SESSION)
}

fn other_revision() -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, OTHER_REVISION)
}

fn version(headers: &HeaderMap) -> Option<&[u8]> {
    headers.get(name::PROTOCOL_VERSION).map(HeaderValue::as_bytes)
}

/// Whether the version header, where there is one, names the session's revision.
fn is_of_revision(headers: &HeaderMap, session: &Rules) -> bool {
    version(headers).is_none_or(|version| version == session.revision.as_str().as_bytes())
}

/// Checks a request that wants a stream of an open session.
///
/// # Errors
/// Refuses a request of another revision, and a client that takes no event stream.
pub fn get(headers: &HeaderMap, session: &Rules) -> Result<(), Refusal> {
    delete(headers, session)?;
    event_stream(headers)
}

/// Refuses a GET of a client that takes no event stream.
pub(super) fn event_stream(headers: &HeaderMap) -> Result<(), Refusal> {
    match Accept::read(headers)?.stream() {
        true => Ok(()),
        false => Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, "a GET is answered by text/event-stream only")),
    }
}

/// Checks a request that ends an open session.
///
/// # Errors
/// Refuses a request of another revision.
pub fn delete(headers: &HeaderMap, session: &Rules) -> Result<(), Refusal> {
    if is_of_revision(headers, session) { Ok(()) } else { Err(other_revision()) }
}

/// Says what is done with the body of a POST. `session` is how the open session behaves that the request names, where
/// it names one.
///
/// # Errors
/// Refuses what holds no message, a message for a session that is not open or of another revision, and a modern
/// request that is not admitted.
pub fn post(
    head: &Arc<Parts>,
    body: Bytes,
    accept: Accept,
    session: Option<&'static Rules>,
    served: &Served,
    principal: &Principal,
) -> Result<Posted, Refusal> {
    let headers = &head.headers;
    let read = wire::read_body(body, head, &served.limits);
    // Inside an open session everything is the session's, also a request that carries the mark of a modern one.
    let of_session = session.filter(|rules| is_of_revision(headers, rules));
    let message = match (read, of_session) {
        (Ok(message), Some(_)) => return Ok(Posted::Session(Payload::Message(message))),
        (Err(Unreadable::Batch(batch)), Some(rules)) if rules.batches => {
            return Ok(Posted::Session(Payload::Batch(batch)));
        }
        (Ok(message), None) => message,
        (Err(error), _) => return Err(unreadable(session, headers, &error)),
    };
    let (names_session, is_open) = (headers.contains_key(name::SESSION_ID), session.is_some());
    let of_modern = version(headers) == Some(Revision::LATEST_MODERN.as_str().as_bytes());
    match message {
        Message::Request(call) => request(headers, call, accept, is_open, served, principal),
        Message::Notification { .. } if is_open && !of_modern => Err(other_revision()),
        Message::Notification { .. } if names_session && !is_open => Err(no_session()),
        Message::Notification { .. } => Ok(Posted::Accepted),
        // The session is open: a 404 would have its client open another.
        Message::Response { .. } if is_open => Err(other_revision()),
        Message::Response { .. } if names_session => Err(no_session()),
        Message::Response { .. } => {
            Err(Refusal::new(StatusCode::BAD_REQUEST, "a response belongs to a session; this names none"))
        }
    }
}

/// Says what is done with a request outside of an open session, or of another revision than the session's.
fn request(
    headers: &HeaderMap,
    call: wire::Call,
    accept: Accept,
    is_open: bool,
    served: &Served,
    principal: &Principal,
) -> Result<Posted, Refusal> {
    let refuse =
        |status, why: &str| Err(Refusal::of(&call.id, &Rejection::Invalid(why.into())).status(status));
    let legacy = served.revisions.serves(Era::Legacy);
    match choose(&call, served.revisions) {
        EraChoice::Modern => modern(headers, &call, accept, served, principal),
        EraChoice::Session => match Session::open(&call, served, principal.clone()) {
            Ok((session, reply)) => Ok(Posted::Open { id: call.id, session: Box::new(session), reply }),
            Err(rejection) => Err(Refusal::of(&call.id, &rejection).status(StatusCode::BAD_REQUEST)),
        },
        _ if is_open => refuse(StatusCode::BAD_REQUEST, OTHER_REVISION),
        _ if legacy && headers.contains_key(name::SESSION_ID) => refuse(StatusCode::NOT_FOUND, NO_SESSION),
        EraChoice::Ping => Ok(Posted::Reply(wire::result(&call.id, &Default::default()))),
        EraChoice::Neither => Err(Refusal::of(&call.id, &Rejection::NeitherEra(served.revisions))),
    }
}

fn modern(
    headers: &HeaderMap,
    call: &wire::Call,
    accept: Accept,
    served: &Served,
    principal: &Principal,
) -> Result<Posted, Refusal> {
    let refuse = |rejection: Rejection| Refusal::of(&call.id, &rejection);
    let (opened, opening) = Call::open(call, Some(headers), served, principal).map_err(refuse)?;
    match opening {
        Opening::Reply(bytes) => Ok(Posted::Reply(bytes)),
        Opening::Call(request) => Ok(Posted::Call(Box::new(opened), request)),
        Opening::Listen(_, _) if !accept.stream() => {
            let why = "a listen is answered by text/event-stream, which the Accept header must admit";
            Err(refuse(Rejection::Invalid(why.into())).status(StatusCode::NOT_ACCEPTABLE))
        }
        Opening::Listen(filter, peer) => Ok(Posted::Listen(Box::new(opened), filter, peer)),
    }
}

/// Refuses what holds no message, in the form of the session's revision, of the one that the header names, or of the
/// one that stands for a request which names none.
fn unreadable(session: Option<&'static Rules>, headers: &HeaderMap, error: &Unreadable) -> Refusal {
    let named = || {
        let version = headers.get(name::PROTOCOL_VERSION)?.to_str().ok()?;
        Some(Revision::parse(version).unwrap_or(Revision::LATEST_MODERN).rules())
    };
    let rules = session.or_else(named).unwrap_or_else(|| Revision::UNNAMED.rules());
    Refusal::unreadable(error, rules)
}
