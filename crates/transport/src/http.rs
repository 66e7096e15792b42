//! Streamable HTTP, served: one endpoint for every revision that has it.
//!
//! <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http>

mod door;
mod legacy;
mod listener;
mod modern;
mod respond;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::middleware::Next;
use bytes::Bytes;
use http::{HeaderMap, Method as Verb, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use proto::edge::{self, Served};
use proto::wire::{self, ErrorId, Message, Unreadable};
use proto::{Principal, Rejection, admit};
use spec::{Era, Method, Revision, header as name};
use tokio_util::sync::CancellationToken;

pub use listener::{serve, serve_unix};

use door::Accept;
use legacy::Live;

/// How an endpoint behaves beside the protocol.
#[derive(Clone, Debug)]
pub struct Options {
    /// Hosts that the `Host` header may name, without port; `None` admits all. Where the endpoint listens on
    /// loopback this keeps pages of other sites out that point their name at it.
    pub hosts: Option<Vec<String>>,
    /// Origins that may call beside the endpoint's own.
    pub origins: Vec<String>,
    /// How long a client may take to send a body.
    pub body_timeout: Duration,
    /// How often a quiet stream carries a comment.
    pub keep_alive: Duration,
    /// How many sessions may be open.
    pub sessions: usize,
    /// How long a session may be unused.
    pub session_idle: Duration,
}

impl Default for Options {
    /// Loopback only, 30 s for a body, a comment every 15 s, 10 000 sessions, an hour of idleness.
    fn default() -> Options {
        Options {
            hosts: Some(["localhost", "127.0.0.1", "[::1]"].map(str::to_owned).to_vec()),
            origins: Vec::new(),
            body_timeout: Duration::from_secs(30),
            keep_alive: Duration::from_secs(15),
            sessions: 10_000,
            session_idle: Duration::from_secs(3600),
        }
    }
}

/// The endpoint's state.
pub(crate) struct App {
    served: Arc<Served>,
    options: Options,
    sessions: Mutex<HashMap<String, Arc<Live>>>,
    swept: Mutex<Instant>,
    shutdown: CancellationToken,
}

/// How often sessions are looked through for those that nobody uses.
const SWEEP: Duration = Duration::from_secs(60);

impl App {
    /// Ends sessions that nobody uses, where it is time to look for them or their number is at the limit.
    fn forget_stale(&self, sessions: &mut HashMap<String, Arc<Live>>) {
        let mut swept = self.swept.lock().unwrap_or_else(PoisonError::into_inner);
        if swept.elapsed() > SWEEP || sessions.len() >= self.options.sessions {
            *swept = Instant::now();
            sessions.retain(|_, live| !live.is_stale(self.options.session_idle));
        }
    }
}

/// The MCP endpoint at `path`, to be served by [`serve`] or merged into an application. When `shutdown` is
/// cancelled its listens end in good order.
pub fn router(path: &str, served: Arc<Served>, options: Options, shutdown: CancellationToken) -> Router {
    let app = Arc::new(App {
        served,
        options,
        sessions: Mutex::default(),
        swept: Mutex::new(Instant::now()),
        shutdown,
    });
    Router::new().route(path, axum::routing::any(endpoint)).with_state(app)
}

/// Another router behind the same checks of `Host` and `Origin`.
pub fn guarded(router: Router, options: Options) -> Router {
    let check = move |request: Request<Body>, next: Next| {
        let refused = door::check(request.headers(), &options).err();
        async move {
            match refused {
                Some(refusal) => refusal.response(),
                None => next.run(request).await,
            }
        }
    };
    router.layer(axum::middleware::from_fn(check))
}

async fn endpoint(State(app): State<Arc<App>>, request: Request<Body>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let outcome = match door::check(&parts.headers, &app.options) {
        Err(refusal) => Err(refusal),
        Ok(()) if parts.method == Verb::POST => post(&app, &parts.headers, body).await,
        Ok(()) if parts.method == Verb::GET => legacy::get(&app, &parts.headers),
        Ok(()) if parts.method == Verb::DELETE => legacy::delete(&app, &parts.headers),
        Ok(()) => Err(Refusal::plain(
            StatusCode::METHOD_NOT_ALLOWED,
            "this endpoint takes POST, and GET and DELETE of a session",
        )),
    };
    outcome.unwrap_or_else(|refusal| refusal.response())
}

/// A request that is not answered, with a JSON-RPC error in the body.
pub(crate) struct Refusal {
    status: StatusCode,
    body: Bytes,
}

impl Refusal {
    /// Of something that is not tied to a request's id.
    pub(crate) fn plain(status: StatusCode, why: &str) -> Refusal {
        let rules = Revision::LATEST_MODERN.rules();
        let error = Rejection::Invalid(why.to_owned()).render(rules).error;
        Refusal { status, body: wire::error(ErrorId::Absent, &error) }
    }

    /// Of a request.
    pub(crate) fn of(id: &wire::Id, rejection: &Rejection) -> Refusal {
        let rules = Revision::LATEST_MODERN.rules();
        let status = StatusCode::from_u16(rejection.render(rules).status).unwrap_or(StatusCode::BAD_REQUEST);
        Refusal { status, body: edge::refuse(id, rejection, rules) }
    }

    fn response(self) -> Response<Body> {
        let mut response = json(self.status, self.body);
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            response.headers_mut().insert(header::ALLOW, http::HeaderValue::from_static("POST"));
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

/// Said to what names a live session and another revision than its own.
const OTHER_REVISION: &str = "the version header does not name this session's revision";

async fn post(app: &Arc<App>, headers: &HeaderMap, body: Body) -> Result<Response<Body>, Refusal> {
    let accept = door::accept(headers)?;
    door::content_type(headers)?;
    let bytes = read(body, app).await?;
    let message = match wire::read(bytes, &app.served.limits) {
        Ok(message) => message,
        Err(error) => return Err(unreadable(app, headers, &error)),
    };
    let session = legacy::find(app, headers);
    let version = headers.get(name::PROTOCOL_VERSION).map(|v| v.to_str().unwrap_or_default());
    // Inside a live session everything is the session's, and so is the key that would mark a modern request.
    if let Some(live) = &session
        && version.is_none_or(|version| version == live.revision().as_str())
    {
        return Ok(legacy::receive(live, message, accept, app).await);
    }
    let elsewhere = session.is_some() && version != Some(Revision::LATEST_MODERN.as_str());
    match message {
        Message::Request(call) => request(app, headers, call, accept, session.is_some()).await,
        Message::Notification { .. } | Message::Response { .. } if elsewhere => {
            Err(Refusal::plain(StatusCode::BAD_REQUEST, OTHER_REVISION))
        }
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
            let why = Rejection::Invalid(OTHER_REVISION.into());
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

fn unreadable(app: &App, headers: &HeaderMap, error: &Unreadable) -> Refusal {
    let rules =
        legacy::find(app, headers).map_or(Revision::LATEST_MODERN.rules(), |live| live.revision().rules());
    let body = edge::unreadable(error, rules).unwrap_or_default();
    Refusal { status: StatusCode::BAD_REQUEST, body }
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
