//! Limits for the clients of one endpoint, for all together and for each address: connections, sessions, listens,
//! bytes.
//!
//! When a limit is reached, whatever has been unused for the longest time is ended. A newcomer is refused only when
//! nothing can be ended.

mod budget;
mod table;

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

pub(crate) use budget::{Budget, Charge, Holding};
pub(crate) use table::Table;

/// The client that a connection, a session or a byte counts against.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Owner {
    /// A client, named by its address. For IPv6 this is the /64 network, since one client may use every address in it.
    Address(IpAddr),
    /// Clients that nothing tells apart: they are behind a proxy, on this machine, or on a socket without addresses.
    Shared,
}

impl Owner {
    /// Returns the owner that an address stands for.
    pub(crate) fn read(address: IpAddr) -> Owner {
        match address.to_canonical() {
            IpAddr::V4(address) => Owner::Address(address.into()),
            IpAddr::V6(address) => Owner::Address(IpAddr::V6((address.to_bits() >> 64 << 64).into())),
        }
    }
}

/// Returns the addresses that many clients share by default: those of this machine, where proxies run too.
pub(crate) fn shared_by_default() -> Vec<IpAddr> {
    vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]
}

/// A limit for all, and one for each address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    pub(crate) all: usize,
    pub(crate) each: usize,
    /// What is counted, in words.
    pub(crate) what: &'static str,
}

impl Share {
    /// Checks that there is room for `more`, where all clients hold `all` and this one holds `own`.
    pub(crate) fn room(&self, owner: Owner, all: usize, own: usize, more: usize) -> Result<(), Full> {
        let full = |limit, own| Err(Full { what: self.what, limit, own });
        if owner != Owner::Shared && own + more > self.each {
            return full(self.each, true);
        }
        if all + more > self.all { full(self.all, false) } else { Ok(()) }
    }
}

/// A limit is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Full {
    what: &'static str,
    limit: usize,
    own: bool,
}

impl Full {
    /// Returns whether the share of the address is used up, rather than the limit for all clients.
    pub(crate) fn own(self) -> bool {
        self.own
    }
}

impl std::fmt::Display for Full {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let whose = if self.own { "one address may have here" } else { "all clients together may have here" };
        write!(f, "{} {} are as many as {whose}; try again later", self.limit, self.what)
    }
}

/// The connections of an endpoint.
#[derive(Debug)]
pub(crate) struct Connections {
    share: Share,
    /// Addresses that many clients share.
    shared: Vec<IpAddr>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    slots: HashMap<u64, Owner>,
    of: HashMap<Owner, usize>,
    /// The connections that have no request under way, with the token that ends each.
    waiting: Table<u64, CancellationToken>,
}

impl State {
    fn leave(&mut self, slot: u64) {
        self.waiting.remove(&slot);
        let Some(owner) = self.slots.remove(&slot) else { return };
        let left = self.of.get_mut(&owner).map(|of| {
            *of -= 1;
            *of
        });
        if left == Some(0) {
            self.of.remove(&owner);
        }
        if self.slots.capacity() > 256 && self.slots.len() < self.slots.capacity() / 8 {
            self.slots.shrink_to_fit();
            self.of.shrink_to_fit();
        }
    }
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    connections: Arc<Connections>,
    number: u64,
    owner: Owner,
    evict: CancellationToken,
}

/// Returns three quarters of the number of files that the process may open.
#[cfg(unix)]
fn most_connections() -> usize {
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    files.map_or(usize::MAX, |files| usize::try_from(files / 4 * 3).unwrap_or(usize::MAX)).max(1)
}

/// Elsewhere a process has no such limit.
#[cfg(not(unix))]
fn most_connections() -> usize {
    usize::MAX
}

impl Connections {
    /// Allows as many connections as `share` says, but no more than three quarters of the files that the process may
    /// open: the process needs the others for its own files, pipes and outgoing connections.
    pub(crate) fn new(share: Share, shared: Vec<IpAddr>) -> Arc<Connections> {
        let all = share.all.min(most_connections());
        // A share stays the part of the whole that it was.
        let each = (share.each.min(share.all) * all).div_ceil(share.all.max(1));
        Arc::new(Connections { share: Share { all, each, ..share }, shared, state: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a connection. When there is no room, this ends the connection that has waited for its client for the
    /// longest time.
    pub(crate) fn enter(self: &Arc<Connections>, from: Option<IpAddr>) -> Result<ConnectionSlot, Full> {
        let owner = match from {
            Some(address) if !self.shared.contains(&address.to_canonical()) => Owner::read(address),
            _ => Owner::Shared,
        };
        let mut state = self.lock();
        loop {
            let own = state.of.get(&owner).copied().unwrap_or_default();
            let Err(full) = self.share.room(owner, state.slots.len(), own, 1) else { break };
            let oldest = state.waiting.oldest(full.own().then_some(owner)).next();
            let Some((slot, evict)) = oldest.map(|(slot, evict)| (*slot, evict.clone())) else {
                return Err(full);
            };
            evict.cancel();
            state.leave(slot);
        }
        state.next += 1;
        let (number, evict) = (state.next, CancellationToken::new());
        state.slots.insert(number, owner);
        *state.of.entry(owner).or_default() += 1;
        state.waiting.insert(number, owner, evict.clone());
        drop(state);
        Ok(ConnectionSlot { connections: Arc::clone(self), number, owner, evict })
    }
}

impl ConnectionSlot {
    /// Returns the client that the connection counts against.
    pub(crate) fn owner(&self) -> Owner {
        self.owner
    }

    /// Returns the token that ends the connection.
    pub(crate) fn evict(&self) -> &CancellationToken {
        &self.evict
    }

    /// Marks that a complete request is under way: the connection is not ended to make room for others.
    pub(crate) fn works(&self) {
        self.connections.lock().waiting.remove(&self.number);
    }

    /// Marks that the connection waits for its next request.
    pub(crate) fn waits(&self) {
        let mut state = self.connections.lock();
        if state.slots.contains_key(&self.number) {
            state.waiting.insert(self.number, self.owner, self.evict.clone());
        }
    }

    /// Returns whether no request is under way.
    pub(crate) fn is_waiting(&self) -> bool {
        self.connections.lock().waiting.get_mut(&self.number).is_some()
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.connections.lock().leave(self.number);
    }
}

/// Counts how many of something are open, for all clients and for each address.
#[derive(Debug)]
pub(crate) struct Count {
    share: Share,
    state: Mutex<(usize, HashMap<Owner, usize>)>,
}

/// One that is counted, until this is dropped.
#[derive(Debug)]
pub(crate) struct Counted {
    count: Arc<Count>,
    owner: Owner,
}

impl Count {
    pub(crate) fn new(share: Share) -> Arc<Count> {
        Arc::new(Count { share, state: Mutex::default() })
    }

    /// Counts one more, if there is room for it.
    pub(crate) fn enter(self: &Arc<Count>, owner: Owner) -> Result<Counted, Full> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, of) = &mut *state;
        self.share.room(owner, *all, of.get(&owner).copied().unwrap_or_default(), 1)?;
        *all += 1;
        *of.entry(owner).or_default() += 1;
        Ok(Counted { count: Arc::clone(self), owner })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut state = self.count.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, of) = &mut *state;
        *all -= 1;
        if let Some(own) = of.get_mut(&self.owner) {
            *own -= 1;
            if *own == 0 {
                of.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(last: u8) -> Option<IpAddr> {
        Some([10, 0, 0, last].into())
    }

    #[test]
    fn the_connection_that_waited_longest_makes_room_and_one_that_works_does_not() {
        let share = Share { all: 3, each: 2, what: "connections" };
        let connections = Connections::new(share, vec![[127, 0, 0, 1].into()]);
        let gone = |slot: &ConnectionSlot| slot.evict().is_cancelled();
        let [first, second] = [(); 2].map(|()| connections.enter(at(1)).unwrap());
        first.works();
        let third = connections.enter(at(1)).unwrap();
        assert_eq!((gone(&first), gone(&second)), (false, true), "of its own address, which waits");
        third.works();
        let refused = connections.enter(at(1)).unwrap_err();
        assert!(refused.own(), "{refused}");
        drop(second);
        let other = connections.enter(at(2)).unwrap();
        other.works();
        assert!(!connections.enter(at(3)).unwrap_err().own());
        other.waits();
        // No share holds for an address that stands for many.
        let many = connections.enter(Some([127, 0, 0, 1].into())).unwrap();
        assert!(gone(&other) && many.owner() == Owner::Shared);
        drop((first, third, other));
        let more = [(); 2].map(|()| connections.enter(None).unwrap());
        drop((many, more));
        let state = connections.lock();
        assert_eq!((state.slots.len(), state.of.len(), state.waiting.len()), (0, 0, 0));
    }

    #[test]
    fn clients_of_ipv6_are_told_apart_by_their_network() {
        let read = |text: &str| Owner::read(text.parse().unwrap());
        assert_eq!(read("2001:db8:1:2::3"), read("2001:db8:1:2:ffff::1"));
        assert_ne!(read("2001:db8:1:2::3"), read("2001:db8:1:3::3"));
        assert_eq!(read("::ffff:192.0.2.1"), read("192.0.2.1"));
    }
}
