//! The tables of methods and of notifications.

use std::sync::Arc;

use crate::fields;
use crate::question::Question;
use crate::revision::{Revision, Revisions};
use crate::shape::Shape;
use crate::table::table;

/// Which peer sends a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Direction {
    ToServer,
    ToClient,
    Both,
}

impl Direction {
    /// Returns a few words on which peer receives the message.
    pub const fn words(self) -> &'static str {
        match self {
            Direction::ToServer => "to the server",
            Direction::ToClient => "to the client",
            Direction::Both => "both ways",
        }
    }
}

/// Which specification defines a method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Home {
    /// The core specification.
    Core,
    /// The extension of this identifier.
    Extension(&'static str),
}

/// A server capability that a method or a notification needs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Capability {
    Tools,
    ToolsListChanged,
    Prompts,
    PromptsListChanged,
    Resources,
    ResourcesListChanged,
    ResourcesSubscribe,
    Completions,
    Logging,
}

impl Capability {
    /// Every capability.
    pub const ALL: [Capability; 9] = [
        Capability::Tools,
        Capability::ToolsListChanged,
        Capability::Prompts,
        Capability::PromptsListChanged,
        Capability::Resources,
        Capability::ResourcesListChanged,
        Capability::ResourcesSubscribe,
        Capability::Completions,
        Capability::Logging,
    ];

    /// Returns the member of `ServerCapabilities`, and the flag in that member where the capability is a flag.
    pub const fn path(self) -> (&'static str, Option<&'static str>) {
        match self {
            Capability::Tools => ("tools", None),
            Capability::ToolsListChanged => ("tools", Some("listChanged")),
            Capability::Prompts => ("prompts", None),
            Capability::PromptsListChanged => ("prompts", Some("listChanged")),
            Capability::Resources => ("resources", None),
            Capability::ResourcesListChanged => ("resources", Some("listChanged")),
            Capability::ResourcesSubscribe => ("resources", Some("subscribe")),
            Capability::Completions => ("completions", None),
            Capability::Logging => ("logging", None),
        }
    }
}

/// A request that a client sends.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Method {
    Initialize,
    Ping,
    Discover,
    ToolsList,
    ToolsCall,
    PromptsList,
    PromptsGet,
    ResourcesList,
    ResourcesTemplatesList,
    ResourcesRead,
    ResourcesSubscribe,
    ResourcesUnsubscribe,
    CompletionComplete,
    LoggingSetLevel,
    SubscriptionsListen,
    /// A method of an extension that these tables do not list, by the name that messages carry.
    Extension(Arc<str>),
}

/// What the tables say about a method.
#[derive(Debug)]
pub struct MethodRow {
    /// The method.
    pub method: Method,
    /// The name that messages carry.
    pub wire: &'static str,
    /// The revisions that have the method, and the specification that defines it there.
    pub lifetimes: &'static [(Revisions, Home)],
    /// The capability that a server has to declare to offer the method.
    pub needs: Option<Capability>,
    /// The parameter that HTTP requests repeat in the header `Mcp-Name`.
    pub named_by: Option<&'static str>,
    /// The member of the result that holds a page of a list, where the method returns one.
    pub lists: Option<&'static str>,
    /// Complete results carry cache hints.
    pub cacheable: bool,
    /// A server may answer with *input required*.
    pub asks: bool,
    /// The shape of the params.
    pub params: &'static Shape,
    /// The shape of the result.
    pub result: &'static Shape,
}

const ALL: &[(Revisions, Home)] = &[(Revisions::ALL, Home::Core)];
const LEGACY: &[(Revisions, Home)] = &[(Revisions::LEGACY, Home::Core)];
const MODERN: &[(Revisions, Home)] = &[(Revisions::MODERN, Home::Core)];

/// What most methods have in common. The macro `table!` fills in which method a row belongs to.
const PLAIN: MethodRow = MethodRow {
    method: Method::Ping,
    wire: "ping",
    lifetimes: ALL,
    needs: None,
    named_by: None,
    lists: None,
    cacheable: false,
    asks: false,
    params: &fields::REQUEST_PARAMS,
    result: &fields::EMPTY_RESULT,
};

table! {
    METHODS, row(method: Method) -> MethodRow {
        Initialize: MethodRow {
            wire: "initialize",
            params: &fields::INITIALIZE_REQUEST_PARAMS,
            lifetimes: LEGACY,
            result: &fields::INITIALIZE_RESULT,
            ..PLAIN
        },
        Ping: MethodRow { lifetimes: LEGACY, ..PLAIN },
        Discover: MethodRow {
            wire: "server/discover",
            lifetimes: MODERN,
            cacheable: true,
            result: &fields::DISCOVER_RESULT,
            ..PLAIN
        },
        ToolsList: MethodRow {
            wire: "tools/list",
            params: &fields::PAGINATED_REQUEST_PARAMS,
            needs: Some(Capability::Tools),
            lists: Some("tools"),
            cacheable: true,
            result: &fields::LIST_TOOLS_RESULT,
            ..PLAIN
        },
        ToolsCall: MethodRow {
            wire: "tools/call",
            params: &fields::CALL_TOOL_REQUEST_PARAMS,
            needs: Some(Capability::Tools),
            named_by: Some("name"),
            asks: true,
            result: &fields::CALL_TOOL_RESULT,
            ..PLAIN
        },
        PromptsList: MethodRow {
            wire: "prompts/list",
            params: &fields::PAGINATED_REQUEST_PARAMS,
            needs: Some(Capability::Prompts),
            lists: Some("prompts"),
            cacheable: true,
            result: &fields::LIST_PROMPTS_RESULT,
            ..PLAIN
        },
        PromptsGet: MethodRow {
            wire: "prompts/get",
            params: &fields::GET_PROMPT_REQUEST_PARAMS,
            needs: Some(Capability::Prompts),
            named_by: Some("name"),
            asks: true,
            result: &fields::GET_PROMPT_RESULT,
            ..PLAIN
        },
        ResourcesList: MethodRow {
            wire: "resources/list",
            params: &fields::PAGINATED_REQUEST_PARAMS,
            needs: Some(Capability::Resources),
            lists: Some("resources"),
            cacheable: true,
            result: &fields::LIST_RESOURCES_RESULT,
            ..PLAIN
        },
        ResourcesTemplatesList: MethodRow {
            wire: "resources/templates/list",
            params: &fields::PAGINATED_REQUEST_PARAMS,
            needs: Some(Capability::Resources),
            lists: Some("resourceTemplates"),
            cacheable: true,
            result: &fields::LIST_RESOURCE_TEMPLATES_RESULT,
            ..PLAIN
        },
        ResourcesRead: MethodRow {
            wire: "resources/read",
            params: &fields::READ_RESOURCE_REQUEST_PARAMS,
            needs: Some(Capability::Resources),
            named_by: Some("uri"),
            cacheable: true,
            asks: true,
            result: &fields::READ_RESOURCE_RESULT,
            ..PLAIN
        },
        ResourcesSubscribe: MethodRow {
            wire: "resources/subscribe",
            params: &fields::SUBSCRIBE_REQUEST_PARAMS,
            lifetimes: LEGACY,
            needs: Some(Capability::ResourcesSubscribe),
            ..PLAIN
        },
        ResourcesUnsubscribe: MethodRow {
            wire: "resources/unsubscribe",
            params: &fields::SUBSCRIBE_REQUEST_PARAMS,
            lifetimes: LEGACY,
            needs: Some(Capability::ResourcesSubscribe),
            ..PLAIN
        },
        CompletionComplete: MethodRow {
            wire: "completion/complete",
            params: &fields::COMPLETE_REQUEST_PARAMS,
            needs: Some(Capability::Completions),
            result: &fields::COMPLETE_RESULT,
            ..PLAIN
        },
        LoggingSetLevel: MethodRow {
            wire: "logging/setLevel",
            params: &fields::SET_LEVEL_REQUEST_PARAMS,
            lifetimes: LEGACY,
            needs: Some(Capability::Logging),
            ..PLAIN
        },
        SubscriptionsListen: MethodRow {
            wire: "subscriptions/listen",
            params: &fields::SUBSCRIPTIONS_LISTEN_REQUEST_PARAMS,
            lifetimes: MODERN,
            result: &fields::SUBSCRIPTIONS_LISTEN_RESULT,
            ..PLAIN
        },
    } else Method::Extension(_) => &EXTENSION
}

/// The row of every method that these tables do not list.
static EXTENSION: MethodRow = MethodRow { lifetimes: &[], ..PLAIN };

impl Method {
    /// Returns every row of the table.
    pub fn rows() -> &'static [MethodRow] {
        METHODS
    }

    /// Returns the row of this method.
    pub fn row(&self) -> &'static MethodRow {
        row(self)
    }

    /// Returns the name that messages carry.
    pub fn wire(&self) -> &str {
        match self {
            Method::Extension(wire) => wire,
            _ => self.row().wire,
        }
    }

    /// Iterates over the methods that return the lists of what a server offers.
    pub fn lists() -> impl Iterator<Item = Method> {
        METHODS.iter().filter(|row| row.lists.is_some()).map(|row| row.method.clone())
    }

    /// Finds the method of this name, whichever revisions have it.
    pub fn parse(wire: &str) -> Option<Method> {
        METHODS.iter().find(|row| row.wire == wire).map(|row| row.method.clone())
    }

    /// Returns whether the core specification of any revision gives this name to a message.
    pub fn is_of_core(wire: &str) -> bool {
        Method::parse(wire).is_some() || Question::parse(wire).is_some() || Notice::parse(wire).is_some()
    }

    /// Returns whether the core specification of this revision has the method.
    pub fn exists(&self, revision: Revision) -> bool {
        self.row().lifetimes.iter().any(|(set, home)| *home == Home::Core && set.contains(revision))
    }
}

impl Question {
    /// Returns the shape of its params.
    pub fn params(self) -> &'static Shape {
        match self {
            Question::Elicit => &fields::ELICIT_REQUEST_PARAMS,
            Question::Sample => &fields::CREATE_MESSAGE_REQUEST_PARAMS,
            Question::ListRoots => &fields::LIST_ROOTS_REQUEST_PARAMS,
        }
    }

    /// Returns the shape of its answer.
    pub fn answer(self) -> &'static Shape {
        match self {
            Question::Elicit => &fields::ELICIT_RESULT,
            Question::Sample => &fields::CREATE_MESSAGE_RESULT,
            Question::ListRoots => &fields::LIST_ROOTS_RESULT,
        }
    }
}

/// A notification.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Notice {
    Initialized,
    Cancelled,
    Progress,
    Message,
    ToolsListChanged,
    PromptsListChanged,
    ResourcesListChanged,
    ResourcesUpdated,
    RootsListChanged,
    SubscriptionsAcknowledged,
    ElicitationComplete,
}

/// What the tables say about a notification.
#[derive(Debug)]
pub struct NoticeRow {
    /// The notification.
    pub notice: Notice,
    /// The name that messages carry.
    pub wire: &'static str,
    /// The revisions that have the notification.
    pub exists: Revisions,
    /// Which peer sends it.
    pub direction: Direction,
    /// The capability that a server has to declare to send it.
    pub needs: Option<Capability>,
    /// The shape of its params.
    pub params: &'static Shape,
}

/// What most notifications have in common. The macro `table!` fills in which notification a row belongs to.
const COMMON: NoticeRow = NoticeRow {
    notice: Notice::ToolsListChanged,
    wire: "",
    exists: Revisions::ALL,
    direction: Direction::ToClient,
    needs: None,
    params: &fields::LIST_CHANGED,
};

table! {
    NOTICES, notice_row(notice: Notice) -> NoticeRow {
        Initialized: NoticeRow {
            wire: "notifications/initialized",
            exists: Revisions::LEGACY,
            direction: Direction::ToServer,
            ..COMMON
        },
        Cancelled: NoticeRow {
            wire: "notifications/cancelled",
            direction: Direction::Both,
            params: &fields::CANCELLED,
            ..COMMON
        },
        Progress: NoticeRow {
            wire: "notifications/progress",
            direction: Direction::Both,
            params: &fields::PROGRESS,
            ..COMMON
        },
        Message: NoticeRow {
            wire: "notifications/message",
            needs: Some(Capability::Logging),
            params: &fields::LOGGING_MESSAGE,
            ..COMMON
        },
        ToolsListChanged: NoticeRow {
            wire: "notifications/tools/list_changed",
            needs: Some(Capability::ToolsListChanged),
            ..COMMON
        },
        PromptsListChanged: NoticeRow {
            wire: "notifications/prompts/list_changed",
            needs: Some(Capability::PromptsListChanged),
            ..COMMON
        },
        ResourcesListChanged: NoticeRow {
            wire: "notifications/resources/list_changed",
            needs: Some(Capability::ResourcesListChanged),
            ..COMMON
        },
        ResourcesUpdated: NoticeRow {
            wire: "notifications/resources/updated",
            needs: Some(Capability::ResourcesSubscribe),
            params: &fields::RESOURCE_UPDATED,
            ..COMMON
        },
        RootsListChanged: NoticeRow {
            wire: "notifications/roots/list_changed",
            exists: Revisions::LEGACY,
            direction: Direction::ToServer,
            ..COMMON
        },
        SubscriptionsAcknowledged: NoticeRow {
            wire: "notifications/subscriptions/acknowledged",
            exists: Revisions::MODERN,
            params: &fields::SUBSCRIPTIONS_ACKNOWLEDGED,
            ..COMMON
        },
        ElicitationComplete: NoticeRow {
            wire: "notifications/elicitation/complete",
            exists: Revisions::only(Revision::V2025_11_25),
            params: &fields::ELICITATION_COMPLETE,
            ..COMMON
        },
    }
}

impl Notice {
    /// Returns every row of the table.
    pub fn rows() -> &'static [NoticeRow] {
        NOTICES
    }

    /// Returns the row of this notification.
    pub fn row(self) -> &'static NoticeRow {
        notice_row(&self)
    }

    /// Returns the name that messages carry.
    pub fn wire(self) -> &'static str {
        self.row().wire
    }

    /// Finds the notification of this name.
    pub fn parse(wire: &str) -> Option<Notice> {
        NOTICES.iter().find(|row| row.wire == wire).map(|row| row.notice)
    }
}
