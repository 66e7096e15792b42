//! JSON values that keep the text that was sent. They must hold the same as what serde_json reads.

use std::collections::HashSet;

use bytes::Bytes;
use proto::{Object, Raw};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::input::DEPTH;

/// A value keeps the text that was sent, and is read where serde_json reads it, and holds the same.
pub(crate) fn parse(input: &[u8]) {
    // It reads a value of any depth, with numbers of any size, and does not open strings.
    let text = std::str::from_utf8(input).ok();
    let theirs = text.and_then(|text| serde_json::from_str::<&RawValue>(text).ok());
    let due = theirs.map(RawValue::get).filter(|text| depth(text) <= DEPTH);
    let raw = Raw::parse(Bytes::copy_from_slice(input), DEPTH);
    assert_eq!(raw.as_ref().ok().map(Raw::as_str), due, "{raw:?}");
    let Ok(raw) = raw else { return };
    match serde_json::from_slice::<Value>(input) {
        Ok(theirs) => agree(&raw, &theirs),
        // serde_json refuses numbers that no type of it can hold; all other values must open.
        Err(_) => opened(&raw),
    }
}

/// Counts how deep the brackets of a text are nested, without those in strings.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest, mut rest) = (0usize, 0, text);
    while let Some(at) = rest.find(['"', '[', '{', ']', '}']) {
        let found = rest.as_bytes()[at];
        rest = &rest[at + 1..];
        match found {
            b'"' => {
                while let Some(at) = rest.find(['"', '\\']) {
                    let is_over = rest.as_bytes()[at] == b'"';
                    rest = &rest[at + 1 + usize::from(!is_over)..];
                    if is_over {
                        break;
                    }
                }
            }
            b'[' | b'{' => depth += 1,
            _ => depth -= 1,
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// Checks that both hold the same at every depth.
fn agree(raw: &Raw, value: &Value) {
    assert_eq!(raw.string().as_deref(), value.as_str());
    assert_eq!(raw.is_null(), value.is_null());
    assert_eq!(raw.is_true(), *value == Value::Bool(true));
    match (raw.array(), value) {
        (Ok(elements), Value::Array(values)) => {
            assert_eq!(elements.len(), values.len());
            elements.iter().zip(values).for_each(|(raw, value)| agree(raw, value));
        }
        (Err(_), other) => assert!(!other.is_array(), "{raw:?}"),
        (Ok(_), other) => panic!("an array is {other}"),
    }
    match (raw.object(), value) {
        (Ok(object), Value::Object(values)) => {
            assert_eq!(object.iter().count(), values.len(), "a name that stands twice was taken");
            for ((name, raw), (expected, value)) in object.iter().zip(values) {
                assert_eq!(**name, **expected);
                agree(raw, value);
            }
            let by_name = object.by_name();
            assert!(values.keys().all(|name| by_name.get(&**name).copied() == object.get(name)));
        }
        (Err(error), Value::Object(_)) => assert!(error.to_string().contains("stands twice"), "{error}"),
        (Err(_), _) => {}
        (Ok(_), other) => panic!("an object is {other}"),
    }
}

fn opened(raw: &Raw) {
    if let Ok(object) = raw.object() {
        let mut names = HashSet::new();
        for (name, value) in object.iter() {
            assert!(names.insert(name.clone()), "{name} stands twice");
            opened(value);
        }
    } else if let Ok(elements) = raw.array() {
        elements.iter().for_each(opened);
    }
}

/// An object that is changed and written is what serde_json has after the same changes.
pub(crate) fn rewrite(input: &[u8]) {
    let (json, name) = crate::input::halves(input);
    let (Ok(raw), Ok(name)) = (Raw::parse(Bytes::copy_from_slice(json), DEPTH), std::str::from_utf8(name))
    else {
        return;
    };
    let Ok(mut object) = raw.object() else { return };
    // Where nothing is changed, the values keep their text.
    let again = Raw::from(object.clone()).object().expect("what was written can be read");
    assert!(object == again);
    let Ok(Value::Object(mut value)) = serde_json::from_slice::<Value>(json) else { return };
    assert_eq!(object.take(name).is_some(), value.shift_remove(name).is_some());
    object.set(name.to_owned(), "put");
    value.insert(name.to_owned(), "put".into());
    assert_eq!(object.get(name).and_then(Raw::string).as_deref(), Some("put"));
    object.retain(|name, _| name.len() % 2 == 0);
    value.retain(|name, _| name.len() % 2 == 0);
    let written = Raw::from(object.clone());
    assert_eq!(serde_json::from_str::<Value>(written.as_str()).expect("it is JSON"), Value::Object(value));
    assert!(Object::of(&object) == object);
}
