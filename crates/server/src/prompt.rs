//! Prompts.

use proto::{Object, Raw};
use serde::Serialize;

use crate::build_error::BuildError;
use crate::complete::{Completer, CompletionArgument, choices, completer};
use crate::handler::{Handler, Named, Run, run};
use crate::messages::Messages;

/// A prompt: its definition and its handler.
///
/// <https://modelcontextprotocol.io/specification/2026-07-28/server/prompts>
pub struct Prompt {
    pub(crate) name: String,
    definition: Object,
    arguments: Vec<Argument>,
    typed: Named,
    handler: Run<Messages>,
}

/// An argument of a prompt.
pub(crate) struct Argument {
    pub(crate) name: String,
    description: String,
    pub(crate) required: bool,
    pub(crate) complete: Option<Completer>,
}

/// A prompt that was checked.
pub(crate) struct Ready {
    pub(crate) definition: Raw,
    pub(crate) description: Option<Raw>,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) typed: Named,
    pub(crate) handler: Run<Messages>,
}

impl Prompt {
    /// Makes a prompt of its name, a description, and an async function that gives its [`Messages`]. Where the function
    /// takes [`crate::Args`] of a type, the type's fields are the prompt's arguments.
    pub fn new<T, H: Handler<T, Messages>>(name: &str, description: &str, handler: H) -> Prompt {
        let typed = Named::read(H::input_schema());
        let argument = |(name, description, required): &(String, String, bool)| Argument {
            name: name.clone(),
            description: description.clone(),
            required: *required,
            complete: None,
        };
        Prompt {
            name: name.to_owned(),
            definition: Object::new().with("name", name).with("description", description),
            arguments: typed.fields.iter().map(argument).collect(),
            typed,
            handler: run(handler),
        }
    }

    /// Adds an argument that the type of the handler's arguments does not name, or sets another description of one.
    #[must_use]
    pub fn argument(mut self, name: &str, description: &str, required: bool) -> Prompt {
        let (name, description) = (name.to_owned(), description.to_owned());
        match self.arguments.iter_mut().find(|argument| argument.name == name) {
            Some(argument) => (argument.description, argument.required) = (description, required),
            None => self.arguments.push(Argument { name, description, required, complete: None }),
        }
        self
    }

    /// Sets how an argument is completed: an async function of what the user typed gives values, the best one first.
    #[must_use]
    pub fn complete<F, Fut>(self, argument: &str, values: F) -> Prompt
    where
        F: Fn(CompletionArgument) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<String>> + Send + 'static,
    {
        self.completed(argument, completer(values))
    }

    /// Sets the choices for an argument. They are ranked by [`CompletionArgument::rank`].
    #[must_use]
    pub fn choices<S: Into<String>>(self, argument: &str, values: impl IntoIterator<Item = S>) -> Prompt {
        self.completed(argument, choices(values))
    }

    fn completed(mut self, name: &str, completer: Completer) -> Prompt {
        match self.arguments.iter_mut().find(|argument| argument.name == name) {
            Some(argument) => argument.complete = Some(completer),
            None => self.arguments.push(Argument {
                name: name.to_owned(),
                description: String::new(),
                required: false,
                complete: Some(completer),
            }),
        }
        self
    }

    /// Sets a title for people.
    #[must_use]
    pub fn title(self, title: &str) -> Prompt {
        self.with("title", title)
    }

    /// Sets a member of the definition, such as `title`, `icons`, `_meta`.
    #[must_use]
    pub fn with(mut self, member: &'static str, value: impl Serialize) -> Prompt {
        self.definition.set(member, Raw::of(&value));
        self
    }

    /// Checks the definition.
    pub(crate) fn ready(self) -> Result<Ready, BuildError> {
        if self.name.is_empty() {
            return Err(BuildError::definition("prompt", "", "a prompt needs a name"));
        }
        let mut definition = self.definition;
        if !self.arguments.is_empty() {
            let argument = |a: &Argument| {
                let named = Object::new().with("name", &*a.name);
                let described = match a.description.is_empty() {
                    true => named,
                    false => named.with("description", &*a.description),
                };
                Raw::from(described.with("required", Raw::of(&a.required)))
            };
            let listed: Vec<Raw> = self.arguments.iter().map(argument).collect();
            definition.set("arguments", proto::Raw::list(&listed));
        }
        let description = definition.get("description").cloned();
        let definition = Raw::from(definition);
        let Prompt { arguments, typed, handler, .. } = self;
        Ok(Ready { definition, description, arguments, typed, handler })
    }
}
