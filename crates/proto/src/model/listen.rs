//! What a client subscribes to, and the changes that it is told.

use bytestring::ByteString;
use spec::Notice;
use spec::fields::{FILTER_FLAGS, FILTER_URIS};

use crate::json::{Object, Raw};
use crate::model::boxed::BoxStream;
use crate::model::capability::Capabilities;

/// Which changes a client asks to be told.
///
/// <https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions#notification-filter>
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Changes of the list of tools.
    pub tools: bool,
    /// Changes of the list of prompts.
    pub prompts: bool,
    /// Changes of the list of resources.
    pub resources: bool,
    /// Updates of these resources, and of resources below them.
    pub uris: Vec<ByteString>,
}

impl Filter {
    /// Reads a filter. Unknown members are ignored.
    ///
    /// # Errors
    /// Where a member is not of its type; the error names the member.
    pub fn read(sent: &Object) -> Result<Filter, String> {
        let flag = |name: &str| match sent.get(name).map(Raw::as_str) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(format!("{name} must be true or false")),
        };
        let uris = match sent.get(FILTER_URIS) {
            None => Vec::new(),
            Some(raw) => {
                let uris = raw.array().map_err(|_| format!("{FILTER_URIS} must be an array of URIs"))?;
                let uri = |raw: &Raw| raw.string().ok_or_else(|| format!("{FILTER_URIS} must hold strings"));
                uris.iter().map(uri).collect::<Result<_, _>>()?
            }
        };
        let [tools, prompts, resources] = FILTER_FLAGS;
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

    /// Writes the filter as it is sent. It names only what the client asks for.
    pub fn object(&self) -> Object {
        let mut object = Object::new();
        for (name, on) in FILTER_FLAGS.into_iter().zip([self.tools, self.prompts, self.resources]) {
            if on {
                object.set(name, Raw::literal("true"));
            }
        }
        if !self.uris.is_empty() {
            let uris: Vec<&str> = self.uris.iter().map(|uri| &**uri).collect();
            object.set(FILTER_URIS, Raw::of(&uris));
        }
        object
    }
}

/// A change of what a server offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The list of tools changed.
    Tools,
    /// The list of prompts changed.
    Prompts,
    /// The list of resources changed.
    Resources,
    /// A resource changed.
    Resource(ByteString),
    /// The listener did not read its changes in time and was dropped. This is the last thing that it is told.
    Behind,
}

impl Change {
    /// Returns the notification that tells a client of the change; `None` where there is none.
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

/// A subscription that a service has started.
pub struct Listening {
    /// The part of the filter that the service honours.
    pub honoured: Filter,
    /// The changes. The stream ends when the service ends the subscription.
    pub changes: BoxStream<Change>,
}
