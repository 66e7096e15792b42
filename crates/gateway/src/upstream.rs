//! One upstream: started, watched, started again, and asked what it offers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use proto::{Change, Filter, Peer, Raw, Rejection, Service, list_all};
use spec::{Capability, Method};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use transport::client::{Client, Settings};

use crate::{Gateway, Target};

/// The first and the longest pause before a server is started again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));
/// A server that ran this long starts with the first pause again.
const STEADY: Duration = Duration::from_secs(60);
/// How long a list holds of a server that does not tell when it changes.
const UNTOLD: Duration = Duration::from_secs(10);
/// How long a list may take.
const LISTING: Duration = Duration::from_secs(30);

/// The lists that are kept of an upstream.
pub(crate) const LISTS: [Method; 4] =
    [Method::ToolsList, Method::PromptsList, Method::ResourcesList, Method::ResourcesTemplatesList];

/// How an upstream is.
#[derive(Clone)]
pub enum Status {
    /// It is being started.
    Starting,
    /// It is there.
    Up {
        /// What answers.
        service: Arc<dyn Service>,
        /// The connection, where it is one.
        client: Option<Client>,
    },
    /// It is not there, and why.
    Down(String),
}

/// An upstream.
pub(crate) struct Upstream {
    pub(crate) name: String,
    target: Target,
    settings: Settings,
    status: watch::Sender<Status>,
    lists: Mutex<HashMap<Method, List>>,
    closed: CancellationToken,
}

#[derive(Clone, Default)]
struct List {
    entries: Arc<Vec<Raw>>,
    read: Option<Instant>,
}

impl Upstream {
    pub(crate) fn new(name: String, target: Target, settings: Settings) -> Upstream {
        let (status, _) = watch::channel(Status::Starting);
        Upstream { name, target, settings, status, lists: Mutex::default(), closed: CancellationToken::new() }
    }

    pub(crate) fn status(&self) -> Status {
        self.status.borrow().clone()
    }

    /// Waits until it is up or down.
    pub(crate) async fn settled(&self) {
        let mut status = self.status.subscribe();
        // The sender lives as long as self.
        let _ = status.wait_for(|status| !matches!(status, Status::Starting)).await;
    }

    /// Waits until it was started again; `None` when it never will be.
    pub(crate) async fn changed(&self) -> Option<()> {
        let mut status = self.status.subscribe();
        tokio::select! {
            changed = status.changed() => changed.ok(),
            () = self.closed.cancelled() => None,
        }
    }

    /// Waits until it has ended for good.
    pub(crate) async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// What answers, once it is there.
    pub(crate) async fn service(&self) -> Result<Arc<dyn Service>, Rejection> {
        if matches!(self.status(), Status::Starting) {
            let _ = tokio::time::timeout(self.settings.connect, self.settled()).await;
        }
        match self.status() {
            Status::Up { service, .. } => Ok(service),
            Status::Starting => {
                Err(Rejection::Internal(format!("the server {} is still starting", self.name)))
            }
            Status::Down(why) => {
                Err(Rejection::Internal(format!("the server {} is not running: {why}", self.name)))
            }
        }
    }

    /// What it lists, as of the last time it was read.
    pub(crate) fn listed(&self, method: Method) -> Arc<Vec<Raw>> {
        let lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        lists.get(&method).map(|list| Arc::clone(&list.entries)).unwrap_or_default()
    }

    fn set(&self, method: Method, entries: Vec<Raw>) -> bool {
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        let list = lists.entry(method).or_default();
        let changed = *list.entries != entries;
        *list = List { entries: Arc::new(entries), read: Some(Instant::now()) };
        changed
    }

    fn clear(&self) -> bool {
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        let had = lists.values().any(|list| !list.entries.is_empty());
        lists.clear();
        had
    }

    /// Whether a list should be read again before it is shown: it is old, and the server does not tell when it
    /// changes.
    fn is_stale(&self, method: Method, service: &dyn Service) -> bool {
        let told = match method {
            Method::ToolsList => Capability::ToolsListChanged,
            Method::PromptsList => Capability::PromptsListChanged,
            _ => Capability::ResourcesListChanged,
        };
        let lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        let read = lists.get(&method).and_then(|list| list.read);
        !service.describe().capabilities.has(told) && read.is_some_and(|read| read.elapsed() > UNTOLD)
    }

    /// Reads a list again where that is due; says whether it changed.
    pub(crate) async fn refresh(&self, method: Method) -> bool {
        let Status::Up { service, .. } = self.status() else { return false };
        self.is_stale(method, &*service) && self.read(method, &*service).await
    }

    /// Reads a list, all pages of it; says whether it changed. A list that cannot be read stays as it was.
    async fn read(&self, method: Method, service: &dyn Service) -> bool {
        let needed = method.row().needs;
        if needed.is_some_and(|needed| !service.describe().capabilities.has(needed)) {
            return false;
        }
        match tokio::time::timeout(LISTING, list_all(method, service)).await {
            Ok(Ok(entries)) => self.set(method, entries),
            Ok(Err(Rejection::Passed { code, .. })) if code == spec::Code::MethodNotFound.number() => {
                self.set(method, Vec::new())
            }
            Ok(Err(why)) => {
                tracing::warn!(server = self.name, list = method.wire(), %why, "a list could not be read");
                false
            }
            Err(_) => {
                tracing::warn!(server = self.name, list = method.wire(), "a list took too long");
                false
            }
        }
    }
}

/// Keeps an upstream running until the gateway ends.
pub(crate) async fn supervise(gateway: Gateway, at: usize) {
    let upstream = Arc::clone(&gateway.0.upstreams[at]);
    let shutdown = gateway.0.shutdown.clone();
    let mut pause = PAUSES.0;
    loop {
        let _ = upstream.status.send_replace(Status::Starting);
        let begun = Instant::now();
        let why = tokio::select! {
            () = shutdown.cancelled() => break,
            why = run(&gateway, &upstream) => why,
        };
        tracing::warn!(server = upstream.name, %why, "the server is not running");
        if begun.elapsed() > STEADY {
            pause = PAUSES.0;
        }
        let _ = upstream.status.send_replace(Status::Down(why));
        if upstream.clear() {
            gateway.merge();
            gateway.tell_all();
        }
        tokio::select! {
            () = shutdown.cancelled() => break,
            () = tokio::time::sleep(pause) => {}
        }
        pause = (pause * 2).min(PAUSES.1);
    }
    let last = upstream.status.send_replace(Status::Down("dateline is ending".into()));
    if let Status::Up { client: Some(client), .. } = last {
        client.close().await;
    }
    upstream.closed.cancel();
}

/// Runs an upstream until it is gone; gives the reason.
async fn run(gateway: &Gateway, upstream: &Arc<Upstream>) -> String {
    let (service, client): (Arc<dyn Service>, _) = match &upstream.target {
        Target::Local(service) => (Arc::clone(service), None),
        Target::Program(program) => match Client::start(program, upstream.settings.clone()).await {
            Ok(client) => (Arc::new(client.clone()), Some(client)),
            Err(error) => return error.to_string(),
        },
    };
    if let Some(client) = &client {
        tracing::info!(server = upstream.name, revision = %client.revision(), pid = client.pid(), "the server is up");
    }
    // Watched before it is read: what changes in between is not missed.
    let capabilities = service.describe();
    let has = |capability| capabilities.capabilities.has(capability);
    let filter = Filter {
        tools: has(Capability::ToolsListChanged),
        prompts: has(Capability::PromptsListChanged),
        resources: has(Capability::ResourcesListChanged),
        uris: Vec::new(),
    };
    let mut changes = if filter == Filter::default() {
        None
    } else {
        match service.listen(filter, Peer::ours()).await {
            Ok(listening) => Some(listening.changes),
            Err(why) => {
                tracing::warn!(server = upstream.name, %why, "the server cannot be watched for changes");
                None
            }
        }
    };
    for method in LISTS {
        upstream.read(method, &*service).await;
    }
    // Merged before it counts as up: whoever waits for that finds what it offers.
    gateway.merge();
    let _ =
        upstream.status.send_replace(Status::Up { service: Arc::clone(&service), client: client.clone() });
    gateway.tell_all();
    let ended = async {
        match &client {
            Some(client) => client.gone().await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(ended);
    loop {
        let change = tokio::select! {
            () = &mut ended => return client.as_ref().map(Client::why_gone).unwrap_or_default(),
            change = next(&mut changes) => change,
        };
        let Some(change) = change else {
            changes = None;
            continue;
        };
        let methods: &[Method] = match change {
            Change::Tools => &[Method::ToolsList],
            Change::Prompts => &[Method::PromptsList],
            Change::Resources => &[Method::ResourcesList, Method::ResourcesTemplatesList],
            Change::Resource(_) => &[],
        };
        for method in methods {
            upstream.read(*method, &*service).await;
        }
        if !methods.is_empty() {
            gateway.merge();
            gateway.tell(&change);
        }
    }
}

async fn next(changes: &mut Option<proto::BoxStream<Change>>) -> Option<Change> {
    match changes {
        Some(changes) => changes.next().await,
        None => std::future::pending().await,
    }
}
