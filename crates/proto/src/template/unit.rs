//! The characters of a URI, without percent-encoding.

/// A character of a URI. A reserved character has its meaning only where it is not percent-encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unit {
    /// A character without a meaning of its own, percent-encoded or not.
    Char(char),
    /// A reserved character that is not percent-encoded.
    Reserved(char),
    /// A reserved character, or `%`, that is percent-encoded.
    Encoded(char),
}

/// The characters that have a meaning of their own in a URI (RFC 3986, section 2.2), and `%`.
const RESERVED: &str = ":/?#[]@!$&'()*+,;=%";

impl Unit {
    pub(super) fn char(self) -> char {
        match self {
            Unit::Char(char) | Unit::Reserved(char) | Unit::Encoded(char) => char,
        }
    }

    /// Returns whether a value may have this character where its characters in `without` must be percent-encoded.
    pub(super) fn is_of(self, without: &str) -> bool {
        match self {
            Unit::Char(char) | Unit::Reserved(char) => !without.contains(char),
            Unit::Encoded(_) => true,
        }
    }
}

/// The error for a text whose percent-encoding is wrong or does not give UTF-8.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Malformed;

/// Iterates over the characters of a text.
pub(super) fn units(text: &str) -> impl Iterator<Item = Result<Unit, Malformed>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let char = rest.chars().next()?;
        if char != '%' {
            rest = &rest[char.len_utf8()..];
            return Some(Ok(if RESERVED.contains(char) { Unit::Reserved(char) } else { Unit::Char(char) }));
        }
        let decoded = encoded(rest);
        rest = decoded.map_or("", |(_, rest)| rest);
        Some(decoded.map_or(Err(Malformed), |(char, _)| {
            Ok(if RESERVED.contains(char) { Unit::Encoded(char) } else { Unit::Char(char) })
        }))
    })
}

/// Decodes the percent-encoded character at the beginning of a text. Returns it with the text that follows.
fn encoded(text: &str) -> Option<(char, &str)> {
    let byte = |at: usize| {
        let digits = text.get(at * 3..at * 3 + 3)?.strip_prefix('%')?;
        let both = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        both.then(|| u8::from_str_radix(digits, 16).ok()).flatten()
    };
    let mut bytes = [0; 4];
    let length = match byte(0)? {
        0..0x80 => 1,
        0xc0..0xe0 => 2,
        0xe0..0xf0 => 3,
        _ => 4,
    };
    for (at, slot) in bytes.iter_mut().enumerate().take(length) {
        *slot = byte(at)?;
    }
    let char = std::str::from_utf8(&bytes[..length]).ok()?.chars().next()?;
    Some((char, &text[length * 3..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Unit>, Malformed> {
        units(text).collect()
    }

    #[test]
    fn characters_are_the_same_however_they_are_written_unless_they_are_reserved() {
        assert_eq!(read("a%41%7Eé%C3%A9"), read("aA~%c3%a9é"));
        assert_ne!(read("a/b"), read("a%2Fb"));
        assert_eq!(
            read("%2F%E2%82%AC%F0%9F%98%80").unwrap().iter().map(|u| u.char()).collect::<String>(),
            "/€😀"
        );
        for wrong in
            ["%", "%4", "%+1", "%zz", "a%é", "%ff", "%C3", "%C3é", "%80", "%C3%28", "%ED%A0%80", "%C0%AF"]
        {
            assert_eq!(read(wrong), Err(Malformed), "{wrong}");
        }
    }
}
