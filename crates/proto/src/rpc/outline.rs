//! What a message answers that is too long to be kept or cannot be parsed.

use crate::rpc::wire::{CallKey, number};

/// How many bytes of a name or value are kept. Every name and id that is looked for is shorter.
const TOKEN: usize = 32;

/// Finds the id of a message without parsing it.
///
/// It reads the bytes once, as they arrive, and needs a constant amount of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    depth: usize,
    quoted: bool,
    escaped: bool,
    /// The colon of a member was read, so that its value follows.
    valued: bool,
    token: Vec<u8>,
    /// The current name or value is longer than what is kept of it.
    cut: bool,
    name: Vec<u8>,
    id: Option<CallKey>,
    ids: usize,
    versioned: bool,
    asks: bool,
    over: bool,
}

impl Outline {
    /// Reads a whole text.
    pub fn of(text: &[u8]) -> Outline {
        let mut outline = Outline::default();
        outline.feed(text);
        outline
    }

    /// Returns the call that the message answers, where it is a response with exactly one id.
    pub fn answers(&self) -> Option<CallKey> {
        self.id.filter(|_| self.ids == 1 && !self.asks)
    }

    /// Returns the id of the message where it is a request with exactly one id, and the id is a number.
    pub fn asks(&self) -> Option<CallKey> {
        self.id.filter(|_| self.ids == 1 && self.asks)
    }

    /// Returns whether the bytes that follow may still hold the id.
    pub fn is_open(&self) -> bool {
        self.depth > 0 && self.ids == 0 && !self.asks
    }

    /// Returns whether the text has the member `jsonrpc`, which marks a message.
    pub fn is_message(&self) -> bool {
        self.versioned
    }

    /// Reads more of the text.
    pub fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.over {
                return;
            }
            match byte {
                _ if self.escaped => {
                    self.escaped = false;
                    self.keep(*byte);
                }
                b'\\' if self.quoted => {
                    self.escaped = true;
                    self.keep(*byte);
                }
                b'"' if self.depth > 0 => {
                    self.quoted = !self.quoted;
                    if self.depth == 1 && self.quoted {
                        self.token.clear();
                        self.cut = false;
                    }
                }
                _ if self.quoted => self.keep(*byte),
                b'{' | b'[' if self.depth > 0 || *byte == b'{' => {
                    self.depth += 1;
                    self.cut = true;
                }
                b'}' | b']' if self.depth > 0 => {
                    if self.depth == 1 {
                        self.member();
                        self.over = true;
                    }
                    self.depth -= 1;
                }
                b':' if self.depth == 1 && !self.valued => {
                    self.name = std::mem::take(&mut self.token);
                    self.valued = true;
                    self.cut = false;
                }
                b',' if self.depth == 1 => self.member(),
                b if b.is_ascii_whitespace() => {}
                b => self.keep(*b),
            }
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.depth != 1 {
            return;
        }
        self.cut |= self.token.len() == TOKEN;
        if !self.cut {
            self.token.push(byte);
        }
    }

    /// Ends a member of the message.
    fn member(&mut self) {
        match &self.name[..] {
            b"id" if self.valued => {
                let text = std::str::from_utf8(&self.token).ok();
                self.id = text.filter(|_| !self.cut).and_then(number);
                self.ids += 1;
            }
            b"method" if self.valued => self.asks = true,
            b"jsonrpc" if self.valued => self.versioned = true,
            _ => {}
        }
        self.name.clear();
        self.token.clear();
        (self.valued, self.cut) = (false, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_found_wherever_it_stands_and_however_the_text_is_cut() {
        for (text, due) in [
            (r#"{"jsonrpc":"2.0","id":16,"result":{"id":3}}"#, Some(16)),
            (r#"{"result":{"id":3,"a":[{"id":4}]},"id" : "16" }"#, Some(16)),
            (r#"{"x":"}\",\"id\":3","id":16.0,"result":[[["#, Some(16)),
            (r#"before {"id":16,"result":nonsense, more} {"id":17}"#, Some(16)),
            (r#"{"id":16"#, None),
            (r#"{"id":16,"id":17}"#, None),
            (r#"{"id":16,"method":"x"}"#, None),
            (r#"{"id":{"id":16},"result":1}"#, None),
            (r#"{"id":"1234567890123456789012345678901234567890","result":1}"#, None),
            ("{\"result\":\"\u{1}\",\"id\":16}", Some(16)),
            ("}", None),
            ("", None),
        ] {
            for cut in 0..=text.len() {
                let mut outline = Outline::default();
                outline.feed(&text.as_bytes()[..cut]);
                outline.feed(&text.as_bytes()[cut..]);
                assert_eq!(outline.answers(), due, "{text} cut at {cut}");
            }
        }
    }
}
