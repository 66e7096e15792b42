//! The fields of every object type: one row for each field, with the revisions that have it.

use crate::level::Level;
use crate::meta;
use crate::question::Question;
use crate::revision::{Revision, Revisions};
use crate::shape::Holds::{Content, ContentOrList, Contents, List, Map, Object};
use crate::shape::ValueType::{
    AnySchema, Flag, Form as Asked, Free, Id, Key, Number, Said, Schema, Share, Text, Texts, Uri, Whole,
    Word, Words,
};
use crate::shape::{Field, Form, Kind, Shape, opt, req};

const ALL: Revisions = Revisions::ALL;
const LEGACY: Revisions = Revisions::LEGACY;
const MODERN: Revisions = Revisions::MODERN;
const R0326: Revisions = Revisions::since(Revision::V2025_03_26);
const R0618: Revisions = Revisions::since(Revision::V2025_06_18);
const R1125: Revisions = Revisions::since(Revision::V2025_11_25);
const ONLY_0618: Revisions = Revisions::only(Revision::V2025_06_18);
const ONLY_1125: Revisions = Revisions::only(Revision::V2025_11_25);
/// The revisions in which elicitation is a request of the server.
const ELICITATION_LEGACY: Revisions = R0618.and(LEGACY);

/// The roles in a conversation.
const ROLES: &[&str] = &["user", "assistant"];

/// The members of a [`SUBSCRIPTION_FILTER`] that ask for changes of a list: of tools, of prompts and of resources.
pub const FILTER_FLAGS: [&str; 3] = ["toolsListChanged", "promptsListChanged", "resourcesListChanged"];
/// The member of a [`SUBSCRIPTION_FILTER`] that names resources.
pub const FILTER_URIS: &str = "resourceSubscriptions";

const META: Field = opt(meta::META, R0618).of(Free);
const RESULT_TYPE: Field = req("resultType", MODERN).of(Text).stamped();
const NEXT_CURSOR: Field = opt("nextCursor", ALL).of(Text);
const TTL_MS: Field = req("ttlMs", MODERN).of(Whole).stamped();
const CACHE_SCOPE: Field = req("cacheScope", MODERN).of(Word(&["public", "private"])).stamped();
const ICONS: Field = opt("icons", R1125).holds(List(&ICON));
const TASK: Field = opt("task", ONLY_1125).holds(Object(&TASK_METADATA));
const RELATED_TASK: Field = opt(meta::RELATED_TASK, ONLY_1125).holds(Object(&RELATED_TASK_METADATA));
const LISTEN: Field = opt(meta::SUBSCRIPTION_ID, MODERN).of(Id);
const QUESTION_TOKEN: Field = opt(meta::PROGRESS_TOKEN, LEGACY).of(Id);
const SERVER_INFO: Field = opt(meta::SERVER_INFO, MODERN).holds(Object(&IMPLEMENTATION));

const STRUCTURED_CONTENT: Field =
    opt("structuredContent", R0618).narrow(LEGACY, Form::Object).said_in("content");

const fn result_meta(exists: Revisions) -> Field {
    opt(meta::META, exists).holds(Object(&RESULT_META))
}

const fn notification_meta(exists: Revisions) -> Field {
    opt(meta::META, exists).holds(Object(&NOTIFICATION_META))
}

const fn question_meta(exists: Revisions) -> Field {
    opt(meta::META, exists).holds(Object(&QUESTION_META))
}

const fn answer_meta(exists: Revisions) -> Field {
    opt(meta::META, exists).holds(Object(&ANSWER_META))
}

const fn annotations(exists: Revisions) -> Field {
    opt("annotations", exists).holds(Object(&ANNOTATIONS))
}

/// The shapes of `_meta`, each with the messages that carry it.
pub static METAS: &[(&str, &Shape)] = &[
    ("requests", &REQUEST_META),
    ("results", &RESULT_META),
    ("the result of a listen", &SUBSCRIPTIONS_LISTEN_RESULT_META),
    ("notifications", &NOTIFICATION_META),
    ("questions", &QUESTION_META),
    ("answers to questions", &ANSWER_META),
];

/// The tables of kinds of content, each with the messages that hold such content.
pub static KINDS: &[(&str, &[Kind])] =
    &[("tools and prompts", CONTENT), ("sampling messages", SAMPLING_CONTENT)];

// Reserved keys of `_meta`.

/// `_meta` of a client's request.
pub static REQUEST_META: Shape = Shape::new(
    "RequestMetaObject",
    &[
        opt(meta::PROGRESS_TOKEN, ALL).of(Id),
        req(meta::PROTOCOL_VERSION, MODERN).of(Text),
        opt(meta::CLIENT_INFO, MODERN).holds(Object(&IMPLEMENTATION)),
        req(meta::CLIENT_CAPABILITIES, MODERN).holds(Object(&CLIENT_CAPABILITIES)),
        opt(meta::LOG_LEVEL, MODERN).of(Word(&Level::NAMES)),
        RELATED_TASK,
    ],
);

/// Returns a key that is reserved for the `_meta` of other messages: no revision has it in this one.
const fn elsewhere(key: &'static str) -> Field {
    opt(key, Revisions::NONE)
}

const NO_VERSION: Field = elsewhere(meta::PROTOCOL_VERSION);
const NO_CLIENT: Field = elsewhere(meta::CLIENT_INFO);
const NO_CAPABILITIES: Field = elsewhere(meta::CLIENT_CAPABILITIES);
const NO_LEVEL: Field = elsewhere(meta::LOG_LEVEL);
const NO_SERVER: Field = elsewhere(meta::SERVER_INFO);
const NO_LISTEN: Field = elsewhere(meta::SUBSCRIPTION_ID);

/// Adds the keys that only the `_meta` of a client's request may have.
macro_rules! unlike_requests {
    ($($own:expr),*) => { &[$($own,)* NO_VERSION, NO_CLIENT, NO_CAPABILITIES, NO_LEVEL] };
}

/// `_meta` of a server's result.
pub static RESULT_META: Shape =
    Shape::new("ResultMetaObject", unlike_requests![SERVER_INFO, RELATED_TASK, NO_LISTEN]);

/// `_meta` of the result that ends a `subscriptions/listen`.
pub static SUBSCRIPTIONS_LISTEN_RESULT_META: Shape = Shape::new(
    "SubscriptionsListenResultMetaObject",
    &[req(meta::SUBSCRIPTION_ID, MODERN).of(Id), SERVER_INFO],
);

/// `_meta` of a notification.
pub static NOTIFICATION_META: Shape =
    Shape::new("NotificationMetaObject", unlike_requests![LISTEN, RELATED_TASK, NO_SERVER]);

/// `_meta` of a server's question. It has none of the keys that a modern request carries.
pub static QUESTION_META: Shape =
    Shape::new("MetaObject", unlike_requests![QUESTION_TOKEN, RELATED_TASK, NO_SERVER, NO_LISTEN]);

/// `_meta` of a client's answer to a question.
pub static ANSWER_META: Shape =
    Shape::new("MetaObject", unlike_requests![RELATED_TASK, NO_SERVER, NO_LISTEN]);

/// The task that a message belongs to.
pub static RELATED_TASK_METADATA: Shape =
    Shape::new("RelatedTaskMetadata", &[req("taskId", ONLY_1125).of(Text)]);

// Requests of a client.

const REQUEST_META_FIELD: Field = opt(meta::META, ALL).required(MODERN).holds(Object(&REQUEST_META));
/// A client's answers to the questions that a server asked. The question says which shape its answer has.
const INPUT_RESPONSES: Field = opt("inputResponses", MODERN).of(Free);
const REQUEST_STATE: Field = opt("requestState", MODERN).of(Text);

/// Params of `initialize`.
pub static INITIALIZE_REQUEST_PARAMS: Shape = Shape::new(
    "InitializeRequestParams",
    &[
        req("protocolVersion", LEGACY).of(Text),
        req("capabilities", LEGACY).holds(Object(&CLIENT_CAPABILITIES)),
        req("clientInfo", LEGACY).holds(Object(&IMPLEMENTATION)),
        opt(meta::META, LEGACY).holds(Object(&REQUEST_META)),
    ],
);

/// Params of a request that has no params but `_meta`.
pub static REQUEST_PARAMS: Shape = Shape::new("RequestParams", &[REQUEST_META_FIELD]);

/// Params of requests for a list.
pub static PAGINATED_REQUEST_PARAMS: Shape =
    Shape::new("PaginatedRequestParams", &[opt("cursor", ALL).of(Text), REQUEST_META_FIELD]);

/// Params of `tools/call`.
pub static CALL_TOOL_REQUEST_PARAMS: Shape = Shape::new(
    "CallToolRequestParams",
    &[
        req("name", ALL).of(Key),
        opt("arguments", ALL).of(Free),
        TASK,
        INPUT_RESPONSES,
        REQUEST_STATE,
        REQUEST_META_FIELD,
    ],
);

/// Params of `prompts/get`.
pub static GET_PROMPT_REQUEST_PARAMS: Shape = Shape::new(
    "GetPromptRequestParams",
    &[
        req("name", ALL).of(Key),
        opt("arguments", ALL).of(Free),
        INPUT_RESPONSES,
        REQUEST_STATE,
        REQUEST_META_FIELD,
    ],
);

/// Params of `resources/read`.
pub static READ_RESOURCE_REQUEST_PARAMS: Shape = Shape::new(
    "ReadResourceRequestParams",
    &[req("uri", ALL).of(Uri), INPUT_RESPONSES, REQUEST_STATE, REQUEST_META_FIELD],
);

/// Params of `resources/subscribe` and `resources/unsubscribe`.
pub static SUBSCRIBE_REQUEST_PARAMS: Shape = Shape::new(
    "SubscribeRequestParams",
    &[req("uri", LEGACY).of(Uri), opt(meta::META, LEGACY).holds(Object(&REQUEST_META))],
);

/// Params of `completion/complete`.
pub static COMPLETE_REQUEST_PARAMS: Shape = Shape::new(
    "CompleteRequestParams",
    &[
        req("ref", ALL).holds(Object(&REFERENCE)),
        req("argument", ALL).holds(Object(&COMPLETED_ARGUMENT)),
        opt("context", R0618).holds(Object(&COMPLETION_CONTEXT)),
        REQUEST_META_FIELD,
    ],
);

/// A prompt or a resource template, by name or URI.
pub static REFERENCE: Shape = Shape::new(
    "PromptReference, ResourceTemplateReference",
    &[
        req("type", ALL).of(Word(&["ref/prompt", "ref/resource"])),
        opt("name", ALL).of(Key),
        opt("title", R0618).of(Text),
        opt("uri", ALL).of(Uri),
    ],
);

/// The argument that is completed, and what the user has typed of it.
pub static COMPLETED_ARGUMENT: Shape =
    Shape::new("CompleteRequestParams.argument", &[req("name", ALL).of(Key), req("value", ALL).of(Text)]);

/// The arguments that already have values.
pub static COMPLETION_CONTEXT: Shape =
    Shape::new("CompleteRequestParams.context", &[opt("arguments", R0618).of(Free)]);

/// Params of `logging/setLevel`.
pub static SET_LEVEL_REQUEST_PARAMS: Shape = Shape::new(
    "SetLevelRequestParams",
    &[req("level", LEGACY).of(Word(&Level::NAMES)), opt(meta::META, LEGACY).holds(Object(&REQUEST_META))],
);

/// Params of `subscriptions/listen`.
pub static SUBSCRIPTIONS_LISTEN_REQUEST_PARAMS: Shape = Shape::new(
    "SubscriptionsListenRequestParams",
    &[
        req("notifications", MODERN).holds(Object(&SUBSCRIPTION_FILTER)),
        req(meta::META, MODERN).holds(Object(&REQUEST_META)),
    ],
);

// Results.

/// Result of `initialize`.
pub static INITIALIZE_RESULT: Shape = Shape::new(
    "InitializeResult",
    &[
        req("protocolVersion", LEGACY).of(Text),
        req("capabilities", LEGACY).holds(Object(&SERVER_CAPABILITIES)),
        req("serverInfo", LEGACY).holds(Object(&IMPLEMENTATION)),
        opt("instructions", LEGACY).of(Text),
        result_meta(LEGACY),
    ],
);

/// Result of `server/discover`.
pub static DISCOVER_RESULT: Shape = Shape::new(
    "DiscoverResult",
    &[
        req("supportedVersions", MODERN).of(Texts(usize::MAX)),
        req("capabilities", MODERN).holds(Object(&SERVER_CAPABILITIES)),
        opt("instructions", MODERN).of(Text),
        TTL_MS,
        CACHE_SCOPE,
        RESULT_TYPE,
        result_meta(MODERN),
    ],
);

/// Result of `tools/list`.
pub static LIST_TOOLS_RESULT: Shape = Shape::new(
    "ListToolsResult",
    &[req("tools", ALL).holds(List(&TOOL)), NEXT_CURSOR, TTL_MS, CACHE_SCOPE, RESULT_TYPE, result_meta(ALL)],
);

/// Result of `tools/call`.
pub static CALL_TOOL_RESULT: Shape = Shape::new(
    "CallToolResult",
    &[
        req("content", ALL).holds(Contents(CONTENT)),
        STRUCTURED_CONTENT,
        opt("isError", ALL).of(Flag),
        RESULT_TYPE,
        result_meta(ALL),
    ],
);

/// Result of `prompts/list`.
pub static LIST_PROMPTS_RESULT: Shape = Shape::new(
    "ListPromptsResult",
    &[
        req("prompts", ALL).holds(List(&PROMPT)),
        NEXT_CURSOR,
        TTL_MS,
        CACHE_SCOPE,
        RESULT_TYPE,
        result_meta(ALL),
    ],
);

/// Result of `prompts/get`.
pub static GET_PROMPT_RESULT: Shape = Shape::new(
    "GetPromptResult",
    &[
        opt("description", ALL).of(Text),
        req("messages", ALL).holds(List(&PROMPT_MESSAGE)),
        RESULT_TYPE,
        result_meta(ALL),
    ],
);

/// Result of `resources/list`.
pub static LIST_RESOURCES_RESULT: Shape = Shape::new(
    "ListResourcesResult",
    &[
        req("resources", ALL).holds(List(&RESOURCE)),
        NEXT_CURSOR,
        TTL_MS,
        CACHE_SCOPE,
        RESULT_TYPE,
        result_meta(ALL),
    ],
);

/// Result of `resources/templates/list`.
pub static LIST_RESOURCE_TEMPLATES_RESULT: Shape = Shape::new(
    "ListResourceTemplatesResult",
    &[
        req("resourceTemplates", ALL).holds(List(&RESOURCE_TEMPLATE)),
        NEXT_CURSOR,
        TTL_MS,
        CACHE_SCOPE,
        RESULT_TYPE,
        result_meta(ALL),
    ],
);

/// Result of `resources/read`.
pub static READ_RESOURCE_RESULT: Shape = Shape::new(
    "ReadResourceResult",
    &[
        req("contents", ALL).holds(List(&RESOURCE_CONTENTS)),
        TTL_MS,
        CACHE_SCOPE,
        RESULT_TYPE,
        result_meta(ALL),
    ],
);

/// Result of `completion/complete`.
pub static COMPLETE_RESULT: Shape = Shape::new(
    "CompleteResult",
    &[req("completion", ALL).holds(Object(&COMPLETION)), RESULT_TYPE, result_meta(ALL)],
);

/// A result without content: the server did what it was asked to do.
pub static EMPTY_RESULT: Shape = Shape::new("EmptyResult", &[RESULT_TYPE, result_meta(ALL)]);

/// Result of `subscriptions/listen`. The server sends it when the subscription ends.
pub static SUBSCRIPTIONS_LISTEN_RESULT: Shape = Shape::new(
    "SubscriptionsListenResult",
    &[RESULT_TYPE, req(meta::META, MODERN).holds(Object(&SUBSCRIPTIONS_LISTEN_RESULT_META))],
);

/// Result of a request that the server can complete only with the client's input.
pub static INPUT_REQUIRED_RESULT: Shape = Shape::new(
    "InputRequiredResult",
    &[
        opt("inputRequests", MODERN).holds(Map(&INPUT_REQUEST)),
        opt("requestState", MODERN).of(Text),
        RESULT_TYPE,
        result_meta(MODERN),
    ],
);

// Params of notifications.

/// Params of `notifications/progress`.
pub static PROGRESS: Shape = Shape::new(
    "ProgressNotificationParams",
    &[
        req("progressToken", ALL).of(Id),
        req("progress", ALL).of(Number),
        opt("total", ALL).of(Number),
        opt("message", R0326).of(Text),
        notification_meta(ALL),
    ],
);

/// Params of `notifications/message`.
pub static LOGGING_MESSAGE: Shape = Shape::new(
    "LoggingMessageNotificationParams",
    &[
        req("level", ALL).of(Word(&Level::NAMES)),
        opt("logger", ALL).of(Text),
        req("data", ALL),
        notification_meta(ALL),
    ],
);

/// Params of `notifications/resources/updated`.
pub static RESOURCE_UPDATED: Shape =
    Shape::new("ResourceUpdatedNotificationParams", &[req("uri", ALL).of(Uri), notification_meta(ALL)]);

/// Params of the `list_changed` notifications, and of every other notification without params of its own.
pub static LIST_CHANGED: Shape = Shape::new("NotificationParams", &[notification_meta(ALL)]);

/// Params of `notifications/cancelled`.
pub static CANCELLED: Shape = Shape::new(
    "CancelledNotificationParams",
    &[
        // In the revision that has tasks, `tasks/cancel` cancels a task, and the id is optional.
        req("requestId", ALL).of(Id).required(Revisions::until(Revision::V2025_06_18).or(MODERN)),
        opt("reason", ALL).of(Text),
        notification_meta(ALL),
    ],
);

/// Params of `notifications/subscriptions/acknowledged`.
pub static SUBSCRIPTIONS_ACKNOWLEDGED: Shape = Shape::new(
    "SubscriptionsAcknowledgedNotificationParams",
    &[req("notifications", MODERN).holds(Object(&SUBSCRIPTION_FILTER)), notification_meta(MODERN)],
);

/// Params of `notifications/elicitation/complete`.
pub static ELICITATION_COMPLETE: Shape =
    Shape::new("ElicitationCompleteNotification.params", &[req("elicitationId", ONLY_1125).of(Text)]);

// Questions of a server, and a client's answers.

/// The questions that a result may hold.
const ASKED: &[&str] = &[Question::Elicit.wire(), Question::Sample.wire(), Question::ListRoots.wire()];

/// A question within an [`INPUT_REQUIRED_RESULT`]. Its `method` says which shape its `params` have.
pub static INPUT_REQUEST: Shape =
    Shape::new("InputRequest", &[req("method", MODERN).of(Word(ASKED)), opt("params", MODERN).of(Free)]);

/// Params of `sampling/createMessage`.
pub static CREATE_MESSAGE_REQUEST_PARAMS: Shape = Shape::new(
    "CreateMessageRequestParams",
    &[
        req("messages", ALL).holds(List(&SAMPLING_MESSAGE)),
        opt("modelPreferences", ALL).holds(Object(&MODEL_PREFERENCES)),
        opt("systemPrompt", ALL).of(Text),
        opt("includeContext", ALL).of(Word(&["none", "thisServer", "allServers"])),
        opt("temperature", ALL).of(Number),
        req("maxTokens", ALL).of(Whole),
        opt("stopSequences", ALL).of(Texts(usize::MAX)),
        opt("metadata", ALL).of(Free),
        opt("tools", R1125).holds(List(&TOOL)),
        opt("toolChoice", R1125).holds(Object(&TOOL_CHOICE)),
        TASK,
        question_meta(LEGACY),
    ],
);

/// Answer to `sampling/createMessage`.
pub static CREATE_MESSAGE_RESULT: Shape = Shape::new(
    "CreateMessageResult",
    &[
        req("role", ALL).of(Word(ROLES)),
        req("content", ALL).holds(ContentOrList(SAMPLING_CONTENT)),
        req("model", ALL).of(Text),
        opt("stopReason", ALL).of(Text),
        answer_meta(ALL),
    ],
);

/// Params of `elicitation/create`, for a form or for a URL.
pub static ELICIT_REQUEST_PARAMS: Shape = Shape::new(
    "ElicitRequestParams",
    &[
        opt("mode", R1125).of(Word(&["form", "url"])),
        req("message", R0618).of(Text),
        // Only a form has it. In the first revision with elicitation every question is a form.
        req("requestedSchema", R0618).of(Asked).required(ONLY_0618),
        opt("url", R1125).of(Uri),
        // Only a URL has it, and it is required there. Newer revisions have no such id: the URL itself is new each
        // time, so it can stand in.
        opt("elicitationId", ONLY_1125).of(Text).stand_in("url"),
        TASK,
        question_meta(ELICITATION_LEGACY),
    ],
);

/// Answer to `elicitation/create`.
pub static ELICIT_RESULT: Shape = Shape::new(
    "ElicitResult",
    &[
        req("action", R0618).of(Word(&["accept", "decline", "cancel"])),
        opt("content", R0618).of(Free),
        answer_meta(ELICITATION_LEGACY),
    ],
);

/// Params of `roots/list`.
pub static LIST_ROOTS_REQUEST_PARAMS: Shape = Shape::new("ListRootsRequest.params", &[question_meta(ALL)]);

/// Answer to `roots/list`.
pub static LIST_ROOTS_RESULT: Shape =
    Shape::new("ListRootsResult", &[req("roots", ALL).holds(List(&ROOT)), answer_meta(LEGACY)]);

/// A directory or file that the client offers to the server.
pub static ROOT: Shape = Shape::new("Root", &[req("uri", ALL).of(Uri), opt("name", ALL).of(Key), META]);

/// Asks the receiver to run a request as a task.
pub static TASK_METADATA: Shape = Shape::new("TaskMetadata", &[opt("ttl", ONLY_1125).of(Whole)]);

/// A message of a conversation with a model.
pub static SAMPLING_MESSAGE: Shape = Shape::new(
    "SamplingMessage",
    &[
        req("role", ALL).of(Word(ROLES)),
        req("content", ALL).holds(ContentOrList(SAMPLING_CONTENT)),
        opt(meta::META, R1125).of(Free),
    ],
);

/// Which properties of a model matter to the server.
pub static MODEL_PREFERENCES: Shape = Shape::new(
    "ModelPreferences",
    &[
        opt("hints", ALL).holds(List(&MODEL_HINT)),
        opt("costPriority", ALL).of(Share),
        opt("speedPriority", ALL).of(Share),
        opt("intelligencePriority", ALL).of(Share),
    ],
);

/// A hint at which model to choose.
pub static MODEL_HINT: Shape = Shape::new("ModelHint", &[opt("name", ALL).of(Key)]);

/// Whether the model may or must use tools.
pub static TOOL_CHOICE: Shape =
    Shape::new("ToolChoice", &[opt("mode", R1125).of(Word(&["auto", "none", "required"]))]);

// Peers and their capabilities.

/// Name and version of a server's or client's program.
pub static IMPLEMENTATION: Shape = Shape::new(
    "Implementation",
    &[
        req("name", ALL).of(Key),
        opt("title", R0618).of(Text),
        req("version", ALL).of(Text),
        opt("description", R1125).of(Text),
        opt("websiteUrl", R1125).of(Uri),
        ICONS,
    ],
);

/// What a server can do.
pub static SERVER_CAPABILITIES: Shape = Shape::new(
    "ServerCapabilities",
    &[
        opt("experimental", ALL).of(Free),
        opt("extensions", MODERN).of(Free),
        opt("logging", ALL).of(Free),
        opt("completions", R0326).of(Free),
        opt("prompts", ALL).holds(Object(&SERVER_CAPABILITIES_PROMPTS)),
        opt("resources", ALL).holds(Object(&SERVER_CAPABILITIES_RESOURCES)),
        opt("tools", ALL).holds(Object(&SERVER_CAPABILITIES_TOOLS)),
        opt("tasks", ONLY_1125).holds(Object(&SERVER_CAPABILITIES_TASKS)),
    ],
);

/// What a server can do about prompts.
pub static SERVER_CAPABILITIES_PROMPTS: Shape =
    Shape::new("ServerCapabilities.prompts", &[opt("listChanged", ALL).of(Flag)]);

/// What a server can do about resources.
pub static SERVER_CAPABILITIES_RESOURCES: Shape = Shape::new(
    "ServerCapabilities.resources",
    &[opt("subscribe", ALL).of(Flag), opt("listChanged", ALL).of(Flag)],
);

/// What a server can do about tools.
pub static SERVER_CAPABILITIES_TOOLS: Shape =
    Shape::new("ServerCapabilities.tools", &[opt("listChanged", ALL).of(Flag)]);

/// What a server can do about tasks.
pub static SERVER_CAPABILITIES_TASKS: Shape = Shape::new(
    "ServerCapabilities.tasks",
    &[
        opt("list", ONLY_1125).of(Free),
        opt("cancel", ONLY_1125).of(Free),
        opt("requests", ONLY_1125).holds(Object(&SERVER_CAPABILITIES_TASKS_REQUESTS)),
    ],
);

/// Which requests a server can run as tasks.
pub static SERVER_CAPABILITIES_TASKS_REQUESTS: Shape = Shape::new(
    "ServerCapabilities.tasks.requests",
    &[opt("tools", ONLY_1125).holds(Object(&SERVER_CAPABILITIES_TASKS_REQUESTS_TOOLS))],
);

/// Which requests about tools a server can run as tasks.
pub static SERVER_CAPABILITIES_TASKS_REQUESTS_TOOLS: Shape =
    Shape::new("ServerCapabilities.tasks.requests.tools", &[opt("call", ONLY_1125).of(Free)]);

/// What a client can do.
pub static CLIENT_CAPABILITIES: Shape = Shape::new(
    "ClientCapabilities",
    &[
        opt("experimental", ALL).of(Free),
        opt("extensions", MODERN).of(Free),
        opt("roots", ALL).holds(Object(&CLIENT_CAPABILITIES_ROOTS)),
        opt("sampling", ALL).holds(Object(&CLIENT_CAPABILITIES_SAMPLING)),
        opt("elicitation", R0618).holds(Object(&CLIENT_CAPABILITIES_ELICITATION)),
        opt("tasks", ONLY_1125).holds(Object(&CLIENT_CAPABILITIES_TASKS)),
    ],
);

/// What a client can do about roots.
pub static CLIENT_CAPABILITIES_ROOTS: Shape =
    Shape::new("ClientCapabilities.roots", &[opt("listChanged", LEGACY).of(Flag)]);

/// What a client can do about sampling.
pub static CLIENT_CAPABILITIES_SAMPLING: Shape = Shape::new(
    "ClientCapabilities.sampling",
    &[opt("context", R1125).of(Free), opt("tools", R1125).of(Free)],
);

/// Which modes of elicitation a client supports.
pub static CLIENT_CAPABILITIES_ELICITATION: Shape =
    Shape::new("ClientCapabilities.elicitation", &[opt("form", R1125).of(Free), opt("url", R1125).of(Free)]);

/// What a client can do about tasks.
pub static CLIENT_CAPABILITIES_TASKS: Shape = Shape::new(
    "ClientCapabilities.tasks",
    &[
        opt("list", ONLY_1125).of(Free),
        opt("cancel", ONLY_1125).of(Free),
        opt("requests", ONLY_1125).holds(Object(&CLIENT_CAPABILITIES_TASKS_REQUESTS)),
    ],
);

/// Which questions a client can run as tasks.
pub static CLIENT_CAPABILITIES_TASKS_REQUESTS: Shape = Shape::new(
    "ClientCapabilities.tasks.requests",
    &[
        opt("sampling", ONLY_1125).holds(Object(&CLIENT_CAPABILITIES_TASKS_REQUESTS_SAMPLING)),
        opt("elicitation", ONLY_1125).holds(Object(&CLIENT_CAPABILITIES_TASKS_REQUESTS_ELICITATION)),
    ],
);

/// Which questions of sampling a client can run as tasks.
pub static CLIENT_CAPABILITIES_TASKS_REQUESTS_SAMPLING: Shape =
    Shape::new("ClientCapabilities.tasks.requests.sampling", &[opt("createMessage", ONLY_1125).of(Free)]);

/// Which questions of elicitation a client can run as tasks.
pub static CLIENT_CAPABILITIES_TASKS_REQUESTS_ELICITATION: Shape =
    Shape::new("ClientCapabilities.tasks.requests.elicitation", &[opt("create", ONLY_1125).of(Free)]);

/// What a subscription listens to.
pub static SUBSCRIPTION_FILTER: Shape = Shape::new(
    "SubscriptionFilter",
    &[
        opt(FILTER_FLAGS[0], MODERN).of(Flag),
        opt(FILTER_FLAGS[1], MODERN).of(Flag),
        opt(FILTER_FLAGS[2], MODERN).of(Flag),
        opt(FILTER_URIS, MODERN).of(Texts(usize::MAX)),
    ],
);

// What a server offers.

/// A tool.
pub static TOOL: Shape = Shape::new(
    "Tool",
    &[
        req("name", ALL).of(Key),
        opt("title", R0618).of(Text),
        opt("description", ALL).of(Text),
        req("inputSchema", ALL).of(Schema),
        opt("outputSchema", R0618).of(AnySchema).narrow(LEGACY, Form::ObjectSchema),
        opt("annotations", R0326).holds(Object(&TOOL_ANNOTATIONS)),
        opt("execution", ONLY_1125).holds(Object(&TOOL_EXECUTION)),
        ICONS,
        META,
    ],
);

/// Hints at how a tool behaves.
pub static TOOL_ANNOTATIONS: Shape = Shape::new(
    "ToolAnnotations",
    &[
        opt("title", R0326).of(Text),
        opt("readOnlyHint", R0326).of(Flag),
        opt("destructiveHint", R0326).of(Flag),
        opt("idempotentHint", R0326).of(Flag),
        opt("openWorldHint", R0326).of(Flag),
    ],
);

/// How a tool is run.
pub static TOOL_EXECUTION: Shape = Shape::new(
    "ToolExecution",
    &[opt("taskSupport", ONLY_1125).of(Word(&["forbidden", "optional", "required"]))],
);

/// A prompt.
pub static PROMPT: Shape = Shape::new(
    "Prompt",
    &[
        req("name", ALL).of(Key),
        opt("title", R0618).of(Text),
        opt("description", ALL).of(Text),
        opt("arguments", ALL).holds(List(&PROMPT_ARGUMENT)),
        ICONS,
        META,
    ],
);

/// An argument of a prompt.
pub static PROMPT_ARGUMENT: Shape = Shape::new(
    "PromptArgument",
    &[
        req("name", ALL).of(Key),
        opt("title", R0618).of(Text),
        opt("description", ALL).of(Text),
        opt("required", ALL).of(Flag),
    ],
);

/// A message of a prompt.
pub static PROMPT_MESSAGE: Shape = Shape::new(
    "PromptMessage",
    &[req("role", ALL).of(Word(ROLES)), req("content", ALL).holds(Content(CONTENT))],
);

/// A resource.
pub static RESOURCE: Shape = Shape::new(
    "Resource",
    &[
        req("uri", ALL).of(Uri),
        req("name", ALL).of(Key),
        opt("title", R0618).of(Text),
        opt("description", ALL).of(Text),
        opt("mimeType", ALL).of(Text),
        opt("size", ALL).of(Whole),
        annotations(ALL),
        ICONS,
        META,
    ],
);

/// A template for the URIs of resources.
pub static RESOURCE_TEMPLATE: Shape = Shape::new(
    "ResourceTemplate",
    &[
        req("uriTemplate", ALL).of(Key),
        req("name", ALL).of(Key),
        opt("title", R0618).of(Text),
        opt("description", ALL).of(Text),
        opt("mimeType", ALL).of(Text),
        annotations(ALL),
        ICONS,
        META,
    ],
);

/// The content of a resource: text, or bytes in base64.
pub static RESOURCE_CONTENTS: Shape = Shape::new(
    "ResourceContents",
    &[
        req("uri", ALL).of(Uri),
        opt("mimeType", ALL).of(Text),
        opt("text", ALL).of(Text),
        opt("blob", ALL).of(Text),
        META,
    ],
);

/// Returns the members of which an object of this shape has exactly one. Where a server sends several, the first of
/// this list counts.
pub fn one_of(shape: &Shape) -> &'static [&'static str] {
    if std::ptr::eq(shape, &RESOURCE_CONTENTS) { &["text", "blob"] } else { &[] }
}

/// Suggestions for the value of an argument.
pub static COMPLETION: Shape = Shape::new(
    "CompleteResult.completion",
    &[req("values", ALL).of(Texts(100)), opt("total", ALL).of(Whole), opt("hasMore", ALL).of(Flag)],
);

/// For whom a piece of content is meant, and how important it is.
pub static ANNOTATIONS: Shape = Shape::new(
    "Annotations",
    &[
        opt("audience", ALL).of(Words(ROLES)),
        opt("priority", ALL).of(Share),
        opt("lastModified", R0618).of(Text),
    ],
);

/// An icon.
pub static ICON: Shape = Shape::new(
    "Icon",
    &[
        req("src", R1125).of(Uri),
        opt("mimeType", R1125).of(Text),
        opt("sizes", R1125).of(Texts(usize::MAX)),
        opt("theme", R1125).of(Word(&["light", "dark"])),
    ],
);

// Blocks of content.

/// The kinds of content in results of tools and in messages of prompts.
pub static CONTENT: &[Kind] = &[
    Kind { tag: "text", exists: ALL, shape: &TEXT_CONTENT },
    Kind { tag: "image", exists: ALL, shape: &IMAGE_CONTENT },
    Kind { tag: "audio", exists: R0326, shape: &AUDIO_CONTENT },
    Kind { tag: "resource_link", exists: R0618, shape: &RESOURCE_LINK },
    Kind { tag: "resource", exists: ALL, shape: &EMBEDDED_RESOURCE },
];

/// The kinds of content in messages of sampling.
pub static SAMPLING_CONTENT: &[Kind] = &[
    Kind { tag: "text", exists: ALL, shape: &TEXT_CONTENT },
    Kind { tag: "image", exists: ALL, shape: &IMAGE_CONTENT },
    Kind { tag: "audio", exists: R0326, shape: &AUDIO_CONTENT },
    Kind { tag: "tool_use", exists: R1125, shape: &TOOL_USE_CONTENT },
    Kind { tag: "tool_result", exists: R1125, shape: &TOOL_RESULT_CONTENT },
];

/// Text.
pub static TEXT_CONTENT: Shape =
    Shape::new("TextContent", &[req("text", ALL).of(Said), annotations(ALL), META]);

/// An image.
pub static IMAGE_CONTENT: Shape = Shape::new(
    "ImageContent",
    &[req("data", ALL).of(Text), req("mimeType", ALL).of(Text), annotations(ALL), META],
);

/// Sound.
pub static AUDIO_CONTENT: Shape = Shape::new(
    "AudioContent",
    &[req("data", R0326).of(Text), req("mimeType", R0326).of(Text), annotations(R0326), META],
);

/// A link to a resource that the client can read. `resources/list` need not list it.
pub static RESOURCE_LINK: Shape = Shape::new(
    "ResourceLink",
    &[
        req("uri", R0618).of(Uri),
        req("name", R0618).of(Key),
        opt("title", R0618).of(Text),
        opt("description", R0618).of(Text),
        opt("mimeType", R0618).of(Text),
        opt("size", R0618).of(Whole),
        annotations(R0618),
        ICONS,
        META,
    ],
);

/// A resource together with its content.
pub static EMBEDDED_RESOURCE: Shape = Shape::new(
    "EmbeddedResource",
    &[req("resource", ALL).holds(Object(&RESOURCE_CONTENTS)), annotations(ALL), META],
);

/// A request of a model to use a tool.
pub static TOOL_USE_CONTENT: Shape = Shape::new(
    "ToolUseContent",
    &[
        req("id", R1125).of(Text),
        req("name", R1125).of(Key),
        req("input", R1125).of(Free),
        opt(meta::META, R1125).of(Free),
    ],
);

/// The result of a tool, for the model that asked for it.
pub static TOOL_RESULT_CONTENT: Shape = Shape::new(
    "ToolResultContent",
    &[
        req("toolUseId", R1125).of(Text),
        req("content", R1125).holds(Contents(CONTENT)),
        Field { exists: R1125, ..STRUCTURED_CONTENT },
        opt("isError", R1125).of(Flag),
        opt(meta::META, R1125).of(Free),
    ],
);
