//! Resources and resource templates.

use std::collections::HashMap;
use std::time::Duration;

use proto::template::Template;
use proto::{CacheHint, Object, Raw};
use serde::Serialize;

use crate::build_error::BuildError;
use crate::cache::CacheScope;
use crate::complete::{Completer, CompletionArgument, choices, completer};
use crate::content::ResourceContents;
use crate::contents::Contents;
use crate::handler::{Handler, Named, Run, run};

/// What resources and templates have in common.
pub(crate) struct Readable {
    pub(crate) definition: Raw,
    pub(crate) mime_type: Option<String>,
    pub(crate) handler: Run<Contents>,
    pub(crate) hint: CacheHint,
    pub(crate) listed: bool,
}

impl Readable {
    fn new(definition: Object, handler: Run<Contents>, hint: CacheHint) -> Readable {
        let mime_type = definition.string("mimeType").map(|mime| mime.to_string());
        Readable { definition: Raw::from(definition), mime_type, handler, hint, listed: true }
    }
}

/// A resource.
///
/// <https://modelcontextprotocol.io/specification/2026-07-28/server/resources>
pub struct Resource {
    pub(crate) uri: String,
    definition: Object,
    handler: Run<Contents>,
    hint: CacheHint,
    listed: bool,
}

impl Resource {
    /// Makes a resource whose contents never change.
    pub fn fixed(name: &str, contents: ResourceContents) -> Resource {
        let (uri, mime) = (contents.0.string("uri"), contents.0.get("mimeType").cloned());
        let handler = move || std::future::ready(contents.clone());
        let resource = Resource::new(&uri.unwrap_or_default(), name, handler);
        match mime {
            Some(mime) => Resource { definition: resource.definition.with("mimeType", mime), ..resource },
            None => resource,
        }
    }

    /// Makes a resource that an async function reads; the function gives its [`Contents`].
    pub fn new<T, H: Handler<T, Contents>>(uri: &str, name: &str, handler: H) -> Resource {
        Resource {
            uri: uri.to_owned(),
            definition: Object::new().with("uri", uri).with("name", name),
            handler: run(handler),
            hint: CacheHint::default(),
            listed: true,
        }
    }

    /// Leaves the resource out of `resources/list`. A client that knows its URI can read it.
    #[must_use]
    pub fn unlisted(mut self) -> Resource {
        self.listed = false;
        self
    }

    /// Sets the MIME type.
    #[must_use]
    pub fn mime_type(self, mime_type: &str) -> Resource {
        self.with("mimeType", mime_type)
    }

    /// Sets a description.
    #[must_use]
    pub fn description(self, description: &str) -> Resource {
        self.with("description", description)
    }

    /// Sets for how long, and for whom, clients may keep what they read. By default they may not keep it.
    #[must_use]
    pub fn cache(mut self, scope: CacheScope, ttl: Duration) -> Resource {
        self.hint = scope.hint(ttl);
        self
    }

    /// Sets a member of the definition, such as `title`, `description`, `mimeType`, `annotations`.
    #[must_use]
    pub fn with(mut self, member: &'static str, value: impl Serialize) -> Resource {
        self.definition.set(member, Raw::of(&value));
        self
    }

    /// Checks the definition.
    pub(crate) fn ready(self) -> Result<Readable, BuildError> {
        let wrong = |e| BuildError::definition("resource", &self.uri, format_args!("it is no URI: {e}"));
        url::Url::parse(&self.uri).map_err(wrong)?;
        Ok(Readable { listed: self.listed, ..Readable::new(self.definition, self.handler, self.hint) })
    }
}

/// Resources whose URIs follow a template (RFC 6570). The function that reads them takes
/// [`Variables`](crate::Variables), or [`crate::Args`] of a type whose fields are the template's variables.
pub struct ResourceTemplate {
    pub(crate) source: String,
    definition: Object,
    handler: Run<Contents>,
    typed: Named,
    completers: HashMap<String, Completer>,
    hint: CacheHint,
}

impl ResourceTemplate {
    /// Makes a template. An async function gives the [`Contents`] of the resources that match it.
    pub fn new<T, H: Handler<T, Contents>>(template: &str, name: &str, handler: H) -> ResourceTemplate {
        ResourceTemplate {
            source: template.to_owned(),
            definition: Object::new().with("uriTemplate", template).with("name", name),
            handler: run(handler),
            typed: Named::read(H::input_schema()),
            completers: HashMap::new(),
            hint: CacheHint::default(),
        }
    }

    /// Sets the MIME type.
    #[must_use]
    pub fn mime_type(self, mime_type: &str) -> ResourceTemplate {
        self.with("mimeType", mime_type)
    }

    /// Sets a description.
    #[must_use]
    pub fn description(self, description: &str) -> ResourceTemplate {
        self.with("description", description)
    }

    /// Sets for how long, and for whom, clients may keep what they read. By default they may not keep it.
    #[must_use]
    pub fn cache(mut self, scope: CacheScope, ttl: Duration) -> ResourceTemplate {
        self.hint = scope.hint(ttl);
        self
    }

    /// Sets a member of the definition, such as `title`, `description`, `mimeType`, `annotations`.
    #[must_use]
    pub fn with(mut self, member: &'static str, value: impl Serialize) -> ResourceTemplate {
        self.definition.set(member, Raw::of(&value));
        self
    }

    /// Sets how a variable is completed: an async function of what the user typed gives values, the best one first.
    #[must_use]
    pub fn complete<F, Fut>(mut self, variable: &str, values: F) -> ResourceTemplate
    where
        F: Fn(CompletionArgument) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<String>> + Send + 'static,
    {
        self.completers.insert(variable.to_owned(), completer(values));
        self
    }

    /// Sets the choices for a variable. They are ranked by [`CompletionArgument::rank`].
    #[must_use]
    pub fn choices<S: Into<String>>(
        mut self,
        variable: &str,
        values: impl IntoIterator<Item = S>,
    ) -> ResourceTemplate {
        self.completers.insert(variable.to_owned(), choices(values));
        self
    }
}

/// A template that was checked.
pub(crate) struct Ready {
    pub(crate) template: Template,
    pub(crate) readable: Readable,
    pub(crate) typed: Named,
    pub(crate) completers: HashMap<String, Completer>,
}

impl ResourceTemplate {
    pub(crate) fn ready(self) -> Result<Ready, BuildError> {
        let wrong = |why: String| BuildError::definition("resource template", &self.source, why);
        let template = Template::new(&self.source).map_err(wrong)?;
        if let Some(unknown) = self.completers.keys().find(|name| !template.variables().any(|v| v == *name)) {
            return Err(wrong(format!("there is no variable {unknown:?} to complete")));
        }
        let readable = Readable::new(self.definition, self.handler, self.hint);
        Ok(Ready { template, readable, typed: self.typed, completers: self.completers })
    }
}
