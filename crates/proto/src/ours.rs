//! Requests that dateline makes on its own account.

use std::sync::Arc;

use spec::{Method, Revision};

use crate::capability::ClientCapabilities;
use crate::raw::{Object, Raw};
use crate::rejection::Rejection;
use crate::service::{Answer, EventSink, Peer, Principal, Request, Service};
use crate::wire::Id;

/// At most so many pages of one list are taken.
const PAGES: usize = 1000;

impl Peer {
    /// Ourselves: a peer that can be asked nothing and wants no logs.
    pub fn ours() -> Arc<Peer> {
        Arc::new(Peer {
            revision: Revision::LATEST_MODERN,
            capabilities: Arc::new(ClientCapabilities::default()),
            client: None,
            log_level: None,
            principal: Principal::local(),
        })
    }
}

impl Request {
    /// A request of our own.
    pub fn ours(method: Method, params: Object) -> Request {
        Request {
            id: Id::number(0),
            method,
            params,
            answers: None,
            peer: Peer::ours(),
            wants_progress: false,
            events: EventSink::discard(),
        }
    }
}

/// Walks a list to its end. Only the absence of a cursor ends it; one that does not advance is an error
/// (<https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/pagination>).
///
/// # Errors
/// When a page cannot be had or is none.
pub async fn list_all(method: Method, service: &dyn Service) -> Result<Vec<Raw>, Rejection> {
    let lists = method.row().lists.unwrap_or_default();
    let wrong = |why: &str| Rejection::Internal(format!("{}: {why}", method.wire()));
    let mut entries = Vec::new();
    let mut cursors: Vec<Raw> = Vec::new();
    for _ in 0..PAGES {
        let mut params = Object::new();
        if let Some(cursor) = cursors.last() {
            params.set("cursor", cursor.clone());
        }
        let Answer::Complete(mut page) = service.call(Request::ours(method, params)).await? else {
            return Err(wrong("a list asked for input"));
        };
        let shown = page.get(lists).ok_or_else(|| wrong("the answer has no list"))?;
        entries.extend(shown.array().map_err(|e| wrong(&e.to_string()))?);
        match page.take("nextCursor").filter(|cursor| !cursor.is_null()) {
            None => return Ok(entries),
            Some(cursor) if cursors.contains(&cursor) => return Err(wrong("the cursor does not advance")),
            Some(cursor) => cursors.push(cursor),
        }
    }
    Err(wrong("the list has too many pages"))
}
