//! What a server offers, and what it can do by that.

use proto::Capabilities;
use spec::Capability;

use crate::build_error::BuildError;
use crate::prompt::{self, Prompt};
use crate::registry::Registry;
use crate::resource::{self, Resource, ResourceTemplate};
use crate::tool::{self, Tool};

/// What a server offers.
#[derive(Clone, Default)]
pub(crate) struct Offer {
    pub(crate) tools: Registry<tool::Ready>,
    pub(crate) resources: Registry<resource::Readable>,
    pub(crate) templates: Registry<resource::Ready>,
    pub(crate) prompts: Registry<prompt::Ready>,
}

impl Offer {
    pub(crate) fn put_tool(&mut self, tool: Tool) -> Result<(), BuildError> {
        let name = tool.name.clone();
        self.tools.put(&name, tool.ready()?, "tool")
    }

    pub(crate) fn put_prompt(&mut self, prompt: Prompt) -> Result<(), BuildError> {
        let name = prompt.name.clone();
        self.prompts.put(&name, prompt.ready()?, "prompt")
    }

    pub(crate) fn put_resource(&mut self, resource: Resource) -> Result<(), BuildError> {
        let uri = resource.uri.clone();
        self.resources.put(&uri, resource.ready()?, "resource")
    }

    pub(crate) fn put_template(&mut self, template: ResourceTemplate) -> Result<(), BuildError> {
        let source = template.source.clone();
        self.templates.put(&source, template.ready()?, "resource template")
    }
}

/// What a server with this offer can do.
pub(crate) fn capabilities(offer: &Offer, dynamic: bool) -> Capabilities {
    let mut capabilities = Capabilities::none().with(Capability::Logging);
    if dynamic || !offer.tools.is_empty() {
        capabilities = capabilities.with(Capability::Tools).with(Capability::ToolsListChanged);
    }
    if dynamic || !offer.resources.is_empty() || !offer.templates.is_empty() {
        capabilities = capabilities
            .with(Capability::Resources)
            .with(Capability::ResourcesListChanged)
            .with(Capability::ResourcesSubscribe);
    }
    if dynamic || !offer.prompts.is_empty() {
        capabilities = capabilities.with(Capability::Prompts).with(Capability::PromptsListChanged);
    }
    let completes = offer.prompts.values().any(|p| p.arguments.iter().any(|a| a.complete.is_some()))
        || offer.templates.values().any(|t| !t.completers.is_empty());
    if dynamic || completes {
        capabilities = capabilities.with(Capability::Completions);
    }
    capabilities
}
