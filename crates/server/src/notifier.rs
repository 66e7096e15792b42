//! Telling clients of changes.

use proto::{Change, Watchers};

/// Tells clients that what a server offers, or a resource of it, changed. Only those hear it that asked for it.
///
/// A handler gets it by [`crate::Context::notifier`], whoever has the server by [`crate::Server::notifier`].
///
/// <https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions>
#[derive(Debug, Default)]
pub struct Notifier(Watchers);

impl Notifier {
    /// Tells that the list of tools changed.
    pub fn tools_changed(&self) {
        self.tell(&Change::Tools);
    }

    /// Tells that the list of prompts changed.
    pub fn prompts_changed(&self) {
        self.tell(&Change::Prompts);
    }

    /// Tells that the list of resources changed.
    pub fn resources_changed(&self) {
        self.tell(&Change::Resources);
    }

    /// Tells that a resource changed. Clients hear it that subscribed to it, or to something above it.
    pub fn resource_updated(&self, uri: &str) {
        self.tell(&Change::Resource(uri.into()));
    }

    /// How many listens are running, a legacy session's subscriptions among them.
    pub fn listeners(&self) -> usize {
        self.0.count()
    }

    pub(crate) fn tell(&self, change: &Change) {
        self.0.tell(change);
    }

    pub(crate) fn watchers(&self) -> &Watchers {
        &self.0
    }
}
