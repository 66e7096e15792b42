//! Messages of a prompt, or to a model.

use proto::{Object, Raw};

use crate::content::Content;

/// The messages of a prompt, or of a question to the client's model.
///
/// <https://modelcontextprotocol.io/specification/2026-07-28/schema#promptmessage>
#[derive(Clone, Debug, Default)]
pub struct Messages(Vec<(&'static str, Content)>);

impl Messages {
    /// Makes an empty list of messages.
    pub fn new() -> Messages {
        Messages::default()
    }

    /// Adds a message from the user.
    #[must_use]
    pub fn user(mut self, content: impl Into<Content>) -> Messages {
        self.0.push(("user", content.into()));
        self
    }

    /// Adds a message from the assistant.
    #[must_use]
    pub fn assistant(mut self, content: impl Into<Content>) -> Messages {
        self.0.push(("assistant", content.into()));
        self
    }

    pub(crate) fn raw(self) -> Raw {
        let message = |(role, content): (&str, Content)| {
            Raw::from(Object::new().with("role", role).with("content", Raw::from(content.object())))
        };
        proto::Raw::list(&self.0.into_iter().map(message).collect::<Vec<_>>())
    }
}
