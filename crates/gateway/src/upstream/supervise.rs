//! Keeps a server running: starts it, watches it, and starts it again when it is gone.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::OptionFuture;
use tokio::time::Instant;
use transport::client::Client;

use super::Upstream;
use super::backoff::{Backoff, STEADY};
use super::connection;
use super::list_reader::ListReader;
use super::list_watch::watch_lists;
use super::state::State;
use crate::gateway::Gateway;
use crate::options::Target;

/// The shortest time between two starts of a server that somebody needs.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// How long calls of a server that is taken away may still run.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a running server's lists may delay that it is shown. Lists that come later are told as changes.
const LIST_WAIT: Duration = Duration::from_secs(5);

/// How a run of a server ended.
enum RunEnd {
    /// Nobody used it.
    Idle,
    /// Somebody asked to start it again.
    Restart,
    /// It is gone, for this reason.
    Gone(String),
}

/// Keeps a server running until it is taken away. A server that fails is tried again for ever.
pub(crate) async fn supervise(gateway: Gateway, upstream: Arc<Upstream>) {
    if let Target::Unusable(why) = &upstream.options.target {
        // Only another configuration makes it usable. Whoever read this one has warned of it.
        upstream.unusable(why);
        upstream.retired.cancelled().await;
    }
    let mut backoff = Backoff::default();
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
            () = upstream.restart.notified() => RunEnd::Restart,
            end = run(&gateway, &upstream) => end,
        };
        let connections = std::mem::take(&mut upstream.record().connections);
        let RunEnd::Gone(why) = end else {
            at_once = matches!(end, RunEnd::Restart);
            if at_once {
                upstream.logs.note(&upstream.options.name, "dateline: it is started again, as was asked");
                backoff = Backoff::default();
            }
            connection::close(connections).await;
            continue;
        };
        // A connection on which calls still run ends with them.
        drop(connections);
        if begun.elapsed() > STEADY {
            backoff = Backoff::default();
        }
        upstream.set(State::Down(why));
        gateway.merge();
        let wanted = async {
            tokio::time::sleep_until(begun + RETRY_INTERVAL).await;
            upstream.wanted.notified().await;
        };
        tokio::select! {
            () = upstream.retired.cancelled() => break,
            () = upstream.restart.notified() => backoff = Backoff::default(),
            // A server that is started on first use waits until it is used.
            () = tokio::time::sleep(backoff.next()), if upstream.options.pool.min > 0 => {}
            () = wanted => {}
        }
        at_once = true;
    }
    leave(&upstream).await;
}

/// Waits for the calls that run, at most [`DRAIN_TIMEOUT`], and closes the connections.
async fn leave(upstream: &Upstream) {
    let connections = std::mem::take(&mut upstream.record().connections);
    let quiet = async {
        while connections.iter().any(|connection| connection.unused_since().is_none()) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        () = upstream.ending.cancelled() => {}
        _ = tokio::time::timeout(DRAIN_TIMEOUT, quiet) => {}
    }
    connection::close(connections).await;
    upstream.ended.cancel();
}

/// Runs a server until it is gone, or nobody uses it.
async fn run(gateway: &Gateway, upstream: &Arc<Upstream>) -> RunEnd {
    let first = match upstream.connect().await {
        Ok(first) => first,
        Err(why) => return RunEnd::Gone(why),
    };
    {
        let mut record = upstream.record();
        record.revision = first.client.as_ref().map(Client::revision);
        let description = first.service.describe();
        record.instructions.clone_from(&description.instructions);
        record.capabilities.clone_from(&description.capabilities);
        record.connections.insert(0, Arc::clone(&first));
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
    // Changes are watched before the lists are read, so that no change in between is missed.
    let mut changes = tokio::select! {
        why = &mut gone => return RunEnd::Gone(why),
        changes = watch_lists(upstream, &first.service) => changes,
    };
    let mut reader = ListReader::new(upstream, &first.service);
    let mut look = tokio::time::interval((upstream.options.pool.idle / 4).max(Duration::from_millis(50)));
    let shown = tokio::time::sleep(LIST_WAIT);
    tokio::pin!(shown);
    let mut up = false;
    loop {
        tokio::select! {
            why = &mut gone => return RunEnd::Gone(why),
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
                let all = upstream.record().connections.is_empty();
                connection::close(unused).await;
                if all {
                    return RunEnd::Idle;
                }
            }
        }
        if !upstream.is_up() && (up || reader.tried_all()) {
            up = true;
            upstream.record().offered = true;
            // The catalog has its entries before it counts as up: who waits for that finds them.
            gateway.merged().await;
            upstream.set(State::Up);
            // Names are given for good once all servers were seen.
            gateway.merge();
        }
    }
}
