//! The open sessions over Streamable HTTP.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use proto::Principal;
use proto::downstream::http::Use;

use super::session::{OpenSession, ReplayBytes};
use crate::limits::{Full, Owner, Share, Table};

/// The shortest time between two searches for sessions that nobody uses.
const SWEEP: Duration = Duration::from_secs(30);

/// How many sessions one search for the least used looks at, counted from the first idle one. It bounds how long the
/// opening of a session takes.
const LOOKED_AT: usize = 64;

/// The open sessions, by id.
pub(crate) struct Sessions {
    state: Mutex<State>,
    kept: Arc<ReplayBytes>,
}

#[derive(Default)]
struct State {
    open: Table<Arc<str>, Arc<OpenSession>>,
    /// A task ends sessions that nobody uses.
    swept: bool,
}

impl State {
    fn end_stale(&mut self, idle: Duration) {
        let stale = self.open.oldest(None).filter(|(_, session)| session.is_stale(idle));
        let stale: Vec<Arc<str>> = stale.map(|(id, _)| Arc::clone(id)).collect();
        for session in stale.iter().filter_map(|id| self.open.remove(id)) {
            session.close();
        }
    }

    /// Removes one session when no more may be open: the one unused for the longest time. Sessions that got no message
    /// after `initialize` go first; sessions that are read or have calls under way go last.
    fn make_room(&mut self, share: Share, owner: Owner) -> Option<(Arc<OpenSession>, Full)> {
        let full = share.room(owner, self.open.len(), self.open.len_of(owner), 1).err()?;
        let of = full.own().then_some(owner);
        let mut in_use = Vec::new();
        let mut found: Option<(Use, Arc<str>)> = None;
        let mut looked_at = 0;
        for (id, session) in self.open.oldest(of) {
            let its = session.in_use();
            if found.as_ref().is_none_or(|(least, _)| its < *least) {
                found = Some((its, Arc::clone(id)));
            }
            match its {
                Use::Read | Use::Works if looked_at == 0 => in_use.push(Arc::clone(id)),
                _ => looked_at += 1,
            }
            if its == Use::None || looked_at == LOOKED_AT {
                break;
            }
        }
        // The next search need not pass these again.
        for id in in_use {
            self.open.touch(&id);
        }
        let (_, id) = found?;
        self.open.remove(&id).map(|session| (session, full))
    }
}

impl Sessions {
    /// Makes an empty table. Its sessions together keep `most` bytes for clients that reconnect.
    pub(crate) fn new(most: usize) -> Arc<Sessions> {
        Arc::new(Sessions { state: Mutex::default(), kept: ReplayBytes::new(most) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the count of the bytes that all sessions keep.
    pub(crate) fn kept(&self) -> &Arc<ReplayBytes> {
        &self.kept
    }

    /// Finds the open session with this id, if it is the principal's, and marks it as used.
    pub(crate) fn find(&self, id: &str, principal: &Principal) -> Option<Arc<OpenSession>> {
        let mut state = self.lock();
        state.open.get_mut(id).filter(|session| session.principal() == principal)?;
        state.open.touch(id).cloned()
    }

    /// Adds a session. It ends when nobody has used it for longer than `idle`, or when others need its room.
    pub(crate) fn insert(
        self: &Arc<Sessions>,
        id: &str,
        owner: Owner,
        session: OpenSession,
        share: Share,
        idle: Duration,
    ) {
        let mut state = self.lock();
        let gone = state.make_room(share, owner);
        state.open.insert(id.into(), owner, Arc::new(session));
        let sweeping = std::mem::replace(&mut state.swept, true);
        drop(state);
        if let Some((gone, full)) = gone {
            tracing::debug!("the longest unused session ends: {full}");
            gone.close();
        }
        if !sweeping {
            self.sweep(idle);
        }
    }

    /// Ends a session.
    pub(crate) fn end(&self, id: &str) {
        let session = self.lock().open.remove(id);
        if let Some(session) = session {
            session.close();
        }
    }

    /// Starts the task that ends sessions that nobody uses. It runs as long as there are sessions.
    fn sweep(self: &Arc<Sessions>, idle: Duration) {
        let weak = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(SWEEP.min(idle)).await;
                let Some(sessions) = weak.upgrade() else { return };
                let mut state = sessions.lock();
                state.end_stale(idle);
                if state.open.len() == 0 {
                    state.swept = false;
                    return;
                }
            }
        });
    }

    /// Drops messages that sessions keep for clients that reconnect, when all together keep more than they may. The session
    /// unused for the longest time loses its messages first. If that is not enough, connections are closed that have not
    /// read everything.
    pub(crate) fn relieve(&self) {
        if !self.kept.is_over() {
            return;
        }
        let state = self.lock();
        for all in [false, true] {
            for (_, session) in state.open.oldest(None) {
                if self.kept.is_enough() || all && !self.kept.is_over() {
                    return;
                }
                session.with(|state| if all { state.machine.drop_readers() } else { state.machine.forget() });
            }
        }
    }
}

/// Draws random bytes; `None` where the system gives none.
pub(crate) fn random<const LENGTH: usize>() -> Option<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).ok()?;
    Some(bytes)
}
