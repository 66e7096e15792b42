//! Reads messages from a program's standard output. A message should be one line; one over several lines is read as well.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use proto::Outline;
use tokio::io::AsyncRead;

use crate::line::{Line, Lines};

/// How long the next line of a message may take. A program writes all of them at once, so that this is long.
const PAUSE: Duration = Duration::from_secs(2);

/// The messages on a program's standard output.
pub(super) struct Output<R> {
    lines: Lines<R>,
    limit: usize,
    /// The lines so far of a message that is not complete.
    partial: Option<PartialMessage>,
    /// Complete messages.
    ready: VecDeque<Line>,
}

/// The first lines of a message, and where in its JSON they end.
#[derive(Default)]
struct PartialMessage {
    text: Vec<u8>,
    end: Place,
    /// Whether its further lines are indented.
    indented: bool,
}

/// A place in JSON.
#[derive(Default)]
struct Place {
    /// The objects and arrays that are open, by how they begin.
    open: Vec<u8>,
    /// Whether a string is open.
    quoted: bool,
}

impl Place {
    /// Goes over a line. Returns whether the message is complete at its end.
    fn pass(&mut self, line: &[u8]) -> bool {
        let mut at = 0;
        while at < line.len() {
            if self.quoted {
                // What a string holds does not matter.
                let Some(next) = memchr::memchr2(b'"', b'\\', &line[at..]) else { break };
                at += next;
                match line[at] {
                    b'\\' => at += 1,
                    _ => self.quoted = false,
                }
            } else {
                match line[at] {
                    b'"' => self.quoted = true,
                    byte @ (b'{' | b'[') => self.open.push(byte),
                    b'}' | b']' => drop(self.open.pop()),
                    _ => {}
                }
            }
            at += 1;
        }
        self.open.is_empty() && !self.quoted
    }
}

impl PartialMessage {
    /// Adds a line. Returns whether the message is complete.
    fn add(&mut self, line: &[u8]) -> bool {
        if !self.text.is_empty() {
            self.text.push(b'\n');
            self.indented |= line.first().is_some_and(u8::is_ascii_whitespace);
        }
        self.text.extend_from_slice(line);
        self.end.pass(line)
    }

    /// Whether a line begins the next message, so that this one is never complete. Where lines are not indented, one of an
    /// array begins like a message.
    fn ends_before(&self, line: &[u8], complete: bool) -> bool {
        match (self.end.quoted, self.end.open.last()) {
            (true, _) => complete && is_message(line),
            (false, Some(b'[')) if !self.indented => is_message(line),
            (false, _) => line.starts_with(b"{"),
        }
    }
}

/// Whether a line is a complete message, or is not the beginning of one.
fn is_complete(line: &[u8]) -> bool {
    !matches!(line.first(), Some(b'{' | b'[')) || Place::default().pass(line)
}

impl<R: AsyncRead + Unpin> Output<R> {
    /// Reads messages of at most `limit` bytes.
    pub(super) fn new(reader: R, limit: usize) -> Output<R> {
        Output { lines: Lines::whole(reader, limit), limit, partial: None, ready: VecDeque::new() }
    }

    fn take(&mut self, line: Bytes) {
        let complete = is_complete(line.trim_ascii());
        if let Some(partial) = &mut self.partial {
            if !partial.ends_before(&line, complete) {
                let complete = partial.add(&line);
                if complete || partial.text.len() > self.limit {
                    self.release();
                }
                return;
            }
            self.release();
        }
        let text = line.trim_ascii();
        if text.is_empty() {
            return;
        }
        if complete {
            self.ready.push_back(Line::Message(line.slice_ref(text)));
        } else {
            let mut part = PartialMessage::default();
            part.add(&line);
            self.partial = Some(part);
        }
    }

    /// Gives the partial message, complete or not.
    fn release(&mut self) {
        let Some(partial) = self.partial.take() else { return };
        self.ready.push_back(match partial.text.len() > self.limit {
            true => Line::TooLong(Box::new(Outline::of(&partial.text))),
            false => Line::Message(partial.text.into()),
        });
    }
}

fn is_message(line: &[u8]) -> bool {
    line.first() == Some(&b'{') && Outline::of(line).is_message()
}

impl<R: AsyncRead + Unpin> Output<R> {
    /// The next message, or a line that is none; `None` at the end. Dropping the future loses nothing.
    ///
    /// # Errors
    /// When reading fails.
    pub(super) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Ok(Some(line));
            }
            let line = match self.partial {
                None => self.lines.next().await?,
                Some(_) => match tokio::time::timeout(PAUSE, self.lines.next()).await {
                    Ok(line) => line?,
                    Err(_) => {
                        self.release();
                        continue;
                    }
                },
            };
            match line {
                Some(Line::Message(line)) => self.take(line),
                Some(over) => {
                    self.release();
                    self.ready.push_back(over);
                }
                None => {
                    self.release();
                    return Ok(self.ready.pop_front());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(text: &str, limit: usize) -> Vec<String> {
        let mut output = Output::new(text.as_bytes(), limit);
        let mut all = Vec::new();
        while let Some(line) = output.next().await.unwrap() {
            all.push(match line {
                Line::Message(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
                Line::TooLong(seen) => format!("over {:?}", seen.answers()),
            });
        }
        all
    }

    #[tokio::test]
    async fn a_message_over_several_lines_is_one_and_what_is_never_whole_costs_itself() {
        let one = r#"{"jsonrpc":"2.0","id":16}"#;
        let pretty = "{\n  \"jsonrpc\": \"2.0\",\n  \"result\": [\n    {}\n  ]\n}";
        let flat = "{\n\"id\": 16,\n\"result\": [\n{\n\"a\": {}\n},\n{}\n]\n}";
        let broken = "{\"a\":\"x\n y\n\n{ z\"}";
        for (text, due) in [
            (format!("{one}\n{pretty}\r\n{one}\n"), vec![one, pretty, one]),
            (format!("text\n  \n{broken}\n{one}"), vec!["text", broken, one]),
            (format!("{{\"half\": \n[]\n{one}\n"), vec!["{\"half\": \n[]", one]),
            (format!("{{\"a\":\"never\n{one}\n"), vec!["{\"a\":\"never", one]),
            (format!("{{\n{pretty}\n"), vec!["{", pretty]),
            (format!("{flat}\n{one}\n{flat}\n"), vec![flat, one, flat]),
            (format!("{{\"half\": [\n{one}\n"), vec!["{\"half\": [", one]),
            (format!("  {one}  \n{{\n"), vec![one, "{"]),
            (format!("{{\"id\":16,\n{}\n{one}\n", " \n".repeat(60)), vec!["over Some(16)", one]),
        ] {
            assert_eq!(read(&text, 80).await, due, "{text:?}");
        }
    }
}
