//! What goes wrong with sockets, pipes and processes.

use std::io;
use std::time::Duration;

/// A fault of IO, by what was attempted.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// An address that cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// A program that cannot be started.
    #[error("cannot start {program:?}: {source}")]
    Start {
        /// The program.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// A URL that cannot be used.
    #[error("cannot use the URL {url:?}: {why}")]
    Url {
        /// The URL.
        url: String,
        /// Why.
        why: String,
    },
    /// A request that did not arrive.
    #[error("cannot reach {url}: {why}")]
    Reach {
        /// The URL.
        url: String,
        /// Why.
        why: String,
    },
    /// The other end closed the connection.
    #[error("the server closed the connection{0}")]
    Closed(String),
    /// The other end does not speak the protocol.
    #[error("{0}")]
    Protocol(String),
    /// The other end did not answer.
    #[error("no answer within {} s", .0.as_secs())]
    Timeout(Duration),
}

impl TransportError {
    /// For those who use a server but do not run it: without addresses, programs and what they last said.
    pub(crate) fn told(&self) -> &'static str {
        match self {
            TransportError::Listen { .. } => "the address cannot be listened on",
            TransportError::Start { .. } => "the server cannot be started",
            TransportError::Url { .. } | TransportError::Reach { .. } => "the server cannot be reached",
            TransportError::Closed(_) => "the server closed the connection",
            TransportError::Protocol(_) => "the server does not answer as it should",
            TransportError::Timeout(_) => "the server does not answer",
        }
    }
}
