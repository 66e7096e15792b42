//! A server behind a URL.
//!
//! <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#backward-compatibility>

use std::sync::{Arc, Once};

use bytes::Bytes;
use futures_util::StreamExt as _;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use proto::legacy::client::Session;
use proto::modern::client::Calls;
use proto::upstream::{CallKey, Edge, Outgoing};
use proto::wire::{self, Id, Message};
use proto::{Answer, Mirror, Object, Raw, Rejection, Request, header as mirrored};
use spec::{Disconnect, Method, Revision, header as name};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::pipe::{discovered, only_legacy, refused};
use super::{Client, Found, Settings, Shared};
use crate::TransportError;
use crate::sse;

/// Where and how requests are sent.
pub(super) struct Link {
    client: reqwest::Client,
    url: Url,
    session: Option<HeaderValue>,
    revision: Revision,
    limit: usize,
}

/// The TLS provider must be there before a client is built.
fn client() -> Result<reqwest::Client, String> {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // It fails where the application installed one, which then serves.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let built = reqwest::Client::builder()
        .user_agent(concat!("dateline/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .tcp_nodelay(true)
        .build();
    built.map_err(|e| e.to_string())
}

/// Connects to a URL and finds out what is behind it.
pub(super) async fn connect(url: &str, settings: Settings) -> Result<Client, TransportError> {
    let unusable = |why: String| TransportError::Url { url: url.to_owned(), why };
    let parsed = Url::parse(url).map_err(|e| unusable(e.to_string()))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(unusable("it must begin with http:// or https://".into()));
    }
    let mut link = Link {
        client: client().map_err(unusable)?,
        url: parsed,
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
    let params = Calls::discover(link.revision, &settings.introduction);
    let headers = mirrored::of_request(link.revision.as_str(), Method::Discover, &params, &[]);
    let probe = wire::request(&Id::number(1), Method::Discover.wire(), &params);
    let (_, outcome) = link.ask(probe, headers, settings).await?;
    match outcome.as_ref().and_then(|outcome| discovered(outcome, settings)) {
        Some(Ok(found)) => return Ok(found),
        Some(Err(supported)) => only_legacy(&supported)?,
        None => {}
    }
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
