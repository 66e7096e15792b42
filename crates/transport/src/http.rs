//! Streamable HTTP, served: one endpoint for every revision that has it.
//!
//! <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http>

mod bodies;
mod cors;
mod crowd;
mod door;
mod legacy;
mod listener;
mod live;
mod modern;
mod patient;
mod posted;
mod respond;
mod streams;
mod unread;

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::middleware::{from_fn, from_fn_with_state};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method as Verb, Request, Response, StatusCode, header};
use proto::downstream::{self, Served};
use proto::wire::{self, ErrorId, Message, Unreadable};
use proto::{Principal, Rejection, admit};
use spec::{Era, Method, Revision, Revisions, header as name};
use tokio_util::sync::CancellationToken;

pub use crowd::Crowd;
pub use door::{host, origin};
pub use listener::{serve, serve_unix};
pub use streams::Replay;

use bodies::read;
use door::Accept;

use crate::crowd::{Full, Who, shared_by_default};
use crate::{ARRIVING, CONNECTIONS, SHARE, STALL};

/// How an endpoint behaves beside the protocol.
#[derive(Clone, Debug)]
pub struct Options {
    /// Hosts that the `Host` header may name, without port, beside `localhost` and the loopback addresses, and beside
    /// the address that [`Options::listening_on`] knows of; `None` admits all. This keeps pages of other sites out that
    /// have their name point here.
    pub hosts: Option<Vec<String>>,
    /// Whether any IP address will do as a `Host`: no page can have one point here. For an endpoint that listens on all
    /// addresses, of which it does not know all.
    pub addresses: bool,
    /// Origins whose pages may call beside the endpoint's own, each as [`origin`] reads it.
    pub origins: Vec<String>,
    /// How long a client may take to send a body.
    pub body_timeout: Duration,
    /// How often a quiet stream carries a comment.
    pub keep_alive: Duration,
    /// How many connections may be open; no more than three quarters of the files that the process may open. Where
    /// there is no room, the one goes that has waited for its client for the longest.
    pub connections: usize,
    /// Bytes of requests that may be in memory: what has arrived of unfinished bodies, and what calls under way keep.
    pub arriving: usize,
    /// Bytes of answers that may wait to be read by clients. Where more wait, the connection goes that has had some
    /// for the longest.
    pub leaving: usize,
    /// How many event streams may be open that have no end: listens, and streams of sessions.
    pub listens: usize,
    /// The part of each limit that one address may use up, in percent.
    pub share: u8,
    /// Addresses that stand for many clients, such as a proxy's: no share holds for them.
    pub shared: Vec<IpAddr>,
    /// How long a client may read nothing of what waits for it before its connection is closed.
    pub stall: Duration,
    /// How many sessions may be open. Where one more is opened, the longest unused goes.
    pub sessions: usize,
    /// How long a session may be unused.
    pub session_idle: Duration,
    /// How many streams of its own a session may have open.
    pub streams: usize,
    /// How much a session keeps for a client that comes back.
    pub replay: Replay,
    /// How many bytes all sessions together keep for clients that come back. The longest unused forgets first.
    pub kept: usize,
    /// After which time a client is told to come back whose connection breaks off.
    pub retry: Duration,
}

impl Default for Options {
    /// Loopback only, 30 s for a body, a comment every 15 s, 16 384 connections, 256 MiB of requests and of answers,
    /// 10 000 event streams, a quarter of each for an address other than this machine's, a minute for a reader, 10 000
    /// sessions, an hour of idleness, 32 streams, 64 MiB kept, a second until a client comes back.
    fn default() -> Options {
        Options {
            hosts: Some(Vec::new()),
            addresses: false,
            origins: Vec::new(),
            body_timeout: Duration::from_secs(30),
            keep_alive: Duration::from_secs(15),
            connections: CONNECTIONS,
            arriving: ARRIVING,
            leaving: ARRIVING,
            listens: 10_000,
            share: SHARE,
            shared: shared_by_default(),
            stall: STALL,
            sessions: 10_000,
            session_idle: Duration::from_secs(3600),
            streams: 32,
            replay: Replay::default(),
            kept: 64 << 20,
            retry: Duration::from_secs(1),
        }
    }
}

/// The endpoint's state.
pub(crate) struct App {
    served: Arc<Served>,
    options: Options,
    crowd: Crowd,
    kept: Arc<streams::Kept>,
    sessions: Mutex<legacy::Sessions>,
    /// Sessions of HTTP+SSE.
    posted: Mutex<posted::Sessions>,
    shutdown: CancellationToken,
}

/// Where an endpoint is served.
#[derive(Clone, Debug)]
pub struct Paths {
    /// Streamable HTTP.
    pub endpoint: String,
    /// HTTP+SSE, where it is served: the path of the stream. Messages are posted to `message` beside it.
    pub sse: Option<String>,
}

/// The MCP endpoint, to be served by [`serve`] or merged into an application. When `shutdown` is cancelled its
/// listens end in good order.
pub fn router(
    paths: &Paths,
    served: Arc<Served>,
    options: Options,
    crowd: Crowd,
    shutdown: CancellationToken,
) -> Router {
    let legacy = served.revisions.serves(Era::Legacy);
    let kept = streams::Kept::new(options.kept);
    let (sessions, posted) = (Mutex::default(), Mutex::default());
    let app = Arc::new(App { served, options, crowd, kept, sessions, posted, shutdown });
    let door = door::Door::new(app.options.clone());
    let mut router = Router::new();
    for path in either(&paths.endpoint) {
        router = router.route(&path, axum::routing::any(endpoint));
    }
    if let Some(sse) = paths.sse.as_deref().filter(|_| legacy) {
        for path in either(sse) {
            router = router.route(&path, axum::routing::any(posted::stream));
        }
        for path in either(&posted::message_path(sse)) {
            router = router.route(&path, axum::routing::any(posted::message));
        }
    }
    // The last one is the outermost: who is refused at the door learns nothing of what is behind it.
    router
        .with_state(app)
        .route_layer(from_fn_with_state(cors::layer(), cors::answer))
        .route_layer(from_fn_with_state(door, door::stand))
        .route_layer(from_fn(unread::close))
}

/// A path with and without a slash at its end: people type both.
fn either(path: &str) -> Vec<String> {
    let bare = path.trim_end_matches('/');
    if bare.is_empty() { vec!["/".to_owned()] } else { vec![bare.to_owned(), format!("{bare}/")] }
}

/// Another router behind the same checks of `Host` and `Origin`.
pub fn guarded(router: Router, options: Options) -> Router {
    router.layer(from_fn_with_state(door::Door::new(options), door::stand)).layer(from_fn(unread::close))
}

/// InputResponses, behind the same checks, where there is nothing: says where there is something.
pub fn elsewhere(paths: &Paths, revisions: Revisions, options: Options) -> Router {
    let sse = paths.sse.as_ref().filter(|_| revisions.serves(Era::Legacy));
    let sse = sse.map(|sse| format!(", and HTTP+SSE at {sse}")).unwrap_or_default();
    let there = format!("this server speaks Streamable HTTP at {}{sse}", paths.endpoint);
    let answer = move |request: Request<Body>| {
        let path = door::shown(request.uri().path().as_bytes());
        let refusal = Refusal::plain(StatusCode::NOT_FOUND, &format!("there is nothing at {path}; {there}"));
        std::future::ready(refusal.response())
    };
    let router = Router::new().fallback(answer).layer(from_fn_with_state(cors::layer(), cors::answer));
    guarded(router, options)
}

async fn endpoint(State(app): State<Arc<App>>, request: Request<Body>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let who = app.crowd.who(&parts.extensions);
    let outcome = match parts.method {
        Verb::POST => post(&app, &parts.headers, body, who).await,
        Verb::GET => legacy::get(&app, &parts.headers, who),
        Verb::DELETE => legacy::delete(&app, &parts.headers),
        _ => Err(Refusal::allowing("POST", "this endpoint takes POST, and GET and DELETE of a session")),
    };
    outcome.unwrap_or_else(|refusal| refusal.response())
}

/// After how many seconds a client may ask again that was refused for want of room.
const AGAIN: &str = "2";

/// A request that is not answered, with a JSON-RPC error in the body.
pub(crate) struct Refusal {
    status: StatusCode,
    body: Bytes,
    /// The methods that are allowed instead.
    allow: Option<&'static str>,
    /// The same may be asked again in a moment.
    again: bool,
}

impl Refusal {
    /// Of something that is not tied to a request's id.
    pub(crate) fn plain(status: StatusCode, why: &str) -> Refusal {
        let rules = Revision::LATEST_MODERN.rules();
        let error = Rejection::Invalid(why.to_owned()).render(rules).error;
        Refusal { status, body: wire::error(ErrorId::Absent, &error), allow: None, again: false }
    }

    /// Of something that may be asked again in a moment.
    pub(crate) fn unavailable(status: StatusCode, why: &str) -> Refusal {
        let rules = Revision::LATEST_MODERN.rules();
        let error = Rejection::Internal(why.to_owned()).render(rules).error;
        Refusal { status, body: wire::error(ErrorId::Absent, &error), allow: None, again: true }
    }

    /// Since a limit is reached: of the client's own address, or of all.
    pub(crate) fn full(full: &Full) -> Refusal {
        Refusal::unavailable(Refusal::status_of(full), &full.to_string())
    }

    /// The same, to a request.
    pub(crate) fn full_to(id: &wire::Id, full: &Full) -> Refusal {
        let why = Rejection::Internal(full.to_string());
        Refusal { status: Refusal::status_of(full), again: true, ..Refusal::of(id, &why) }
    }

    fn status_of(full: &Full) -> StatusCode {
        if full.own() { StatusCode::TOO_MANY_REQUESTS } else { StatusCode::SERVICE_UNAVAILABLE }
    }

    /// Of an HTTP method.
    pub(crate) fn allowing(allow: &'static str, why: &str) -> Refusal {
        Refusal { allow: Some(allow), ..Refusal::plain(StatusCode::METHOD_NOT_ALLOWED, why) }
    }

    /// Of a request.
    pub(crate) fn of(id: &wire::Id, rejection: &Rejection) -> Refusal {
        let rules = Revision::LATEST_MODERN.rules();
        let status = StatusCode::from_u16(rejection.render(rules).status).unwrap_or(StatusCode::BAD_REQUEST);
        Refusal { status, body: downstream::refuse(id, rejection, rules), allow: None, again: false }
    }

    /// As a whole response, to a connection that is closed with it.
    fn text(&self) -> String {
        let (status, body) = (self.status, String::from_utf8_lossy(&self.body));
        format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nretry-after: {AGAIN}\r\n\
             connection: close\r\n\r\n{body}",
            body.len(),
        )
    }

    fn response(self) -> Response<Body> {
        let mut response = json(self.status, self.body);
        if let Some(allow) = self.allow {
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allow));
        }
        if self.again {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(AGAIN));
        }
        if self.status == StatusCode::PAYLOAD_TOO_LARGE {
            // What is sent beyond some more megabytes is not read.
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// A JSON body.
pub(crate) fn json(status: StatusCode, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}

fn accepted() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

async fn post(app: &Arc<App>, headers: &HeaderMap, body: Body, who: Who) -> Result<Response<Body>, Refusal> {
    let accept = door::accept(headers)?;
    door::content_type(headers)?;
    let bytes = read(body, headers, who, app).await?;
    let read = wire::read(bytes, &app.served.limits);
    let session = legacy::find(app, headers);
    // Inside a live session everything is the session's, and so is the key that would mark a modern request.
    if let Some(live) = session.as_ref().filter(|live| legacy::is_of_revision(live, headers))
        && matches!(&read, Ok(_) | Err(Unreadable::Batch(_)))
        && (read.is_ok() || live.rules().batches)
    {
        return Ok(live.receive(read, accept, app).await);
    }
    let message = read.map_err(|error| unreadable(session.as_deref(), headers, &error))?;
    let version = headers.get(name::PROTOCOL_VERSION).map(HeaderValue::as_bytes);
    let elsewhere = session.is_some() && version != Some(Revision::LATEST_MODERN.as_str().as_bytes());
    match message {
        Message::Request(call) => request(app, headers, call, accept, session.is_some(), who).await,
        Message::Notification { .. } if elsewhere => Err(legacy::other_revision()),
        // The session is there: 404 would have its client open another.
        Message::Response { .. } if session.is_some() => Err(legacy::other_revision()),
        Message::Notification { .. } if !headers.contains_key(name::SESSION_ID) || session.is_some() => {
            Ok(accepted())
        }
        Message::Notification { .. } => Err(legacy::no_session()),
        Message::Response { .. } if headers.contains_key(name::SESSION_ID) => Err(legacy::no_session()),
        Message::Response { .. } => {
            Err(Refusal::plain(StatusCode::BAD_REQUEST, "a response belongs to a session; this names none"))
        }
    }
}

/// A request outside of a live session, or one that a session's revision does not cover.
async fn request(
    app: &Arc<App>,
    headers: &HeaderMap,
    call: wire::Call,
    accept: Accept,
    live: bool,
    who: Who,
) -> Result<Response<Body>, Refusal> {
    let revisions = app.served.revisions;
    if revisions.serves(Era::Modern) && admit::is_marked_modern(call.params.as_ref()) {
        return modern::post(app, headers, &call, accept, who).await;
    }
    let method = Method::parse(&call.method);
    if revisions.serves(Era::Legacy) {
        if method == Some(Method::Initialize) {
            return legacy::initialize(app, &call, accept, who);
        }
        if live {
            let why = Rejection::Invalid(legacy::OTHER_REVISION.into());
            return Err(Refusal { status: StatusCode::BAD_REQUEST, ..Refusal::of(&call.id, &why) });
        }
        if headers.contains_key(name::SESSION_ID) {
            let why = "there is no such session; open a new one with initialize";
            return Err(Refusal {
                status: StatusCode::NOT_FOUND,
                ..Refusal::of(&call.id, &Rejection::Invalid(why.into()))
            });
        }
        if method == Some(Method::Ping) {
            return Ok(json(StatusCode::OK, wire::result(&call.id, &Default::default())));
        }
    }
    Err(Refusal::of(&call.id, &Rejection::NeitherEra(revisions)))
}

/// The refusal of what is no message, in the form of the session's revision, of the one that the header names, or
/// of the one that stands for a request which names none.
fn unreadable(session: Option<&live::Live>, headers: &HeaderMap, error: &Unreadable) -> Refusal {
    let named = || {
        let version = headers.get(name::PROTOCOL_VERSION)?.to_str().ok()?;
        Some(Revision::parse(version).unwrap_or(Revision::LATEST_MODERN).rules())
    };
    let rules = session.map(live::Live::rules).or_else(named).unwrap_or_else(|| Revision::UNNAMED.rules());
    let body = downstream::unreadable(error, rules).unwrap_or_default();
    Refusal { status: StatusCode::BAD_REQUEST, body, allow: None, again: false }
}

/// Whoever reaches an open endpoint.
pub(crate) fn principal() -> Principal {
    Principal::anonymous()
}
