//! Extensions that an author declares.
//!
//! <https://modelcontextprotocol.io/specification/2026-07-28/basic/index#extension-negotiation>

use proto::{ExtensionMethod, Object, Raw};
use serde::Serialize;

use crate::build_error::BuildError;
use crate::handler::{Handler, Run, run};

/// An extension: its identifier, its settings, and the methods that it adds.
pub struct Extension {
    id: &'static str,
    settings: Raw,
    methods: Vec<(ExtensionMethod, Run<Object>)>,
}

/// An extension that was checked.
pub(crate) struct Ready {
    pub(crate) id: &'static str,
    pub(crate) settings: Raw,
    pub(crate) methods: Vec<(ExtensionMethod, Run<Object>)>,
}

impl Extension {
    /// Makes an extension without settings. Its identifier begins with a prefix that belongs to its owner, such as
    /// `com.example/weather`.
    pub fn new(id: &'static str) -> Extension {
        Extension { id, settings: Raw::literal("{}"), methods: Vec::new() }
    }

    /// Sets the settings: an object that the server declares with the identifier. By default it is empty.
    #[must_use]
    pub fn settings(mut self, settings: impl Serialize) -> Extension {
        self.settings = Raw::of(&settings);
        self
    }

    /// Adds a method for clients that declare the extension; other clients get an error that says so. The function
    /// takes [`crate::Args`] of the params and returns an object.
    #[must_use]
    pub fn method<T, H: Handler<T, Object>>(self, wire: &'static str, handler: H) -> Extension {
        self.with(wire, true, run(handler))
    }

    /// Adds a method for every client.
    #[must_use]
    pub fn open_method<T, H: Handler<T, Object>>(self, wire: &'static str, handler: H) -> Extension {
        self.with(wire, false, run(handler))
    }

    fn with(mut self, wire: &'static str, for_declared: bool, handler: Run<Object>) -> Extension {
        self.methods
            .push((ExtensionMethod { wire: wire.into(), extension: self.id.into(), for_declared }, handler));
        self
    }

    /// Checks the definition.
    pub(crate) fn ready(self) -> Result<Ready, BuildError> {
        let Extension { id, settings, methods } = self;
        let wrong = |why: String| BuildError::definition("extension", id, why);
        let (prefix, name) = id.split_once('/').unwrap_or_default();
        let label = |text: &str| {
            let inner = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            text.starts_with(|c: char| c.is_ascii_alphanumeric())
                && text.ends_with(|c: char| c.is_ascii_alphanumeric())
                && text.chars().all(inner)
        };
        if !label(prefix) || !label(name) {
            return Err(wrong("an identifier has a prefix and a name, as in com.example/name".into()));
        }
        if settings.object().is_err() {
            return Err(wrong("the settings must be an object".into()));
        }
        if let Some((taken, _)) = methods.iter().find(|(m, _)| spec::Method::parse(&m.wire).is_some()) {
            return Err(wrong(format!("{:?} is a method of the core", taken.wire)));
        }
        Ok(Ready { id, settings, methods })
    }
}
