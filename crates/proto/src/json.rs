//! JSON values that keep the text that was sent. A value is parsed only where a rule needs its content.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use bytestring::ByteString;
use serde::de::{DeserializeOwned, Deserializer as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

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
        if nests_deeper(&text, depth) {
            return Err(ParseError::TooDeep(depth));
        }
        let value: &RawValue =
            serde_json::from_str(&text).map_err(|e| ParseError::NotJson(without_data(&e)))?;
        let value = text.slice_ref(value.get());
        Ok(Raw(value))
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
        struct Members<'a>(&'a ByteString);
        impl<'de> Visitor<'de> for Members<'_> {
            type Value = Object;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut object = Object::default();
                while let Some(Name(name)) = map.next_key::<Name<'de>>()? {
                    let name = match name {
                        Cow::Borrowed(name) => self.0.slice_ref(name),
                        Cow::Owned(name) => name.into(),
                    };
                    let value: &'de RawValue = map.next_value()?;
                    object.0.push((name, Raw(self.0.slice_ref(value.get()))));
                }
                match twice(&object.0) {
                    None => Ok(object),
                    Some(name) => {
                        Err(serde::de::Error::custom(format_args!("the name {name:?} stands twice")))
                    }
                }
            }
        }
        serde_json::Deserializer::from_str(&self.0)
            .deserialize_map(Members(&self.0))
            .map_err(|e| ParseError::Unexpected { expected: "an object", detail: without_data(&e) })
    }

    /// Returns the elements of an array.
    ///
    /// # Errors
    /// Where the value is no array.
    pub fn array(&self) -> Result<Vec<Raw>, ParseError> {
        struct Elements<'a>(&'a ByteString);
        impl<'de> Visitor<'de> for Elements<'_> {
            type Value = Vec<Raw>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<Raw>, A::Error> {
                let mut elements = Vec::new();
                while let Some(value) = seq.next_element::<&'de RawValue>()? {
                    elements.push(Raw(self.0.slice_ref(value.get())));
                }
                Ok(elements)
            }
        }
        serde_json::Deserializer::from_str(&self.0)
            .deserialize_seq(Elements(&self.0))
            .map_err(|e| ParseError::Unexpected { expected: "an array", detail: without_data(&e) })
    }

    /// Returns the text of a string; `None` for any other value.
    pub fn string(&self) -> Option<ByteString> {
        if !self.0.starts_with('"') {
            return None;
        }
        let Name(text) = serde_json::from_str(&self.0).ok()?;
        Some(match text {
            Cow::Borrowed(text) => self.0.slice_ref(text),
            Cow::Owned(text) => text.into(),
        })
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
        Raw::of(text)
    }
}

impl From<Object> for Raw {
    fn from(object: Object) -> Raw {
        let mut out = Vec::with_capacity(64);
        object.write(&mut out);
        // All parts are UTF-8: they were read from text, or serde_json wrote them.
        Raw(ByteString::try_from(out).unwrap_or_default())
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
    pub fn set(&mut self, name: impl Into<ByteString>, value: impl Into<Raw>) {
        let (name, value) = (name.into(), value.into());
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
    pub fn with(mut self, name: impl Into<ByteString>, value: impl Into<Raw>) -> Object {
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

    /// Appends the text of the object to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        for (at, (name, value)) in self.0.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            // Neither a string nor a Vec makes this fail.
            let _ = serde_json::to_writer(&mut *out, &**name);
            out.push(b':');
            out.extend_from_slice(value.as_str().as_bytes());
        }
        out.push(b'}');
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

/// Up to this many members are compared each with each, which needs no memory. Nearly all objects have fewer.
const FEW: usize = 16;

/// Finds a name that two members have.
///
/// The work does not grow with the square of the number of members, since a peer decides how many there are.
fn twice(members: &[(ByteString, Raw)]) -> Option<&ByteString> {
    if members.len() <= FEW {
        let before = |at: usize| members[..at].iter().any(|(name, _)| same(name, &members[at].0));
        return (1..members.len()).find(|at| before(*at)).map(|at| &members[at].0);
    }
    let mut names: Vec<&ByteString> = members.iter().map(|(name, _)| name).collect();
    names.sort_unstable_by(|a, b| {
        count();
        a.cmp(b)
    });
    names.windows(2).find(|pair| same(pair[0], pair[1])).map(|pair| pair[1])
}

fn same(a: &ByteString, b: &ByteString) -> bool {
    count();
    a == b
}

#[cfg(test)]
thread_local! {
    /// How often two names were compared.
    static COMPARED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts a comparison, for the tests.
fn count() {
    #[cfg(test)]
    COMPARED.set(COMPARED.get() + 1);
}

/// A string that borrows its text where the text has no escapes.
struct Name<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Name<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// Returns whether objects and arrays are nested deeper than `limit` levels.
fn nests_deeper(text: &str, limit: usize) -> bool {
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

/// How many characters of an error message are kept: what was expected and where need fewer.
const WHY: usize = 200;

/// Returns the message of an error. serde_json may quote what a peer sent, at any length, so the message is cut.
fn without_data(error: &serde_json::Error) -> String {
    clipped(&error.to_string(), WHY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Raw {
        Raw::parse(Bytes::copy_from_slice(text.as_bytes()), 16).unwrap()
    }

    #[test]
    fn what_is_not_opened_stays_as_it_was_sent() {
        let text = r#"{"z":1.0,"a":[1e400, 9007199254740993 ],"\u0062":{"x" : "\u00e9"}}"#;
        let mut object = raw(text).object().unwrap();
        object.set("new", "n");
        assert_eq!(
            Raw::from(object).as_str(),
            r#"{"z":1.0,"a":[1e400, 9007199254740993 ],"b":{"x" : "\u00e9"},"new":"n"}"#
        );
    }

    #[test]
    fn a_name_that_stands_twice_is_refused() {
        assert!(raw(r#"{"a":1,"\u0061":2}"#).object().is_err());
    }

    #[test]
    fn a_name_that_stands_twice_is_found_among_few_and_among_many() {
        for members in [2, FEW, FEW + 1, 1000] {
            for second in [1, members / 2, members - 1] {
                let name = |at: usize| if at == second { 0 } else { at };
                let text: Vec<_> = (0..members).map(|at| format!("\"m{}\":{at}", name(at))).collect();
                let error = raw(&format!("{{{}}}", text.join(","))).object().unwrap_err().to_string();
                assert!(error.contains("\"m0\" stands twice"), "{members} {second}: {error}");
            }
        }
    }

    #[test]
    fn an_object_costs_as_much_as_it_has_members_and_not_their_square() {
        let compared = |members: usize| {
            let text: Vec<_> = (0..members).map(|at| format!("\"m{at}\":{at}")).collect();
            let raw = raw(&format!("{{{}}}", text.join(",")));
            COMPARED.set(0);
            assert_eq!(raw.object().unwrap().iter().count(), members);
            COMPARED.get()
        };
        assert!(compared(FEW) <= FEW * FEW / 2);
        for members in [1 << 10, 1 << 14] {
            // A sort compares each about as often as the number has binary digits.
            assert!(compared(members) < members * 30, "{} for {members}", compared(members));
        }
    }

    #[test]
    fn depth_counts_brackets_outside_strings() {
        assert_eq!(Raw::parse(Bytes::from_static(b"[[[1]]]"), 2), Err(ParseError::TooDeep(2)));
        assert!(Raw::parse(Bytes::from_static(br#"["[[[[\"[["]"#), 1).is_ok());
    }

    #[test]
    fn rubbish_is_an_error() {
        for text in ["", "{", "nul", "1 2", "{'a':1}", "\"\u{1}\""] {
            assert!(Raw::parse(Bytes::from(text), 8).is_err(), "{text:?}");
        }
        assert_eq!(Raw::parse(Bytes::from_static(b"\"\xff\""), 8), Err(ParseError::NotUtf8));
    }
}
