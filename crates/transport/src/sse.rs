//! Server-sent events, written and read.
//!
//! <https://html.spec.whatwg.org/multipage/server-sent-events.html>

use std::time::Duration;

use bytes::Bytes;
use proto::{Outline, wire};

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

/// What was taken out of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// An event.
    Event(Event),
    /// An event over the limit was skipped; this is what was seen of its data.
    TooLong(Outline),
}

/// Takes events out of bytes as they arrive, each byte once. What it holds back is bounded.
#[derive(Debug)]
pub(crate) struct Reader {
    /// The line that is under way.
    line: Vec<u8>,
    data: Vec<u8>,
    kind: String,
    id: Option<String>,
    /// The data field was there, be it empty.
    begun: bool,
    retry: Option<Duration>,
    limit: usize,
    /// What was seen of an event that is skipped.
    over: Option<Outline>,
    /// A line that is skipped is data, or not known yet.
    skipping: bool,
    /// The last line ended with CR: an LF that follows belongs to it.
    returned: bool,
    /// Bytes were read that may be a byte order mark.
    opened: bool,
}

/// How many bytes the name of a field that counts, with its colon and space, has at most.
const NAME: usize = 8;
/// How long the kind or id of an event may be, in bytes: ids go into a header.
const SHORT: usize = 8 * 1024;

impl Reader {
    pub(crate) fn new(limit: usize) -> Reader {
        Reader {
            line: Vec::new(),
            data: Vec::new(),
            kind: String::new(),
            id: None,
            begun: false,
            retry: None,
            limit,
            over: None,
            skipping: false,
            returned: false,
            opened: false,
        }
    }

    /// After which time the server wants its client to come back, where it said so.
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Takes in bytes; gives the events that they complete. One without data is among them where it has an id.
    pub(crate) fn feed(&mut self, mut bytes: &[u8]) -> Vec<Read> {
        let mut read = Vec::new();
        while !bytes.is_empty() {
            if std::mem::take(&mut self.returned) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let Some(at) = memchr::memchr2(b'\n', b'\r', bytes) else {
                self.more(bytes);
                break;
            };
            let line = &bytes[..at];
            self.returned = bytes[at] == b'\r';
            bytes = &bytes[at + 1..];
            // A line that came whole is read where it is.
            let is_whole = self.line.is_empty() && !self.skipping && !self.exceeds(line.len());
            if is_whole {
                read.extend(self.read_line(line));
            } else {
                self.more(line);
                read.extend(self.end_of_line());
            }
        }
        read
    }

    /// Whether an event is over the limit with a further line of this length.
    fn exceeds(&self, line: usize) -> bool {
        line + self.data.len() > self.limit.saturating_add(NAME)
    }

    /// Takes in a part of a line.
    fn more(&mut self, part: &[u8]) {
        if self.skipping {
            if let Some(seen) = &mut self.over {
                seen.feed(part);
            }
            return;
        }
        self.line.extend_from_slice(part);
        if self.exceeds(self.line.len()) {
            let mut seen = self.over.take().unwrap_or_default();
            seen.feed(&std::mem::take(&mut self.data));
            let line = std::mem::take(&mut self.line);
            if let (b"data", value) = field(&line) {
                seen.feed(value);
            }
            self.over = Some(seen);
            self.skipping = true;
        }
    }

    fn end_of_line(&mut self) -> Option<Read> {
        if std::mem::take(&mut self.skipping) {
            return None;
        }
        let mut line = std::mem::take(&mut self.line);
        let read = self.read_line(&line);
        // A short line does not cost the room of a long one before it.
        line.clear();
        if line.capacity() <= SHORT {
            self.line = line;
        }
        read
    }

    fn read_line(&mut self, line: &[u8]) -> Option<Read> {
        let start = if std::mem::replace(&mut self.opened, true) || !line.starts_with(BOM) { 0 } else { 3 };
        if line.len() == start {
            return self.dispatch();
        }
        let (name, value) = field(&line[start..]);
        match name {
            b"data" => {
                self.begun = true;
                match &mut self.over {
                    Some(seen) => seen.feed(value),
                    None => {
                        self.data.extend_from_slice(value);
                        self.data.push(b'\n');
                    }
                }
            }
            b"event" if value.len() <= SHORT => self.kind = String::from_utf8_lossy(value).into_owned(),
            b"id" if value.len() <= SHORT && !value.contains(&0) => {
                self.id = Some(String::from_utf8_lossy(value).into_owned());
            }
            b"retry" => {
                let after = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                self.retry = after.map(Duration::from_millis).or(self.retry);
            }
            _ => {}
        }
        None
    }

    fn dispatch(&mut self) -> Option<Read> {
        self.data.pop();
        let event = Event {
            kind: std::mem::take(&mut self.kind),
            id: self.id.take(),
            data: std::mem::take(&mut self.data).into(),
        };
        let begun = std::mem::take(&mut self.begun);
        if let Some(seen) = self.over.take() {
            return Some(Read::TooLong(seen));
        }
        (begun || event.id.is_some()).then_some(Read::Event(event))
    }
}

const BOM: &[u8] = b"\xef\xbb\xbf";

/// The name and value of a line.
fn field(line: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b':', line) {
        Some(at) => (&line[..at], line[at + 1..].strip_prefix(b" ").unwrap_or(&line[at + 1..])),
        None => (line, &b""[..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected() -> [Read; 3] {
        [
            Event { id: Some("1".into()), ..Event::default() },
            Event { kind: "message".into(), data: Bytes::from("{\"a\":\n1}"), ..Event::default() },
            Event { data: Bytes::from("x"), ..Event::default() },
        ]
        .map(Read::Event)
    }

    #[test]
    fn events_come_whole_however_they_are_cut_and_lines_end() {
        let stream =
            ":ok\n\nid: 1\ndata:\n\nevent: message\nretry: 20\ndata: {\"a\":\ndata: 1}\n\ndata: x\n\n";
        for ends in ["\n", "\r\n", "\r"] {
            for mark in ["", "\u{feff}"] {
                let stream = format!("{mark}{}", stream.replace('\n', ends));
                for cut in 1..stream.len() {
                    let mut reader = Reader::new(1000);
                    let mut events = reader.feed(&stream.as_bytes()[..cut]);
                    events.extend(reader.feed(&stream.as_bytes()[cut..]));
                    assert_eq!(events, expected(), "{ends:?} cut at {cut}");
                    assert_eq!(reader.retry(), Some(Duration::from_millis(20)));
                }
                let mut reader = Reader::new(1000);
                let single: Vec<Read> = stream.bytes().flat_map(|byte| reader.feed(&[byte])).collect();
                assert_eq!(single, expected(), "{ends:?} byte by byte");
            }
        }
    }

    #[test]
    fn an_event_over_the_limit_costs_itself_alone_and_says_which_call_it_answers() {
        let long = "x".repeat(200);
        for event in [
            format!("data: {{\"id\":16,\"result\":\"{long}\"}}\n\n"),
            format!("data: {{\"result\":\"{long}\",\ndata: \"id\":16}}\n\n"),
            format!("data: {{\"id\":16,\ndata: \"result\":\"{long}\"}}\n\n"),
        ] {
            let mut reader = Reader::new(100);
            let read: Vec<Read> = format!("data: a\n\n{event}data: x\n\n")
                .as_bytes()
                .chunks(7)
                .flat_map(|chunk| reader.feed(chunk))
                .collect();
            assert!(
                matches!(&read[..], [Read::Event(_), Read::TooLong(seen), Read::Event(x)]
                    if seen.answers() == Some(16) && x.data == "x"),
                "{read:?}"
            );
        }
    }
}
