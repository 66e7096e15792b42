//! Telling clients of changes.

use proto::{Change, Watchers};

/// Tells clients that the lists of a server, or one of its resources, changed. Only clients that asked for it are told.
///
/// Handlers get it from [`crate::Context::notifier`], other code from [`crate::Server::notifier`].
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

    /// Tells that a resource changed, to clients that subscribed to it or to a URI above it.
    pub fn resource_updated(&self, uri: &str) {
        self.tell(&Change::Resource(uri.into()));
    }

    /// Gives how many listens run; each subscription of a legacy session counts as one.
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
