//! HTTP+SSE: the server sends everything on one event stream, and the client posts its messages to another path.
//!
//! <https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse>

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use axum::body::Body;
use axum::extract::{OriginalUri, State};
use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response, StatusCode};
use proto::Principal;
use proto::downstream::Served;
use proto::downstream::http::{Refusal, http_sse as rules};
use proto::wire::{Message, Unreadable};
use spec::{Revisions, Rules};
use tokio::sync::mpsc::{self, error::SendTimeoutError};
use tokio_util::sync::CancellationToken;

use super::bodies::read;
use super::endpoint::Endpoint;
use super::response::{accepted, event_stream, full, refused};
use super::sessions::random;
use crate::limits::{Full, Owner, Share, Table};
use crate::pipe::{Incoming, Source, drive};
use crate::queue::queue;
use crate::{WRITE_TIMEOUT, sse};

/// How many posted messages wait in a session whose stream is read slowly. Further posts wait for their response.
const POSTED: usize = 32;

/// The sending side of a session: gives it the messages that are posted.
#[derive(Clone)]
pub(crate) struct SseSession {
    messages: mpsc::Sender<Result<Message, Unreadable>>,
    /// On whose behalf the session was opened.
    principal: Principal,
    /// How its revision behaves, once one was agreed on.
    rules: Arc<OnceLock<&'static Rules>>,
    /// Ends the stream.
    evict: CancellationToken,
    /// The client has posted a message.
    used: bool,
}

/// The receiving side of a session.
struct Posted {
    messages: mpsc::Receiver<Result<Message, Unreadable>>,
    rules: Arc<OnceLock<&'static Rules>>,
}

impl Source for Posted {
    async fn next(&mut self) -> io::Result<Option<Incoming>> {
        Ok(self.messages.recv().await.map(Incoming::Read))
    }

    fn settled(&mut self, rules: &'static Rules) {
        let _ = self.rules.set(rules);
    }
}

/// The open sessions, by id.
type Sessions = Table<Arc<str>, SseSession>;

/// HTTP+SSE beside an endpoint.
pub(crate) struct HttpSse {
    endpoint: Arc<Endpoint>,
    sessions: Mutex<Sessions>,
}

impl HttpSse {
    pub(crate) fn new(endpoint: Arc<Endpoint>) -> Arc<HttpSse> {
        Arc::new(HttpSse { endpoint, sessions: Mutex::default() })
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends one session where no more may be open: the oldest of those on which the client never said anything.
fn make_room(sessions: &mut Sessions, share: Share, owner: Owner) -> Result<(), Full> {
    let Err(full) = share.room(owner, sessions.len(), sessions.len_of(owner), 1) else {
        return Ok(());
    };
    let unused = sessions.oldest(full.own().then_some(owner)).find(|(_, session)| !session.used);
    let unused = unused.map(|(id, _)| Arc::clone(id)).ok_or(full)?;
    if let Some(session) = sessions.remove(&unused) {
        session.evict.cancel();
    }
    Ok(())
}

/// Takes a session out of the table when its stream ends.
struct Open {
    http_sse: Arc<HttpSse>,
    id: Arc<str>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.http_sse.sessions().remove(&*self.id);
    }
}

/// Opens a stream, and with it a session.
pub(crate) async fn stream(
    State(http_sse): State<Arc<HttpSse>>,
    OriginalUri(uri): OriginalUri,
    request: Request<Body>,
) -> Response<Body> {
    open(&http_sse, uri.path(), request).await.unwrap_or_else(refused)
}

async fn open(
    http_sse: &Arc<HttpSse>,
    path: &str,
    request: Request<Body>,
) -> Result<Response<Body>, Refusal> {
    let endpoint = &http_sse.endpoint;
    let (mut head, _) = request.into_parts();
    let owner = endpoint.limits.owner(&mut head.extensions);
    let principal = endpoint.options.authenticate.authenticate(&mut head).await?;
    rules::open(&head.method, &head.headers)?;
    let id: Arc<str> = rules::new_session_id(random())?.into();
    let (messages, incoming) = mpsc::channel(POSTED);
    let (rules, evict) = (Arc::new(OnceLock::new()), CancellationToken::new());
    let source = Posted { messages: incoming, rules: Arc::clone(&rules) };
    let session =
        SseSession { messages, principal: principal.clone(), rules, evict: evict.clone(), used: false };
    {
        let mut sessions = http_sse.sessions();
        make_room(&mut sessions, endpoint.limits.sessions, owner).map_err(|limit| full(&limit))?;
        sessions.insert(Arc::clone(&id), owner, session);
    }
    let first = sse::event_of("endpoint", rules::message_url(path, &id).into());
    let open = Open { http_sse: Arc::clone(http_sse), id };
    let (out, messages) = queue();
    // Only handshake revisions have this transport.
    let legacy = Arc::new(Served {
        service: Arc::clone(&endpoint.served.service),
        revisions: endpoint.served.revisions.and(Revisions::LEGACY),
        limits: endpoint.served.limits,
    });
    // The machine runs in a task of its own, since it has to go on while the client reads nothing. It ends with the
    // stream: there is no other way to the client.
    let driving = drive(source, out, legacy, principal, endpoint.shutdown.clone());
    tokio::spawn(async move {
        tokio::select! {
            _ = driving => {}
            () = evict.cancelled() => {}
        }
    });
    Ok(event_stream(stream::unfold(
        (Some(first), messages, open, endpoint.options.keep_alive),
        |(first, mut messages, open, keep_alive)| async move {
            if let Some(first) = first {
                return Some((first, (None, messages, open, keep_alive)));
            }
            let part = match tokio::time::timeout(keep_alive, messages.recv()).await {
                Ok(message) => sse::event_of("message", message?),
                Err(_) => Bytes::from_static(sse::KEEP_ALIVE),
            };
            Some((part, (None, messages, open, keep_alive)))
        },
    )))
}

/// Takes a message in, whose answer goes out on the session's stream.
pub(crate) async fn message(State(http_sse): State<Arc<HttpSse>>, request: Request<Body>) -> Response<Body> {
    post(&http_sse, request).await.unwrap_or_else(refused)
}

async fn post(http_sse: &Arc<HttpSse>, request: Request<Body>) -> Result<Response<Body>, Refusal> {
    let endpoint = &http_sse.endpoint;
    let (mut head, body) = request.into_parts();
    let owner = endpoint.limits.owner(&mut head.extensions);
    let principal = endpoint.options.authenticate.authenticate(&mut head).await?;
    rules::head(&head.method, &head.headers)?;
    let head = Arc::new(head);
    let session = rules::session_id(head.uri.query()).and_then(|id| {
        let mut sessions = http_sse.sessions();
        sessions.get_mut(&*id).filter(|session| session.principal == principal)?;
        let session = sessions.touch(&*id)?;
        session.used = true;
        Some(session.clone())
    });
    let session = session.ok_or_else(rules::no_session)?;
    let body = read(body, &head.headers, owner, endpoint).await?;
    let message = rules::post(&head, body, session.rules.get().copied(), &endpoint.served.limits)?;
    // Who sends faster than the machine works waits; it fails where the stream has just ended.
    match session.messages.send_timeout(message, WRITE_TIMEOUT).await {
        Ok(()) => Ok(accepted()),
        Err(SendTimeoutError::Closed(_)) => Err(rules::no_session()),
        Err(SendTimeoutError::Timeout(_)) => Err(Refusal::for_now(
            StatusCode::SERVICE_UNAVAILABLE,
            "messages of this session wait, since nobody reads the answers on its event stream",
        )),
    }
}
