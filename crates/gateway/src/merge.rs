//! The catalog made anew when anything changed, out of the way of calls, and changes told to clients.

use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use proto::Change;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::catalog::Catalog;
use crate::{Gateway, Inner, describe};

/// How soon clients are told of changes again: four times a second. What changes in between is told with the next.
const TELLING: Duration = Duration::from_millis(250);

/// How often the catalog was wanted to be made anew, and up to which wish it was.
pub(crate) struct Merging {
    wanted: watch::Sender<u64>,
    done: watch::Sender<u64>,
}

impl Merging {
    pub(crate) fn new() -> (Merging, watch::Receiver<u64>) {
        let (wanted, wishes) = watch::channel(0);
        (Merging { wanted, done: watch::channel(0).0 }, wishes)
    }

    fn want(&self) -> u64 {
        let mut wish = 0;
        self.wanted.send_modify(|wanted| {
            *wanted += 1;
            wish = *wanted;
        });
        wish
    }
}

impl Gateway {
    /// Has the catalog made anew from what the servers list.
    pub(crate) fn merge(&self) {
        self.0.merging.want();
    }

    /// The same, and waits until it is.
    pub(crate) async fn merged(&self) {
        let wish = self.0.merging.want();
        let mut done = self.0.merging.done.subscribe();
        // The sender lives as long as self.
        let _ = done.wait_for(|done| *done >= wish).await;
    }

    /// Makes the catalog anew; gives what is not as it was.
    fn make_catalog(&self) -> Vec<Change> {
        let mut known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (upstreams, before) = (self.upstreams(), self.catalog());
        let options = self.0.options.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let catalog = Arc::new(Catalog::merge(&before, &upstreams, &options, &mut known));
        drop(known);
        let changes = catalog.changes(&before);
        *self.0.catalog.write().unwrap_or_else(PoisonError::into_inner) = catalog;
        let said = upstreams.iter().filter_map(|u| Some((u.options.name.as_str(), u.instructions()?)));
        let instructions: Vec<_> = said.map(|(name, text)| format!("# {name}\n\n{text}")).collect();
        let instructions = (!instructions.is_empty()).then(|| instructions.join("\n\n"));
        let mut description = self.0.description.write().unwrap_or_else(PoisonError::into_inner);
        *description = Arc::new(describe(instructions));
        changes
    }
}

/// Makes the catalog anew as often as that is wanted, each time for all who want it, and tells clients what changed.
pub(crate) async fn keep_merged(gateway: Weak<Inner>, mut wanted: watch::Receiver<u64>) {
    let mut untold: Vec<Change> = Vec::new();
    let mut told: Option<Instant> = None;
    loop {
        let due = told.map_or_else(Instant::now, |told| told + TELLING);
        tokio::select! {
            wish = wanted.changed() => {
                let (Ok(()), Some(inner)) = (wish, gateway.upgrade()) else { return };
                let wish = *wanted.borrow_and_update();
                let gateway = Gateway(inner);
                let merging = gateway.clone();
                // What is merged may be much, and calls do not wait for it.
                let changes = tokio::task::spawn_blocking(move || merging.make_catalog()).await;
                for change in changes.unwrap_or_default() {
                    if !untold.contains(&change) {
                        untold.push(change);
                    }
                }
                gateway.0.merging.done.send_replace(wish);
            }
            () = tokio::time::sleep_until(due), if !untold.is_empty() => {
                let Some(inner) = gateway.upgrade() else { return };
                untold.drain(..).for_each(|change| inner.watchers.tell(&change));
                told = Some(Instant::now());
            }
        }
    }
}
