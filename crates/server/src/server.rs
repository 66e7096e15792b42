//! A server: what it offers, which can change while it is served.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use proto::{CacheHint, Change, Description, Object, Peer};
use spec::Method;

use crate::build_error::BuildError;
use crate::handler::Run;
use crate::notifier::Notifier;
use crate::offer::Offer;
use crate::pages::Pages;
use crate::prompt::Prompt;
use crate::rate::Limiter;
use crate::resource::{Resource, ResourceTemplate};
use crate::states::States;
use crate::tool::Tool;

/// Decides who may call a tool.
pub(crate) type Gate = Arc<dyn Fn(&Peer, &str) -> Result<(), String> + Send + Sync>;

/// A server: its tools, resources and prompts, which can change while it runs. Clones are handles to the same server.
#[derive(Clone)]
pub struct Server(pub(crate) Arc<Parts>);

/// What a server consists of.
pub(crate) struct Parts {
    pub(crate) description: Arc<Description>,
    /// Replaced as a whole; a request keeps the one that it began with.
    pub(crate) offer: RwLock<Arc<Offer>>,
    pub(crate) methods: HashMap<Arc<str>, Run<Object>>,
    pub(crate) notifier: Arc<Notifier>,
    pub(crate) pages: Pages,
    pub(crate) hints: HashMap<Method, CacheHint>,
    pub(crate) completions: Limiter,
    pub(crate) calls: Option<Limiter>,
    pub(crate) gate: Option<Gate>,
    pub(crate) states: Arc<States>,
}

impl Server {
    pub(crate) fn offer(&self) -> Arc<Offer> {
        Arc::clone(&self.0.offer.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes what is offered, and tells clients where that succeeded.
    fn change<T, E>(&self, change: &Change, with: impl FnOnce(&mut Offer) -> Result<T, E>) -> Result<T, E> {
        let changed = {
            let mut offer = self.0.offer.write().unwrap_or_else(PoisonError::into_inner);
            let mut new = (**offer).clone();
            let changed = with(&mut new);
            if changed.is_ok() {
                *offer = Arc::new(new);
            }
            changed
        };
        if changed.is_ok() {
            self.0.notifier.tell(change);
        }
        changed
    }

    /// Adds a tool to the running server, and tells clients. A client of an older revision does not look for tools
    /// where the server did not declare them when it started (see [`crate::Builder::dynamic`]).
    ///
    /// # Errors
    /// When the server has one of that name, or the definition is wrong.
    pub fn add_tool(&self, tool: Tool) -> Result<(), BuildError> {
        self.change(&Change::Tools, |offer| offer.put_tool(tool))
    }

    /// Removes a tool, and tells clients; gives whether there was one. Calls that run go on.
    pub fn remove_tool(&self, name: &str) -> bool {
        self.change(&Change::Tools, |offer| offer.tools.take(name).then_some(()).ok_or(())).is_ok()
    }

    /// Adds a prompt to the running server, and tells clients.
    ///
    /// # Errors
    /// As [`Server::add_tool`].
    pub fn add_prompt(&self, prompt: Prompt) -> Result<(), BuildError> {
        self.change(&Change::Prompts, |offer| offer.put_prompt(prompt))
    }

    /// Removes a prompt, and tells clients; gives whether there was one.
    pub fn remove_prompt(&self, name: &str) -> bool {
        self.change(&Change::Prompts, |offer| offer.prompts.take(name).then_some(()).ok_or(())).is_ok()
    }

    /// Adds a resource to the running server, and tells clients.
    ///
    /// # Errors
    /// As [`Server::add_tool`].
    pub fn add_resource(&self, resource: Resource) -> Result<(), BuildError> {
        self.change(&Change::Resources, |offer| offer.put_resource(resource))
    }

    /// Removes a resource, and tells clients; gives whether there was one.
    pub fn remove_resource(&self, uri: &str) -> bool {
        self.change(&Change::Resources, |offer| offer.resources.take(uri).then_some(()).ok_or(())).is_ok()
    }

    /// Adds a resource template to the running server, and tells clients.
    ///
    /// # Errors
    /// As [`Server::add_tool`].
    pub fn add_template(&self, template: ResourceTemplate) -> Result<(), BuildError> {
        self.change(&Change::Resources, |offer| offer.put_template(template))
    }

    /// Removes a resource template, and tells clients; gives whether there was one.
    pub fn remove_template(&self, template: &str) -> bool {
        self.change(&Change::Resources, |offer| offer.templates.take(template).then_some(()).ok_or(()))
            .is_ok()
    }

    /// The handle that tells clients of changes that the server cannot see, such as new contents of a resource.
    pub fn notifier(&self) -> &Notifier {
        &self.0.notifier
    }
}
