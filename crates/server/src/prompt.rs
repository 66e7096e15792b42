//! Prompts.

use std::collections::HashMap;
use std::sync::Arc;

use proto::{BoxFuture, Object, Raw};
use serde_json::Value;

use crate::complete::{Completer, Typed, choices, completer};
use crate::content::Content;
use crate::context::Cx;
use crate::error::Result;

/// Makes a prompt's messages.
pub type PromptHandler =
    Arc<dyn Fn(HashMap<String, String>, Cx) -> BoxFuture<'static, Result<Messages>> + Send + Sync>;

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
        proto::project::list(&self.0.into_iter().map(message).collect::<Vec<_>>())
    }
}

/// A prompt.
///
/// <https://modelcontextprotocol.io/specification/2026-07-28/server/prompts>
pub struct Prompt {
    pub(crate) name: String,
    pub(crate) definition: Object,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) handler: PromptHandler,
}

pub(crate) struct Argument {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) required: bool,
    pub(crate) complete: Option<Completer>,
}

impl Prompt {
    /// A prompt with a name, a description, and an async function that makes its messages.
    pub fn new<F, Fut>(name: &str, description: &str, handler: F) -> Prompt
    where
        F: Fn(HashMap<String, String>, Cx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Messages>> + Send + 'static,
    {
        Prompt {
            name: name.to_owned(),
            definition: Object::new().with("name", name).with("description", description),
            arguments: Vec::new(),
            handler: Arc::new(move |arguments, cx| Box::pin(handler(arguments, cx))),
        }
    }

    /// The same with an argument.
    #[must_use]
    pub fn argument(mut self, name: &str, description: &str, required: bool) -> Prompt {
        let (name, description) = (name.to_owned(), description.to_owned());
        self.arguments.push(Argument { name, description, required, complete: None });
        self
    }

    /// The same with completion for the argument that was added last: an async function of what was typed that gives
    /// values, the best first.
    #[must_use]
    pub fn complete<F, Fut>(self, values: F) -> Prompt
    where
        F: Fn(Typed) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<String>> + Send + 'static,
    {
        self.completed_by(completer(values))
    }

    /// The same with completion for the argument that was added last from a set of choices, ranked by
    /// [`Typed::rank`].
    #[must_use]
    pub fn choices<S: Into<String>>(self, values: impl IntoIterator<Item = S>) -> Prompt {
        self.completed_by(choices(values))
    }

    fn completed_by(mut self, completer: Completer) -> Prompt {
        if let Some(argument) = self.arguments.last_mut() {
            argument.complete = Some(completer);
        }
        self
    }

    /// The same with any member of the definition: `title`, `icons`, `_meta`.
    #[must_use]
    pub fn with(mut self, member: &'static str, value: impl Into<Value>) -> Prompt {
        self.definition.set(member, Raw::of(&value.into()));
        self
    }

    /// The definition, as it is listed.
    pub(crate) fn listed(&self) -> Raw {
        let mut definition = self.definition.clone();
        if !self.arguments.is_empty() {
            let argument = |a: &Argument| serde_json::json!({"name": a.name, "description": a.description, "required": a.required});
            definition.set("arguments", Raw::of(&self.arguments.iter().map(argument).collect::<Vec<_>>()));
        }
        Raw::from(definition)
    }
}
