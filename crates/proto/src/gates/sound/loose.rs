//! Values that are written otherwise than they should be, and notes of what was left out.

use crate::clipped::clipped;
use crate::json::{Object, Raw};

/// What was left out of something, each with its place.
pub type Lost = Vec<String>;

/// How much is said of one message: who reads it wants to know what is wrong, not all of it.
const NOTES: usize = 8;
/// How long a note may be, in characters.
const NOTE: usize = 200;

/// Notes what was left out.
pub(super) fn note(lost: &mut Lost, what: String) {
    if lost.len() < NOTES {
        lost.push(clipped(&what, NOTE));
    }
}

/// An object, and whether it was written as the empty array that some languages have for an empty map.
pub(super) fn opened(value: &Raw) -> Option<(Object, bool)> {
    match value.object() {
        Ok(object) => Some((object, false)),
        Err(_) => is_empty_array(value).then(|| (Object::new(), true)),
    }
}

pub(super) fn is_empty_array(value: &Raw) -> bool {
    value.starts_with('[') && value.array().is_ok_and(|elements| elements.is_empty())
}

/// How many characters of a value a note shows: a note is one line, and the place stands before the value.
const VALUE: usize = 40;

/// The beginning of a value.
pub(super) fn short(text: &str) -> String {
    clipped(text, VALUE)
}

/// Writes another value.
pub(super) fn replace(value: &mut Raw, by: impl Into<Raw>) -> Result<bool, String> {
    *value = by.into();
    Ok(true)
}
