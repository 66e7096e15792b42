//! A handshake session, seen from the server: a machine that a transport drives.
//!
//! It keeps what the modern era carries in each request (revision, capabilities, log level), and turns *input
//! required* into requests of its own on the call's stream.

mod batch;
mod call;
mod deferred;
mod initialize;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use bytestring::ByteString;
use serde::{Deserialize, Serialize};
use spec::{Direction, Method, Notice, Rules, meta};

use crate::downstream::output::{Output, Served, refuse, unreadable};
use crate::downstream::session::batch::{BatchId, Batches};
use crate::downstream::session::call::{Call, Repeat, Work};
use crate::downstream::session::deferred::Deferred;
use crate::downstream::stream::{self, Stream};
use crate::gates::admit;
use crate::gates::project::{self, ResultMeta};
use crate::json::{Object, Raw};
use crate::model::event::Event;
use crate::model::input::{InputRequest, InputRequired, InputResponses};
use crate::model::listen::{Change, Filter};
use crate::model::params::required_string;
use crate::model::rejection::Rejection;
use crate::model::request::{Answer, Peer, Principal};
use crate::rpc::wire::{self, CallKey, ErrorId, Id, Message};
use crate::saved::Format;

/// How often one call may ask before it is taken for one that never ends.
const ROUNDS: u32 = 32;

/// The key of the listen that every session has.
const LISTEN: CallKey = 0;

/// One handshake session.
///
/// It is plain data: serde writes it as JSON and reads it back, so that a session can leave its process and go on in
/// another one. Work that runs for its calls is not in it. A broken session, and one of a newer format, is an error.
#[derive(Debug, Serialize, Deserialize)]
pub struct Session {
    format: Format,
    peer: Arc<Peer>,
    /// The client said that it is initialized. Until then it is sent answers, pings and log messages only.
    ready: bool,
    /// Questions and changes that wait for that.
    held: Vec<Deferred>,
    calls: BTreeMap<CallKey, Call>,
    /// Subscribed resources, with the listen of each.
    watched: BTreeMap<ByteString, CallKey>,
    /// Questions that wait for an answer: the call, and the question in it by its key.
    questions: BTreeMap<u64, (CallKey, ByteString, InputRequest)>,
    batches: Batches,
    #[serde(deserialize_with = "crate::saved::counter")]
    next_key: CallKey,
    #[serde(deserialize_with = "crate::saved::counter")]
    next_question: u64,
}

impl Session {
    /// Opens a session by an `initialize` request; gives the reply.
    ///
    /// # Errors
    /// When the request is not a proper one. A revision that is not served is not an error: the reply names
    /// another one.
    pub fn open(
        call: &wire::Call,
        served: &Served,
        principal: Principal,
    ) -> Result<(Session, Bytes), Rejection> {
        let (peer, reply) = initialize::open(call, served, principal)?;
        let session = Session {
            format: Format,
            peer: Arc::new(peer),
            ready: false,
            held: Vec::new(),
            calls: BTreeMap::new(),
            watched: BTreeMap::new(),
            questions: BTreeMap::new(),
            batches: Batches::default(),
            next_key: LISTEN + 1,
            next_question: 1,
        };
        Ok((session, reply))
    }

    /// How the session's revision behaves.
    pub fn rules(&self) -> &'static Rules {
        self.peer.revision.rules()
    }

    /// Returns the principal that opened the session.
    pub fn principal(&self) -> &Principal {
        &self.peer.principal
    }

    /// How many calls are under way.
    pub fn in_flight(&self) -> usize {
        self.calls.len()
    }

    /// How many calls are worked on: not those whose client is asked something.
    pub fn owed(&self) -> usize {
        self.calls.values().filter(|call| !call.waits()).count()
    }

    /// Whether the service works on a call. A subscription that is being set up is none.
    pub fn works(&self) -> bool {
        self.calls.values().any(Call::works)
    }

    /// Takes in one message. `askable` says whether questions about it could be put to the client: over HTTP they
    /// need an event stream in answer.
    pub fn receive(&mut self, message: Message, served: &Served, askable: bool) -> Vec<Output> {
        match message {
            Message::Request(call) => match self.request(&call, served, askable) {
                Ok(outputs) => outputs,
                Err(rejection) => vec![Output::Reply(refuse(&call.id, &rejection, self.rules()))],
            },
            Message::Notification { method, params } => self.notified(&method, params.as_ref(), served),
            Message::Response { id, outcome } => self.response(id.as_ref(), outcome),
        }
    }

    /// Takes in several messages of one array, where the revision has that. Its requests are answered together, in
    /// one array.
    ///
    /// <https://modelcontextprotocol.io/specification/2025-03-26/basic#batching>
    pub fn batch(&mut self, batch: &wire::Batch, served: &Served, askable: bool) -> Vec<Output> {
        let rules = self.rules();
        if let Some(refusal) = self.refuses(batch, served) {
            return vec![Output::Reply(refusal)];
        }
        let name = self.batches.begin();
        let mut outputs = Vec::new();
        for element in batch.sent.array().unwrap_or_default() {
            match wire::sort(element) {
                Err(error) => self.batches.add(name, unreadable(&error, rules)),
                Ok(Message::Request(call)) => {
                    let mut call = call;
                    call.head.clone_from(&batch.head);
                    let began = match Method::parse(&call.method) {
                        Some(Method::Initialize) => {
                            let why = Rejection::Invalid("initialize comes alone, not in an array".into());
                            vec![Output::Reply(refuse(&call.id, &why, rules))]
                        }
                        _ => self.receive(Message::Request(call), served, askable),
                    };
                    for output in began {
                        if let Output::Start(key, _) | Output::Listen(key, _, _) = &output
                            && let Some(call) = self.calls.get_mut(key)
                        {
                            call.batch = Some(name);
                            self.batches.enter(name);
                        }
                        match output {
                            Output::Reply(bytes) => self.batches.add(name, Some(bytes)),
                            other => outputs.push(other),
                        }
                    }
                }
                Ok(message) => outputs.extend(self.receive(message, served, askable)),
            }
        }
        outputs.extend(self.batches.leave(name).map(Output::Reply));
        outputs
    }

    /// The refusal of a whole array: of one in a revision that has none, of an empty one, and of one that holds more
    /// messages than it may.
    pub fn refuses(&self, batch: &wire::Batch, served: &Served) -> Option<Bytes> {
        let rules = self.rules();
        if !rules.batches {
            return unreadable(&wire::Unreadable::Batch(batch.clone()), rules);
        }
        let why = batch::refusal(&batch.sent, served.limits.batch)?;
        let id = ErrorId::unknown(rules);
        Some(wire::error(id, &Rejection::Invalid(why).render(rules).error))
    }

    /// A response, or what stands for it where the answers of its batch become longer than one message may be.
    fn fitting(&self, batch: Option<BatchId>, id: &Id, response: Bytes, served: &Served) -> Bytes {
        let most = served.limits.message;
        let others = batch.map_or(0, |name| self.batches.bytes(name));
        if others == 0 || others + response.len() <= most {
            return response;
        }
        let why = format!(
            "the answers of this array are longer than {most} bytes together, which is the limit; ask for this alone"
        );
        refuse(id, &Rejection::Internal(why), self.rules())
    }

    /// Whether a key is that of a call under way.
    pub fn is_call(&self, key: CallKey) -> bool {
        self.calls.contains_key(&key)
    }

    /// A call is over, with its response where it has one. In a batch the last one that ends sends all responses.
    fn end(&mut self, key: CallKey, batch: Option<BatchId>, response: Option<Bytes>) -> Vec<Output> {
        let response = match batch {
            None => response,
            Some(name) => {
                self.batches.add(name, response);
                self.batches.leave(name)
            }
        };
        response.map(|bytes| Output::Send(key, bytes)).into_iter().chain([Output::Finish(key)]).collect()
    }

    fn request(
        &mut self,
        call: &wire::Call,
        served: &Served,
        askable: bool,
    ) -> Result<Vec<Output>, Rejection> {
        let running = self.calls.values().map(|running| (&running.id, running.weight));
        admit::room(call, running, &served.limits)?;
        let method = admit::method(&call.method, self.peer.revision, &served.service.describe())?;
        let mut params = admit::opened(call.params.as_ref())?;
        admit::without_nulls(&mut params, &call.method, self.peer.revision);
        let done = || Ok(vec![Output::Reply(wire::result(&call.id, &Object::new()))]);
        match method {
            Method::Initialize => Err(Rejection::Invalid(
                "this session is open already; initialize opens a new one only".into(),
            )),
            Method::Ping => done(),
            Method::LoggingSetLevel => {
                let level =
                    params.get("level").ok_or_else(|| Rejection::Params("\"level\" is required".into()))?;
                let level = admit::level(level).map_err(Rejection::Params)?;
                Arc::make_mut(&mut self.peer).log_level = Some(level);
                done()
            }
            Method::ResourcesSubscribe => {
                let uri = admit::watchable(&required_string(&params, "uri")?)?;
                if self.watched.contains_key(&uri) {
                    return done();
                }
                let most = served.limits.watched;
                let wanted = self.calls.values().filter(|call| matches!(call.work, Work::Subscribe(_)));
                if self.watched.len() + wanted.count() >= most {
                    return Err(Rejection::Params(format!(
                        "this session watches {most} resources, which is the limit; unsubscribe from some"
                    )));
                }
                let key = self.key();
                let stream = Stream::new(self.rules(), None, None);
                let filter = Filter { uris: vec![uri.clone()], ..Filter::default() };
                let (id, weight) = (call.id.clone(), call.weight());
                self.calls.insert(key, Call { id, weight, stream, work: Work::Subscribe(uri), batch: None });
                Ok(vec![Output::Listen(key, filter, Arc::clone(&self.peer))])
            }
            Method::ResourcesUnsubscribe => {
                let dropped = self.watched.remove(&required_string(&params, "uri")?).map(Output::Drop);
                Ok(dropped.into_iter().chain(done()?).collect())
            }
            _ => {
                let inner = params.get(meta::META).and_then(|raw| raw.object().ok()).unwrap_or_default();
                let token = admit::progress_token(&inner)?;
                let stream = Stream::new(self.rules(), token.clone(), self.peer.log_level);
                if !inner.is_empty() {
                    admit::strip(&mut params, inner);
                }
                let mut peer = Arc::clone(&self.peer);
                if !askable {
                    Arc::make_mut(&mut peer).capabilities = Arc::default();
                }
                let wants_progress = token.is_some();
                let (params, head) = (Arc::new(params), call.head.clone());
                let repeat = Repeat { method, params, answers: None, peer, wants_progress, head };
                let request = repeat.request(&call.id);
                let key = self.key();
                let work = Work::Call { repeat, interim: None, rounds: 0 };
                let (id, weight) = (call.id.clone(), call.weight());
                self.calls.insert(key, Call { id, weight, stream, work, batch: None });
                Ok(vec![Output::Start(key, request)])
            }
        }
    }

    fn key(&mut self) -> CallKey {
        self.next_key += 1;
        self.next_key - 1
    }

    fn notified(&mut self, method: &str, params: Option<&Raw>, served: &Served) -> Vec<Output> {
        match admit::notice(method, self.peer.revision, Direction::ToServer) {
            Some(Notice::Initialized) if !self.ready => {
                self.ready = true;
                let mut outputs: Vec<Output> =
                    std::mem::take(&mut self.held).into_iter().map(Output::from).collect();
                let filter = Filter::lists(&served.service.describe().capabilities);
                if filter != Filter::default() {
                    outputs.push(Output::Listen(LISTEN, filter, Arc::clone(&self.peer)));
                }
                outputs
            }
            Some(Notice::Cancelled) => {
                let id = params.and_then(|raw| Id::read(raw.object().ok()?.get("requestId")?));
                let found =
                    self.calls.iter().find(|(_, call)| Some(&call.id) == id.as_ref()).map(|(key, _)| *key);
                found.map_or_else(Vec::new, |key| self.cancel(key))
            }
            _ => Vec::new(),
        }
    }

    /// Drops a call, and takes back what it asked the client.
    fn cancel(&mut self, key: CallKey) -> Vec<Output> {
        let mut outputs = vec![Output::Drop(key)];
        let call = self.calls.remove(&key);
        let batch = call.as_ref().and_then(|call| call.batch);
        outputs.extend(call.and_then(Call::abandoned));
        let asked: Vec<u64> =
            self.questions.iter().filter(|(_, (k, ..))| *k == key).map(|(id, _)| *id).collect();
        let unasked = self.held.len();
        self.held.retain(|held| !matches!(held, Deferred::Question(of, _) if *of == key));
        let unasked = unasked > self.held.len();
        for id in asked {
            self.questions.remove(&id);
            if unasked {
                continue;
            }
            let params = Object::new()
                .with("requestId", Raw::of(&id))
                .with("reason", "the call that asked was cancelled");
            outputs.push(Output::Send(key, stream::notification(Notice::Cancelled, params, self.rules())));
        }
        outputs.extend(self.end(key, batch, None));
        outputs
    }

    /// Returns the calls that wait for answers of the client, which will not come, since the session ends.
    pub fn abandoned(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.calls).into_values().filter_map(Call::abandoned).collect()
    }

    /// Something happened while a call was worked on.
    pub fn event(&mut self, key: CallKey, event: Event) -> Vec<Output> {
        let level = self.peer.log_level;
        let rules = self.rules();
        let Some(call) = self.calls.get_mut(&key) else { return Vec::new() };
        match (&event, level) {
            (Event::Log(at, _), Some(least)) if *at < least => return Vec::new(),
            (Event::Progress(_), _) if !self.ready => return Vec::new(),
            (Event::Release(after), _) if rules.priming_event => return vec![Output::Release(key, *after)],
            _ => {}
        }
        call.stream.event(event).map(|bytes| Output::Send(key, bytes)).into_iter().collect()
    }

    /// A call ended, or has to ask first.
    pub fn answered(
        &mut self,
        key: CallKey,
        answer: Result<Answer, Rejection>,
        served: &Served,
    ) -> Vec<Output> {
        let Some(Call { id, work: Work::Call { repeat, rounds, .. }, batch, .. }) = self.calls.get(&key)
        else {
            return Vec::new();
        };
        let (method, rules) = (&repeat.method, self.rules());
        let answer = match answer {
            Ok(Answer::InputRequired(interim)) => match admit::interim(&interim, method, &repeat.peer) {
                Ok(()) if *rounds < ROUNDS => return self.ask(key, interim),
                Ok(()) => Err(Rejection::Internal(format!(
                    "the call asked {ROUNDS} times without coming to an end"
                ))),
                Err(rejection) => Err(rejection),
            },
            other => other,
        };
        let bytes = match answer {
            Ok(Answer::Complete(result)) => {
                let description = served.service.describe();
                let added = ResultMeta {
                    identity: &description.identity,
                    depends_on_answers: false,
                    subscription: None,
                };
                wire::result(id, &project::result(result, method.row(), rules, added))
            }
            Ok(Answer::InputRequired(_)) => return Vec::new(),
            Err(rejection) => refuse(id, &rejection, rules),
        };
        let bytes = self.fitting(*batch, id, bytes, served);
        let batch = self.calls.remove(&key).and_then(|call| call.batch);
        self.end(key, batch, Some(bytes))
    }

    /// Puts the questions of a call to the client.
    fn ask(&mut self, key: CallKey, interim: InputRequired) -> Vec<Output> {
        let rules = self.rules();
        let Some(Call { work: Work::Call { interim: waiting, rounds, repeat }, .. }) =
            self.calls.get_mut(&key)
        else {
            return Vec::new();
        };
        *rounds += 1;
        // Answers of one round are the service's to keep, in its state; those without one are kept for it.
        let earlier = match (&interim.state, repeat.answers.take()) {
            (None, Some(answers)) => Arc::unwrap_or_clone(answers).responses,
            _ => Vec::new(),
        };
        let answers = InputResponses { responses: earlier, state: interim.state };
        *waiting = Some(answers);
        if interim.questions.is_empty() {
            return self.resume(key);
        }
        let mut questions = Vec::with_capacity(interim.questions.len());
        for (name, ask) in interim.questions {
            let id = self.next_question;
            self.next_question += 1;
            let params = project::question(&ask, rules);
            questions
                .push(Deferred::Question(key, wire::request(&Id::number(id), ask.question.wire(), &params)));
            self.questions.insert(id, (key, name, ask));
        }
        if !self.ready {
            self.held.append(&mut questions);
        }
        questions.into_iter().map(Output::from).collect()
    }

    /// The client answered a question.
    fn response(&mut self, id: Option<&Id>, outcome: Result<Raw, Raw>) -> Vec<Output> {
        let question = id.and_then(Id::as_number).and_then(|id| self.questions.remove(&id));
        let Some((key, name, ask)) = question else { return Vec::new() };
        let outcome = outcome.map(|result| project::answer(&ask, result, self.rules()));
        let Some(Call { work: Work::Call { interim: Some(answers), .. }, .. }) = self.calls.get_mut(&key)
        else {
            return Vec::new();
        };
        answers.responses.push((name, outcome));
        let asks_more = self.questions.values().any(|(of, ..)| *of == key);
        if asks_more { Vec::new() } else { self.resume(key) }
    }

    /// Calls the service again, with the answers.
    fn resume(&mut self, key: CallKey) -> Vec<Output> {
        let Some(Call { id, work: Work::Call { repeat, interim, .. }, .. }) = self.calls.get_mut(&key) else {
            return Vec::new();
        };
        repeat.answers = interim.take().map(Arc::new);
        vec![Output::Start(key, repeat.request(id))]
    }

    /// A listen runs, or could not be started.
    pub fn listening(&mut self, key: CallKey, honoured: Result<Filter, Rejection>) -> Vec<Output> {
        // The session's own listen has no call.
        let Some(Call { id, work: Work::Subscribe(uri), batch, .. }) = self.calls.remove(&key) else {
            return Vec::new();
        };
        let honoured = honoured.and_then(|filter| match filter.uris.contains(&uri) {
            true => Ok(()),
            false => Err(Rejection::Params(
                "this resource cannot be subscribed to: its server does not tell when it changes".into(),
            )),
        });
        let mut dropped = None;
        let reply = match honoured {
            Ok(()) => {
                self.watched.insert(uri, key);
                wire::result(&id, &Object::new())
            }
            Err(rejection) => {
                // There may be a stream of changes, in which nothing comes.
                dropped = Some(Output::Drop(key));
                refuse(&id, &rejection, self.rules())
            }
        };
        let mut outputs = self.end(key, batch, Some(reply));
        outputs.extend(dropped);
        outputs
    }

    /// Something changed that the session watches.
    pub fn changed(&mut self, key: CallKey, change: &Change) -> Vec<Output> {
        if key != LISTEN && !self.watched.values().any(|watched| *watched == key) {
            return Vec::new();
        }
        let Some(bytes) = stream::change(change, None, self.rules()) else { return Vec::new() };
        if self.ready {
            return vec![Output::Push(bytes)];
        }
        // The same change need not be told twice, which also bounds what is held.
        if !self.held.iter().any(|held| matches!(held, Deferred::Change(told) if *told == bytes)) {
            self.held.push(Deferred::Change(bytes));
        }
        Vec::new()
    }
}
