//! The gateway's state: its servers, its catalog and what works on them share.

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use futures_util::future::join_all;
use proto::{CacheHint, Capabilities, Description, Object, Watchers};
use seal::Sealer;
use spec::Capability;
use tokio::time::Instant;
use transport::client::Settings;

use crate::catalog::Catalog;
use crate::catalog::given_names::NameStore;
use crate::catalog::merge_requests::MergeRequests;
use crate::options::Options;
use crate::upstream::Upstream;
use crate::upstream::logs::Logs;

/// How long after the start lists wait for servers that are still starting: most servers are up by then, and no client
/// gives up.
const SETTLE: Duration = Duration::from_secs(4);

/// A gateway over many servers. Clones share one gateway.
#[derive(Clone)]
pub struct Gateway(pub(crate) Arc<Inner>);

/// What all clones share.
pub(crate) struct Inner {
    pub(crate) settings: Settings,
    pub(crate) description: RwLock<Arc<Description>>,
    /// The servers. The list is replaced as a whole, so that a request keeps the one it began with.
    pub(crate) upstreams: RwLock<Arc<Vec<Arc<Upstream>>>>,
    pub(crate) options: Mutex<Options>,
    pub(crate) catalog: RwLock<Arc<Catalog>>,
    pub(crate) merging: MergeRequests,
    pub(crate) names: Mutex<NameStore>,
    pub(crate) watchers: Watchers,
    pub(crate) logs: Arc<Logs>,
    pub(crate) sealer: Sealer,
    pub(crate) started: Instant,
}

impl Gateway {
    pub(crate) fn upstreams(&self) -> Arc<Vec<Arc<Upstream>>> {
        Arc::clone(&self.0.upstreams.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits for servers that are still starting, until [`SETTLE`] after the start.
    pub(crate) async fn settled(&self) {
        let upstreams = self.upstreams();
        let all = join_all(upstreams.iter().map(|upstream| upstream.settled()));
        let _ = tokio::time::timeout_at(self.0.started + SETTLE, all).await;
    }

    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.0.catalog.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What the gateway says of itself. It declares every capability at every start: which server has which may only turn
/// out later, and clients ask once.
pub(crate) fn describe(instructions: Option<String>) -> Description {
    Description {
        identity: Object::new()
            .with("name", "dateline")
            .with("title", "dateline gateway")
            .with("version", env!("CARGO_PKG_VERSION"))
            .into(),
        capabilities: Capability::ALL.into_iter().fold(Capabilities::none(), Capabilities::with),
        instructions,
        hint: CacheHint { ttl: Duration::ZERO, public: true },
        methods: Vec::new(),
    }
}
