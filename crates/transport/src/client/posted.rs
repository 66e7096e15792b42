//! A server of HTTP+SSE: all that it says comes on one event stream, what it is told is posted.
//!
//! <https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse>

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use http::{StatusCode, header};
use proto::BoxStream;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::pipe::{Feed, find_out, read};
use super::{Client, Link, Settings};
use crate::line::Line;
use crate::{BACKLOG, TransportError, sse};

/// How long a server may take to accept a message.
const ACCEPT: Duration = Duration::from_secs(30);

/// The kind of the event that names where messages are posted.
const ENDPOINT: &str = "endpoint";

/// Opens the event stream at a URL, and a session on it.
pub(super) async fn connect(
    client: reqwest::Client,
    url: Url,
    settings: Settings,
) -> Result<Client, TransportError> {
    let limit = settings.connect;
    let connecting = open(client, url, settings);
    tokio::time::timeout(limit, connecting).await.map_err(|_| TransportError::Timeout(limit))?
}

async fn open(
    client: reqwest::Client,
    url: Url,
    settings: Settings,
) -> Result<Client, TransportError> {
    let gone = CancellationToken::new();
    // Whoever stops waiting for the server lets go of it.
    let abandoned = gone.clone().drop_guard();
    let mut events = Events::open(&client, &url, settings.limits.message).await?;
    let endpoint = events.endpoint(&url).await?;
    let (out, queue) = mpsc::channel(BACKLOG);
    let failure = Failure::default();
    events.failure = failure.clone();
    tokio::spawn(write(client, endpoint, queue, gone.clone(), failure));
    // Only servers of handshake revisions have this transport.
    let found = find_out(&mut events, &out, &settings, false).await?;
    abandoned.disarm();
    let client = Client::new(found, Link::Pipe { out, keeper: None }, settings, gone);
    let ended = format!("the event stream of {url} ended");
    tokio::spawn(read(events, Arc::downgrade(&client.0), client.0.gone.clone(), ended));
    Ok(client)
}

/// Why messages can no longer be posted.
#[derive(Clone, Debug, Default)]
struct Failure(Arc<Mutex<Option<String>>>);

/// The messages of an event stream.
struct Events {
    body: BoxStream<Result<Bytes, reqwest::Error>>,
    reader: sse::Reader,
    ready: VecDeque<sse::Event>,
    failure: Failure,
}

impl Events {
    async fn open(client: &reqwest::Client, url: &Url, limit: usize) -> Result<Events, TransportError> {
        let reach = |why: String| TransportError::Reach { url: url.to_string(), why };
        let request = client.get(url.clone()).header(header::ACCEPT, "text/event-stream");
        let response = request.send().await.map_err(|e| reach(e.to_string()))?;
        let kind = response.headers().get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok());
        if response.status() != StatusCode::OK || !kind.is_some_and(|k| k.starts_with("text/event-stream")) {
            let why = format!("{url} does not open an event stream: it answered {}", response.status());
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
    async fn event(&mut self) -> io::Result<Option<sse::Event>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            let Some(chunk) = self.body.next().await else { return Ok(None) };
            let chunk = chunk.map_err(io::Error::other)?;
            let too_long = |_| io::Error::other("an event is over the limit");
            self.ready.extend(self.reader.feed(&chunk).map_err(too_long)?);
        }
    }

    /// Where messages are posted, which the first event says. It must be where the stream is: what is sent with each
    /// message is meant for that place alone.
    async fn endpoint(&mut self, url: &Url) -> Result<Url, TransportError> {
        let wrong = |why: &str| TransportError::Protocol(format!("the event stream of {url} {why}"));
        let event = self.event().await.map_err(|e| wrong(&format!("broke off: {e}")))?;
        let event = event.filter(|event| event.kind == ENDPOINT);
        let event = event.ok_or_else(|| wrong("does not begin with an endpoint event"))?;
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
            if event.kind.is_empty() || event.kind == "message" {
                return Ok(Some(Line::Message(event.data)));
            }
        }
        Ok(None)
    }

    fn ended(&self) -> Option<String> {
        self.failure.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Posts queued messages, one after the other, until nobody sends any more or the server is to go. A server that does
/// not take one is gone: nothing else would tell whoever waits for an answer.
async fn write(
    client: reqwest::Client,
    endpoint: Url,
    mut queue: mpsc::Receiver<Bytes>,
    gone: CancellationToken,
    failure: Failure,
) {
    let writing = async {
        while let Some(message) = queue.recv().await {
            let posting = client
                .post(endpoint.clone())
                .header(header::CONTENT_TYPE, "application/json")
                .body(message)
                .timeout(ACCEPT)
                .send();
            let why = match posting.await {
                Ok(response) if response.status().is_success() => continue,
                Ok(response) => format!(": it answered {} to a message", response.status()),
                Err(error) => format!(": a message could not be posted: {error}"),
            };
            *failure.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
            return;
        }
    };
    tokio::select! {
        () = writing => gone.cancel(),
        () = gone.cancelled() => {}
    }
}
