//! Messages to a server for which nobody waits: replies to its own requests, and cancellations.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// How many bytes may wait for a server that does not read. The reply to a `ping` has forty bytes, so a server can ask
/// ten thousand times before it reads.
const ROOM: usize = 1 << 20;
/// What a message counts for beside its own bytes: about what the queue needs for it.
const COST: usize = 64;
/// How long a server that asks may leave the replies unread when there is no more room for them.
const PATIENCE: Duration = Duration::from_secs(10);

/// A message in the queue, with the room that it takes.
pub(super) type Queued = (Bytes, OwnedSemaphorePermit);

/// The end of the queue where messages go in. It is bounded by their bytes.
pub(super) struct Outbox {
    room: Arc<Semaphore>,
    queue: mpsc::UnboundedSender<Queued>,
}

/// The queue was full for too long.
#[derive(Debug, thiserror::Error)]
#[error("more than {} KiB waited for it for {} s", ROOM >> 10, PATIENCE.as_secs())]
pub(super) struct Full;

/// Creates an empty queue.
pub(super) fn outbox() -> (Outbox, mpsc::UnboundedReceiver<Queued>) {
    let (queue, queued) = mpsc::unbounded_channel();
    (Outbox { room: Arc::new(Semaphore::new(ROOM)), queue }, queued)
}

/// The room that a message takes. A message that is larger than all of the room waits until the queue is empty.
fn weight(message: &Bytes) -> u32 {
    (message.len() + COST).min(ROOM) as u32
}

impl Outbox {
    /// Queues messages without waiting. Those for which there is no room are lost: their server does not read.
    pub(super) fn push_now(&self, messages: Vec<Bytes>) {
        for message in messages {
            if let Ok(permit) = Arc::clone(&self.room).try_acquire_many_owned(weight(&message)) {
                let _ = self.queue.send((message, permit));
            }
        }
    }

    /// Queues messages, and waits for room.
    ///
    /// # Errors
    /// When there is none in time.
    pub(super) async fn push(&self, messages: Vec<Bytes>) -> Result<(), Full> {
        for message in messages {
            let room = Arc::clone(&self.room).acquire_many_owned(weight(&message));
            match tokio::time::timeout(PATIENCE, room).await {
                Ok(Ok(permit)) => drop(self.queue.send((message, permit))),
                _ => return Err(Full),
            }
        }
        Ok(())
    }
}
