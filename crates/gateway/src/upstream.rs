//! One server: started, watched, started again, and asked what it offers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use futures_util::{StreamExt, stream};
use proto::{BoxStream, Change, Filter, Peer, Raw, Rejection, Service, list_all};
use spec::{Capability, Method, Revision};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use transport::client::{Client, Settings, Stderr};

use crate::Gateway;
use crate::logs::Logs;
use crate::options::{ServerOptions, Target};
use crate::pool::{self, Instance, Lease};
use crate::status::{Report, State};

/// The first and the longest pause before a server is started again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));
/// A server that ran this long starts with the first pause again.
const STEADY: Duration = Duration::from_secs(60);
/// How often a server is started that does not stay up.
const ATTEMPTS: u32 = 10;
/// How long a list holds of a server that does not tell when it changes.
const UNTOLD: Duration = Duration::from_secs(10);
/// How long a server may be silent before its status says so.
const SILENT: Duration = Duration::from_secs(3);
/// How long a list may take.
const LISTING: Duration = Duration::from_secs(30);
/// How long a request waits for a server that was gone before it took it.
const RETURN: Duration = Duration::from_secs(10);
/// How long calls of a server that goes may still run.
const FAREWELL: Duration = Duration::from_secs(30);

/// The lists that are kept of a server.
pub(crate) const LISTS: [Method; 4] =
    [Method::ToolsList, Method::PromptsList, Method::ResourcesList, Method::ResourcesTemplatesList];

/// A server.
pub(crate) struct Upstream {
    pub(crate) options: ServerOptions,
    settings: Settings,
    state: watch::Sender<(State, SystemTime)>,
    kept: Mutex<Kept>,
    logs: Arc<Logs>,
    wanted: Notify,
    /// It goes once its calls have ended.
    retired: CancellationToken,
    /// It goes now.
    ending: CancellationToken,
    ended: CancellationToken,
    pub(crate) calls: AtomicU64,
    pub(crate) errors: AtomicU64,
    starts: AtomicU64,
    next_instance: AtomicU64,
}

#[derive(Default)]
struct Kept {
    /// The first is watched; the others are there while calls are many.
    instances: Vec<Arc<Instance>>,
    /// Instances that are being started.
    reserved: usize,
    lists: HashMap<Method, List>,
    revision: Option<Revision>,
    /// Why it was last not there, while it is not.
    trouble: Option<String>,
    instructions: Option<String>,
}

#[derive(Clone, Default)]
struct List {
    entries: Arc<Vec<Raw>>,
    read: Option<Instant>,
}

/// How a run of a server ended.
enum End {
    /// Nobody used it.
    Idle,
    /// It is gone, and why.
    Gone(String),
}

impl Upstream {
    pub(crate) fn new(options: ServerOptions, settings: &Settings, logs: &Arc<Logs>) -> Arc<Upstream> {
        let (name, to) = (options.name.clone(), Arc::clone(logs));
        let stderr = Stderr(Arc::new(move |line: &str| to.say(&name, line)));
        let mut settings = Settings { stderr: Some(stderr), ..settings.clone() };
        if let Some(timeout) = options.call_timeout {
            settings.call = timeout;
        }
        let first = if options.pool.min == 0 { State::Idle } else { State::Starting };
        Arc::new(Upstream {
            options,
            settings,
            state: watch::channel((first, SystemTime::now())).0,
            kept: Mutex::default(),
            logs: Arc::clone(logs),
            wanted: Notify::new(),
            retired: CancellationToken::new(),
            ending: CancellationToken::new(),
            ended: CancellationToken::new(),
            calls: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            starts: AtomicU64::new(0),
            next_instance: AtomicU64::new(1),
        })
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn state(&self) -> State {
        self.state.borrow().0.clone()
    }

    /// Notes a new state. Trouble has one beginning, however often it is tried to end it, and its reason is kept
    /// while that is tried.
    fn set(&self, state: State) {
        match &state {
            State::Down(why) | State::Failed(why) => {
                self.logs.warn(&self.options.name, &format!("dateline: {}: {why}", state.word()));
            }
            State::Up => self.logs.say(&self.options.name, "dateline: up"),
            State::Starting | State::Idle => {}
        }
        let fine = |state: &State| matches!(state, State::Up | State::Idle);
        if let Some(why) = state.why() {
            self.kept().trouble = Some(why.to_owned());
        } else if fine(&state) {
            self.kept().trouble = None;
        }
        self.state.send_modify(|(now, since)| {
            if fine(now) || fine(&state) {
                *since = SystemTime::now();
            }
            *now = state;
        });
    }

    /// Waits until it is up or not to be had. One that is started on first use is started for its lists.
    pub(crate) async fn settled(&self) {
        if self.state() == State::Idle {
            if self.has_listed() {
                return;
            }
            self.wanted.notify_one();
        }
        self.until(|state| !matches!(state, State::Starting | State::Idle)).await;
    }

    async fn until(&self, test: impl Fn(&State) -> bool) {
        let mut state = self.state.subscribe();
        // The sender lives as long as self.
        let _ = state.wait_for(|(state, _)| test(state)).await;
    }

    fn has_listed(&self) -> bool {
        !self.kept().lists.is_empty()
    }

    /// Lets it go once its calls have ended.
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

    /// Whether it goes, or is gone.
    pub(crate) fn is_retired(&self) -> bool {
        self.retired.is_cancelled()
    }

    /// Waits for a while until it is there again.
    pub(crate) async fn back(&self) {
        let there = || self.kept().instances.iter().any(|instance| !instance.is_gone());
        let back = async {
            let mut state = self.state.subscribe();
            // It may count as up for a moment after its connection is gone.
            if self.state() == State::Idle {
                self.wanted.notify_one();
            }
            while !(self.state() == State::Up && there() || matches!(self.state(), State::Failed(_))) {
                if state.changed().await.is_err() {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(RETURN, back).await;
    }

    /// A connection to use.
    pub(crate) async fn lease(&self) -> Result<Lease, Rejection> {
        if self.state() == State::Idle {
            self.wanted.notify_one();
        }
        let ready = self.until(|state| !matches!(state, State::Starting | State::Idle));
        let _ = tokio::time::timeout(self.settings.connect, ready).await;
        let name = &self.options.name;
        match self.state() {
            State::Up => self.free().await,
            State::Starting | State::Idle => {
                Err(Rejection::Internal(format!("the server {name} is still starting")))
            }
            // Why is for whoever runs it: `dateline status` says so.
            State::Down(_) => {
                Err(Rejection::Internal(format!("the server {name} is not running, and is tried again")))
            }
            State::Failed(_) => Err(Rejection::Internal(format!("the server {name} is not running"))),
        }
    }

    /// A connection that is free, one more where there may be, else the one with the least to do.
    async fn free(&self) -> Result<Lease, Rejection> {
        {
            let mut kept = self.kept();
            kept.instances.retain(|instance| !instance.is_gone());
            if kept.instances.is_empty() {
                // The first one is the supervisor's to make.
                return Err(Rejection::Gone(format!("the server {} has just ended", self.options.name)));
            }
            let least = kept.instances.iter().min_by_key(|instance| instance.busy()).map(Arc::clone);
            let more = kept.instances.len() + kept.reserved < self.options.pool.max;
            match least {
                Some(instance) if instance.busy() == 0 || !more => return Ok(instance.lease()),
                _ => kept.reserved += 1,
            }
        }
        let reserved = Reserved(self);
        let instance = self.connect().await;
        drop(reserved);
        match instance {
            Ok(instance) => {
                let lease = instance.lease();
                self.kept().instances.push(instance);
                Ok(lease)
            }
            Err(why) => {
                let kept = self.kept();
                let least = kept.instances.iter().min_by_key(|instance| instance.busy());
                least.map(Instance::lease).ok_or_else(|| {
                    Rejection::Internal(format!("the server {} is not running: {why}", self.options.name))
                })
            }
        }
    }

    /// The connection of this number, for what can only go on there.
    pub(crate) fn instance(&self, id: u64) -> Option<Lease> {
        self.kept().instances.iter().find(|instance| instance.id == id).map(Instance::lease)
    }

    async fn connect(&self) -> Result<Arc<Instance>, String> {
        let settings = Settings { era: self.kept().revision.map(Revision::era), ..self.settings.clone() };
        let client = match &self.options.target {
            Target::Local(service) => return Ok(Instance::new(0, Arc::clone(service), None)),
            Target::Unusable(why) => return Err(why.clone()),
            Target::Program(program) => Client::start(program, settings).await,
            Target::Remote(remote) => Client::connect(remote, settings).await,
        };
        let client = client.map_err(|error| error.to_string())?;
        let id = self.next_instance.fetch_add(1, Ordering::Relaxed);
        Ok(Instance::new(id, Arc::new(client.clone()), Some(client)))
    }

    /// What it lists, as of the last time it was read.
    pub(crate) fn listed(&self, method: Method) -> Arc<Vec<Raw>> {
        self.kept().lists.get(&method).map(|list| Arc::clone(&list.entries)).unwrap_or_default()
    }

    /// Whether its lists count: it is there, or will be once it is wanted.
    pub(crate) fn is_offered(&self) -> bool {
        self.has_listed()
    }

    pub(crate) fn instructions(&self) -> Option<String> {
        self.kept().instructions.clone()
    }

    /// Whether a list should be read again before it is shown: it is old, and the server does not tell when it
    /// changes.
    fn is_stale(&self, method: Method, service: &dyn Service) -> bool {
        let told = match method {
            Method::ToolsList => Capability::ToolsListChanged,
            Method::PromptsList => Capability::PromptsListChanged,
            _ => Capability::ResourcesListChanged,
        };
        let read = self.kept().lists.get(&method).and_then(|list| list.read);
        !service.describe().capabilities.has(told) && read.is_some_and(|read| read.elapsed() > UNTOLD)
    }

    /// Reads a list again where that is due; says whether it changed.
    pub(crate) async fn refresh(&self, method: Method) -> bool {
        let first = self.kept().instances.first().cloned();
        let Some(first) = first.filter(|_| self.state() == State::Up) else { return false };
        self.is_stale(method, &*first.service) && self.read(method, &*first.service).await
    }

    /// Reads a list, all pages of it; says whether it changed. A list that cannot be read stays as it was.
    async fn read(&self, method: Method, service: &dyn Service) -> bool {
        let needed = method.row().needs;
        let offered = needed.is_none_or(|needed| service.describe().capabilities.has(needed));
        let complain = |why: &str| {
            self.logs.warn(&self.options.name, &format!("dateline: {} cannot be read: {why}", method.wire()));
        };
        let asking = async {
            match offered {
                true => list_all(method, service).await,
                // It may not even answer.
                false => Ok(Vec::new()),
            }
        };
        let entries = match tokio::time::timeout(LISTING, asking).await {
            Ok(Ok(entries)) => entries,
            Ok(Err(Rejection::Passed { code, .. })) if code == spec::Code::MethodNotFound.number() => {
                Vec::new()
            }
            Ok(Err(why)) => {
                complain(&why.to_string());
                return false;
            }
            Err(_) => {
                complain("it takes too long");
                return false;
            }
        };
        let mut kept = self.kept();
        let list = kept.lists.entry(method).or_default();
        let changed = *list.entries != entries;
        *list = List { entries: Arc::new(entries), read: Some(Instant::now()) };
        changed
    }

    /// How it is.
    pub(crate) fn report(&self) -> Report {
        let (state, since) = self.state.borrow().clone();
        let kept = self.kept();
        let tools =
            kept.lists.get(&Method::ToolsList).map(|list| Arc::clone(&list.entries)).unwrap_or_default();
        let shown = tools.iter().filter_map(|tool| tool.object().ok()?.string("name"));
        let waits = (state == State::Starting && since.elapsed().is_ok_and(|since| since > SILENT))
            .then(|| "it has not answered yet, neither the probe nor initialize".to_owned());
        Report {
            name: self.options.name.clone(),
            why: kept.trouble.clone().or(waits),
            state,
            since,
            transport: match &self.options.target {
                Target::Program(_) => "stdio",
                Target::Remote(remote) if remote.sse => "sse",
                Target::Remote(_) => {
                    let client = kept.instances.iter().find_map(|instance| instance.client.as_ref());
                    if client.is_some_and(Client::is_one_stream) { "sse" } else { "http" }
                }
                Target::Local(_) => "in process",
                Target::Unusable(_) => "none",
            },
            revision: kept.revision,
            pids: kept.instances.iter().filter_map(|i| i.client.as_ref()?.pid()).collect(),
            tools: shown.filter(|name| self.options.shows(name)).count(),
            calls: self.calls.load(Ordering::Relaxed),
            errors: self.errors.load(Ordering::Relaxed),
            restarts: self.starts.load(Ordering::Relaxed).saturating_sub(1),
        }
    }

    /// Takes the connections that nobody used for long, down to the minimum.
    fn unused(&self) -> Vec<Arc<Instance>> {
        let pool = self.options.pool;
        let mut kept = self.kept();
        let mut taken = Vec::new();
        while kept.instances.len() > pool.min {
            let idle = |instance: &Arc<Instance>| {
                instance.unused_since().is_some_and(|since| since.elapsed() > pool.idle)
            };
            // From the end: the first one is watched, and goes last.
            let Some(at) =
                kept.instances.iter().rposition(idle).filter(|at| *at > 0 || kept.instances.len() == 1)
            else {
                break;
            };
            taken.push(kept.instances.remove(at));
        }
        taken
    }
}

/// A place in the pool that is kept free for a connection that is being made.
struct Reserved<'a>(&'a Upstream);

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.0.kept().reserved -= 1;
    }
}

/// Keeps a server running until it is to go.
pub(crate) async fn supervise(gateway: Gateway, upstream: Arc<Upstream>) {
    if let Target::Unusable(why) = &upstream.options.target {
        // Only another configuration brings it back. Who read this one has warned of it.
        upstream.logs.say(&upstream.options.name, &format!("dateline: down: {why}"));
        upstream.kept().trouble = Some(why.clone());
        upstream.state.send_replace((State::Down(why.clone()), SystemTime::now()));
        upstream.retired.cancelled().await;
    }
    let (mut pause, mut failures) = (PAUSES.0, 0);
    while !upstream.retired.is_cancelled() {
        if upstream.options.pool.min == 0 {
            upstream.set(State::Idle);
            tokio::select! {
                () = upstream.retired.cancelled() => break,
                () = upstream.wanted.notified() => {}
            }
        }
        upstream.set(State::Starting);
        upstream.starts.fetch_add(1, Ordering::Relaxed);
        let begun = Instant::now();
        let end = tokio::select! {
            () = upstream.retired.cancelled() => break,
            end = run(&gateway, &upstream) => end,
        };
        let instances = std::mem::take(&mut upstream.kept().instances);
        let End::Gone(why) = end else {
            pool::close(instances).await;
            continue;
        };
        // Those that still work on calls end with them.
        drop(instances);
        if begun.elapsed() > STEADY {
            (pause, failures) = (PAUSES.0, 0);
        }
        failures += 1;
        let given_up = failures >= ATTEMPTS;
        upstream.kept().lists.clear();
        upstream.set(match given_up {
            true => State::Failed(format!(
                "{why} (given up after {failures} attempts; it is tried again on reload)"
            )),
            false => State::Down(why),
        });
        gateway.changed();
        let wait = async {
            match given_up {
                true => std::future::pending().await,
                false => tokio::time::sleep(pause).await,
            }
        };
        tokio::select! {
            () = upstream.retired.cancelled() => break,
            () = wait => {}
        }
        pause = (pause * 2).min(PAUSES.1);
    }
    leave(&upstream).await;
}

/// Waits for what is under way, and ends the connections.
async fn leave(upstream: &Upstream) {
    let instances = std::mem::take(&mut upstream.kept().instances);
    let quiet = async {
        while instances.iter().any(|instance| instance.unused_since().is_none()) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        () = upstream.ending.cancelled() => {}
        _ = tokio::time::timeout(FAREWELL, quiet) => {}
    }
    pool::close(instances).await;
    upstream.ended.cancel();
}

/// Runs a server until it is gone, or nobody uses it.
async fn run(gateway: &Gateway, upstream: &Arc<Upstream>) -> End {
    let first = match upstream.connect().await {
        Ok(first) => first,
        Err(why) => return End::Gone(why),
    };
    let description = first.service.describe();
    {
        let mut kept = upstream.kept();
        kept.revision = first.client.as_ref().map(Client::revision);
        kept.instructions.clone_from(&description.instructions);
    }
    // Watched before it is read: what changes in between is not missed.
    let has = |capability| description.capabilities.has(capability);
    let filter = Filter {
        tools: has(Capability::ToolsListChanged),
        prompts: has(Capability::PromptsListChanged),
        resources: has(Capability::ResourcesListChanged),
        uris: Vec::new(),
    };
    let mut changes = None;
    if filter != Filter::default() {
        match first.service.listen(filter.clone(), Peer::ours()).await {
            Ok(listening) => {
                changes = Some(watch_on(Arc::clone(&first.service), filter, listening.changes));
            }
            Err(why) => {
                upstream
                    .logs
                    .warn(&upstream.options.name, &format!("dateline: changes cannot be watched: {why}"));
            }
        }
    }
    for method in LISTS {
        upstream.read(method, &*first.service).await;
    }
    upstream.kept().instances.insert(0, Arc::clone(&first));
    // Merged before it counts as up: whoever waits for that finds what it offers.
    gateway.merge();
    upstream.set(State::Up);
    gateway.changed();
    let gone = async {
        match &first.client {
            Some(client) => {
                client.gone().await;
                client.why_gone()
            }
            None => std::future::pending().await,
        }
    };
    tokio::pin!(gone);
    let mut look = tokio::time::interval((upstream.options.pool.idle / 4).max(Duration::from_millis(50)));
    loop {
        let (told, change) = tokio::select! {
            why = &mut gone => return End::Gone(why),
            change = next(&mut changes) => change,
            _ = look.tick() => {
                let unused = upstream.unused();
                let all = upstream.kept().instances.is_empty();
                pool::close(unused).await;
                if all {
                    return End::Idle;
                }
                continue;
            }
        };
        let methods: &[Method] = match change {
            Change::Tools => &[Method::ToolsList],
            Change::Prompts => &[Method::PromptsList],
            Change::Resources => &[Method::ResourcesList, Method::ResourcesTemplatesList],
            // What was missed may have been any of them.
            Change::Behind => &LISTS,
            Change::Resource(_) => continue,
        };
        let mut changed = told;
        for method in methods {
            changed |= upstream.read(*method, &*first.service).await;
        }
        if changed {
            gateway.merge();
            match change {
                Change::Behind => gateway.changed(),
                change => gateway.tell(&change),
            }
        }
    }
}

/// What changes at a server, each with whether the server told it. Where that breaks off although the server is there,
/// it is watched again, and everything may have changed meanwhile.
fn watch_on(
    service: Arc<dyn Service>,
    filter: Filter,
    first: BoxStream<Change>,
) -> BoxStream<(bool, Change)> {
    let missed = [
        (filter.tools, Change::Tools),
        (filter.prompts, Change::Prompts),
        (filter.resources, Change::Resources),
    ];
    let state = (first, Vec::new(), PAUSES.0, Instant::now());
    Box::pin(stream::unfold(state, move |(mut changes, mut untold, mut pause, mut since)| {
        let (service, filter, missed) = (Arc::clone(&service), filter.clone(), missed.clone());
        async move {
            loop {
                if let Some(change) = untold.pop() {
                    return Some(((false, change), (changes, untold, pause, since)));
                }
                if let Some(change) = changes.next().await {
                    return Some(((true, change), (changes, untold, pause, since)));
                }
                if since.elapsed() > STEADY {
                    pause = PAUSES.0;
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSES.1);
                if let Ok(listening) = service.listen(filter.clone(), Peer::ours()).await {
                    (changes, since) = (listening.changes, Instant::now());
                    untold.extend(
                        missed.iter().filter(|(watched, _)| *watched).map(|(_, change)| change.clone()),
                    );
                }
            }
        }
    }))
}

async fn next(changes: &mut Option<BoxStream<(bool, Change)>>) -> (bool, Change) {
    match changes.as_mut().map(StreamExt::next) {
        // It has no end.
        Some(next) => match next.await {
            Some(change) => change,
            None => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}
