//! What most methods have in their params.

use bytestring::ByteString;
use proto::{Object, Raw, Rejection};

/// A member that must be there, and be a string.
pub(crate) fn named(params: &Object, name: &str) -> Result<ByteString, Rejection> {
    params
        .string(name)
        .ok_or_else(|| Rejection::Params(format!("{name:?} is required, and must be a string")))
}

/// The arguments, as an object; none are an empty one.
pub(crate) fn arguments(params: &Object) -> Result<Raw, Rejection> {
    match params.get("arguments") {
        None => Ok(Raw::literal("{}")),
        Some(raw) if raw.starts_with('{') => Ok(raw.clone()),
        Some(_) => Err(Rejection::Params("\"arguments\" must be an object".into())),
    }
}

/// A name that a client sent, short enough for a message.
pub(crate) fn clipped(text: &str) -> String {
    text.chars().take(80).collect()
}
