//! Who listens to changes.

use std::sync::{Mutex, PoisonError};

use crate::service::{BoxStream, Change, Filter};

/// How many changes may wait for a listener before it is let go.
const BACKLOG: usize = 256;

/// The listeners of one service. Telling them costs nothing where nobody listens, and a slow one does not hold
/// up the others: it is dropped when its backlog is full, and its stream ends.
#[derive(Debug, Default)]
pub struct Watchers(Mutex<Vec<(Filter, async_channel::Sender<Change>)>>);

impl Watchers {
    /// A stream of the changes that the filter wants, from now on.
    pub fn watch(&self, filter: Filter) -> BoxStream<Change> {
        let (sender, receiver) = async_channel::bounded(BACKLOG);
        let mut watchers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        watchers.retain(|(_, sender)| !sender.is_closed());
        watchers.push((filter, sender));
        Box::pin(receiver)
    }

    /// Tells whoever wants to know.
    pub fn tell(&self, change: &Change) {
        let mut watchers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        watchers.retain(|(filter, sender)| match filter.wants(change) {
            true => sender.try_send(change.clone()).is_ok(),
            false => !sender.is_closed(),
        });
    }

    /// Ends all streams.
    pub fn close(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// How many listen.
    pub fn count(&self) -> usize {
        let watchers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        watchers.iter().filter(|(_, sender)| !sender.is_closed()).count()
    }
}
