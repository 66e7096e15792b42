//! Progress and log messages of a request that is not answered yet.

use std::time::Duration;

use spec::Level;

use crate::json::Object;

/// Something that a service tells while it works on a request.
#[derive(Clone, Debug)]
pub enum Event {
    /// The params of a progress notification, without the token: `progress`, `total` and `message`.
    Progress(Object),
    /// The level and the params of a log message: `level`, `logger` and `data`.
    Log(Level, Object),
    /// The client need not stay connected. It may connect again for the rest after this time.
    Release(Duration),
}

/// The queue that takes the events of a request. It is bounded: a service that is faster than its client waits.
#[derive(Clone, Debug)]
pub struct EventSink(Option<(u64, async_channel::Sender<(u64, Event)>)>);

impl EventSink {
    /// Makes a sink that puts events into a queue. The key tells the requests of one queue apart.
    pub fn new(key: u64, queue: async_channel::Sender<(u64, Event)>) -> EventSink {
        EventSink(Some((key, queue)))
    }

    /// Makes a sink that drops every event.
    pub const fn discard() -> EventSink {
        EventSink(None)
    }

    /// Queues an event, and waits while the queue is full. Where the reader is gone, the event is dropped.
    pub async fn send(&self, event: Event) {
        if let Some((key, queue)) = &self.0 {
            let _ = queue.send((*key, event)).await;
        }
    }

    /// Queues an event if there is room. Returns whether there was.
    pub fn try_send(&self, event: Event) -> bool {
        match &self.0 {
            Some((key, queue)) => queue.try_send((*key, event)).is_ok(),
            None => true,
        }
    }
}
