//! The listeners of a service, and how they are told of changes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};

use futures_util::Stream;
use futures_util::task::AtomicWaker;

use crate::model::boxed::BoxStream;
use crate::model::listen::{Change, Filter};
use crate::model::prepared_filter::Watched;

/// How many different changes may wait for a listener. A listener with more is dropped: it would have to read its lists
/// again in any case, and what waits for it takes memory.
const BACKLOG: usize = 256;

/// The listeners of one service.
///
/// A change costs work only for the listeners that asked for it. A slow listener does not delay the others: a change
/// that already waits for a listener is not added again, and a listener that reads too slowly is dropped, with
/// [`Change::Behind`] as its last change.
#[derive(Debug, Default)]
pub struct Watchers(Arc<Mutex<Listeners>>);

#[derive(Debug, Default)]
struct Listeners {
    all: BTreeMap<u64, (Filter, Arc<Watcher>)>,
    // The keys of the listeners, by what they asked for.
    tools: BTreeSet<u64>,
    prompts: BTreeSet<u64>,
    resources: BTreeSet<u64>,
    uris: Watched<BTreeSet<u64>>,
    next: u64,
    /// How many listeners were looked at to tell of changes.
    #[cfg(test)]
    asked: usize,
}

impl Listeners {
    fn join(&mut self, filter: Filter) -> (u64, Arc<Watcher>) {
        let key = self.next;
        self.next += 1;
        for (wants, lists) in [
            (filter.tools, &mut self.tools),
            (filter.prompts, &mut self.prompts),
            (filter.resources, &mut self.resources),
        ] {
            if wants {
                lists.insert(key);
            }
        }
        for uri in &filter.uris {
            self.uris.entry(uri).insert(key);
        }
        let watcher = Arc::new(Watcher::default());
        self.all.insert(key, (filter, Arc::clone(&watcher)));
        (key, watcher)
    }

    fn leave(&mut self, key: u64) {
        let Some((filter, _)) = self.all.remove(&key) else { return };
        for lists in [&mut self.tools, &mut self.prompts, &mut self.resources] {
            lists.remove(&key);
        }
        for uri in &filter.uris {
            self.uris.leave(uri, |who| {
                who.remove(&key);
                who.is_empty()
            });
        }
    }

    /// Returns the keys of the listeners that asked for a change.
    fn wanting(&self, change: &Change) -> BTreeSet<u64> {
        match change {
            Change::Tools => self.tools.clone(),
            Change::Prompts => self.prompts.clone(),
            Change::Resources => self.resources.clone(),
            Change::Behind => self.all.keys().copied().collect(),
            Change::Resource(uri) => self.uris.of(uri).flatten().copied().collect(),
        }
    }
}

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
    /// Adds a change. Returns false where the listener is dropped.
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

/// The stream of changes for one listener.
struct Changes {
    key: u64,
    watcher: Arc<Watcher>,
    listeners: Weak<Mutex<Listeners>>,
}

impl Drop for Changes {
    fn drop(&mut self) {
        if let Some(listeners) = self.listeners.upgrade() {
            listeners.lock().unwrap_or_else(PoisonError::into_inner).leave(self.key);
        }
    }
}

impl Stream for Changes {
    type Item = Change;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Change>> {
        // The waker is registered first, so that no change is missed between the look and the return.
        self.watcher.waker.register(cx.waker());
        let mut pending = self.watcher.pending.lock().unwrap_or_else(PoisonError::into_inner);
        match pending.changes.pop_front() {
            Some(change) => Poll::Ready(Some(change)),
            None if pending.over => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

impl Watchers {
    /// Adds a listener. Returns the stream of the changes that it asked for.
    pub fn watch(&self, filter: Filter) -> BoxStream<Change> {
        let (key, watcher) = self.listeners().join(filter);
        Box::pin(Changes { key, watcher, listeners: Arc::downgrade(&self.0) })
    }

    /// Tells the listeners that asked for a change.
    pub fn tell(&self, change: &Change) {
        let mut listeners = self.listeners();
        for key in listeners.wanting(change) {
            #[cfg(test)]
            {
                listeners.asked += 1;
            }
            if listeners.all.get(&key).is_some_and(|(_, watcher)| !watcher.tell(change)) {
                listeners.leave(key);
            }
        }
    }

    /// Ends the streams of all listeners.
    pub fn close(&self) {
        let mut listeners = self.listeners();
        let next = listeners.next;
        // Keys go on from where they were: a stream that ends later removes only its own listener.
        let over = std::mem::replace(&mut *listeners, Listeners { next, ..Listeners::default() });
        over.all.values().for_each(|(_, watcher)| watcher.end());
    }

    /// Returns how many listeners there are.
    pub fn count(&self) -> usize {
        self.listeners().all.len()
    }

    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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

    #[test]
    fn a_change_costs_those_who_want_to_hear_of_it() {
        let watchers = Watchers::default();
        let of = |n: usize| Filter {
            uris: (0..100).map(|at| format!("x:/{n}/{at}").into()).collect(),
            ..Filter::default()
        };
        let mut listeners: Vec<_> = (0..100).map(|n| watchers.watch(of(n))).collect();
        let mut all =
            watchers.watch(Filter { uris: vec!["x:/".into(), "x:/7/".into()], ..Filter::default() });
        for n in 0..100 {
            watchers.tell(&Change::Resource(format!("x:/{n}/7").into()));
            watchers.tell(&Change::Resource(format!("y:/{n}/7").into()));
        }
        // Each is heard by its own listener, and by the one that watches what it lies below.
        assert_eq!(watchers.listeners().asked, 200);
        assert_eq!(read(&mut all).len(), 100);
        assert!(listeners.iter_mut().all(|listener| read(listener).len() == 1));
        listeners.truncate(50);
        watchers.tell(&Change::Resource("x:/70/7".into()));
        assert_eq!(watchers.count(), 51);
        assert_eq!(watchers.listeners().asked, 201);
        drop((listeners, all));
        assert!(watchers.listeners().uris.of("x:/7/5").next().is_none(), "nothing of them stays");
    }
}
