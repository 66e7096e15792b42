//! Rebuilds the catalog when a server's lists changed, without holding up calls, and tells clients what changed.

use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use proto::Change;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Catalog;
use crate::gateway::{Gateway, Inner, describe};

/// The shortest time between two notifications to clients. Changes that come sooner are told together: four times a
/// second is fast enough for people, and a server that changes without end costs clients little.
const TELL_INTERVAL: Duration = Duration::from_millis(250);

impl Gateway {
    /// Requests a rebuild of the catalog from what the servers list.
    pub(crate) fn merge(&self) {
        self.0.merging.request();
    }

    /// Requests a rebuild of the catalog, and waits until it is done.
    pub(crate) async fn merged(&self) {
        let number = self.0.merging.request();
        self.0.merging.wait(number).await;
    }

    /// Rebuilds the catalog; returns what changed.
    fn make_catalog(&self) -> Vec<Change> {
        let mut names = self.0.names.lock().unwrap_or_else(PoisonError::into_inner);
        let (upstreams, before) = (self.upstreams(), self.catalog());
        let options = self.0.options.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let catalog = Arc::new(Catalog::merge(&before, &upstreams, &options, &mut names));
        drop(names);
        let changes = catalog.changes(&before);
        *self.0.catalog.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&catalog);
        let extensions = &catalog.extensions;
        let said = upstreams.iter().filter_map(|u| Some((u.options.name.as_str(), u.instructions()?)));
        let instructions: Vec<_> = said.map(|(name, text)| format!("# {name}\n\n{text}")).collect();
        let instructions = (!instructions.is_empty()).then(|| instructions.join("\n\n"));
        let mut description = self.0.description.write().unwrap_or_else(PoisonError::into_inner);
        // A server that was not seen yet may declare one.
        let may_have_extensions = extensions.any() || !upstreams.iter().all(|u| u.was_seen());
        *description = Arc::new(describe(instructions, &extensions.declared, may_have_extensions));
        changes
    }
}

/// Rebuilds the catalog whenever that was requested, and tells clients what changed. Ends with the gateway.
pub(crate) async fn keep_merged(gateway: Weak<Inner>, mut requests: watch::Receiver<u64>) {
    let mut untold: Vec<Change> = Vec::new();
    let mut last_told: Option<Instant> = None;
    loop {
        let due = last_told.map_or_else(Instant::now, |told| told + TELL_INTERVAL);
        tokio::select! {
            requested = requests.changed() => {
                let (Ok(()), Some(inner)) = (requested, gateway.upgrade()) else { return };
                let number = *requests.borrow_and_update();
                let gateway = Gateway(inner);
                let merging = gateway.clone();
                // Merging large lists takes long, and calls do not wait for it.
                let changes = tokio::task::spawn_blocking(move || merging.make_catalog()).await;
                for change in changes.unwrap_or_default() {
                    if !untold.contains(&change) {
                        untold.push(change);
                    }
                }
                gateway.0.merging.finish(number);
            }
            () = tokio::time::sleep_until(due), if !untold.is_empty() => {
                let Some(inner) = gateway.upgrade() else { return };
                untold.drain(..).for_each(|change| inner.watchers.tell(&change));
                last_told = Some(Instant::now());
            }
        }
    }
}
