//! Handshake sessions over Streamable HTTP: the table of them, and what is done with one.
//!
//! <https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http>

use std::fmt::Write as _;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use proto::Rejection;
use proto::downstream::Session;
use proto::downstream::http::{self as rules, Refusal};
use proto::wire::Id;
use spec::header as name;

use super::endpoint::Endpoint;
use super::live::{Live, Use};
use super::response::{full, json};
use super::streams::{EventId, Lost};
use crate::crowd::{Full, Share, Table, Who};

/// How often sessions are looked through for those that nobody uses, at most.
const SWEEP: Duration = Duration::from_secs(30);

/// How many sessions are looked at for one of the least use, from the first on that is idle.
const LOOKED_AT: usize = 64;

/// The live sessions, by id.
#[derive(Default)]
pub(crate) struct Sessions {
    live: Table<Arc<str>, Arc<Live>>,
    /// A task looks for those that nobody uses.
    swept: bool,
}

impl Sessions {
    fn forget_stale(&mut self, idle: Duration) {
        let stale = self.live.oldest(None).filter(|(_, live)| live.is_stale(idle));
        let stale: Vec<Arc<str>> = stale.map(|(id, _)| Arc::clone(id)).collect();
        for live in stale.iter().filter_map(|id| self.live.remove(id)) {
            live.close();
        }
    }

    /// Takes out one session where there may be no more: the longest unused, first of those that nothing came for after
    /// they were opened; one that is read or works only where all are.
    fn make_room(&mut self, share: Share, who: Who) -> Option<(Arc<Live>, Full)> {
        let full = share.room(who, self.live.len(), self.live.len_of(who), 1).err()?;
        let of = full.own().then_some(who);
        let mut in_use = Vec::new();
        let mut found: Option<(Use, Arc<str>)> = None;
        let mut looked_at = 0;
        for (id, live) in self.live.oldest(of) {
            let its = live.in_use();
            if found.as_ref().is_none_or(|(least, _)| its < *least) {
                found = Some((its, Arc::clone(id)));
            }
            match its {
                Use::Read | Use::Works if looked_at == 0 => in_use.push(Arc::clone(id)),
                _ => looked_at += 1,
            }
            if its == Use::None || looked_at == LOOKED_AT {
                break;
            }
        }
        // Whoever looks next need not pass these again.
        for id in in_use {
            self.live.touch(&id);
        }
        let (_, id) = found?;
        self.live.remove(&id).map(|live| (live, full))
    }
}

/// Has sessions forget what they keep for clients that come back, the longest unused first, until all together keep no
/// more than they may; where that is not enough, also what is not read by the connections that they have.
pub(crate) fn forget(endpoint: &Endpoint) {
    let sessions = endpoint.sessions.lock().unwrap_or_else(PoisonError::into_inner);
    for all in [false, true] {
        for (_, live) in sessions.live.oldest(None) {
            if endpoint.kept.is_enough() || all && !endpoint.kept.is_over() {
                return;
            }
            live.forget(all);
        }
    }
}

/// Looks for sessions that nobody uses, as long as there are any.
fn sweep(endpoint: &Arc<Endpoint>) {
    let weak = Arc::downgrade(endpoint);
    let idle = endpoint.options.session_idle;
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(SWEEP.min(idle)).await;
            let Some(endpoint) = weak.upgrade() else { return };
            let mut sessions = endpoint.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            sessions.forget_stale(idle);
            if sessions.live.len() == 0 {
                sessions.swept = false;
                return;
            }
        }
    });
}

/// The open session with this id.
pub(crate) fn find(endpoint: &Endpoint, id: &str) -> Option<Arc<Live>> {
    let mut sessions = endpoint.sessions.lock().unwrap_or_else(PoisonError::into_inner);
    sessions.live.touch(id).cloned()
}

/// Puts a new session into the table; `reply` gets its id.
pub(crate) fn open(
    endpoint: &Arc<Endpoint>,
    session: Session,
    who: Who,
    request: &Id,
    mut reply: Response<Body>,
) -> Result<Response<Body>, Refusal> {
    let unmade = || {
        let why = Rejection::Internal("no session id could be made".into());
        Refusal::of(request, &why).status(StatusCode::SERVICE_UNAVAILABLE)
    };
    let id = session_id().ok_or_else(unmade)?;
    let value = HeaderValue::from_str(&id).map_err(|_| unmade())?;
    let live = Arc::new(Live::new(session, endpoint));
    let mut sessions = endpoint.sessions.lock().unwrap_or_else(PoisonError::into_inner);
    let gone = sessions.make_room(endpoint.crowd.sessions, who);
    sessions.live.insert(id.into(), who, live);
    let sweeping = std::mem::replace(&mut sessions.swept, true);
    drop(sessions);
    if let Some((gone, full)) = gone {
        tracing::debug!("the longest unused session ends: {full}");
        gone.close();
    }
    if !sweeping {
        sweep(endpoint);
    }
    reply.headers_mut().insert(HeaderName::from_static(name::SESSION_ID), value);
    Ok(reply)
}

/// 128 random bits as visible ASCII.
pub(crate) fn session_id() -> Option<String> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(bytes.iter().fold(String::with_capacity(32), |mut id, byte| {
        let _ = write!(id, "{byte:02x}");
        id
    }))
}

/// Ends a session.
pub(crate) fn delete(endpoint: &Endpoint, headers: &HeaderMap, id: &str) -> Result<Response<Body>, Refusal> {
    let live = find(endpoint, id).ok_or_else(rules::no_session)?;
    rules::delete(headers, live.rules())?;
    endpoint.sessions.lock().unwrap_or_else(PoisonError::into_inner).live.remove(id);
    live.close();
    Ok(json(StatusCode::OK, Bytes::from_static(b"{}")))
}

/// Opens a stream of a session, for what concerns no call, or goes on with a stream that broke off.
pub(crate) fn get(
    endpoint: &Arc<Endpoint>,
    headers: &HeaderMap,
    id: &str,
    who: Who,
) -> Result<Response<Body>, Refusal> {
    let live = find(endpoint, id).ok_or_else(rules::no_session)?;
    rules::get(headers, live.rules())?;
    let room = endpoint.crowd.listens.enter(who).map_err(|limit| full(&limit))?;
    let Some(seen) = headers.get(name::LAST_EVENT_ID) else {
        if live.own_streams() >= endpoint.options.streams {
            return Err(no_more_streams());
        }
        return Ok(live.stream(&endpoint.options, &endpoint.shutdown, room));
    };
    let seen = seen.to_str().ok().and_then(EventId::read).ok_or(Lost::Unknown);
    seen.and_then(|seen| live.resume(seen, &endpoint.options, &endpoint.shutdown, room)).map_err(|lost| {
        let bad = |why| Refusal::new(StatusCode::BAD_REQUEST, why);
        match lost {
            Lost::Unknown => bad("Last-Event-ID names no event of this session"),
            Lost::Forgotten => bad("what followed that event is no longer kept; ask again"),
            Lost::Full => no_more_streams(),
        }
    })
}

fn no_more_streams() -> Refusal {
    let why = "this session has as many open streams as it may";
    Refusal::new(StatusCode::TOO_MANY_REQUESTS, why)
}
