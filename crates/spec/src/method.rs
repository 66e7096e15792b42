//! Methods, questions and notifications.

use crate::fields;
use crate::question::Question;
use crate::revision::{Revision, Revisions};
use crate::shape::Shape;
use crate::table::table;

/// Who sends it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Direction {
    ToServer,
    ToClient,
    Both,
}

impl Direction {
    /// Whom it goes to, in words.
    pub const fn words(self) -> &'static str {
        match self {
            Direction::ToServer => "to the server",
            Direction::ToClient => "to the client",
            Direction::Both => "both ways",
        }
    }
}

/// What defines it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Home {
    /// The core specification.
    Core,
    /// The extension of this identifier.
    Extension(&'static str),
}

/// A server capability that something needs.
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

    /// The name in `ServerCapabilities`, and the flag in it where this is a flag.
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
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
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
    /// One of an extension that is not part of these tables, by its name on the wire.
    Extension(&'static str),
}

/// What holds of a method.
#[derive(Debug)]
pub struct MethodRow {
    /// The method.
    pub method: Method,
    /// Its name on the wire.
    pub wire: &'static str,
    /// Where it exists, and what defines it there.
    pub lifetimes: &'static [(Revisions, Home)],
    /// The server capability that it needs.
    pub needs: Option<Capability>,
    /// The parameter that HTTP mirrors in `Mcp-Name`.
    pub named_by: Option<&'static str>,
    /// The array that its result lists, where it lists.
    pub lists: Option<&'static str>,
    /// Its complete results carry cache hints.
    pub cacheable: bool,
    /// It may be answered by *input required*.
    pub asks: bool,
    /// The shape of its params.
    pub params: &'static Shape,
    /// The shape of its result.
    pub result: &'static Shape,
}

const ALL: &[(Revisions, Home)] = &[(Revisions::ALL, Home::Core)];
const LEGACY: &[(Revisions, Home)] = &[(Revisions::LEGACY, Home::Core)];
const MODERN: &[(Revisions, Home)] = &[(Revisions::MODERN, Home::Core)];

/// What most methods have in common; [`table!`] writes the name of each.
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

/// What holds of any method of an extension that is not part of these tables.
static EXTENSION: MethodRow = MethodRow { lifetimes: &[], ..PLAIN };

impl Method {
    /// Every row.
    pub fn rows() -> &'static [MethodRow] {
        METHODS
    }

    /// This method's row.
    pub fn row(self) -> &'static MethodRow {
        row(self)
    }

    /// The name on the wire.
    pub fn wire(self) -> &'static str {
        match self {
            Method::Extension(wire) => wire,
            _ => self.row().wire,
        }
    }

    /// The methods that list what a server offers.
    pub fn lists() -> impl Iterator<Item = Method> {
        METHODS.iter().filter(|row| row.lists.is_some()).map(|row| row.method)
    }

    /// Finds a method by its name on the wire, whatever revision it is of.
    pub fn parse(wire: &str) -> Option<Method> {
        METHODS.iter().find(|row| row.wire == wire).map(|row| row.method)
    }

    /// Whether the core of this revision has it.
    pub fn exists(self, revision: Revision) -> bool {
        self.row().lifetimes.iter().any(|(set, home)| *home == Home::Core && set.contains(revision))
    }
}

impl Question {
    /// The shape of its params.
    pub fn params(self) -> &'static Shape {
        match self {
            Question::Elicit => &fields::ELICIT_REQUEST_PARAMS,
            Question::Sample => &fields::CREATE_MESSAGE_REQUEST_PARAMS,
            Question::ListRoots => &fields::LIST_ROOTS_REQUEST_PARAMS,
        }
    }

    /// The shape of its answer.
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

/// What holds of a notification.
#[derive(Debug)]
pub struct NoticeRow {
    /// The notification.
    pub notice: Notice,
    /// Its name on the wire.
    pub wire: &'static str,
    /// Where it exists.
    pub exists: Revisions,
    /// Who sends it.
    pub direction: Direction,
    /// The server capability without which it is not sent.
    pub needs: Option<Capability>,
    /// The shape of its params.
    pub params: &'static Shape,
}

/// What most notifications have in common; [`table!`] writes the name of each.
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
    /// Every row.
    pub fn rows() -> &'static [NoticeRow] {
        NOTICES
    }

    /// This notification's row.
    pub fn row(self) -> &'static NoticeRow {
        notice_row(self)
    }

    /// The name on the wire.
    pub fn wire(self) -> &'static str {
        self.row().wire
    }

    /// Finds a notification by its name on the wire.
    pub fn parse(wire: &str) -> Option<Notice> {
        NOTICES.iter().find(|row| row.wire == wire).map(|row| row.notice)
    }
}
