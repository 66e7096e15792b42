//! One event stream of a session.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// One event stream of a session, with the events that are kept for its readers.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Stream {
    /// It carries what concerns no call.
    pub(super) own: bool,
    /// Its client takes one JSON object: only the last message counts.
    pub(super) plain: bool,
    #[serde(with = "crate::saved::messages")]
    pub(super) events: VecDeque<Bytes>,
    /// The number of the first one in the buffer.
    #[serde(deserialize_with = "crate::saved::counter")]
    pub(super) first: u64,
    /// The number of the last one that a connection was given.
    #[serde(deserialize_with = "crate::saved::counter")]
    pub(super) sent: u64,
    /// How many bytes follow it.
    #[serde(skip)]
    pub(super) unsent: usize,
    /// The client was told an id, and so can reconnect.
    pub(super) named: bool,
    /// Calls that still have something to say on it.
    #[serde(skip)]
    pub(super) open: usize,
    /// The connection that reads it.
    pub(super) reader: Option<u64>,
    #[serde(deserialize_with = "crate::saved::counter")]
    pub(super) next_reader: u64,
    /// The connection is to be closed; the client may reconnect after this time.
    pub(super) release: Option<Duration>,
}

impl Stream {
    /// Counts again what is not written.
    ///
    /// # Errors
    /// Where the numbers of a stream contradict each other.
    pub(super) fn recount(&mut self) -> Result<(), &'static str> {
        // Numbers begin with 1. What was sent is no longer kept, or is among what is.
        let ahead = (self.sent + 1).checked_sub(self.first).filter(|_| self.first > 0);
        let ahead =
            ahead.and_then(|ahead| usize::try_from(ahead).ok()).filter(|ahead| *ahead <= self.events.len());
        let ahead = ahead.ok_or("the numbers of a stream contradict each other")?;
        self.unsent = self.events.iter().skip(ahead).map(Bytes::len).sum();
        Ok(())
    }

    /// The number of the last event.
    pub(super) fn last(&self) -> u64 {
        self.first + self.events.len() as u64 - 1
    }

    /// How many events no connection was given yet.
    pub(super) fn pending(&self) -> usize {
        usize::try_from(self.last() - self.sent).unwrap_or(usize::MAX)
    }

    /// Whether nothing more will be said on it.
    pub(super) fn is_finished(&self) -> bool {
        !self.own && self.open == 0
    }
}
