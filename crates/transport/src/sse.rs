//! Server-sent events, written and read.
//!
//! <https://html.spec.whatwg.org/multipage/server-sent-events.html>

use bytes::{Bytes, BytesMut};
use proto::wire;

/// A comment that keeps a quiet stream from being taken for dead.
pub(crate) const KEEP_ALIVE: &[u8] = b":\n\n";

/// An event that carries a message.
pub(crate) fn event(message: Bytes) -> Bytes {
    let message = wire::one_line(message);
    let mut out = Vec::with_capacity(message.len() + 8);
    out.extend_from_slice(b"data: ");
    out.extend_from_slice(&message);
    out.extend_from_slice(b"\n\n");
    out.into()
}

/// Takes events out of bytes as they arrive. What it holds back is bounded.
#[derive(Debug)]
pub(crate) struct Reader {
    buffer: BytesMut,
    data: Vec<u8>,
    limit: usize,
}

/// An event was longer than the limit.
#[derive(Debug)]
pub(crate) struct TooLong;

impl Reader {
    pub(crate) fn new(limit: usize) -> Reader {
        Reader { buffer: BytesMut::new(), data: Vec::new(), limit }
    }

    /// Takes in bytes; gives the data of the events that they complete.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<Vec<Bytes>, TooLong> {
        self.buffer.extend_from_slice(bytes);
        let mut events = Vec::new();
        while let Some(at) = memchr::memchr(b'\n', &self.buffer) {
            let line = self.buffer.split_to(at + 1);
            let line = line[..at].strip_suffix(b"\r").unwrap_or(&line[..at]);
            if line.is_empty() {
                if !self.data.is_empty() {
                    self.data.pop();
                    events.push(Bytes::from(std::mem::take(&mut self.data)));
                }
            } else if let Some(data) = line.strip_prefix(b"data:") {
                self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
                self.data.push(b'\n');
            }
        }
        if self.buffer.len() + self.data.len() > self.limit { Err(TooLong) } else { Ok(events) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_whole_however_they_are_cut() {
        let stream = b":ok\r\n\r\nid: 1\ndata:\n\nevent: message\ndata: {\"a\":\r\ndata: 1}\n\ndata: x\n\n";
        for cut in 1..stream.len() {
            let mut reader = Reader::new(1000);
            let mut events = reader.feed(&stream[..cut]).unwrap();
            events.extend(reader.feed(&stream[cut..]).unwrap());
            assert_eq!(events, [Bytes::new(), Bytes::from("{\"a\":\n1}"), Bytes::from("x")], "cut at {cut}");
        }
        assert!(Reader::new(10).feed(b"data: 0123456789").is_err());
    }
}
