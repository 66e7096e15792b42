//! One upstream server: its state, its connections, and its lists as they were last read.

pub(crate) mod backoff;
pub(crate) mod connection;
pub(crate) mod list;
mod list_reader;
mod list_watch;
pub(crate) mod logs;
pub(crate) mod offer;
pub(crate) mod state;
pub(crate) mod supervise;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use proto::{Capabilities, Rejection};
use spec::{Method, Revision};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use transport::client::{Client, EraHint, Settings, Stderr};

use crate::admin::{LeftOut, ServerStatus, StaleList, timestamp};
use crate::options::{ServerOptions, Target};
use connection::{Connection, Lease};
use list::CachedList;
use logs::Logs;
use offer::Offer;
use state::State;

/// How long a server may be silent before its status says so.
const SILENT: Duration = Duration::from_secs(3);
/// How long a request waits for a server that was gone before it took the request, or that is started for it.
const RETURN: Duration = Duration::from_secs(10);

/// An upstream server. It is shared by the task that keeps it running and by the requests that use it.
pub(crate) struct Upstream {
    pub(crate) options: ServerOptions,
    settings: Settings,
    state: watch::Sender<(State, SystemTime)>,
    record: Mutex<Record>,
    pub(crate) logs: Arc<Logs>,
    /// Wakes the supervisor: a request needs the server, which does not run.
    pub(crate) wanted: Notify,
    /// Wakes the supervisor: the server is to be started again.
    pub(crate) restart: Notify,
    /// The lists that clients asked for and that are to be read again.
    relist: Mutex<HashSet<Method>>,
    relisted: Notify,
    /// Changes whenever a list was read.
    pub(crate) read: watch::Sender<()>,
    /// Cancelled when the server is taken away: it ends once its calls have ended.
    pub(crate) retired: CancellationToken,
    /// Cancelled when the server ends at once.
    pub(crate) ending: CancellationToken,
    pub(crate) ended: CancellationToken,
    pub(crate) calls: AtomicU64,
    pub(crate) errors: AtomicU64,
    /// How often a start was tried.
    pub(crate) starts: AtomicU64,
    /// How often the server came up.
    ups: AtomicU64,
    next_connection: AtomicU64,
}

/// What is known of a server, under one lock.
#[derive(Default)]
pub(crate) struct Record {
    /// The first is watched; the others are there while calls are many.
    pub(crate) connections: Vec<Arc<Connection>>,
    /// Instances that are being started.
    reserved: usize,
    pub(crate) lists: HashMap<Method, CachedList>,
    /// Whether its lists are shown: it is there, or will be once it is wanted.
    pub(crate) offered: bool,
    /// Whether it was ever there, or found not to be.
    seen: bool,
    pub(crate) revision: Option<Revision>,
    /// Why it was last not there, while it is not.
    trouble: Option<String>,
    pub(crate) instructions: Option<String>,
    pub(crate) capabilities: Capabilities,
}

impl Upstream {
    pub(crate) fn new(options: ServerOptions, settings: &Settings, logs: &Arc<Logs>) -> Arc<Upstream> {
        let (name, to) = (options.name.clone(), Arc::clone(logs));
        let stderr = Stderr(Arc::new(move |line: &str| to.note(&name, line)));
        let mut settings = settings.clone();
        settings.stderr = Some(stderr);
        if let Some(timeout) = options.call_timeout {
            settings.call = timeout;
        }
        let first = if options.pool.min == 0 { State::Idle } else { State::Starting };
        Arc::new(Upstream {
            options,
            settings,
            state: watch::channel((first, SystemTime::now())).0,
            record: Mutex::default(),
            logs: Arc::clone(logs),
            wanted: Notify::new(),
            restart: Notify::new(),
            relist: Mutex::default(),
            relisted: Notify::new(),
            read: watch::channel(()).0,
            retired: CancellationToken::new(),
            ending: CancellationToken::new(),
            ended: CancellationToken::new(),
            calls: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            starts: AtomicU64::new(0),
            ups: AtomicU64::new(0),
            next_connection: AtomicU64::new(1),
        })
    }

    pub(crate) fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn state(&self) -> State {
        self.state.borrow().0.clone()
    }

    pub(crate) fn is_up(&self) -> bool {
        self.state.borrow().0 == State::Up
    }

    /// Notes a new state. Trouble has one beginning, however often it is tried to end it, and its reason is kept
    /// while that is tried.
    pub(crate) fn set(&self, state: State) {
        match &state {
            State::Down(why) => {
                let text = format!("dateline: down: {why}");
                // One that is tried again and again in vain is warned of once.
                match self.record().trouble.as_ref() == Some(why) {
                    true => self.logs.note(&self.options.name, &text),
                    false => self.logs.warn(&self.options.name, &text),
                }
            }
            State::Up => self.logs.note(&self.options.name, "dateline: up"),
            State::Starting | State::Idle => {}
        }
        let fine = |state: &State| matches!(state, State::Up | State::Idle);
        {
            let mut record = self.record();
            match &state {
                State::Down(why) => {
                    record.trouble = Some(why.clone());
                    (record.offered, record.seen) = (false, true);
                }
                State::Up => {
                    record.trouble = None;
                    (record.offered, record.seen) = (true, true);
                    self.ups.fetch_add(1, Ordering::Relaxed);
                }
                State::Idle => record.trouble = None,
                State::Starting => {}
            }
        }
        self.state.send_modify(|(now, since)| {
            if fine(now) || fine(&state) {
                *since = SystemTime::now();
            }
            *now = state;
        });
    }

    /// Notes that what is configured of it cannot be used.
    pub(crate) fn unusable(&self, why: &str) {
        self.logs.note(&self.options.name, &format!("dateline: down: {why}"));
        {
            let mut record = self.record();
            record.trouble = Some(why.to_owned());
            record.seen = true;
        }
        self.state.send_replace((State::Down(why.to_owned()), SystemTime::now()));
    }

    /// Waits until it is up or down. A server that is started on first use is started so that its lists can be read.
    pub(crate) async fn settled(&self) {
        if self.state() == State::Idle {
            if self.has_listed() {
                return;
            }
            self.wanted.notify_one();
        }
        self.until(|state| !matches!(state, State::Starting | State::Idle)).await;
    }

    pub(crate) async fn until(&self, test: impl Fn(&State) -> bool) {
        let mut state = self.state.subscribe();
        // The sender lives as long as self.
        let _ = state.wait_for(|(state, _)| test(state)).await;
    }

    fn has_listed(&self) -> bool {
        !self.record().lists.is_empty()
    }

    /// Ends it once its calls have ended.
    pub(crate) fn retire(&self) {
        self.retired.cancel();
    }

    /// Ends it now.
    pub(crate) fn end(&self) {
        self.ending.cancel();
        self.retired.cancel();
    }

    /// Waits until it has ended for good.
    pub(crate) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Whether it was taken away.
    pub(crate) fn is_retired(&self) -> bool {
        self.retired.is_cancelled()
    }

    /// Starts it at once if it is down.
    pub(crate) fn want_back(&self) {
        if matches!(*self.state.borrow(), (State::Down(_), _)) {
            self.wanted.notify_one();
        }
    }

    /// Asks for a list to be read again.
    pub(crate) fn relist(&self, method: Method) {
        self.relist.lock().unwrap_or_else(PoisonError::into_inner).insert(method);
        self.relisted.notify_one();
    }

    /// Waits until lists are to be read again.
    pub(crate) async fn relisting(&self) -> HashSet<Method> {
        self.relisted.notified().await;
        std::mem::take(&mut *self.relist.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until it runs again, at most [`RETURN`].
    pub(crate) async fn back(&self) {
        let there = || self.record().connections.iter().any(|connection| !connection.is_gone());
        let back = async {
            let mut state = self.state.subscribe();
            // It may count as up for a moment after its connection is gone.
            while !(self.is_up() && there()) {
                if matches!(self.state(), State::Idle | State::Down(_)) {
                    self.wanted.notify_one();
                }
                if state.changed().await.is_err() {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(RETURN, back).await;
    }

    /// Starts it at once although it is down, and waits until that succeeded or failed, at most [`RETURN`].
    async fn tried(&self) {
        let mut state = self.state.subscribe();
        self.wanted.notify_one();
        let tried = async {
            if state.wait_for(|(state, _)| !matches!(state, State::Down(_))).await.is_ok() {
                let _ = state.wait_for(|(state, _)| matches!(state, State::Down(_) | State::Up)).await;
            }
        };
        let _ = tokio::time::timeout(RETURN, tried).await;
    }

    /// Takes a connection to use, and waits for the server if it is starting.
    ///
    /// # Errors
    /// When the server does not run, or has just ended.
    pub(crate) async fn lease(&self) -> Result<Lease, Rejection> {
        // Nothing is waited for on the way that nearly every call takes. The other ways are boxed, so that a call does not
        // carry the room that they need.
        if self.is_up() { self.free().await } else { Box::pin(self.lease_once_up()).await }
    }

    /// Takes a connection to use once the server runs. It is started where it does not run.
    async fn lease_once_up(&self) -> Result<Lease, Rejection> {
        let usable = !matches!(self.options.target, Target::Unusable(_));
        match self.state() {
            State::Idle => self.wanted.notify_one(),
            State::Down(_) if usable => self.tried().await,
            State::Down(_) => {}
            State::Up | State::Starting => {}
        }
        let ready = self.until(|state| !matches!(state, State::Starting | State::Idle));
        let _ = tokio::time::timeout(self.settings.connect, ready).await;
        let name = &self.options.name;
        match self.state() {
            State::Up => self.free().await,
            State::Starting | State::Idle => {
                Err(Rejection::Internal(format!("the server {name} is still starting")))
            }
            // The reason is for whoever runs the gateway: `dateline status` shows it.
            State::Down(_) if !usable => Err(Rejection::Internal(format!(
                "the server {name} is not running: it is not configured as it must be"
            ))),
            State::Down(_) => {
                Err(Rejection::Internal(format!("the server {name} is not running, and is tried again")))
            }
        }
    }

    /// A connection that is free; else a new one, if the pool has room; else the one that runs the fewest calls.
    async fn free(&self) -> Result<Lease, Rejection> {
        {
            let mut record = self.record();
            record.connections.retain(|connection| !connection.is_gone());
            let more = record.connections.len() + record.reserved < self.options.pool.max;
            match &*record.connections {
                // The first one is the supervisor's to make.
                [] => {
                    return Err(Rejection::Gone(format!("the server {} has just ended", self.options.name)));
                }
                [only] if !more => return Ok(only.lease()),
                all => {
                    let busy = all.iter().map(|connection| (connection.busy(), connection));
                    match busy.min_by_key(|(busy, _)| *busy) {
                        Some((busy, connection)) if busy == 0 || !more => return Ok(connection.lease()),
                        _ => record.reserved += 1,
                    }
                }
            }
        }
        let slot = PoolSlot(self);
        let connection = Box::pin(self.connect()).await;
        drop(slot);
        match connection {
            Ok(connection) => {
                let lease = connection.lease();
                self.record().connections.push(connection);
                Ok(lease)
            }
            Err(why) => {
                let record = self.record();
                let least = record.connections.iter().min_by_key(|connection| connection.busy());
                least.map(Connection::lease).ok_or_else(|| {
                    Rejection::Internal(format!("the server {} is not running: {why}", self.options.name))
                })
            }
        }
    }

    /// The connection with this id, for a call that waits there.
    pub(crate) fn connection(&self, id: u64) -> Option<Lease> {
        self.record().connections.iter().find(|connection| connection.id == id).map(Connection::lease)
    }

    pub(crate) async fn connect(&self) -> Result<Arc<Connection>, String> {
        let seen = self.record().revision.map(Revision::era);
        let era = match (self.options.era, seen) {
            (Some(era), _) => EraHint::Fixed(era),
            (None, Some(era)) => EraHint::Seen(era),
            (None, None) => EraHint::Unknown,
        };
        let mut settings = self.settings.clone();
        settings.era = era;
        let client = match &self.options.target {
            Target::Local(service) => return Ok(Connection::new(0, Arc::clone(service), None)),
            Target::Unusable(why) => return Err(why.clone()),
            Target::Program(program) => Client::start(program, settings).await,
            Target::Remote(remote) => Client::connect(remote, settings).await,
        };
        let client = client.map_err(|error| error.to_string())?;
        let id = self.next_connection.fetch_add(1, Ordering::Relaxed);
        Ok(Connection::new(id, Arc::new(client.clone()), Some(client)))
    }

    /// The entries of one of its lists, as they were last read.
    pub(crate) fn offer(&self, method: &Method) -> Option<Arc<Offer>> {
        self.record().lists.get(method).map(|list| Arc::clone(&list.offer))
    }

    /// Whether its lists are shown: it is there, or will be once it is wanted.
    pub(crate) fn is_offered(&self) -> bool {
        self.record().offered
    }

    /// Whether it was ever there, or found not to be.
    pub(crate) fn was_seen(&self) -> bool {
        self.record().seen
    }

    /// What it declared when it last ran.
    pub(crate) fn capabilities(&self) -> Capabilities {
        self.record().capabilities.clone()
    }

    pub(crate) fn instructions(&self) -> Option<String> {
        self.record().instructions.clone()
    }

    /// Its status, as the admin API shows it.
    pub(crate) fn status(&self) -> ServerStatus {
        let (state, since) = self.state.borrow().clone();
        let record = self.record();
        let waits = (state == State::Starting && since.elapsed().is_ok_and(|since| since > SILENT))
            .then(|| "it has not answered yet, neither the probe nor initialize".to_owned());
        let lists = || {
            Method::lists().filter_map(|method| {
                let list = record.lists.get(&method)?;
                Some((method, list))
            })
        };
        let left_out = lists().flat_map(|(list, read)| {
            let named = read.offer.left_out.named.iter();
            named.map(move |(name, why)| LeftOut {
                list: list.wire().to_owned(),
                name: name.clone(),
                why: why.clone(),
            })
        });
        let transport = match &self.options.target {
            Target::Program(_) => "stdio",
            Target::Remote(remote) if remote.sse => "sse",
            Target::Remote(_) => {
                let client = record.connections.iter().find_map(|connection| connection.client.as_ref());
                if client.is_some_and(Client::is_one_stream) { "sse" } else { "http" }
            }
            Target::Local(_) => "in process",
            Target::Unusable(_) => "none",
        };
        ServerStatus {
            name: self.options.name.clone(),
            why: record.trouble.clone().or(waits),
            state: state.shown(),
            since: timestamp(since),
            transport: transport.to_owned(),
            revision: record.revision.map(|revision| revision.as_str().to_owned()),
            era: record.revision.map(|revision| format!("{:?}", revision.era()).to_lowercase()),
            pids: record.connections.iter().filter_map(|i| i.client.as_ref()?.pid()).collect(),
            tools: match record.offered {
                true => record.lists.get(&Method::ToolsList).map_or(0, |list| list.offer.entries.len()),
                false => 0,
            },
            calls: self.calls.load(Ordering::Relaxed),
            errors: self.errors.load(Ordering::Relaxed),
            restarts: self.ups.load(Ordering::Relaxed).saturating_sub(1),
            stale: lists()
                .filter_map(|(list, read)| {
                    Some(StaleList { list: list.wire().to_owned(), why: read.trouble.clone()? })
                })
                .collect(),
            left_out: left_out.collect(),
            left_out_count: lists().map(|(_, read)| read.offer.left_out.count).sum(),
        }
    }

    /// Takes out the connections that were unused for long, down to the minimum of the pool.
    pub(crate) fn unused(&self) -> Vec<Arc<Connection>> {
        let pool = self.options.pool;
        let mut record = self.record();
        let mut taken = Vec::new();
        while record.connections.len() > pool.min {
            let idle = |connection: &Arc<Connection>| {
                connection.unused_since().is_some_and(|since| since.elapsed() > pool.idle)
            };
            // From the end: the first one is watched, and goes last.
            let Some(at) = record
                .connections
                .iter()
                .rposition(idle)
                .filter(|at| *at > 0 || record.connections.len() == 1)
            else {
                break;
            };
            taken.push(record.connections.remove(at));
        }
        taken
    }
}

/// A place in the pool for a connection that is being made; free again when this is dropped.
struct PoolSlot<'a>(&'a Upstream);

impl Drop for PoolSlot<'_> {
    fn drop(&mut self) {
        self.0.record().reserved -= 1;
    }
}
