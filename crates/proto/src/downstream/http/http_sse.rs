//! What is done with one HTTP request to the two endpoints of HTTP+SSE.
//!
//! <https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse>

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method as Verb, StatusCode};
use spec::{Revision, Rules, header as name};

use crate::downstream::http::accept::content_type;
use crate::downstream::http::random;
use crate::downstream::http::refusal::Refusal;
use crate::downstream::http::request::event_stream;
use crate::rpc::wire::{self, Limits, Message, Unreadable};

/// The parameter that names a session in the URL to which messages are posted.
pub const SESSION_ID: &str = "session_id";

/// What the last segment of the stream's path is replaced by in the path to which messages are posted.
const MESSAGE: &str = "message";

/// The path to which messages are posted of a stream at this path.
pub fn message_path(stream: &str) -> String {
    let folder = stream.trim_end_matches('/').rsplit_once('/').map_or("", |(folder, _)| folder);
    format!("{folder}/{MESSAGE}")
}

/// The URL to which messages of a session are posted, as the first event of its stream at this path names it.
pub fn message_url(stream: &str, session: &str) -> String {
    format!("{}?{SESSION_ID}={session}", message_path(stream))
}

/// Reads the session id that a query names: that of a URL to which messages are posted. A query that names several names
/// none.
pub fn session_id(query: Option<&str>) -> Option<String> {
    let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let mut ids = pairs.filter(|(name, _)| name == SESSION_ID);
    let id = ids.next()?.1.into_owned();
    ids.next().is_none().then_some(id)
}

/// Makes the id of a session of random bytes.
///
/// # Errors
/// Refuses the request where the system gives no random bytes.
pub fn new_session_id(random: Option<[u8; 16]>) -> Result<String, Refusal> {
    random.map(random::session_id).ok_or_else(|| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, random::NO_ID))
}

/// Checks a request that opens a stream.
///
/// # Errors
/// Refuses other methods than GET, and a client that takes no event stream.
pub fn open(verb: &Verb, headers: &HeaderMap) -> Result<(), Refusal> {
    if verb != Verb::GET {
        // A client that looks for Streamable HTTP here goes on with GET.
        return Err(Refusal::method("GET", "this endpoint opens an event stream by GET"));
    }
    event_stream(headers)
}

/// Checks the head of a request that posts a message.
///
/// # Errors
/// Refuses other methods than POST, and bodies that are not JSON.
pub fn head(verb: &Verb, headers: &HeaderMap) -> Result<(), Refusal> {
    if verb != Verb::POST {
        return Err(Refusal::method("POST", "messages are posted here"));
    }
    content_type(headers)
}

/// Reads a body that was posted to a session. `settled` is how the session's revision behaves, once one was agreed on.
/// What is JSON but no message is answered on the stream.
///
/// # Errors
/// Refuses what is no JSON.
pub fn post(
    head: &Arc<Parts>,
    body: Bytes,
    settled: Option<&'static Rules>,
    limits: &Limits,
) -> Result<Result<Message, Unreadable>, Refusal> {
    let read = wire::read_body(body, head, limits);
    if let Err(error @ Unreadable::Parse(_)) = &read {
        let version = head.headers.get(name::PROTOCOL_VERSION).and_then(|version| version.to_str().ok());
        let named = || version.and_then(Revision::parse).unwrap_or(Revision::UNNAMED).rules();
        return Err(Refusal::unreadable(error, settled.unwrap_or_else(named)));
    }
    Ok(read)
}

/// Refuses a message to a session that is not open.
pub fn no_session() -> Refusal {
    let why = "there is no such session; open one with a GET of the event stream, whose first event names it";
    Refusal::new(StatusCode::NOT_FOUND, why)
}
