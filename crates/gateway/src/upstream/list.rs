//! The lists that the gateway keeps of each server.

use std::sync::Arc;

use proto::Raw;
use tokio::time::Instant;

use super::offer::Offer;

/// A list of a server, as it was last read.
#[derive(Default)]
pub(crate) struct CachedList {
    /// Its entries as the server sent them.
    pub(super) sent: Vec<Raw>,
    /// Its entries as they are shown.
    pub(super) offer: Arc<Offer>,
    /// When it was last read as a whole.
    pub(super) read: Option<Instant>,
    /// When the last attempt to read it began.
    pub(super) begun: Option<Instant>,
    /// How many attempts to read it have ended.
    pub(super) tries: u64,
    /// Why the last attempt failed, when it did.
    pub(super) trouble: Option<String>,
}
