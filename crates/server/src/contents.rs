//! The contents of a resource, as its handler gives them.

use crate::content::ResourceContents;

/// The contents of a resource, as its handler gives them.
///
/// A handler can also return text, bytes, or an [`Option`]; see [`crate::IntoResponse`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Contents {
    /// There is no such resource: the client gets an error that says so.
    NotFound,
    /// Text, of the MIME type that the definition names.
    Text(String),
    /// Bytes, of the MIME type that the definition names.
    Bytes(Vec<u8>),
    /// Contents with URIs and MIME types of their own.
    Resources(Vec<ResourceContents>),
}

impl Contents {
    /// With what the definition says where the handler did not.
    pub(crate) fn of(self, uri: &str, mime_type: Option<&str>) -> Vec<ResourceContents> {
        match self {
            Contents::NotFound => Vec::new(),
            Contents::Text(text) => {
                vec![ResourceContents::text(uri, mime_type.unwrap_or("text/plain"), text)]
            }
            Contents::Bytes(bytes) => {
                vec![ResourceContents::blob(uri, mime_type.unwrap_or("application/octet-stream"), bytes)]
            }
            Contents::Resources(contents) => contents,
        }
    }
}
