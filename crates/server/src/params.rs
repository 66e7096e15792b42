//! What most methods have in their params.

use proto::{Object, Raw, Rejection};

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
    proto::clipped(text, 80)
}
