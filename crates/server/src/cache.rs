//! How long clients may keep what they were given.

use std::time::Duration;

use proto::CacheHint;

/// Who may use a result that a client or a proxy keeps.
///
/// <https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching>
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CacheScope {
    /// Every caller: the result is the same for all of them.
    Public,
    /// The caller that asked, and nobody else.
    Private,
}

impl CacheScope {
    /// A hint that a result of this scope is fresh for a time.
    pub fn hint(self, ttl: Duration) -> CacheHint {
        match self {
            CacheScope::Public => CacheHint::public(ttl),
            CacheScope::Private => CacheHint::private(ttl),
        }
    }
}
