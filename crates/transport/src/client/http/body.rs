//! Reads the messages in the body of an HTTP response: one JSON message, or a stream of events.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use proto::{FromServer, read_from_server, wire};

use super::pool::Response;
use crate::client::pipe::too_long;
use crate::sse;

/// The shortest pause before an event stream is opened again, so that a server with `retry: 0` is not flooded.
const MIN_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause before an event stream is opened again, whatever the server asks for.
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// The pause before an event stream is opened again where the server sends no `retry`.
const DEFAULT_PAUSE: Duration = Duration::from_secs(1);
/// How many bytes of a body are kept to say in an error how it begins.
const SHOWN: usize = 160;

/// What was read so far of one response, or of an event stream that is continued in several responses.
#[derive(Debug, Default)]
pub(super) struct ReadState {
    /// The id of the last event that has one.
    pub(super) last_event_id: Option<String>,
    /// How long the client should wait before it opens the stream again, as the server asks for.
    retry: Option<Duration>,
    /// How the body begins.
    beginning: Vec<u8>,
    /// Why a message could not be read.
    pub(super) unreadable: Option<String>,
    /// Whether a message was read.
    pub(super) has_messages: bool,
}

impl ReadState {
    /// How long to wait before the stream is opened again. It doubles with each of the attempts that brought nothing.
    pub(super) fn pause(&self, failures: u32) -> Duration {
        let first = self.retry.unwrap_or(DEFAULT_PAUSE).clamp(MIN_PAUSE, MAX_PAUSE);
        first.saturating_mul(1 << failures.min(16)).min(MAX_PAUSE)
    }
}

/// Whether a body is an event stream. The case of a media type does not count, and it may have parameters.
pub(in crate::client) fn is_events(headers: &HeaderMap) -> bool {
    let named = headers.get(header::CONTENT_TYPE).and_then(media_type);
    named.is_some_and(|kind| kind.eq_ignore_ascii_case("text/event-stream"))
}

fn media_type(content_type: &HeaderValue) -> Option<&str> {
    Some(content_type.to_str().ok()?.split(';').next().unwrap_or_default().trim())
}

/// Describes a response for an error: its status, its media type, and how its body begins.
pub(super) fn describe(status: StatusCode, content_type: Option<&HeaderValue>, state: &ReadState) -> String {
    let kind = content_type.and_then(media_type).map(str::to_ascii_lowercase);
    let kind = kind.map(|kind| format!(", {}", kind.escape_debug())).unwrap_or_default();
    let begins = String::from_utf8_lossy(&state.beginning);
    let begins = match begins.trim() {
        "" => ", with nothing in it".to_owned(),
        text => format!(", and begins with \"{}\"", text.escape_debug()),
    };
    format!("its answer is {status}{kind}{begins}")
}

/// Reads the messages in the body of a response until its end, or until `receive` wants no more.
///
/// # Errors
/// In words, when the body breaks off or is over the limit.
pub(super) async fn read_messages<F: Future<Output = bool>>(
    mut response: Response,
    limits: wire::Limits,
    state: &mut ReadState,
    mut receive: impl FnMut(FromServer) -> F,
) -> Result<(), String> {
    let is_named = response.headers().contains_key(header::CONTENT_TYPE);
    let mut events = is_events(response.headers());
    let mut reader = sse::Reader::new(limits.message);
    let mut whole = Whole::default();
    loop {
        let chunk = response.chunk().await;
        let chunk = chunk.map_err(|e| format!("the server's answer broke off: {}", cause(&e)))?;
        let Some(chunk) = chunk else { break };
        if state.beginning.is_empty() {
            events |= !is_named && looks_like_events(&chunk);
        }
        let room = SHOWN.saturating_sub(state.beginning.len()).min(chunk.len());
        state.beginning.extend_from_slice(&chunk[..room]);
        if !events {
            whole.add(chunk);
            if whole.len() > limits.message {
                let limit = limits.message;
                return Err(format!(
                    "the server's answer cannot be read: it is over the limit of {limit} bytes"
                ));
            }
            continue;
        }
        let read = reader.feed(&chunk);
        state.retry = reader.retry().or(state.retry);
        for event in read {
            let heard = match event {
                sse::Read::TooLong(outline) => vec![too_long(&outline, &limits)],
                sse::Read::Event(event) => {
                    state.last_event_id = event.id.or(state.last_event_id.take());
                    read_from_server(event.data, &limits)
                }
            };
            for heard in heard {
                if !note(state, heard, &mut receive).await {
                    return Ok(());
                }
            }
        }
    }
    if !events {
        for heard in read_from_server(whole.into_bytes(), &limits) {
            if !note(state, heard, &mut receive).await {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// A body that is read as a whole. One that comes in one part is not copied.
#[derive(Default)]
struct Whole {
    first: Bytes,
    /// The first part and all others, where there are several.
    all: BytesMut,
}

impl Whole {
    fn add(&mut self, part: Bytes) {
        if self.len() == 0 {
            self.first = part;
            return;
        }
        if self.all.is_empty() {
            self.all.extend_from_slice(&std::mem::take(&mut self.first));
        }
        self.all.extend_from_slice(&part);
    }

    fn len(&self) -> usize {
        self.first.len().max(self.all.len())
    }

    fn into_bytes(self) -> Bytes {
        if self.all.is_empty() { self.first } else { self.all.freeze() }
    }
}

/// Gives what was read to `receive`, and notes it.
async fn note<F: Future<Output = bool>>(
    state: &mut ReadState,
    heard: FromServer,
    receive: &mut impl FnMut(FromServer) -> F,
) -> bool {
    match &heard {
        FromServer::Message(_) => state.has_messages = true,
        FromServer::Broken { why, .. } => state.unreadable = Some(why.clone()),
        FromServer::Rubbish => {}
    }
    receive(heard).await
}

fn looks_like_events(chunk: &[u8]) -> bool {
    let text = chunk.strip_prefix(b"\xef\xbb\xbf").unwrap_or(chunk).trim_ascii_start();
    [&b"data:"[..], b"event:", b"id:", b"retry:", b":"].iter().any(|field| text.starts_with(field))
}

/// The innermost cause of an error, which says what went wrong.
pub(in crate::client) fn cause(error: &dyn std::error::Error) -> String {
    let mut inner = error;
    while let Some(next) = inner.source() {
        inner = next;
    }
    inner.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_brings_nothing_is_opened_again_more_and_more_slowly() {
        let after = |retry: Option<u64>| ReadState {
            retry: retry.map(Duration::from_millis),
            ..ReadState::default()
        };
        for (retry, vain, due) in [
            (None, 0, 1_000),
            (None, 2, 4_000),
            (Some(0), 0, 100),
            (Some(0), 3, 800),
            (Some(0), 1000, 60_000),
            (Some(500), 0, 500),
            (Some(u64::MAX), 0, 60_000),
        ] {
            assert_eq!(after(retry).pause(vain), Duration::from_millis(due), "{retry:?} {vain}");
        }
    }
}
