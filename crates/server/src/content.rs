//! What tools, prompts and resources return.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use proto::{Object, Raw};
use serde::Serialize;

/// A block of content.
///
/// <https://modelcontextprotocol.io/specification/2026-07-28/schema#contentblock>
#[derive(Clone, Debug)]
pub struct Content(Object);

impl Content {
    /// `kind` is the JSON text of the tag.
    fn of(kind: &'static str) -> Object {
        Object::new().with("type", Raw::literal(kind))
    }

    /// Makes a block of text.
    pub fn text(text: impl AsRef<str>) -> Content {
        Content(Content::of(r#""text""#).with("text", text.as_ref()))
    }

    /// Makes an image of its bytes, which are encoded here.
    pub fn image(data: impl AsRef<[u8]>, mime_type: &str) -> Content {
        Content(Content::of(r#""image""#).with("data", &*BASE64.encode(data)).with("mimeType", mime_type))
    }

    /// Makes a block of sound of its bytes, which are encoded here.
    pub fn audio(data: impl AsRef<[u8]>, mime_type: &str) -> Content {
        Content(Content::of(r#""audio""#).with("data", &*BASE64.encode(data)).with("mimeType", mime_type))
    }

    /// Makes a block that holds a resource with its contents.
    pub fn resource(contents: ResourceContents) -> Content {
        Content(Content::of(r#""resource""#).with("resource", Raw::from(contents.0)))
    }

    /// Makes a block that names a resource, which the client can read.
    pub fn link(uri: &str, name: &str) -> Content {
        Content(Content::of(r#""resource_link""#).with("uri", uri).with("name", name))
    }

    /// Sets a member of the block, such as `annotations` or `_meta`.
    #[must_use]
    pub fn with(self, name: &'static str, value: impl Serialize) -> Content {
        Content(self.0.with(name, Raw::of(&value)))
    }

    pub(crate) fn object(self) -> Object {
        self.0
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Content {
        Content::text(text)
    }
}

impl From<String> for Content {
    fn from(text: String) -> Content {
        Content::text(text)
    }
}

/// The contents of a resource: its URI, MIME type, and text or bytes.
///
/// <https://modelcontextprotocol.io/specification/2026-07-28/schema#textresourcecontents>
#[derive(Clone, Debug)]
pub struct ResourceContents(pub(crate) Object);

impl ResourceContents {
    /// Makes the contents of a resource that is text.
    pub fn text(uri: &str, mime_type: &str, text: impl AsRef<str>) -> ResourceContents {
        ResourceContents(
            Object::new().with("uri", uri).with("mimeType", mime_type).with("text", text.as_ref()),
        )
    }

    /// Makes the contents of a resource that is bytes, which are encoded here.
    pub fn blob(uri: &str, mime_type: &str, data: impl AsRef<[u8]>) -> ResourceContents {
        ResourceContents(
            Object::new().with("uri", uri).with("mimeType", mime_type).with("blob", &*BASE64.encode(data)),
        )
    }
}

/// The result of a tool.
///
/// <https://modelcontextprotocol.io/specification/2026-07-28/schema#calltoolresult>
#[derive(Clone, Debug, Default)]
pub struct ToolResult {
    content: Vec<Content>,
    structured: Option<Raw>,
    is_error: bool,
    meta: Option<Raw>,
}

impl ToolResult {
    /// Makes a result of blocks of content.
    pub fn new(content: impl IntoIterator<Item = Content>) -> ToolResult {
        ToolResult { content: content.into_iter().collect(), ..ToolResult::default() }
    }

    /// Makes a result with `isError`: an error that the model reads and can react to.
    pub fn error(text: impl AsRef<str>) -> ToolResult {
        ToolResult { is_error: true, ..ToolResult::new([Content::text(text)]) }
    }

    /// Makes a result of a value: as structured content, and as text for clients of revisions that have no other form.
    pub fn structured<T: Serialize>(value: &T) -> ToolResult {
        let raw = Raw::of(value);
        ToolResult { structured: Some(raw.clone()), ..ToolResult::new([Content::text(raw.as_str())]) }
    }

    /// Makes a result of a value that is JSON already. It reaches the client to the byte, as structured content and as
    /// text.
    pub fn raw(value: Raw) -> ToolResult {
        ToolResult { structured: Some(value.clone()), ..ToolResult::new([Content::text(value.as_str())]) }
    }

    /// Sets `_meta`.
    #[must_use]
    pub fn meta(mut self, meta: impl Serialize) -> ToolResult {
        self.meta = Some(Raw::of(&meta));
        self
    }

    pub(crate) fn structured_content(&self) -> Option<&Raw> {
        self.structured.as_ref()
    }

    pub(crate) fn is_error(&self) -> bool {
        self.is_error
    }

    pub(crate) fn object(self) -> Object {
        let mut object =
            Object::new().with("content", Raw::objects(self.content.iter().map(|Content(block)| block)));
        if let Some(structured) = self.structured {
            object.set("structuredContent", structured);
        }
        if self.is_error {
            object.set("isError", Raw::literal("true"));
        }
        if let Some(meta) = self.meta {
            object.set(spec::meta::META, meta);
        }
        object
    }
}
