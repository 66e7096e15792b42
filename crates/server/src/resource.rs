//! Resources and resource templates.

use std::collections::HashMap;
use std::sync::Arc;

use proto::{BoxFuture, Object, Raw};
use serde_json::Value;

use crate::complete::{Completer, Typed, choices, completer};
use crate::content::ResourceContents;
use crate::context::Cx;
use crate::error::Result;
use crate::template::Template;

/// Reads a resource: gets the context, gives its contents.
pub type ResourceHandler = Arc<dyn Fn(Cx) -> BoxFuture<'static, Result<Vec<ResourceContents>>> + Send + Sync>;
/// Reads a resource of a template: gets the URI's variables and the context. `None` where there is none.
pub type TemplateHandler =
    Arc<dyn Fn(Vars, Cx) -> BoxFuture<'static, Result<Option<Vec<ResourceContents>>>> + Send + Sync>;

/// A resource.
///
/// <https://modelcontextprotocol.io/specification/2026-07-28/server/resources>
pub struct Resource {
    pub(crate) uri: String,
    pub(crate) definition: Object,
    pub(crate) handler: ResourceHandler,
}

impl Resource {
    /// A resource whose contents never change.
    pub fn fixed(name: &str, contents: ResourceContents) -> Resource {
        let (uri, mime) = (contents.0.string("uri"), contents.0.get("mimeType").cloned());
        let handler = move |_| {
            let contents = contents.clone();
            async move { Ok(vec![contents]) }
        };
        let resource = Resource::new(&uri.unwrap_or_default(), name, handler);
        match mime {
            Some(mime) => Resource { definition: resource.definition.with("mimeType", mime), ..resource },
            None => resource,
        }
    }

    /// A resource that is made when it is read.
    pub fn new<F, Fut>(uri: &str, name: &str, handler: F) -> Resource
    where
        F: Fn(Cx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<ResourceContents>>> + Send + 'static,
    {
        Resource {
            uri: uri.to_owned(),
            definition: Object::new().with("uri", uri).with("name", name),
            handler: Arc::new(move |cx| Box::pin(handler(cx))),
        }
    }

    /// The same with any member of the definition: `title`, `description`, `mimeType`, `annotations`.
    #[must_use]
    pub fn with(mut self, member: &'static str, value: impl Into<Value>) -> Resource {
        self.definition.set(member, Raw::of(&value.into()));
        self
    }
}

/// The values of a template's variables in one URI.
#[derive(Clone, Debug)]
pub struct Vars {
    /// The whole URI.
    pub uri: String,
    values: HashMap<String, String>,
}

impl Vars {
    pub(crate) fn new(uri: &str, values: Vec<(String, String)>) -> Vars {
        Vars { uri: uri.to_owned(), values: values.into_iter().collect() }
    }

    /// A variable's value, percent-decoded. Every variable of the template has one.
    pub fn get(&self, name: &str) -> &str {
        self.values.get(name).map_or("", String::as_str)
    }
}

/// Resources whose URIs follow a template (RFC 6570: `{name}` within a segment, `{+name}` across segments).
pub struct ResourceTemplate {
    pub(crate) source: String,
    pub(crate) definition: Object,
    pub(crate) handler: TemplateHandler,
    pub(crate) completers: HashMap<String, Completer>,
}

impl ResourceTemplate {
    /// A template, and the function that reads the resources that match it.
    pub fn new<F, Fut>(template: &str, name: &str, handler: F) -> ResourceTemplate
    where
        F: Fn(Vars, Cx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<Vec<ResourceContents>>>> + Send + 'static,
    {
        ResourceTemplate {
            source: template.to_owned(),
            definition: Object::new().with("uriTemplate", template).with("name", name),
            handler: Arc::new(move |vars, cx| Box::pin(handler(vars, cx))),
            completers: HashMap::new(),
        }
    }

    /// The same with any member of the definition: `title`, `description`, `mimeType`, `annotations`.
    #[must_use]
    pub fn with(mut self, member: &'static str, value: impl Into<Value>) -> ResourceTemplate {
        self.definition.set(member, Raw::of(&value.into()));
        self
    }

    /// The same with completion for a variable: an async function of what was typed that gives values, the best first.
    #[must_use]
    pub fn complete<F, Fut>(mut self, variable: &str, values: F) -> ResourceTemplate
    where
        F: Fn(Typed) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<String>> + Send + 'static,
    {
        self.completers.insert(variable.to_owned(), completer(values));
        self
    }

    /// The same with completion for a variable from a set of choices, ranked by [`Typed::rank`].
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
    pub(crate) definition: Raw,
    pub(crate) template: Template,
    pub(crate) handler: TemplateHandler,
    pub(crate) completers: HashMap<String, Completer>,
}

impl ResourceTemplate {
    pub(crate) fn ready(self) -> Result<Ready, String> {
        let template = Template::new(&self.source)?;
        if let Some(unknown) = self.completers.keys().find(|name| !template.variables().any(|v| v == *name)) {
            return Err(format!("{:?} has no variable {unknown:?} to complete", self.source));
        }
        let definition = Raw::from(self.definition);
        Ok(Ready { definition, template, handler: self.handler, completers: self.completers })
    }
}
