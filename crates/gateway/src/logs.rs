//! What servers say on stderr, and what happens to them: the last of it is kept, and passed on to who follows.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use tokio::sync::broadcast;

/// How many lines are kept of all servers together.
const KEPT: usize = 2000;

/// A line.
#[derive(Clone, Debug)]
pub struct Entry {
    /// When it was said.
    pub at: SystemTime,
    /// The server that it is of.
    pub server: String,
    /// What was said.
    pub text: String,
}

/// The lines of all servers.
pub(crate) struct Logs {
    kept: Mutex<VecDeque<Entry>>,
    follow: broadcast::Sender<Entry>,
}

impl Default for Logs {
    fn default() -> Logs {
        Logs { kept: Mutex::default(), follow: broadcast::channel(256).0 }
    }
}

impl Logs {
    /// Keeps a line.
    pub(crate) fn say(&self, server: &str, text: &str) {
        tracing::info!(server, "{text}");
        self.keep(server, text);
    }

    /// Keeps a line that whoever runs dateline should see.
    pub(crate) fn warn(&self, server: &str, text: &str) {
        tracing::warn!(server, "{text}");
        self.keep(server, text);
    }

    fn keep(&self, server: &str, text: &str) {
        let entry = Entry { at: SystemTime::now(), server: server.to_owned(), text: text.to_owned() };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(entry.clone());
        // It fails when nobody follows.
        let _ = self.follow.send(entry);
    }

    /// What is kept, of one server or of all, and what comes after it.
    pub(crate) fn read(&self, server: Option<&str>) -> (Vec<Entry>, broadcast::Receiver<Entry>) {
        // Locked while both are taken: no line is missed, none comes twice.
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = |entry: &&Entry| server.is_none_or(|server| entry.server == server);
        (kept.iter().filter(wanted).cloned().collect(), self.follow.subscribe())
    }
}
