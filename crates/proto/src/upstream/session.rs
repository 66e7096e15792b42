//! A handshake session, seen from the client: what an upstream asks becomes *input required*, while its call
//! is held open.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use bytestring::ByteString;
use spec::{Code, Direction, Era, Method, Notice, Question, Revision, meta};

use crate::downstream::refuse;
use crate::gates::admit;
use crate::gates::project;
use crate::json::{Object, Raw};
use crate::model::capability::Capabilities;
use crate::model::input::{InputRequest, InputResponses};
use crate::model::level::Level;
use crate::model::listen::Filter;
use crate::model::rejection::Rejection;
use crate::model::request::{Answer, Peer, Principal, Request};
use crate::model::service::{CacheHint, Description};
use crate::rpc::wire::{self, CallKey, Id, Message};
use crate::upstream::calls::{cancelled, change, log, progress, without_null};
use crate::upstream::output::{Introduction, Outgoing, Output, Starting, ask};
use crate::upstream::subscriptions::Subscriptions;

/// A session with a legacy upstream.
pub struct Session {
    revision: Revision,
    capabilities: Capabilities,
    level: Option<Level>,
    running: HashMap<CallKey, Call>,
    subscriptions: Subscriptions,
    next_own: CallKey,
}

struct Call {
    method: Method,
    peer: Arc<Peer>,
    /// The questions that the client was asked and has not answered. While there are some, the call is parked.
    open: Vec<OpenQuestion>,
    /// Questions that came while the call was parked. The client is asked them in the next round.
    queued: VecDeque<(Id, InputRequest)>,
    /// How many questions the client was asked so far; numbers their keys.
    asked: u64,
}

/// A question of the upstream that the client has not answered.
struct OpenQuestion {
    /// The key under which the client answers it.
    key: ByteString,
    /// The id under which the upstream waits for the answer.
    id: Id,
    /// Its kind, which decides the form of the answer.
    question: Question,
}

/// Keys of requests that nobody waits for start here, out of the way of calls.
const OWN: CallKey = 1 << 52;

impl Session {
    /// The params of the `initialize` request. All questions are declared; the session answers by itself
    /// those that the client at hand cannot be asked.
    pub fn initialize(revision: Revision, introduction: &Introduction) -> Object {
        let mut capabilities =
            Object::new().with("roots", Raw::literal("{}")).with("sampling", Raw::literal("{}"));
        if Question::Elicit.exists().contains(revision) {
            let modes = if revision.rules().url_elicitation { r#"{"form":{},"url":{}}"# } else { "{}" };
            capabilities.set("elicitation", Raw::literal(modes));
        }
        if revision.rules().sampling_tools {
            capabilities.set("sampling", Raw::literal(r#"{"tools":{}}"#));
        }
        let mut identity = introduction.identity.clone();
        project::object(&mut identity, &spec::fields::IMPLEMENTATION, revision);
        Object::new()
            .with("protocolVersion", revision.as_str())
            .with("capabilities", Raw::from(capabilities))
            .with("clientInfo", Raw::from(identity))
    }

    /// Opens the session with what the upstream answered. The `notifications/initialized` that is due next
    /// comes with it.
    ///
    /// # Errors
    /// When the answer is no handshake, or names a revision that we do not speak.
    pub fn open(outcome: Result<Raw, Raw>) -> Result<(Session, Description, Bytes), Rejection> {
        let result = outcome.map_err(|error| Rejection::passed(&error))?;
        let wrong =
            |why: String| Rejection::Internal(format!("the server's answer to initialize is wrong: {why}"));
        let result = result.object().map_err(|e| wrong(e.to_string()))?;
        let named =
            result.string("protocolVersion").ok_or_else(|| wrong("it has no protocolVersion".into()))?;
        let revision = Revision::parse(&named)
            .filter(|r| r.era() == Era::Legacy)
            .ok_or_else(|| wrong(format!("protocolVersion {named:?} is not known here")))?;
        let sent = result.get("capabilities").and_then(|raw| raw.object().ok()).unwrap_or_default();
        let capabilities = Capabilities::read(&sent);
        let description = Description {
            identity: Description::identity(result.get("serverInfo")),
            capabilities: capabilities.clone(),
            instructions: result.string("instructions").map(|text| text.to_string()),
            hint: CacheHint::default(),
            methods: Vec::new(),
        };
        let session = Session {
            revision,
            capabilities,
            level: None,
            running: HashMap::new(),
            subscriptions: Subscriptions::default(),
            next_own: OWN,
        };
        Ok((session, description, wire::notification(Notice::Initialized.wire(), None)))
    }

    /// A `ping`, outside all bookkeeping: whoever knows the session answers it.
    pub fn ping(id: &Id) -> Bytes {
        wire::request(id, Method::Ping.wire(), &Object::new())
    }

    /// The revision that was agreed on.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    pub(crate) fn call(&mut self, key: CallKey, request: &Request) -> Outgoing {
        let mut params = project::params(request, self.revision);
        without_null(&mut params);
        if request.wants_progress {
            let mut inner = params.get(meta::META).and_then(|raw| raw.object().ok()).unwrap_or_default();
            inner.set(meta::PROGRESS_TOKEN, Raw::of(&key));
            params.set(meta::META, Raw::from(inner));
        }
        let before = self.lower_level(request.peer.log_level).into_iter().collect();
        let call = Call {
            method: request.method,
            peer: Arc::clone(&request.peer),
            open: Vec::new(),
            queued: VecDeque::new(),
            asked: 0,
        };
        self.running.insert(key, call);
        let params_sent = (!params.is_empty()).then_some(&params);
        let message = match params_sent {
            Some(params) => wire::request(&Id::number(key), request.method.wire(), params),
            None => wire::request(&Id::number(key), request.method.wire(), &Object::new()),
        };
        Outgoing { before, message, params }
    }

    /// A session has one level; it is lowered to what the most curious client wants, and filtered above.
    fn lower_level(&mut self, wanted: Option<Level>) -> Option<Bytes> {
        let wanted = wanted.filter(|_| self.capabilities.has(spec::Capability::Logging))?;
        if self.level.is_some_and(|level| level <= wanted) {
            return None;
        }
        self.level = Some(wanted);
        let params = Object::new().with("level", wanted.as_str());
        Some(wire::request(&Id::number(self.own()), Method::LoggingSetLevel.wire(), &params))
    }

    fn own(&mut self) -> CallKey {
        self.next_own += 1;
        self.next_own
    }

    pub(crate) fn answer(&mut self, key: CallKey, answers: InputResponses) -> Option<Vec<Output>> {
        let rules = self.revision.rules();
        let call = self.running.get_mut(&key)?;
        let sent: HashMap<_, _> = answers.responses.iter().map(|(key, outcome)| (key, outcome)).collect();
        let respond = |open: OpenQuestion| match sent.get(&open.key) {
            Some(Ok(result)) => {
                response(&open.id, "result", &project::reply(open.question, (*result).clone(), rules))
            }
            Some(Err(error)) => response(&open.id, "error", error),
            None => {
                let why = Rejection::Internal(format!("the client did not answer {:?}", open.key));
                refuse(&open.id, &why, rules)
            }
        };
        let mut outputs: Vec<_> = call.open.drain(..).map(respond).map(Output::Send).collect();
        outputs.extend(call.next_round(key));
        Some(outputs)
    }

    pub(crate) fn cancel(&mut self, key: CallKey, reason: &str) -> Vec<Bytes> {
        if self.running.remove(&key).is_some() {
            return vec![cancelled(key, reason)];
        }
        let unwatched = self.subscriptions.remove(key).unwrap_or_default();
        let unsubscribe = |uri: ByteString| {
            let params = Object::new().with("uri", &*uri);
            wire::request(&Id::number(self.own()), Method::ResourcesUnsubscribe.wire(), &params)
        };
        unwatched.into_iter().map(unsubscribe).collect()
    }

    /// Starts a listen. It runs at once where no resource has to be subscribed to first.
    pub(crate) fn watch(&mut self, key: CallKey, filter: &Filter) -> Starting {
        let mut filter = filter.clone();
        if !self.capabilities.has(spec::Capability::ResourcesSubscribe) {
            filter.uris.clear();
        }
        let next = &mut self.next_own;
        let due = self.subscriptions.add(key, filter, || {
            *next += 1;
            *next
        });
        let request = |(key, uri): (CallKey, ByteString)| {
            let params = Object::new().with("uri", &*uri);
            let message = wire::request(&Id::number(key), Method::ResourcesSubscribe.wire(), &params);
            (key, Outgoing { before: Vec::new(), message, params })
        };
        let requests = due.into_iter().map(request).collect();
        Starting { requests, outputs: self.listening([key]) }
    }

    /// Those of these listens that run from now on.
    fn listening(&mut self, listens: impl IntoIterator<Item = CallKey>) -> Vec<Output> {
        let run = |key| self.subscriptions.honoured(key).map(|filter| Output::Listening(key, filter));
        listens.into_iter().filter_map(run).collect()
    }

    pub(crate) fn receive(&mut self, message: Message, on: Option<CallKey>) -> Vec<Output> {
        match message {
            Message::Response { id, outcome } => {
                let Some(key) = id.map_or(on, |id| id.as_number()) else { return Vec::new() };
                let answer = outcome.map_err(|error| Rejection::passed(&error)).and_then(|raw| {
                    let result = raw
                        .object()
                        .map_err(|e| Rejection::Internal(format!("the server sent no proper result: {e}")))?;
                    Ok(Answer::Complete(result))
                });
                self.end(key, answer)
            }
            Message::Request(call) => self.asked(&call, on),
            Message::Notification { method, params } => {
                let params = params.and_then(|raw| raw.object().ok()).unwrap_or_default();
                let notice = admit::notice(&method, self.revision, Direction::ToClient);
                notice.map_or_else(Vec::new, |notice| self.notified(notice, params, on))
            }
        }
    }

    /// A call is over, or what was asked for a listen.
    pub(crate) fn end(&mut self, key: CallKey, answer: Result<Answer, Rejection>) -> Vec<Output> {
        if let Some(listens) = self.subscriptions.answered(key, answer.is_ok()) {
            return self.listening(listens);
        }
        match self.running.remove(&key) {
            Some(_) => vec![Output::Answered(key, answer)],
            None => Vec::new(),
        }
    }

    fn notified(&mut self, notice: Notice, mut params: Object, on: Option<CallKey>) -> Vec<Output> {
        match notice {
            Notice::Progress => progress(&mut params)
                .filter(|(key, _)| self.running.contains_key(key))
                .map(|(key, event)| Output::Event(key, event))
                .into_iter()
                .collect(),
            Notice::Message => match (on.or_else(|| self.only_call()), log(params)) {
                (Some(key), Some(event)) => vec![Output::Event(key, event)],
                _ => Vec::new(),
            },
            _ => change(notice, &params).map(|change| Output::Changed(None, change)).into_iter().collect(),
        }
    }

    fn calls(&self) -> impl Iterator<Item = (CallKey, &Call)> {
        self.running.iter().map(|(key, call)| (*key, call))
    }

    fn only_call(&self) -> Option<CallKey> {
        let mut calls = self.calls().map(|(key, _)| key);
        calls.next().filter(|_| calls.next().is_none())
    }

    /// The upstream asks something. It is put to the client whose call it belongs to, where there is no doubt
    /// which that is and the client can be asked; otherwise the upstream is told at once, so that it does not
    /// wait.
    fn asked(&mut self, sent: &wire::Call, on: Option<CallKey>) -> Vec<Output> {
        let rules = self.revision.rules();
        if Method::parse(&sent.method) == Some(Method::Ping) {
            return vec![Output::Send(wire::result(&sent.id, &Object::new()))];
        }
        let refuse = |why: Rejection| vec![Output::Send(refuse(&sent.id, &why, rules))];
        let ask = match ask(&sent.method, sent.params.as_ref()) {
            Ok(ask) => ask,
            Err(rejection) => return refuse(rejection),
        };
        let fits = |call: &Call| call.method.row().asks && call.peer.capabilities.lacks(&ask).is_none();
        let meant = |key: &CallKey, call: &Call| on.map_or(call.method.row().asks, |on| *key == on);
        let mut found: Vec<(CallKey, &Call)> = self.calls().filter(|(key, call)| meant(key, call)).collect();
        // A call that waits for an answer mostly asks nothing more until it has it. Where all are of the user of this
        // machine, the one that waits for none is meant, so that nobody is held up by a question that is not answered.
        // That is a guess: clients over HTTP may be strangers to each other, and none gets the question of another.
        let mut free = found.iter().filter(|(_, call)| call.open.is_empty());
        if let (Some(one), None) = (free.next().copied(), free.next())
            && found.iter().all(|(_, call)| call.peer.principal == Principal::local())
        {
            found = vec![one];
        }
        let found: Vec<_> = found.into_iter().map(|(key, call)| (key, fits(call))).collect();
        let [(key, true)] = found[..] else {
            let why = match found.len() {
                0 | 1 => "no client that waits for an answer can be asked this",
                _ => "several calls are under way, and nothing says which of them asks this",
            };
            return refuse(Rejection::Passed {
                code: Code::InvalidRequest.number(),
                message: why.into(),
                data: None,
            });
        };
        let Some(call) = self.running.get_mut(&key) else { return Vec::new() };
        call.queued.push_back((sent.id.clone(), ask));
        if call.open.is_empty() { call.next_round(key).into_iter().collect() } else { Vec::new() }
    }
}

impl Call {
    /// Asks the client all that is queued; `None` where nothing is.
    fn next_round(&mut self, key: CallKey) -> Option<Output> {
        if self.queued.is_empty() {
            return None;
        }
        let mut questions = Vec::new();
        for (id, request) in self.queued.drain(..) {
            self.asked += 1;
            let name = ByteString::from(format!("q{}", self.asked));
            self.open.push(OpenQuestion { key: name.clone(), id, question: request.question });
            questions.push((name, request));
        }
        Some(Output::InputRequired(key, questions))
    }
}

fn response(id: &Id, member: &'static str, value: &Raw) -> Bytes {
    let mut out = String::new();
    Object::new().with("jsonrpc", "2.0").with("id", id.raw()).with(member, value.clone()).write(&mut out);
    out.into()
}
