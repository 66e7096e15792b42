//! Listens to changes: of the lists of all servers together, and of resources at the server that has them.

use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt as _};
use proto::{BoxStream, Change, Filter, Listening, Peer, Rejection};
use spec::{Capability, Era};

use crate::gateway::Gateway;
use crate::upstream::Upstream;
use crate::upstream::backoff::Backoff;

/// How long a listen waits for each server to watch its resources. It is acknowledged without servers that take longer.
const WATCHING: Duration = Duration::from_secs(5);

impl Gateway {
    /// Listens to what the filter names. A resource that its server does not watch is left out of what is honoured.
    pub(crate) async fn watch(&self, filter: Filter, peer: Arc<Peer>) -> Result<Listening, Rejection> {
        self.settled().await;
        let lists = Filter { uris: Vec::new(), ..filter.clone() };
        let mut streams: Vec<BoxStream<Change>> = vec![self.0.watchers.watch(lists.clone())];
        let mut honoured = lists;
        let watching = self.by_server(filter.uris).into_iter().map(|(upstream, uris)| {
            let peer = Arc::clone(&peer);
            async move {
                let wanted = Filter { uris, ..Filter::default() };
                let watching = tokio::time::timeout(WATCHING, watch(&upstream, &wanted, &peer)).await;
                let late =
                    || Rejection::Internal(format!("it was not answered within {} s", WATCHING.as_secs()));
                match watching.unwrap_or_else(|_| Err(late())) {
                    Ok(first) => Some((upstream, wanted, first)),
                    Err(why) => {
                        let many = wanted.uris.len();
                        let text = format!("dateline: {many} of its resources cannot be watched: {why}");
                        upstream.logs.warn(&upstream.options.name, &text);
                        None
                    }
                }
            }
        });
        for (upstream, mut wanted, first) in join_all(watching).await.into_iter().flatten() {
            // After a restart only what the server honoured is asked for again.
            wanted.uris.retain(|uri| first.honoured.uris.contains(uri));
            honoured.uris.extend(wanted.uris.iter().cloned());
            streams.push(resuming(upstream, wanted, Arc::clone(&peer), first.changes));
        }
        Ok(Listening { honoured, changes: Box::pin(stream::select_all(streams)) })
    }

    /// Groups URIs by the server that has them.
    fn by_server(&self, uris: Vec<ByteString>) -> Vec<(Arc<Upstream>, Vec<ByteString>)> {
        let catalog = self.catalog();
        let mut by_server: Vec<(Arc<Upstream>, Vec<ByteString>)> = Vec::new();
        for uri in uris {
            let Some(owner) = catalog.owner(&uri).or_else(|| catalog.candidates(&uri).into_iter().next())
            else {
                continue;
            };
            match by_server.iter_mut().find(|(upstream, _)| Arc::ptr_eq(upstream, &owner)) {
                Some((_, uris)) => uris.push(uri),
                None => by_server.push((owner, vec![uri])),
            }
        }
        by_server
    }
}

/// Asks one server to watch resources.
async fn watch(upstream: &Upstream, wanted: &Filter, peer: &Arc<Peer>) -> Result<Listening, Rejection> {
    let lease = upstream.lease().await?;
    let legacy = lease.0.client.as_ref().is_some_and(|client| client.revision().era() == Era::Legacy);
    // A modern server says what it honours when it is asked.
    if legacy && !lease.0.service.describe().capabilities.has(Capability::ResourcesSubscribe) {
        return Err(Rejection::Internal("it does not declare that resources can be subscribed to".into()));
    }
    lease.0.service.listen(wanted.clone(), Arc::clone(peer)).await
}

/// The changes of an upstream's resources. After the upstream was started again, they are watched again.
fn resuming(
    upstream: Arc<Upstream>,
    wanted: Filter,
    peer: Arc<Peer>,
    first: BoxStream<Change>,
) -> BoxStream<Change> {
    let state = (upstream, wanted, peer, first);
    Box::pin(stream::unfold(state, |(upstream, wanted, peer, mut changes)| async move {
        let mut backoff = Backoff::default();
        loop {
            if let Some(change) = changes.next().await {
                return Some((change, (upstream, wanted, peer, changes)));
            }
            if upstream.is_retired() {
                return None;
            }
            upstream.back().await;
            match watch(&upstream, &wanted, &peer).await {
                Ok(listening) => changes = listening.changes,
                Err(_) => tokio::time::sleep(backoff.next()).await,
            }
        }
    }))
}
