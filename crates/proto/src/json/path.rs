//! Opens the objects on a path of members while a text is checked: where their members stand is known then, and is not
//! searched for again.

use std::ops::Range;

use bytes::Bytes;
use bytestring::ByteString;

use super::scan::Watch;
use super::{Object, ParseError, Raw, names};

/// Reads bytes as [`Raw::parse`] does, and opens objects in them in the same pass: the value itself, the object that its
/// member `path[0]` is, the one that the member `path[1]` of that is, and so on, as far as they exist. One that is missing
/// may still be opened by [`Raw::object`].
pub(crate) fn parse_along(
    bytes: Bytes,
    depth: usize,
    path: &[&str],
) -> Result<(Raw, Vec<Object>), ParseError> {
    let text = ByteString::try_from(bytes).map_err(|_| ParseError::NotUtf8)?;
    let mut path = Path::new(&text, path);
    let raw = Raw::scanned(&text, depth, &mut path)?;
    Ok((raw, path.objects()))
}

/// Opens the outermost object, the one that its member `path[0]` holds, the one that `path[1]` of that holds, and so on.
struct Path<'a> {
    text: &'a ByteString,
    path: &'a [&'a str],
    objects: Vec<Vec<(ByteString, Raw)>>,
    /// How many of the objects have begun and not ended. They lie within each other.
    within: usize,
    /// The name of the last member of each, and where its value begins.
    last: Vec<(Range<usize>, usize)>,
    /// A name has escapes: whoever wants its object opens that anew.
    has_escapes: bool,
}

/// How many members the objects of nearly all messages have at most.
const MEMBERS: usize = 4;

impl<'a> Path<'a> {
    fn new(text: &'a ByteString, path: &'a [&'a str]) -> Path<'a> {
        let levels = path.len() + 1;
        let (objects, last) = (Vec::with_capacity(levels), Vec::with_capacity(levels));
        Path { text, path, objects, within: 0, last, has_escapes: false }
    }

    /// Returns the objects that were found, the outermost first. None is among them that [`Raw::object`] could not open,
    /// or whose names have escapes.
    fn objects(self) -> Vec<Object> {
        if self.has_escapes {
            return Vec::new();
        }
        let opened = self.objects.into_iter().map_while(|members| match names::twice(&members) {
            None => Some(Object(members)),
            Some(_) => None,
        });
        opened.collect()
    }

    fn is_on_path(&self) -> bool {
        let Some(outer) = self.within.checked_sub(1) else { return true };
        let name = self.last.get(outer).and_then(|(name, _)| self.text.get(name.start + 1..name.end - 1));
        self.path.get(outer).is_some_and(|due| name == Some(*due))
    }
}

impl Watch for Path<'_> {
    fn begins(&mut self, depth: usize, is_object: bool) {
        // A second member of the same name makes its object one that cannot be opened.
        let is_new = self.objects.len() == self.within;
        if is_object && depth == self.within + 1 && is_new && self.is_on_path() {
            self.objects.push(Vec::with_capacity(MEMBERS));
            self.last.push((0..0, 0));
            self.within += 1;
        }
    }

    fn names(&mut self, depth: usize, name: Range<usize>, value: usize) {
        if depth == self.within
            && let Some(last) = self.last.get_mut(depth - 1)
        {
            *last = (name, value);
        }
    }

    fn has(&mut self, depth: usize, end: usize) {
        if depth != self.within {
            return;
        }
        let Some((last, object)) =
            depth.checked_sub(1).and_then(|at| Some((self.last.get(at)?, self.objects.get_mut(at)?)))
        else {
            return;
        };
        let (name, begin) = (&self.text[last.0.start + 1..last.0.end - 1], last.1);
        self.has_escapes |= name.contains('\\');
        object.push((self.text.slice_ref(name), Raw(self.text.slice_ref(&self.text[begin..end]))));
    }

    fn ends(&mut self, depth: usize) {
        if depth == self.within {
            self.within -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json::scan::tests::json;

    const PATH: &[&str] = &["m0", "m1"];

    /// The objects on the path, each opened by itself.
    fn one_by_one(raw: &Raw) -> Vec<Object> {
        let mut found: Vec<Object> = raw.object().into_iter().collect();
        for name in PATH {
            let Some(inner) = found.last().and_then(|object| object.get(name)?.object().ok()) else { break };
            found.push(inner);
        }
        found
    }

    fn agree(text: &str) -> usize {
        let (raw, objects) = parse_along(Bytes::copy_from_slice(text.as_bytes()), 128, PATH).unwrap();
        assert_eq!(objects, one_by_one(&raw), "{text}");
        objects.len()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_opened_on_the_way_is_what_is_opened_later(inner in json(), other in json()) {
            agree(&inner);
            agree(&format!(r#"{{"a": {other}, "m0" : {inner} , "z":{other}}}"#));
            agree(&format!(r#"[{{"m0": {inner}}}]"#));
            agree(&format!(r#"{{"m0": [{inner}], "m1": {other}}}"#));
        }
    }

    #[test]
    fn objects_on_the_path_are_opened_and_no_others() {
        for (text, found) in [
            ("7", 0),
            ("{}", 1),
            (r#"{"m0":{}}"#, 2),
            (r#" {"m0" : {"x":{"m1":{}},"m1":{"m0":{"m1":1}}} } "#, 3),
            (r#"{"m1":{"m1":{}},"m0":null}"#, 1),
            (r#"{"x":{"m0":{"m1":{}}},"m0":{"m1":[]}}"#, 2),
            (r#"{"m0":{"m1":{"a":1,"a":2}}}"#, 2),
            (r#"{"m0":{"b":1,"b":2,"m1":{}}}"#, 1),
        ] {
            assert_eq!(agree(text), found, "{text}");
        }
        // A name that needs to be read is left to whoever opens its object.
        let (raw, objects) = parse_along(Bytes::from_static(br#"{"m\u0030":{}}"#), 8, PATH).unwrap();
        assert!(objects.is_empty() && raw.object().is_ok_and(|object| object.get("m0").is_some()));
        let twice = Bytes::from_static(br#"{"m0":{},"m0":{"m1":{}}}"#);
        assert_eq!(parse_along(twice, 8, PATH).unwrap().1, []);
    }
}
