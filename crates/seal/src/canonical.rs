//! One way of writing a JSON value down: the same value gives the same bytes, and different values give different ones.
//!
//! It is what a digest is made of, and nobody reads it back. In each object the members stand in the order of their
//! names; white space and the ways of escaping a character make no difference. A number is its value: `1`, `1.0` and
//! `10e-1` are one, since clients write again what they read, while `1e400` and `1e401`, or two integers beyond 64 bits,
//! are not. What has no value here (half of a surrogate pair, an exponent beyond 64 bits) is kept as it was written.
//!
//! Each part says its kind and, where it has no end of its own, its length, so that nothing can be read in two ways.

use std::borrow::Cow;

use proto::Raw;

const STRING: u8 = b's';
const NUMBER: u8 = b'#';
const WORD: u8 = b'w';
const AS_WRITTEN: u8 = b'?';

/// An object of these members.
pub(crate) fn object<'a>(members: impl IntoIterator<Item = (&'a str, &'a Raw)>) -> Vec<u8> {
    let (mut out, mut places) = (vec![b'{'], Vec::new());
    for (name, value) in members {
        let begin = out.len();
        part(STRING, name.as_bytes(), &mut out);
        places.push(Place { begin, name_ends: out.len() });
        Reader { text: value.as_str(), at: 0 }.value(&mut out);
    }
    sort(&mut out, &places);
    out.push(b'}');
    out
}

/// Where a member stands, and its name in it.
#[derive(Clone, Copy)]
struct Place {
    begin: usize,
    name_ends: usize,
}

/// Brings the members at the end of `out` into the order of their names. Two of one name keep theirs: the last one may
/// be the one that counts.
fn sort(out: &mut Vec<u8>, places: &[Place]) {
    let Some(first) = places.first().map(|place| place.begin) else { return };
    let name = |place: &Place| &out[place.begin..place.name_ends];
    if places.is_sorted_by(|one, next| name(one) <= name(next)) {
        return;
    }
    let ends = places.iter().skip(1).map(|place| place.begin).chain([out.len()]);
    let mut members: Vec<(Place, usize)> = places.iter().copied().zip(ends).collect();
    members.sort_by(|(one, _), (other, _)| name(one).cmp(name(other)));
    let sorted: Vec<u8> = members.iter().flat_map(|(place, end)| &out[place.begin..*end]).copied().collect();
    out.truncate(first);
    out.extend(sorted);
}

fn part(kind: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(kind);
    out.extend((bytes.len() as u64).to_be_bytes());
    out.extend(bytes);
}

/// Goes through text that is known to be JSON, once.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    /// The next byte that is no white space.
    fn peek(&mut self) -> Option<u8> {
        let rest = self.text.as_bytes().get(self.at..)?;
        let blank = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
        self.at += blank;
        rest.get(blank).copied()
    }

    fn value(&mut self, out: &mut Vec<u8>) {
        match self.peek() {
            Some(b'{') => self.members(out),
            Some(b'[') => self.elements(out),
            Some(b'"') => string(self.quoted(), out),
            Some(_) => scalar(self.bare(), out),
            None => {}
        }
    }

    fn members(&mut self, out: &mut Vec<u8>) {
        self.at += 1;
        out.push(b'{');
        let mut places = Vec::new();
        loop {
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'"') => {
                    let begin = out.len();
                    string(self.quoted(), out);
                    places.push(Place { begin, name_ends: out.len() });
                    if self.peek() == Some(b':') {
                        self.at += 1;
                    }
                    self.value(out);
                }
                _ => break,
            }
        }
        self.at += 1;
        sort(out, &places);
        out.push(b'}');
    }

    fn elements(&mut self, out: &mut Vec<u8>) {
        self.at += 1;
        out.push(b'[');
        loop {
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') | None => break,
                Some(_) => self.value(out),
            }
        }
        self.at += 1;
        out.push(b']');
    }

    /// A string with its quotes.
    fn quoted(&mut self) -> &'a str {
        let begin = self.at;
        let mut escaped = false;
        let inner = self.text.as_bytes().get(begin + 1..).unwrap_or_default().iter().take_while(|byte| {
            let ends = **byte == b'"' && !escaped;
            escaped = **byte == b'\\' && !escaped;
            !ends
        });
        let end = begin + 1 + inner.count() + 1;
        self.at = end;
        self.text.get(begin..end).unwrap_or_default()
    }

    /// A number or a word.
    fn bare(&mut self) -> &'a str {
        let begin = self.at;
        let rest = self.text.as_bytes().get(begin..).unwrap_or_default();
        let length = rest.iter().take_while(|byte| !b",]} \t\n\r".contains(byte)).count();
        self.at = begin + length.max(1);
        self.text.get(begin..self.at).unwrap_or_default()
    }
}

fn string(quoted: &str, out: &mut Vec<u8>) {
    match serde_json::from_str::<Cow<'_, str>>(quoted) {
        Ok(text) => part(STRING, text.as_bytes(), out),
        Err(_) => part(AS_WRITTEN, quoted.as_bytes(), out),
    }
}

fn scalar(text: &str, out: &mut Vec<u8>) {
    if !text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
        return part(WORD, text.as_bytes(), out);
    }
    match number(text) {
        Some(number) => part(NUMBER, number.as_bytes(), out),
        None => part(AS_WRITTEN, text.as_bytes(), out),
    }
}

/// A number without a point and without zeros at either end of its digits; zero is just that, whatever its sign.
fn number(text: &str) -> Option<String> {
    let (sign, text) = text.strip_prefix('-').map_or(("", text), |text| ("-", text));
    let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let digits = [whole, fraction].concat();
    let from_first = digits.trim_start_matches('0');
    let significant = from_first.trim_end_matches('0');
    if significant.is_empty() {
        return Some("0".to_owned());
    }
    let shifted = i64::try_from(from_first.len() - significant.len()).ok()?;
    let shifted = shifted.checked_sub(i64::try_from(fraction.len()).ok()?)?;
    let exponent = exponent.parse::<i64>().ok()?.checked_add(shifted)?;
    Some(format!("{sign}{significant}e{exponent}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use proptest::prelude::*;

    /// A value, as the tests know it: numbers as a sign, digits without zeros at their ends, and an exponent.
    #[derive(Clone, PartialEq, Eq, Debug)]
    enum Json {
        Word(&'static str),
        Number(bool, u32, i8),
        Text(String),
        Array(Vec<Json>),
        Object(Vec<(String, Json)>),
    }

    /// How to write a value: each number decides one thing.
    struct Style(std::vec::IntoIter<u8>);

    impl Style {
        fn choose(&mut self, among: u8) -> u8 {
            self.0.next().unwrap_or(0) % among
        }

        fn space(&mut self) -> &'static str {
            ["", "", " ", "\n", "\t \r"][usize::from(self.choose(5))]
        }

        fn text(&mut self, text: &str) -> String {
            let unit = |unit| format!("\\u{unit:04x}");
            let mut out = String::from("\"");
            for c in text.chars() {
                match (c, self.choose(3)) {
                    ('/', 1) => out += "\\/",
                    ('\t', 1) => out += "\\t",
                    ('"' | '\\', 1) => out.extend(['\\', c]),
                    (c, 0) if c >= ' ' && c != '"' && c != '\\' => out.push(c),
                    (c, _) => out.extend(c.encode_utf16(&mut [0; 2]).iter().map(|u| unit(*u))),
                }
            }
            out + "\""
        }

        fn number(&mut self, negative: bool, digits: u32, exponent: i8) -> String {
            let sign = if negative { "-" } else { "" };
            match self.choose(5) {
                0 if (0..20).contains(&exponent) => {
                    format!("{sign}{digits}{}", "0".repeat(exponent.unsigned_abs().into()))
                }
                1 => format!("{sign}{digits}00E{}", i32::from(exponent) - 2),
                2 => format!("{sign}{digits}.000e{exponent:+}"),
                3 => {
                    let length = digits.to_string().len();
                    format!("{sign}0.0{digits}e{}", i32::from(exponent) + i32::try_from(length).unwrap() + 1)
                }
                _ => format!("{sign}{digits}e{exponent}"),
            }
        }

        fn write(&mut self, value: &Json) -> String {
            let written = match value {
                Json::Word(word) => (*word).to_owned(),
                Json::Number(_, 0, _) => ["0", "-0", "0.0", "0e7"][usize::from(self.choose(4))].to_owned(),
                Json::Number(negative, digits, exponent) => self.number(*negative, *digits, *exponent),
                Json::Text(text) => self.text(text),
                Json::Array(elements) => {
                    let elements: Vec<_> = elements.iter().map(|element| self.write(element)).collect();
                    format!("[{}{}]", self.space(), elements.join(","))
                }
                Json::Object(members) => {
                    let mut written: Vec<_> = members
                        .iter()
                        .map(|(name, value)| {
                            format!("{}{}:{}", self.text(name), self.space(), self.write(value))
                        })
                        .collect();
                    for at in 0..written.len() {
                        let other = usize::from(self.choose(u8::MAX)) % written.len();
                        written.swap(at, other);
                    }
                    format!("{{{}{}}}", self.space(), written.join(","))
                }
            };
            format!("{}{written}{}", self.space(), self.space())
        }
    }

    /// Out of few names, words and digits, so that what differs only in where it is cut comes often.
    fn values() -> impl Strategy<Value = Json> {
        let number = (any::<bool>(), 0..300u32, -4..4i8).prop_map(|(negative, mut digits, exponent)| {
            while digits != 0 && digits % 10 == 0 {
                digits /= 10;
            }
            match digits {
                0 => Json::Number(false, 0, 0),
                digits => Json::Number(negative, digits, exponent),
            }
        });
        let text = || prop_oneof!["[a1#:,{}e]{0,3}", "\\PC{0,3}", "[\u{0}-\u{1f}\"\\\\/\u{1f600}]{0,2}"];
        let leaf = prop_oneof![
            prop::sample::select(vec!["true", "false", "null"]).prop_map(Json::Word),
            number,
            text().prop_map(Json::Text),
        ];
        leaf.prop_recursive(4, 24, 4, move |inner| {
            let members = prop::collection::btree_map(text(), inner.clone(), 0..4);
            prop_oneof![
                prop::collection::vec(inner, 0..4).prop_map(Json::Array),
                members.prop_map(|members| Json::Object(members.into_iter().collect())),
            ]
        })
    }

    fn raw(text: &str) -> Raw {
        Raw::parse(Bytes::copy_from_slice(text.as_bytes()), 128).unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    fn bytes(text: &str) -> Vec<u8> {
        object([("value", &raw(text))])
    }

    /// Reads it back, which only what cannot be read in two ways allows.
    fn read(bytes: &mut &[u8]) -> Json {
        let kind = bytes[0];
        *bytes = &bytes[1..];
        let more = |bytes: &mut &[u8], end: u8| {
            let more = bytes[0] != end;
            if !more {
                *bytes = &bytes[1..];
            }
            more
        };
        match kind {
            b'[' => {
                let mut elements = Vec::new();
                while more(bytes, b']') {
                    elements.push(read(bytes));
                }
                return Json::Array(elements);
            }
            b'{' => {
                let mut members = Vec::new();
                while more(bytes, b'}') {
                    let Json::Text(name) = read(bytes) else { panic!("a name is a text") };
                    members.push((name, read(bytes)));
                }
                members.sort_by(|(one, _), (other, _)| one.cmp(other));
                return Json::Object(members);
            }
            _ => {}
        }
        let (length, rest) = bytes.split_first_chunk::<8>().unwrap();
        let (text, rest) = rest.split_at(usize::try_from(u64::from_be_bytes(*length)).unwrap());
        *bytes = rest;
        let text = String::from_utf8(text.to_vec()).unwrap();
        match kind {
            STRING => Json::Text(text),
            WORD => Json::Word(["true", "false", "null"].into_iter().find(|word| *word == text).unwrap()),
            NUMBER if text == "0" => Json::Number(false, 0, 0),
            NUMBER => {
                let (digits, exponent) = text.split_once('e').unwrap();
                let negative = digits.starts_with('-');
                let digits = digits.trim_start_matches('-').parse().unwrap();
                Json::Number(negative, digits, exponent.parse().unwrap())
            }
            other => panic!("{other} is no kind"),
        }
    }

    proptest! {
        #[test]
        fn what_is_written_down_is_one_value_and_no_other(
            value in values(),
            styles in prop::array::uniform2(prop::collection::vec(any::<u8>(), 0..200)),
        ) {
            let [one, other] = styles.map(|choices| Style(choices.into_iter()).write(&value));
            prop_assert_eq!(bytes(&one), bytes(&other), "{} {}", one, other);
            let written = bytes(&one);
            let back = read(&mut written.as_slice());
            prop_assert_eq!(back, Json::Object(vec![("value".into(), value)]));
        }

        #[test]
        fn two_values_are_the_same_bytes_only_where_they_are_the_same(one in values(), other in values()) {
            let [first, second] = [&one, &other].map(|value| Style(vec![].into_iter()).write(value));
            prop_assert_eq!(bytes(&first) == bytes(&second), one == other, "{} {}", first, second);
        }
    }

    #[test]
    fn what_has_no_value_here_is_told_apart_as_it_was_written() {
        let different = [
            "1e400",
            "1e401",
            "12345678901234567890123",
            "12345678901234567890124",
            "1e99999999999999999999",
            "1e99999999999999999998",
            "\"1e99999999999999999999\"",
            r#""\ud800""#,
            r#""\ud801""#,
            r#""\\ud800""#,
            r#"{"\ud800":1}"#,
            r#"{"a":1,"a":2}"#,
            r#"{"a":2,"a":1}"#,
            r#"{"a":1}"#,
            r#"{"a":1,"b":2}"#,
            r#"{"a1b":2}"#,
            "[[],[]]",
            "[[[]]]",
            "[1,2]",
            "[12]",
            "{}",
            "[]",
            "\"\"",
            "null",
            "\"null\"",
        ];
        for (at, one) in different.iter().enumerate() {
            for (with, other) in different.iter().enumerate() {
                assert_eq!(bytes(one) == bytes(other), at == with, "{one} {other}");
            }
        }
        assert_eq!(bytes("1e400"), bytes("10.0E+399"));
    }
}
