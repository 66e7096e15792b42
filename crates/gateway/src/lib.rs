//! Many servers, of any revision and transport, merged into one.
//!
//! [`Gateway`] is a [`proto::Service`] whose features come from upstreams: it keeps a catalog of what they offer,
//! routes requests to whom they belong, and passes on what comes back. It knows no era: edges downstream and
//! upstream do.

mod catalog;
mod name;
mod route;
mod upstream;

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use futures_util::future::join_all;
use proto::{CacheHint, Capabilities, Description, Object, Service, Watchers};
use server::seal::{ProcessKey, Sealer, SystemClock};
use spec::Capability;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use transport::client::{Program, Settings};

use catalog::Catalog;
use upstream::Upstream;

pub use upstream::Status;

/// How long the first lists wait for servers that are still starting.
const SETTLE: Duration = Duration::from_secs(5);

/// Where an upstream is.
#[derive(Clone)]
pub enum Target {
    /// A program that is started and spoken to over its standard streams.
    Program(Program),
    /// A service in this process.
    Local(Arc<dyn Service>),
}

/// The servers behind one endpoint. Clones are handles to the same one.
#[derive(Clone)]
pub struct Gateway(Arc<Inner>);

struct Inner {
    description: Arc<Description>,
    upstreams: Vec<Arc<Upstream>>,
    catalog: RwLock<Arc<Catalog>>,
    /// Held while the catalog is made anew, so that the newest one wins.
    merging: Mutex<()>,
    watchers: Watchers,
    sealer: Sealer,
    started: Instant,
    shutdown: CancellationToken,
}

impl Gateway {
    /// Starts all upstreams at once, and serves what is there. The order of the targets is the order of lists.
    ///
    /// # Errors
    /// When the operating system has no randomness to give.
    pub fn start(targets: Vec<(String, Target)>, settings: &Settings) -> Result<Gateway, String> {
        let shutdown = CancellationToken::new();
        let upstreams: Vec<_> = targets
            .into_iter()
            .map(|(name, target)| Arc::new(Upstream::new(name, target, settings.clone())))
            .collect();
        let key = ProcessKey::new().map_err(|e| format!("no key could be made: {e}"))?;
        let capabilities = Capability::ALL.into_iter().fold(Capabilities::none(), Capabilities::with);
        let gateway = Gateway(Arc::new(Inner {
            description: Arc::new(Description {
                identity: Object::new()
                    .with("name", "dateline")
                    .with("title", "dateline gateway")
                    .with("version", env!("CARGO_PKG_VERSION")),
                // All of them, at every start: what a server has to offer may come later.
                capabilities,
                instructions: None,
                hint: CacheHint { ttl: Duration::ZERO, public: true },
            }),
            catalog: RwLock::new(Arc::new(Catalog::default())),
            merging: Mutex::new(()),
            watchers: Watchers::default(),
            sealer: Sealer::new(key, SystemClock),
            started: Instant::now(),
            shutdown,
            upstreams,
        }));
        for at in 0..gateway.0.upstreams.len() {
            tokio::spawn(upstream::supervise(gateway.clone(), at));
        }
        Ok(gateway)
    }

    /// The upstreams, by name, with how they are.
    pub fn status(&self) -> Vec<(String, Status)> {
        self.0.upstreams.iter().map(|u| (u.name.clone(), u.status())).collect()
    }

    /// Ends all upstreams, programs in the order of the specification.
    pub async fn close(&self) {
        self.0.shutdown.cancel();
        join_all(self.0.upstreams.iter().map(|upstream| upstream.closed())).await;
    }

    /// Waits for servers that are still starting, if this is soon after the start.
    async fn settled(&self) {
        let all = join_all(self.0.upstreams.iter().map(|upstream| upstream.settled()));
        let _ = tokio::time::timeout_at(self.0.started + SETTLE, all).await;
    }

    fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.0.catalog.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes the catalog anew from what the upstreams list.
    fn merge(&self) {
        let _merging = self.0.merging.lock().unwrap_or_else(PoisonError::into_inner);
        let catalog = Arc::new(Catalog::merge(&self.0.upstreams));
        *self.0.catalog.write().unwrap_or_else(PoisonError::into_inner) = catalog;
    }
}
