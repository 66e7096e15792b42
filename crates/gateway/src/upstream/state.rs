//! Whether a server runs.

use crate::admin::ServerState;

/// Whether a server runs, and why not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// It is being started.
    Starting,
    /// It runs.
    Up,
    /// It is started on first use.
    Idle,
    /// It does not run, for this reason. It is tried again, in growing pauses, and at once when it is needed.
    Down(String),
}

impl State {
    /// The state as the admin API shows it.
    pub(crate) fn shown(&self) -> ServerState {
        match self {
            State::Starting => ServerState::Starting,
            State::Up => ServerState::Up,
            State::Idle => ServerState::Idle,
            State::Down(_) => ServerState::Down,
        }
    }
}
