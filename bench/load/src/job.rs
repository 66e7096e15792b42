//! What there is to do.

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Job {
    Calls(Calls),
    Pipe(Pipe),
    Listens(Crowd),
    Sessions(Crowd),
    Start(Start),
}

/// A server on HTTP that runs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Server {
    /// Where it listens, `HOST:PORT`.
    pub(crate) address: String,
    pub(crate) path: String,
    /// Its process; those below it belong to it.
    pub(crate) pid: u32,
    /// The name of processes below it that are not counted.
    #[serde(default)]
    pub(crate) without: Option<String>,
}

#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Era {
    /// Each request is complete in itself.
    Modern,
    /// After a handshake, in a session.
    Legacy,
}

#[derive(Deserialize)]
#[serde(tag = "method", rename_all = "lowercase")]
pub(crate) enum Ask {
    /// A call of a tool that gives its text back.
    Call {
        tool: String,
        /// The length of the text.
        bytes: usize,
        /// The tool reports progress first.
        #[serde(default)]
        progress: bool,
    },
    /// The whole list of tools.
    List {
        /// How many there are.
        tools: usize,
    },
}

/// For how long it is measured.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Window {
    /// Milliseconds before what is measured.
    pub(crate) warm: u64,
    /// Milliseconds that are measured.
    pub(crate) measured: u64,
}

#[derive(Deserialize)]
pub(crate) struct Calls {
    pub(crate) server: Server,
    pub(crate) era: Era,
    pub(crate) ask: Ask,
    pub(crate) connections: usize,
    pub(crate) window: Window,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Pipe {
    pub(crate) command: Vec<String>,
    pub(crate) ask: Ask,
    pub(crate) in_flight: usize,
    pub(crate) window: Window,
}

/// Many clients of one server.
#[derive(Deserialize)]
pub(crate) struct Crowd {
    pub(crate) server: Server,
    pub(crate) count: usize,
}

#[derive(Deserialize)]
pub(crate) struct Start {
    pub(crate) command: Vec<String>,
    /// Where it will serve HTTP; it serves standard streams where there is none.
    pub(crate) address: Option<String>,
    #[serde(default)]
    pub(crate) path: String,
    pub(crate) era: Era,
    pub(crate) tool: String,
    pub(crate) times: usize,
    #[serde(default)]
    pub(crate) without: Option<String>,
}
