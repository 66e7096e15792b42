//! What a program writes, message by message: a line each, as it should be, or one over several lines.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use proto::Glance;
use tokio::io::AsyncRead;

use super::pipe::Feed;
use crate::line::{Line, Lines};

/// How long a message may be silent between two of its lines: they are written at once.
const PAUSE: Duration = Duration::from_secs(2);

/// A program's output.
pub(super) struct Output<R> {
    lines: Lines<R>,
    limit: usize,
    /// The lines of a message that is not whole yet.
    held: Option<Part>,
    ready: VecDeque<Line>,
}

/// The beginning of a message.
#[derive(Default)]
struct Part {
    text: Vec<u8>,
    depth: usize,
    quoted: bool,
    escaped: bool,
}

impl Part {
    /// Adds a line; says whether the message is whole.
    fn add(&mut self, line: &[u8]) -> bool {
        if !self.text.is_empty() {
            self.text.push(b'\n');
        }
        self.text.extend_from_slice(line);
        for byte in line {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.quoted => self.escaped = true,
                b'"' => self.quoted = !self.quoted,
                _ if self.quoted => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        self.escaped = false;
        self.depth == 0 && !self.quoted
    }
}

/// Whether a line is whole, or no beginning of a message.
fn stands_alone(line: &[u8]) -> bool {
    !matches!(line.first(), Some(b'{' | b'[')) || Part::default().add(line)
}

impl<R: AsyncRead + Unpin> Output<R> {
    /// Messages of at most `limit` bytes.
    pub(super) fn new(reader: R, limit: usize) -> Output<R> {
        Output { lines: Lines::whole(reader, limit), limit, held: None, ready: VecDeque::new() }
    }

    fn take(&mut self, line: Bytes) {
        let alone = stands_alone(line.trim_ascii());
        if let Some(held) = &mut self.held {
            // What is printed over several lines is indented; a line that begins a message begins another one.
            let begins = if held.quoted { alone && is_message(&line) } else { line.starts_with(b"{") };
            if !begins {
                let whole = held.add(&line);
                if whole || held.text.len() > self.limit {
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
        if alone {
            self.ready.push_back(Line::Message(line.slice_ref(text)));
        } else {
            let mut part = Part::default();
            part.add(&line);
            self.held = Some(part);
        }
    }

    /// Gives what is held, whole or not.
    fn release(&mut self) {
        let Some(held) = self.held.take() else { return };
        self.ready.push_back(match held.text.len() > self.limit {
            true => Line::TooLong(Box::new(Glance::of(&held.text))),
            false => Line::Message(held.text.into()),
        });
    }
}

fn is_message(line: &[u8]) -> bool {
    line.first() == Some(&b'{') && Glance::of(line).is_message()
}

impl<R: AsyncRead + Unpin + Send> Feed for Output<R> {
    async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Ok(Some(line));
            }
            let line = match self.held {
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
        let broken = "{\"a\":\"x\n y\n\n{ z\"}";
        for (text, due) in [
            (format!("{one}\n{pretty}\r\n{one}\n"), vec![one, pretty, one]),
            (format!("text\n  \n{broken}\n{one}"), vec!["text", broken, one]),
            (format!("{{\"half\": \n[]\n{one}\n"), vec!["{\"half\": \n[]", one]),
            (format!("{{\"a\":\"never\n{one}\n"), vec!["{\"a\":\"never", one]),
            (format!("{{\n{pretty}\n"), vec!["{", pretty]),
            (format!("  {one}  \n{{\n"), vec![one, "{"]),
            (format!("{{\"id\":16,\n{}\n{one}\n", " \n".repeat(60)), vec!["over Some(16)", one]),
        ] {
            assert_eq!(read(&text, 80).await, due, "{text:?}");
        }
    }
}
