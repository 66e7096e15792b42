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
use spec::{Disconnect, Era, Method, Revision, header as name};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::pipe::{discovered, only_legacy, refused};
use super::{Client, Found, Settings, Shared};
use crate::TransportError;
use crate::sse;

/// A server behind a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    /// Where it is, with http or https.
    pub url: String,
    /// What is sent with every request, such as `Authorization`.
    pub headers: Vec<(String, String)>,
}

impl Remote {
    /// A URL without further headers.
    pub fn new(url: &str) -> Remote {
        Remote { url: url.to_owned(), headers: Vec::new() }
    }
}

/// How long a lost stream of a session waits before it is opened again.
const REOPEN: Duration = Duration::from_secs(2);

/// Where and how requests are sent.
pub(super) struct Link {
    client: reqwest::Client,
    url: Url,
    /// The session's own stream is read already.
    streaming: AtomicBool,
    session: Option<HeaderValue>,
    revision: Revision,
    limit: usize,
}

/// The TLS provider must be there before a client is built.
fn client(remote: &Remote) -> Result<reqwest::Client, String> {
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

/// Connects to a URL and finds out what is behind it.
pub(super) async fn connect(remote: &Remote, settings: Settings) -> Result<Client, TransportError> {
    let unusable = |why: String| TransportError::Url { url: remote.url.clone(), why };
    let parsed = Url::parse(&remote.url).map_err(|e| unusable(e.to_string()))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(unusable("it must begin with http:// or https://".into()));
    }
    let mut link = Link {
        client: client(remote).map_err(unusable)?,
        url: parsed,
        streaming: AtomicBool::new(false),
        session: None,
        revision: Revision::LATEST_MODERN,
        limit: settings.limits.message,
    };
    let connecting = find_out(&mut link, &settings);
    let found = tokio::time::timeout(settings.connect, connecting)
        .await
        .map_err(|_| TransportError::Timeout(settings.connect))??;
    Ok(Client::new(found, super::Link::Http(link), settings, CancellationToken::new()))
}

async fn find_out(link: &mut Link, settings: &Settings) -> Result<Found, TransportError> {
    if settings.era == Some(Era::Legacy)
        && let Ok(found) = open(link, settings).await
    {
        return Ok(found);
    }
    let params = Calls::discover(link.revision, &settings.introduction);
    let headers = mirrored::of_request(link.revision.as_str(), Method::Discover, &params, &[]);
    let probe = wire::request(&Id::number(1), Method::Discover.wire(), &params);
    let (_, outcome) = link.ask(probe, headers, settings).await?;
    match outcome.as_ref().and_then(|outcome| discovered(outcome, settings)) {
        Some(Ok(found)) => return Ok(found),
        Some(Err(supported)) => only_legacy(&supported)?,
        None => {}
    }
    open(link, settings).await
}

/// Opens a session.
async fn open(link: &mut Link, settings: &Settings) -> Result<Found, TransportError> {
    let params = Session::initialize(Revision::LATEST_LEGACY, &settings.introduction);
    let initialize = wire::request(&Id::number(2), Method::Initialize.wire(), &params);
    let (headers, outcome) = link.ask(initialize, HeaderMap::new(), settings).await?;
    let outcome = outcome.ok_or_else(|| {
        TransportError::Protocol(format!(
            "{} does not speak the protocol: it answers neither way of opening it",
            link.url
        ))
    })?;
    let (session, description, initialized) = Session::open(outcome).map_err(|why| refused(&why))?;
    link.session = headers.get(name::SESSION_ID).cloned();
    link.revision = session.revision();
    link.tell(initialized).await.map_err(|why| refused(&why))?;
    Ok(Found { edge: Edge::Legacy(session), description })
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

    /// Posts a message.
    async fn post(&self, body: Bytes, headers: HeaderMap) -> Result<reqwest::Response, TransportError> {
        let mut request = self
            .client
            .post(self.url.clone())
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, text/event-stream")
            .headers(headers);
        if let Some(session) = &self.session {
            request = request.header(name::SESSION_ID, session);
        }
        if self.session.is_some() || self.revision != Revision::LATEST_MODERN {
            request = request.header(name::PROTOCOL_VERSION, self.revision.as_str());
        }
        let response = request.body(body).send().await.map_err(|e| self.reach(&e))?;
        if response.status() == StatusCode::NOT_FOUND && self.session.is_some() {
            return Err(TransportError::Closed(": it no longer knows our session".into()));
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
    ) -> Result<(HeaderMap, Option<Result<Raw, Raw>>), TransportError> {
        let response = self.post(body, headers).await?;
        let headers = response.headers().clone();
        let mut found = None;
        let reading = messages(response, settings.limits, |message| {
            if let Message::Response { outcome, .. } = message {
                found = Some(outcome);
            }
            std::future::ready(found.is_none())
        });
        // A body that cannot be read holds no answer.
        let _ = reading.await;
        Ok((headers, found))
    }

    /// Posts a message that is not answered.
    pub(super) async fn tell(&self, message: Bytes) -> Result<(), Rejection> {
        let response =
            self.post(message, HeaderMap::new()).await.map_err(|e| Rejection::Internal(e.to_string()))?;
        match response.status() {
            status if status.is_success() => Ok(()),
            status => Err(Rejection::Internal(format!("{} answered {status}", self.url))),
        }
    }

    /// Ends the session.
    pub(super) async fn close(&self) {
        if let Some(session) = &self.session {
            let request = self.client.delete(self.url.clone()).header(name::SESSION_ID, session);
            let _ = request.header(name::PROTOCOL_VERSION, self.revision.as_str()).send().await;
        }
    }
}

/// Reads the messages of a response's body until there are no more, or no more are wanted.
async fn messages<F: Future<Output = bool>>(
    response: reqwest::Response,
    limits: wire::Limits,
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
        for data in reader.feed(&chunk).map_err(|_| too_long())? {
            if let Ok(message) = wire::read(data, &limits)
                && !on(message).await
            {
                return Ok(());
            }
        }
    }
    if !events && let Ok(message) = wire::read(whole.into(), &limits) {
        on(message).await;
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
            link.post(outgoing.message, headers).await.map_err(|e| Rejection::Internal(e.to_string()))?;
        let limits = shared.settings.limits;
        let reading = tokio::spawn(async move {
            let read = messages(response, limits, |message| {
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

/// Reads the stream of a session until the session ends; opens it again when it breaks.
async fn stream(shared: Weak<Shared>, gone: CancellationToken) {
    let reading = async {
        while let Some(strong) = shared.upgrade() {
            let super::Link::Http(link) = &strong.link else { return };
            let mut request = link.client.get(link.url.clone()).header(header::ACCEPT, "text/event-stream");
            if let Some(session) = &link.session {
                request = request.header(name::SESSION_ID, session);
            }
            let response = request.header(name::PROTOCOL_VERSION, link.revision.as_str()).send().await;
            let limits = strong.settings.limits;
            drop(strong);
            match response {
                Ok(response) if response.status().is_success() => {
                    let read = messages(response, limits, |message| {
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
                // It has no such stream, and says so.
                Ok(response) if response.status().is_client_error() => return,
                _ => {}
            }
            tokio::time::sleep(REOPEN).await;
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
            shared.end(&error.to_string());
            if let Some(super::Slot { answer: super::Waiting::For(waiting), .. }) = slot {
                let _ = waiting.send(Err(Rejection::Gone(error.to_string())));
            }
            return;
        }
        Err(error) => Err(error.to_string()),
        Ok(response) => {
            let status = response.status();
            let read = messages(
                response,
                wire::Limits { message: link.limit, ..shared.settings.limits },
                |message| {
                    let replies = shared.receive(message, Some(key));
                    async move {
                        let _ = shared.send(replies).await;
                        true
                    }
                },
            );
            match read.await {
                Ok(()) if status.is_success() => {
                    Err("the server closed the stream without an answer".to_owned())
                }
                Ok(()) => Err(format!("the server answered {status}")),
                Err(why) => Err(why),
            }
        }
    };
    // Where the answer was in it, nobody waits any more and this is nothing.
    if let Err(why) = outcome {
        shared.lock().answered(key, Err(Rejection::Internal(why)));
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
