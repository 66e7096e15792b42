//! How a server is, for people and programs that watch.

use std::time::SystemTime;

use spec::Revision;

/// A server, as it is now.
#[derive(Clone, Debug)]
pub struct Report {
    /// Its name.
    pub name: String,
    /// Whether it is there.
    pub state: State,
    /// Why it is not there, while it is not; also while it is tried again.
    pub why: Option<String>,
    /// Since when it is there, or since when it is not.
    pub since: SystemTime,
    /// How it is reached: `stdio`, `http`, `sse`, `in process`; `none` where what is configured cannot be used.
    pub transport: &'static str,
    /// What it speaks, once that was found out.
    pub revision: Option<Revision>,
    /// The processes of it that run.
    pub pids: Vec<u32>,
    /// How many tools it shows.
    pub tools: usize,
    /// How many requests it was sent.
    pub calls: u64,
    /// How many of them ended with an error.
    pub errors: u64,
    /// How often it was started again.
    pub restarts: u64,
}

/// Whether a server is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum State {
    /// It is being started.
    Starting,
    /// It is there.
    Up,
    /// It is started when it is wanted.
    Idle,
    /// It is not there, and why; it will be tried again.
    Down(String),
    /// It is not there, and why; it is not tried again until the configuration changes.
    Failed(String),
}

impl State {
    /// The state in a word.
    pub fn word(&self) -> &'static str {
        match self {
            State::Starting => "starting",
            State::Up => "up",
            State::Idle => "idle",
            State::Down(_) => "down",
            State::Failed(_) => "failed",
        }
    }

    /// Why it is not there.
    pub fn why(&self) -> Option<&str> {
        match self {
            State::Down(why) | State::Failed(why) => Some(why),
            _ => None,
        }
    }
}
