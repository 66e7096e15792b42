//! Methods, questions and notifications.

use crate::fields;
use crate::revision::{Revision, Revisions};
use crate::shape::Shape;

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

const METHODS: &[MethodRow] = &[
    MethodRow {
        method: Method::Initialize,
        wire: "initialize",
        params: &fields::INITIALIZE_REQUEST_PARAMS,
        lifetimes: LEGACY,
        result: &fields::INITIALIZE_RESULT,
        ..PLAIN
    },
    MethodRow { lifetimes: LEGACY, ..PLAIN },
    MethodRow {
        method: Method::Discover,
        wire: "server/discover",
        lifetimes: MODERN,
        cacheable: true,
        result: &fields::DISCOVER_RESULT,
        ..PLAIN
    },
    MethodRow {
        method: Method::ToolsList,
        wire: "tools/list",
        params: &fields::PAGINATED_REQUEST_PARAMS,
        needs: Some(Capability::Tools),
        lists: Some("tools"),
        cacheable: true,
        result: &fields::LIST_TOOLS_RESULT,
        ..PLAIN
    },
    MethodRow {
        method: Method::ToolsCall,
        wire: "tools/call",
        params: &fields::CALL_TOOL_REQUEST_PARAMS,
        needs: Some(Capability::Tools),
        named_by: Some("name"),
        asks: true,
        result: &fields::CALL_TOOL_RESULT,
        ..PLAIN
    },
    MethodRow {
        method: Method::PromptsList,
        wire: "prompts/list",
        params: &fields::PAGINATED_REQUEST_PARAMS,
        needs: Some(Capability::Prompts),
        lists: Some("prompts"),
        cacheable: true,
        result: &fields::LIST_PROMPTS_RESULT,
        ..PLAIN
    },
    MethodRow {
        method: Method::PromptsGet,
        wire: "prompts/get",
        params: &fields::GET_PROMPT_REQUEST_PARAMS,
        needs: Some(Capability::Prompts),
        named_by: Some("name"),
        asks: true,
        result: &fields::GET_PROMPT_RESULT,
        ..PLAIN
    },
    MethodRow {
        method: Method::ResourcesList,
        wire: "resources/list",
        params: &fields::PAGINATED_REQUEST_PARAMS,
        needs: Some(Capability::Resources),
        lists: Some("resources"),
        cacheable: true,
        result: &fields::LIST_RESOURCES_RESULT,
        ..PLAIN
    },
    MethodRow {
        method: Method::ResourcesTemplatesList,
        wire: "resources/templates/list",
        params: &fields::PAGINATED_REQUEST_PARAMS,
        needs: Some(Capability::Resources),
        lists: Some("resourceTemplates"),
        cacheable: true,
        result: &fields::LIST_RESOURCE_TEMPLATES_RESULT,
        ..PLAIN
    },
    MethodRow {
        method: Method::ResourcesRead,
        wire: "resources/read",
        params: &fields::READ_RESOURCE_REQUEST_PARAMS,
        needs: Some(Capability::Resources),
        named_by: Some("uri"),
        cacheable: true,
        asks: true,
        result: &fields::READ_RESOURCE_RESULT,
        ..PLAIN
    },
    MethodRow {
        method: Method::ResourcesSubscribe,
        wire: "resources/subscribe",
        params: &fields::SUBSCRIBE_REQUEST_PARAMS,
        lifetimes: LEGACY,
        needs: Some(Capability::ResourcesSubscribe),
        ..PLAIN
    },
    MethodRow {
        method: Method::ResourcesUnsubscribe,
        wire: "resources/unsubscribe",
        params: &fields::SUBSCRIBE_REQUEST_PARAMS,
        lifetimes: LEGACY,
        needs: Some(Capability::ResourcesSubscribe),
        ..PLAIN
    },
    MethodRow {
        method: Method::CompletionComplete,
        wire: "completion/complete",
        params: &fields::COMPLETE_REQUEST_PARAMS,
        needs: Some(Capability::Completions),
        result: &fields::COMPLETE_RESULT,
        ..PLAIN
    },
    MethodRow {
        method: Method::LoggingSetLevel,
        wire: "logging/setLevel",
        params: &fields::SET_LEVEL_REQUEST_PARAMS,
        lifetimes: LEGACY,
        needs: Some(Capability::Logging),
        ..PLAIN
    },
    MethodRow {
        method: Method::SubscriptionsListen,
        wire: "subscriptions/listen",
        params: &fields::SUBSCRIPTIONS_LISTEN_REQUEST_PARAMS,
        lifetimes: MODERN,
        result: &fields::SUBSCRIPTIONS_LISTEN_RESULT,
        ..PLAIN
    },
];

/// What holds of any method of an extension that is not part of these tables.
const EXTENSION: MethodRow = MethodRow { lifetimes: &[], ..PLAIN };

impl Method {
    /// Every row.
    pub fn rows() -> &'static [MethodRow] {
        METHODS
    }

    /// This method's row.
    pub fn row(self) -> &'static MethodRow {
        if let Method::Extension(_) = self {
            return &EXTENSION;
        }
        METHODS.iter().find(|row| row.method == self).unwrap_or(&PLAIN)
    }

    /// The name on the wire.
    pub fn wire(self) -> &'static str {
        match self {
            Method::Extension(wire) => wire,
            _ => self.row().wire,
        }
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

/// What a server asks of a client: a request of its own in legacy revisions, an input request in modern ones.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Question {
    Elicit,
    Sample,
    ListRoots,
}

impl Question {
    /// Every question.
    pub const ALL: [Question; 3] = [Question::Elicit, Question::Sample, Question::ListRoots];

    /// The name on the wire.
    pub const fn wire(self) -> &'static str {
        match self {
            Question::Elicit => "elicitation/create",
            Question::Sample => "sampling/createMessage",
            Question::ListRoots => "roots/list",
        }
    }

    /// Finds a question by its name on the wire.
    pub fn parse(wire: &str) -> Option<Question> {
        Question::ALL.into_iter().find(|q| q.wire() == wire)
    }

    /// The client capability that it needs.
    pub const fn needs(self) -> &'static str {
        match self {
            Question::Elicit => "elicitation",
            Question::Sample => "sampling",
            Question::ListRoots => "roots",
        }
    }

    /// Where it exists.
    pub const fn exists(self) -> Revisions {
        match self {
            Question::Elicit => Revisions::since(Revision::V2025_06_18),
            Question::Sample | Question::ListRoots => Revisions::ALL,
        }
    }

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

const fn notice(
    notice: Notice,
    wire: &'static str,
    exists: Revisions,
    direction: Direction,
    needs: Option<Capability>,
    params: &'static Shape,
) -> NoticeRow {
    NoticeRow { notice, wire, exists, direction, needs, params }
}

const NOTICES: &[NoticeRow] = &[
    notice(
        Notice::Initialized,
        "notifications/initialized",
        Revisions::LEGACY,
        Direction::ToServer,
        None,
        &fields::LIST_CHANGED,
    ),
    notice(
        Notice::Cancelled,
        "notifications/cancelled",
        Revisions::ALL,
        Direction::Both,
        None,
        &fields::CANCELLED,
    ),
    notice(
        Notice::Progress,
        "notifications/progress",
        Revisions::ALL,
        Direction::Both,
        None,
        &fields::PROGRESS,
    ),
    notice(
        Notice::Message,
        "notifications/message",
        Revisions::ALL,
        Direction::ToClient,
        Some(Capability::Logging),
        &fields::LOGGING_MESSAGE,
    ),
    notice(
        Notice::ToolsListChanged,
        "notifications/tools/list_changed",
        Revisions::ALL,
        Direction::ToClient,
        Some(Capability::ToolsListChanged),
        &fields::LIST_CHANGED,
    ),
    notice(
        Notice::PromptsListChanged,
        "notifications/prompts/list_changed",
        Revisions::ALL,
        Direction::ToClient,
        Some(Capability::PromptsListChanged),
        &fields::LIST_CHANGED,
    ),
    notice(
        Notice::ResourcesListChanged,
        "notifications/resources/list_changed",
        Revisions::ALL,
        Direction::ToClient,
        Some(Capability::ResourcesListChanged),
        &fields::LIST_CHANGED,
    ),
    notice(
        Notice::ResourcesUpdated,
        "notifications/resources/updated",
        Revisions::ALL,
        Direction::ToClient,
        Some(Capability::ResourcesSubscribe),
        &fields::RESOURCE_UPDATED,
    ),
    notice(
        Notice::RootsListChanged,
        "notifications/roots/list_changed",
        Revisions::LEGACY,
        Direction::ToServer,
        None,
        &fields::LIST_CHANGED,
    ),
    notice(
        Notice::SubscriptionsAcknowledged,
        "notifications/subscriptions/acknowledged",
        Revisions::MODERN,
        Direction::ToClient,
        None,
        &fields::SUBSCRIPTIONS_ACKNOWLEDGED,
    ),
    notice(
        Notice::ElicitationComplete,
        "notifications/elicitation/complete",
        Revisions::only(Revision::V2025_11_25),
        Direction::ToClient,
        None,
        &fields::ELICITATION_COMPLETE,
    ),
];

impl Notice {
    /// Every row.
    pub fn rows() -> &'static [NoticeRow] {
        NOTICES
    }

    /// This notification's row.
    pub fn row(self) -> &'static NoticeRow {
        NOTICES.iter().find(|row| row.notice == self).unwrap_or(&NOTICES[0])
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
