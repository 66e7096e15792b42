//! A server behind a URL.
//!
//! <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#backward-compatibility>

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use proto::CallKey;
use proto::upstream::Calls;
use proto::upstream::Session;
use proto::upstream::{Edge, Outgoing};
use proto::wire::{self, Id, Message};
use proto::{Answer, Heard, Object, Raw, Rejection, Request, header as mirrored};
use spec::{Disconnect, Era, Method, Revision, VersionHeader, header as name};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::body::{Seen, described, messages};
use super::pipe::{discovered, not_modern, only_legacy, refused};
use super::post::{Ask, Http};
use super::session::doubtful;
use super::{Client, EraHint, Found, Settings, Shared, Slot, Tool, Waiting, posted};
use crate::TransportError;

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

/// How often a call's stream is gone on with in vain before the call is given up.
const RESUMPTIONS: u32 = 5;
/// How many resources a server is asked to watch at once.
const SUBSCRIBED_AT_ONCE: usize = 8;
/// How long a server may take to accept a message that is not answered.
pub(super) const ACCEPT: Duration = Duration::from_secs(30);

/// Where and how requests are sent.
pub(super) struct Link {
    pub(super) http: Arc<Http>,
    /// The session's own stream is read already.
    streaming: AtomicBool,
    pub(super) session: Option<HeaderValue>,
    /// What the version header says, once a session is open of a revision that has the header.
    version: Option<HeaderValue>,
    pub(super) revision: Revision,
    /// Held by who finds out whether the server still knows us.
    pub(super) asking: tokio::sync::Mutex<()>,
}

/// Connects to a URL and finds out what is behind it: modern, a session of Streamable HTTP, or HTTP+SSE, in this order.
pub(super) async fn connect(remote: &Remote, settings: Settings) -> Result<Client, TransportError> {
    let unusable = |why: String| TransportError::Url { url: remote.url.clone(), why };
    let parsed = Url::parse(&remote.url).map_err(|e| unusable(e.to_string()))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(unusable("it must begin with http:// or https://".into()));
    }
    let http = Arc::new(Http::new(remote, parsed).map_err(unusable)?);
    if remote.sse {
        return posted::connect(http, settings).await;
    }
    let mut link = Link {
        http: Arc::clone(&http),
        streaming: AtomicBool::new(false),
        session: None,
        version: None,
        revision: Revision::LATEST_MODERN,
        asking: tokio::sync::Mutex::default(),
    };
    let connecting = find_out(&mut link, &settings);
    let found = tokio::time::timeout(settings.connect, connecting)
        .await
        .map_err(|_| TransportError::Timeout(settings.connect))?;
    match found {
        Ok(found) => Ok(Client::new(found, super::Link::Http(link), settings, CancellationToken::new())),
        Err(NotOpened { why, posts: false }) => match posted::connect(http, settings).await {
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
    match settings.era {
        EraHint::Fixed(Era::Legacy) => return Ok(link.opened(open(link, settings).await?)),
        EraHint::Fixed(Era::Modern) => {
            return match probe(link, settings).await? {
                Some(Ok(found)) => Ok(*found),
                Some(Err(_)) | None => Err(not_modern().into()),
            };
        }
        EraHint::Seen(Era::Legacy) => {
            let opening = tokio::time::timeout(settings.connect / 2, open(link, settings));
            if let Ok(Ok(opened)) = opening.await {
                return Ok(link.opened(opened));
            }
        }
        EraHint::Seen(Era::Modern) | EraHint::Unknown => {}
    }
    let first = {
        let probing = probe(link, settings);
        tokio::pin!(probing);
        match tokio::time::timeout(settings.probe, &mut probing).await {
            Ok(probed) => Probed::Said(probed?),
            // It may be one that knows no such question and does not say so. What it says to it still counts, for as
            // long again: it may work on one request at a time, and come to the handshake only when this one ends.
            Err(_) => {
                let opening = open(link, settings);
                tokio::pin!(opening);
                tokio::select! {
                    opened = &mut opening => match opened {
                        Ok(opened) => match tokio::time::timeout(settings.probe, &mut probing).await {
                            // It woke up for both, and is modern.
                            Ok(Ok(Some(Ok(found)))) => {
                                link.leave(opened.id).await;
                                Probed::Said(Some(Ok(found)))
                            }
                            _ => Probed::Opened(Box::new(opened)),
                        },
                        Err(_) => Probed::Said(probing.await?),
                    },
                    probed = &mut probing => Probed::Said(probed?),
                    () = tokio::time::sleep(settings.probe) => Probed::Silent,
                }
            }
        }
    };
    let silent = matches!(first, Probed::Silent);
    match first {
        Probed::Said(Some(Ok(found))) => return Ok(*found),
        Probed::Said(Some(Err(supported))) => only_legacy(&supported)?,
        Probed::Opened(opened) => return Ok(link.opened(*opened)),
        Probed::Said(None) | Probed::Silent => {}
    }
    match open(link, settings).await {
        Ok(opened) => Ok(link.opened(opened)),
        // It was slow to wake up.
        Err(_) if silent => match probe(link, settings).await? {
            Some(Ok(found)) => Ok(*found),
            _ => Ok(link.opened(open(link, settings).await?)),
        },
        Err(why) => Err(why),
    }
}

/// What came of asking what a server is.
enum Probed {
    Said(Option<Result<Box<Found>, Vec<String>>>),
    Opened(Box<Opened>),
    Silent,
}

/// Asks a server whether it is modern.
async fn probe(
    link: &Link,
    settings: &Settings,
) -> Result<Option<Result<Box<Found>, Vec<String>>>, TransportError> {
    let params = Calls::discover(link.revision, &settings.introduction);
    let mut headers = mirrored::of_request(link.revision.as_str(), Method::Discover, &params, &[]);
    headers.extend(link.accepting());
    let probe = wire::request(&Id::number(1), Method::Discover.wire(), &params);
    let Asked { outcome, .. } = link.ask(Ask::post(probe, headers, true), settings).await?;
    Ok(outcome.as_ref().and_then(|outcome| discovered(outcome, settings)).map(|found| found.map(Box::new)))
}

/// A session that was opened.
struct Opened {
    session: Session,
    description: proto::Description,
    id: Option<HeaderValue>,
}

/// Opens a session.
async fn open(link: &Link, settings: &Settings) -> Result<Opened, NotOpened> {
    let params = Session::initialize(Revision::LATEST_LEGACY, &settings.introduction);
    let initialize = wire::request(&Id::number(2), Method::Initialize.wire(), &params);
    let asked = link.ask(Ask::post(initialize, link.accepting(), true), settings).await?;
    let not_opened = |why| NotOpened { why, posts: !asked.status.is_client_error() };
    let Some(outcome) = asked.outcome else {
        let why = format!("{} does not speak the protocol: {}", link.shown(), asked.shown);
        return Err(not_opened(TransportError::Protocol(why)));
    };
    let (session, description, initialized) =
        Session::open(outcome).map_err(|why| not_opened(refused(&why)))?;
    let id = asked.headers.get(name::SESSION_ID).cloned();
    let headers = headers_of(id.as_ref(), version_of(&session).as_ref());
    let told = link.http.send(Ask::post(initialized, headers, true));
    let response =
        tokio::time::timeout(ACCEPT, told).await.map_err(|_| TransportError::Timeout(ACCEPT))??;
    if !response.status().is_success() {
        let why = format!("{} answers {} to the end of its handshake", link.shown(), response.status());
        return Err(TransportError::Protocol(why).into());
    }
    Ok(Opened { session, description, id })
}

/// What the version header says in a session; some revisions have none.
fn version_of(session: &Session) -> Option<HeaderValue> {
    let absent = session.revision().rules().version_header == VersionHeader::Absent;
    (!absent).then(|| HeaderValue::from_static(session.revision().as_str()))
}

fn headers_of(session: Option<&HeaderValue>, version: Option<&HeaderValue>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    let both = [(name::SESSION_ID, session), (name::PROTOCOL_VERSION, version)];
    for (name, value) in both.into_iter().filter_map(|(name, value)| Some((name, value?.clone()))) {
        headers.insert(name, value);
    }
    headers
}

/// What came back to a request.
pub(super) struct Asked {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    /// The response, where the body holds one.
    pub(super) outcome: Option<Result<Raw, Raw>>,
    /// It names the request that it answers.
    pub(super) own: bool,
    /// What it is, in words.
    shown: String,
}

impl Link {
    fn opened(&mut self, opened: Opened) -> Found {
        self.session = opened.id;
        self.revision = opened.session.revision();
        self.version = version_of(&opened.session);
        Found { edge: Edge::Legacy(opened.session), description: opened.description }
    }

    fn shown(&self) -> String {
        crate::error::shown(self.http.url().as_str())
    }

    /// The headers of a request outside any session.
    pub(super) fn accepting(&self) -> HeaderMap {
        headers_of(None, None)
    }

    /// The headers of a session.
    pub(super) fn of(&self, session: Option<HeaderValue>) -> HeaderMap {
        headers_of(session.as_ref(), self.version.as_ref())
    }

    /// Opens a stream of the session, or goes on with one behind an event.
    async fn get(&self, seen: Option<&str>) -> Result<reqwest::Response, TransportError> {
        let mut headers = self.of(self.session.clone());
        if let Some(seen) = seen.and_then(|seen| HeaderValue::from_str(seen).ok()) {
            headers.insert(name::LAST_EVENT_ID, seen);
        }
        self.http.send(Ask::stream(headers)).await
    }

    /// Posts a message of the session.
    async fn post(
        &self,
        body: Bytes,
        headers: HeaderMap,
        repeatable: bool,
    ) -> Result<reqwest::Response, TransportError> {
        let mut all = self.of(self.session.clone());
        all.extend(headers);
        self.wanted(self.http.send(Ask::post(body, all, repeatable)).await?)
    }

    fn wanted(&self, response: reqwest::Response) -> Result<reqwest::Response, TransportError> {
        if response.status() == StatusCode::UNAUTHORIZED {
            return Err(TransportError::Protocol(format!("{} wants to know who asks (401)", self.shown())));
        }
        Ok(response)
    }

    /// Sends a request and reads its response; `None` where the body holds none.
    pub(super) async fn ask(&self, ask: Ask, settings: &Settings) -> Result<Asked, TransportError> {
        let response = self.wanted(self.http.send(ask).await?)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let (mut outcome, mut own) = (None, false);
        let mut seen = Seen::default();
        let reading = messages(response, settings.limits, &mut seen, |heard| {
            if let Heard::Message(Message::Response { id, outcome: found }) = heard {
                own = id.is_some();
                outcome = Some(found);
            }
            std::future::ready(outcome.is_none())
        });
        let broke = reading.await.err();
        let mut shown = described(status, &headers, &seen);
        if let Some(why) = seen.broken.or(broke) {
            shown.push_str(&format!(" ({why})"));
        }
        Ok(Asked { status, headers, outcome, own, shown })
    }

    /// Posts a message that is not answered.
    pub(super) async fn tell(&self, message: Bytes, settings: &Settings) -> Result<(), TransportError> {
        let posting = self.post(message, HeaderMap::new(), true);
        let response =
            tokio::time::timeout(ACCEPT, posting).await.map_err(|_| TransportError::Timeout(ACCEPT))??;
        match response.status() {
            status if status.is_success() => Ok(()),
            status
                if doubtful(status, false, None)
                    && self.is_forgotten(status == StatusCode::NOT_FOUND, settings).await =>
            {
                Err(forgotten())
            }
            status => Err(TransportError::Protocol(format!("{} answered {status}", self.shown()))),
        }
    }
}

/// A server that no longer knows the session.
fn forgotten() -> TransportError {
    TransportError::Closed(": it no longer knows our session".into())
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
    let tool = outgoing.params.string("name").filter(|_| request.method == Method::ToolsCall);
    let tool = tool.and_then(|tool| shared.lock().tools.get(&*tool).cloned());
    let repeatable = request.method != Method::ToolsCall || tool.as_ref().is_some_and(|tool| tool.repeatable);
    let mirrors = tool.as_ref().map(|tool| &*tool.mirrors).unwrap_or_default();
    let headers = match modern {
        true => mirrored::of_request(link.revision.as_str(), request.method, &outgoing.params, mirrors),
        false => HeaderMap::new(),
    };
    let gone = || Err(shared.why_gone());
    let answered = if modern {
        let reading = read(shared, link, key, outgoing.message, headers, repeatable);
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
                read(&held, link, key, outgoing.message, headers, repeatable).await;
            }
        });
        match shared.lock().calls.get_mut(&key) {
            Some(slot) => slot.reading = Some(reading.abort_handle()),
            None => reading.abort(),
        }
        answer.await.unwrap_or_else(|_| gone())
    };
    if let (Ok(Answer::Complete(result)), Method::ToolsList) = (&answered, request.method) {
        shared.lock().tools.extend(listed(result));
    }
    answered
}

/// Sends what starts a listen, and starts to read what it tells. A legacy session has one stream for all that concerns
/// no call.
pub(super) async fn listen(
    shared: &Arc<Shared>,
    link: &Link,
    key: CallKey,
    requests: Vec<(CallKey, Outgoing)>,
) -> Result<(), Rejection> {
    if link.revision.rules().disconnect == Disconnect::Cancels {
        for (_, outgoing) in requests {
            follow_listen(shared, link, key, outgoing).await?;
        }
        return Ok(());
    }
    if !link.streaming.swap(true, Ordering::Relaxed) {
        tokio::spawn(watch(Arc::downgrade(shared), shared.gone.clone()));
    }
    let asking = requests.into_iter().map(|(key, outgoing)| subscribe(shared, link, key, outgoing.message));
    stream::iter(asking).for_each_concurrent(SUBSCRIBED_AT_ONCE, |asking| asking).await;
    Ok(())
}

/// Sends a listen of its own, and has its response read.
async fn follow_listen(
    shared: &Arc<Shared>,
    link: &Link,
    key: CallKey,
    outgoing: Outgoing,
) -> Result<(), Rejection> {
    let weak = Arc::downgrade(shared);
    let headers =
        mirrored::of_request(link.revision.as_str(), Method::SubscriptionsListen, &outgoing.params, &[]);
    let posting = link.post(outgoing.message, headers, true);
    let response = posting.await.map_err(|e| Rejection::Internal(e.told().into()))?;
    let limits = shared.settings.limits;
    let reading = tokio::spawn(async move {
        let mut seen = Seen::default();
        let read = messages(response, limits, &mut seen, |heard| {
            let known = weak.upgrade().map(|shared| shared.take_in(heard, Some(key))).is_some();
            std::future::ready(known)
        });
        let _ = read.await;
        if let Some(shared) = weak.upgrade() {
            shared.lock().listens.remove(&key);
        }
    });
    match shared.lock().listens.get_mut(&key) {
        Some(listen) => listen.reading = Some(reading.abort_handle()),
        None => reading.abort(),
    }
    Ok(())
}

/// Has a legacy server watch a resource, and takes in what it answers.
async fn subscribe(shared: &Arc<Shared>, link: &Link, key: CallKey, message: Bytes) {
    let ask = Ask::post(message, link.of(link.session.clone()), true);
    let heard = match link.ask(ask, &shared.settings).await {
        Ok(Asked { outcome: Some(outcome), .. }) => {
            Heard::Message(Message::Response { id: Some(Id::number(key)), outcome })
        }
        // The answer comes on the session's stream.
        Ok(Asked { status, .. }) if status.is_success() => return,
        Ok(Asked { status, shown, .. }) => {
            if doubtful(status, false, None)
                && link.is_forgotten(status == StatusCode::NOT_FOUND, &shared.settings).await
            {
                return shared.end("the server no longer knows our session", "");
            }
            Heard::Broken { answers: Some(key), why: shown }
        }
        Err(error) => Heard::Broken { answers: Some(key), why: error.to_string() },
    };
    shared.take_in(heard, Some(key));
}

/// Reads the stream of a session until the session ends; goes on with it when it breaks, the more slowly the less
/// comes on it.
async fn watch(shared: Weak<Shared>, gone: CancellationToken) {
    let mut seen = Seen::default();
    let mut vain = 0u32;
    let reading = async {
        while let Some(strong) = shared.upgrade() {
            let super::Link::Http(link) = &strong.link else { return };
            let settings = &strong.settings;
            let limits = settings.limits;
            let response = link.get(seen.last.as_deref()).await;
            let status = response.as_ref().map(reqwest::Response::status).ok();
            if let Some(status) = status
                && link.session.is_some()
                && doubtful(status, false, None)
                && link.is_forgotten(status == StatusCode::NOT_FOUND, settings).await
            {
                // Whoever wants it connects again, and is told what changed.
                return strong.end("the server no longer knows our session", "");
            }
            drop(strong);
            seen.messages = false;
            match response {
                Ok(response) if response.status().is_success() => {
                    let read = messages(response, limits, &mut seen, |heard| {
                        let shared = shared.upgrade();
                        async move {
                            let Some(shared) = shared else { return false };
                            let replies = shared.take_in(heard, None);
                            shared.owe(replies).await;
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
            vain = if seen.messages { 0 } else { vain + 1 };
            tokio::time::sleep(seen.pause(vain.saturating_sub(1))).await;
        }
    };
    tokio::select! {
        () = reading => {}
        () = gone.cancelled() => {}
    }
}

/// Posts a call and takes in whatever comes back.
async fn read(
    shared: &Arc<Shared>,
    link: &Link,
    key: CallKey,
    message: Bytes,
    headers: HeaderMap,
    repeatable: bool,
) {
    let outcome = match link.post(message, headers, repeatable).await {
        // It did not take the call, and will take no other: whoever wants it connects again.
        Err(error @ (TransportError::Closed(_) | TransportError::Reach { .. })) => {
            return not_taken(shared, key, &error);
        }
        Err(error) => {
            tracing::warn!(%error, "a call got no answer of a server");
            Err(error.told().to_owned())
        }
        Ok(response) => match follow(shared, link, key, response).await {
            Ok(Followed::Over) => Ok(()),
            Ok(Followed::Forgotten) => return not_taken(shared, key, &forgotten()),
            Err(why) => Err(why),
        },
    };
    // Where the answer was in it, nobody waits any more and this is nothing.
    if let Err(why) = outcome {
        shared.lock().answered(key, Err(Rejection::Internal(why)));
    }
}

/// Ends the connection after a call that was not taken, which may be sent again on another one.
fn not_taken(shared: &Shared, key: CallKey, error: &TransportError) {
    let slot = shared.lock().calls.remove(&key);
    shared.end(error.told(), &format!(": {error}"));
    if let Some(Slot { answer: Waiting::For(waiting), .. }) = slot {
        let _ = waiting.send(Err(Rejection::Gone(error.told().into())));
    }
}

/// How reading what came back to a call ended.
enum Followed {
    Over,
    /// The server does not know us, and did nothing.
    Forgotten,
}

/// Takes in what comes back to a call, and goes on with its stream where that breaks off before the answer.
async fn follow(
    shared: &Arc<Shared>,
    link: &Link,
    key: CallKey,
    response: reqwest::Response,
) -> Result<Followed, String> {
    let settings = &shared.settings;
    let (status, headers) = (response.status(), response.headers().clone());
    let gone = status == StatusCode::NOT_FOUND;
    let mut seen = Seen::default();
    let mut response = Ok(response);
    let mut vain = 0u32;
    loop {
        let before = seen.last.clone();
        let (mut doubt, mut foreign) = (None, None);
        let broke = match response {
            Ok(response) => {
                let read = messages(response, settings.limits, &mut seen, |heard| {
                    let (replies, more) = match heard {
                        Heard::Message(Message::Response { id, outcome }) => {
                            let own = id.as_ref().and_then(Id::as_number) == Some(key);
                            let error = outcome.as_ref().err();
                            let doubtful = error.is_some() && doubtful(status, own, error);
                            foreign = id.clone().filter(|_| !own).or(foreign.take());
                            let response = Heard::Message(Message::Response { id, outcome });
                            match doubtful {
                                true => {
                                    doubt = Some(response);
                                    (Vec::new(), false)
                                }
                                false => (shared.take_in(response, Some(key)), true),
                            }
                        }
                        other => (shared.take_in(other, Some(key)), true),
                    };
                    async move {
                        shared.owe(replies).await;
                        more
                    }
                });
                read.await.err()
            }
            Err(why) => Some(why),
        };
        if let Some(error) = doubt {
            if link.is_forgotten(gone, settings).await {
                return Ok(Followed::Forgotten);
            }
            shared.take_in(error, Some(key));
        }
        if !shared.lock().awaits(key) {
            return Ok(Followed::Over);
        }
        if doubtful(status, false, None) && link.is_forgotten(gone, settings).await {
            return Ok(Followed::Forgotten);
        }
        vain = if seen.last == before { vain + 1 } else { 0 };
        let resumable = link.revision.rules().disconnect == Disconnect::Continues && seen.last.is_some();
        if !resumable || vain > RESUMPTIONS {
            if let Some(id) = foreign {
                return Err(format!(
                    "the server answered under the id {}, which is not this call's",
                    id.as_str()
                ));
            }
            let nothing = match &seen.broken {
                Some(why) => format!("the server's answer cannot be read: {why}"),
                None if status.is_success() && seen.messages => {
                    "the server closed the stream without an answer".to_owned()
                }
                None => format!(
                    "the server gave no answer of the protocol: {}",
                    described(status, &headers, &seen)
                ),
            };
            return Err(broke.unwrap_or(nothing));
        }
        tokio::time::sleep(seen.pause(vain.saturating_sub(1))).await;
        response = match link.get(seen.last.as_deref()).await {
            Ok(response) if response.status().is_success() => Ok(response),
            Ok(response) => {
                return Err(format!("the server does not go on with its answer: {}", response.status()));
            }
            Err(error) => Err(error.to_string()),
        };
    }
}

/// What is known of listed tools.
fn listed(result: &Object) -> impl Iterator<Item = (String, Tool)> {
    let tools = result.get("tools").and_then(|raw| raw.array().ok()).unwrap_or_default();
    tools.into_iter().filter_map(|tool| {
        let tool = tool.object().ok()?;
        let mirrors = tool.get("inputSchema").and_then(|schema| mirrored::header_params(schema).ok());
        let hints = tool.get("annotations").and_then(|raw| raw.object().ok()).unwrap_or_default();
        let says = |hint: &str| hints.get(hint).is_some_and(Raw::is_true);
        let repeatable = says("readOnlyHint") || says("idempotentHint");
        Some((
            tool.string("name")?.to_string(),
            Tool { mirrors: mirrors.unwrap_or_default().into(), repeatable },
        ))
    })
}
