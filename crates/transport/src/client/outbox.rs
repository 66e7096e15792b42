//! What a server is owed although nobody waits for it: answers to its own requests, and that a call was given up.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::Shared;

/// How many bytes may wait for a server that does not read. The answer to a `ping` has forty: a server may ask ten
/// thousand times before it reads.
const ROOM: usize = 1 << 20;
/// What a message costs beside its own bytes.
const COST: usize = 64;
/// How long a server that asks may leave its answers unread once there is no more room for them.
const PATIENCE: Duration = Duration::from_secs(10);

type Due = (Bytes, OwnedSemaphorePermit);

/// Queues messages, as far as there is room.
pub(super) struct Owed {
    room: Arc<Semaphore>,
    queue: mpsc::UnboundedSender<Due>,
}

/// A queue of what is owed, bounded by bytes.
pub(super) fn owed() -> (Owed, mpsc::UnboundedReceiver<Due>) {
    let (queue, due) = mpsc::unbounded_channel();
    (Owed { room: Arc::new(Semaphore::new(ROOM)), queue }, due)
}

/// What a message takes of the room; one that is larger than all of it waits until it is alone.
fn weight(message: &Bytes) -> u32 {
    (message.len() + COST).min(ROOM) as u32
}

impl Owed {
    /// From where nothing can be awaited. Where there is no room the server does not read, and misses it.
    pub(super) fn add_now(&self, messages: Vec<Bytes>) {
        for message in messages {
            if let Ok(permit) = Arc::clone(&self.room).try_acquire_many_owned(weight(&message)) {
                let _ = self.queue.send((message, permit));
            }
        }
    }

    /// Whether there was room, or came to be in time.
    async fn add(&self, messages: Vec<Bytes>) -> bool {
        for message in messages {
            let room = Arc::clone(&self.room).acquire_many_owned(weight(&message));
            match tokio::time::timeout(PATIENCE, room).await {
                Ok(Ok(permit)) => drop(self.queue.send((message, permit))),
                _ => return false,
            }
        }
        true
    }
}

impl Shared {
    /// InputResponses the server. One that asks on and on and does not read what it is answered is let go.
    pub(super) async fn owe(&self, messages: Vec<Bytes>) {
        if messages.is_empty() {
            return;
        }
        let room = tokio::select! {
            room = self.owed.add(messages) => room,
            () = self.gone.cancelled() => return,
        };
        if !room {
            let why = "the server asks and does not read what it is answered, and was let go";
            self.end(
                why,
                &format!(": more than {} KiB waited for it for {} s", ROOM >> 10, PATIENCE.as_secs()),
            );
        }
    }
}

/// Sends what is owed, one message after the other, while the server is there.
pub(super) async fn pay(
    mut due: mpsc::UnboundedReceiver<Due>,
    shared: Weak<Shared>,
    gone: CancellationToken,
) {
    let paying = async {
        while let Some((message, permit)) = due.recv().await {
            let Some(shared) = shared.upgrade() else { return };
            // Where it cannot be sent, whoever reads from the server finds out.
            let _ = shared.send(vec![message]).await;
            drop(permit);
        }
    };
    tokio::select! {
        () = paying => {}
        () = gone.cancelled() => {}
    }
}
