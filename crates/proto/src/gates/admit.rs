//! The gate for requests: it decides whether a peer may send a message at this moment.

use bytestring::ByteString;
use http::HeaderMap;
use spec::fields::REQUEST_PARAMS;
use spec::shape::Holds;
use spec::{Direction, Era, Level, Method, Notice, Revision, Revisions, Shape, header as name, meta};
use std::sync::Arc;

use crate::clipped::clipped;
use crate::header;
use crate::json::{Object, Raw};
use crate::model::capability::ClientCapabilities;
use crate::model::event::EventSink;
use crate::model::input::{InputRequired, InputResponses};
use crate::model::rejection::Rejection;
use crate::model::request::{Peer, Principal, Request};
use crate::model::service::{Description, Service};
use crate::rpc::wire::{Call, Id, Limits};

/// A modern request that was accepted, with its progress token.
pub(crate) struct Admitted {
    pub(crate) request: Request,
    pub(crate) token: Option<Raw>,
    /// What the service said of itself when the request came.
    pub(crate) description: Arc<Description>,
}

/// Returns whether the params name a revision in `_meta`, as those of every modern request do.
pub(crate) fn is_marked_modern(call: &Call) -> bool {
    let inner = call.opened().ok().and_then(|opened| opened.meta.as_ref());
    inner.is_some_and(|inner| inner.get(meta::PROTOCOL_VERSION).is_some())
}

/// Accepts or refuses a modern request.
///
/// It checks in this order: the fields of `_meta`, the version header, the version, the other headers, the method, the
/// params. So a client learns first what it has to change first.
pub(crate) fn modern(
    call: &Call,
    headers: Option<&HeaderMap>,
    service: &dyn Service,
    served: Revisions,
    principal: &Principal,
) -> Result<Admitted, Rejection> {
    let opened = call.opened().map_err(|_| {
        Rejection::Meta(format!("\"params\" must be an object with a {:?} object", meta::META))
    })?;
    let mut params = opened.params.clone();
    let sent = params.get(meta::META).cloned();
    without_nulls(&mut params, &call.method, Revision::LATEST_MODERN);
    let mut inner = match params.get(meta::META) {
        changed if changed != sent.as_ref() => changed.and_then(|raw| raw.object().ok()),
        _ => opened.meta.clone(),
    }
    .ok_or_else(|| missing(meta::META, "an object", served))?;
    let requested = inner
        .string(meta::PROTOCOL_VERSION)
        .ok_or_else(|| missing(meta::PROTOCOL_VERSION, "a string", served))?;
    let capabilities = inner
        .get(meta::CLIENT_CAPABILITIES)
        .and_then(|raw| raw.object().ok())
        .ok_or_else(|| missing(meta::CLIENT_CAPABILITIES, "an object, {} when there are none", served))?;
    if let Some(headers) = headers {
        header::must_equal(headers, name::PROTOCOL_VERSION, &requested).map_err(Rejection::Headers)?;
    }
    let revision = Revision::parse(&requested)
        .filter(|r| r.era() == Era::Modern && served.contains(*r))
        .ok_or(Rejection::UnsupportedVersion { requested, served })?;
    if let Some(headers) = headers {
        mirrored(headers, call, &params, service).map_err(Rejection::Headers)?;
    }
    let description = service.describe();
    let method = method(&call.method, revision, &description)?;
    declared(&method, &capabilities, &description)?;
    let log_level = match inner.get(meta::LOG_LEVEL) {
        None => None,
        Some(raw) => Some(level(raw).map_err(Rejection::Params)?),
    };
    let token = progress_token(&inner)?;
    let peer = Arc::new(Peer {
        revision,
        capabilities: Arc::new(ClientCapabilities::read(capabilities, revision)),
        client: inner.take(meta::CLIENT_INFO),
        log_level,
        principal: principal.clone(),
    });
    let answers = if method.row().asks { answers(&mut params)? } else { None };
    strip(&mut params, inner);
    let wants_progress = token.is_some();
    let id = call.id.clone();
    let (params, answers) = (Arc::new(params), answers.map(Arc::new));
    let (head, events) = (call.head.clone(), EventSink::discard());
    let request = Request { id, method, params, answers, peer, head, wants_progress, events };
    Ok(Admitted { request, token, description })
}

fn missing(field: &str, what: &str, served: Revisions) -> Rejection {
    let modern: Vec<_> = served.and(Revisions::MODERN).iter().map(Revision::as_str).collect();
    Rejection::Meta(format!(
        "the request's _meta lacks {field:?} ({what}); every request of {} carries {:?} and {:?}",
        modern.join(", "),
        meta::PROTOCOL_VERSION,
        meta::CLIENT_CAPABILITIES
    ))
}

/// Checks the headers that repeat the method, the name and the arguments.
fn mirrored(headers: &HeaderMap, call: &Call, params: &Object, service: &dyn Service) -> Result<(), String> {
    header::must_equal(headers, name::METHOD, &call.method)?;
    let Some(method) = Method::parse(&call.method) else { return Ok(()) };
    let Some(named) = method.row().named_by.and_then(|by| params.string(by)) else { return Ok(()) };
    header::must_equal(headers, name::NAME, &named)?;
    if method == Method::ToolsCall {
        header::check_header_params(headers, &service.header_params(&named), params.get("arguments"))?;
    }
    Ok(())
}

/// Returns the method of this name, where the revision has it and the server declares what it needs, or where an
/// extension may add it.
pub(crate) fn method(wire: &str, revision: Revision, server: &Description) -> Result<Method, Rejection> {
    let core = Method::parse(wire)
        .filter(|m| m.exists(revision))
        .filter(|m| server.capabilities.satisfies(m.row().needs));
    let of_extension = || {
        // Only modern requests can declare extensions.
        let added = server.methods.iter().find(|added| *added.wire == *wire);
        added
            .filter(|_| revision.era() == Era::Modern)
            .map(|added| Method::Extension(Arc::clone(&added.wire)))
    };
    let unknown = || {
        let taken = server.takes_unknown_methods && !Method::is_of_core(wire);
        taken.then(|| Method::Extension(wire.into()))
    };
    core.or_else(of_extension)
        .or_else(unknown)
        .ok_or_else(|| Rejection::UnknownMethod(clipped(wire, METHOD_SHOWN)))
}

/// Returns the notification of this name, where the revision has it in this direction. Any other notification is
/// ignored, since nothing answers a notification.
pub(crate) fn notice(wire: &str, revision: Revision, direction: Direction) -> Option<Notice> {
    let notice = Notice::parse(wire)?;
    let row = notice.row();
    let may = row.exists.contains(revision)
        && matches!(row.direction, way if way == direction || way == Direction::Both);
    may.then_some(notice)
}

/// Checks that the client declared the extension of a method, where the extension requires that.
fn declared(method: &Method, sent: &Object, server: &Description) -> Result<(), Rejection> {
    let Method::Extension(wire) = method else { return Ok(()) };
    let added = server.methods.iter().find(|added| added.wire == *wire && added.for_declared);
    let Some(added) = added else { return Ok(()) };
    let extensions = sent.get("extensions").and_then(|raw| raw.object().ok()).unwrap_or_default();
    if extensions.get(&added.extension).is_some() {
        return Ok(());
    }
    let missing = Object::new().with(added.extension.to_string(), Raw::literal("{}"));
    Err(Rejection::MissingCapability(Object::new().with("extensions", Raw::from(missing))))
}

/// Returns the params as an object. Absent params and `null` count as an empty object.
pub(crate) fn opened(params: Option<&Raw>) -> Result<Object, Rejection> {
    params.filter(|raw| !raw.is_null()).map_or_else(
        || Ok(Object::new()),
        |raw| raw.object().map_err(|e| Rejection::Params(format!("\"params\" must be an object: {e}"))),
    )
}

/// Removes the fields that are `null` where the params may lack the field: some clients write an absent field so.
/// Fields that no row names stay.
pub(crate) fn without_nulls(params: &mut Object, method: &str, revision: Revision) {
    let known = Method::parse(method).map_or(&REQUEST_PARAMS, |method| method.row().params);
    without(params, known, revision);
}

/// Removes such fields of one object. Returns whether it changed the object: an unchanged one keeps its text.
fn without(object: &mut Object, known: &Shape, revision: Revision) -> bool {
    let mut changed = false;
    object.retain(|name, value| {
        let Some(field) = known.field(name) else { return true };
        if value.is_null() {
            let stays = field.required.contains(revision);
            changed |= !stays;
            return stays;
        }
        if let Holds::Object(shape) = field.holds
            && value.as_str().contains("null")
            && let Ok(mut inner) = value.object()
            && without(&mut inner, shape, revision)
        {
            changed = true;
            *value = inner.into();
        }
        true
    });
    changed
}

/// Reads a log level.
pub(crate) fn level(raw: &Raw) -> Result<Level, String> {
    raw.string().and_then(|text| Level::parse(&text)).ok_or_else(|| {
        let levels: Vec<_> = Level::ALL.iter().map(|l| l.as_str()).collect();
        format!("unknown log level {}; it is one of {}", clipped(raw.as_str(), SHOWN), levels.join(", "))
    })
}

/// Reads the progress token, a string or an integer, out of `_meta`.
pub(crate) fn progress_token(inner: &Object) -> Result<Option<Raw>, Rejection> {
    match inner.get(meta::PROGRESS_TOKEN) {
        None => Ok(None),
        Some(raw) if Id::read(raw).is_some() => Ok(Some(raw.clone())),
        Some(_) => Err(Rejection::Params("progressToken must be a string or an integer".into())),
    }
}

/// Removes the answers to earlier questions from the params and returns them.
fn answers(params: &mut Object) -> Result<Option<InputResponses>, Rejection> {
    let state = params.take("requestState");
    if state.as_ref().is_some_and(|state| !state.starts_with('"')) {
        return Err(Rejection::Params("requestState must be the string that came with the questions".into()));
    }
    let responses = match params.take("inputResponses") {
        None => Vec::new(),
        Some(raw) => {
            let map = raw
                .object()
                .map_err(|e| Rejection::Params(format!("inputResponses must be an object: {e}")))?;
            let answer = |(key, value): (ByteString, Raw)| match value.starts_with('{') {
                true => Ok((key, Ok(value))),
                false => Err(Rejection::Params(format!("the input response {key:?} must be an object"))),
            };
            map.into_iter().map(answer).collect::<Result<Vec<_>, _>>()?
        }
    };
    Ok((state.is_some() || !responses.is_empty()).then_some(InputResponses { responses, state }))
}

/// Puts `_meta` back without the keys that concern only this client and this server.
pub(crate) fn strip(params: &mut Object, mut inner: Object) {
    inner.retain(|key, _| !meta::OF_ONE_HOP.contains(&key));
    if inner.is_empty() {
        params.take(meta::META);
    } else {
        params.set(meta::META, Raw::from(inner));
    }
}

/// Checks that the peer may be asked all these questions, and that the method may be answered by questions.
pub(crate) fn interim(interim: &InputRequired, method: &Method, peer: &Peer) -> Result<(), Rejection> {
    if !method.row().asks {
        return Err(Rejection::Internal(format!("{} cannot be answered by a question", method.wire())));
    }
    if interim.questions.is_empty() && interim.state.is_none() {
        return Err(Rejection::Internal("input is required, but nothing is asked".into()));
    }
    match interim.questions.iter().find_map(|(_, ask)| peer.capabilities.lacks(ask)) {
        Some(needed) => Err(Rejection::MissingCapability(needed)),
        None => Ok(()),
    }
}

/// Checks that a client may send one more request while others wait for their answers. `running` has the id and the
/// bytes of each of them.
pub(crate) fn room<'a>(
    call: &Call,
    running: impl ExactSizeIterator<Item = (&'a Id, usize)>,
    limits: &Limits,
) -> Result<(), Rejection> {
    let id = &call.id;
    if running.len() >= limits.calls {
        let why =
            format!("{} requests are under way, which is the limit; wait for some to end", limits.calls);
        return Err(Rejection::Internal(why));
    }
    let mut weight = 0;
    for (other, of_it) in running {
        if other == id {
            let why = format!(
                "the id {} belongs to a request that is still under way",
                clipped(id.as_str(), SHOWN)
            );
            return Err(Rejection::Invalid(why));
        }
        weight += of_it;
    }
    if weight > 0 && weight + call.weight() > limits.under_way {
        return Err(Rejection::Internal(format!(
            "the requests under way are {weight} bytes long, and {} are the limit; wait for some to end",
            limits.under_way
        )));
    }
    Ok(())
}

/// How many characters of a peer's value an error message shows: enough to recognize the value.
const SHOWN: usize = 60;
/// How many characters of a method's name an error message shows: no method of the protocol is half as long.
const METHOD_SHOWN: usize = 200;

/// How many bytes the URI of a watched resource may have: 8 KiB, as much as HTTP servers usually accept. A session that
/// watches a thousand of them needs no more memory than one message of the largest size.
const WATCHED: usize = 8 << 10;

/// Returns a copy of a URI that is kept as long as it is watched. A slice would keep its whole message in memory.
pub(crate) fn watchable(uri: &str) -> Result<ByteString, Rejection> {
    if uri.len() <= WATCHED {
        return Ok(uri.into());
    }
    Err(Rejection::Params(format!("a URI of {} bytes cannot be watched; {WATCHED} are the limit", uri.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_is_taken_where_its_row_has_it_and_from_whom_it_names() {
        let (legacy, modern) = (Revision::LATEST_LEGACY, Revision::LATEST_MODERN);
        for (taken, revisions, directions) in [
            (Notice::Initialized, &[legacy][..], &[Direction::ToServer][..]),
            (Notice::Cancelled, &[legacy, modern], &[Direction::ToServer, Direction::ToClient]),
            (Notice::ToolsListChanged, &[legacy, modern], &[Direction::ToClient]),
            (Notice::SubscriptionsAcknowledged, &[modern], &[Direction::ToClient]),
        ] {
            for revision in [legacy, modern] {
                for direction in [Direction::ToServer, Direction::ToClient] {
                    let due = revisions.contains(&revision) && directions.contains(&direction);
                    let found = notice(taken.wire(), revision, direction);
                    assert_eq!(found, due.then_some(taken), "{taken:?} {revision} {direction:?}");
                }
            }
        }
        assert_eq!(notice("notifications/other", legacy, Direction::ToServer), None);
    }
}
