//! A connection to a server, and how much it is used.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::join_all;
use proto::Service;
use tokio::time::Instant;
use transport::client::Client;

/// A connection to a server.
pub(crate) struct Connection {
    pub(crate) id: u64,
    pub(crate) service: Arc<dyn Service>,
    pub(crate) client: Option<Client>,
    busy: AtomicUsize,
    used: Mutex<Instant>,
}

/// A use of a connection, which ends when this is dropped.
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

    /// How many calls run on it. A call that waits for its client's answer counts too: if another call shared the
    /// connection, a question of the server could belong to either.
    pub(crate) fn busy(&self) -> usize {
        let held = self.client.as_ref().map_or(0, Client::in_flight);
        self.busy.load(Ordering::Relaxed).max(held)
    }

    /// Since when it is unused; `None` while a call runs or waits for an answer on it.
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

/// Closes connections, all at once.
pub(crate) async fn close(connections: Vec<Arc<Connection>>) {
    join_all(connections.iter().filter_map(|i| i.client.as_ref()).map(Client::close)).await;
}
