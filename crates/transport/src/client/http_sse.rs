//! Servers of HTTP+SSE: they send all messages on one event stream, and the client posts its messages one by one.
//!
//! <https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse>

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use proto::{CallKey, Outline};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::connection::Connection;
use super::http::{ACCEPT, HttpClient, HttpRequest, Response, cause, is_events, may_be_unknown};
use super::negotiation::{FIRST_CALL_ID, not_modern};
use super::outbox::{self, outbox};
use super::pipe::{self, MessageSource, Messages, OpenError, Opening, Pipe, negotiate};
use super::settings::Settings;
use crate::error::shown;
use crate::line::Line;
use crate::{BACKLOG, TransportError, sse};

/// The type of the event that names the URL to which messages are posted.
const ENDPOINT: &str = "endpoint";

/// A connection that is ready, the messages that it queues, and the way to its server.
type Opened = (Arc<Connection>, mpsc::UnboundedReceiver<outbox::Queued>, Pipe);

/// Opens the event stream at the client's URL, and a session on it.
pub(super) async fn connect(http: Arc<HttpClient>, settings: Settings) -> Result<Opened, TransportError> {
    let limit = settings.connect;
    let connecting = open(http, settings);
    tokio::time::timeout(limit, connecting).await.map_err(|_| TransportError::Timeout(limit))?
}

async fn open(http: Arc<HttpClient>, settings: Settings) -> Result<Opened, TransportError> {
    let gone = CancellationToken::new();
    // Where nobody waits for the connection any more, it is closed.
    let abandoned = gone.clone().drop_guard();
    let url = http.url().clone();
    let failure = Failure::default();
    let mut events = Events::open(&http, settings.limits.message, failure.clone()).await?;
    let endpoint = events.endpoint(&url).await?;
    let (messages, queue) = mpsc::channel(BACKLOG);
    tokio::spawn(write(http, endpoint, queue, gone.clone(), failure));
    let messages = Messages::Posted(messages);
    // Only legacy revisions have this transport.
    let negotiated = match negotiate(&mut events, &messages, &settings, Opening::Initialize).await {
        Ok(negotiated) => negotiated,
        Err(OpenError::Failed(error)) => return Err(error),
        Err(OpenError::BothEras) => return Err(not_modern()),
    };
    abandoned.disarm();
    let (outbox, queued) = outbox();
    let connection = Arc::new(Connection::new(negotiated, false, settings, outbox, gone.clone()));
    let ended = format!("the event stream of {} ended", shown(url.as_str()));
    tokio::spawn(pipe::read(events, Arc::downgrade(&connection), gone.clone(), gone, ended));
    Ok((connection, queued, Pipe { messages, process: None }))
}

/// Why a message could not be posted, for the one who reads the event stream.
#[derive(Clone, Default)]
struct Failure(Arc<Mutex<FailureState>>);

#[derive(Default)]
struct FailureState {
    /// The end of a sentence.
    why: Option<String>,
    /// The call in the message, where the server did not begin with it.
    refused_call: Option<CallKey>,
}

impl Failure {
    fn state(&self) -> MutexGuard<'_, FailureState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The messages of an event stream.
struct Events {
    response: Response,
    reader: sse::Reader,
    ready: VecDeque<sse::Read>,
    failure: Failure,
}

impl Events {
    async fn open(http: &HttpClient, limit: usize, failure: Failure) -> Result<Events, TransportError> {
        let response = http.send(HttpRequest::event_stream(HeaderMap::new())).await?;
        if response.status() != StatusCode::OK || !is_events(response.headers()) {
            let (status, url) = (response.status(), shown(http.url().as_str()));
            let why = format!("{url} does not open an event stream: it answered {status}");
            return Err(TransportError::Protocol(why));
        }
        Ok(Events { response, reader: sse::Reader::new(limit), ready: VecDeque::new(), failure })
    }

    /// The next event that has data.
    async fn event(&mut self) -> io::Result<Option<sse::Read>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            let chunk = self.response.chunk().await.map_err(|e| io::Error::other(cause(&e)))?;
            let Some(chunk) = chunk else { return Ok(None) };
            self.ready.extend(self.reader.feed(&chunk));
        }
    }

    /// The URL to which messages are posted; the first event names it. It must have the origin of the stream, since the
    /// headers that are sent with each message may hold secrets.
    async fn endpoint(&mut self, url: &Url) -> Result<Url, TransportError> {
        let wrong = |why: &str| {
            TransportError::Protocol(format!("the event stream of {} {why}", shown(url.as_str())))
        };
        let event = self.event().await.map_err(|e| wrong(&format!("broke off: {e}")))?;
        let Some(sse::Read::Event(event)) = event else {
            return Err(wrong("does not begin with an endpoint event"));
        };
        if event.kind != ENDPOINT {
            return Err(wrong("does not begin with an endpoint event"));
        }
        let named = std::str::from_utf8(&event.data).ok().and_then(|text| url.join(text.trim()).ok());
        let named = named.ok_or_else(|| wrong("names an endpoint that is no URL"))?;
        if named.origin() != url.origin() {
            return Err(wrong("names an endpoint of another origin, which is not used"));
        }
        Ok(named)
    }
}

impl MessageSource for Events {
    async fn next(&mut self) -> io::Result<Option<Line>> {
        while let Some(event) = self.event().await? {
            match event {
                sse::Read::TooLong(seen) => return Ok(Some(Line::TooLong(Box::new(seen)))),
                sse::Read::Event(event) if event.kind.is_empty() || event.kind == "message" => {
                    return Ok(Some(Line::Message(event.data)));
                }
                sse::Read::Event(_) => {}
            }
        }
        Ok(None)
    }

    async fn why_ended(&mut self) -> String {
        self.failure.state().why.clone().unwrap_or_default()
    }

    fn refused_call(&self) -> Option<CallKey> {
        self.failure.state().refused_call
    }
}

/// Posts queued messages, one after the other, until the connection ends. Where the server does not accept one, the
/// connection ends: nothing else would tell whoever waits for the answer.
async fn write(
    http: Arc<HttpClient>,
    endpoint: Url,
    mut queue: mpsc::Receiver<Bytes>,
    gone: CancellationToken,
    failure: Failure,
) {
    let writing = async {
        while let Some(message) = queue.recv().await {
            let call = Outline::of(&message).asks();
            // Whether a call may be made twice is not known here.
            let is_repeatable = call.is_none_or(|key| key < FIRST_CALL_ID);
            let request = HttpRequest::post(message, HeaderMap::new(), is_repeatable);
            let posting = tokio::time::timeout(ACCEPT, http.send_to(endpoint.clone(), request));
            let (why, is_begun) = match posting.await {
                Ok(Ok(response)) if response.status().is_success() => continue,
                Ok(Ok(response)) => {
                    let status = response.status();
                    (format!(": it answered {status} to a message"), !may_be_unknown(status, false, None))
                }
                Ok(Err(error)) => {
                    let is_begun = !matches!(error, TransportError::Unreachable { .. });
                    (format!(": a message could not be posted: {error}"), is_begun)
                }
                Err(_) => (format!(": it took no message within {} s", ACCEPT.as_secs()), true),
            };
            *failure.state() = FailureState { why: Some(why), refused_call: call.filter(|_| !is_begun) };
            return;
        }
    };
    tokio::select! {
        () = writing => gone.cancel(),
        () = gone.cancelled() => {}
    }
}
