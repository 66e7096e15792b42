//! An open session over Streamable HTTP: its machine, and the tasks that work for it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::AbortHandle;
use proto::downstream::http::{HttpSession, StreamId, Use};
use proto::downstream::{Output, Served};
use proto::{CallKey, Principal};
use spec::Rules;
use tokio::sync::Notify;

use crate::BACKLOG;

/// Counts the bytes of messages that all sessions of an endpoint keep for clients that reconnect.
#[derive(Debug)]
pub(crate) struct ReplayBytes {
    bytes: AtomicUsize,
    most: usize,
}

impl ReplayBytes {
    pub(crate) fn new(most: usize) -> Arc<ReplayBytes> {
        Arc::new(ReplayBytes { bytes: AtomicUsize::new(0), most })
    }

    /// Returns whether the sessions keep more than they may.
    pub(crate) fn is_over(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > self.most
    }

    /// Returns whether the sessions have dropped enough: an eighth more than needed, so that the next message does not
    /// start the search again.
    pub(crate) fn is_enough(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) <= self.most / 8 * 7
    }
}

/// An open session.
pub(crate) struct OpenSession {
    served: Arc<Served>,
    rules: &'static Rules,
    principal: Principal,
    opened: Instant,
    state: Mutex<State>,
}

/// What is locked of a session.
pub(crate) struct State {
    pub(crate) machine: HttpSession,
    /// Calls that the service works on; one that waits for an answer of the client is not among them.
    work: HashMap<CallKey, AbortHandle>,
    listens: HashMap<CallKey, AbortHandle>,
    /// What wakes those who wait for a stream.
    signals: HashMap<StreamId, Arc<Notify>>,
    kept: Arc<ReplayBytes>,
    /// How many bytes of `kept` are of this session.
    counted: usize,
}

impl Drop for State {
    fn drop(&mut self) {
        self.kept.bytes.fetch_sub(self.counted, Ordering::Relaxed);
    }
}

impl State {
    /// Wakes those who wait for a stream that changed, and counts what is kept.
    fn settle(&mut self) {
        for id in self.machine.take_changed() {
            let signal = match self.machine.has_stream(id) {
                true => self.signals.get(&id).cloned(),
                false => self.signals.remove(&id),
            };
            if let Some(signal) = signal {
                signal.notify_waiters();
            }
        }
        let kept = self.machine.kept();
        // The sum wraps around where less is kept than before.
        self.kept.bytes.fetch_add(kept.wrapping_sub(self.counted), Ordering::Relaxed);
        self.counted = kept;
    }

    /// What wakes those who wait for a stream.
    pub(crate) fn signal(&mut self, stream: StreamId) -> Arc<Notify> {
        Arc::clone(self.signals.entry(stream).or_default())
    }

    /// The service works on a call.
    pub(crate) fn works(&mut self, key: CallKey, handle: AbortHandle) {
        self.work.insert(key, handle);
    }

    /// The service has answered a call.
    pub(crate) fn worked(&mut self, key: CallKey) {
        self.work.remove(&key);
        if self.work.is_empty() && self.work.capacity() > BACKLOG {
            self.work.shrink_to_fit();
        }
    }

    /// A listen runs.
    pub(crate) fn listens(&mut self, key: CallKey, handle: AbortHandle) {
        self.listens.insert(key, handle);
    }
}

impl OpenSession {
    /// A session that was just opened.
    pub(crate) fn new(session: HttpSession, kept: Arc<ReplayBytes>, served: Arc<Served>) -> OpenSession {
        OpenSession {
            served,
            rules: session.rules(),
            principal: session.principal().clone(),
            opened: Instant::now(),
            state: Mutex::new(State {
                machine: session,
                work: HashMap::new(),
                listens: HashMap::new(),
                signals: HashMap::new(),
                kept,
                counted: 0,
            }),
        }
    }

    /// What is served to the client.
    pub(crate) fn served(&self) -> &Arc<Served> {
        &self.served
    }

    /// On whose behalf the session was opened.
    pub(crate) fn principal(&self) -> &Principal {
        &self.principal
    }

    /// How the session's revision behaves.
    pub(crate) fn rules(&self) -> &'static Rules {
        self.rules
    }

    /// How long the session has been open.
    pub(crate) fn now(&self) -> Duration {
        self.opened.elapsed()
    }

    /// Does something with the locked state, and then wakes those who wait for what changed.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let done = act(&mut state);
        state.settle();
        done
    }

    /// Whether nobody has used the session for longer than `idle`.
    pub(crate) fn is_stale(&self, idle: Duration) -> bool {
        self.with(|state| state.machine.is_stale(idle, self.now()))
    }

    /// How much the session is in use.
    pub(crate) fn in_use(&self) -> Use {
        self.with(|state| state.machine.in_use())
    }

    /// Stops the work for a call or a listen.
    pub(crate) fn stop(&self, key: CallKey) {
        let handles = self.with(|state| [state.work.remove(&key), state.listens.remove(&key)]);
        handles.iter().flatten().for_each(AbortHandle::abort);
    }

    /// Ends all calls and streams.
    pub(crate) fn close(&self) {
        let outputs = self.with(|state| {
            for (_, handle) in state.work.drain().chain(state.listens.drain()) {
                handle.abort();
            }
            state.machine.close()
        });
        for output in outputs {
            if let Output::Abandon(request) = output {
                self.served.service.abandon(*request);
            }
        }
    }
}
