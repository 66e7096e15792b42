//! How the program ends.

use crate::words;

/// All went well.
pub(crate) const DONE: u8 = 0;
/// Wrong usage or configuration.
pub(crate) const USAGE: u8 = 2;

/// Why the program ends without having done what it was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The server answered with an error.
    Answer(String),
    /// A tool says that it failed, in as many lines as it likes.
    Tool(String),
    /// Nobody reads standard output any more, as after `| head`: there is nothing left to do, and nobody to tell.
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

    /// What is said of it on standard error: much of it may be what a server said.
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

/// The known name that somebody meant, as the end of a sentence; empty where none is near.
pub(crate) fn meant<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let distance = |known: &&str| strsim::damerau_levenshtein(&name.to_lowercase(), &known.to_lowercase());
    match known.into_iter().min_by_key(distance) {
        Some(nearest) if distance(&nearest) <= 3.min(name.len() / 2) => format!(" (is {nearest:?} meant?)"),
        _ => String::new(),
    }
}
