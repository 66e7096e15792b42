//! Server-sent events, written and read.
//!
//! <https://html.spec.whatwg.org/multipage/server-sent-events.html>

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use proto::wire;

/// A comment that keeps a quiet stream from being taken for dead.
pub(crate) const KEEP_ALIVE: &[u8] = b":\n\n";

/// An event that carries a message.
pub(crate) fn event(message: Bytes) -> Bytes {
    fields("", message)
}

/// An event that carries a message, with an id.
pub(crate) fn event_with_id(id: &str, message: Bytes) -> Bytes {
    fields(&format!("id: {id}\n"), message)
}

/// An event of a kind.
pub(crate) fn event_of(kind: &str, data: Bytes) -> Bytes {
    fields(&format!("event: {kind}\n"), data)
}

/// The empty event that a stream opens with, so that its client can come back, and after which time.
pub(crate) fn opening(id: &str, retry: Duration) -> Bytes {
    format!("id: {id}\nretry: {}\ndata:\n\n", retry.as_millis()).into()
}

/// After which time a client may come back whose connection is closed now.
pub(crate) fn retry(after: Duration) -> Bytes {
    format!("retry: {}\n\n", after.as_millis()).into()
}

fn fields(before: &str, message: Bytes) -> Bytes {
    let message = wire::one_line(message);
    let mut out = Vec::with_capacity(before.len() + message.len() + 8);
    out.extend_from_slice(before.as_bytes());
    out.extend_from_slice(b"data: ");
    out.extend_from_slice(&message);
    out.extend_from_slice(b"\n\n");
    out.into()
}

/// An event that was read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    /// Its kind; empty stands for `message`.
    pub(crate) kind: String,
    /// Its id, where it has one.
    pub(crate) id: Option<String>,
    /// Its data, which may be empty.
    pub(crate) data: Bytes,
}

/// Takes events out of bytes as they arrive. What it holds back is bounded.
#[derive(Debug)]
pub(crate) struct Reader {
    buffer: BytesMut,
    data: Vec<u8>,
    kind: String,
    id: Option<String>,
    /// The data field was there, be it empty.
    begun: bool,
    retry: Option<Duration>,
    limit: usize,
}

/// An event was longer than the limit.
#[derive(Debug)]
pub(crate) struct TooLong;

impl Reader {
    pub(crate) fn new(limit: usize) -> Reader {
        Reader {
            buffer: BytesMut::new(),
            data: Vec::new(),
            kind: String::new(),
            id: None,
            begun: false,
            retry: None,
            limit,
        }
    }

    /// After which time the server wants its client to come back, where it said so.
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Takes in bytes; gives the events that they complete. One without data is among them where it has an id.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<Vec<Event>, TooLong> {
        self.buffer.extend_from_slice(bytes);
        let mut events = Vec::new();
        while let Some(at) = memchr::memchr(b'\n', &self.buffer) {
            let line = self.buffer.split_to(at + 1);
            let line = line[..at].strip_suffix(b"\r").unwrap_or(&line[..at]);
            if line.is_empty() {
                events.extend(self.dispatch());
            } else {
                self.field(line);
            }
        }
        if self.buffer.len() + self.data.len() > self.limit { Err(TooLong) } else { Ok(events) }
    }

    fn dispatch(&mut self) -> Option<Event> {
        self.data.pop();
        let event = Event {
            kind: std::mem::take(&mut self.kind),
            id: self.id.take(),
            data: std::mem::take(&mut self.data).into(),
        };
        (std::mem::take(&mut self.begun) || event.id.is_some()).then_some(event)
    }

    fn field(&mut self, line: &[u8]) {
        let (name, value) = match memchr::memchr(b':', line) {
            Some(at) => (&line[..at], line[at + 1..].strip_prefix(b" ").unwrap_or(&line[at + 1..])),
            None => (line, &b""[..]),
        };
        match name {
            b"data" => {
                self.begun = true;
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"event" => self.kind = String::from_utf8_lossy(value).into_owned(),
            b"id" if !value.contains(&0) => self.id = Some(String::from_utf8_lossy(value).into_owned()),
            b"retry" => {
                let after = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                self.retry = after.map(Duration::from_millis).or(self.retry);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_whole_however_they_are_cut() {
        let stream =
            b":ok\r\n\r\nid: 1\ndata:\n\nevent: message\nretry: 20\ndata: {\"a\":\r\ndata: 1}\n\ndata: x\n\n";
        for cut in 1..stream.len() {
            let mut reader = Reader::new(1000);
            let mut events = reader.feed(&stream[..cut]).unwrap();
            events.extend(reader.feed(&stream[cut..]).unwrap());
            let expected = [
                Event { id: Some("1".into()), ..Event::default() },
                Event { kind: "message".into(), data: Bytes::from("{\"a\":\n1}"), ..Event::default() },
                Event { data: Bytes::from("x"), ..Event::default() },
            ];
            assert_eq!(events, expected, "cut at {cut}");
            assert_eq!(reader.retry(), Some(Duration::from_millis(20)));
        }
        assert!(Reader::new(10).feed(b"data: 0123456789").is_err());
    }
}
