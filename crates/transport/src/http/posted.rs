//! HTTP+SSE: one event stream carries all that the server says, and messages to it are posted beside it.
//!
//! <https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse>

use std::io;
use std::sync::{Arc, OnceLock, PoisonError};

use axum::body::Body;
use axum::extract::{OriginalUri, State};
use bytes::Bytes;
use futures_util::stream;
use http::{Method as Verb, Request, Response, StatusCode, Uri};
use proto::downstream::{self, Served};
use proto::wire::{self, Message, Unreadable};
use spec::{Revision, Revisions, Rules, header as name};
use tokio::sync::mpsc::{self, error::SendTimeoutError};
use tokio_util::sync::CancellationToken;

use super::legacy::session_id;
use super::respond::event_stream;
use super::{App, Refusal, accepted, door, principal, read};
use crate::crowd::{Full, Table, Who};
use crate::pipe::{Incoming, Source, drive};
use crate::queue::queue;
use crate::{STALL, sse};

/// How many posted messages wait for the machine, which waits for who reads the stream. Those who post more wait too.
const POSTED: usize = 32;

/// What the last segment of the stream's path is replaced by in that of the messages.
const MESSAGE: &str = "message";

/// Where messages are posted that belong to a stream at this path.
pub(crate) fn message_path(stream: &str) -> String {
    let folder = stream.trim_end_matches('/').rsplit_once('/').map_or("", |(folder, _)| folder);
    format!("{folder}/{MESSAGE}")
}

/// The way into a session.
#[derive(Clone)]
pub(crate) struct Posts {
    messages: mpsc::Sender<Result<Message, Unreadable>>,
    /// How its revision behaves, once one was agreed on.
    rules: Arc<OnceLock<&'static Rules>>,
    /// Ends the stream.
    let_go: CancellationToken,
    /// A message was posted.
    used: bool,
}

/// The other end of it.
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

/// The open streams, by the id of the session that each is.
pub(crate) type Sessions = Table<Arc<str>, Posts>;

/// Has one session less, where there may be no more: of those on which nothing was ever said the oldest.
fn make_room(sessions: &mut Sessions, app: &App, who: Who) -> Result<(), Full> {
    let Err(full) = app.crowd.sessions.room(who, sessions.len(), sessions.len_of(who), 1) else {
        return Ok(());
    };
    let unused = sessions.oldest(full.own().then_some(who)).find(|(_, posts)| !posts.used);
    let unused = unused.map(|(id, _)| Arc::clone(id)).ok_or(full)?;
    if let Some(posts) = sessions.remove(&unused) {
        posts.let_go.cancel();
    }
    Ok(())
}

/// Takes a session out of the table when its stream ends.
struct Open {
    app: Arc<App>,
    id: Arc<str>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.app.posted.lock().unwrap_or_else(PoisonError::into_inner).remove(&*self.id);
    }
}

/// Opens a stream, and with it a session.
pub(crate) async fn stream(
    State(app): State<Arc<App>>,
    OriginalUri(uri): OriginalUri,
    request: Request<Body>,
) -> Response<Body> {
    open(&app, uri.path(), &request).unwrap_or_else(Refusal::response)
}

fn open(app: &Arc<App>, path: &str, request: &Request<Body>) -> Result<Response<Body>, Refusal> {
    if request.method() != Verb::GET {
        // A client that looks for Streamable HTTP here goes on with GET.
        return Err(Refusal::allowing("GET", "this endpoint opens an event stream by GET"));
    }
    if !door::accept(request.headers())?.stream {
        return Err(Refusal::plain(
            StatusCode::NOT_ACCEPTABLE,
            "a GET is answered by text/event-stream only",
        ));
    }
    let unavailable = |why: &str| Refusal::plain(StatusCode::SERVICE_UNAVAILABLE, why);
    let id: Arc<str> = session_id().ok_or_else(|| unavailable("no session id could be made"))?.into();
    let (messages, incoming) = mpsc::channel(POSTED);
    let (rules, let_go) = (Arc::new(OnceLock::new()), CancellationToken::new());
    let source = Posted { messages: incoming, rules: Arc::clone(&rules) };
    let posts = Posts { messages, rules, let_go: let_go.clone(), used: false };
    let who = app.crowd.who(request.extensions());
    {
        let mut sessions = app.posted.lock().unwrap_or_else(PoisonError::into_inner);
        make_room(&mut sessions, app, who).map_err(|full| Refusal::full(&full))?;
        sessions.insert(Arc::clone(&id), who, posts);
    }
    let endpoint = sse::event_of("endpoint", format!("{}?{NAMED}={id}", message_path(path)).into());
    let open = Open { app: Arc::clone(app), id };
    let (out, messages) = queue();
    // Only handshake revisions have this transport.
    let served = Arc::new(Served {
        service: Arc::clone(&app.served.service),
        revisions: app.served.revisions.and(Revisions::LEGACY),
        limits: app.served.limits,
    });
    // The machine runs in a task of its own, since it has to go on while the client reads nothing. It ends with the
    // stream: there is no other way to the client.
    let driving = drive(source, out, served, principal(), app.shutdown.clone());
    tokio::spawn(async move {
        tokio::select! {
            _ = driving => {}
            () = let_go.cancelled() => {}
        }
    });
    Ok(event_stream(stream::unfold(
        (Some(endpoint), messages, open, app.options.keep_alive),
        |(endpoint, mut messages, open, keep_alive)| async move {
            if let Some(endpoint) = endpoint {
                return Some((endpoint, (None, messages, open, keep_alive)));
            }
            let part = match tokio::time::timeout(keep_alive, messages.recv()).await {
                Ok(message) => sse::event_of("message", message?),
                Err(_) => Bytes::from_static(sse::KEEP_ALIVE),
            };
            Some((part, (None, messages, open, keep_alive)))
        },
    )))
}

/// The parameter that names a session in the URL of messages.
const NAMED: &str = "session_id";

/// The session that a URL names, where it names one.
fn named(uri: &Uri) -> Option<String> {
    let query = uri.query().unwrap_or_default().as_bytes();
    let mut ids = url::form_urlencoded::parse(query).filter(|(name, _)| name == NAMED);
    let id = ids.next()?.1.into_owned();
    ids.next().is_none().then_some(id)
}

/// Takes a message in, whose answer goes out on the session's stream.
pub(crate) async fn message(State(app): State<Arc<App>>, request: Request<Body>) -> Response<Body> {
    post(&app, request).await.unwrap_or_else(Refusal::response)
}

async fn post(app: &Arc<App>, request: Request<Body>) -> Result<Response<Body>, Refusal> {
    let (parts, body) = request.into_parts();
    if parts.method != Verb::POST {
        return Err(Refusal::allowing("POST", "messages are posted here"));
    }
    door::content_type(&parts.headers)?;
    let posts = named(&parts.uri).and_then(|id| {
        let mut sessions = app.posted.lock().unwrap_or_else(PoisonError::into_inner);
        let posts = sessions.touch(&*id)?;
        posts.used = true;
        Some(posts.clone())
    });
    let unknown = || {
        let why =
            "there is no such session; open one with a GET of the event stream, whose first event names it";
        Refusal::plain(StatusCode::NOT_FOUND, why)
    };
    let posts = posts.ok_or_else(unknown)?;
    let who = app.crowd.who(&parts.extensions);
    let message = wire::read(read(body, &parts.headers, who, app).await?, &app.served.limits);
    if let Err(error @ Unreadable::Parse(_)) = &message {
        let version = parts.headers.get(name::PROTOCOL_VERSION).and_then(|v| v.to_str().ok());
        let named = || version.and_then(Revision::parse).unwrap_or(Revision::UNNAMED).rules();
        let rules = posts.rules.get().copied().unwrap_or_else(named);
        let body = downstream::unreadable(error, rules).unwrap_or_default();
        let refusal = Refusal::plain(StatusCode::BAD_REQUEST, "");
        return Err(Refusal { body, ..refusal });
    }
    // Who sends faster than the machine works waits; it fails where the stream has just ended.
    match posts.messages.send_timeout(message, STALL).await {
        Ok(()) => Ok(accepted()),
        Err(SendTimeoutError::Closed(_)) => Err(unknown()),
        Err(SendTimeoutError::Timeout(_)) => Err(Refusal::unavailable(
            StatusCode::SERVICE_UNAVAILABLE,
            "messages of this session wait, since nobody reads the answers on its event stream",
        )),
    }
}
