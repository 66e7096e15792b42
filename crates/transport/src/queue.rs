//! Messages on their way to who reads them: bounded by number and by bytes, so that who makes them waits.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::BACKLOG;

/// How many bytes of messages wait for a slow reader before who makes them waits too. A longer message waits alone. It
/// is less than one message may have, since the one that is being written counts no more.
const BYTES: u32 = 4 << 20;

/// Where messages go in.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    messages: mpsc::Sender<(Bytes, OwnedSemaphorePermit)>,
    room: Arc<Semaphore>,
}

/// Where they come out, in their order.
#[derive(Debug)]
pub(crate) struct Receiver {
    messages: mpsc::Receiver<(Bytes, OwnedSemaphorePermit)>,
    room: Arc<Semaphore>,
}

/// Nobody reads any more.
#[derive(Debug)]
pub(crate) struct Closed;

/// A queue.
pub(crate) fn queue() -> (Sender, Receiver) {
    let (sender, messages) = mpsc::channel(BACKLOG);
    let room = Arc::new(Semaphore::new(BYTES as usize));
    (Sender { messages: sender, room: Arc::clone(&room) }, Receiver { messages, room })
}

impl Sender {
    /// Queues a message once there is room for it.
    pub(crate) async fn send(&self, message: Bytes) -> Result<(), Closed> {
        let weight = u32::try_from(message.len()).unwrap_or(BYTES).min(BYTES);
        let permit = Arc::clone(&self.room).acquire_many_owned(weight).await.map_err(|_| Closed)?;
        self.messages.send((message, permit)).await.map_err(|_| Closed)
    }

    /// Waits until nobody reads any more.
    pub(crate) async fn closed(&self) {
        self.messages.closed().await;
    }
}

impl Receiver {
    /// The next message; `None` when there will be no more.
    pub(crate) async fn recv(&mut self) -> Option<Bytes> {
        self.messages.recv().await.map(|(message, _)| message)
    }

    /// The next message, where there is one already.
    pub(crate) fn try_recv(&mut self) -> Option<Bytes> {
        self.messages.try_recv().ok().map(|(message, _)| message)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // Who waits for room hears that there will be none.
        self.room.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    #[tokio::test]
    async fn a_queue_is_full_by_number_and_by_bytes_and_takes_a_message_of_any_length_alone() {
        let (sender, mut receiver) = queue();
        for _ in 0..BACKLOG {
            sender.send(Bytes::from_static(b"x")).await.unwrap();
        }
        tokio::task::yield_now().await;
        assert!(sender.send(Bytes::from_static(b"x")).now_or_never().is_none(), "by number");
        while receiver.try_recv().is_some() {}
        let long = Bytes::from(vec![0; 2 * BYTES as usize]);
        assert!(sender.send(long.clone()).now_or_never().is_some());
        assert!(sender.send(Bytes::from_static(b"x")).now_or_never().is_none(), "by bytes");
        assert_eq!(receiver.recv().await.map(|message| message.len()), Some(long.len()));
        assert!(sender.send(Bytes::from_static(b"x")).now_or_never().is_some());
        drop(receiver);
        assert!(sender.send(long).await.is_err());
    }
}
