//! Why a request is not answered, and what that looks like in each revision.

use bytestring::ByteString;
use spec::{Code, Era, Method, Revision, Revisions, Rules};

use crate::clipped::clipped;
use crate::json::{Object, Raw};

/// Why a request is not answered, by meaning. [`Rejection::render`] alone knows codes and statuses.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Rejection {
    /// The bytes are no message.
    #[error("{0}")]
    Unreadable(String),
    /// JSON, but not a message that can be taken now.
    #[error("{0}")]
    Invalid(String),
    /// No such method in this revision, or the capability it needs is not there.
    #[error("method not found: {0}")]
    UnknownMethod(String),
    /// The params of a known method are wrong.
    #[error("{0}")]
    Params(String),
    /// A modern request without a field of `_meta` that it must carry.
    #[error("{0}")]
    Meta(String),
    /// Neither a modern request nor part of a handshake session.
    #[error("{}", neither(*.0))]
    NeitherEra(Revisions),
    /// No such resource.
    #[error("resource not found: {uri}")]
    NoSuchResource {
        /// What was asked for.
        uri: ByteString,
    },
    /// The client did not declare what the request cannot go on without.
    #[error("this request needs client capabilities that it does not declare: {}", Raw::from(.0.clone()).as_str())]
    MissingCapability(Object),
    /// A revision that is not served.
    #[error("protocol version {requested:?} is not served here; served: {}", names(*served))]
    UnsupportedVersion {
        /// What was asked for.
        requested: ByteString,
        /// What is served.
        served: Revisions,
    },
    /// Headers that are missing or do not say what the body says.
    #[error("header mismatch: {0}")]
    Headers(String),
    /// It is our own fault.
    #[error("{0}")]
    Internal(String),
    /// The server that should answer was gone before it took the request.
    #[error("{0}")]
    Gone(String),
    /// Another server's error, passed on.
    #[error("{message}")]
    Passed {
        /// Its code.
        code: i64,
        /// Its message.
        message: String,
        /// Its data, as sent.
        data: Option<Raw>,
    },
}

/// A rejection in the form of one revision.
#[derive(Clone, Debug)]
pub struct Rendered {
    /// The `error` object.
    pub error: Object,
    /// The HTTP status, where the answer is not yet under way.
    pub status: u16,
}

fn names(revisions: Revisions) -> String {
    revisions.iter().map(Revision::as_str).collect::<Vec<_>>().join(", ")
}

fn neither(served: Revisions) -> String {
    let modern = format!(
        "put \"{}\" ({}) and \"{}\" into the request's _meta",
        spec::meta::PROTOCOL_VERSION,
        names(served.and(Revisions::MODERN)),
        spec::meta::CLIENT_CAPABILITIES,
    );
    let legacy = format!(
        "open a session with {} ({})",
        Method::Initialize.wire(),
        names(served.and(Revisions::LEGACY))
    );
    match (served.serves(Era::Modern), served.serves(Era::Legacy)) {
        (true, true) => format!("this request belongs to no era: either {modern}, or {legacy}"),
        (true, false) => format!("missing protocol version: {modern}"),
        _ => format!("no session: {legacy}"),
    }
}

impl Rejection {
    /// The code, status and data of this rejection for a peer of a revision.
    ///
    /// Codes that the revision lacks are never sent, also not those that another server sent us.
    pub fn render(&self, rules: &Rules) -> Rendered {
        let (code, data) = match self {
            Rejection::Unreadable(_) => (Code::ParseError, None),
            Rejection::Invalid(_) => (Code::InvalidRequest, None),
            Rejection::UnknownMethod(_) => (Code::MethodNotFound, None),
            Rejection::Params(_) | Rejection::Meta(_) | Rejection::NeitherEra(_) => {
                (Code::InvalidParams, None)
            }
            Rejection::NoSuchResource { uri } => {
                (rules.resource_not_found, Some(Object::new().with("uri", Raw::of(&**uri))))
            }
            Rejection::MissingCapability(needed) => (
                Code::MissingRequiredClientCapability,
                Some(Object::new().with("requiredCapabilities", Raw::from(needed.clone()))),
            ),
            Rejection::UnsupportedVersion { requested, served } => {
                let served: Vec<_> = served.iter().map(Revision::as_str).collect();
                let data = Object::new()
                    .with("supported", Raw::of(&served))
                    .with("requested", Raw::of(&**requested));
                (Code::UnsupportedProtocolVersion, Some(data))
            }
            Rejection::Headers(_) => (Code::HeaderMismatch, None),
            Rejection::Internal(_) | Rejection::Gone(_) => (Code::InternalError, None),
            Rejection::Passed { code, message, data } => return passed(*code, message, data.as_ref(), rules),
        };
        let code = if Code::may_send(code.number(), rules.revision) { code } else { fallback(code, rules) };
        let status = match self {
            _ if !rules.status_of_errors => 200,
            Rejection::Unreadable(_)
            | Rejection::Invalid(_)
            | Rejection::Meta(_)
            | Rejection::NeitherEra(_) => 400,
            Rejection::MissingCapability(_)
            | Rejection::UnsupportedVersion { .. }
            | Rejection::Headers(_) => 400,
            Rejection::UnknownMethod(_) => 404,
            _ => 200,
        };
        Rendered { error: object(code.number(), &self.to_string(), data.map(Raw::from)), status }
    }

    /// Reads the error of another server, in whatever form: what it says is never lost.
    pub fn passed(error: &Raw) -> Rejection {
        /// How much is shown of an error that has no message.
        const SHOWN: usize = 500;
        let object = error.object().unwrap_or_default();
        // A number, be it as text.
        let code = object.get("code").map(|code| code.string().unwrap_or_else(|| code.as_str().into()));
        let message = ["message", "error", "detail", "title"].iter().find_map(|name| object.string(name));
        let message = message.or_else(|| error.string()).filter(|message| !message.trim().is_empty());
        Rejection::Passed {
            code: code.and_then(|code| code.parse().ok()).unwrap_or(Code::InternalError.number()),
            message: message.map_or_else(
                || format!("the server gave no message: {}", clipped(error.as_str(), SHOWN)),
                |message| message.to_string(),
            ),
            data: object.get("data").filter(|data| !data.is_null()).cloned(),
        }
    }
}

/// Another server's error in a form that this revision may see.
fn passed(code: i64, message: &str, data: Option<&Raw>, rules: &Rules) -> Rendered {
    let known = Code::parse(code);
    let shown = match known {
        Some(Code::ResourceNotFound) => rules.resource_not_found.number(),
        // These speak of the hop they were made on, not of this one.
        Some(Code::HeaderMismatch | Code::UnsupportedProtocolVersion) => Code::InternalError.number(),
        _ if Code::may_send(code, rules.revision) => code,
        Some(known) => fallback(known, rules).number(),
        None => Code::InternalError.number(),
    };
    let status = match Code::parse(shown) {
        _ if !rules.status_of_errors => 200,
        Some(Code::MethodNotFound) => 404,
        Some(Code::MissingRequiredClientCapability) => 400,
        _ => 200,
    };
    Rendered { error: object(shown, message, data.cloned()), status }
}

/// The nearest code of a revision that lacks this one.
fn fallback(code: Code, rules: &Rules) -> Code {
    let nearest = match code {
        Code::ResourceNotFound | Code::UnsupportedProtocolVersion => Code::InvalidParams,
        Code::MissingRequiredClientCapability => Code::InvalidRequest,
        _ => Code::InternalError,
    };
    debug_assert!(nearest.exists().contains(rules.revision));
    nearest
}

fn object(code: i64, message: &str, data: Option<Raw>) -> Object {
    let mut object = Object::new().with("code", Raw::of(&code)).with("message", message);
    if let Some(data) = data {
        object.set("data", data);
    }
    object
}
