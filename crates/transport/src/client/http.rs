//! A server behind a URL.
//!
//! <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#backward-compatibility>

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use proto::legacy::client::Session;
use proto::modern::client::Calls;
use proto::upstream::{CallKey, Edge, Outgoing};
use proto::wire::{self, Id, Message};
use proto::{Answer, Mirror, Object, Raw, Rejection, Request, header as mirrored};
use spec::{Disconnect, Era, Method, Revision, VersionHeader, header as name};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::pipe::{discovered, only_legacy, refused};
use super::{Client, Found, Settings, Shared, posted};
use crate::TransportError;
use crate::sse;

/// A server behind a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    /// Where it is, with http or https.
    pub url: String,
    /// What is sent with every request, such as `Authorization`.
    pub headers: Vec<(String, String)>,
    /// It is known to speak HTTP+SSE; nothing else is tried.
    pub sse: bool,
}

impl Remote {
    /// A URL without further headers.
    pub fn new(url: &str) -> Remote {
        Remote { url: url.to_owned(), headers: Vec::new(), sse: false }
    }
}

/// How long a stream that broke off waits before it is gone on with, where the server does not say.
const REOPEN: Duration = Duration::from_secs(1);
/// How often a call's stream is gone on with in vain before the call is given up.
const RESUMPTIONS: u32 = 5;

/// Where and how requests are sent.
pub(super) struct Link {
    client: reqwest::Client,
    url: Url,
    /// The session's own stream is read already.
    streaming: AtomicBool,
    session: Option<HeaderValue>,
    /// What the version header says, once a session is open of a revision that has the header.
    version: Option<HeaderValue>,
    revision: Revision,
    limit: usize,
}

/// The TLS provider must be there before a client is built.
pub(super) fn client(remote: &Remote) -> Result<reqwest::Client, String> {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // It fails where the application installed one, which then serves.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let mut headers = HeaderMap::new();
    for (name, value) in &remote.headers {
        let bad = |what: &str| format!("the {what} of the header {name:?} is not one that HTTP can carry");
        let mut value = HeaderValue::from_str(value).map_err(|_| bad("value"))?;
        value.set_sensitive(true);
        headers.insert(HeaderName::try_from(name.as_str()).map_err(|_| bad("name"))?, value);
    }
    let built = reqwest::Client::builder()
        .default_headers(headers)
        .user_agent(concat!("dateline/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .tcp_nodelay(true)
        .build();
    built.map_err(|e| e.to_string())
}

/// Connects to a URL and finds out what is behind it: modern, a session of Streamable HTTP, or HTTP+SSE, in this order.
pub(super) async fn connect(remote: &Remote, settings: Settings) -> Result<Client, TransportError> {
    let unusable = |why: String| TransportError::Url { url: remote.url.clone(), why };
    let parsed = Url::parse(&remote.url).map_err(|e| unusable(e.to_string()))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(unusable("it must begin with http:// or https://".into()));
    }
    let client = client(remote).map_err(unusable)?;
    if remote.sse {
        return posted::connect(client, parsed, settings).await;
    }
    let mut link = Link {
        client: client.clone(),
        url: parsed.clone(),
        streaming: AtomicBool::new(false),
        session: None,
        version: None,
        revision: Revision::LATEST_MODERN,
        limit: settings.limits.message,
    };
    let connecting = find_out(&mut link, &settings);
    let found = tokio::time::timeout(settings.connect, connecting)
        .await
        .map_err(|_| TransportError::Timeout(settings.connect))?;
    match found {
        Ok(found) => Ok(Client::new(found, super::Link::Http(link), settings, CancellationToken::new())),
        Err(NotOpened { why, posts: false }) => match posted::connect(client, parsed, settings).await {
            Ok(client) => Ok(client),
            // It is no server of HTTP+SSE either; the first complaint says more.
            Err(_) => Err(why),
        },
        Err(NotOpened { why, posts: true }) => Err(why),
    }
}

/// Why a server could not be opened.
struct NotOpened {
    why: TransportError,
    /// It takes POST, as far as one knows.
    posts: bool,
}

impl From<TransportError> for NotOpened {
    fn from(why: TransportError) -> NotOpened {
        NotOpened { why, posts: true }
    }
}

async fn find_out(link: &mut Link, settings: &Settings) -> Result<Found, NotOpened> {
    if settings.era == Some(Era::Legacy)
        && let Ok(found) = open(link, settings).await
    {
        return Ok(found);
    }
    let params = Calls::discover(link.revision, &settings.introduction);
    let headers = mirrored::of_request(link.revision.as_str(), Method::Discover, &params, &[]);
    let probe = wire::request(&Id::number(1), Method::Discover.wire(), &params);
    let Asked { outcome, .. } = link.ask(probe, headers, settings).await?;
    match outcome.as_ref().and_then(|outcome| discovered(outcome, settings)) {
        Some(Ok(found)) => return Ok(found),
        Some(Err(supported)) => only_legacy(&supported)?,
        None => {}
    }
    open(link, settings).await
}

/// Opens a session.
async fn open(link: &mut Link, settings: &Settings) -> Result<Found, NotOpened> {
    let params = Session::initialize(Revision::LATEST_LEGACY, &settings.introduction);
    let initialize = wire::request(&Id::number(2), Method::Initialize.wire(), &params);
    let Asked { status, headers, outcome } = link.ask(initialize, HeaderMap::new(), settings).await?;
    let not_opened = |why| NotOpened { why, posts: !status.is_client_error() };
    let outcome = outcome.ok_or_else(|| {
        not_opened(TransportError::Protocol(format!(
            "{} does not speak the protocol: it answers no way of opening it",
            link.url
        )))
    })?;
    let (session, description, initialized) =
        Session::open(outcome).map_err(|why| not_opened(refused(&why)))?;
    link.session = headers.get(name::SESSION_ID).cloned();
    link.revision = session.revision();
    link.version = (session.revision().rules().version_header != VersionHeader::Absent)
        .then(|| HeaderValue::from_static(session.revision().as_str()));
    link.tell(initialized).await?;
    Ok(Found { edge: Edge::Legacy(session), description })
}

/// What came back to a request.
struct Asked {
    status: StatusCode,
    headers: HeaderMap,
    /// The response, where the body holds one.
    outcome: Option<Result<Raw, Raw>>,
}

impl Link {
    fn reach(&self, error: &reqwest::Error) -> TransportError {
        // The chain of causes says what went wrong; the outermost error only that something did.
        let mut why = error.to_string();
        let mut cause = std::error::Error::source(error);
        while let Some(inner) = cause {
            why = inner.to_string();
            cause = inner.source();
        }
        TransportError::Reach { url: self.url.to_string(), why }
    }

    /// With the headers of the session, where there is one.
    fn of_session(&self, mut request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        if let Some(session) = &self.session {
            request = request.header(name::SESSION_ID, session);
        }
        if let Some(version) = &self.version {
            request = request.header(name::PROTOCOL_VERSION, version);
        }
        request
    }

    /// Opens a stream of the session, or goes on with one behind an event.
    async fn get(&self, seen: Option<&str>) -> Result<reqwest::Response, reqwest::Error> {
        let request = self.client.get(self.url.clone()).header(header::ACCEPT, "text/event-stream");
        let request = match seen {
            Some(seen) => request.header(name::LAST_EVENT_ID, seen),
            None => request,
        };
        self.of_session(request).send().await
    }

    /// Posts a message.
    async fn post(&self, body: Bytes, headers: HeaderMap) -> Result<reqwest::Response, TransportError> {
        let mut request = self
            .client
            .post(self.url.clone())
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, text/event-stream")
            .headers(headers);
        request = self.of_session(request);
        let response = request.body(body).send().await.map_err(|e| self.reach(&e))?;
        if response.status() == StatusCode::NOT_FOUND && self.session.is_some() {
            return Err(forgotten());
        }
        if response.status() == StatusCode::UNAUTHORIZED {
            return Err(TransportError::Protocol(format!("{} wants to know who asks (401)", self.url)));
        }
        Ok(response)
    }

    /// Posts a request and reads its response; `None` where the body holds none.
    async fn ask(
        &self,
        body: Bytes,
        headers: HeaderMap,
        settings: &Settings,
    ) -> Result<Asked, TransportError> {
        let response = self.post(body, headers).await?;
        let (status, headers) = (response.status(), response.headers().clone());
        let mut outcome = None;
        let mut seen = Seen::default();
        let reading = messages(response, settings.limits, &mut seen, |message| {
            if let Message::Response { outcome: found, .. } = message {
                outcome = Some(found);
            }
            std::future::ready(outcome.is_none())
        });
        // A body that cannot be read holds no answer.
        let _ = reading.await;
        Ok(Asked { status, headers, outcome })
    }

    /// Posts a message that is not answered.
    pub(super) async fn tell(&self, message: Bytes) -> Result<(), TransportError> {
        let response = self.post(message, HeaderMap::new()).await?;
        match response.status() {
            status if status.is_success() => Ok(()),
            status => Err(TransportError::Protocol(format!("{} answered {status}", self.url))),
        }
    }

    /// Ends the session.
    pub(super) async fn close(&self) {
        if self.session.is_some() {
            let _ = self.of_session(self.client.delete(self.url.clone())).send().await;
        }
    }
}

/// A server that no longer knows the session.
fn forgotten() -> TransportError {
    TransportError::Closed(": it no longer knows our session".into())
}

/// How far a stream was read.
#[derive(Debug, Default)]
struct Seen {
    /// The last event's id, where events have ids.
    last: Option<String>,
    /// After which time the server wants its client back.
    retry: Option<Duration>,
}

/// Reads the messages of a response's body until there are no more, or no more are wanted.
async fn messages<F: Future<Output = bool>>(
    response: reqwest::Response,
    limits: wire::Limits,
    seen: &mut Seen,
    mut on: impl FnMut(Message) -> F,
) -> Result<(), String> {
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let events = kind.starts_with("text/event-stream");
    let mut reader = sse::Reader::new(limits.message);
    let mut whole = Vec::new();
    let mut body = response.bytes_stream();
    let too_long = || "the server's message is over the limit".to_owned();
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(|e| format!("the server's answer broke off: {e}"))?;
        if !events {
            whole.extend_from_slice(&chunk);
            if whole.len() > limits.message {
                return Err(too_long());
            }
            continue;
        }
        let read = reader.feed(&chunk).map_err(|_| too_long())?;
        seen.retry = reader.retry().or(seen.retry);
        for event in read {
            seen.last = event.id.or(seen.last.take());
            for message in wire::each(wire::read(event.data, &limits)) {
                if !on(message).await {
                    return Ok(());
                }
            }
        }
    }
    if !events {
        for message in wire::each(wire::read(whole.into(), &limits)) {
            on(message).await;
        }
    }
    Ok(())
}

/// Sends a call and waits for its answer.
pub(super) async fn exchange(
    shared: &Arc<Shared>,
    link: &Link,
    key: CallKey,
    request: &Request,
    outgoing: Outgoing,
    mut answer: oneshot::Receiver<Result<Answer, Rejection>>,
) -> Result<Answer, Rejection> {
    shared.send(outgoing.before).await?;
    let modern = link.revision.rules().disconnect == Disconnect::Cancels;
    let headers = if modern { headers(shared, link, request, &outgoing.params) } else { HeaderMap::new() };
    let gone = || Err(shared.why_gone());
    let answered = if modern {
        let reading = read(shared, link, key, outgoing.message, headers);
        tokio::select! {
            biased;
            answered = &mut answer => answered.unwrap_or_else(|_| gone()),
            () = reading => answer.await.unwrap_or_else(|_| gone()),
        }
    } else {
        // It is read also while the call is held, when nobody waits.
        let held = Arc::clone(shared);
        let reading = tokio::spawn(async move {
            if let super::Link::Http(link) = &held.link {
                read(&held, link, key, outgoing.message, headers).await;
            }
        });
        if let Some(slot) = shared.lock().calls.get_mut(&key) {
            slot.reading = Some(reading.abort_handle());
        }
        answer.await.unwrap_or_else(|_| gone())
    };
    if let (Ok(Answer::Complete(result)), Method::ToolsList) = (&answered, request.method) {
        shared.lock().mirrors.extend(annotated(result));
    }
    answered
}

/// Starts to read what a listen tells. A legacy session has one stream for all that concerns no call.
pub(super) async fn listen(
    shared: &Arc<Shared>,
    key: CallKey,
    outgoing: Option<Outgoing>,
) -> Result<(), Rejection> {
    let super::Link::Http(link) = &shared.link else { return Ok(()) };
    let weak = Arc::downgrade(shared);
    if link.revision.rules().disconnect == Disconnect::Cancels {
        let Some(outgoing) = outgoing else { return Ok(()) };
        let headers =
            mirrored::of_request(link.revision.as_str(), Method::SubscriptionsListen, &outgoing.params, &[]);
        let response =
            link.post(outgoing.message, headers).await.map_err(|e| Rejection::Internal(e.told().into()))?;
        let limits = shared.settings.limits;
        let reading = tokio::spawn(async move {
            let mut seen = Seen::default();
            let read = messages(response, limits, &mut seen, |message| {
                let known = weak.upgrade().map(|shared| shared.receive(message, Some(key))).is_some();
                std::future::ready(known)
            });
            let _ = read.await;
            if let Some(shared) = weak.upgrade() {
                shared.lock().listens.remove(&key);
            }
        });
        if let Some(listen) = shared.lock().listens.get_mut(&key) {
            listen.reading = Some(reading.abort_handle());
        }
        return Ok(());
    }
    if !link.streaming.swap(true, Ordering::Relaxed) {
        tokio::spawn(stream(weak, shared.gone.clone()));
    }
    if let Some(Outgoing { mut before, message, .. }) = outgoing {
        before.push(message);
        shared.send(before).await?;
    }
    Ok(())
}

/// Reads the stream of a session until the session ends; goes on with it when it breaks.
async fn stream(shared: Weak<Shared>, gone: CancellationToken) {
    let mut seen = Seen::default();
    let reading = async {
        while let Some(strong) = shared.upgrade() {
            let super::Link::Http(link) = &strong.link else { return };
            let limits = strong.settings.limits;
            let response = link.get(seen.last.as_deref()).await;
            if link.session.is_some() && response.as_ref().is_ok_and(|r| r.status() == StatusCode::NOT_FOUND)
            {
                // Whoever wants it connects again, and is told what changed.
                return strong.end("the server no longer knows our session", "");
            }
            drop(strong);
            match response {
                Ok(response) if response.status().is_success() => {
                    let read = messages(response, limits, &mut seen, |message| {
                        let shared = shared.upgrade();
                        async move {
                            let Some(shared) = shared else { return false };
                            let replies = shared.receive(message, None);
                            let _ = shared.send(replies).await;
                            true
                        }
                    });
                    let _ = read.await;
                }
                // What followed is lost; what comes is not.
                Ok(response) if response.status().is_client_error() && seen.last.take().is_some() => {}
                // It has no such stream, and says so.
                Ok(response) if response.status().is_client_error() => return,
                _ => {}
            }
            tokio::time::sleep(seen.retry.unwrap_or(REOPEN)).await;
        }
    };
    tokio::select! {
        () = reading => {}
        () = gone.cancelled() => {}
    }
}

fn headers(shared: &Shared, link: &Link, request: &Request, params: &Object) -> HeaderMap {
    let named = params.string("name").filter(|_| request.method == Method::ToolsCall);
    let mirrors = named.and_then(|tool| shared.lock().mirrors.get(&*tool).cloned());
    mirrored::of_request(
        link.revision.as_str(),
        request.method,
        params,
        mirrors.as_deref().unwrap_or_default(),
    )
}

/// Posts a call and takes in whatever comes back.
async fn read(shared: &Arc<Shared>, link: &Link, key: CallKey, message: Bytes, headers: HeaderMap) {
    let outcome: Result<(), String> = match link.post(message, headers).await {
        // It did not take the call, and will take no other: whoever wants it connects again.
        Err(error @ (TransportError::Closed(_) | TransportError::Reach { .. })) => {
            let slot = shared.lock().calls.remove(&key);
            shared.end(error.told(), &format!(": {error}"));
            if let Some(super::Slot { answer: super::Waiting::For(waiting), .. }) = slot {
                let _ = waiting.send(Err(Rejection::Gone(error.told().into())));
            }
            return;
        }
        Err(error) => {
            tracing::warn!(%error, "a call could not be sent to a server");
            Err(error.told().to_owned())
        }
        Ok(response) => follow(shared, link, key, response).await,
    };
    // Where the answer was in it, nobody waits any more and this is nothing.
    if let Err(why) = outcome {
        shared.lock().answered(key, Err(Rejection::Internal(why)));
    }
}

/// Takes in what comes back to a call, and goes on with its stream where that breaks off before the answer.
async fn follow(
    shared: &Arc<Shared>,
    link: &Link,
    key: CallKey,
    response: reqwest::Response,
) -> Result<(), String> {
    let limits = wire::Limits { message: link.limit, ..shared.settings.limits };
    let status = response.status();
    let mut seen = Seen::default();
    let mut response = Ok(response);
    let mut vain = 0;
    loop {
        let before = seen.last.clone();
        let broke = match response {
            Ok(response) => {
                let read = messages(response, limits, &mut seen, |message| {
                    let replies = shared.receive(message, Some(key));
                    async move {
                        let _ = shared.send(replies).await;
                        true
                    }
                });
                read.await.err()
            }
            Err(why) => Some(why),
        };
        if !shared.lock().awaits(key) {
            return Ok(());
        }
        vain = if seen.last == before { vain + 1 } else { 0 };
        let resumable = link.revision.rules().disconnect == Disconnect::Continues && seen.last.is_some();
        if !resumable || vain > RESUMPTIONS {
            let nothing = match status.is_success() {
                true => "the server closed the stream without an answer".to_owned(),
                false => format!("the server answered {status}"),
            };
            return Err(broke.unwrap_or(nothing));
        }
        tokio::time::sleep(seen.retry.unwrap_or(REOPEN)).await;
        response = match link.get(seen.last.as_deref()).await {
            Ok(response) if response.status().is_success() => Ok(response),
            Ok(response) => {
                return Err(format!("the server does not go on with its answer: {}", response.status()));
            }
            Err(error) => Err(link.reach(&error).to_string()),
        };
    }
}

/// The annotated parameters of listed tools.
fn annotated(result: &Object) -> impl Iterator<Item = (String, Arc<[Mirror]>)> {
    let tools = result.get("tools").and_then(|raw| raw.array().ok()).unwrap_or_default();
    tools.into_iter().filter_map(|tool| {
        let tool = tool.object().ok()?;
        let mirrors = mirrored::mirrors(tool.get("inputSchema")?).ok()?;
        Some((tool.string("name")?.to_string(), mirrors.into()))
    })
}
