//! Who listens to changes.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};

use futures_util::Stream;
use futures_util::task::AtomicWaker;

use crate::service::{BoxStream, Change, Filter};

/// How many different changes may wait for a listener before it is let go.
const BACKLOG: usize = 256;

/// How many resources one listen may name: each change is compared with each of them, and each costs a server a
/// subscription.
pub const MOST_URIS: usize = 1024;

/// The listeners of one service. Telling them costs nothing where nobody listens, and a slow one does not hold up the
/// others: a change that waits for it already is not told twice, and one for which too much waits is let go, with
/// [`Change::Behind`] as its last word.
#[derive(Debug, Default)]
pub struct Watchers(Mutex<Vec<(Filter, Weak<Watcher>)>>);

#[derive(Debug, Default)]
struct Watcher {
    pending: Mutex<Pending>,
    waker: AtomicWaker,
}

#[derive(Debug, Default)]
struct Pending {
    changes: VecDeque<Change>,
    over: bool,
}

impl Watcher {
    /// Takes a change in; says whether the listener is still one.
    fn tell(&self, change: &Change) -> bool {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if pending.over {
            return false;
        }
        if pending.changes.contains(change) {
            return true;
        }
        if pending.changes.len() == BACKLOG {
            pending.changes.push_back(Change::Behind);
            pending.over = true;
        } else {
            pending.changes.push_back(change.clone());
        }
        let stays = !pending.over;
        drop(pending);
        self.waker.wake();
        stays
    }

    fn end(&self) {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).over = true;
        self.waker.wake();
    }
}

/// The changes that a listener hears of.
struct Changes(Arc<Watcher>);

impl Stream for Changes {
    type Item = Change;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Change>> {
        // Registered first: what is told from now on wakes.
        self.0.waker.register(cx.waker());
        let mut pending = self.0.pending.lock().unwrap_or_else(PoisonError::into_inner);
        match pending.changes.pop_front() {
            Some(change) => Poll::Ready(Some(change)),
            None if pending.over => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

impl Watchers {
    /// A stream of the changes that the filter wants, from now on.
    pub fn watch(&self, filter: Filter) -> BoxStream<Change> {
        let watcher = Arc::new(Watcher::default());
        let mut watchers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        watchers.retain(|(_, watcher)| watcher.strong_count() > 0);
        watchers.push((filter, Arc::downgrade(&watcher)));
        Box::pin(Changes(watcher))
    }

    /// Tells whoever wants to know.
    pub fn tell(&self, change: &Change) {
        let mut watchers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        watchers.retain(|(filter, watcher)| match watcher.upgrade() {
            Some(watcher) => !filter.wants(change) || watcher.tell(change),
            None => false,
        });
    }

    /// Ends all streams.
    pub fn close(&self) {
        let mut watchers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        watchers.drain(..).filter_map(|(_, watcher)| watcher.upgrade()).for_each(|watcher| watcher.end());
    }

    /// How many listen.
    pub fn count(&self) -> usize {
        let watchers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        watchers.iter().filter(|(_, watcher)| watcher.strong_count() > 0).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::{FutureExt as _, StreamExt as _};

    fn read(stream: &mut BoxStream<Change>) -> Vec<Option<Change>> {
        std::iter::from_fn(|| stream.next().now_or_never())
            .take(BACKLOG + 10)
            .take_while_inclusive()
            .collect()
    }

    trait Inclusive: Iterator<Item = Option<Change>> + Sized {
        fn take_while_inclusive(self) -> impl Iterator<Item = Option<Change>> {
            let mut over = false;
            self.take_while(move |item| !std::mem::replace(&mut over, item.is_none()))
        }
    }
    impl<I: Iterator<Item = Option<Change>>> Inclusive for I {}

    #[test]
    fn a_change_that_waits_is_not_told_twice_and_who_falls_behind_is_let_go_alone() {
        let watchers = Watchers::default();
        let all = Filter { tools: true, uris: vec!["x:/".into()], ..Filter::default() };
        let (mut slow, mut quick) = (watchers.watch(all.clone()), watchers.watch(all));
        for _ in 0..1000 {
            watchers.tell(&Change::Tools);
            watchers.tell(&Change::Prompts);
        }
        assert_eq!(read(&mut slow), [Some(Change::Tools)]);
        let mut heard = 0;
        for n in 0..=BACKLOG {
            watchers.tell(&Change::Resource(format!("x:/{n}").into()));
            heard += read(&mut quick).len();
        }
        assert_eq!((heard, watchers.count()), (BACKLOG + 2, 1));
        let told = read(&mut slow);
        assert_eq!(told.len(), BACKLOG + 2);
        assert_eq!(told[BACKLOG..], [Some(Change::Behind), None]);
        watchers.close();
        assert_eq!(read(&mut quick), [None]);
        drop((slow, quick));
        assert_eq!(watchers.count(), 0);
    }
}
