//! Notes on what was removed, and small helpers for values in a wrong form.

use crate::clipped::clipped;
use crate::json::{Object, Raw};

/// Notes on what was removed from a message. Each begins with the place.
pub type Lost = Vec<String>;

/// How many notes are kept of one message: a few examples show what is wrong with a server.
const NOTES: usize = 8;
/// How many characters a note may have: it is shown on one line.
const NOTE: usize = 200;

/// Adds a note.
pub(super) fn note(lost: &mut Lost, what: String) {
    if lost.len() < NOTES {
        lost.push(clipped(&what, NOTE));
    }
}

/// Returns an object, and whether it was written as an empty array: some languages write an empty map so.
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

/// Returns the beginning of a value.
pub(super) fn short(text: &str) -> String {
    clipped(text, VALUE)
}

/// Replaces a value. Returns that it changed.
pub(super) fn replace(value: &mut Raw, by: impl Into<Raw>) -> Result<bool, String> {
    *value = by.into();
    Ok(true)
}
