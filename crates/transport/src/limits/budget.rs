//! Limits how many bytes all clients of an endpoint hold together.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::table::Table;
use super::{Full, Owner, Share};

/// How long a request waits for the bytes of another one that was ended for it. An ended request gives its bytes back
/// within milliseconds; this bounds the wait when the machine is busy.
const ROOM: Duration = Duration::from_secs(2);

/// A limit of bytes for all clients, with a share for each address.
#[derive(Debug)]
pub(crate) struct Budget {
    share: Share,
    state: Mutex<State>,
    /// Notified when bytes were given back.
    freed: Notify,
}

#[derive(Debug, Default)]
struct State {
    used: usize,
    next: u64,
    /// Whoever holds bytes, in the order in which they began to.
    holders: Table<u64, Holder>,
    /// The bytes of each address that has a share.
    of: HashMap<Owner, usize>,
    /// How many wait for bytes that are given back.
    waiting: usize,
}

#[derive(Debug)]
struct Holder {
    bytes: usize,
    /// Ends whatever holds the bytes. `None`: it cannot be ended.
    evict: Option<CancellationToken>,
}

/// Something that holds bytes: a body that arrives, or a response that is sent.
#[derive(Debug)]
pub(crate) struct Holding {
    budget: Arc<Budget>,
    key: u64,
    owner: Owner,
    evict: CancellationToken,
    settled: AtomicBool,
}

/// Bytes that are held until this is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<Budget>,
    owner: Owner,
    /// The [`Holding`] that the bytes belong to. `None`: the message was complete from the start.
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

    /// Makes a holder of bytes, which holds none yet. The token is cancelled when others need the room of its bytes.
    pub(crate) fn holding(self: &Arc<Budget>, owner: Owner, evict: CancellationToken) -> Arc<Holding> {
        let mut state = self.lock();
        state.next += 1;
        let key = state.next;
        drop(state);
        Arc::new(Holding { budget: Arc::clone(self), key, owner, evict, settled: AtomicBool::new(false) })
    }

    /// Takes bytes of a message that is complete, if there is room for them. This ends nobody else.
    pub(crate) fn try_take(self: &Arc<Budget>, owner: Owner, bytes: usize) -> Result<Charge, Full> {
        self.charge(owner, None, bytes)
    }

    fn charge(
        self: &Arc<Budget>,
        owner: Owner,
        holding: Option<&Holding>,
        bytes: usize,
    ) -> Result<Charge, Full> {
        let mut state = self.lock();
        self.share.room(owner, state.used, state.own(owner), bytes)?;
        state.add(owner, holding, bytes);
        drop(state);
        Ok(Charge { budget: Arc::clone(self), owner, key: holding.map(|holding| holding.key), bytes })
    }

    #[cfg(test)]
    fn used(&self) -> usize {
        self.lock().used
    }
}

impl State {
    fn own(&self, owner: Owner) -> usize {
        if owner == Owner::Shared { 0 } else { self.of.get(&owner).copied().unwrap_or_default() }
    }

    fn add(&mut self, owner: Owner, holding: Option<&Holding>, bytes: usize) {
        self.used += bytes;
        if owner != Owner::Shared {
            *self.of.entry(owner).or_default() += bytes;
        }
        let Some(holding) = holding else { return };
        if let Some(holder) = self.holders.get_mut(&holding.key) {
            holder.bytes += bytes;
        } else {
            let settled = holding.settled.load(Ordering::Relaxed);
            let evict = (!settled).then(|| holding.evict.clone());
            self.holders.insert(holding.key, owner, Holder { bytes, evict });
        }
    }

    fn give_back(&mut self, charge: &Charge, bytes: usize) {
        self.used -= bytes;
        if charge.owner != Owner::Shared
            && let Some(of) = self.of.get_mut(&charge.owner)
        {
            *of -= bytes;
            if *of == 0 {
                self.of.remove(&charge.owner);
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

    /// Ends the holder that has held bytes for the longest time, but never `but`. Returns how many bytes it will free.
    fn end_one(&mut self, of: Option<Owner>, but: u64) -> Option<usize> {
        let found = self.holders.oldest(of).find(|(key, holder)| **key != but && holder.evict.is_some());
        let key = *found?.0;
        let holder = self.holders.get_mut(&key)?;
        holder.evict.take()?.cancel();
        Some(holder.bytes)
    }
}

impl Holding {
    /// Takes bytes. When there is no room, this ends the unfinished holders that have held bytes for the longest time: of
    /// the same address, if the share of that address is used up.
    pub(crate) async fn take(self: &Arc<Holding>, bytes: usize) -> Result<Charge, Full> {
        if let Ok(charge) = self.budget.charge(self.owner, Some(self), bytes) {
            return Ok(charge);
        }
        let deadline = tokio::time::Instant::now() + ROOM;
        let _waiting = Waiting::new(&self.budget);
        loop {
            let freed = self.budget.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            let full = match self.budget.charge(self.owner, Some(self), bytes) {
                Ok(charge) => return Ok(charge),
                Err(full) => full,
            };
            if self.budget.lock().end_one(full.own().then_some(self.owner), self.key).is_none() {
                return Err(full);
            }
            if tokio::time::timeout_at(deadline, freed).await.is_err() {
                return Err(full);
            }
        }
    }

    /// Takes bytes that are in memory already. When there is no room for them, this ends the holder that has held bytes
    /// for the longest time, and does not wait for it.
    pub(crate) fn take_at_once(self: &Arc<Holding>, bytes: usize) -> Charge {
        if let Ok(charge) = self.budget.charge(self.owner, Some(self), bytes) {
            return charge;
        }
        let mut state = self.budget.lock();
        let own = self.budget.share.room(self.owner, state.used, state.own(self.owner), bytes);
        state.end_one(own.is_err_and(Full::own).then_some(self.owner), self.key);
        state.add(self.owner, Some(self), bytes);
        drop(state);
        Charge { budget: Arc::clone(&self.budget), owner: self.owner, key: Some(self.key), bytes }
    }

    /// Marks that the message is complete: it is no longer ended to make room for others.
    pub(crate) fn settle(&self) {
        self.settled.store(true, Ordering::Relaxed);
        if let Some(holder) = self.budget.lock().holders.get_mut(&self.key) {
            holder.evict = None;
        }
    }
}

/// Counts a holder that waits for bytes, until this is dropped.
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

    fn owner(last: u8) -> Owner {
        Owner::read([10, 0, 0, last].into())
    }

    #[tokio::test]
    async fn bytes_count_until_the_last_part_of_them_is_dropped() {
        let budget = Budget::new(Share { all: 100, each: 50, what: "bytes of requests" });
        let holding = budget.holding(owner(1), CancellationToken::new());
        let charge = holding.take(10).await.unwrap();
        let bytes = charge.hold(vec![b'x'; 10]);
        let part = bytes.slice(3..4);
        drop((bytes, holding));
        assert_eq!(budget.used(), 10);
        drop(part);
        assert_eq!(budget.used(), 0);
        let state = budget.lock();
        assert_eq!((state.of.len(), state.holders.len()), (0, 0), "nothing is kept of owner holds nothing");
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_held_bytes_for_the_longest_is_let_go_and_its_own_address_first() {
        let budget = Budget::new(Share { all: 100, each: 60, what: "bytes of requests" });
        let begin = |of| {
            let token = CancellationToken::new();
            (budget.holding(owner(of), token.clone()), token)
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
