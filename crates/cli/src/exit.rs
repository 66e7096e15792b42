//! Exit codes, and the errors that end the program.

use crate::escape;

/// The exit code when all went well.
pub(crate) const DONE: u8 = 0;
/// The exit code for wrong usage or configuration.
pub(crate) const USAGE: u8 = 2;

/// Why the program ends without having done what it was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The server answered with an error.
    ServerError(String),
    /// A tool reported an error, in one or several lines.
    ToolError(String),
    /// The reader of standard output went away, as `head` does. This is not an error.
    OutputClosed,
    /// Wrong usage or configuration.
    Usage(String),
    /// A server cannot be started or reached.
    Unreachable(String),
    /// The address cannot be listened on.
    CannotListen(String),
    /// Anything else.
    Other(String),
}

impl Failure {
    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::ServerError(_) | Failure::ToolError(_) | Failure::Other(_) => 1,
            Failure::OutputClosed => DONE,
            Failure::Usage(_) => USAGE,
            Failure::Unreachable(_) => 3,
            Failure::CannotListen(_) => 4,
        }
    }

    /// The text for standard error. Much of it may come from a server, so it is escaped.
    pub(crate) fn message(&self) -> Option<String> {
        match self {
            Failure::OutputClosed => None,
            Failure::ToolError(text) => Some(escape::text(text)),
            Failure::ServerError(text)
            | Failure::Usage(text)
            | Failure::Unreachable(text)
            | Failure::CannotListen(text)
            | Failure::Other(text) => Some(escape::line(text)),
        }
    }
}

/// The known name that is most similar to an unknown one, as the end of a sentence; empty when none is similar.
pub(crate) fn suggestion<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let distance = |known: &&str| strsim::damerau_levenshtein(&name.to_lowercase(), &known.to_lowercase());
    match known.into_iter().min_by_key(distance) {
        Some(nearest) if distance(&nearest) <= 3.min(name.len() / 2) => {
            format!(" (did you mean {nearest:?}?)")
        }
        _ => String::new(),
    }
}
