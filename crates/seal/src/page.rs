//! Lists in pages, with sealed cursors that any process with the key can go on from.

use std::time::Duration;

use proto::{CacheHint, Object, Raw, Rejection, Request, project};

use crate::Sealer;

/// How long a cursor can be used.
const CURSOR_TTL: Duration = Duration::from_secs(3600);

/// Makes a page of a list that is in a fixed order: at most `size` entries behind the place that the request's cursor
/// names. Places grow from entry to entry, and an entry keeps its own.
///
/// # Errors
/// When the cursor was not issued for this list and principal, or has expired.
pub fn page<'a>(
    entries: impl Iterator<Item = (u64, &'a Raw)>,
    request: &Request,
    size: usize,
    hint: CacheHint,
    sealer: &Sealer,
) -> Result<Object, Rejection> {
    let name = request.method.row().lists.unwrap_or_default();
    let mut result = paged(name, name, entries, request, size, sealer)?;
    project::hint(&mut result, hint);
    Ok(result)
}

/// Makes a page of any list, without a cache hint. `purpose` binds the cursors to the list.
///
/// # Errors
/// As [`page`].
pub fn paged<'a>(
    name: &'static str,
    purpose: &str,
    entries: impl Iterator<Item = (u64, &'a Raw)>,
    request: &Request,
    size: usize,
    sealer: &Sealer,
) -> Result<Object, Rejection> {
    let principal = &request.peer.principal;
    let behind: u64 = match request.params.get("cursor") {
        None => 0,
        Some(cursor) => {
            let wrong = || Rejection::Params("the cursor was not issued here, or has expired".into());
            let sealed = cursor.string().ok_or_else(wrong)?;
            sealer.open(purpose, principal, &sealed).map_err(|_| wrong())?
        }
    };
    let mut rest = entries.skip_while(|(place, _)| *place <= behind);
    let shown: Vec<(u64, Raw)> = rest.by_ref().take(size).map(|(place, raw)| (place, raw.clone())).collect();
    let last = shown.last().map_or(behind, |(place, _)| *place);
    let shown: Vec<Raw> = shown.into_iter().map(|(_, raw)| raw).collect();
    let mut result = Object::new().with(name, Raw::list(&shown));
    if rest.next().is_some() {
        let cursor = sealer
            .seal(purpose, principal, CURSOR_TTL, &last)
            .map_err(|_| Rejection::Internal("no cursor could be made".into()))?;
        result.set("nextCursor", cursor.as_str());
    }
    Ok(result)
}
