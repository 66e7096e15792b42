//! The open sessions over Streamable HTTP.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use proto::Principal;
use proto::downstream::http::Use;

use super::session::{Kept, OpenSession};
use crate::crowd::{Full, Share, Table, Who};

/// How often sessions are looked through for those that nobody uses, at most.
const SWEEP: Duration = Duration::from_secs(30);

/// How many sessions are looked at for one of the least use, from the first on that is idle: a bound for the time that
/// one more session may take.
const LOOKED_AT: usize = 64;

/// The open sessions, by id.
pub(crate) struct Sessions {
    state: Mutex<State>,
    kept: Arc<Kept>,
}

#[derive(Default)]
struct State {
    open: Table<Arc<str>, Arc<OpenSession>>,
    /// A task looks for those that nobody uses.
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

    /// Takes out one session where no more may be open: the longest unused, first of those that nothing came for after
    /// they were opened; one that is read or works only where all are.
    fn make_room(&mut self, share: Share, who: Who) -> Option<(Arc<OpenSession>, Full)> {
        let full = share.room(who, self.open.len(), self.open.len_of(who), 1).err()?;
        let of = full.own().then_some(who);
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
    /// None yet. All together keep `most` bytes for clients that come back.
    pub(crate) fn new(most: usize) -> Arc<Sessions> {
        Arc::new(Sessions { state: Mutex::default(), kept: Kept::new(most) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What all sessions together keep.
    pub(crate) fn kept(&self) -> &Arc<Kept> {
        &self.kept
    }

    /// The open session of a principal with this id, which is used by that.
    pub(crate) fn find(&self, id: &str, principal: &Principal) -> Option<Arc<OpenSession>> {
        let mut state = self.lock();
        state.open.get_mut(id).filter(|session| session.principal() == principal)?;
        state.open.touch(id).cloned()
    }

    /// Puts a new session in. It ends when nobody has used it for longer than `idle`, or when others need its room.
    pub(crate) fn insert(
        self: &Arc<Sessions>,
        id: &str,
        who: Who,
        session: OpenSession,
        share: Share,
        idle: Duration,
    ) {
        let mut state = self.lock();
        let gone = state.make_room(share, who);
        state.open.insert(id.into(), who, Arc::new(session));
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

    /// Looks for sessions that nobody uses, as long as there are any.
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

    /// Has sessions forget what they keep for clients that come back, where all together keep more than they may. The
    /// longest unused session forgets first; where that is not enough, connections that have not read everything are let
    /// go.
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
                session.with(|state| if all { state.machine.let_go() } else { state.machine.forget() });
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
