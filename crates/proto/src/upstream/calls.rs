//! Requests to a modern upstream, each with all that it needs.

use std::collections::HashMap;

use bytes::Bytes;
use bytestring::ByteString;
use spec::{Direction, Level, Method, Notice, Question, Revision, Rules, meta};

use crate::gates::admit;
use crate::gates::project;
use crate::json::{Object, Raw};
use crate::model::capability::without_tasks;
use crate::model::event::Event;
use crate::model::input::{InputRequired, InputResponses};
use crate::model::listen::{Change, Filter};
use crate::model::rejection::Rejection;
use crate::model::request::{Answer, Peer, Request};
use crate::rpc::wire::{self, CallKey, Id, Message};
use crate::upstream::output::{Introduction, Outgoing, Output, ask};

/// The requests under way to one modern upstream.
pub struct Calls {
    revision: Revision,
    introduction: Introduction,
    running: HashMap<CallKey, Running>,
}

enum Running {
    Call(Method),
    Listen,
}

impl Calls {
    /// None yet.
    pub fn new(revision: Revision, introduction: Introduction) -> Calls {
        Calls { revision, introduction, running: HashMap::new() }
    }

    /// The revision that is spoken.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// A `server/discover` request, outside all bookkeeping.
    pub fn discover(revision: Revision, introduction: &Introduction) -> Object {
        let mut params = Object::new();
        stamp(&mut params, revision, introduction, None, None);
        params
    }

    pub(crate) fn call(&mut self, key: CallKey, request: &Request) -> Outgoing {
        let mut params = params(request, self.revision);
        if let Some(answers) = &request.answers {
            put_answers(&mut params, answers, self.revision.rules());
        }
        let token = request.wants_progress.then_some(key);
        stamp(&mut params, self.revision, &self.introduction, Some(&request.peer), token);
        self.running.insert(key, Running::Call(request.method.clone()));
        Outgoing {
            before: Vec::new(),
            message: wire::request(&Id::number(key), request.method.wire(), &params),
            params,
        }
    }

    pub(crate) fn listen(&mut self, key: CallKey, filter: &Filter) -> Outgoing {
        let mut params = Object::new().with("notifications", Raw::from(filter.object()));
        stamp(&mut params, self.revision, &self.introduction, None, None);
        self.running.insert(key, Running::Listen);
        let method = Method::SubscriptionsListen.wire();
        Outgoing { before: Vec::new(), message: wire::request(&Id::number(key), method, &params), params }
    }

    pub(crate) fn cancel(&mut self, key: CallKey, reason: &str) -> Vec<Bytes> {
        self.running.remove(&key).map(|_| cancelled(key, reason)).into_iter().collect()
    }

    /// A call or listen is over.
    pub(crate) fn end(
        &mut self,
        key: CallKey,
        answer: impl FnOnce(Method) -> Result<Answer, Rejection>,
    ) -> Vec<Output> {
        match self.running.remove(&key) {
            Some(Running::Call(method)) => vec![Output::Answered(key, answer(method))],
            Some(Running::Listen) => {
                vec![Output::Ended(key, answer(Method::SubscriptionsListen).err())]
            }
            None => Vec::new(),
        }
    }

    pub(crate) fn receive(&mut self, message: Message, on: Option<CallKey>) -> Vec<Output> {
        match message {
            Message::Response { id, outcome } => match id.map_or(on, |id| id.as_number()) {
                Some(key) => self.end(key, |method| read(method, outcome)),
                None => Vec::new(),
            },
            Message::Notification { method, params } => {
                let params = params.and_then(|raw| raw.object().ok()).unwrap_or_default();
                let notice = admit::notice(&method, self.revision, Direction::ToClient);
                notice.map_or_else(Vec::new, |notice| self.notified(notice, params))
            }
            // A modern server sends none; there is nobody to answer it for.
            Message::Request(_) => Vec::new(),
        }
    }

    fn notified(&mut self, notice: Notice, params: Object) -> Vec<Output> {
        let inner = params.get(meta::META).and_then(|raw| raw.object().ok()).unwrap_or_default();
        let listen = inner.get(meta::SUBSCRIPTION_ID).and_then(Id::own);
        match notice {
            Notice::Progress => progress(params, |key| self.running.contains_key(&key)),
            // Over a pipe nothing says whose message it is; with one call under way there is no doubt.
            Notice::Message => match (self.only_call(), log(params)) {
                (Some(key), Some(event)) => vec![Output::Event(key, event)],
                _ => Vec::new(),
            },
            Notice::SubscriptionsAcknowledged => {
                let honoured =
                    params.get("notifications").and_then(|raw| raw.object().ok()).unwrap_or_default();
                listen
                    .map(|key| Output::Listening(key, Filter::read(&honoured).unwrap_or_default()))
                    .into_iter()
                    .collect()
            }
            _ => match (change(notice, &params), listen) {
                (Some(change), Some(key)) => vec![Output::Changed(Some(key), change)],
                _ => Vec::new(),
            },
        }
    }

    fn only_call(&self) -> Option<CallKey> {
        let mut calls =
            self.running.iter().filter(|(_, r)| matches!(r, Running::Call(_))).map(|(key, _)| *key);
        calls.next().filter(|_| calls.next().is_none())
    }
}

/// Returns the params of a request in the form of the server's revision. No member may be null: a client that sends it
/// means that there is nothing. What an extension's method takes is for its server to read, and stays as it was sent.
pub(crate) fn params(request: &Request, revision: Revision) -> Object {
    let mut params = project::params(request, revision);
    if !matches!(request.method, Method::Extension(_)) {
        params.retain(|_, value| !value.is_null());
    }
    params
}

/// Writes the keys of one hop into `_meta`.
fn stamp(
    params: &mut Object,
    revision: Revision,
    introduction: &Introduction,
    peer: Option<&Peer>,
    token: Option<CallKey>,
) {
    let mut inner = params.get(meta::META).and_then(|raw| raw.object().ok()).unwrap_or_default();
    inner.set(meta::PROTOCOL_VERSION, revision.as_str());
    inner.set(meta::CLIENT_INFO, Raw::from(introduction.identity.clone()));
    let declared = peer.map(|peer| declared(peer, revision)).unwrap_or_default();
    inner.set(meta::CLIENT_CAPABILITIES, Raw::from(declared));
    if let Some(level) = peer.and_then(|peer| peer.log_level) {
        inner.set(meta::LOG_LEVEL, level.as_str());
    }
    if let Some(token) = token {
        inner.set(meta::PROGRESS_TOKEN, Raw::of(&token));
    }
    params.set(meta::META, Raw::from(inner));
}

/// Returns what a client declares, as far as a server of the revision can make use of it: which of the core's questions
/// the client answers, and which extensions it has.
fn declared(peer: &Peer, revision: Revision) -> Object {
    let mut declared = peer.capabilities.sent().clone();
    declared.retain(|name, value| match name {
        "extensions" | "experimental" => {
            let crossing = value.object().map(without_tasks).unwrap_or_default();
            let any = !crossing.is_empty();
            *value = crossing.into();
            any
        }
        name => Question::ALL.iter().any(|question| question.needs() == name),
    });
    for revision in [peer.revision, revision] {
        project::object(&mut declared, &spec::fields::CLIENT_CAPABILITIES, revision);
    }
    declared
}

/// Puts answers where a retry carries them; an answer that is an error has no place there and is asked again.
fn put_answers(params: &mut Object, answers: &InputResponses, rules: &Rules) {
    let responses: Object = answers
        .responses
        .iter()
        .filter_map(|(key, outcome)| {
            Some((key.clone(), project::input_response(outcome.as_ref().ok()?.clone(), rules)))
        })
        .collect();
    if !responses.is_empty() {
        params.set("inputResponses", Raw::from(responses));
    }
    if let Some(state) = &answers.state {
        params.set("requestState", state.clone());
    }
}

/// Reads what a modern upstream answered.
fn read(method: Method, outcome: Result<Raw, Raw>) -> Result<Answer, Rejection> {
    let result = outcome.map_err(|error| Rejection::passed(&error))?;
    let mut result =
        result.object().map_err(|e| Rejection::Internal(format!("the server sent no proper result: {e}")))?;
    match sent(&mut result, "resultType").map(|raw| raw.string()) {
        None => Ok(Answer::Complete(result)),
        Some(Some(kind)) if kind == "complete" => Ok(Answer::Complete(without_identity(result))),
        Some(Some(kind)) if kind == "input_required" && method.row().asks => {
            let questions = match sent(&mut result, "inputRequests") {
                None => Vec::new(),
                Some(raw) => {
                    let map = raw.object().map_err(|e| Rejection::Internal(format!("inputRequests: {e}")))?;
                    map.into_iter().map(|(key, raw)| question(key, &raw)).collect::<Result<_, _>>()?
                }
            };
            Ok(Answer::InputRequired(InputRequired { questions, state: sent(&mut result, "requestState") }))
        }
        Some(kind) => {
            let kind = kind.unwrap_or_default();
            Err(Rejection::Internal(format!("the server sent a result of type {kind:?}, which is not known")))
        }
    }
}

/// Takes a member out; one that is null counts as absent.
fn sent(object: &mut Object, name: &str) -> Option<Raw> {
    object.take(name).filter(|raw| !raw.is_null())
}

fn question(
    key: ByteString,
    raw: &Raw,
) -> Result<(ByteString, crate::model::input::InputRequest), Rejection> {
    let object = raw.object().map_err(|e| Rejection::Internal(format!("inputRequests: {e}")))?;
    let method = object.string("method").unwrap_or_default();
    let ask = ask(&method, object.get("params"))
        .map_err(|e| Rejection::Internal(format!("the server asks what cannot be asked: {e}")))?;
    Ok((key, ask))
}

/// Whoever answers downstream names itself.
fn without_identity(mut result: Object) -> Object {
    if let Some(mut inner) = result.get(meta::META).and_then(|raw| raw.object().ok()) {
        inner.take(meta::SERVER_INFO);
        match inner.is_empty() {
            true => drop(result.take(meta::META)),
            false => result.set(meta::META, Raw::from(inner)),
        }
    }
    result
}

/// The notification that gives a request up.
pub(crate) fn cancelled(key: CallKey, reason: &str) -> Bytes {
    let params = Object::new().with("requestId", Raw::of(&key)).with("reason", reason);
    wire::notification(Notice::Cancelled.wire(), Some(&params))
}

/// Reads a progress notification. Its token is the key of a call; that of a call that is not `running` tells nothing.
pub(crate) fn progress(mut params: Object, running: impl FnOnce(CallKey) -> bool) -> Vec<Output> {
    let key = params.take("progressToken").as_ref().and_then(Id::own).filter(|key| running(*key));
    params.take(meta::META);
    key.map(|key| Output::Event(key, Event::Progress(params))).into_iter().collect()
}

/// Reads a log message.
pub(crate) fn log(params: Object) -> Option<Event> {
    let level = params.string("level").and_then(|level| Level::parse(&level))?;
    Some(Event::Log(level, params))
}

/// Reads a change.
pub(crate) fn change(notice: Notice, params: &Object) -> Option<Change> {
    match notice {
        Notice::ToolsListChanged => Some(Change::Tools),
        Notice::PromptsListChanged => Some(Change::Prompts),
        Notice::ResourcesListChanged => Some(Change::Resources),
        Notice::ResourcesUpdated => params.string("uri").map(Change::Resource),
        _ => None,
    }
}
