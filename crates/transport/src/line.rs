//! Messages as lines.
//!
//! <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio>

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::crowd::{Charge, Holding};

/// What is read at once. A buffer of this length counts for nothing, and is all that is kept between two lines.
const READ: usize = 8 * 1024;

/// What a line is.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A line that is not empty, without its end.
    Message(Bytes),
    /// A line over the limit; it was skipped.
    TooLong,
}

/// Reads lines of bounded length.
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    buffer: BytesMut,
    /// How much of the buffer holds no line end.
    searched: usize,
    limit: usize,
    skipping: bool,
    begun: bool,
    /// On whose account the buffer is, and for how much of it.
    counted: Option<(Arc<Holding>, Option<Charge>)>,
}

const BOM: &[u8] = b"\xef\xbb\xbf";

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Lines of at most `limit` bytes.
    pub fn new(reader: R, limit: usize) -> Lines<R> {
        Lines {
            reader,
            buffer: BytesMut::new(),
            searched: 0,
            limit,
            skipping: false,
            begun: false,
            counted: None,
        }
    }

    /// The same, with what is held of a line on this account.
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
                    // The room of a long line is given back with it.
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
                // Half a line at the end is what the peer meant to say.
                let rest = self.buffer.split().freeze();
                self.searched = 0;
                let whole = !std::mem::take(&mut self.skipping);
                return Ok(self.trimmed(rest).filter(|_| whole).map(Line::Message));
            }
        }
    }

    /// Has what the buffer holds counted.
    async fn count(&mut self) -> io::Result<()> {
        let Some((holding, charge)) = &mut self.counted else { return Ok(()) };
        let counted = charge.as_ref().map_or(0, Charge::bytes);
        if self.buffer.len() <= counted.max(READ) {
            return Ok(());
        }
        // As the buffer grows: by its own length.
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
                if self.searched > self.limit && !self.skipping {
                    self.skipping = true;
                    self.buffer = BytesMut::new();
                    self.searched = 0;
                    return Some(Line::TooLong);
                }
                if self.skipping {
                    self.buffer.clear();
                    self.searched = 0;
                }
                return None;
            };
            let line = self.buffer.split_to(self.searched + at + 1).freeze();
            self.searched = 0;
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            let line = line.slice(..line.len() - 1);
            if line.len() > self.limit {
                return Some(Line::TooLong);
            }
            if let Some(line) = self.trimmed(line) {
                return Some(Line::Message(line));
            }
        }
    }

    /// Without white space around it, and without a byte order mark before the first one.
    fn trimmed(&mut self, line: Bytes) -> Option<Bytes> {
        let start =
            if std::mem::replace(&mut self.begun, true) || !line.starts_with(BOM) { 0 } else { BOM.len() };
        let line = line.slice(start..);
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
        assert_eq!(lines(&long, 10).await, [Line::TooLong, message("next"), Line::TooLong]);
        assert_eq!(lines(b"12345678901\n1234567890\n", 10).await, [Line::TooLong, message("1234567890")]);
    }
}
