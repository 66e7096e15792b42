//! What a client listens to, and what it is told.

use bytestring::ByteString;
use spec::Notice;

use crate::json::{Object, Raw};
use crate::model::boxed::BoxStream;
use crate::model::capability::Capabilities;

/// The members of a filter that speak of lists: of tools, prompts, resources.
const LISTS: [&str; 3] = ["toolsListChanged", "promptsListChanged", "resourcesListChanged"];
/// The member of a filter that names resources.
const URIS: &str = "resourceSubscriptions";

/// What a listen wants to hear of.
///
/// <https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions#notification-filter>
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The list of tools.
    pub tools: bool,
    /// The list of prompts.
    pub prompts: bool,
    /// The list of resources.
    pub resources: bool,
    /// These resources.
    pub uris: Vec<ByteString>,
}

impl Filter {
    /// Reads a filter. Members that it does not know are left out of what is honoured.
    ///
    /// # Errors
    /// Says which member is not of its type.
    pub fn read(sent: &Object) -> Result<Filter, String> {
        let flag = |name: &str| match sent.get(name).map(Raw::as_str) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(format!("{name} must be true or false")),
        };
        let uris = match sent.get(URIS) {
            None => Vec::new(),
            Some(raw) => {
                let uris = raw.array().map_err(|_| format!("{URIS} must be an array of URIs"))?;
                let uri = |raw: &Raw| raw.string().ok_or_else(|| format!("{URIS} must hold strings"));
                uris.iter().map(uri).collect::<Result<_, _>>()?
            }
        };
        let [tools, prompts, resources] = LISTS;
        Ok(Filter { tools: flag(tools)?, prompts: flag(prompts)?, resources: flag(resources)?, uris })
    }

    /// Returns the filter of all lists whose changes a server with these capabilities tells of.
    pub fn lists(capabilities: &Capabilities) -> Filter {
        let told =
            |change: Change| change.notice().is_some_and(|notice| capabilities.satisfies(notice.row().needs));
        Filter {
            tools: told(Change::Tools),
            prompts: told(Change::Prompts),
            resources: told(Change::Resources),
            uris: Vec::new(),
        }
    }

    /// As it is sent; what is not wanted does not stand in it.
    pub fn object(&self) -> Object {
        let mut object = Object::new();
        for (name, on) in LISTS.into_iter().zip([self.tools, self.prompts, self.resources]) {
            if on {
                object.set(name, Raw::literal("true"));
            }
        }
        if !self.uris.is_empty() {
            let uris: Vec<&str> = self.uris.iter().map(|uri| &**uri).collect();
            object.set(URIS, Raw::of(&uris));
        }
        object
    }
}

/// Something changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources.
    Resources,
    /// A resource.
    Resource(ByteString),
    /// The last word to a listener that did not read what it was told, and misses changes.
    Behind,
}

impl Change {
    /// The notification that tells of it, where there is one.
    pub const fn notice(&self) -> Option<Notice> {
        match self {
            Change::Tools => Some(Notice::ToolsListChanged),
            Change::Prompts => Some(Notice::PromptsListChanged),
            Change::Resources => Some(Notice::ResourcesListChanged),
            Change::Resource(_) => Some(Notice::ResourcesUpdated),
            Change::Behind => None,
        }
    }
}

/// A running listen.
pub struct Listening {
    /// What of the filter is honoured.
    pub honoured: Filter,
    /// The changes. It ends when the service ends it.
    pub changes: BoxStream<Change>,
}
