//! JSON values that keep the text that was sent. A value is parsed only where a rule needs its content.

mod names;
pub(crate) mod path;
mod scan;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use bytestring::ByteString;
use serde::de::{DeserializeOwned, Deserializer as _, IgnoredAny, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub use self::names::MemberName;
use self::scan::{Scanner, Watch};
use crate::clipped::clipped;

/// A JSON value as text. Clones and slices share the buffer that the message was read into.
///
/// Numbers keep their form (`1.0`, `1e400`, 64-bit integers). Objects keep the order of their members, and unknown
/// members.
#[derive(Clone, PartialEq, Eq)]
pub struct Raw(ByteString);

/// A JSON object as an ordered list of members. The values are not parsed; each is a [`Raw`].
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Object(Vec<(ByteString, Raw)>);

/// Why bytes cannot be read as the JSON that is expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The bytes are not UTF-8.
    #[error("the message is not UTF-8")]
    NotUtf8,
    /// The text is not JSON.
    #[error("the message is not JSON: {0}")]
    NotJson(String),
    /// Objects and arrays are nested deeper than the limit allows.
    #[error("the message nests deeper than {0} levels")]
    TooDeep(usize),
    /// The text is JSON, but a value of another type is expected.
    #[error("expected {expected}: {detail}")]
    Unexpected {
        /// The type that is expected.
        expected: &'static str,
        /// What was found, and where.
        detail: String,
    },
}

impl Raw {
    /// Reads bytes that are one JSON value in UTF-8, nested at most `depth` levels deep.
    ///
    /// # Errors
    /// Where the bytes are not such a value.
    pub fn parse(bytes: Bytes, depth: usize) -> Result<Raw, ParseError> {
        let text = ByteString::try_from(bytes).map_err(|_| ParseError::NotUtf8)?;
        Raw::scanned(&text, depth, &mut ())
    }

    /// Checks a text; `watch` is told what is found.
    fn scanned(text: &ByteString, depth: usize, watch: &mut impl Watch) -> Result<Raw, ParseError> {
        match scan::value(text, depth, watch) {
            Some(place) => Ok(Raw(text.slice_ref(&text[place]))),
            None => Err(refusal(text, depth)),
        }
    }

    /// Serializes a value. A value that JSON cannot represent becomes `null`.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Raw {
        Raw(serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned()).into())
    }

    /// Makes a value of text that the program knows to be valid JSON.
    pub const fn literal(text: &'static str) -> Raw {
        Raw(ByteString::from_static(text))
    }

    /// Makes an array of these values.
    pub fn list(elements: &[Raw]) -> Raw {
        let length = elements.iter().map(|element| element.as_str().len() + 1).sum::<usize>() + 2;
        let mut text = String::with_capacity(length);
        text.push('[');
        for (at, element) in elements.iter().enumerate() {
            if at > 0 {
                text.push(',');
            }
            text.push_str(element.as_str());
        }
        text.push(']');
        Raw::trusted(text.into())
    }

    /// Makes an array of these objects.
    pub fn objects<'a>(elements: impl Iterator<Item = &'a Object> + Clone) -> Raw {
        let length = elements.clone().map(|element| element.len_written() + 1).sum::<usize>() + 2;
        let mut text = String::with_capacity(length);
        text.push('[');
        for (at, element) in elements.enumerate() {
            if at > 0 {
                text.push(',');
            }
            element.write(&mut text);
        }
        text.push(']');
        Raw::trusted(text.into())
    }

    /// Makes a value of text that was valid JSON when it was read.
    pub(crate) fn trusted(text: ByteString) -> Raw {
        Raw(text)
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the members of an object.
    ///
    /// # Errors
    /// Where the value is no object, or two members have the same name: two programs might each take another one.
    pub fn object(&self) -> Result<Object, ParseError> {
        let mismatch = |detail: String| ParseError::Unexpected { expected: "an object", detail };
        let members = match self.members() {
            Some(members) => members.map_err(|e| mismatch(without_data(&e)))?,
            None => {
                let read = serde_json::Deserializer::from_str(&self.0).deserialize_map(Other("an object"));
                return Err(mismatch(said(read)));
            }
        };
        match names::twice(&members) {
            None => Ok(Object(members)),
            Some(name) => Err(mismatch(clipped(&format!("the name {name:?} stands twice"), WHY))),
        }
    }

    /// Finds the members of an object; `None` for any other value. It is an error where the escapes of a name are no text.
    fn members(&self) -> Option<Result<Vec<(ByteString, Raw)>, serde_json::Error>> {
        let mut scanner = Scanner::new(&self.0);
        let mut members = Vec::new();
        scanner.eat(b'{')?;
        while !scanner.is_at(b'}') {
            let (place, has_escapes) = scanner.skip_name()?;
            let name = match has_escapes {
                false => self.slice(place.start + 1..place.end - 1)?.0,
                true => match serde_json::from_str::<String>(self.0.get(place)?) {
                    Ok(name) => name.into(),
                    Err(error) => return Some(Err(error)),
                },
            };
            members.push((name, self.slice(scanner.skip_value()?)?));
            if !scanner.is_at(b'}') {
                scanner.eat(b',')?;
            }
        }
        Some(Ok(members))
    }

    fn slice(&self, place: Range<usize>) -> Option<Raw> {
        Some(Raw(self.0.slice_ref(self.0.get(place)?)))
    }

    /// Returns the elements of an array.
    ///
    /// # Errors
    /// Where the value is no array.
    pub fn array(&self) -> Result<Vec<Raw>, ParseError> {
        self.elements().ok_or_else(|| {
            let read = serde_json::Deserializer::from_str(&self.0).deserialize_seq(Other("an array"));
            ParseError::Unexpected { expected: "an array", detail: said(read) }
        })
    }

    fn elements(&self) -> Option<Vec<Raw>> {
        let mut scanner = Scanner::new(&self.0);
        let mut elements = Vec::new();
        scanner.eat(b'[')?;
        while !scanner.is_at(b']') {
            elements.push(self.slice(scanner.skip_value()?)?);
            if !scanner.is_at(b']') {
                scanner.eat(b',')?;
            }
        }
        Some(elements)
    }

    /// Returns the text of a string; `None` for any other value.
    pub fn string(&self) -> Option<ByteString> {
        let inner = self.0.strip_prefix('"')?.strip_suffix('"')?;
        match scan::plain(inner.as_bytes()) == inner.len() {
            true => Some(self.0.slice_ref(inner)),
            false => serde_json::from_str::<String>(&self.0).ok().map(ByteString::from),
        }
    }

    /// Returns whether the text begins with a character: `{` for an object, `[` for an array, `"` for a string.
    pub fn starts_with(&self, opening: char) -> bool {
        self.0.starts_with(opening)
    }

    /// Returns whether the value is `null`.
    pub fn is_null(&self) -> bool {
        &*self.0 == "null"
    }

    /// Returns whether the value is `true`.
    pub fn is_true(&self) -> bool {
        &*self.0 == "true"
    }

    /// Deserializes the value.
    ///
    /// # Errors
    /// Where the value does not fit the type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }
}

impl From<&str> for Raw {
    fn from(text: &str) -> Raw {
        let mut out = String::with_capacity(text.len() + 2);
        write_string(text, &mut out);
        Raw(out.into())
    }
}

impl From<Object> for Raw {
    fn from(object: Object) -> Raw {
        let mut out = String::with_capacity(object.len_written());
        object.write(&mut out);
        Raw(out.into())
    }
}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Raw {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        value.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Raw {
    /// Keeps the text of the value to the byte. Only JSON has such a text.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Raw, D::Error> {
        let value = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Raw(String::from(Box::<str>::from(value)).into()))
    }
}

impl Object {
    /// Makes an object without members.
    pub fn new() -> Object {
        Object::default()
    }

    /// Returns the value of a member.
    ///
    /// It compares one name after the other. Where a peer decides how many names are looked up, use
    /// [`Object::by_name`].
    pub fn get(&self, name: &str) -> Option<&Raw> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, value)| value)
    }

    /// Returns the members by name, for many lookups.
    pub fn by_name(&self) -> BTreeMap<&str, &Raw> {
        self.0.iter().map(|(name, value)| (&**name, value)).collect()
    }

    /// Returns the text of a member; `None` where it is absent or no string.
    pub fn string(&self, name: &str) -> Option<ByteString> {
        self.get(name)?.string()
    }

    /// Sets the value of a member. A new member comes last.
    pub fn set(&mut self, name: impl Into<MemberName>, value: impl Into<Raw>) {
        let (MemberName(name), value) = (name.into(), value.into());
        match self.0.iter_mut().find(|(n, _)| *n == name) {
            Some(member) => member.1 = value,
            None => self.0.push((name, value)),
        }
    }

    /// Sets the value of a member. A new member comes first.
    pub fn set_first(&mut self, name: &'static str, value: Raw) {
        match self.0.iter_mut().find(|(n, _)| n == name) {
            Some(member) => member.1 = value,
            None => self.0.insert(0, (ByteString::from_static(name), value)),
        }
    }

    /// Sets the value of a member. A new member comes last.
    #[must_use]
    pub fn with(mut self, name: impl Into<MemberName>, value: impl Into<Raw>) -> Object {
        self.set(name, value);
        self
    }

    /// Removes a member and returns its value.
    pub fn take(&mut self, name: &str) -> Option<Raw> {
        let at = self.0.iter().position(|(n, _)| n == name)?;
        Some(self.0.remove(at).1)
    }

    /// Keeps the members for which `keep` returns true. It may change their values.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &mut Raw) -> bool) {
        self.0.retain_mut(|(name, value)| keep(name, value));
    }

    /// Iterates over the members in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&ByteString, &Raw)> {
        self.0.iter().map(|(name, value)| (name, value))
    }

    /// Returns whether the object has no members.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns how many bytes [`Object::write`] appends; more where names have to be escaped.
    pub(crate) fn len_written(&self) -> usize {
        /// Two quotes, a colon and a comma.
        const AROUND: usize = 4;
        2 + self.0.iter().map(|(name, value)| name.len() + value.as_str().len() + AROUND).sum::<usize>()
    }

    /// Appends the text of the object to `out`.
    pub fn write(&self, out: &mut String) {
        out.push('{');
        for (at, (name, value)) in self.0.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            write_string(name, out);
            out.push(':');
            out.push_str(value.as_str());
        }
        out.push('}');
    }

    /// Serializes a value. What does not become an object gives an empty one.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Object {
        Raw::of(value).object().unwrap_or_default()
    }
}

impl FromIterator<(ByteString, Raw)> for Object {
    fn from_iter<I: IntoIterator<Item = (ByteString, Raw)>>(members: I) -> Object {
        Object(members.into_iter().collect())
    }
}

impl IntoIterator for Object {
    type Item = (ByteString, Raw);
    type IntoIter = std::vec::IntoIter<(ByteString, Raw)>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl Serialize for Object {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(name, value)| (&**name, value)))
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Object, D::Error> {
        Raw::deserialize(deserializer)?.object().map_err(serde::de::Error::custom)
    }
}

/// Appends a text as a string of JSON.
pub(crate) fn write_string(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    loop {
        let (plain, special) = rest.split_at(scan::plain(rest.as_bytes()));
        out.push_str(plain);
        let mut left = special.chars();
        match left.next() {
            None => break,
            Some('"') => out.push_str("\\\""),
            Some('\\') => out.push_str("\\\\"),
            Some('\n') => out.push_str("\\n"),
            Some('\r') => out.push_str("\\r"),
            Some('\t') => out.push_str("\\t"),
            Some('\u{8}') => out.push_str("\\b"),
            Some('\u{c}') => out.push_str("\\f"),
            Some(control) => out.push_str(&format!("\\u{:04x}", u32::from(control))),
        }
        rest = left.as_str();
    }
    out.push('"');
}

/// Says why a text is not read that the scanner refused. Depth counts first, whatever follows.
fn refusal(text: &str, depth: usize) -> ParseError {
    if scan::nests_deeper(text, depth) {
        return ParseError::TooDeep(depth);
    }
    ParseError::NotJson(said(serde_json::from_str::<IgnoredAny>(text)))
}

/// Accepts no value: serde_json says what stands where a value of another type is expected.
struct Other(&'static str);

impl Visitor<'_> for Other {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Returns what serde_json says of a text that it refuses.
fn said<T>(read: Result<T, serde_json::Error>) -> String {
    read.err().as_ref().map(without_data).unwrap_or_default()
}

/// How many characters of an error message are kept: what was expected and where need fewer.
const WHY: usize = 200;

/// Returns the message of an error. serde_json may quote what a peer sent, at any length, so the message is cut.
fn without_data(error: &serde_json::Error) -> String {
    clipped(&error.to_string(), WHY)
}

#[cfg(test)]
mod tests;
