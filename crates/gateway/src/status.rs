//! How a server is, for people and programs that watch.

use std::time::SystemTime;

use spec::{Method, Revision};

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
    /// The lists that are not as it has them now, with the reason; they are read again.
    pub stale: Vec<(Method, String)>,
    /// What of its lists is not shown as it sent it.
    pub left_out: Vec<LeftOut>,
    /// How many such things there are, named or not.
    pub left_out_count: usize,
}

/// Something that a server listed and that is not shown, or not all of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeftOut {
    /// The list that it stands in.
    pub list: Method,
    /// What it is called there, or its place.
    pub name: String,
    /// What is wrong with it.
    pub why: String,
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
    /// It is not there, and why; it is tried again, in growing pauses, and at once where it is wanted.
    Down(String),
}

impl State {
    /// The state in a word.
    pub fn word(&self) -> &'static str {
        match self {
            State::Starting => "starting",
            State::Up => "up",
            State::Idle => "idle",
            State::Down(_) => "down",
        }
    }

    /// Why it is not there.
    pub fn why(&self) -> Option<&str> {
        match self {
            State::Down(why) => Some(why),
            _ => None,
        }
    }
}
