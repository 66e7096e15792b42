//! What all clients of one endpoint together may hold, and each address of it: connections, sessions, listens, bytes.
//!
//! Where a limit is reached, what has been unused for the longest goes; a newcomer is refused only where nothing can
//! go.

mod budget;
mod table;

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

pub(crate) use budget::{Budget, Charge, Holding};
pub(crate) use table::Table;

/// On whose account something is held.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Who {
    /// A client by its address; of IPv6 by the network, of which a client has as many addresses as it likes.
    At(IpAddr),
    /// Clients that cannot be told apart: behind a proxy, on this machine, or on a socket without addresses.
    Many,
}

impl Who {
    /// By address.
    pub(crate) fn read(address: IpAddr) -> Who {
        match address.to_canonical() {
            IpAddr::V4(address) => Who::At(address.into()),
            IpAddr::V6(address) => Who::At(IpAddr::V6((address.to_bits() >> 64 << 64).into())),
        }
    }
}

/// The addresses that stand for many clients where nothing else is said: this machine's own, on which proxies are too.
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
    /// Whether there is room for more.
    pub(crate) fn room(&self, who: Who, all: usize, own: usize, more: usize) -> Result<(), Full> {
        let full = |limit, own| Err(Full { what: self.what, limit, own });
        if who != Who::Many && own + more > self.each {
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
    /// It is the share of the address, and not the limit of all.
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
    /// Addresses that stand for many clients.
    shared: Vec<IpAddr>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    seats: HashMap<u64, Who>,
    of: HashMap<Who, usize>,
    /// Those on which no request is worked on, with what ends them.
    waiting: Table<u64, CancellationToken>,
}

impl State {
    fn leave(&mut self, seat: u64) {
        self.waiting.remove(&seat);
        let Some(who) = self.seats.remove(&seat) else { return };
        let left = self.of.get_mut(&who).map(|of| {
            *of -= 1;
            *of
        });
        if left == Some(0) {
            self.of.remove(&who);
        }
        if self.seats.capacity() > 256 && self.seats.len() < self.seats.capacity() / 8 {
            self.seats.shrink_to_fit();
            self.of.shrink_to_fit();
        }
    }
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct Seat {
    connections: Arc<Connections>,
    number: u64,
    who: Who,
    let_go: CancellationToken,
}

/// Three quarters of the files that the process may open.
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
    /// As many as `share` says, but no more than three quarters of the files that the process may open: it needs some
    /// for other things.
    pub(crate) fn new(share: Share, shared: Vec<IpAddr>) -> Arc<Connections> {
        let all = share.all.min(most_connections());
        // A share stays the part of the whole that it was.
        let each = (share.each.min(share.all) * all).div_ceil(share.all.max(1));
        Arc::new(Connections { share: Share { all, each, ..share }, shared, state: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a connection in. Where there is no room, the one goes that has waited for its client for the longest.
    pub(crate) fn enter(self: &Arc<Connections>, from: Option<IpAddr>) -> Result<Seat, Full> {
        let who = match from {
            Some(address) if !self.shared.contains(&address.to_canonical()) => Who::read(address),
            _ => Who::Many,
        };
        let mut state = self.lock();
        loop {
            let own = state.of.get(&who).copied().unwrap_or_default();
            let Err(full) = self.share.room(who, state.seats.len(), own, 1) else { break };
            let oldest = state.waiting.oldest(full.own().then_some(who)).next();
            let Some((seat, let_go)) = oldest.map(|(seat, let_go)| (*seat, let_go.clone())) else {
                return Err(full);
            };
            let_go.cancel();
            state.leave(seat);
        }
        state.next += 1;
        let (number, let_go) = (state.next, CancellationToken::new());
        state.seats.insert(number, who);
        *state.of.entry(who).or_default() += 1;
        state.waiting.insert(number, who, let_go.clone());
        drop(state);
        Ok(Seat { connections: Arc::clone(self), number, who, let_go })
    }
}

impl Seat {
    /// On whose account.
    pub(crate) fn who(&self) -> Who {
        self.who
    }

    /// What ends the connection.
    pub(crate) fn let_go(&self) -> &CancellationToken {
        &self.let_go
    }

    /// A request is complete and is worked on: the connection is not let go for others.
    pub(crate) fn works(&self) {
        self.connections.lock().waiting.remove(&self.number);
    }

    /// The next request is waited for.
    pub(crate) fn waits(&self) {
        let mut state = self.connections.lock();
        if state.seats.contains_key(&self.number) {
            state.waiting.insert(self.number, self.who, self.let_go.clone());
        }
    }

    /// Whether no request is worked on.
    pub(crate) fn is_waiting(&self) -> bool {
        self.connections.lock().waiting.get_mut(&self.number).is_some()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.connections.lock().leave(self.number);
    }
}

/// How many of something are open, and of each address.
#[derive(Debug)]
pub(crate) struct Count {
    share: Share,
    state: Mutex<(usize, HashMap<Who, usize>)>,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(crate) struct Counted {
    count: Arc<Count>,
    who: Who,
}

impl Count {
    pub(crate) fn new(share: Share) -> Arc<Count> {
        Arc::new(Count { share, state: Mutex::default() })
    }

    /// One more, where there is room for it.
    pub(crate) fn enter(self: &Arc<Count>, who: Who) -> Result<Counted, Full> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, of) = &mut *state;
        self.share.room(who, *all, of.get(&who).copied().unwrap_or_default(), 1)?;
        *all += 1;
        *of.entry(who).or_default() += 1;
        Ok(Counted { count: Arc::clone(self), who })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut state = self.count.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, of) = &mut *state;
        *all -= 1;
        if let Some(own) = of.get_mut(&self.who) {
            *own -= 1;
            if *own == 0 {
                of.remove(&self.who);
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
        let gone = |seat: &Seat| seat.let_go().is_cancelled();
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
        assert!(gone(&other) && many.who() == Who::Many);
        drop((first, third, other));
        let more = [(); 2].map(|()| connections.enter(None).unwrap());
        drop((many, more));
        let state = connections.lock();
        assert_eq!((state.seats.len(), state.of.len(), state.waiting.len()), (0, 0, 0));
    }

    #[test]
    fn clients_of_ipv6_are_told_apart_by_their_network() {
        let read = |text: &str| Who::read(text.parse().unwrap());
        assert_eq!(read("2001:db8:1:2::3"), read("2001:db8:1:2:ffff::1"));
        assert_ne!(read("2001:db8:1:2::3"), read("2001:db8:1:3::3"));
        assert_eq!(read("::ffff:192.0.2.1"), read("192.0.2.1"));
    }
}
