//! What a prompt gives.

use proto::{Object, Raw};

use crate::content::Content;

/// The messages of a prompt.
#[derive(Clone, Debug, Default)]
pub struct Messages(Vec<(&'static str, Content)>);

impl Messages {
    /// None yet.
    pub fn new() -> Messages {
        Messages::default()
    }

    /// The same with one more message from the user.
    #[must_use]
    pub fn user(mut self, content: impl Into<Content>) -> Messages {
        self.0.push(("user", content.into()));
        self
    }

    /// The same with one more message from the assistant.
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
