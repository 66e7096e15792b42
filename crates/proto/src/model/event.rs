//! Progress and log messages of a request that is not answered yet.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
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

/// The events of requests that are under way, in their order.
///
/// The queue is bounded: a service that is faster than its client waits. It needs no room until the first event comes,
/// since most requests have none. When it is dropped, those who wait for room go on, and later events are dropped.
#[derive(Debug)]
pub struct EventQueue(Arc<Queue>);

/// Puts the events of one request into an [`EventQueue`].
#[derive(Clone, Debug)]
pub struct EventSink(Option<(u64, Arc<Queue>)>);

#[derive(Debug)]
struct Queue {
    /// How many events wait at most.
    capacity: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    events: VecDeque<(u64, Event)>,
    /// Nobody reads any more.
    closed: bool,
    /// The reader, while it waits for an event.
    reader: Option<Waker>,
    /// Those who wait for room.
    senders: Vec<Waker>,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an event in, where there is room; gives it back where there is none.
    fn push(&self, mut state: MutexGuard<'_, State>, key: u64, event: Event) -> Result<(), Event> {
        if state.closed {
            return Ok(());
        }
        if state.events.len() >= self.capacity {
            return Err(event);
        }
        state.events.push_back((key, event));
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
        Ok(())
    }

    /// Takes the first event, and wakes those who wait for its room.
    fn pop(&self, mut state: MutexGuard<'_, State>) -> Option<(u64, Event)> {
        let event = state.events.pop_front()?;
        let senders = std::mem::take(&mut state.senders);
        drop(state);
        senders.into_iter().for_each(Waker::wake);
        Some(event)
    }
}

impl EventQueue {
    /// Makes a queue in which at most so many events wait.
    pub fn new(capacity: usize) -> EventQueue {
        EventQueue(Arc::new(Queue { capacity, state: Mutex::default() }))
    }

    /// Makes a sink for one request. The key tells the requests of one queue apart.
    pub fn sink(&self, key: u64) -> EventSink {
        EventSink(Some((key, Arc::clone(&self.0))))
    }

    /// Takes the next event with the key of its request, if there is one.
    pub fn try_next(&mut self) -> Option<(u64, Event)> {
        self.0.pop(self.0.lock())
    }

    /// Waits for the next event, however long it takes; gives it with the key of its request. Nothing is lost when the
    /// future is dropped.
    pub async fn next(&mut self) -> (u64, Event) {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&mut self, cx: &Context<'_>) -> Poll<(u64, Event)> {
        let mut state = self.0.lock();
        if state.events.is_empty() {
            match &mut state.reader {
                Some(reader) => reader.clone_from(cx.waker()),
                none => *none = Some(cx.waker().clone()),
            }
            return Poll::Pending;
        }
        self.0.pop(state).map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for EventQueue {
    fn drop(&mut self) {
        let closed = State { closed: true, ..State::default() };
        let state = std::mem::replace(&mut *self.0.lock(), closed);
        state.senders.into_iter().for_each(Waker::wake);
    }
}

impl EventSink {
    /// Makes a sink that drops every event.
    pub const fn discard() -> EventSink {
        EventSink(None)
    }

    /// Queues an event, and waits while the queue is full. Where the reader is gone, the event is dropped.
    pub async fn send(&self, event: Event) {
        let Some((key, queue)) = &self.0 else { return };
        let mut event = Some(event);
        poll_fn(|cx| {
            let Some(next) = event.take() else { return Poll::Ready(()) };
            let mut state = queue.lock();
            if !state.closed && state.events.len() >= queue.capacity {
                event = Some(next);
                if !state.senders.iter().any(|waker| waker.will_wake(cx.waker())) {
                    state.senders.push(cx.waker().clone());
                }
                return Poll::Pending;
            }
            // There is room, or nobody reads.
            let _ = queue.push(state, *key, next);
            Poll::Ready(())
        })
        .await;
    }

    /// Queues an event if there is room. Returns whether there was.
    pub fn try_send(&self, event: Event) -> bool {
        match &self.0 {
            Some((key, queue)) => queue.push(queue.lock(), *key, event).is_ok(),
            None => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use futures_util::FutureExt as _;

    use super::*;

    /// Counts how often it is woken.
    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn event(after: u64) -> Event {
        Event::Release(Duration::from_secs(after))
    }

    fn after(next: Option<(u64, Event)>) -> Option<(u64, u64)> {
        next.map(|(key, event)| match event {
            Event::Release(after) => (key, after.as_secs()),
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn events_come_in_their_order_and_a_full_queue_makes_its_senders_wait() {
        let mut queue = EventQueue::new(2);
        let (one, two) = (queue.sink(1), queue.sink(2));
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut cx = Context::from_waker(&waker);
        assert!(Box::pin(queue.next()).poll_unpin(&mut cx).is_pending());
        assert!(one.try_send(event(1)) && one.send(event(2)).now_or_never().is_some());
        assert_eq!(woken.0.load(Ordering::Relaxed), 1, "the reader waited once");
        assert!(!two.try_send(event(3)));
        let mut waiting = Box::pin(two.send(event(4)));
        assert!(waiting.poll_unpin(&mut cx).is_pending());
        assert_eq!(after(queue.next().now_or_never()), Some((1, 1)));
        assert_eq!(woken.0.load(Ordering::Relaxed), 2, "there is room");
        assert!(waiting.poll_unpin(&mut cx).is_ready());
        assert_eq!((after(queue.try_next()), after(queue.try_next())), (Some((1, 2)), Some((2, 4))));
        assert!(queue.try_next().is_none() && queue.next().now_or_never().is_none());
    }

    #[test]
    fn a_queue_that_nobody_reads_keeps_nobody_waiting() {
        let queue = EventQueue::new(1);
        let sink = queue.sink(1);
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut cx = Context::from_waker(&waker);
        assert!(sink.try_send(event(1)));
        let mut waiting = Box::pin(sink.send(event(2)));
        assert!(waiting.poll_unpin(&mut cx).is_pending());
        drop(queue);
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
        assert!(waiting.poll_unpin(&mut cx).is_ready());
        assert!(sink.try_send(event(3)) && sink.send(event(4)).now_or_never().is_some());
    }
}
