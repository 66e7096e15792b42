//! The columns: named values that say how a revision behaves.

use crate::method::Method;
use crate::revision::{Era, Revision};

/// How one revision behaves where revisions differ.
///
/// Code reads these values; it never compares dates.
#[derive(Debug)]
pub struct Rules {
    /// The revision that behaves like this.
    pub revision: Revision,
    /// A peer may send several messages in one array.
    pub batches: bool,
    /// How a tool refuses its arguments.
    pub invalid_input: InvalidInput,
    /// The error code for a resource that does not exist.
    pub resource_not_found: crate::Code,
    /// The error that answers an unreadable message carries `"id": null`; elsewhere it carries no `id`.
    pub null_id_when_unreadable: bool,
    /// Whether HTTP requests carry the version header.
    pub version_header: VersionHeader,
    /// What becomes of a call when the connection of its client ends.
    pub disconnect: Disconnect,
    /// Results carry `resultType` and, in `_meta`, the server's identity; cacheable results carry cache hints too.
    pub self_describing_results: bool,
    /// An error has the HTTP status that the specification assigns; elsewhere every answer has the status 200.
    pub status_of_errors: bool,
    /// An event stream begins with an empty event that has an id, and the server may close the connection early.
    pub priming_event: bool,
    /// A server can ask the user to open a URL; elsewhere it can only ask for a form to be filled in.
    pub url_elicitation: bool,
    /// A form can offer choices that have titles, and choices of several values.
    pub rich_choices: bool,
    /// A sampling message may hold several blocks of content, and a sampling request may offer tools.
    pub sampling_tools: bool,
}

/// How a tool refuses its arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InvalidInput {
    /// With the JSON-RPC error -32602.
    Protocol,
    /// With a result that has `isError`: a model can read it and correct the arguments.
    Result,
}

impl InvalidInput {
    const fn word(self) -> &'static str {
        match self {
            InvalidInput::Protocol => "error",
            InvalidInput::Result => "result",
        }
    }
}

/// Whether HTTP requests carry the version header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VersionHeader {
    /// The revision has no such header.
    Absent,
    /// A request may lack it; where a request has it, the server checks it.
    Optional,
    /// The server refuses a request without it.
    Required,
}

impl VersionHeader {
    const fn word(self) -> &'static str {
        match self {
            VersionHeader::Absent => "absent",
            VersionHeader::Optional => "optional",
            VersionHeader::Required => "required",
        }
    }
}

/// What becomes of a call when the connection of its client ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disconnect {
    /// The call goes on; only a notification cancels it.
    Continues,
    /// The call is cancelled.
    Cancels,
}

impl Disconnect {
    const fn word(self) -> &'static str {
        match self {
            Disconnect::Continues => "continues",
            Disconnect::Cancels => "cancels",
        }
    }
}

/// One of the [`Rules`], for a program that shows them.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// The name of the rule.
    pub name: &'static str,
    /// A few words on what the rule says.
    pub about: &'static str,
    /// Its value in the revision.
    pub value: Setting,
}

/// The value of a [`Column`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Setting {
    /// Whether the rule holds.
    Flag(bool),
    /// One of a few named ways to behave.
    Word(&'static str),
    /// An error code.
    Code(crate::Code),
}

const V2024_11_05: Rules = Rules {
    revision: Revision::V2024_11_05,
    batches: false,
    invalid_input: InvalidInput::Protocol,
    resource_not_found: crate::Code::ResourceNotFound,
    null_id_when_unreadable: true,
    version_header: VersionHeader::Absent,
    disconnect: Disconnect::Continues,
    self_describing_results: false,
    status_of_errors: false,
    priming_event: false,
    url_elicitation: false,
    rich_choices: false,
    sampling_tools: false,
};

const V2025_03_26: Rules = Rules { revision: Revision::V2025_03_26, batches: true, ..V2024_11_05 };

const V2025_06_18: Rules = Rules {
    revision: Revision::V2025_06_18,
    batches: false,
    version_header: VersionHeader::Optional,
    ..V2025_03_26
};

const V2025_11_25: Rules = Rules {
    revision: Revision::V2025_11_25,
    invalid_input: InvalidInput::Result,
    null_id_when_unreadable: false,
    priming_event: true,
    url_elicitation: true,
    rich_choices: true,
    sampling_tools: true,
    ..V2025_06_18
};

const V2026_07_28: Rules = Rules {
    revision: Revision::V2026_07_28,
    resource_not_found: crate::Code::InvalidParams,
    version_header: VersionHeader::Required,
    disconnect: Disconnect::Cancels,
    self_describing_results: true,
    status_of_errors: true,
    priming_event: false,
    ..V2025_11_25
};

impl Revision {
    /// Returns how this revision behaves.
    pub const fn rules(self) -> &'static Rules {
        match self {
            Revision::V2024_11_05 => &V2024_11_05,
            Revision::V2025_03_26 => &V2025_03_26,
            Revision::V2025_06_18 => &V2025_06_18,
            Revision::V2025_11_25 => &V2025_11_25,
            Revision::V2026_07_28 => &V2026_07_28,
        }
    }
}

impl Rules {
    /// Returns the era of the revision.
    pub const fn era(&self) -> Era {
        self.revision.era()
    }

    /// Returns every rule with its value, for a program that shows them.
    pub fn columns(&self) -> Vec<Column> {
        // This pattern names every field, so that a new rule does not compile until it is listed below.
        let Rules {
            revision: _,
            batches,
            invalid_input,
            resource_not_found,
            null_id_when_unreadable,
            version_header,
            disconnect,
            self_describing_results,
            status_of_errors,
            priming_event,
            url_elicitation,
            sampling_tools,
            rich_choices,
        } = *self;
        use Setting::{Flag, Word};
        // A level that is set by a request of its own holds for the session.
        let log_scope = if Method::LoggingSetLevel.exists(self.revision) { "session" } else { "request" };
        let row = |name, about, value| Column { name, about, value };
        vec![
            row("batches", "several messages may come in one array", Flag(batches)),
            row("invalid_input", "how a tool refuses its arguments", Word(invalid_input.word())),
            row(
                "resource_not_found",
                "the code for a resource that does not exist",
                Setting::Code(resource_not_found),
            ),
            row(
                "null_id_when_unreadable",
                "the error to an unreadable message has an id of null; elsewhere it has no id",
                Flag(null_id_when_unreadable),
            ),
            row("version_header", "the version header of HTTP requests", Word(version_header.word())),
            row(
                "disconnect",
                "what becomes of a call when the connection of its client ends",
                Word(disconnect.word()),
            ),
            row(
                "self_describing_results",
                "results carry their type, cache hints and the server's identity",
                Flag(self_describing_results),
            ),
            row(
                "status_of_errors",
                "an error has an HTTP status of its own; elsewhere every answer has the status 200",
                Flag(status_of_errors),
            ),
            row("server_requests", "the server may send requests", Flag(self.era() == Era::Legacy)),
            row("log_scope", "how long a log level holds", Word(log_scope)),
            row(
                "priming_event",
                "an event stream begins with an empty event that has an id",
                Flag(priming_event),
            ),
            row("url_elicitation", "a server can ask the user to open a URL", Flag(url_elicitation)),
            row(
                "sampling_tools",
                "a sampling message may hold several blocks of content; a request may offer tools",
                Flag(sampling_tools),
            ),
            row(
                "rich_choices",
                "a form can offer choices that have titles, and choices of several values",
                Flag(rich_choices),
            ),
        ]
    }
}
