//! Reads messages that stand one to a line.
//!
//! <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio>

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use proto::Outline;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::limits::{Charge, Holding};

/// How many bytes are read at once. A buffer of this length is not charged to the peer, and no more is kept between two
/// lines.
const READ: usize = 8 * 1024;

/// A line that was read.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A line that is not empty, without its end.
    Message(Bytes),
    /// A line over the limit was skipped; with what is known of it.
    TooLong(Box<Outline>),
}

/// Reads lines of a limited length.
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    buffer: BytesMut,
    /// How many bytes at the start of the buffer hold no line end.
    searched: usize,
    limit: usize,
    /// Whether a line over the limit is being skipped.
    skipping: bool,
    /// What is known of that line, until it is given to the caller.
    outline: Option<Box<Outline>>,
    /// How many bytes of it were skipped.
    skipped: usize,
    begun: bool,
    whole: bool,
    /// To whom the buffer is charged, and how much of it.
    counted: Option<(Arc<Holding>, Option<Charge>)>,
}

/// How many times the limit is read of a skipped line to find out which call it answers. A line without an end must not
/// be waited for.
const PATIENCE: usize = 4;

const BOM: &[u8] = b"\xef\xbb\xbf";

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Reads lines of at most `limit` bytes, without white space around them and without empty lines.
    pub fn new(reader: R, limit: usize) -> Lines<R> {
        Lines {
            reader,
            buffer: BytesMut::new(),
            searched: 0,
            limit,
            skipping: false,
            outline: None,
            skipped: 0,
            begun: false,
            whole: false,
            counted: None,
        }
    }

    /// Reads lines with the white space around them, and empty lines as well.
    pub(crate) fn whole(reader: R, limit: usize) -> Lines<R> {
        Lines { whole: true, ..Lines::new(reader, limit) }
    }

    /// Sets to whom the bytes of a line are charged while it is read.
    #[must_use]
    pub(crate) fn counted(self, holding: Arc<Holding>) -> Lines<R> {
        Lines { counted: Some((holding, None)), ..self }
    }

    /// The next line; `None` at the end. Dropping the future loses nothing.
    ///
    /// # Errors
    /// When reading fails.
    pub async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            if let Some(line) = self.buffered() {
                let charge = self.counted.as_mut().and_then(|(_, charge)| charge.take());
                if matches!(&line, Line::Message(line) if line.len() > READ) {
                    // A buffer that grew for a long line is freed with that line.
                    self.buffer = BytesMut::from(&self.buffer[..]);
                }
                return Ok(Some(match (line, charge) {
                    (Line::Message(line), Some(charge)) => Line::Message(charge.hold(line)),
                    (line, _) => line,
                }));
            }
            self.count().await?;
            self.buffer.reserve(READ);
            if self.reader.read_buf(&mut self.buffer).await? == 0 {
                if let Some(seen) = self.outline.take() {
                    return Ok(Some(Line::TooLong(seen)));
                }
                // A last line without a line end counts as a line.
                let rest = self.buffer.split().freeze();
                self.searched = 0;
                let whole = !std::mem::take(&mut self.skipping) && !rest.is_empty();
                return Ok(self.trimmed(rest).filter(|_| whole).map(Line::Message));
            }
        }
    }

    /// Charges for the bytes in the buffer, and waits until there is room for them.
    async fn count(&mut self) -> io::Result<()> {
        let Some((holding, charge)) = &mut self.counted else { return Ok(()) };
        let counted = charge.as_ref().map_or(0, Charge::bytes);
        if self.buffer.len() <= counted.max(READ) {
            return Ok(());
        }
        // The buffer doubles when it grows.
        let held = (2 * self.buffer.len()).min(self.limit + READ).max(self.buffer.len());
        let more = holding.take(held - counted).await;
        let more = more.map_err(|full| io::Error::new(io::ErrorKind::QuotaExceeded, full.to_string()))?;
        match charge {
            Some(charge) => charge.join(more),
            None => *charge = Some(more),
        }
        Ok(())
    }

    fn buffered(&mut self) -> Option<Line> {
        loop {
            let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
                self.searched = self.buffer.len();
                return (self.skipping || self.searched > self.limit).then(|| self.skip()).flatten();
            };
            let line = self.buffer.split_to(self.searched + at + 1).freeze();
            self.searched = 0;
            let line = line.slice(..line.len() - 1);
            if std::mem::take(&mut self.skipping) {
                if let Some(mut seen) = self.outline.take() {
                    seen.feed(&line);
                    return Some(Line::TooLong(seen));
                }
                continue;
            }
            if line.len() > self.limit {
                return Some(Line::TooLong(Box::new(Outline::of(&line))));
            }
            if let Some(line) = self.trimmed(line) {
                return Some(Line::Message(line));
            }
        }
    }

    /// Frees what is buffered of a line over the limit. The line is given to the caller when it is known which call it
    /// answers, or when too much of it was read.
    fn skip(&mut self) -> Option<Line> {
        if !std::mem::replace(&mut self.skipping, true) {
            self.outline = Some(Box::default());
            self.skipped = 0;
        }
        if let Some(seen) = &mut self.outline {
            seen.feed(&self.buffer);
        }
        self.skipped += self.buffer.len();
        // A buffer that grew to the limit is not kept for short lines.
        self.buffer = BytesMut::new();
        self.searched = 0;
        let waits = self.outline.as_ref().is_some_and(|seen| seen.is_open())
            && self.skipped < PATIENCE.saturating_mul(self.limit);
        if waits { None } else { self.outline.take().map(Line::TooLong) }
    }

    /// Cuts off the white space around a line, and the byte order mark before the first one.
    fn trimmed(&mut self, line: Bytes) -> Option<Bytes> {
        let start =
            if std::mem::replace(&mut self.begun, true) || !line.starts_with(BOM) { 0 } else { BOM.len() };
        let line = line.slice(start..);
        if self.whole {
            let end = line.strip_suffix(b"\r").unwrap_or(&line).len();
            return Some(line.slice(..end));
        }
        let text = line.trim_ascii();
        (!text.is_empty()).then(|| line.slice_ref(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(bytes: &[u8], limit: usize) -> Vec<Line> {
        let mut lines = Lines::new(bytes, limit);
        let mut read = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            read.push(line);
        }
        read
    }

    fn message(text: &str) -> Line {
        Line::Message(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[tokio::test]
    async fn windows_line_ends_a_bom_empty_lines_and_half_a_line_at_the_end() {
        let read = lines(b"\xef\xbb\xbf{}\r\n\r\n  \n[1]\nhalf", 100).await;
        assert_eq!(read, [message("{}"), message("[1]"), message("half")]);
    }

    #[tokio::test]
    async fn a_line_over_the_limit_is_skipped_and_the_next_one_is_read() {
        let long = [b"x".repeat(50_000), b"\nnext\n".to_vec(), b"y".repeat(50_000)].concat();
        let over = || Line::TooLong(Box::default());
        assert_eq!(lines(&long, 10).await, [over(), message("next"), over()]);
        assert_eq!(lines(b"12345678901\n1234567890\n", 10).await, [over(), message("1234567890")]);
    }

    #[tokio::test]
    async fn of_a_line_over_the_limit_the_call_that_it_answers_is_known_wherever_its_id_stands() {
        let filler = "x".repeat(20_000);
        let first = format!("{{\"id\":16,\"result\":\"{filler}\"}}\n{{}}\n");
        let last = format!("{{\"result\":\"{filler}\",\"id\":16}}\n{{}}\n");
        let cut = format!("{{\"result\":\"{filler}\",\"id\":16}}");
        for (text, limit) in [(&first, 10), (&last, 10_000), (&cut, 19_000), (&last, 20_010)] {
            let read = lines(text.as_bytes(), limit).await;
            assert!(matches!(&read[0], Line::TooLong(seen) if seen.answers() == Some(16)), "{limit}");
            assert_eq!(read.get(1), text.ends_with("{}\n").then(|| message("{}")).as_ref());
        }
        // What never says it is not waited for without an end.
        let endless = lines(format!("{{\"result\":\"{filler}").as_bytes(), 10).await;
        assert!(matches!(&endless[..], [Line::TooLong(seen)] if seen.answers().is_none()));
    }
}
