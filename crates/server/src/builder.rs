//! A server under construction.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use proto::{CacheHint, Description, Object, Peer, Raw};
use seal::{Keys, PAGE_SIZE, ProcessKey, Sealer, SystemClock};
use serde::Serialize;
use spec::Method;

use crate::build_error::BuildError;
use crate::cache::CacheScope;
use crate::extension::Extension;
use crate::offer::{Offer, capabilities};
use crate::pages::Pages;
use crate::prompt::Prompt;
use crate::rate::{Limiter, Rate};
use crate::resource::{Resource, ResourceTemplate};
use crate::server::{Gate, Parts, Server};
use crate::states::States;
use crate::tool::Tool;

/// How often a client may have arguments completed by default: more often than anybody types.
const COMPLETIONS: Rate = Rate::per_second(100);

/// A server that is being built. [`Server::new`] starts one.
pub struct Builder {
    identity: Object,
    instructions: Option<String>,
    tools: Vec<Tool>,
    resources: Vec<Resource>,
    templates: Vec<ResourceTemplate>,
    prompts: Vec<Prompt>,
    extensions: Vec<Extension>,
    dynamic: bool,
    keys: Option<Arc<dyn Keys>>,
    page: usize,
    hints: HashMap<Method, CacheHint>,
    completions: Rate,
    calls: Option<Rate>,
    gate: Option<Gate>,
    states: States,
}

/// Definitions that belong together and are made from one thing, such as the files of a folder.
///
/// [`Builder::define`] adds them to a server.
pub trait Definitions {
    /// Adds them to a server that is built.
    fn add_to(self, server: Builder) -> Builder;
}

impl Server {
    /// Starts to build a server of a name and a version.
    #[allow(clippy::new_ret_no_self)]
    pub fn new(name: &str, version: &str) -> Builder {
        Builder {
            identity: Object::new().with("name", name).with("version", version),
            instructions: None,
            tools: Vec::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            prompts: Vec::new(),
            extensions: Vec::new(),
            dynamic: false,
            keys: None,
            page: PAGE_SIZE,
            hints: HashMap::new(),
            completions: COMPLETIONS,
            calls: None,
            gate: None,
            states: States::default(),
        }
    }
}

impl Builder {
    /// Sets a title for people.
    #[must_use]
    pub fn title(self, title: &str) -> Builder {
        self.identity("title", title)
    }

    /// Sets a member of the server's [`Implementation`] object, such as `websiteUrl` or `icons`.
    ///
    /// [`Implementation`]: https://modelcontextprotocol.io/specification/2026-07-28/schema#implementation
    #[must_use]
    pub fn identity(mut self, member: &'static str, value: impl Serialize) -> Builder {
        self.identity.set(member, Raw::of(&value));
        self
    }

    /// Sets the instructions that tell a model how to use the server.
    #[must_use]
    pub fn instructions(mut self, text: impl Into<String>) -> Builder {
        self.instructions = Some(text.into());
        self
    }

    /// Adds a tool.
    #[must_use]
    pub fn tool(mut self, tool: Tool) -> Builder {
        self.tools.push(tool);
        self
    }

    /// Adds a resource.
    #[must_use]
    pub fn resource(mut self, resource: Resource) -> Builder {
        self.resources.push(resource);
        self
    }

    /// Adds a resource template.
    #[must_use]
    pub fn template(mut self, template: ResourceTemplate) -> Builder {
        self.templates.push(template);
        self
    }

    /// Adds a prompt.
    #[must_use]
    pub fn prompt(mut self, prompt: Prompt) -> Builder {
        self.prompts.push(prompt);
        self
    }

    /// Sets the keys that seal request states and cursors. Processes that have the same keys can go on with each other's
    /// requests. By default each process makes a key of its own.
    #[must_use]
    pub fn keys(mut self, keys: impl Keys) -> Builder {
        self.keys = Some(Arc::new(keys));
        self
    }

    /// Sets how many entries a page of a list has at most; 250 by default.
    #[must_use]
    pub fn page_size(mut self, entries: usize) -> Builder {
        self.page = entries.max(1);
        self
    }

    /// Adds an extension.
    #[must_use]
    pub fn extension(mut self, extension: Extension) -> Builder {
        self.extensions.push(extension);
        self
    }

    /// Sets the value of a type that handlers take by [`State`](crate::State). There is one value of each type: a later one
    /// takes the place of an earlier one.
    #[must_use]
    pub fn state<T: Send + Sync + 'static>(mut self, value: T) -> Builder {
        self.states.set(value);
        self
    }

    /// Adds definitions that belong together, such as the files of a folder.
    #[must_use]
    pub fn define(self, definitions: impl Definitions) -> Builder {
        definitions.add_to(self)
    }

    /// Declares tools, prompts and resources even where the server starts with none of them. Set it where they are added
    /// while the server runs: a client of an older revision does not look for what was not declared.
    #[must_use]
    pub fn dynamic(mut self) -> Builder {
        self.dynamic = true;
        self
    }

    /// Sets for how long, and for whom, clients may keep all lists and what the server says of itself. By default they may
    /// not keep them.
    #[must_use]
    pub fn cache_lists(mut self, scope: CacheScope, ttl: Duration) -> Builder {
        for list in Method::lists().chain([Method::Discover]) {
            self.hints.insert(list, scope.hint(ttl));
        }
        self
    }

    /// Sets for how long, and for whom, clients may keep the result of one method: a list, or what the server says of itself
    /// ([`Method::Discover`]).
    #[must_use]
    pub fn cache_method(mut self, method: Method, scope: CacheScope, ttl: Duration) -> Builder {
        self.hints.insert(method, scope.hint(ttl));
        self
    }

    /// Sets how often each client may call tools. By default there is no limit.
    #[must_use]
    pub fn calls_rate(mut self, rate: Rate) -> Builder {
        self.calls = Some(rate);
        self
    }

    /// Sets a function that decides who may call which tool. A client that is refused is told the text of the error.
    #[must_use]
    pub fn allow_calls(
        mut self,
        gate: impl Fn(&Peer, &str) -> Result<(), String> + Send + Sync + 'static,
    ) -> Builder {
        self.gate = Some(Arc::new(gate));
        self
    }

    /// Sets how often each client may have arguments completed; 100 times a second by default.
    #[must_use]
    pub fn completions_rate(mut self, rate: Rate) -> Builder {
        self.completions = rate;
        self
    }

    /// Checks everything and makes the server.
    ///
    /// # Errors
    /// When a definition is wrong, two have the same name, or no key can be made.
    pub fn build(self) -> Result<Server, BuildError> {
        let mut offer = Offer::default();
        self.tools.into_iter().try_for_each(|tool| offer.put_tool(tool))?;
        self.prompts.into_iter().try_for_each(|prompt| offer.put_prompt(prompt))?;
        self.resources.into_iter().try_for_each(|resource| offer.put_resource(resource))?;
        self.templates.into_iter().try_for_each(|template| offer.put_template(template))?;
        let mut capabilities = capabilities(&offer, self.dynamic);
        let (mut methods, mut added) = (HashMap::new(), Vec::new());
        for extension in self.extensions {
            let extension = extension.ready()?;
            capabilities.extensions.set(extension.id, extension.settings);
            for (method, handler) in extension.methods {
                if methods.insert(method.wire, handler).is_some() {
                    return Err(BuildError::Duplicate {
                        kind: "extension method",
                        name: method.wire.to_owned(),
                    });
                }
                added.push(method);
            }
        }
        let public = CacheHint { ttl: Duration::ZERO, public: true };
        let description = Description {
            identity: self.identity.into(),
            capabilities,
            instructions: self.instructions,
            hint: self.hints.get(&Method::Discover).copied().unwrap_or(public),
            methods: added,
        };
        let keys = match self.keys {
            Some(keys) => keys,
            None => Arc::new(ProcessKey::new().map_err(|e| BuildError::Key { reason: e.to_string() })?),
        };
        Ok(Server(Arc::new(Parts {
            description: Arc::new(description),
            offer: RwLock::new(Arc::new(offer)),
            methods,
            notifier: Arc::default(),
            pages: Pages { size: self.page, sealer: Sealer::new(Shared(keys), SystemClock) },
            hints: self.hints,
            completions: Limiter::new(self.completions),
            calls: self.calls.map(Limiter::new),
            gate: self.gate,
            states: Arc::new(self.states),
        })))
    }
}

struct Shared(Arc<dyn Keys>);

impl Keys for Shared {
    fn keys(&self) -> Vec<seal::Key> {
        self.0.keys()
    }
}
