//! Why a request is refused, and the error that tells the client so in each revision.

use bytestring::ByteString;
use spec::{Code, Era, Method, Revision, Revisions, Rules};

use crate::clipped::clipped;
use crate::json::{Object, Raw};

/// Why a request is refused or fails.
///
/// Only [`Rejection::render`] knows which code and which HTTP status belong to it.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    /// The bytes cannot be read as a message.
    #[error("{0}")]
    Unreadable(String),
    /// The message is JSON, but it is not valid, or it must not be sent now.
    #[error("{0}")]
    Invalid(String),
    /// The revision has no such method, or the server does not declare the capability that the method needs.
    #[error("method not found: {0}")]
    UnknownMethod(String),
    /// The params of a known method are wrong.
    #[error("{0}")]
    Params(String),
    /// A modern request lacks a field of `_meta` that it must carry.
    #[error("{0}")]
    Meta(String),
    /// The request is no modern one, and belongs to no session.
    #[error("{}", neither(*.0))]
    NeitherEra(Revisions),
    /// There is no such resource.
    #[error("resource not found: {uri}")]
    NoSuchResource {
        /// The URI that the client asked for.
        uri: ByteString,
    },
    /// The request needs a capability that the client did not declare.
    #[error("this request needs client capabilities that it does not declare: {}", Raw::from(.0.clone()).as_str())]
    MissingCapability(Object),
    /// The server does not serve this revision.
    #[error("protocol version {requested:?} is not served here; served: {}", names(*served))]
    UnsupportedVersion {
        /// The revision that the client asked for.
        requested: ByteString,
        /// The revisions that the server serves.
        served: Revisions,
    },
    /// A header is missing, or it does not say what the body says.
    #[error("header mismatch: {0}")]
    Headers(String),
    /// The server itself failed.
    #[error("{0}")]
    Internal(String),
    /// The server that should answer ended before it received the request.
    #[error("{0}")]
    Gone(String),
    /// Another server answered with this error.
    #[error("{message}")]
    Passed {
        /// The code that it sent.
        code: i64,
        /// The message that it sent.
        message: String,
        /// The data that it sent.
        data: Option<Raw>,
    },
}

/// The error of a rejection, as a client of one revision is sent it.
#[derive(Clone, Debug)]
pub struct Rendered {
    /// The `error` object.
    pub error: Object,
    /// The HTTP status. It counts only where no part of the response was sent yet.
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
    /// Returns the error and the HTTP status of this rejection for a peer of a revision.
    ///
    /// A code that the revision does not define is replaced by one that it defines, also where another server sent the
    /// code.
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

    /// Reads the error of another server. An error that has no message keeps its text.
    pub fn passed(error: &Raw) -> Rejection {
        /// How many characters of an error that has no message are shown.
        const SHOWN: usize = 500;
        let object = error.object().unwrap_or_default();
        // Some servers send the number as a string.
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

/// Writes another server's error for a peer of this revision.
fn passed(code: i64, message: &str, data: Option<&Raw>, rules: &Rules) -> Rendered {
    let known = Code::parse(code);
    let shown = match known {
        Some(Code::ResourceNotFound) => rules.resource_not_found.number(),
        // These codes concern the connection to the other server, not the connection to this client.
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

/// Returns the code that replaces one which the revision does not define.
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
