//! Starts the gateway, changes its servers while it runs, and closes it.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use futures_util::future::join_all;
use proto::{Capabilities, Watchers};
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

/// What [`Gateway::apply`] changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppliedOptions {
    /// The servers that are started: new ones, and those whose options changed.
    pub started: Vec<String>,
    /// The servers that were taken away.
    pub stopped: Vec<String>,
    /// How many servers keep running, since nothing about them changed.
    pub kept: usize,
}

impl Gateway {
    /// Starts all servers at once. `names` is the file in which the names of tools and prompts are remembered, so that they
    /// stay the same at every start. Another gateway with the same `keys` can go on with a request that asked a question
    /// here, unless a server of a legacy revision holds the call open.
    pub fn start(options: Options, settings: Settings, names: Option<PathBuf>, keys: impl Keys) -> Gateway {
        let (merging, wanted) = MergeRequests::new();
        let gateway = Gateway(Arc::new(Inner {
            settings,
            description: RwLock::new(Arc::new(describe(None, &Capabilities::none(), true))),
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

    /// Replaces the options. Servers whose options did not change keep running. Servers that are taken away finish their
    /// calls first, for at most 30 seconds. Clients are told what changed.
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

    /// Starts a server again at once, whether it runs or not, and waits until it is up or down, at most for `patience`.
    /// Returns its status; `None` when no server has this name.
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

    /// The status of each server, in the order of the options.
    pub fn status(&self) -> Vec<ServerStatus> {
        self.upstreams().iter().map(|upstream| upstream.status()).collect()
    }

    /// The configuration file that the options came from, if they came from one.
    pub fn source(&self) -> Option<PathBuf> {
        self.0.options.lock().unwrap_or_else(PoisonError::into_inner).source.clone()
    }

    /// The kept log lines of one server or of all, and a receiver of the lines that follow.
    pub fn logs(&self, server: Option<&str>) -> (Vec<LogLine>, broadcast::Receiver<LogLine>) {
        self.0.logs.read(server)
    }

    /// Ends all servers, and waits until they have ended.
    pub async fn close(&self) {
        let upstreams =
            std::mem::take(&mut *self.0.upstreams.write().unwrap_or_else(PoisonError::into_inner));
        upstreams.iter().for_each(|upstream| upstream.end());
        join_all(upstreams.iter().map(|upstream| upstream.ended())).await;
    }
}
