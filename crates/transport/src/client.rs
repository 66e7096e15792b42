//! Connections to servers of any revision: each is a [`Service`], whatever it speaks.

mod body;
mod guard;
mod http;
mod output;
mod owed;
mod pipe;
mod post;
mod posted;
mod process;
mod session;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use proto::CallKey;
use proto::upstream::{Edge, Introduction, Outgoing, Output, Starting};
use proto::wire::Message;
use proto::{
    Answer, BoxFuture, Change, Description, EventSink, Filter, HeaderParam, Heard, InputResponses, Listening,
    Object, Peer, Principal, Raw, Rejection, Request, Service, Watchers, wire,
};
use spec::{Disconnect, Era, Revision};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use crate::{BACKLOG, TransportError};

pub use guard::{Guard, watch_over};
pub use http::Remote;
pub use process::Program;

/// How a connection is made and kept.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What we say of ourselves.
    pub introduction: Introduction,
    /// What is known of the server's era before it is reached.
    pub era: EraHint,
    /// How long a server may stay silent on the probe before it is taken for a legacy one.
    pub probe: Duration,
    /// How long it may take until a server is ready.
    pub connect: Duration,
    /// How long a call may take.
    pub call: Duration,
    /// How long a call is held open while its question waits for an answer.
    pub hold: Duration,
    /// Bounds of what is read.
    pub limits: wire::Limits,
    /// Gets what programs say on stderr, line by line.
    pub stderr: Option<Stderr>,
    /// Ends process groups whose starter was killed.
    pub guard: Option<Guard>,
}

/// What is known of a server's era before it is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EraHint {
    /// Nothing: the server is asked.
    #[default]
    Unknown,
    /// It was of this era when it was reached before. Where that proves wrong, it is asked again.
    Seen(Era),
    /// It is to be spoken to in this era, and in no other.
    Fixed(Era),
}

/// Gets a line that a program said on stderr.
#[derive(Clone)]
pub struct Stderr(pub Arc<dyn Fn(&str) + Send + Sync>);

impl std::fmt::Debug for Stderr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stderr")
    }
}

impl Settings {
    /// 3 s for the probe, 60 s to connect, 10 minutes for a call, 5 minutes for an answer.
    pub fn new(name: &str, version: &str) -> Settings {
        Settings {
            introduction: Introduction {
                identity: Object::new().with("name", name).with("version", version),
            },
            era: EraHint::Unknown,
            probe: Duration::from_secs(3),
            connect: Duration::from_secs(60),
            call: Duration::from_secs(600),
            hold: Duration::from_secs(300),
            limits: wire::Limits::default(),
            stderr: None,
            guard: None,
        }
    }

    /// Says something of the server where its own words are said.
    fn say(&self, line: &str) {
        if let Some(Stderr(told)) = &self.stderr {
            told(line);
        }
    }
}

/// A connection to a server.
#[derive(Clone)]
pub struct Client(Arc<Shared>);

struct Shared {
    description: Arc<Description>,
    state: Mutex<State>,
    link: Link,
    settings: Settings,
    /// What the server is owed without anybody waiting for it.
    owed: owed::Owed,
    /// Who listens to what a legacy server tells everybody.
    watchers: Watchers,
    /// Cancelled when the server is gone or is to go.
    gone: CancellationToken,
}

enum Link {
    /// One stream each way: a program's standard streams, or those of HTTP+SSE.
    Pipe {
        out: mpsc::Sender<Bytes>,
        keeper: Option<process::Keeper>,
    },
    Http(http::Link),
}

struct State {
    edge: Edge,
    calls: HashMap<CallKey, Slot>,
    listens: HashMap<CallKey, Listen>,
    /// Calls that are held open, by the state that was given out for each.
    held: HashMap<String, (CallKey, Principal)>,
    next: CallKey,
    /// Why the server is gone, once it is.
    gone: Option<Gone>,
    /// What is known of tools, as far as they were listed.
    tools: HashMap<String, Tool>,
}

/// What of a tool's definition concerns a call of it.
#[derive(Clone)]
struct Tool {
    /// The annotated parameters.
    mirrors: Arc<[HeaderParam]>,
    /// A call may be carried out twice: its server says that it only reads, or does the same again.
    repeatable: bool,
}

struct Gone {
    /// To those who waited for it.
    told: String,
    /// To those who run it.
    whole: String,
}

struct Slot {
    events: EventSink,
    /// It is of the user of this machine.
    local: bool,
    answer: Waiting,
    /// Reads the call's own response, where it must go on while the call is held.
    reading: Option<AbortHandle>,
}

enum Waiting {
    /// Somebody waits.
    For(oneshot::Sender<Result<Answer, Rejection>>),
    /// The call is held, and nothing came yet.
    Held,
    /// The call is held, and this came meanwhile.
    Came(Result<Answer, Rejection>),
}

struct Listen {
    acknowledged: Option<oneshot::Sender<Result<Filter, Rejection>>>,
    /// Where its own changes go; a legacy server tells everybody.
    changes: Option<async_channel::Sender<Change>>,
    /// Reads the listen's own response.
    reading: Option<AbortHandle>,
}

impl Drop for Listen {
    fn drop(&mut self) {
        if let Some(reading) = &self.reading {
            reading.abort();
        }
    }
}

/// How a server was found to speak.
struct Found {
    edge: Edge,
    description: Description,
}

impl Client {
    /// Starts a program and speaks to it over its standard streams.
    ///
    /// # Errors
    /// When it cannot be started, or does not speak the protocol.
    pub async fn start(program: &Program, settings: Settings) -> Result<Client, TransportError> {
        pipe::start(program, settings).await
    }

    /// Connects to a URL of Streamable HTTP or HTTP+SSE.
    ///
    /// # Errors
    /// When it cannot be reached, or does not speak the protocol.
    pub async fn connect(remote: &Remote, settings: Settings) -> Result<Client, TransportError> {
        http::connect(remote, settings).await
    }

    fn new(found: Found, link: Link, settings: Settings, gone: CancellationToken) -> Client {
        let state = State {
            edge: found.edge,
            calls: HashMap::new(),
            listens: HashMap::new(),
            held: HashMap::new(),
            next: FIRST,
            gone: None,
            tools: HashMap::new(),
        };
        let (owed, due) = owed::owed();
        let client = Client(Arc::new(Shared {
            description: Arc::new(found.description),
            state: Mutex::new(state),
            link,
            settings,
            owed,
            watchers: Watchers::default(),
            gone: gone.clone(),
        }));
        tokio::spawn(owed::pay(due, Arc::downgrade(&client.0), gone));
        client
    }

    /// The revision that is spoken.
    pub fn revision(&self) -> Revision {
        self.0.lock().edge.revision()
    }

    /// Whether the server is gone; the calls that were under way have ended.
    pub fn is_gone(&self) -> bool {
        self.0.gone.is_cancelled()
    }

    /// Waits until the server is gone.
    pub async fn gone(&self) {
        self.0.gone.cancelled().await;
    }

    /// Why the server is gone; empty while it is not.
    pub fn why_gone(&self) -> String {
        self.0.lock().gone.as_ref().map(|gone| gone.whole.clone()).unwrap_or_default()
    }

    /// How many calls are under way, those included that wait for an answer of their client.
    pub fn in_flight(&self) -> usize {
        self.0.lock().calls.len()
    }

    /// Whether all that the server says comes on one stream: from a program, and over HTTP+SSE.
    pub fn is_one_stream(&self) -> bool {
        matches!(self.0.link, Link::Pipe { .. })
    }

    /// The process, where the server is one.
    pub fn pid(&self) -> Option<u32> {
        match &self.0.link {
            Link::Pipe { keeper, .. } => keeper.as_ref().and_then(process::Keeper::pid),
            Link::Http(_) => None,
        }
    }

    /// Ends the connection; a program is ended in the order of the specification, and waited for.
    pub async fn close(&self) {
        self.0.end("the connection was closed", "");
        match &self.0.link {
            Link::Pipe { keeper: Some(keeper), .. } => keeper.ended().await,
            Link::Pipe { keeper: None, .. } => {}
            Link::Http(link) => link.close().await,
        }
    }
}

/// How long a server may take to begin to tell of changes. A server is there before it does, and whoever starts it waits.
const ACKNOWLEDGE: Duration = Duration::from_secs(10);

/// The first key of a call; smaller ones are the handshake's.
const FIRST: CallKey = 16;

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends all that is under way. Those who wait are told why; `more` is for the user of this machine alone: a server's
    /// last words and its address are nobody else's business.
    fn end(&self, why: &str, more: &str) {
        let mut state = self.lock();
        if state.gone.is_none() {
            state.gone = Some(Gone { told: why.to_owned(), whole: format!("{why}{more}") });
        }
        let whole = format!("{why}{more}");
        let calls = std::mem::take(&mut state.calls);
        state.listens.clear();
        state.held.clear();
        drop(state);
        self.watchers.close();
        for slot in calls.into_values() {
            if let Waiting::For(waiting) = slot.answer {
                let told = if slot.local { whole.clone() } else { why.to_owned() };
                let _ = waiting.send(Err(Rejection::Internal(told)));
            }
        }
        self.gone.cancel();
    }

    /// Takes in what the server said; gives what is to be sent in turn.
    fn take_in(&self, heard: Heard, on: Option<CallKey>) -> Vec<Bytes> {
        match heard {
            Heard::Message(message) => self.receive(message, on),
            Heard::Broken { answers, why } => {
                self.settings.say(&format!("dateline: a message of the server cannot be read: {why}"));
                let mut state = self.lock();
                let outputs = answers.map(|key| state.edge.broken(key, &why)).unwrap_or_default();
                self.dispatch(&mut state, outputs)
            }
            Heard::Rubbish => Vec::new(),
        }
    }

    /// Takes in a message; gives what is to be sent in turn.
    fn receive(&self, message: Message, on: Option<CallKey>) -> Vec<Bytes> {
        let mut state = self.lock();
        let outputs = state.edge.receive(message, on);
        self.dispatch(&mut state, outputs)
    }

    fn dispatch(&self, state: &mut State, outputs: Vec<Output>) -> Vec<Bytes> {
        let mut send = Vec::new();
        for output in outputs {
            match output {
                Output::Send(bytes) => send.push(bytes),
                Output::Event(key, event) => {
                    if let Some(slot) = state.calls.get(&key)
                        && !slot.events.try_send(event)
                    {
                        // Who reads too slowly misses events; answers are never lost.
                        tracing::debug!(key, "an event found no room in its queue");
                    }
                }
                Output::Answered(key, answer) => state.answered(key, answer),
                Output::Listening(key, filter) => {
                    if let Some(waiting) = state.listens.get_mut(&key).and_then(|l| l.acknowledged.take()) {
                        let _ = waiting.send(Ok(filter));
                    }
                }
                Output::Ended(key, why) => {
                    let waiting = state.listens.remove(&key).and_then(|mut l| l.acknowledged.take());
                    if let (Some(waiting), Some(why)) = (waiting, why) {
                        let _ = waiting.send(Err(why));
                    }
                }
                Output::Changed(Some(key), change) => {
                    let changes = state.listens.get(&key).and_then(|listen| listen.changes.as_ref());
                    let full = changes.is_some_and(|changes| changes.try_send(change).is_err());
                    if full {
                        state.listens.remove(&key);
                    }
                }
                Output::Changed(None, change) => self.watchers.tell(&change),
            }
        }
        send
    }

    /// Registers a request, or goes on with a call that is held.
    fn begin(self: &Arc<Self>, request: &Request) -> Result<Begun, Rejection> {
        let mut state = self.lock();
        if let Some(why) = &state.gone {
            return Err(Rejection::Gone(why.told.clone()));
        }
        let (waiting, answer) = oneshot::channel();
        if let (Edge::Legacy(_), Some(answers)) = (&state.edge, &request.answers) {
            let (key, outputs) = state.resume(request, answers.clone(), waiting)?;
            let send = self.dispatch(&mut state, outputs);
            return Ok(Begun { under: Under::new(self, key), answer, send, outgoing: None });
        }
        let refused =
            request.answers.iter().flat_map(|a| &a.responses).find_map(|(name, outcome)| {
                outcome.as_ref().err().map(|error| (name, Rejection::passed(error)))
            });
        if let Some((name, said)) = refused {
            // A modern server has no form for an answer that is an error; it would ask for ever.
            return Err(Rejection::Internal(format!("the client could not answer {name}: {said}")));
        }
        let key = state.key();
        let outgoing = state.edge.call(key, request);
        let local = request.peer.principal == Principal::local();
        let slot =
            Slot { events: request.events.clone(), local, answer: Waiting::For(waiting), reading: None };
        state.calls.insert(key, slot);
        Ok(Begun { under: Under::new(self, key), answer, send: Vec::new(), outgoing: Some(outgoing) })
    }

    async fn call(self: &Arc<Self>, request: Request) -> Result<Answer, Rejection> {
        let Begun { mut under, answer, send, outgoing } = self.begin(&request)?;
        let exchange = async {
            self.send(send).await?;
            match (&self.link, outgoing) {
                (_, None) => {}
                (Link::Pipe { .. }, Some(outgoing)) => {
                    self.send(outgoing.before).await?;
                    self.send(vec![outgoing.message]).await?;
                }
                (Link::Http(link), Some(outgoing)) => {
                    return http::exchange(self, link, under.key, &request, outgoing, answer).await;
                }
            }
            answer.await.unwrap_or_else(|_| Err(self.why_gone()))
        };
        let limit = self.settings.call;
        let answered = tokio::time::timeout(limit, exchange).await.unwrap_or_else(|_| {
            Err(Rejection::Internal(format!("the server did not answer within {} s", limit.as_secs())))
        });
        match answered {
            Ok(Answer::InputRequired(mut interim)) if under.is_held() => {
                let held = under.hold(&request.peer.principal)?;
                interim.state = Some(Raw::from(held.as_str()));
                Ok(Answer::InputRequired(interim))
            }
            other => other,
        }
    }

    /// Sends messages that are no calls.
    async fn send(&self, messages: Vec<Bytes>) -> Result<(), Rejection> {
        for message in messages {
            match &self.link {
                // Nothing of it was written.
                Link::Pipe { out, .. } => {
                    out.send(message).await.map_err(|_| Rejection::Gone(self.why_gone().to_string()))?;
                }
                Link::Http(link) => {
                    link.tell(message, &self.settings).await.map_err(|error| match error {
                        // It takes nothing any more, and what these messages go before was not sent.
                        TransportError::Closed(_) | TransportError::Reach { .. } => {
                            self.end(error.told(), &format!(": {error}"));
                            Rejection::Gone(error.told().into())
                        }
                        error => {
                            tracing::warn!(%error, "a message could not be sent to a server");
                            Rejection::Internal(error.told().into())
                        }
                    })?
                }
            }
        }
        Ok(())
    }

    fn why_gone(&self) -> Rejection {
        Rejection::Internal(
            self.lock()
                .gone
                .as_ref()
                .map_or_else(|| "the server is gone".to_owned(), |gone| gone.told.clone()),
        )
    }

    async fn listen(self: &Arc<Self>, filter: Filter) -> Result<Listening, Rejection> {
        let (key, requests, changes, acknowledged) = {
            let mut state = self.lock();
            if let Some(why) = &state.gone {
                return Err(Rejection::Internal(why.told.clone()));
            }
            let key = state.key();
            let (acknowledge, acknowledged) = oneshot::channel();
            let (own, changes): (_, proto::BoxStream<Change>) = match state.edge {
                Edge::Legacy(_) => (None, self.watchers.watch(filter.clone())),
                Edge::Modern(_) => {
                    let (sender, changes) = async_channel::bounded(BACKLOG);
                    (Some(sender), Box::pin(changes))
                }
            };
            let listen = Listen { acknowledged: Some(acknowledge), changes: own, reading: None };
            state.listens.insert(key, listen);
            let Starting { requests, outputs } = state.edge.listen(key, &filter);
            self.dispatch(&mut state, outputs);
            (key, requests, changes, acknowledged)
        };
        let under = Under::new(self, key);
        let limit = self.settings.connect.min(ACKNOWLEDGE);
        let begun = async {
            match &self.link {
                Link::Pipe { .. } => {
                    self.send(requests.into_iter().map(|(_, r)| r.message).collect()).await?
                }
                Link::Http(link) => http::listen(self, link, key, requests).await?,
            }
            acknowledged.await.unwrap_or_else(|_| {
                Err(Rejection::Internal("the server ended a listen without acknowledging it".into()))
            })
        };
        let honoured = tokio::time::timeout(limit, begun).await.unwrap_or_else(|_| {
            let why = format!("the server did not acknowledge a listen within {} s", limit.as_secs());
            Err(Rejection::Internal(why))
        })?;
        // Dropping the stream drops the guard, which gives the listen up.
        let changes = changes.map(move |change| {
            let _ = &under;
            change
        });
        Ok(Listening { honoured, changes: Box::pin(changes) })
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.gone.cancel();
    }
}

/// A request that was registered.
struct Begun {
    under: Under,
    answer: oneshot::Receiver<Result<Answer, Rejection>>,
    send: Vec<Bytes>,
    outgoing: Option<Outgoing>,
}

/// A call or listen under way: dropped before its end, it is cancelled upstream.
struct Under {
    shared: Arc<Shared>,
    key: CallKey,
    kept: bool,
}

impl Under {
    fn new(shared: &Arc<Shared>, key: CallKey) -> Under {
        Under { shared: Arc::clone(shared), key, kept: false }
    }

    /// Whether the call goes on although it was answered, for a question.
    fn is_held(&self) -> bool {
        self.shared.lock().calls.contains_key(&self.key)
    }

    /// Keeps the call open for a while; gives the state that names it.
    fn hold(&mut self, principal: &Principal) -> Result<String, Rejection> {
        let mut secret = [0u8; 16];
        getrandom::fill(&mut secret)
            .map_err(|_| Rejection::Internal("no request state could be made".into()))?;
        let name: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        self.shared.lock().held.insert(name.clone(), (self.key, principal.clone()));
        self.kept = true;
        let (shared, held) = (Arc::downgrade(&self.shared), name.clone());
        let (key, hold) = (self.key, self.shared.settings.hold);
        // Nobody has to come back for it.
        tokio::spawn(async move {
            tokio::time::sleep(hold).await;
            let Some(shared) = shared.upgrade() else { return };
            let unclaimed = shared.lock().held.remove(&held).is_some();
            if unclaimed {
                drop(Under::new(&shared, key));
            }
        });
        Ok(name)
    }
}

impl Drop for Under {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        let mut state = self.shared.lock();
        if let Some(Slot { reading: Some(reading), .. }) = state.calls.remove(&self.key) {
            reading.abort();
        }
        state.listens.remove(&self.key);
        let messages = state.edge.cancel(self.key, "the client gave it up");
        drop(state);
        match &self.shared.link {
            // There the end of the stream says it.
            Link::Http(_) if self.shared.lock().edge.rules().disconnect == Disconnect::Cancels => {}
            _ => self.shared.owed.add_now(messages),
        }
    }
}

impl State {
    fn key(&mut self) -> CallKey {
        self.next += 1;
        self.next - 1
    }

    /// A call ended, or asks for input.
    fn answered(&mut self, key: CallKey, answer: Result<Answer, Rejection>) {
        let goes_on = matches!((&self.edge, &answer), (Edge::Legacy(_), Ok(Answer::InputRequired(_))));
        let Some(slot) = self.calls.get_mut(&key) else { return };
        match std::mem::replace(&mut slot.answer, Waiting::Held) {
            Waiting::For(waiting) => {
                if !goes_on {
                    self.calls.remove(&key);
                }
                // It fails where the caller has just gone, whose guard tidies up.
                let _ = waiting.send(answer);
            }
            Waiting::Held | Waiting::Came(_) => slot.answer = Waiting::Came(answer),
        }
    }

    /// Whether a call still has no answer.
    fn awaits(&self, key: CallKey) -> bool {
        self.calls.get(&key).is_some_and(|slot| !matches!(slot.answer, Waiting::Came(_)))
    }

    /// Goes on with a held call.
    fn resume(
        &mut self,
        request: &Request,
        answers: InputResponses,
        waiting: oneshot::Sender<Result<Answer, Rejection>>,
    ) -> Result<(CallKey, Vec<Output>), Rejection> {
        let unknown =
            || Rejection::Params("requestState is not valid: the call that asked is no longer open".into());
        let name = answers.state.as_ref().and_then(Raw::string).ok_or_else(unknown)?;
        let (key, owner) = self.held.get(&*name).cloned().ok_or_else(unknown)?;
        if owner != request.peer.principal {
            return Err(unknown());
        }
        self.held.remove(&*name);
        let slot = self.calls.get_mut(&key).ok_or_else(unknown)?;
        slot.events = request.events.clone();
        match std::mem::replace(&mut slot.answer, Waiting::For(waiting)) {
            Waiting::Came(answer) => {
                self.answered(key, answer);
                Ok((key, Vec::new()))
            }
            _ => Ok((key, self.edge.answer(key, answers).unwrap_or_default())),
        }
    }
}

impl Service for Client {
    fn describe(&self) -> Arc<Description> {
        Arc::clone(&self.0.description)
    }

    fn call(&self, request: Request) -> BoxFuture<'_, Result<Answer, Rejection>> {
        Box::pin(self.0.call(request))
    }

    fn listen(&self, filter: Filter, _: Arc<Peer>) -> BoxFuture<'_, Result<Listening, Rejection>> {
        Box::pin(self.0.listen(filter))
    }

    fn abandon(&self, request: Request) {
        let name = request.answers.and_then(|answers| answers.state).as_ref().and_then(Raw::string);
        let held = name.and_then(|name| self.0.lock().held.remove(&*name));
        if let Some((key, _)) = held {
            // Dropped at once, it gives the call up.
            drop(Under::new(&self.0, key));
        }
    }

    fn header_params(&self, tool: &str) -> Arc<[HeaderParam]> {
        self.0
            .lock()
            .tools
            .get(tool)
            .map_or_else(|| Arc::new([]) as Arc<[HeaderParam]>, |tool| Arc::clone(&tool.mirrors))
    }
}
