//! What happens while a request is worked on.

use std::time::Duration;

use crate::json::Object;
use crate::model::level::Level;

/// What happens while a request is worked on.
#[derive(Clone, Debug)]
pub enum Event {
    /// Progress: `progress`, `total`, `message`, without the token.
    Progress(Object),
    /// A log message: `level`, `logger`, `data`.
    Log(Level, Object),
    /// The client need not stay connected: it may come back for the rest after this time.
    Release(Duration),
}

/// Where a request's events go: a bounded queue, so that who makes them waits for who reads them.
#[derive(Clone, Debug)]
pub struct EventSink(Option<(u64, async_channel::Sender<(u64, Event)>)>);

impl EventSink {
    /// Into a queue, under a key that tells the requests of one queue apart.
    pub fn new(key: u64, queue: async_channel::Sender<(u64, Event)>) -> EventSink {
        EventSink(Some((key, queue)))
    }

    /// Nowhere.
    pub const fn discard() -> EventSink {
        EventSink(None)
    }

    /// Queues an event, and waits while the queue is full. What nobody reads any more is dropped.
    pub async fn send(&self, event: Event) {
        if let Some((key, queue)) = &self.0 {
            let _ = queue.send((*key, event)).await;
        }
    }

    /// Queues an event if there is room; says whether there was.
    pub fn try_send(&self, event: Event) -> bool {
        match &self.0 {
            Some((key, queue)) => queue.try_send((*key, event)).is_ok(),
            None => true,
        }
    }
}
