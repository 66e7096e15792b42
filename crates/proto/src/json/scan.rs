//! The scanner: it checks in one pass that a text is JSON, and finds where values begin and end.
//!
//! The grammar is that of RFC 8259, as serde_json reads it for values that are not opened: a number has any size, and an
//! escape in a string may be half of a surrogate pair. Names that stand twice are found where an object is opened.
//!
//! <https://www.rfc-editor.org/rfc/rfc8259>

use std::ops::Range;

use memchr::memchr2;

/// What the scanner tells while it checks a text. The depth of a member is that of the object that it is in; the
/// outermost object has depth 1.
pub(super) trait Watch {
    /// An object or array of this depth begins.
    fn begins(&mut self, depth: usize, is_object: bool);
    /// A member has this name, which stands here with its quotes, and its value begins at `value`.
    fn names(&mut self, depth: usize, name: Range<usize>, value: usize);
    /// A value in an object or array of this depth ended before `end`.
    fn has(&mut self, depth: usize, end: usize);
    /// The object or array of this depth ends.
    fn ends(&mut self, depth: usize);
}

/// Watches nothing.
impl Watch for () {
    fn begins(&mut self, _: usize, _: bool) {}
    fn names(&mut self, _: usize, _: Range<usize>, _: usize) {}
    fn has(&mut self, _: usize, _: usize) {}
    fn ends(&mut self, _: usize) {}
}

/// A place in a text of JSON. Its functions move over what stands there and return `None` where the text is no JSON.
pub(super) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Returns where the value of a text stands, without the white space around it; `None` where the text is not one JSON
/// value that nests at most `depth` levels. Tells `watch` what stands in it.
pub(super) fn value(text: &str, depth: usize, watch: &mut impl Watch) -> Option<Range<usize>> {
    let mut scanner = Scanner::new(text);
    scanner.white_space();
    let begin = scanner.at;
    scanner.check_value(depth, watch)?;
    let end = scanner.at;
    scanner.white_space();
    (scanner.at == text.len()).then_some(begin..end)
}

impl<'a> Scanner<'a> {
    /// Begins at the start of a text.
    pub(super) fn new(text: &'a str) -> Scanner<'a> {
        Scanner { bytes: text.as_bytes(), at: 0 }
    }

    /// Moves over this byte and the white space after it.
    pub(super) fn eat(&mut self, byte: u8) -> Option<()> {
        self.is_at(byte).then(|| {
            self.at += 1;
            self.white_space();
        })
    }

    /// Returns whether this byte is the next.
    pub(super) fn is_at(&self, byte: u8) -> bool {
        self.peek() == Some(byte)
    }

    /// Moves over a value that was checked before, and the white space after it. Returns where the value stands.
    pub(super) fn skip_value(&mut self) -> Option<Range<usize>> {
        let begin = self.at;
        match self.peek()? {
            b'"' => {
                self.skip_string()?;
            }
            b'{' | b'[' => self.skip_brackets()?,
            _ => {
                let rest = self.rest()?;
                let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n');
                self.at += rest.iter().position(ends).unwrap_or(rest.len());
            }
        }
        let end = self.at;
        self.white_space();
        Some(begin..end)
    }

    /// Moves over the name of a member that was checked before, and the colon after it. Returns where the string
    /// stands, and whether it has escapes.
    pub(super) fn skip_name(&mut self) -> Option<(Range<usize>, bool)> {
        let begin = self.at;
        if !self.is_at(b'"') {
            return None;
        }
        let has_escapes = self.skip_string()?;
        let end = self.at;
        self.white_space();
        self.eat(b':')?;
        Some((begin..end, has_escapes))
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn rest(&self) -> Option<&'a [u8]> {
        self.bytes.get(self.at..)
    }

    fn white_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
    }

    /// Moves over a string that was checked before. Returns whether it has escapes.
    fn skip_string(&mut self) -> Option<bool> {
        self.at += 1;
        let mut has_escapes = false;
        loop {
            let rest = self.rest()?;
            let near = plain(&rest[..rest.len().min(NEAR)]);
            self.at += match rest.get(NEAR..) {
                Some(far) if near == NEAR => NEAR + memchr2(b'"', b'\\', far)?,
                _ => near,
            };
            if self.peek()? == b'"' {
                self.at += 1;
                return Some(has_escapes);
            }
            has_escapes = true;
            self.at += 2;
        }
    }

    /// Moves over an object or array that was checked before, so that each bracket has its partner.
    fn skip_brackets(&mut self) -> Option<()> {
        let mut depth = 0usize;
        loop {
            let marks = |byte: &u8| matches!(byte, b'"' | b'{' | b'[' | b'}' | b']');
            self.at += self.rest()?.iter().position(marks)?;
            match self.peek()? {
                b'"' => {
                    self.skip_string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                _ => depth -= 1,
            }
            self.at += 1;
            if depth == 0 {
                return Some(());
            }
        }
    }

    /// Moves over a value that nests at most `depth` levels, and checks it.
    fn check_value(&mut self, depth: usize, watch: &mut impl Watch) -> Option<()> {
        let mut open = Open::default();
        loop {
            match self.peek()? {
                b'"' => self.check_string()?,
                opening @ (b'{' | b'[') => {
                    let is_object = opening == b'{';
                    open.push(is_object, depth)?;
                    watch.begins(open.len, is_object);
                    self.eat(opening)?;
                    if !self.is_at(if is_object { b'}' } else { b']' }) {
                        if is_object {
                            self.check_name(open.len, watch)?;
                        }
                        continue;
                    }
                    watch.ends(open.len);
                    open.pop();
                    self.at += 1;
                }
                b'-' | b'0'..=b'9' => self.check_number()?,
                b't' => self.check_word(b"true")?,
                b'f' => self.check_word(b"false")?,
                b'n' => self.check_word(b"null")?,
                _ => return None,
            }
            if self.check_after_value(&mut open, watch)? {
                return Some(());
            }
        }
    }

    /// Moves over what stands between a value and the next one. Returns whether the outermost value has ended.
    fn check_after_value(&mut self, open: &mut Open, watch: &mut impl Watch) -> Option<bool> {
        loop {
            let Some(is_object) = open.innermost() else { return Some(true) };
            watch.has(open.len, self.at);
            self.white_space();
            match (self.peek()?, is_object) {
                (b',', _) => {
                    self.eat(b',')?;
                    if is_object {
                        self.check_name(open.len, watch)?;
                    }
                    return Some(false);
                }
                (b'}', true) | (b']', false) => {
                    watch.ends(open.len);
                    open.pop();
                    self.at += 1;
                }
                _ => return None,
            }
        }
    }

    /// Moves over the name of a member and the colon after it.
    fn check_name(&mut self, depth: usize, watch: &mut impl Watch) -> Option<()> {
        if !self.is_at(b'"') {
            return None;
        }
        let begin = self.at;
        self.check_string()?;
        let end = self.at;
        self.white_space();
        self.eat(b':')?;
        watch.names(depth, begin..end, self.at);
        Some(())
    }

    fn check_string(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            self.at += plain(self.rest()?);
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                b'\\' => self.check_escape()?,
                // A control character.
                _ => return None,
            }
        }
    }

    fn check_escape(&mut self) -> Option<()> {
        match self.bytes.get(self.at + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 2,
            b'u' => {
                let digits = self.bytes.get(self.at + 2..self.at + 6)?;
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return None;
                }
                self.at += 6;
            }
            _ => return None,
        }
        Some(())
    }

    fn check_number(&mut self) -> Option<()> {
        if self.is_at(b'-') {
            self.at += 1;
        }
        match self.is_at(b'0') {
            true => self.at += 1,
            false => self.check_digits()?,
        }
        if self.is_at(b'.') {
            self.at += 1;
            self.check_digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.check_digits()?;
        }
        Some(())
    }

    /// Moves over one digit or more.
    fn check_digits(&mut self) -> Option<()> {
        let begin = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        (self.at > begin).then_some(())
    }

    fn check_word(&mut self, word: &[u8]) -> Option<()> {
        let fits = self.rest()?.starts_with(word);
        fits.then(|| self.at += word.len())
    }
}

/// How many bytes of a string are looked at before a search for its end in wide registers begins: most strings are
/// shorter, and cost less than the beginning of such a search.
const NEAR: usize = 64;

/// How many bytes are tested at once.
const CHUNK: usize = size_of::<u64>();

/// Returns how many bytes at the beginning are neither `"` nor `\` nor a control character. What follows a string's
/// first byte ends there, or has an escape there.
pub(super) fn plain(bytes: &[u8]) -> usize {
    let (chunks, rest) = bytes.as_chunks::<CHUNK>();
    for (at, chunk) in chunks.iter().enumerate() {
        let marked = special(u64::from_le_bytes(*chunk));
        if marked != 0 {
            return at * CHUNK + (marked.trailing_zeros() / 8) as usize;
        }
    }
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..b' ');
    bytes.len() - rest.len() + rest.iter().position(is_special).unwrap_or(rest.len())
}

/// Marks the highest bit of each of eight bytes that is `"`, `\` or a control character. A borrow may mark bytes after
/// the first one that is meant, so only the first mark counts.
const fn special(eight: u64) -> u64 {
    const ONES: u64 = u64::MAX / 0xff;
    const HIGH: u64 = ONES << 7;
    let quotes = eight ^ (ONES * b'"' as u64);
    let escapes = eight ^ (ONES * b'\\' as u64);
    let controls = eight.wrapping_sub(ONES * b' ' as u64);
    (quotes.wrapping_sub(ONES) & !quotes | escapes.wrapping_sub(ONES) & !escapes | controls & !eight) & HIGH
}

/// The objects and arrays that are open at a place, as one bit each: whether it is an object.
#[derive(Default)]
struct Open {
    len: usize,
    /// The bits of the innermost ones.
    bits: u128,
    /// The bits of those further out, in groups of 128.
    outer: Vec<u128>,
}

impl Open {
    fn push(&mut self, is_object: bool, limit: usize) -> Option<()> {
        if self.len >= limit {
            return None;
        }
        if self.len > 0 && self.len.is_multiple_of(128) {
            self.outer.push(self.bits);
        }
        self.bits = self.bits << 1 | u128::from(is_object);
        self.len += 1;
        Some(())
    }

    fn pop(&mut self) {
        self.len -= 1;
        self.bits >>= 1;
        if self.len > 0 && self.len.is_multiple_of(128) {
            self.bits = self.outer.pop().unwrap_or_default();
        }
    }

    fn innermost(&self) -> Option<bool> {
        (self.len > 0).then_some(self.bits & 1 == 1)
    }
}

/// Returns whether objects and arrays are nested deeper than `limit` levels, whether or not the text is JSON.
pub(super) fn nests_deeper(text: &str, limit: usize) -> bool {
    let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'{' | b'[' => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
pub(super) mod tests;
