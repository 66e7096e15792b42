//! The one trait that a server's handlers and an upstream implement, and what passes through it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use futures_util::Stream;
use spec::{Method, Notice, Question, Revision};

use crate::capability::{Capabilities, ClientCapabilities};
use crate::level::Level;
use crate::raw::{Object, Raw};
use crate::rejection::Rejection;
use crate::wire::Id;

/// A future that a service returns.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
/// A stream that a service returns.
pub type BoxStream<T> = Pin<Box<dyn Stream<Item = T> + Send>>;

/// Whatever answers requests: a server's handlers, an upstream, a gateway over many.
///
/// It knows no era. Dropping a future that it returned cancels the work.
pub trait Service: Send + Sync + 'static {
    /// Who this is and what it can do, as of now.
    fn describe(&self) -> Arc<Description>;

    /// Answers a request.
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Answer, Rejection>>;

    /// Starts to watch for changes. What cannot be watched is left out of the filter that comes back.
    fn listen(&self, filter: Filter, peer: Arc<Peer>) -> BoxFuture<'_, Result<Listening, Rejection>>;

    /// The answers to an [`Interim`] of this request will not come: its client cancelled, or is gone. What waits
    /// for them may stop waiting.
    fn abandon(&self, request: Request) {
        drop(request);
    }

    /// The parameters of a tool that HTTP mirrors in headers; empty for a tool that has none or is unknown.
    fn mirrors(&self, tool: &str) -> Arc<[Mirror]> {
        let _ = tool;
        Arc::new([])
    }
}

/// What a service says of itself.
#[derive(Clone, Debug)]
pub struct Description {
    /// Its `Implementation` object: name, version, and what else it says.
    pub identity: Object,
    /// What it can do.
    pub capabilities: Capabilities,
    /// How a model should use it.
    pub instructions: Option<String>,
    /// How long `server/discover` holds.
    pub hint: CacheHint,
    /// Methods of extensions that the core's tables do not have.
    pub methods: Vec<ExtensionMethod>,
}

/// A method that an extension adds.
///
/// <https://modelcontextprotocol.io/specification/2026-07-28/basic/index#extension-negotiation>
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExtensionMethod {
    /// The method's name on the wire.
    pub wire: &'static str,
    /// The extension's identifier.
    pub extension: &'static str,
    /// Only clients that declare the extension may use it.
    pub for_declared: bool,
}

/// How long a result may be kept, and for whom.
///
/// <https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching>
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CacheHint {
    /// How long it is fresh.
    pub ttl: Duration,
    /// Whether it is the same for every caller.
    pub public: bool,
}

/// Who asks, as far as this very request says.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The revision it speaks.
    pub revision: Revision,
    /// What it can be asked.
    pub capabilities: Arc<ClientCapabilities>,
    /// Its own words on who it is; not verified.
    pub client: Option<Raw>,
    /// The least severe log message that it wants; none at all without one.
    pub log_level: Option<Level>,
    /// On whose behalf.
    pub principal: Principal,
}

/// On whose behalf a request comes. What spans requests belongs to one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Principal(ByteString);

impl Principal {
    /// The user of this machine, over a pipe.
    pub const fn local() -> Principal {
        Principal(ByteString::from_static("local"))
    }

    /// Whoever reaches an open HTTP endpoint: one, shared by all.
    pub const fn anonymous() -> Principal {
        Principal(ByteString::from_static("anonymous"))
    }

    /// As text that is unique among principals.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A request, complete in itself.
#[derive(Clone, Debug)]
pub struct Request {
    /// The id that the peer gave it: for people and logs, unique to nobody.
    pub id: Id,
    /// The method.
    pub method: Method,
    /// Its params, without what belongs to one hop: no progress token, no per-request keys, no answers.
    pub params: Object,
    /// What was answered to questions of an earlier round.
    pub answers: Option<Answers>,
    /// Who asks.
    pub peer: Arc<Peer>,
    /// Whether progress was asked for.
    pub wants_progress: bool,
    /// Where progress and log messages go while the request is worked on.
    pub events: EventSink,
}

/// What a client answered to an [`Interim`].
#[derive(Clone, Debug, Default)]
pub struct Answers {
    /// By the key of the question: the result, or the error object of a client that could not.
    pub responses: Vec<(ByteString, Result<Raw, Raw>)>,
    /// The request state that came with the questions, as it was sent.
    pub state: Option<Raw>,
}

/// How a request ends that does not fail.
#[derive(Clone, Debug)]
pub enum Answer {
    /// The result.
    Complete(Object),
    /// Something has to be asked first; the request is sent again with the answers.
    InputRequired(Interim),
}

/// What has to be asked before a request can be completed.
///
/// <https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr>
#[derive(Clone, Debug, Default)]
pub struct Interim {
    /// The questions, by key.
    pub questions: Vec<(ByteString, Ask)>,
    /// A JSON string that comes back with the answers.
    pub state: Option<Raw>,
}

/// One question to the client.
#[derive(Clone, Debug)]
pub struct Ask {
    /// What kind.
    pub question: Question,
    /// Its params.
    pub params: Object,
}

/// What happens while a request is worked on.
#[derive(Clone, Debug)]
pub enum Event {
    /// Progress: `progress`, `total`, `message`, without the token.
    Progress(Object),
    /// A log message: `level`, `logger`, `data`.
    Log(Level, Object),
    /// The client need not stay connected: it may come back for the rest after this time.
    Release(Duration),
}

/// Where a request's events go: a bounded queue, so that who makes them waits for who reads them.
#[derive(Clone, Debug)]
pub struct EventSink(Option<(u64, async_channel::Sender<(u64, Event)>)>);

impl EventSink {
    /// Into a queue, under a key that tells the requests of one queue apart.
    pub fn new(key: u64, queue: async_channel::Sender<(u64, Event)>) -> EventSink {
        EventSink(Some((key, queue)))
    }

    /// Nowhere.
    pub const fn discard() -> EventSink {
        EventSink(None)
    }

    /// Queues an event, and waits while the queue is full. What nobody reads any more is dropped.
    pub async fn send(&self, event: Event) {
        if let Some((key, queue)) = &self.0 {
            let _ = queue.send((*key, event)).await;
        }
    }

    /// Queues an event if there is room; says whether there was.
    pub fn try_send(&self, event: Event) -> bool {
        match &self.0 {
            Some((key, queue)) => queue.try_send((*key, event)).is_ok(),
            None => true,
        }
    }
}

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

/// A tool's parameter that HTTP mirrors in a header.
///
/// <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#custom-headers-from-tool-parameters>
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mirror {
    /// The header's name behind `Mcp-Param-`, as the schema has it.
    pub header: String,
    /// The chain of `properties` that leads to the value.
    pub path: Vec<String>,
}
