//! Bytes that all clients of an endpoint hold together.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::table::Table;
use super::{Full, Share, Who};

/// How long who needs room waits for that of one who is let go.
const ROOM: Duration = Duration::from_secs(2);

/// A bound of bytes for all, with a share for each address.
#[derive(Debug)]
pub(crate) struct Budget {
    share: Share,
    state: Mutex<State>,
    /// Some bytes were given back.
    freed: Notify,
}

#[derive(Debug, Default)]
struct State {
    used: usize,
    next: u64,
    /// Who holds bytes and can be let go, since when in this order.
    holders: Table<u64, Holder>,
    /// The bytes of each address. Nothing is kept of those whom no share holds for.
    of: HashMap<Who, usize>,
    /// How many wait for bytes that are given back.
    waiting: usize,
}

#[derive(Debug)]
struct Holder {
    bytes: usize,
    /// Ends what holds them; without one it cannot be ended.
    let_go: Option<CancellationToken>,
}

/// What holds bytes: a body that arrives, a response that is sent.
#[derive(Debug)]
pub(crate) struct Holding {
    budget: Arc<Budget>,
    key: u64,
    who: Who,
    let_go: CancellationToken,
    settled: AtomicBool,
}

/// Bytes that are held until this is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<Budget>,
    who: Who,
    /// The [`Holding`] that they are of. Of none are bytes that are complete from the start.
    key: Option<u64>,
    bytes: usize,
}

impl Budget {
    pub(crate) fn new(share: Share) -> Arc<Budget> {
        Arc::new(Budget { share, state: Mutex::default(), freed: Notify::new() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody who may come to hold bytes, and is told by the token to let go of them where others need room.
    pub(crate) fn holding(self: &Arc<Budget>, who: Who, let_go: CancellationToken) -> Arc<Holding> {
        let mut state = self.lock();
        state.next += 1;
        let key = state.next;
        drop(state);
        Arc::new(Holding { budget: Arc::clone(self), key, who, let_go, settled: AtomicBool::new(false) })
    }

    /// Takes bytes that are complete already, where there is room for them: nobody is let go.
    pub(crate) fn try_take(self: &Arc<Budget>, who: Who, bytes: usize) -> Result<Charge, Full> {
        self.charge(who, None, bytes)
    }

    fn charge(self: &Arc<Budget>, who: Who, holding: Option<&Holding>, bytes: usize) -> Result<Charge, Full> {
        let mut state = self.lock();
        self.share.room(who, state.used, state.own(who), bytes)?;
        state.add(who, holding, bytes);
        drop(state);
        Ok(Charge { budget: Arc::clone(self), who, key: holding.map(|holding| holding.key), bytes })
    }

    #[cfg(test)]
    fn used(&self) -> usize {
        self.lock().used
    }
}

impl State {
    fn own(&self, who: Who) -> usize {
        if who == Who::Many { 0 } else { self.of.get(&who).copied().unwrap_or_default() }
    }

    fn add(&mut self, who: Who, holding: Option<&Holding>, bytes: usize) {
        self.used += bytes;
        if who != Who::Many {
            *self.of.entry(who).or_default() += bytes;
        }
        let Some(holding) = holding else { return };
        if let Some(holder) = self.holders.get_mut(&holding.key) {
            holder.bytes += bytes;
        } else {
            let settled = holding.settled.load(Ordering::Relaxed);
            let let_go = (!settled).then(|| holding.let_go.clone());
            self.holders.insert(holding.key, who, Holder { bytes, let_go });
        }
    }

    fn give_back(&mut self, charge: &Charge, bytes: usize) {
        self.used -= bytes;
        if charge.who != Who::Many
            && let Some(of) = self.of.get_mut(&charge.who)
        {
            *of -= bytes;
            if *of == 0 {
                self.of.remove(&charge.who);
            }
        }
        let Some(key) = charge.key else { return };
        let left = self.holders.get_mut(&key).map(|holder| {
            holder.bytes -= bytes;
            holder.bytes
        });
        if left == Some(0) {
            self.holders.remove(&key);
        }
    }

    /// Ends the one that has held bytes for the longest, but for the one that asks; says how many come free.
    fn end_one(&mut self, of: Option<Who>, but: u64) -> Option<usize> {
        let found = self.holders.oldest(of).find(|(key, holder)| **key != but && holder.let_go.is_some());
        let key = *found?.0;
        let holder = self.holders.get_mut(&key)?;
        holder.let_go.take()?.cancel();
        Some(holder.bytes)
    }
}

impl Holding {
    /// Takes bytes. Where there is no room, those who have held some for the longest and are not done are let go; of
    /// the same address first, where it is that one's share that is used up.
    pub(crate) async fn take(self: &Arc<Holding>, bytes: usize) -> Result<Charge, Full> {
        if let Ok(charge) = self.budget.charge(self.who, Some(self), bytes) {
            return Ok(charge);
        }
        let deadline = tokio::time::Instant::now() + ROOM;
        let _waiting = Waiting::new(&self.budget);
        loop {
            let freed = self.budget.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            let full = match self.budget.charge(self.who, Some(self), bytes) {
                Ok(charge) => return Ok(charge),
                Err(full) => full,
            };
            if self.budget.lock().end_one(full.own().then_some(self.who), self.key).is_none() {
                return Err(full);
            }
            if tokio::time::timeout_at(deadline, freed).await.is_err() {
                return Err(full);
            }
        }
    }

    /// Takes bytes that are there already. Where there is no room for them, the one that has held some for the longest
    /// is let go, whose bytes come free in a moment.
    pub(crate) fn take_at_once(self: &Arc<Holding>, bytes: usize) -> Charge {
        if let Ok(charge) = self.budget.charge(self.who, Some(self), bytes) {
            return charge;
        }
        let mut state = self.budget.lock();
        let own = self.budget.share.room(self.who, state.used, state.own(self.who), bytes);
        state.end_one(own.is_err_and(Full::own).then_some(self.who), self.key);
        state.add(self.who, Some(self), bytes);
        drop(state);
        Charge { budget: Arc::clone(&self.budget), who: self.who, key: Some(self.key), bytes }
    }

    /// From here on it is not let go: all of it is there.
    pub(crate) fn settle(&self) {
        self.settled.store(true, Ordering::Relaxed);
        if let Some(holder) = self.budget.lock().holders.get_mut(&self.key) {
            holder.let_go = None;
        }
    }
}

/// Somebody who waits for bytes that are given back.
struct Waiting<'a>(&'a Budget);

impl Waiting<'_> {
    fn new(budget: &Budget) -> Waiting<'_> {
        budget.lock().waiting += 1;
        Waiting(budget)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.lock().waiting -= 1;
    }
}

impl Charge {
    /// Bytes that count as long as any part of them is kept.
    pub(crate) fn hold(self, bytes: impl AsRef<[u8]> + Send + 'static) -> Bytes {
        struct Held<B>(B, #[allow(dead_code)] Charge);
        impl<B: AsRef<[u8]>> AsRef<[u8]> for Held<B> {
            fn as_ref(&self) -> &[u8] {
                self.0.as_ref()
            }
        }
        Bytes::from_owner(Held(bytes, self))
    }

    /// One charge of both.
    pub(crate) fn join(&mut self, mut other: Charge) {
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Gives back what is more than so many bytes.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let more = self.bytes.saturating_sub(bytes);
        if more > 0 {
            self.bytes -= more;
            self.give_back(more);
        }
    }

    fn give_back(&self, bytes: usize) {
        let mut state = self.budget.lock();
        state.give_back(self, bytes);
        let waits = state.waiting > 0;
        drop(state);
        if waits {
            self.budget.freed.notify_waiters();
        }
    }

    /// How many bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.give_back(self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(last: u8) -> Who {
        Who::read([10, 0, 0, last].into())
    }

    #[tokio::test]
    async fn bytes_count_until_the_last_part_of_them_is_dropped() {
        let budget = Budget::new(Share { all: 100, each: 50, what: "bytes of requests" });
        let holding = budget.holding(who(1), CancellationToken::new());
        let charge = holding.take(10).await.unwrap();
        let bytes = charge.hold(vec![b'x'; 10]);
        let part = bytes.slice(3..4);
        drop((bytes, holding));
        assert_eq!(budget.used(), 10);
        drop(part);
        assert_eq!(budget.used(), 0);
        let state = budget.lock();
        assert_eq!((state.of.len(), state.holders.len()), (0, 0), "nothing is kept of who holds nothing");
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_held_bytes_for_the_longest_is_let_go_and_its_own_address_first() {
        let budget = Budget::new(Share { all: 100, each: 60, what: "bytes of requests" });
        let begin = |of| {
            let token = CancellationToken::new();
            (budget.holding(who(of), token.clone()), token)
        };
        let [(old, ended), (own, own_ended), (new, new_ended)] = [begin(1), begin(2), begin(2)];
        let kept = old.take(30).await.unwrap();
        let owned = own.take(40).await.unwrap();
        // The share of the second address is used up: its own older one goes, not the oldest of all.
        let waiting = async { new.take(30).await.map(|charge| charge.bytes()) };
        let freeing = async {
            own_ended.cancelled().await;
            drop(owned);
        };
        let (taken, ()) = tokio::join!(waiting, freeing);
        assert_eq!((taken.unwrap(), ended.is_cancelled(), new_ended.is_cancelled()), (30, false, false));
        // What is complete is not let go; who finds nobody is refused.
        old.settle();
        let more = old.take(30).await.unwrap();
        let (third, _) = begin(3);
        let refused = third.take(50).await.unwrap_err();
        assert!(!refused.own() && !ended.is_cancelled());
        drop((kept, more));
        assert_eq!(third.take(60).await.unwrap().bytes(), 60);
        assert!(third.take(61).await.unwrap_err().own());
    }
}
