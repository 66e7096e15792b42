//! Streamable HTTP, served: one endpoint for every revision that has it.
//!
//! <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http>

mod cors;
mod door;
mod legacy;
mod listener;
mod live;
mod modern;
mod posted;
mod respond;
mod streams;
mod unread;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::middleware::{from_fn, from_fn_with_state};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method as Verb, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use proto::edge::{self, Served};
use proto::wire::{self, ErrorId, Message, Unreadable};
use proto::{Principal, Rejection, admit};
use spec::{Era, Method, Revision, Revisions, header as name};
use tokio_util::sync::CancellationToken;

pub use door::{host, origin};
pub use listener::{serve, serve_unix};
pub use streams::Replay;

use door::Accept;

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
    /// How many sessions may be open.
    pub sessions: usize,
    /// How long a session may be unused.
    pub session_idle: Duration,
    /// How many streams of its own a session may have open.
    pub streams: usize,
    /// How much a session keeps for a client that comes back.
    pub replay: Replay,
    /// After which time a client is told to come back whose connection breaks off.
    pub retry: Duration,
}

impl Default for Options {
    /// Loopback only, 30 s for a body, a comment every 15 s, 10 000 sessions, an hour of idleness, 32 streams, a
    /// second until a client comes back.
    fn default() -> Options {
        Options {
            hosts: Some(Vec::new()),
            addresses: false,
            origins: Vec::new(),
            body_timeout: Duration::from_secs(30),
            keep_alive: Duration::from_secs(15),
            sessions: 10_000,
            session_idle: Duration::from_secs(3600),
            streams: 32,
            replay: Replay::default(),
            retry: Duration::from_secs(1),
        }
    }
}

/// The endpoint's state.
pub(crate) struct App {
    served: Arc<Served>,
    options: Options,
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
pub fn router(paths: &Paths, served: Arc<Served>, options: Options, shutdown: CancellationToken) -> Router {
    let legacy = served.revisions.serves(Era::Legacy);
    let app =
        Arc::new(App { served, options, sessions: Mutex::default(), posted: Mutex::default(), shutdown });
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

/// Answers, behind the same checks, where there is nothing: says where there is something.
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
    let outcome = match parts.method {
        Verb::POST => post(&app, &parts.headers, body).await,
        Verb::GET => legacy::get(&app, &parts.headers),
        Verb::DELETE => legacy::delete(&app, &parts.headers),
        _ => Err(Refusal::allowing("POST", "this endpoint takes POST, and GET and DELETE of a session")),
    };
    outcome.unwrap_or_else(|refusal| refusal.response())
}

/// A request that is not answered, with a JSON-RPC error in the body.
pub(crate) struct Refusal {
    status: StatusCode,
    body: Bytes,
    /// The methods that are allowed instead.
    allow: Option<&'static str>,
}

impl Refusal {
    /// Of something that is not tied to a request's id.
    pub(crate) fn plain(status: StatusCode, why: &str) -> Refusal {
        let rules = Revision::LATEST_MODERN.rules();
        let error = Rejection::Invalid(why.to_owned()).render(rules).error;
        Refusal { status, body: wire::error(ErrorId::Absent, &error), allow: None }
    }

    /// Of an HTTP method.
    pub(crate) fn allowing(allow: &'static str, why: &str) -> Refusal {
        Refusal { allow: Some(allow), ..Refusal::plain(StatusCode::METHOD_NOT_ALLOWED, why) }
    }

    /// Of a request.
    pub(crate) fn of(id: &wire::Id, rejection: &Rejection) -> Refusal {
        let rules = Revision::LATEST_MODERN.rules();
        let status = StatusCode::from_u16(rejection.render(rules).status).unwrap_or(StatusCode::BAD_REQUEST);
        Refusal { status, body: edge::refuse(id, rejection, rules), allow: None }
    }

    fn response(self) -> Response<Body> {
        let mut response = json(self.status, self.body);
        if let Some(allow) = self.allow {
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allow));
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

async fn post(app: &Arc<App>, headers: &HeaderMap, body: Body) -> Result<Response<Body>, Refusal> {
    let accept = door::accept(headers)?;
    door::content_type(headers)?;
    let bytes = read(body, app).await?;
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
        Message::Request(call) => request(app, headers, call, accept, session.is_some()).await,
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
) -> Result<Response<Body>, Refusal> {
    let revisions = app.served.revisions;
    if revisions.serves(Era::Modern) && admit::is_marked_modern(call.params.as_ref()) {
        return modern::post(app, headers, &call, accept).await;
    }
    let method = Method::parse(&call.method);
    if revisions.serves(Era::Legacy) {
        if method == Some(Method::Initialize) {
            return legacy::initialize(app, &call, accept);
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
    let body = edge::unreadable(error, rules).unwrap_or_default();
    Refusal { status: StatusCode::BAD_REQUEST, body, allow: None }
}

async fn read(body: Body, app: &App) -> Result<Bytes, Refusal> {
    let limit = app.served.limits.message;
    let collected = tokio::time::timeout(app.options.body_timeout, Limited::new(body, limit).collect()).await;
    match collected {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Refusal::plain(
            StatusCode::PAYLOAD_TOO_LARGE,
            &format!("the body is longer than {limit} bytes; the limit can be configured"),
        )),
        Ok(Err(_)) => Err(Refusal::plain(StatusCode::BAD_REQUEST, "the body ended before it was complete")),
        Err(_) => Err(Refusal::plain(StatusCode::REQUEST_TIMEOUT, "the body took too long to arrive")),
    }
}

/// Whoever reaches an open endpoint.
pub(crate) fn principal() -> Principal {
    Principal::anonymous()
}
