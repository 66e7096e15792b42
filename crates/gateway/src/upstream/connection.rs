//! The connections of one server: the first is watched, further ones are there while calls are many.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::join_all;
use proto::Service;
use tokio::time::Instant;
use transport::client::Client;

/// One connection.
pub(crate) struct Connection {
    pub(crate) id: u64,
    pub(crate) service: Arc<dyn Service>,
    pub(crate) client: Option<Client>,
    busy: AtomicUsize,
    used: Mutex<Instant>,
}

/// A connection that is used; given back when dropped.
pub(crate) struct Lease(pub(crate) Arc<Connection>);

impl Connection {
    pub(crate) fn new(id: u64, service: Arc<dyn Service>, client: Option<Client>) -> Arc<Connection> {
        Arc::new(Connection {
            id,
            service,
            client,
            busy: AtomicUsize::new(0),
            used: Mutex::new(Instant::now()),
        })
    }

    pub(crate) fn lease(self: &Arc<Self>) -> Lease {
        self.busy.fetch_add(1, Ordering::Relaxed);
        Lease(Arc::clone(self))
    }

    /// How much is under way. A call that waits for its client's answer counts: what its server asks meanwhile could be
    /// either's, where another call shares the connection.
    pub(crate) fn busy(&self) -> usize {
        let held = self.client.as_ref().map_or(0, Client::in_flight);
        self.busy.load(Ordering::Relaxed).max(held)
    }

    /// Since when it is unused; `None` while it is used, or holds a call that waits for an answer.
    pub(crate) fn unused_since(&self) -> Option<Instant> {
        let held = self.client.as_ref().is_some_and(|client| client.in_flight() > 0);
        (self.busy() == 0 && !held).then(|| *self.used.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.client.as_ref().is_some_and(Client::is_gone)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        *self.0.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Ends connections.
pub(crate) async fn close(connections: Vec<Arc<Connection>>) {
    join_all(connections.iter().filter_map(|i| i.client.as_ref()).map(Client::close)).await;
}
