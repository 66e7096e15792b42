//! Lists in pages of one size, with cursors that one key seals.

use std::sync::Arc;

use proto::{CacheHint, Object, Raw, Rejection, Request};
use seal::{Sealer, purpose};

/// How a server divides lists.
#[derive(Clone)]
pub(crate) struct Pages {
    /// At most so many entries each.
    pub(crate) size: usize,
    pub(crate) sealer: Sealer,
}

impl Pages {
    /// A page of one of the core's lists.
    pub(crate) fn of_core<'a>(
        &self,
        request: &Request,
        entries: impl Iterator<Item = (u64, &'a Raw)>,
        hint: CacheHint,
    ) -> Result<Object, Rejection> {
        seal::page(entries, request, self.size, hint, &self.sealer)
    }

    /// A page of a list of an extension's own. Its cursors are bound to the method and to the other params.
    pub(crate) fn of_extension<'a>(
        &self,
        request: &Request,
        member: &'static str,
        entries: impl Iterator<Item = (u64, &'a Raw)>,
    ) -> Result<Object, Rejection> {
        let mut asked = request.clone();
        Arc::make_mut(&mut asked.params).take("cursor");
        seal::paged(member, &purpose(&asked), entries, request, self.size, &self.sealer)
    }
}
