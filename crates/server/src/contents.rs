//! What a resource gives.

use crate::content::ResourceContents;

/// What a resource holds, as a handler gives it.
#[derive(Clone, Debug)]
pub enum Contents {
    /// There is no such resource.
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
