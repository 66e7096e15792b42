//! A server of HTTP+SSE: all that it says comes on one event stream, what it is told is posted.
//!
//! <https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse>

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::StreamExt as _;
use http::{HeaderMap, StatusCode};
use proto::CallKey;
use proto::{BoxStream, Glance};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::body::{cause, is_events};
use super::http::ACCEPT;
use super::pipe::{Feed, NotOpened, Opening, find_out, not_modern, read};
use super::post::{Ask, Http};
use super::session::doubtful;
use super::{Client, FIRST, Link, Settings};
use crate::error::shown;
use crate::line::Line;
use crate::{BACKLOG, TransportError, sse};

/// The kind of the event that names where messages are posted.
const ENDPOINT: &str = "endpoint";

/// Opens the event stream at a URL, and a session on it.
pub(super) async fn connect(http: Arc<Http>, settings: Settings) -> Result<Client, TransportError> {
    let limit = settings.connect;
    let connecting = open(http, settings);
    tokio::time::timeout(limit, connecting).await.map_err(|_| TransportError::Timeout(limit))?
}

async fn open(http: Arc<Http>, settings: Settings) -> Result<Client, TransportError> {
    let gone = CancellationToken::new();
    // Whoever stops waiting for the server lets go of it.
    let abandoned = gone.clone().drop_guard();
    let url = http.url().clone();
    let mut events = Events::open(&http, settings.limits.message).await?;
    let endpoint = events.endpoint(&url).await?;
    let (out, queue) = mpsc::channel(BACKLOG);
    let failure = Failure::default();
    events.failure = failure.clone();
    tokio::spawn(write(http, endpoint, queue, gone.clone(), failure));
    // Only servers of handshake revisions have this transport.
    let found = match find_out(&mut events, &out, &settings, Opening::Initialize).await {
        Ok(found) => found,
        Err(NotOpened::Failed(error)) => return Err(error),
        Err(NotOpened::Mixed) => return Err(not_modern()),
    };
    abandoned.disarm();
    let client = Client::new(found, Link::Pipe { out, keeper: None }, settings, gone.clone());
    let ended = format!("the event stream of {} ended", shown(url.as_str()));
    tokio::spawn(read(events, Arc::downgrade(&client.0), gone.clone(), gone, ended));
    Ok(client)
}

/// Why messages can no longer be posted, and which call was not taken.
#[derive(Clone, Debug, Default)]
struct Failure(Arc<Mutex<(Option<String>, Option<CallKey>)>>);

/// The messages of an event stream.
struct Events {
    body: BoxStream<Result<Bytes, reqwest::Error>>,
    reader: sse::Reader,
    ready: VecDeque<sse::Read>,
    failure: Failure,
}

impl Events {
    async fn open(http: &Http, limit: usize) -> Result<Events, TransportError> {
        let response = http.send(Ask::stream(HeaderMap::new())).await?;
        if response.status() != StatusCode::OK || !is_events(response.headers()) {
            let (status, url) = (response.status(), shown(http.url().as_str()));
            let why = format!("{url} does not open an event stream: it answered {status}");
            return Err(TransportError::Protocol(why));
        }
        Ok(Events {
            body: Box::pin(response.bytes_stream()),
            reader: sse::Reader::new(limit),
            ready: VecDeque::new(),
            failure: Failure::default(),
        })
    }

    /// The next event that has data.
    async fn event(&mut self) -> io::Result<Option<sse::Read>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            let Some(chunk) = self.body.next().await else { return Ok(None) };
            self.ready.extend(self.reader.feed(&chunk.map_err(|e| io::Error::other(cause(&e)))?));
        }
    }

    /// Where messages are posted, which the first event says. It must be where the stream is: what is sent with each
    /// message is meant for that place alone.
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

impl Feed for Events {
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

    fn ended(&self) -> Option<String> {
        self.failure.0.lock().unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    fn not_taken(&self) -> Option<CallKey> {
        self.failure.0.lock().unwrap_or_else(PoisonError::into_inner).1
    }
}

/// Posts queued messages, one after the other, until nobody sends any more or the server is to go. A server that does
/// not take one is gone: nothing else would tell whoever waits for an answer.
async fn write(
    http: Arc<Http>,
    endpoint: Url,
    mut queue: mpsc::Receiver<Bytes>,
    gone: CancellationToken,
    failure: Failure,
) {
    let writing = async {
        while let Some(message) = queue.recv().await {
            let call = Glance::of(&message).asks();
            // A call may not be carried out twice, and is not told from a read here.
            let ask = Ask::post(message, HeaderMap::new(), call.is_none_or(|key| key < FIRST));
            let posting = tokio::time::timeout(ACCEPT, http.send_to(endpoint.clone(), ask));
            let (why, taken) = match posting.await {
                Ok(Ok(response)) if response.status().is_success() => continue,
                Ok(Ok(response)) => {
                    let status = response.status();
                    (format!(": it answered {status} to a message"), !doubtful(status, false, None))
                }
                Ok(Err(error)) => {
                    let taken = !matches!(error, TransportError::Reach { .. });
                    (format!(": a message could not be posted: {error}"), taken)
                }
                Err(_) => (format!(": it took no message within {} s", ACCEPT.as_secs()), true),
            };
            *failure.0.lock().unwrap_or_else(PoisonError::into_inner) = (Some(why), call.filter(|_| !taken));
            return;
        }
    };
    tokio::select! {
        () = writing => gone.cancel(),
        () = gone.cancelled() => {}
    }
}
