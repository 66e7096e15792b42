//! Errors of handlers.

use std::fmt;

use proto::Rejection;

/// The error of a handler. `?` turns any [`std::error::Error`] into one.
///
/// The error of a tool becomes a result with `isError`, which the model reads. The error of a prompt or resource
/// becomes a JSON-RPC error. The client gets the error's text in both cases, so keep secrets and internals out of it.
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
    /// Makes an error of a text.
    pub fn new(text: impl fmt::Display) -> Error {
        Error(Kind::Failed(text.to_string()))
    }

    /// Makes a JSON-RPC error, in the form that the client's revision has for it.
    pub fn reject(rejection: Rejection) -> Error {
        Error(Kind::Rejected(rejection))
    }

    /// Makes a JSON-RPC error with a code of the application's own. JSON-RPC reserves -32768 to -32000.
    pub fn code(code: i64, message: impl Into<String>) -> Error {
        Error(Kind::Rejected(Rejection::Passed { code, message: message.into(), data: None }))
    }
}

impl Error {
    /// Gives whether a question failed because the client did not declare that it can be asked it.
    ///
    /// A handler that can do without the answer goes on. With `?` the client gets an error that says which capability
    /// is missing.
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
