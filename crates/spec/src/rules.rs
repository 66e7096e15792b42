//! Columns: how a revision behaves, as named values.

use crate::revision::{Era, Revision};

/// How one revision behaves where revisions differ. Code reads these and never compares dates.
#[derive(Debug)]
pub struct Rules {
    /// The revision that the column is of.
    pub revision: Revision,
    /// Several messages may come in one array.
    pub batches: bool,
    /// The form of a tool's complaint about its arguments.
    pub invalid_input: InvalidInput,
    /// The code for a resource that does not exist.
    pub resource_not_found: crate::Code,
    /// An error to what could not be parsed carries `"id": null`; elsewhere it carries no id.
    pub null_id_when_unreadable: bool,
    /// Whether the version header is expected on HTTP requests.
    pub version_header: VersionHeader,
    /// Whether a client that vanishes has cancelled what it asked for.
    pub disconnect: Disconnect,
    /// Results carry `resultType`, cache hints where cacheable, and the server's identity in `_meta`.
    pub self_describing_results: bool,
    /// Errors carry the HTTP status that the specification assigns; elsewhere an answered request is 200.
    pub status_of_errors: bool,
    /// The server may send requests of its own.
    pub server_requests: bool,
    /// How long a log level holds.
    pub log_scope: LogScope,
    /// An event stream opens with an empty event that has an id, and its connection may be closed before its end.
    pub priming_event: bool,
    /// `elicitation.url` exists beside forms.
    pub url_elicitation: bool,
    /// Forms have choices with titles, and choices of several values.
    pub rich_choices: bool,
    /// A sampling message may hold several blocks, and tools.
    pub sampling_tools: bool,
}

/// The form of a tool's complaint about its arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InvalidInput {
    /// A JSON-RPC error, -32602.
    Protocol,
    /// A result with `isError`, which a model can read and mend.
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

/// Whether the version header is expected on HTTP requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VersionHeader {
    /// It does not exist.
    Absent,
    /// It is checked when it is there.
    Optional,
    /// A request without it is refused.
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

/// Whether a client that vanishes has cancelled what it asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disconnect {
    /// It goes on, and cancelling takes a notification.
    Continues,
    /// It is cancelled.
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

/// How long a log level holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogScope {
    /// For the session, from the request that set it.
    Session,
    /// For the request that carries it.
    Request,
}

impl LogScope {
    const fn word(self) -> &'static str {
        match self {
            LogScope::Session => "session",
            LogScope::Request => "request",
        }
    }
}

/// A column of [`Rules`] as it can be shown.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What it tells.
    pub about: &'static str,
    /// Its value in one revision.
    pub value: Setting,
}

/// The value of a [`Column`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Setting {
    /// Whether it is so.
    Flag(bool),
    /// One of a few ways.
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
    server_requests: true,
    log_scope: LogScope::Session,
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
    server_requests: false,
    log_scope: LogScope::Request,
    priming_event: false,
    ..V2025_11_25
};

impl Revision {
    /// How this revision behaves.
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
    /// The side of the line that this revision is on.
    pub const fn era(&self) -> Era {
        self.revision.era()
    }

    /// Every column with its value here, for whoever shows them.
    pub fn columns(&self) -> Vec<Column> {
        // Taken apart, so that a column that is added and not listed does not compile.
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
            server_requests,
            log_scope,
            priming_event,
            url_elicitation,
            sampling_tools,
            rich_choices,
        } = *self;
        use Setting::{Flag, Word};
        let row = |name, about, value| Column { name, about, value };
        vec![
            row("batches", "several messages may come in one array", Flag(batches)),
            row("invalid_input", "how a tool complains about its arguments", Word(invalid_input.word())),
            row(
                "resource_not_found",
                "the code for a resource that does not exist",
                Setting::Code(resource_not_found),
            ),
            row(
                "null_id_when_unreadable",
                "an error to what could not be parsed has an id of null; elsewhere it has no id",
                Flag(null_id_when_unreadable),
            ),
            row("version_header", "the version header of HTTP requests", Word(version_header.word())),
            row("disconnect", "what becomes of a call whose client vanishes", Word(disconnect.word())),
            row(
                "self_describing_results",
                "results carry their type, cache hints and the server's identity",
                Flag(self_describing_results),
            ),
            row(
                "status_of_errors",
                "an error has an HTTP status of its own; elsewhere an answered request is 200",
                Flag(status_of_errors),
            ),
            row("server_requests", "the server may send requests", Flag(server_requests)),
            row("log_scope", "how long a log level holds", Word(log_scope.word())),
            row("priming_event", "an event stream opens with an empty event with an id", Flag(priming_event)),
            row("url_elicitation", "users can be asked to open a URL", Flag(url_elicitation)),
            row(
                "sampling_tools",
                "a sampling message may hold several blocks, and tools",
                Flag(sampling_tools),
            ),
            row(
                "rich_choices",
                "the choices of a form may have titles, and several may be chosen",
                Flag(rich_choices),
            ),
        ]
    }
}
