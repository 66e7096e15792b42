//! What the params of many methods have in common.

use bytestring::ByteString;

use crate::json::Object;
use crate::model::rejection::Rejection;

/// Returns the text of a member that every request of a method has to carry.
///
/// # Errors
/// Where the member is absent or is no string.
pub fn required_string(params: &Object, name: &str) -> Result<ByteString, Rejection> {
    let text = params.string(name);
    text.ok_or_else(|| Rejection::Params(format!("{name:?} is required, and must be a string")))
}
