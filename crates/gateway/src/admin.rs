//! The admin API: what `/v1` is asked and answers, as types that the program's server and its clients share.
//!
//! All bodies are JSON. [`LOGS`] answers one [`LogLine`] per line.

use std::path::PathBuf;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// `GET`: answers [`Status`].
pub const STATUS: &str = "/v1/status";
/// `GET` with a [`LogsQuery`]: answers [`LogLine`]s, or 404 and [`NoSuchServer`].
pub const LOGS: &str = "/v1/logs";
/// `POST` with a [`RestartQuery`]: answers [`ServerStatus`], or 404 and [`NoSuchServer`].
pub const RESTART: &str = "/v1/restart";

/// The status of a running dateline.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// The version of the program.
    pub version: String,
    /// The process id of the program.
    pub pid: u32,
    /// The configuration file that is served, if there is one.
    pub config: Option<PathBuf>,
    /// The servers, in the order of the configuration.
    pub servers: Vec<ServerStatus>,
}

/// The status of one server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerStatus {
    /// The server's name in the configuration.
    pub name: String,
    /// Whether the server runs.
    pub state: ServerState,
    /// Why the server does not run, until it runs again.
    pub why: Option<String>,
    /// Since when it runs, or since when it does not; see [`timestamp`].
    pub since: String,
    /// How it is reached: `stdio`, `http`, `sse`, `in process`; `none` when its configuration cannot be used.
    pub transport: String,
    /// The protocol revision that it speaks, once that is known.
    pub revision: Option<String>,
    /// The era of that revision.
    pub era: Option<String>,
    /// The process ids of its running processes.
    pub pids: Vec<u32>,
    /// How many of its tools are shown.
    pub tools: usize,
    /// How many requests were sent to it.
    pub calls: u64,
    /// How many of these requests ended with an error.
    pub errors: u64,
    /// How often it came up again after it had been up.
    pub restarts: u64,
    /// The lists that could not be read last time. They are read again.
    pub stale: Vec<StaleList>,
    /// The entries of its lists that are not shown as it sent them. Long lists of these are cut off.
    pub left_out: Vec<LeftOut>,
    /// How many such entries there are in all.
    pub left_out_count: usize,
}

/// Whether a server runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerState {
    /// It is being started.
    #[default]
    Starting,
    /// It runs.
    Up,
    /// It is started on first use.
    Idle,
    /// It does not run. It is tried again, in growing pauses, and at once when it is needed.
    Down,
}

impl ServerState {
    /// The word for it, as it stands in JSON.
    pub fn word(self) -> &'static str {
        match self {
            ServerState::Starting => "starting",
            ServerState::Up => "up",
            ServerState::Idle => "idle",
            ServerState::Down => "down",
        }
    }
}

/// A list that could not be read last time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaleList {
    /// The method of the list.
    pub list: String,
    /// Why it could not be read.
    pub why: String,
}

/// An entry of a list that is not shown, or not all of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The method of the list.
    pub list: String,
    /// The entry's name, or its place in the list when it has none.
    pub name: String,
    /// What is wrong with it.
    pub why: String,
}

/// One line of a server's log: what it wrote to standard error, or what dateline says of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogLine {
    /// When the line came; see [`timestamp`].
    pub at: String,
    /// The server's name.
    pub server: String,
    /// The line itself.
    pub text: String,
}

/// What [`LOGS`] is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LogsQuery {
    /// The server whose lines are wanted; all servers when there is none.
    pub server: Option<String>,
    /// Whether the answer goes on with each new line.
    #[serde(default)]
    pub follow: bool,
}

/// What [`RESTART`] is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RestartQuery {
    /// The server to start again.
    pub server: String,
}

/// The answer to a request that names a server that is not configured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NoSuchServer {
    /// What is wrong, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The names of the servers that there are.
    pub servers: Vec<String>,
}

/// The answer to a request that is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// Why it is refused, in words.
    pub error: String,
}

/// A time as the admin API writes it: RFC 3339, in UTC, in whole seconds.
pub fn timestamp(at: SystemTime) -> String {
    let at = OffsetDateTime::from(at);
    at.replace_nanosecond(0).unwrap_or(at).format(&Rfc3339).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_written_as_its_word() {
        for state in [ServerState::Starting, ServerState::Up, ServerState::Idle, ServerState::Down] {
            assert_eq!(serde_json::to_value(state).unwrap(), state.word());
        }
    }

    #[test]
    fn what_an_older_program_does_not_say_is_no_error() {
        let status: Status = serde_json::from_str(r#"{"servers": [{"name": "a", "state": "up"}]}"#).unwrap();
        assert_eq!((status.servers[0].name.as_str(), status.servers[0].state), ("a", ServerState::Up));
    }
}
