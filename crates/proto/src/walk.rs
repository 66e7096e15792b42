//! Requests that no client asked for: to read the lists of a server.

use std::collections::HashSet;
use std::sync::Arc;

use spec::{Method, Revision};

use crate::json::{Object, Raw};
use crate::model::rejection::Rejection;
use crate::model::request::{Answer, Peer, Principal, Request};
use crate::model::service::Service;

/// How many pages of one list are read. Servers send dozens of entries on a page, so this is beyond every real list.
const PAGES: usize = 1000;
/// How many entries of one list are read: ten times what the largest known servers have.
const ENTRIES: usize = 50_000;
/// How many bytes of one list are read, 64 MiB: four messages of the largest size that is accepted by default.
const WEIGHT: usize = 64 << 20;

impl Peer {
    /// The peer of requests that no client asked for. It answers no questions and wants no log messages.
    pub fn own() -> Arc<Peer> {
        Arc::new(Peer::new(Revision::LATEST_MODERN, Principal::local()))
    }
}

impl Request {
    /// Makes a request that no client asked for.
    pub fn own(method: Method, params: Object) -> Request {
        Request::new(method, params, Peer::own())
    }
}

/// Reads all pages of a list.
///
/// A page without a cursor is the last one
/// (<https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/pagination>).
///
/// # Errors
/// Where a page cannot be read, a cursor leads back, or the list is longer than what is read of one.
pub async fn list_all(method: Method, service: &dyn Service) -> Result<Vec<Raw>, Rejection> {
    let mut entries = Vec::new();
    walk(method, service, &mut entries).await?;
    Ok(entries)
}

/// Reads all pages of a list into `entries`. Where it fails or is dropped, `entries` has the pages before that.
///
/// An empty string is a cursor like any other, but many servers of older revisions end their lists with one. Where an
/// empty cursor leads to an error, to the first page or to itself, the list was complete.
///
/// # Errors
/// Where a page cannot be read, a cursor leads back, or the list is longer than what is read of one.
pub async fn walk(method: Method, service: &dyn Service, entries: &mut Vec<Raw>) -> Result<(), Rejection> {
    let lists = method.row().lists.unwrap_or_default();
    let wrong = |why: &str| Rejection::Internal(format!("{}: {why}", method.wire()));
    let mut cursors: HashSet<String> = HashSet::new();
    let mut cursor: Option<Raw> = None;
    let (mut first, mut weight) = (0, 0);
    for number in 0..PAGES {
        let params =
            cursor.iter().fold(Object::new(), |params, cursor| params.with("cursor", cursor.clone()));
        let empty = cursor.as_ref().and_then(Raw::string).is_some_and(|cursor| cursor.is_empty());
        let page = match service.call(Request::own(method.clone(), params)).await {
            Err(_) if empty => return Ok(()),
            Err(why) => return Err(why),
            Ok(Answer::InputRequired(_)) => return Err(wrong("a list asked for input")),
            Ok(Answer::Complete(page)) => page,
        };
        let shown = match page.get(lists).filter(|shown| !shown.is_null()) {
            None => return Err(wrong("the answer has no list")),
            Some(shown) => shown.array().map_err(|e| wrong(&e.to_string()))?,
        };
        if number == 0 {
            first = shown.len();
        } else if empty && shown[..] == entries[..first] {
            return Ok(());
        }
        weight += shown.iter().map(|entry| entry.as_str().len()).sum::<usize>();
        if entries.len() + shown.len() > ENTRIES || weight > WEIGHT {
            return Err(wrong(&format!(
                "the list has more than {ENTRIES} entries or {} MiB, and what comes after them is not read",
                WEIGHT >> 20
            )));
        }
        entries.extend(shown);
        let Some(next) = page.get("nextCursor").filter(|cursor| !cursor.is_null()) else { return Ok(()) };
        if !cursors.insert(next.as_str().to_owned()) {
            // An empty cursor that leads to itself ends the list.
            return if empty { Ok(()) } else { Err(wrong("the cursor does not advance")) };
        }
        cursor = Some(next.clone());
    }
    Err(wrong("the list has too many pages"))
}
