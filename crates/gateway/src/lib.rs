//! Many servers, of any revision and transport, merged into one.
//!
//! [`Gateway`] is a [`proto::Service`] whose features come from upstreams: it keeps a catalog of what they offer,
//! routes requests to whom they belong, and passes on what comes back. It knows no era: edges downstream and
//! upstream do.

mod catalog;
mod file;
mod known;
mod listen;
mod lists;
mod logs;
mod merge;
mod name;
mod offer;
mod options;
mod pauses;
mod pool;
mod route;
mod status;
mod supervise;
mod upstream;

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use futures_util::future::join_all;
use proto::{CacheHint, Capabilities, Description, Object, Watchers};
use seal::{Keys, Sealer, SystemClock};
use spec::Capability;
use tokio::sync::broadcast;
use tokio::time::Instant;
use transport::client::Settings;

use catalog::Catalog;
use known::Known;
use logs::Logs;
use merge::Merging;
use upstream::Upstream;

pub use file::replace_file;
pub use logs::Entry;
pub use name::{LONGEST as LONGEST_NAME, is_legal};
pub use options::{Names, Options, Override, Pattern, Pool, Prefix, ServerOptions, Target};
pub use status::{LeftOut, Report, State};

/// How long the first lists wait for servers that are still starting.
const SETTLE: Duration = Duration::from_secs(4);

/// The servers behind one endpoint. Clones are handles to the same one.
#[derive(Clone)]
pub struct Gateway(Arc<Inner>);

struct Inner {
    settings: Settings,
    description: RwLock<Arc<Description>>,
    /// What is served now; replaced as a whole.
    upstreams: RwLock<Arc<Vec<Arc<Upstream>>>>,
    options: Mutex<Options>,
    catalog: RwLock<Arc<Catalog>>,
    merging: Merging,
    known: Mutex<Known>,
    watchers: Watchers,
    logs: Arc<Logs>,
    sealer: Sealer,
    started: Instant,
}

/// What a change of options did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Servers that are new, or are started again because they changed.
    pub started: Vec<String>,
    /// Servers that were taken away.
    pub stopped: Vec<String>,
    /// How many keep running untouched.
    pub kept: usize,
}

impl Gateway {
    /// Starts all servers at once, and serves what is there. `names` is where names are remembered, so that they
    /// stay the same at every start. A gateway that has the same `keys` can go on with a request where this one left
    /// off, but for calls that a server of a handshake revision holds open here.
    pub fn start(options: Options, settings: Settings, names: Option<PathBuf>, keys: impl Keys) -> Gateway {
        let (merging, wanted) = Merging::new();
        let gateway = Gateway(Arc::new(Inner {
            settings,
            description: RwLock::new(Arc::new(describe(None))),
            upstreams: RwLock::default(),
            options: Mutex::default(),
            catalog: RwLock::default(),
            merging,
            known: Mutex::new(Known::load(names)),
            watchers: Watchers::default(),
            logs: Arc::default(),
            sealer: Sealer::new(keys, SystemClock),
            started: Instant::now(),
        }));
        tokio::spawn(merge::keep_merged(Arc::downgrade(&gateway.0), wanted));
        gateway.apply(options);
        gateway
    }

    /// Serves other servers from now on. What did not change keeps running; calls of what goes are finished, within
    /// limits; clients are told.
    pub fn apply(&self, options: Options) -> Applied {
        let mut applied = Applied::default();
        let mut current = self.0.options.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.upstreams();
        let kept = |wanted: &ServerOptions| old.iter().find(|upstream| upstream.options == *wanted).cloned();
        let mut new = Vec::with_capacity(options.servers.len());
        for wanted in &options.servers {
            match kept(wanted) {
                Some(upstream) => {
                    applied.kept += 1;
                    new.push(upstream);
                }
                None => {
                    let upstream = Upstream::new(wanted.clone(), &self.0.settings, &self.0.logs);
                    applied.started.push(wanted.name.clone());
                    new.push(upstream);
                }
            }
        }
        let fresh: Vec<_> = new.iter().filter(|u| !old.iter().any(|o| Arc::ptr_eq(o, u))).cloned().collect();
        let gone: Vec<_> = old.iter().filter(|o| !new.iter().any(|u| Arc::ptr_eq(o, u))).cloned().collect();
        *self.0.upstreams.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
        *current = options;
        drop(current);
        for upstream in fresh {
            tokio::spawn(supervise::supervise(self.clone(), upstream));
        }
        for upstream in gone {
            if !applied.started.contains(&upstream.options.name) {
                applied.stopped.push(upstream.options.name.clone());
            }
            upstream.retire();
        }
        self.merge();
        applied
    }

    /// Has a server started again at once, whether it runs or not, and waits for so long until it is up or found not to
    /// be had. Says how it is; `None` where there is none of this name.
    pub async fn restart(&self, name: &str, patience: Duration) -> Option<Report> {
        let upstreams = self.upstreams();
        let upstream = upstreams.iter().find(|upstream| upstream.options.name == name)?;
        let starts = || upstream.starts.load(Ordering::Relaxed);
        let before = starts();
        upstream.restart.notify_one();
        let started =
            upstream.until(|state| starts() > before && matches!(state, State::Up | State::Down(_)));
        let _ = tokio::time::timeout(patience, started).await;
        Some(upstream.report())
    }

    /// How each server is, in order.
    pub fn status(&self) -> Vec<Report> {
        self.upstreams().iter().map(|upstream| upstream.report()).collect()
    }

    /// The file that says what is served.
    pub fn source(&self) -> Option<PathBuf> {
        self.0.options.lock().unwrap_or_else(PoisonError::into_inner).source.clone()
    }

    /// What servers said and what happened to them, of one or of all, and what follows.
    pub fn logs(&self, server: Option<&str>) -> (Vec<Entry>, broadcast::Receiver<Entry>) {
        self.0.logs.read(server)
    }

    /// Ends all servers, programs in the order of the specification.
    pub async fn close(&self) {
        let upstreams =
            std::mem::take(&mut *self.0.upstreams.write().unwrap_or_else(PoisonError::into_inner));
        upstreams.iter().for_each(|upstream| upstream.end());
        join_all(upstreams.iter().map(|upstream| upstream.ended())).await;
    }

    pub(crate) fn upstreams(&self) -> Arc<Vec<Arc<Upstream>>> {
        Arc::clone(&self.0.upstreams.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits for servers that are still starting, if this is soon after the start.
    pub(crate) async fn settled(&self) {
        let upstreams = self.upstreams();
        let all = join_all(upstreams.iter().map(|upstream| upstream.settled()));
        let _ = tokio::time::timeout_at(self.0.started + SETTLE, all).await;
    }

    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.0.catalog.read().unwrap_or_else(PoisonError::into_inner))
    }
}

fn describe(instructions: Option<String>) -> Description {
    Description {
        identity: Object::new()
            .with("name", "dateline")
            .with("title", "dateline gateway")
            .with("version", env!("CARGO_PKG_VERSION")),
        // All of them, at every start: what a server has to offer may come later.
        capabilities: Capability::ALL.into_iter().fold(Capabilities::none(), Capabilities::with),
        instructions,
        hint: CacheHint { ttl: Duration::ZERO, public: true },
        methods: Vec::new(),
    }
}
