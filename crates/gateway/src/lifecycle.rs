//! The gateway started, given other servers while it runs, and closed.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use futures_util::future::join_all;
use proto::Watchers;
use seal::{Keys, Sealer, SystemClock};
use tokio::sync::broadcast;
use tokio::time::Instant;
use transport::client::Settings;

use crate::admin::{LogLine, ServerStatus};
use crate::catalog::given_names::NameStore;
use crate::catalog::merge::keep_merged;
use crate::catalog::merge_requests::MergeRequests;
use crate::gateway::{Gateway, Inner, describe};
use crate::options::{Options, ServerOptions};
use crate::upstream::Upstream;
use crate::upstream::state::State;
use crate::upstream::supervise::supervise;

/// What a change of options did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppliedOptions {
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
        let (merging, wanted) = MergeRequests::new();
        let gateway = Gateway(Arc::new(Inner {
            settings,
            description: RwLock::new(Arc::new(describe(None))),
            upstreams: RwLock::default(),
            options: Mutex::default(),
            catalog: RwLock::default(),
            merging,
            names: Mutex::new(NameStore::load(names)),
            watchers: Watchers::default(),
            logs: Arc::default(),
            sealer: Sealer::new(keys, SystemClock),
            started: Instant::now(),
        }));
        tokio::spawn(keep_merged(Arc::downgrade(&gateway.0), wanted));
        gateway.apply(options);
        gateway
    }

    /// Serves other servers from now on. What did not change keeps running; calls of what goes are finished, within
    /// limits; clients are told.
    pub fn apply(&self, options: Options) -> AppliedOptions {
        let mut applied = AppliedOptions::default();
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
            tokio::spawn(supervise(self.clone(), upstream));
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
    pub async fn restart(&self, name: &str, patience: Duration) -> Option<ServerStatus> {
        let upstreams = self.upstreams();
        let upstream = upstreams.iter().find(|upstream| upstream.options.name == name)?;
        let starts = || upstream.starts.load(Ordering::Relaxed);
        let before = starts();
        upstream.restart.notify_one();
        let started =
            upstream.until(|state| starts() > before && matches!(state, State::Up | State::Down(_)));
        let _ = tokio::time::timeout(patience, started).await;
        Some(upstream.status())
    }

    /// How each server is, in order.
    pub fn status(&self) -> Vec<ServerStatus> {
        self.upstreams().iter().map(|upstream| upstream.status()).collect()
    }

    /// The file that says what is served.
    pub fn source(&self) -> Option<PathBuf> {
        self.0.options.lock().unwrap_or_else(PoisonError::into_inner).source.clone()
    }

    /// What servers said and what happened to them, of one or of all, and what follows.
    pub fn logs(&self, server: Option<&str>) -> (Vec<LogLine>, broadcast::Receiver<LogLine>) {
        self.0.logs.read(server)
    }

    /// Ends all servers, programs in the order of the specification.
    pub async fn close(&self) {
        let upstreams =
            std::mem::take(&mut *self.0.upstreams.write().unwrap_or_else(PoisonError::into_inner));
        upstreams.iter().for_each(|upstream| upstream.end());
        join_all(upstreams.iter().map(|upstream| upstream.ended())).await;
    }
}
