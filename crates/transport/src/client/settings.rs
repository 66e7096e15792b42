//! How a connection to a server is made and kept.

use std::sync::Arc;
use std::time::Duration;

use proto::upstream::Introduction;
use proto::{Object, wire};
use spec::Era;

use super::stdio::Guard;

/// How a connection to a server is made and kept.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// What the client tells the server about itself.
    pub introduction: Introduction,
    /// What is known of the server's era. Default: nothing.
    pub era: EraHint,
    /// How long the server may take to answer `server/discover` before the client sends `initialize` as well.
    /// Default: 3 seconds.
    pub probe: Duration,
    /// How long it may take until the connection is ready. Default: 60 seconds.
    pub connect: Duration,
    /// How long the server may take to answer a call. While a call is parked, this time does not run. Default: 10
    /// minutes.
    pub call: Duration,
    /// How long a call stays parked while the client has not answered the server's question. Default: 5 minutes.
    pub hold: Duration,
    /// How large the messages may be that the server sends.
    pub limits: wire::Limits,
    /// Receives the lines that a program writes to standard error. Default: they are logged.
    pub stderr: Option<Stderr>,
    /// Ends the programs that this process started, also where this process is killed. Default: none.
    pub guard: Option<Guard>,
}

/// What is known of a server's era before the client connects to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EraHint {
    /// Nothing is known: the client asks the server.
    #[default]
    Unknown,
    /// The server was of this era when the client last connected. Where it does not answer so, the client asks it.
    Seen(Era),
    /// The client speaks to the server in this era and in no other.
    Fixed(Era),
}

/// Receives each line that a program writes to standard error, and each warning of the client about that program.
#[derive(Clone)]
pub struct Stderr(pub Arc<dyn Fn(&str) + Send + Sync>);

impl std::fmt::Debug for Stderr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stderr")
    }
}

impl Settings {
    /// The default settings of a client with this name and version, which it tells each server.
    pub fn new(name: &str, version: &str) -> Settings {
        Settings {
            introduction: Introduction {
                identity: Object::new().with("name", name).with("version", version),
            },
            era: EraHint::Unknown,
            probe: Duration::from_secs(3),
            connect: Duration::from_secs(60),
            call: Duration::from_secs(600),
            hold: Duration::from_secs(300),
            limits: wire::Limits::default(),
            stderr: None,
            guard: None,
        }
    }

    /// Writes a warning about the server among the lines of its standard error.
    pub(super) fn warn(&self, line: &str) {
        if let Some(Stderr(receive)) = &self.stderr {
            receive(line);
        }
    }
}
