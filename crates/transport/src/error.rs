//! Errors of sockets, pipes and processes.

use std::io;
use std::time::Duration;

/// An error of a transport, named by what was attempted.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The server cannot listen on an address.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A program cannot be started.
    #[error("cannot start {program:?}: {source}")]
    Start {
        /// The program.
        program: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A URL cannot be used.
    #[error("cannot use the URL {:?}: {why}", shown(.url))]
    Url {
        /// The URL.
        url: String,
        /// What is wrong, in words.
        why: String,
    },
    /// A request did not arrive, so that it can be sent again.
    #[error("cannot reach {}: {why}", shown(.url))]
    Unreachable {
        /// The URL.
        url: String,
        /// What is wrong, in words.
        why: String,
    },
    /// A request may have arrived, and got no answer.
    #[error("{} closed the connection before it answered: {why}", shown(.url))]
    Unanswered {
        /// The URL.
        url: String,
        /// What is wrong, in words.
        why: String,
    },
    /// The server closed the connection; with the end of the sentence that says so.
    #[error("the server closed the connection{0}")]
    Closed(String),
    /// The server does not speak the protocol as it should; with the sentence that says how.
    #[error("{0}")]
    Protocol(String),
    /// The server did not answer within this time.
    #[error("no answer within {} s", .0.as_secs())]
    Timeout(Duration),
}

/// The error for people about a request that may have been carried out.
const UNANSWERED: &str =
    "the server closed the connection before it answered: whether it did what it was asked to is not known";

/// A URL as it may stand in a log: without user, password, query and fragment, since these may hold secrets.
pub fn shown(url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let start = url[..end].find("://").map_or(0, |at| at + "://".len());
    let (scheme, rest) = url[..end].split_at(start);
    let authority = rest.find('/').unwrap_or(rest.len());
    let host = rest[..authority].rfind('@').map_or(0, |at| at + 1);
    format!("{scheme}{}", &rest[host..])
}

impl TransportError {
    /// The error for people who use a server but do not run it: without addresses, commands and lines of standard error.
    pub(crate) fn public_text(&self) -> &'static str {
        match self {
            TransportError::Listen { .. } => "the address cannot be listened on",
            TransportError::Start { .. } => "the server cannot be started",
            TransportError::Url { .. } | TransportError::Unreachable { .. } => "the server cannot be reached",
            TransportError::Unanswered { .. } => UNANSWERED,
            TransportError::Closed(_) => "the server closed the connection",
            TransportError::Protocol(_) => "the server does not answer as it should",
            TransportError::Timeout(_) => "the server does not answer",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn a_url_is_shown_without_what_is_confidential_in_it() {
        for (url, due) in [
            ("http://127.0.0.1:1/mcp", "http://127.0.0.1:1/mcp"),
            ("https://me:key@x.example/a@b?token=key#key", "https://x.example/a@b"),
            ("https://key@x.example", "https://x.example"),
            ("me:key@x.example/mcp", "x.example/mcp"),
            ("https://x.example?key", "https://x.example"),
            ("://x", "://x"),
            ("", ""),
        ] {
            assert_eq!(shown(url), due);
        }
    }
}
