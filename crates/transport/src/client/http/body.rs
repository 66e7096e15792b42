//! What a response over HTTP holds: one message or a stream of them.

use std::time::Duration;

use futures_util::StreamExt as _;
use http::{HeaderMap, StatusCode, header};
use proto::{Glance, Heard, hear, wire};

use crate::sse;

/// The shortest pause before a stream is opened again: a server that says `retry: 0` is not asked on and on.
const SHORTEST: Duration = Duration::from_millis(100);
/// The longest one, whatever a server says.
const LONGEST: Duration = Duration::from_secs(60);
/// How long a stream that broke off waits before it is gone on with, where the server does not say.
const REOPEN: Duration = Duration::from_secs(1);
/// How much of a body is kept to show what it is.
const SHOWN: usize = 160;

/// How far a response was read.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The last event's id, where events have ids.
    pub(super) last: Option<String>,
    /// After which time the server wants its client back.
    retry: Option<Duration>,
    /// How the body begins.
    first: Vec<u8>,
    /// Why something in it could not be read.
    pub(super) broken: Option<String>,
    /// Something came that is a message.
    pub(super) messages: bool,
}

impl Seen {
    /// How long to wait before a stream is opened again that was opened so often in vain.
    pub(super) fn pause(&self, vain: u32) -> Duration {
        let first = self.retry.unwrap_or(REOPEN).clamp(SHORTEST, LONGEST);
        first.saturating_mul(1 << vain.min(16)).min(LONGEST)
    }
}

/// Whether a body is a stream of events. Media types have no case, and may have parameters.
pub(super) fn is_events(headers: &HeaderMap) -> bool {
    media_type(headers).is_some_and(|kind| kind == "text/event-stream")
}

fn media_type(headers: &HeaderMap) -> Option<String> {
    let sent = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(sent.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

/// What an answer is, in words: its status, its media type, and how it begins.
pub(super) fn described(status: StatusCode, headers: &HeaderMap, seen: &Seen) -> String {
    let kind = media_type(headers).map(|kind| format!(", {}", kind.escape_debug())).unwrap_or_default();
    let begins = String::from_utf8_lossy(&seen.first);
    let begins = match begins.trim() {
        "" => ", with nothing in it".to_owned(),
        text => format!(", and begins with \"{}\"", text.escape_debug()),
    };
    format!("its answer is {status}{kind}{begins}")
}

/// Reads what is in a response's body until there is no more, or no more is wanted.
pub(super) async fn messages<F: Future<Output = bool>>(
    response: reqwest::Response,
    limits: wire::Limits,
    seen: &mut Seen,
    mut on: impl FnMut(Heard) -> F,
) -> Result<(), String> {
    let named = media_type(response.headers());
    let mut events = is_events(response.headers());
    let mut reader = sse::Reader::new(limits.message);
    let mut whole = Vec::new();
    let mut body = response.bytes_stream();
    let too_long = || format!("it is over the limit of {} bytes", limits.message);
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(|e| format!("the server's answer broke off: {}", cause(&e)))?;
        if seen.first.is_empty() {
            events |= named.is_none() && looks_like_events(&chunk);
        }
        let room = SHOWN.saturating_sub(seen.first.len()).min(chunk.len());
        seen.first.extend_from_slice(&chunk[..room]);
        if !events {
            whole.extend_from_slice(&chunk);
            if whole.len() > limits.message {
                return Err(format!("the server's answer cannot be read: {}", too_long()));
            }
            continue;
        }
        let read = reader.feed(&chunk);
        seen.retry = reader.retry().or(seen.retry);
        for event in read {
            let heard = match event {
                sse::Read::TooLong(glance) => vec![over(&glance, too_long())],
                sse::Read::Event(event) => {
                    seen.last = event.id.or(seen.last.take());
                    hear(event.data, &limits)
                }
            };
            for heard in heard {
                if !note(seen, heard, &mut on).await {
                    return Ok(());
                }
            }
        }
    }
    if !events {
        for heard in hear(whole.into(), &limits) {
            if !note(seen, heard, &mut on).await {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Hands on what was read, and notes what could not be.
async fn note<F: Future<Output = bool>>(
    seen: &mut Seen,
    heard: Heard,
    on: &mut impl FnMut(Heard) -> F,
) -> bool {
    match &heard {
        Heard::Message(_) => seen.messages = true,
        Heard::Broken { why, .. } => seen.broken = Some(why.clone()),
        Heard::Rubbish => {}
    }
    on(heard).await
}

pub(super) fn over(glance: &Glance, why: String) -> Heard {
    Heard::Broken { answers: glance.answers(), why }
}

fn looks_like_events(chunk: &[u8]) -> bool {
    let text = chunk.strip_prefix(b"\xef\xbb\xbf").unwrap_or(chunk).trim_ascii_start();
    [&b"data:"[..], b"event:", b"id:", b"retry:", b":"].iter().any(|field| text.starts_with(field))
}

/// The innermost cause says what went wrong; the outermost error only that something did.
pub(super) fn cause(error: &dyn std::error::Error) -> String {
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
    fn a_stream_that_ends_in_vain_is_opened_again_more_and_more_slowly() {
        let after = |retry: Option<u64>| Seen { retry: retry.map(Duration::from_millis), ..Seen::default() };
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
