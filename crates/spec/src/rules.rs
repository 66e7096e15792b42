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

/// Whether a client that vanishes has cancelled what it asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disconnect {
    /// It goes on, and cancelling takes a notification.
    Continues,
    /// It is cancelled.
    Cancels,
}

/// How long a log level holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogScope {
    /// For the session, from the request that set it.
    Session,
    /// For the request that carries it.
    Request,
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
}
