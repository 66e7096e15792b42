//! Watches a server for changes of its lists, and watches again when that breaks off.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use proto::{BoxFuture, BoxStream, Change, Filter, Listening, Peer, Rejection, Service};
use spec::Capability;
use tokio::time::Instant;

use super::Upstream;
use super::backoff::{Backoff, STEADY};

/// How long the reading of the lists waits for a server to begin to report changes. The lists of a server that begins
/// later are read again then.
const LISTEN_WAIT: Duration = Duration::from_secs(1);
/// How long a server may take at most to begin to report changes.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(60);

/// The changes of a server's lists; `None` for a server that reports none. When the listen breaks off while the server
/// runs, it is opened again, and every watched list counts as changed.
pub(super) async fn watch_lists(
    upstream: &Arc<Upstream>,
    service: &Arc<dyn Service>,
) -> Option<BoxStream<Change>> {
    let description = service.describe();
    let has = |capability| description.capabilities.has(capability);
    let filter = Filter {
        tools: has(Capability::ToolsListChanged),
        prompts: has(Capability::PromptsListChanged),
        resources: has(Capability::ResourcesListChanged),
        uris: Vec::new(),
    };
    if filter == Filter::default() {
        return None;
    }
    let mut watching = listen(Arc::clone(service), filter.clone());
    let watch = ChangeWatch { upstream: Arc::clone(upstream), service: Arc::clone(service), filter };
    let first = match tokio::time::timeout(LISTEN_WAIT, &mut watching).await {
        Ok(Ok(listening)) => WatchState::Open(listening.changes, Instant::now()),
        Ok(Err(why)) => {
            watch.warn(&why);
            WatchState::Closed
        }
        // The lists are read meanwhile.
        Err(_) => WatchState::Opening(watching),
    };
    Some(watch.changes(first))
}

/// Opens a listen to changes of lists.
fn listen(service: Arc<dyn Service>, filter: Filter) -> BoxFuture<'static, Result<Listening, Rejection>> {
    Box::pin(async move {
        let late = Rejection::Internal(format!("it was not answered within {} s", LISTEN_TIMEOUT.as_secs()));
        let listening = tokio::time::timeout(LISTEN_TIMEOUT, service.listen(filter, Peer::own()));
        listening.await.unwrap_or(Err(late))
    })
}

/// A listen to one server, and what it takes to open it again.
struct ChangeWatch {
    upstream: Arc<Upstream>,
    service: Arc<dyn Service>,
    filter: Filter,
}

enum WatchState {
    /// The server reports changes, since this time.
    Open(BoxStream<Change>, Instant),
    /// The server was asked to.
    Opening(BoxFuture<'static, Result<Listening, Rejection>>),
    /// It is asked again after a pause.
    Closed,
}

impl ChangeWatch {
    fn warn(&self, why: &Rejection) {
        let text = format!("dateline: changes cannot be watched, and are looked for again and again: {why}");
        self.upstream.logs.warn(&self.upstream.options.name, &text);
    }

    fn changes(self, first: WatchState) -> BoxStream<Change> {
        let missed = [
            (self.filter.tools, Change::Tools),
            (self.filter.prompts, Change::Prompts),
            (self.filter.resources, Change::Resources),
        ];
        let missed: Vec<Change> =
            missed.into_iter().filter_map(|(watched, change)| watched.then_some(change)).collect();
        let state = (self, first, Vec::new(), Backoff::default());
        Box::pin(stream::unfold(state, move |(watch, mut now, mut untold, mut backoff)| {
            let missed = missed.clone();
            async move {
                loop {
                    if let Some(change) = untold.pop() {
                        return Some((change, (watch, now, untold, backoff)));
                    }
                    match &mut now {
                        WatchState::Open(changes, since) => match changes.next().await {
                            Some(change) => return Some((change, (watch, now, untold, backoff))),
                            None => {
                                if since.elapsed() > STEADY {
                                    backoff = Backoff::default();
                                }
                                now = WatchState::Closed;
                            }
                        },
                        WatchState::Closed => {
                            tokio::time::sleep(backoff.next()).await;
                            now =
                                WatchState::Opening(listen(Arc::clone(&watch.service), watch.filter.clone()));
                        }
                        WatchState::Opening(watching) => match watching.await {
                            Ok(listening) => {
                                now = WatchState::Open(listening.changes, Instant::now());
                                untold.clone_from(&missed);
                            }
                            Err(_) => {
                                now = WatchState::Closed;
                                untold.clone_from(&missed);
                            }
                        },
                    }
                }
            }
        }))
    }
}
