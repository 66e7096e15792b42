//! Handshake sessions over Streamable HTTP: the table of them, and what is done with one.
//!
//! <https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http>

use std::fmt::Write as _;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use proto::downstream::Session;
use proto::{Rejection, wire};
use spec::{Era, header as name};

use super::door::Accept;
use super::live::{Live, Use};
use super::respond::one;
use super::streams::{EventId, Lost};
use super::{App, Refusal, door, json, principal};
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
pub(crate) fn forget(app: &App) {
    let sessions = app.sessions.lock().unwrap_or_else(PoisonError::into_inner);
    for all in [false, true] {
        for (_, live) in sessions.live.oldest(None) {
            if app.kept.is_enough() || all && !app.kept.is_over() {
                return;
            }
            live.forget(all);
        }
    }
}

/// Looks for sessions that nobody uses, as long as there are any.
fn sweep(app: &Arc<App>) {
    let weak = Arc::downgrade(app);
    let idle = app.options.session_idle;
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(SWEEP.min(idle)).await;
            let Some(app) = weak.upgrade() else { return };
            let mut sessions = app.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            sessions.forget_stale(idle);
            if sessions.live.len() == 0 {
                sessions.swept = false;
                return;
            }
        }
    });
}

/// The live session that a request names.
pub(crate) fn find(app: &App, headers: &HeaderMap) -> Option<Arc<Live>> {
    let id = headers.get(name::SESSION_ID)?.to_str().ok()?;
    let mut sessions = app.sessions.lock().unwrap_or_else(PoisonError::into_inner);
    sessions.live.touch(id).cloned()
}

/// A session that is not, or no longer, there.
pub(crate) fn no_session() -> Refusal {
    Refusal::plain(StatusCode::NOT_FOUND, "there is no such session; open a new one with initialize")
}

/// Opens a session.
pub(crate) fn initialize(
    app: &Arc<App>,
    call: &wire::Call,
    accept: Accept,
    who: Who,
) -> Result<Response<Body>, Refusal> {
    let refuse = |status, rejection: &Rejection| Refusal { status, ..Refusal::of(&call.id, rejection) };
    let (session, reply) = Session::open(call, &app.served, principal())
        .map_err(|rejection| refuse(StatusCode::BAD_REQUEST, &rejection))?;
    let unmade = || {
        refuse(StatusCode::SERVICE_UNAVAILABLE, &Rejection::Internal("no session id could be made".into()))
    };
    let id = session_id().ok_or_else(unmade)?;
    let value = HeaderValue::from_str(&id).map_err(|_| unmade())?;
    let live = Arc::new(Live::new(session, app));
    let mut sessions = app.sessions.lock().unwrap_or_else(PoisonError::into_inner);
    let gone = sessions.make_room(app.crowd.sessions, who);
    sessions.live.insert(id.into(), who, live);
    let sweeping = std::mem::replace(&mut sessions.swept, true);
    drop(sessions);
    if let Some((gone, full)) = gone {
        tracing::debug!("the longest unused session ends: {full}");
        gone.close();
    }
    if !sweeping {
        sweep(app);
    }
    let mut response = one(reply, accept, app.options.keep_alive);
    response.headers_mut().insert(HeaderName::from_static(name::SESSION_ID), value);
    Ok(response)
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
pub(crate) fn delete(app: &App, headers: &HeaderMap) -> Result<Response<Body>, Refusal> {
    let Some(id) = named(app, headers)? else { return Err(no_stream()) };
    let live = find(app, headers).ok_or_else(no_session)?;
    of_revision(&live, headers)?;
    app.sessions.lock().unwrap_or_else(PoisonError::into_inner).live.remove(id);
    live.close();
    Ok(json(StatusCode::OK, Bytes::from_static(b"{}")))
}

/// The session id of a request that needs one; `None` where there is none, or none is served.
fn named<'a>(app: &App, headers: &'a HeaderMap) -> Result<Option<&'a str>, Refusal> {
    if !app.served.revisions.serves(Era::Legacy) {
        return Ok(None);
    }
    match headers.get(name::SESSION_ID) {
        None => Ok(None),
        Some(value) => value.to_str().map(Some).map_err(|_| no_session()),
    }
}

/// Said to what names a live session and another revision than its own.
pub(crate) const OTHER_REVISION: &str = "the version header does not name this session's revision";

/// Whether the version header, where there is one, names the session's revision.
pub(crate) fn is_of_revision(live: &Live, headers: &HeaderMap) -> bool {
    let version = headers.get(name::PROTOCOL_VERSION);
    version.is_none_or(|version| version.as_bytes() == live.rules().revision.as_str().as_bytes())
}

fn of_revision(live: &Live, headers: &HeaderMap) -> Result<(), Refusal> {
    if is_of_revision(live, headers) { Ok(()) } else { Err(other_revision()) }
}

/// The refusal of what names a live session and another revision than its own.
pub(crate) fn other_revision() -> Refusal {
    Refusal::plain(StatusCode::BAD_REQUEST, OTHER_REVISION)
}

fn no_stream() -> Refusal {
    Refusal::allowing("POST", "GET and DELETE are of a session; this request names none")
}

/// Opens a stream of a session, for what concerns no call, or goes on with a stream that broke off.
pub(crate) fn get(app: &Arc<App>, headers: &HeaderMap, who: Who) -> Result<Response<Body>, Refusal> {
    if named(app, headers)?.is_none() {
        return Err(no_stream());
    }
    let live = find(app, headers).ok_or_else(no_session)?;
    of_revision(&live, headers)?;
    if !door::accept(headers)?.stream {
        return Err(Refusal::plain(
            StatusCode::NOT_ACCEPTABLE,
            "a GET is answered by text/event-stream only",
        ));
    }
    let room = app.crowd.listens.enter(who).map_err(|full| Refusal::full(&full))?;
    let Some(seen) = headers.get(name::LAST_EVENT_ID) else {
        if live.own_streams() >= app.options.streams {
            return Err(no_more_streams());
        }
        return Ok(live.stream(&app.options, &app.shutdown, room));
    };
    let seen = seen.to_str().ok().and_then(EventId::read).ok_or(Lost::Unknown);
    seen.and_then(|seen| live.resume(seen, &app.options, &app.shutdown, room)).map_err(|lost| {
        let bad = |why| Refusal::plain(StatusCode::BAD_REQUEST, why);
        match lost {
            Lost::Unknown => bad("Last-Event-ID names no event of this session"),
            Lost::Forgotten => bad("what followed that event is no longer kept; ask again"),
            Lost::Full => no_more_streams(),
        }
    })
}

fn no_more_streams() -> Refusal {
    let why = "this session has as many open streams as it may";
    Refusal::plain(StatusCode::TOO_MANY_REQUESTS, why)
}
