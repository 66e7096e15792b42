//! How the program ends.

use crate::words;

/// The exit code when all went well.
pub(crate) const DONE: u8 = 0;
/// The exit code for wrong usage or configuration.
pub(crate) const USAGE: u8 = 2;

/// Why the program ends without having done what it was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The server answered with an error.
    Answer(String),
    /// A tool reports an error, in a text of one or several lines.
    Tool(String),
    /// The reader of standard output went away, as `head` does. This is no error.
    Unread,
    /// Wrong usage or configuration.
    Usage(String),
    /// A server cannot be started or reached.
    Reach(String),
    /// The address cannot be listened on.
    Listen(String),
    /// Anything else.
    Other(String),
}

impl Failure {
    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::Answer(_) | Failure::Tool(_) | Failure::Other(_) => 1,
            Failure::Unread => DONE,
            Failure::Usage(_) => USAGE,
            Failure::Reach(_) => 3,
            Failure::Listen(_) => 4,
        }
    }

    /// What is written to standard error. Much of it may come from a server, so it is escaped.
    pub(crate) fn told(&self) -> Option<String> {
        match self {
            Failure::Unread => None,
            Failure::Tool(text) => Some(words::text(text)),
            Failure::Answer(text)
            | Failure::Usage(text)
            | Failure::Reach(text)
            | Failure::Listen(text)
            | Failure::Other(text) => Some(words::line(text)),
        }
    }
}

/// The known name that is nearest to an unknown one, as the end of a sentence; empty if none is near.
pub(crate) fn meant<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let distance = |known: &&str| strsim::damerau_levenshtein(&name.to_lowercase(), &known.to_lowercase());
    match known.into_iter().min_by_key(distance) {
        Some(nearest) if distance(&nearest) <= 3.min(name.len() / 2) => format!(" (is {nearest:?} meant?)"),
        _ => String::new(),
    }
}
