//! The state of a connection to a server, which its callers, its readers and its timers share. It does no IO: what is
//! to be sent is given to the caller or put into the [`Outbox`].

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use proto::upstream::{Edge, Outgoing, Output, Starting};
use proto::wire::Message;
use proto::{
    Answer, BoxStream, CallKey, Change, Description, Filter, FromServer, InputRequired, Object, Raw,
    Rejection, Request, Watchers,
};
use spec::{Disconnect, Revision};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use super::call::{Calls, Outcome, Resumed};
use super::negotiation::{FIRST_CALL_ID, Negotiated};
use super::outbox::Outbox;
use super::settings::Settings;
use super::tools::{self, Tool};
use crate::BACKLOG;

/// What is known of a connection.
pub(super) struct Connection {
    pub(super) description: Arc<Description>,
    pub(super) settings: Settings,
    /// Is cancelled when the connection has ended or is to end.
    pub(super) gone: CancellationToken,
    state: Mutex<State>,
    outbox: Outbox,
    /// Listeners for the changes that a legacy server announces to the whole session.
    watchers: Watchers,
    /// Whether a call is cancelled by closing its HTTP response, so that no message says it.
    cancels_by_closing: bool,
}

struct State {
    edge: Edge,
    calls: Calls,
    listens: HashMap<CallKey, Listen>,
    next_key: CallKey,
    /// Why the connection ended; `None` while it lasts.
    end: Option<End>,
    /// The tools that were listed, by name.
    tools: HashMap<String, Tool>,
}

/// Why a connection ended.
#[derive(Clone)]
struct End {
    /// For everybody.
    why: String,
    /// For the user of this machine alone: with addresses, and with what the server wrote last.
    details: String,
}

impl End {
    fn told(&self, is_local: bool) -> String {
        if is_local { format!("{}{}", self.why, self.details) } else { self.why.clone() }
    }
}

/// A subscription to changes.
struct Listen {
    /// Waits until the server acknowledges the subscription.
    acknowledged: Option<oneshot::Sender<Result<Filter, Rejection>>>,
    /// Where its changes go. A legacy server announces changes to the whole session, so there is no such place.
    changes: Option<async_channel::Sender<Change>>,
    /// The task that reads its HTTP response.
    reader: Option<AbortHandle>,
}

impl Drop for Listen {
    fn drop(&mut self) {
        if let Some(reader) = &self.reader {
            reader.abort();
        }
    }
}

/// A call that was begun or goes on.
pub(super) struct StartedCall {
    pub(super) guard: CancelOnDrop,
    pub(super) outcome: oneshot::Receiver<Outcome>,
    /// What is to be sent, in this order.
    pub(super) messages: Vec<Bytes>,
    /// The request, where the call is a new one. It is sent last.
    pub(super) request: Option<Outgoing>,
    /// Whether no other call is open.
    pub(super) is_only: bool,
}

/// A subscription that was begun.
pub(super) struct StartedListen {
    pub(super) guard: CancelOnDrop,
    pub(super) acknowledged: oneshot::Receiver<Result<Filter, Rejection>>,
    pub(super) changes: BoxStream<Change>,
    /// What is to be sent, each under the key that its answer comes to.
    pub(super) requests: Vec<(CallKey, Outgoing)>,
}

impl Connection {
    /// A connection that is ready. `is_http` says whether each request has an HTTP response of its own.
    pub(super) fn new(
        negotiated: Negotiated,
        is_http: bool,
        settings: Settings,
        outbox: Outbox,
        gone: CancellationToken,
    ) -> Connection {
        let Negotiated { edge, description } = negotiated;
        Connection {
            cancels_by_closing: is_http && edge.rules().disconnect == Disconnect::Cancels,
            description: Arc::new(description),
            settings,
            gone,
            outbox,
            watchers: Watchers::default(),
            state: Mutex::new(State {
                edge,
                calls: Calls::default(),
                listens: HashMap::new(),
                next_key: FIRST_CALL_ID,
                end: None,
                tools: HashMap::new(),
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The revision that client and server speak.
    pub(super) fn revision(&self) -> Revision {
        self.state().edge.revision()
    }

    /// How many calls are open, those included that are parked.
    pub(super) fn open_calls(&self) -> usize {
        self.state().calls.len()
    }

    /// Why the connection ended, for the user of this machine; empty while it lasts.
    pub(super) fn why_ended(&self) -> String {
        self.state().end.as_ref().map(|end| end.told(true)).unwrap_or_default()
    }

    /// The error of a call that got no answer before the connection ended.
    pub(super) fn ended(&self) -> Rejection {
        let end = self.state().end.as_ref().map(|end| end.told(false));
        Rejection::Internal(end.unwrap_or_else(|| "the server is gone".to_owned()))
    }

    /// The error of a message that was not written before the connection ended.
    pub(super) fn not_sent(&self) -> Rejection {
        Rejection::Gone(self.ended().to_string())
    }

    /// Ends the connection: all calls fail. `details` is for the user of this machine alone, since the address of a
    /// server and what it wrote last concern nobody else.
    pub(super) fn end(&self, why: &str, details: &str) {
        self.end_before(None, why, details);
    }

    /// Ends the connection, as [`Connection::end`] does. The server did not begin with one of the calls, which can be
    /// made again on another connection.
    pub(super) fn end_before(&self, not_begun: Option<CallKey>, why: &str, details: &str) {
        let end = End { why: why.to_owned(), details: details.to_owned() };
        let mut state = self.state();
        // Whoever makes its call again must find that this connection has ended.
        state.end.get_or_insert_with(|| end.clone());
        self.gone.cancel();
        if let Some(key) = not_begun {
            state.calls.fail(key, |is_local| Rejection::Gone(end.told(is_local)));
        }
        state.calls.fail_all(|is_local| Rejection::Internal(end.told(is_local)));
        state.listens.clear();
        drop(state);
        self.watchers.close();
    }

    /// Begins a call, or goes on with a parked one. It is cancelled when the guard is dropped.
    ///
    /// # Errors
    /// When the connection has ended, or the request answers a call that is not parked.
    pub(super) fn begin(self: &Arc<Self>, request: &Request) -> Result<StartedCall, Rejection> {
        let mut state = self.state();
        if let Some(end) = &state.end {
            return Err(Rejection::Gone(end.told(false)));
        }
        if let (Edge::Legacy(_), Some(answers)) = (&state.edge, &request.answers) {
            let unknown = || {
                Rejection::Params("requestState is not valid: the call that asked is no longer open".into())
            };
            let named = answers.state.as_ref().ok_or_else(unknown)?;
            let (resumed, outcome) = state.calls.resume(named, request).ok_or_else(unknown)?;
            let (key, outputs) = match resumed {
                Resumed::Open(key) => (key, state.edge.answer(key, answers).unwrap_or_default()),
                Resumed::Ended(key) => (key, Vec::new()),
            };
            let messages = self.dispatch(&mut state, outputs);
            let guard = CancelOnDrop::new(self, key);
            return Ok(StartedCall { guard, outcome, messages, request: None, is_only: false });
        }
        if let Some(failure) = could_not_answer(request) {
            return Err(failure);
        }
        let key = state.key();
        let mut outgoing = state.edge.call(key, request);
        let is_only = state.calls.len() == 0;
        let outcome = state.calls.start(key, request);
        let messages = std::mem::take(&mut outgoing.before);
        let guard = CancelOnDrop::new(self, key);
        Ok(StartedCall { guard, outcome, messages, request: Some(outgoing), is_only })
    }

    /// Begins a subscription. It ends when the guard is dropped.
    ///
    /// # Errors
    /// When the connection has ended.
    pub(super) fn begin_listen(self: &Arc<Self>, filter: &Filter) -> Result<StartedListen, Rejection> {
        let mut state = self.state();
        if let Some(end) = &state.end {
            return Err(Rejection::Internal(end.told(false)));
        }
        let key = state.key();
        let (acknowledge, acknowledged) = oneshot::channel();
        let (sender, changes): (_, BoxStream<Change>) = match state.edge {
            Edge::Legacy(_) => (None, self.watchers.watch(filter.clone())),
            Edge::Modern(_) => {
                let (sender, changes) = async_channel::bounded(BACKLOG);
                (Some(sender), Box::pin(changes))
            }
        };
        let listen = Listen { acknowledged: Some(acknowledge), changes: sender, reader: None };
        state.listens.insert(key, listen);
        let Starting { requests, outputs } = state.edge.listen(key, filter);
        // A listen that begins sends nothing but its requests.
        self.dispatch(&mut state, outputs);
        Ok(StartedListen { guard: CancelOnDrop::new(self, key), acknowledged, changes, requests })
    }

    /// Takes in what the server sent; gives what is to be sent in reply. `on` is the call or listen in whose HTTP
    /// response it came.
    pub(super) fn receive(&self, heard: FromServer, on: Option<CallKey>) -> Vec<Bytes> {
        match heard {
            FromServer::Message(message) => self.receive_message(message, on),
            FromServer::Broken { answers, why } => {
                self.settings.warn(&format!("dateline: a message of the server cannot be read: {why}"));
                let mut state = self.state();
                let outputs = answers.map(|key| state.edge.broken(key, &why)).unwrap_or_default();
                self.dispatch(&mut state, outputs)
            }
            FromServer::Rubbish => Vec::new(),
        }
    }

    fn receive_message(&self, message: Message, on: Option<CallKey>) -> Vec<Bytes> {
        let mut state = self.state();
        let outputs = state.edge.receive(message, on);
        self.dispatch(&mut state, outputs)
    }

    /// Does what the edge asks for; gives what is to be sent.
    fn dispatch(&self, state: &mut State, outputs: Vec<Output>) -> Vec<Bytes> {
        let mut messages = Vec::new();
        for output in outputs {
            match output {
                Output::Send(message) => messages.push(message),
                Output::Event(key, event) => state.calls.event(key, event),
                Output::InputRequired(key, questions) => state.calls.ask(key, questions),
                Output::Answered(key, answer) => state.calls.answer(key, answer),
                Output::Listening(key, filter) => {
                    let waiting = state.listens.get_mut(&key).and_then(|listen| listen.acknowledged.take());
                    if let Some(waiting) = waiting {
                        let _ = waiting.send(Ok(filter));
                    }
                }
                Output::Ended(key, why) => {
                    let listen = state.listens.remove(&key);
                    let waiting = listen.and_then(|mut listen| listen.acknowledged.take());
                    if let (Some(waiting), Some(why)) = (waiting, why) {
                        let _ = waiting.send(Err(why));
                    }
                }
                Output::Changed(Some(key), change) => {
                    let changes = state.listens.get(&key).and_then(|listen| listen.changes.as_ref());
                    if changes.is_some_and(|changes| changes.try_send(change).is_err()) {
                        state.listens.remove(&key);
                    }
                }
                Output::Changed(None, change) => self.watchers.tell(&change),
            }
        }
        messages
    }

    /// Queues replies to the server, and waits where there is no room. A server that asks without reading the replies
    /// is disconnected after a while.
    pub(super) async fn reply(&self, messages: Vec<Bytes>) {
        if messages.is_empty() {
            return;
        }
        let queued = tokio::select! {
            queued = self.outbox.push(messages) => queued,
            () = self.gone.cancelled() => return,
        };
        if let Err(full) = queued {
            let why = "the server asks and does not read what it is answered, and was let go";
            self.end(why, &format!(": {full}"));
        }
    }

    /// Fails a call. Where the call is parked, the failure waits for its client.
    pub(super) fn fail(&self, key: CallKey, why: Rejection) {
        self.state().calls.answer(key, Err(why));
    }

    /// Whether the server has yet to answer the call.
    pub(super) fn is_unanswered(&self, key: CallKey) -> bool {
        self.state().calls.is_unanswered(key)
    }

    /// Notes the task that reads the HTTP response of a call.
    pub(super) fn set_call_reader(&self, key: CallKey, reader: AbortHandle) {
        self.state().calls.set_reader(key, reader);
    }

    /// Notes the task that reads the HTTP response of a listen.
    pub(super) fn set_listen_reader(&self, key: CallKey, reader: AbortHandle) {
        match self.state().listens.get_mut(&key) {
            Some(listen) => listen.reader = Some(reader),
            None => reader.abort(),
        }
    }

    /// Ends a listen whose HTTP response has ended.
    pub(super) fn end_listen(&self, key: CallKey) {
        self.state().listens.remove(&key);
    }

    /// What is known of a tool.
    pub(super) fn tool(&self, name: &str) -> Option<Tool> {
        self.state().tools.get(name).cloned()
    }

    /// Notes the tools that a result of `tools/list` lists.
    pub(super) fn note_tools(&self, result: &Object) {
        self.state().tools.extend(tools::listed(result));
    }

    /// Cancels the parked call that a request state names, since its client does not come back.
    pub(super) fn abandon(self: &Arc<Self>, request_state: &Raw) {
        let key = self.state().calls.abandon(request_state);
        drop(key.map(|key| CancelOnDrop::new(self, key)));
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.gone.cancel();
    }
}

impl State {
    fn key(&mut self) -> CallKey {
        self.next_key += 1;
        self.next_key - 1
    }
}

/// A modern server has no form for an answer that is an error: without the answer it would ask for ever.
fn could_not_answer(request: &Request) -> Option<Rejection> {
    let responses = request.answers.iter().flat_map(|answers| &answers.responses);
    let (name, error) =
        responses.filter_map(|(name, outcome)| Some((name, outcome.as_ref().err()?))).next()?;
    let why = Rejection::passed(error);
    Some(Rejection::Internal(format!("the client could not answer {name}: {why}")))
}

/// Cancels a call or listen at the server when it is dropped, unless the call has ended.
pub(super) struct CancelOnDrop {
    connection: Arc<Connection>,
    key: CallKey,
    is_armed: bool,
}

impl CancelOnDrop {
    fn new(connection: &Arc<Connection>, key: CallKey) -> CancelOnDrop {
        CancelOnDrop { connection: Arc::clone(connection), key, is_armed: true }
    }

    /// The key of the call or listen.
    pub(super) fn key(&self) -> CallKey {
        self.key
    }

    /// What becomes of a call that came to this outcome: a parked one stays open until its client comes back, and is
    /// cancelled after [`Settings::hold`].
    pub(super) fn settle(mut self, outcome: Outcome) -> Result<Answer, Rejection> {
        match outcome {
            Outcome::Ended(answer) => answer,
            Outcome::Parked(questions) => {
                self.is_armed = false;
                self.cancel_later(&questions);
                Ok(Answer::InputRequired(questions))
            }
        }
    }

    fn cancel_later(&self, questions: &InputRequired) {
        let Some(state) = questions.state.clone() else { return };
        let (connection, hold) = (Arc::downgrade(&self.connection), self.connection.settings.hold);
        tokio::spawn(async move {
            tokio::time::sleep(hold).await;
            if let Some(connection) = connection.upgrade() {
                connection.abandon(&state);
            }
        });
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if !self.is_armed {
            return;
        }
        let mut state = self.connection.state();
        state.calls.remove(self.key);
        state.listens.remove(&self.key);
        let messages = state.edge.cancel(self.key, "the client gave it up");
        drop(state);
        if !self.connection.cancels_by_closing {
            self.connection.outbox.push_now(messages);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::outbox::{Queued, outbox};
    use proto::upstream::Session;
    use proto::{ClientCapabilities, Peer};
    use spec::{Method, Notice, Question};
    use std::time::Duration;
    use tokio::sync::mpsc::UnboundedReceiver;

    /// A connection to a legacy server that was asked to call a tool, and asks for roots.
    async fn parked(hold: Duration) -> (Arc<Connection>, UnboundedReceiver<Queued>, Raw) {
        let revision = Revision::LATEST_LEGACY;
        let opened = Object::new().with("protocolVersion", revision.as_str());
        let (session, description, _) = Session::open(Ok(opened.into())).unwrap();
        let negotiated = Negotiated { edge: Edge::Legacy(session), description };
        let settings = Settings { hold, ..Settings::new("test", "1") };
        let (outbox, queued) = outbox();
        let connection =
            Arc::new(Connection::new(negotiated, false, settings, outbox, CancellationToken::new()));
        let declared = Object::new().with("roots", Raw::literal("{}"));
        let capabilities = Arc::new(ClientCapabilities::read(declared, revision));
        let mut peer = (*Peer::own()).clone();
        peer.capabilities = capabilities;
        let request = Request::new(Method::ToolsCall, Object::new(), Arc::new(peer));
        let started = connection.begin(&request).unwrap();
        let question = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, Question::ListRoots.wire());
        for heard in proto::read_from_server(question.into(), &connection.settings.limits) {
            assert!(connection.receive(heard, None).is_empty());
        }
        let outcome = started.outcome.await.unwrap();
        match started.guard.settle(outcome) {
            Ok(Answer::InputRequired(asked)) => (connection, queued, asked.state.unwrap()),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_parked_call_is_cancelled_when_its_client_does_not_come_back_in_time() {
        let (connection, mut queued, _) = parked(Duration::ZERO).await;
        let (message, _) = queued.recv().await.unwrap();
        assert!(String::from_utf8_lossy(&message).contains(Notice::Cancelled.wire()), "{message:?}");
        assert_eq!(connection.open_calls(), 0);
    }

    #[tokio::test]
    async fn a_parked_call_is_cancelled_when_its_client_abandons_it() {
        let (connection, mut queued, state) = parked(Duration::MAX).await;
        assert_eq!(connection.open_calls(), 1);
        connection.abandon(&state);
        let (message, _) = queued.try_recv().unwrap();
        assert!(String::from_utf8_lossy(&message).contains(Notice::Cancelled.wire()), "{message:?}");
        assert_eq!(connection.open_calls(), 0);
        connection.abandon(&state);
        assert!(queued.try_recv().is_err(), "once is enough");
    }
}
