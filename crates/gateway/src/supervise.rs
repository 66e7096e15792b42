//! Servers kept running: started, watched, and started again.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::OptionFuture;
use futures_util::{StreamExt, stream};
use proto::{BoxFuture, BoxStream, Change, Filter, Listening, Peer, Rejection, Service};
use spec::Capability;
use tokio::time::Instant;
use transport::client::Client;

use crate::Gateway;
use crate::lists::Reader;
use crate::options::Target;
use crate::pauses::Pauses;
use crate::pool;
use crate::status::State;
use crate::upstream::Upstream;

/// A server that ran this long starts with the first pause again.
const STEADY: Duration = Duration::from_secs(60);
/// How soon after it was tried a server is tried again that somebody wants.
const AT_ONCE: Duration = Duration::from_secs(1);
/// How long calls of a server that goes may still run.
const FAREWELL: Duration = Duration::from_secs(30);
/// How long a server is waited for to say that it tells of changes, before its lists are read. One that says so later
/// has them read again.
const WATCHING: Duration = Duration::from_secs(1);
/// How long it may take at all.
const WATCHED: Duration = Duration::from_secs(60);
/// How long a server that is there is not shown for want of its lists. Those that come later are told as changes.
const LISTED: Duration = Duration::from_secs(5);

/// How a run of a server ended.
enum End {
    /// Nobody used it.
    Idle,
    /// It is to be started again.
    Restart,
    /// It is gone, and why.
    Gone(String),
}

/// Keeps a server running until it is to go. It is never given up.
pub(crate) async fn supervise(gateway: Gateway, upstream: Arc<Upstream>) {
    if let Target::Unusable(why) = &upstream.options.target {
        // Only another configuration brings it back. Who read this one has warned of it.
        upstream.unusable(why);
        upstream.retired.cancelled().await;
    }
    let mut pauses = Pauses::default();
    let mut at_once = false;
    while !upstream.retired.is_cancelled() {
        if upstream.options.pool.min == 0 && !std::mem::take(&mut at_once) {
            upstream.set(State::Idle);
            tokio::select! {
                () = upstream.retired.cancelled() => break,
                () = upstream.wanted.notified() => {}
                () = upstream.restart.notified() => {}
            }
        }
        upstream.starts.fetch_add(1, Ordering::Relaxed);
        upstream.set(State::Starting);
        let begun = Instant::now();
        let end = tokio::select! {
            () = upstream.retired.cancelled() => break,
            () = upstream.restart.notified() => End::Restart,
            end = run(&gateway, &upstream) => end,
        };
        let instances = std::mem::take(&mut upstream.kept().instances);
        let End::Gone(why) = end else {
            at_once = matches!(end, End::Restart);
            if at_once {
                upstream.logs.say(&upstream.options.name, "dateline: it is started again, as was asked");
                pauses = Pauses::default();
            }
            pool::close(instances).await;
            continue;
        };
        // Those that still work on calls end with them.
        drop(instances);
        if begun.elapsed() > STEADY {
            pauses = Pauses::default();
        }
        upstream.set(State::Down(why));
        gateway.merge();
        let wanted = async {
            tokio::time::sleep_until(begun + AT_ONCE).await;
            upstream.wanted.notified().await;
        };
        tokio::select! {
            () = upstream.retired.cancelled() => break,
            () = upstream.restart.notified() => pauses = Pauses::default(),
            // One that is started on first use is tried for who wants it.
            () = tokio::time::sleep(pauses.next()), if upstream.options.pool.min > 0 => {}
            () = wanted => {}
        }
        at_once = true;
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
    {
        let mut kept = upstream.kept();
        kept.revision = first.client.as_ref().map(Client::revision);
        kept.instructions.clone_from(&first.service.describe().instructions);
        kept.instances.insert(0, Arc::clone(&first));
    }
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
    // Watched before it is read: what changes in between is not missed.
    let mut changes = tokio::select! {
        why = &mut gone => return End::Gone(why),
        changes = watch_on(upstream, &first.service) => changes,
    };
    let mut reader = Reader::new(upstream, &first.service);
    let mut look = tokio::time::interval((upstream.options.pool.idle / 4).max(Duration::from_millis(50)));
    let shown = tokio::time::sleep(LISTED);
    tokio::pin!(shown);
    let mut up = false;
    loop {
        tokio::select! {
            why = &mut gone => return End::Gone(why),
            Some(change) = OptionFuture::from(changes.as_mut().map(StreamExt::next)), if changes.is_some() => {
                if let Some(change) = change {
                    reader.changed(&change);
                }
            }
            methods = upstream.relisting() => methods.into_iter().for_each(|method| reader.wanted(method)),
            changed = reader.next() => {
                if changed && up {
                    gateway.merge();
                }
            }
            () = &mut shown, if !up => {
                up = true;
            }
            _ = look.tick() => {
                let unused = upstream.unused();
                let all = upstream.kept().instances.is_empty();
                pool::close(unused).await;
                if all {
                    return End::Idle;
                }
            }
        }
        if !upstream.is_up() && (up || reader.tried_all()) {
            up = true;
            upstream.kept().offered = true;
            // Merged before it counts as up: whoever waits for that finds what it offers.
            gateway.merged().await;
            upstream.set(State::Up);
            // Names are given for good once all servers were seen.
            gateway.merge();
        }
    }
}

/// What changes at a server; `None` where it tells of nothing. Where that breaks off although the server is there, it is
/// watched again, and everything may have changed meanwhile.
async fn watch_on(upstream: &Arc<Upstream>, service: &Arc<dyn Service>) -> Option<BoxStream<Change>> {
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
    let watch = Watch { upstream: Arc::clone(upstream), service: Arc::clone(service), filter };
    let first = match tokio::time::timeout(WATCHING, &mut watching).await {
        Ok(Ok(listening)) => Watching::On(listening.changes, Instant::now()),
        Ok(Err(why)) => {
            watch.complain(&why);
            Watching::Off
        }
        // It is not waited for any longer, and still may come.
        Err(_) => Watching::Soon(watching),
    };
    Some(watch.changes(first))
}

fn listen(service: Arc<dyn Service>, filter: Filter) -> BoxFuture<'static, Result<Listening, Rejection>> {
    Box::pin(async move {
        let late = Rejection::Internal(format!("it was not answered within {} s", WATCHED.as_secs()));
        let listening = tokio::time::timeout(WATCHED, service.listen(filter, Peer::ours()));
        listening.await.unwrap_or(Err(late))
    })
}

struct Watch {
    upstream: Arc<Upstream>,
    service: Arc<dyn Service>,
    filter: Filter,
}

enum Watching {
    On(BoxStream<Change>, Instant),
    Soon(BoxFuture<'static, Result<Listening, Rejection>>),
    Off,
}

impl Watch {
    fn complain(&self, why: &Rejection) {
        let text = format!("dateline: changes cannot be watched, and are looked for again and again: {why}");
        self.upstream.logs.warn(&self.upstream.options.name, &text);
    }

    fn changes(self, first: Watching) -> BoxStream<Change> {
        let missed = [
            (self.filter.tools, Change::Tools),
            (self.filter.prompts, Change::Prompts),
            (self.filter.resources, Change::Resources),
        ];
        let missed: Vec<Change> =
            missed.into_iter().filter_map(|(watched, change)| watched.then_some(change)).collect();
        let state = (self, first, Vec::new(), Pauses::default());
        Box::pin(stream::unfold(state, move |(watch, mut now, mut untold, mut pauses)| {
            let missed = missed.clone();
            async move {
                loop {
                    if let Some(change) = untold.pop() {
                        return Some((change, (watch, now, untold, pauses)));
                    }
                    match &mut now {
                        Watching::On(changes, since) => match changes.next().await {
                            Some(change) => return Some((change, (watch, now, untold, pauses))),
                            None => {
                                if since.elapsed() > STEADY {
                                    pauses = Pauses::default();
                                }
                                now = Watching::Off;
                            }
                        },
                        Watching::Off => {
                            tokio::time::sleep(pauses.next()).await;
                            now = Watching::Soon(listen(Arc::clone(&watch.service), watch.filter.clone()));
                        }
                        Watching::Soon(watching) => match watching.await {
                            Ok(listening) => {
                                now = Watching::On(listening.changes, Instant::now());
                                untold.clone_from(&missed);
                            }
                            Err(_) => {
                                now = Watching::Off;
                                untold.clone_from(&missed);
                            }
                        },
                    }
                }
            }
        }))
    }
}
