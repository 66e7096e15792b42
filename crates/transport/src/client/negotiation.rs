//! What a server answers to `server/discover`, and what that says of its era.
//!
//! <https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning>

use proto::upstream::{Calls, Edge};
use proto::{CacheHint, CallKey, Capabilities, Description, Object, Raw, Rejection};
use spec::{Code, Era, Revision, Revisions, meta};

use super::settings::Settings;
use crate::TransportError;

/// The id of the `server/discover` request that opens a connection.
pub(super) const DISCOVER_ID: CallKey = 1;
/// The id of the `initialize` request that opens a connection.
pub(super) const INITIALIZE_ID: CallKey = 2;
/// The id of the first call. Smaller ids are those of requests that the client makes for itself.
pub(super) const FIRST_CALL_ID: CallKey = 16;

/// How client and server speak, as they agreed on it.
pub(super) struct Negotiated {
    pub(super) edge: Edge,
    pub(super) description: Description,
}

/// What the answer to `server/discover` says of a server.
pub(super) enum Discovered {
    /// It is modern.
    Modern(Box<Negotiated>),
    /// It is modern, and speaks only these revisions, which the client does not know.
    OtherRevisions(Vec<String>),
    /// It is not modern.
    NotModern,
}

impl Discovered {
    /// Reads the answer to `server/discover`.
    pub(super) fn read(outcome: &Result<Raw, Raw>, settings: &Settings) -> Discovered {
        let read = match outcome {
            Ok(result) => from_result(result, settings),
            Err(error) => from_error(error).map(Discovered::OtherRevisions),
        };
        read.unwrap_or(Discovered::NotModern)
    }
}

fn from_result(result: &Raw, settings: &Settings) -> Option<Discovered> {
    let result = result.object().ok()?;
    let versions: Vec<String> = result.get("supportedVersions")?.read().ok()?;
    let mut known = Revision::ALL.into_iter().filter(|revision| revision.era() == Era::Modern);
    let common = known.find(|revision| versions.iter().any(|version| version == revision.as_str()));
    Some(match common {
        Some(revision) => Discovered::Modern(Box::new(modern(revision, &result, settings))),
        None => Discovered::OtherRevisions(versions),
    })
}

/// The revisions that an error names which only modern servers send. A server that sends it without them is asked to
/// open a session.
fn from_error(error: &Raw) -> Option<Vec<String>> {
    let error = error.object().ok()?;
    let code = Code::parse(error.get("code")?.as_str().parse().ok()?)?;
    if code.exists().and(Revisions::LEGACY) != Revisions::NONE {
        return None;
    }
    error.get("data")?.object().ok()?.get("supported")?.read().ok()
}

fn modern(revision: Revision, result: &Object, settings: &Settings) -> Negotiated {
    let object = |name: &str| result.get(name).and_then(|raw| raw.object().ok()).unwrap_or_default();
    let description = Description {
        identity: Description::identity(object(meta::META).get(meta::SERVER_INFO)),
        capabilities: Capabilities::read(&object("capabilities")),
        instructions: result.string("instructions").map(|text| text.to_string()),
        hint: CacheHint::default(),
        methods: Vec::new(),
    };
    Negotiated { edge: Edge::Modern(Calls::new(revision, settings.introduction.clone())), description }
}

/// The error of a server that is configured as a modern one and is none.
pub(super) fn not_modern() -> TransportError {
    TransportError::Protocol(
        "it does not answer server/discover as a modern server does, and the configuration allows no other era"
            .into(),
    )
}

/// The error of a server that refuses the handshake.
pub(super) fn refused(why: &Rejection) -> TransportError {
    TransportError::Protocol(format!("the server refuses to be opened: {why}"))
}

/// Checks that one of the revisions that a server speaks is a legacy one, so that the client can open a session.
///
/// # Errors
/// Where there is none.
pub(super) fn speaks_legacy(supported: &[String]) -> Result<(), TransportError> {
    let known = supported.iter().filter_map(|name| Revision::parse(name));
    if known.into_iter().any(|revision| revision.era() == Era::Legacy) {
        return Ok(());
    }
    Err(TransportError::Protocol(format!(
        "the server speaks {} only, which is not known here",
        supported.join(", ")
    )))
}
