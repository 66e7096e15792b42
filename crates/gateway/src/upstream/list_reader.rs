//! Reads the lists of a server: when it starts, when they change, and again after a failure. Clients do not wait for it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use proto::{BoxFuture, Change, Raw, Rejection, Service, walk};
use spec::{Capability, Method};
use tokio::time::Instant;

use super::Upstream;
use super::backoff::Backoff;
use super::offer::{EntryNotes, Offer, thing};

/// How old the list of a server that reports no changes may be before it is read again for a client.
const UNTOLD: Duration = Duration::from_secs(10);
/// How long a server may take to send all pages of a list.
const LISTING: Duration = Duration::from_secs(30);
/// How soon after a list was begun to be read it is read again: a server that tells of changes without end is asked four
/// times a second.
const AGAIN: Duration = Duration::from_millis(250);
/// The same where somebody wants a list that could not be read.
const WANTED: Duration = Duration::from_secs(1);
/// How long whoever wants a list waits for a server to list it anew; what is kept is shown then, and what comes later is
/// told as a change.
const PATIENCE: Duration = Duration::from_millis(500);

impl Upstream {
    /// Whether a list should be read again before it is shown: it could not be read, or is old, and the server does not
    /// tell when it changes.
    fn is_stale(&self, method: &Method) -> bool {
        let told = match method {
            Method::ToolsList => Capability::ToolsListChanged,
            Method::PromptsList => Capability::PromptsListChanged,
            _ => Capability::ResourcesListChanged,
        };
        let record = self.record();
        let Some(first) = record.connections.first() else { return false };
        let untold = !first.service.describe().capabilities.has(told);
        record.lists.get(method).is_none_or(|list| {
            list.trouble.is_some() && list.begun.is_none_or(|begun| begun.elapsed() > WANTED)
                || untold && list.read.is_some_and(|read| read.elapsed() > UNTOLD)
        })
    }

    fn tries(&self, method: &Method) -> u64 {
        self.record().lists.get(method).map_or(0, |list| list.tries)
    }

    /// Has a list read again where that is due, and waits a little for it; says whether it was. A server that is not
    /// there is tried at once.
    pub(crate) async fn refresh(&self, method: &Method) -> bool {
        if !self.is_up() {
            self.want_back();
            return false;
        }
        if !self.is_stale(method) {
            return false;
        }
        let (before, mut read) = (self.tries(method), self.read.subscribe());
        self.relist(method.clone());
        let again = read.wait_for(|()| self.tries(method) > before);
        tokio::time::timeout(PATIENCE, again).await.is_ok()
    }

    /// Reads a list, all pages of it; says whether what is shown of it changed. One that cannot be read stays as it was;
    /// where it was never read as a whole, the pages count that were.
    async fn read(self: Arc<Self>, method: Method, service: Arc<dyn Service>) -> bool {
        let needed = method.row().needs;
        let offered = needed.is_none_or(|needed| service.describe().capabilities.has(needed));
        self.record().lists.entry(method.clone()).or_default().begun = Some(Instant::now());
        let mut sent = Vec::new();
        let outcome = match offered {
            true => tokio::time::timeout(LISTING, walk(method.clone(), &*service, &mut sent)).await,
            // It may not even answer.
            false => Ok(Ok(())),
        };
        let trouble = match outcome {
            Ok(Ok(())) => None,
            Ok(Err(Rejection::Passed { code, .. })) if code == spec::Code::MethodNotFound.number() => None,
            Ok(Err(why)) => Some(why.to_string()),
            Err(_) => Some(format!("it was not answered within {} s", LISTING.as_secs())),
        };
        let changed = self.store(method, sent, trouble).await;
        self.read.send_replace(());
        changed
    }

    async fn store(self: &Arc<Self>, method: Method, sent: Vec<Raw>, trouble: Option<String>) -> bool {
        let (fresh, known) = {
            let mut record = self.record();
            let list = record.lists.entry(method.clone()).or_default();
            list.tries += 1;
            if let Some(why) = trouble.as_ref().filter(|why| list.trouble.as_ref() != Some(why)) {
                let text = format!("dateline: {} cannot be read: {why}", method.wire());
                self.logs.warn(&self.options.name, &text);
            }
            let whole = trouble.is_none();
            list.trouble = trouble;
            let first = list.read.is_none();
            if whole {
                list.read = Some(Instant::now());
            } else if !first || sent.len() < list.sent.len() {
                return false;
            }
            if list.sent == sent {
                return first && whole;
            }
            (first, Arc::clone(&list.offer))
        };
        // It may be much, and calls do not wait for it.
        let (upstream, list) = (Arc::clone(self), method.clone());
        let made = tokio::task::spawn_blocking(move || {
            let offer = Offer::new(&list, &sent, &upstream.options);
            let changed = if fresh { EntryNotes::default() } else { offer.changed_since(&known) };
            (sent, offer, changed)
        });
        let Ok((sent, offer, changed)) = made.await else { return false };
        self.tell_of(&method, &offer.left_out, "");
        self.tell_of(&method, &changed, "is another one than it was: ");
        let mut record = self.record();
        let list = record.lists.entry(method).or_default();
        (list.sent, list.offer) = (sent, Arc::new(offer));
        true
    }

    /// Says in the logs what is not shown as it was sent.
    fn tell_of(&self, method: &Method, missing: &EntryNotes, what: &str) {
        let (name, thing) = (&self.options.name, thing(method));
        for (entry, why) in &missing.named {
            let text = match what {
                "" => format!("dateline: the {thing} {entry:?}: {why}"),
                what => format!("dateline: the {thing} {entry:?} {what}{why}"),
            };
            self.logs.warn(name, &text);
        }
        let more = missing.count - missing.named.len();
        if more > 0 {
            self.logs.warn(name, &format!("dateline: and {more} more in {}", method.wire()));
        }
    }
}

/// Reads the lists of a server over one connection when they are due; each list once at a time.
pub(crate) struct ListReader {
    upstream: Arc<Upstream>,
    service: Arc<dyn Service>,
    due: HashMap<Method, Instant>,
    reading: HashSet<Method>,
    running: FuturesUnordered<BoxFuture<'static, (Method, bool)>>,
    backoff: HashMap<Method, Backoff>,
    tried: HashSet<Method>,
}

impl ListReader {
    /// Makes a reader for which all lists are due.
    pub(crate) fn new(upstream: &Arc<Upstream>, service: &Arc<dyn Service>) -> ListReader {
        let now = Instant::now();
        ListReader {
            upstream: Arc::clone(upstream),
            service: Arc::clone(service),
            due: Method::lists().map(|method| (method, now)).collect(),
            reading: HashSet::new(),
            running: FuturesUnordered::new(),
            backoff: HashMap::new(),
            tried: HashSet::new(),
        }
    }

    /// Whether each list was read or tried.
    pub(crate) fn tried_all(&self) -> bool {
        Method::lists().all(|method| self.tried.contains(&method))
    }

    /// Plans to read the lists that the server says have changed.
    pub(crate) fn changed(&mut self, change: &Change) {
        let methods = match change {
            Change::Tools => vec![Method::ToolsList],
            Change::Prompts => vec![Method::PromptsList],
            Change::Resources => vec![Method::ResourcesList, Method::ResourcesTemplatesList],
            // What was missed may have been any of them.
            Change::Behind => Method::lists().collect(),
            Change::Resource(_) => Vec::new(),
        };
        methods.into_iter().for_each(|method| self.want(method, AGAIN));
    }

    /// Plans to read a list that a client asked for.
    pub(crate) fn wanted(&mut self, method: Method) {
        self.want(method, AGAIN);
    }

    fn want(&mut self, method: Method, after: Duration) {
        let begun = self.upstream.record().lists.get(&method).and_then(|list| list.begun);
        let at = begun.map_or_else(Instant::now, |begun| begun + after);
        let due = self.due.entry(method).or_insert(at);
        *due = at.min(*due);
    }

    /// Waits until a list was read; returns whether what is shown of it changed. It is cancel safe.
    pub(crate) async fn next(&mut self) -> bool {
        loop {
            let now = Instant::now();
            for method in Method::lists() {
                if self.due.get(&method).is_some_and(|at| *at <= now) && self.reading.insert(method.clone()) {
                    self.due.remove(&method);
                    let read = Arc::clone(&self.upstream).read(method.clone(), Arc::clone(&self.service));
                    self.running.push(Box::pin(async move { (method, read.await) }));
                }
            }
            let waiting = self.due.iter().filter(|(method, _)| !self.reading.contains(method));
            let soonest = waiting.map(|(_, at)| *at).min();
            let due = async {
                match soonest {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                Some((method, changed)) = self.running.next(), if !self.running.is_empty() => {
                    self.reading.remove(&method);
                    self.tried.insert(method.clone());
                    self.again(method);
                    return changed;
                }
                () = due => {}
            }
        }
    }

    /// Plans to read a list again if it could not be read, after a pause that grows.
    fn again(&mut self, method: Method) {
        if self.upstream.record().lists.get(&method).is_some_and(|list| list.trouble.is_some()) {
            let at = Instant::now() + self.backoff.entry(method.clone()).or_default().next();
            let due = self.due.entry(method).or_insert(at);
            *due = at.min(*due);
        } else {
            self.backoff.remove(&method);
        }
    }
}
