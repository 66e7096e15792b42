//! What goes wrong in a handler.

use std::fmt;

use proto::Rejection;

/// How a handler ends that has no result. Any [`std::error::Error`] becomes one by `?`.
///
/// A tool's error is a result with `isError`, which the model reads; a prompt's or resource's is a JSON-RPC
/// error. Both show the error's text to the client: keep secrets and internals out of it.
pub struct Error(pub(crate) Kind);

pub(crate) enum Kind {
    /// A question was put; the engine returns it, and runs the handler again with the answer.
    Asked,
    /// A protocol error.
    Rejected(Rejection),
    /// What the client gave is not what the handler takes.
    Unfit(String),
    /// The handler's own error.
    Failed(String),
}

/// The result of a handler.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error with this text.
    pub fn new(text: impl fmt::Display) -> Error {
        Error(Kind::Failed(text.to_string()))
    }

    /// A JSON-RPC error in the form that the client's revision has for it.
    pub fn reject(rejection: Rejection) -> Error {
        Error(Kind::Rejected(rejection))
    }

    /// A JSON-RPC error with a code of the application's own, outside of -32768 to -32000.
    pub fn code(code: i64, message: impl Into<String>) -> Error {
        Error(Kind::Rejected(Rejection::Passed { code, message: message.into(), data: None }))
    }
}

impl Error {
    /// Whether this is a question that the client did not say it can be asked. A handler that has another way takes it;
    /// passed on by `?`, it tells the client what is missing.
    pub fn is_unsupported_by_client(&self) -> bool {
        matches!(self.0, Kind::Rejected(Rejection::MissingCapability(_)))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Asked => f.write_str("a question to the client is open"),
            Kind::Rejected(rejection) => rejection.fmt(f),
            Kind::Unfit(text) | Kind::Failed(text) => f.write_str(text),
        }
    }
}

impl<E: std::error::Error> From<E> for Error {
    fn from(error: E) -> Error {
        Error::new(error)
    }
}

impl Kind {
    /// As a JSON-RPC error, where there is no other form.
    pub(crate) fn rejection(self) -> Rejection {
        match self {
            Kind::Rejected(rejection) => rejection,
            Kind::Unfit(text) => Rejection::Params(text),
            Kind::Failed(text) => Rejection::Internal(text),
            Kind::Asked => {
                Rejection::Internal("only a tool, a prompt or a resource can ask the client something".into())
            }
        }
    }
}
