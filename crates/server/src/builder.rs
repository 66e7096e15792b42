//! A server under construction.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use proto::{CacheHint, Description, Object, Peer, Raw};
use seal::{Keys, ProcessKey, Sealer, SystemClock};
use serde_json::Value;
use spec::Method;

use crate::build_error::BuildError;
use crate::extension::Extension;
use crate::offer::{Offer, capabilities};
use crate::pages::Pages;
use crate::prompt::Prompt;
use crate::rate::{Limiter, Rate};
use crate::resource::{Resource, ResourceTemplate};
use crate::server::{Gate, Parts, Server};
use crate::tool::Tool;

/// The methods that list.
const LISTS: [Method; 4] =
    [Method::ToolsList, Method::PromptsList, Method::ResourcesList, Method::ResourcesTemplatesList];
/// How often a client may have arguments completed, where nothing else is said: faster than one types.
const COMPLETIONS: Rate = Rate::per_second(100);

/// A server under construction.
pub struct Builder {
    identity: Object,
    instructions: Option<String>,
    tools: Vec<Tool>,
    resources: Vec<Resource>,
    templates: Vec<ResourceTemplate>,
    prompts: Vec<Prompt>,
    extensions: Vec<Extension>,
    grows: bool,
    keys: Option<Arc<dyn Keys>>,
    page: usize,
    hints: HashMap<Method, CacheHint>,
    completions: Rate,
    calls: Option<Rate>,
    gate: Option<Gate>,
}

/// Definitions that belong together and are made from one thing, such as the files of a folder.
pub trait Part {
    /// The server with them.
    fn add(self, to: Builder) -> Builder;
}

impl Server {
    /// Starts to describe a server.
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
            grows: false,
            keys: None,
            page: 250,
            hints: HashMap::new(),
            completions: COMPLETIONS,
            calls: None,
            gate: None,
        }
    }
}

impl Builder {
    /// The same with a title for people.
    #[must_use]
    pub fn title(self, title: &str) -> Builder {
        self.identity("title", title)
    }

    /// The same with any member of the server's `Implementation` object.
    #[must_use]
    pub fn identity(mut self, member: &'static str, value: impl Into<Value>) -> Builder {
        self.identity.set(member, Raw::of(&value.into()));
        self
    }

    /// The same with words on how a model should use it.
    #[must_use]
    pub fn instructions(mut self, text: impl Into<String>) -> Builder {
        self.instructions = Some(text.into());
        self
    }

    /// The same with a tool.
    #[must_use]
    pub fn tool(mut self, tool: Tool) -> Builder {
        self.tools.push(tool);
        self
    }

    /// The same with a resource.
    #[must_use]
    pub fn resource(mut self, resource: Resource) -> Builder {
        self.resources.push(resource);
        self
    }

    /// The same with a resource template.
    #[must_use]
    pub fn template(mut self, template: ResourceTemplate) -> Builder {
        self.templates.push(template);
        self
    }

    /// The same with a prompt.
    #[must_use]
    pub fn prompt(mut self, prompt: Prompt) -> Builder {
        self.prompts.push(prompt);
        self
    }

    /// The same with keys that other processes have too, so that each can go on where another left off.
    #[must_use]
    pub fn keys(mut self, keys: impl Keys) -> Builder {
        self.keys = Some(Arc::new(keys));
        self
    }

    /// The same with at most so many entries a page; 250 where nothing is said.
    #[must_use]
    pub fn page_size(mut self, entries: usize) -> Builder {
        self.page = entries.max(1);
        self
    }

    /// The same with an extension.
    #[must_use]
    pub fn extension(mut self, extension: Extension) -> Builder {
        self.extensions.push(extension);
        self
    }

    /// The same with what a part defines.
    #[must_use]
    pub fn part(self, part: impl Part) -> Builder {
        part.add(self)
    }

    /// The same for a server whose tools, prompts and resources may come while it runs: it declares all three, also
    /// where it begins with none.
    #[must_use]
    pub fn grows(mut self) -> Builder {
        self.grows = true;
        self
    }

    /// The same with a time for which clients may keep lists without asking again, the same for every caller; none
    /// where nothing is said.
    #[must_use]
    pub fn lists_fresh_for(mut self, ttl: Duration) -> Builder {
        for list in LISTS.into_iter().chain([Method::Discover]) {
            self.hints.insert(list, CacheHint { ttl, public: true });
        }
        self
    }

    /// The same with how long one of the lists, or what the server says of itself, may be kept, and for whom.
    #[must_use]
    pub fn fresh_for(mut self, list: Method, ttl: Duration, public: bool) -> Builder {
        self.hints.insert(list, CacheHint { ttl, public });
        self
    }

    /// The same with a limit to how often a client may call tools.
    #[must_use]
    pub fn calls_rate(mut self, rate: Rate) -> Builder {
        self.calls = Some(rate);
        self
    }

    /// The same with a function that decides who may call which tool; what it says goes to whom it refuses.
    #[must_use]
    pub fn allow_calls(
        mut self,
        gate: impl Fn(&Peer, &str) -> Result<(), String> + Send + Sync + 'static,
    ) -> Builder {
        self.gate = Some(Arc::new(gate));
        self
    }

    /// The same with a limit to how often a client may have arguments completed; 100 times a second where nothing is
    /// said.
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
        let mut capabilities = capabilities(&offer, self.grows);
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
            identity: self.identity,
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
        })))
    }
}

struct Shared(Arc<dyn Keys>);

impl Keys for Shared {
    fn keys(&self) -> Vec<seal::Key> {
        self.0.keys()
    }
}
