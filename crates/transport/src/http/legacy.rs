//! Handshake sessions over HTTP: the table of them, and the streams of each.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use axum::body::Body;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::{AbortHandle, Abortable};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use proto::edge::{CallKey, Output, Served};
use proto::legacy::server::Session;
use proto::wire::{self, Message};
use proto::{Event, EventSink, Filter, Peer, Rejection, Request};
use spec::{Era, Revision, header as name};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::door::Accept;
use super::respond::{Frame, events, one, respond};
use super::{App, Refusal, accepted, door, json, principal};
use crate::BACKLOG;

/// A live session.
pub(crate) struct Live {
    served: Arc<Served>,
    revision: Revision,
    state: Mutex<State>,
}

struct State {
    session: Session,
    /// Where the messages of a call go. Kept while the client is away: the call goes on.
    streams: HashMap<CallKey, mpsc::Sender<Frame>>,
    /// Calls that are worked on; one that waits for an answer of the client is not among them.
    work: HashMap<CallKey, AbortHandle>,
    listens: HashMap<CallKey, AbortHandle>,
    /// Open GET streams; a message goes out on the newest.
    gets: Vec<mpsc::Sender<Frame>>,
    /// What waits for a GET stream.
    waiting: VecDeque<Bytes>,
    used: Instant,
}

impl Drop for Live {
    fn drop(&mut self) {
        self.close();
    }
}

/// The live session that a request names.
pub(crate) fn find(app: &App, headers: &HeaderMap) -> Option<Arc<Live>> {
    let id = headers.get(name::SESSION_ID)?.to_str().ok()?;
    let sessions = app.sessions.lock().unwrap_or_else(PoisonError::into_inner);
    sessions.get(id).cloned()
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
) -> Result<Response<Body>, Refusal> {
    let refuse = |status, rejection: &Rejection| Refusal { status, ..Refusal::of(&call.id, rejection) };
    let (session, reply) = Session::open(call, &app.served, principal())
        .map_err(|rejection| refuse(StatusCode::BAD_REQUEST, &rejection))?;
    let full = || {
        let why = format!("{} sessions are open, which is the limit; try again later", app.options.sessions);
        refuse(StatusCode::SERVICE_UNAVAILABLE, &Rejection::Internal(why))
    };
    let id = session_id().ok_or_else(|| {
        refuse(StatusCode::SERVICE_UNAVAILABLE, &Rejection::Internal("no session id could be made".into()))
    })?;
    let value = HeaderValue::from_str(&id).map_err(|_| full())?;
    let live = Live {
        served: Arc::clone(&app.served),
        revision: session.rules().revision,
        state: Mutex::new(State {
            session,
            streams: HashMap::new(),
            work: HashMap::new(),
            listens: HashMap::new(),
            gets: Vec::new(),
            waiting: VecDeque::new(),
            used: Instant::now(),
        }),
    };
    let mut sessions = app.sessions.lock().unwrap_or_else(PoisonError::into_inner);
    app.forget_stale(&mut sessions);
    if sessions.len() >= app.options.sessions {
        return Err(full());
    }
    sessions.insert(id, Arc::new(live));
    drop(sessions);
    let mut response = one(reply, accept, app.options.keep_alive);
    response.headers_mut().insert(HeaderName::from_static(name::SESSION_ID), value);
    Ok(response)
}

/// 128 random bits as visible ASCII.
fn session_id() -> Option<String> {
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
    let removed = app.sessions.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    let live = removed.ok_or_else(no_session)?;
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

fn no_stream() -> Refusal {
    Refusal::plain(StatusCode::METHOD_NOT_ALLOWED, "GET and DELETE are of a session; this request names none")
}

/// Opens a stream of a session, for what concerns no call.
pub(crate) fn get(app: &Arc<App>, headers: &HeaderMap) -> Result<Response<Body>, Refusal> {
    if named(app, headers)?.is_none() {
        return Err(no_stream());
    }
    let live = find(app, headers).ok_or_else(no_session)?;
    if !door::accept(headers)?.stream {
        return Err(Refusal::plain(
            StatusCode::NOT_ACCEPTABLE,
            "a GET is answered by text/event-stream only",
        ));
    }
    let (sender, receiver) = mpsc::channel(BACKLOG);
    {
        let mut state = live.lock();
        while let Some(bytes) = state.waiting.pop_front() {
            // The backlog is no longer than the channel.
            let _ = sender.try_send(Frame::Part(bytes));
        }
        state.gets.retain(|get| !get.is_closed());
        state.gets.push(sender);
    }
    let shutdown = app.shutdown.clone();
    let frames = ReceiverStream::new(receiver).take_until(async move { shutdown.cancelled_owned().await });
    Ok(events(Box::pin(frames), app.options.keep_alive))
}

/// Takes in a message of a session.
pub(crate) async fn receive(live: &Arc<Live>, message: Message, accept: Accept, app: &App) -> Response<Body> {
    let is_request = matches!(message, Message::Request(_));
    let (sender, receiver) = mpsc::channel(BACKLOG);
    let (outputs, reply) = {
        let mut state = live.lock();
        state.used = Instant::now();
        let outputs = state.session.receive(message, &live.served, accept.stream);
        let mut reply = None;
        for output in &outputs {
            match output {
                Output::Reply(bytes) => reply = Some(bytes.clone()),
                Output::Start(key, _) | Output::Listen(key, _, _) if is_request => {
                    state.streams.insert(*key, sender.clone());
                }
                _ => {}
            }
        }
        (outputs, reply)
    };
    drop(sender);
    live.apply(outputs).await;
    match reply {
        Some(bytes) => one(bytes, accept, app.options.keep_alive),
        None if is_request => {
            respond(Box::pin(ReceiverStream::new(receiver)), accept, app.options.keep_alive).await
        }
        None => accepted(),
    }
}

impl Live {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The revision that was agreed on.
    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    /// Whether nobody has used the session for so long. Work and open streams keep it; a question that nobody
    /// answers does not.
    pub(crate) fn is_stale(&self, idle: std::time::Duration) -> bool {
        let mut state = self.lock();
        state.gets.retain(|get| !get.is_closed());
        state.work.is_empty() && state.gets.is_empty() && state.used.elapsed() > idle
    }

    /// Ends all calls and streams.
    fn close(&self) {
        let mut state = self.lock();
        let State { work, listens, .. } = &mut *state;
        for (_, handle) in work.drain().chain(listens.drain()) {
            handle.abort();
        }
        state.streams.clear();
        state.gets.clear();
        for output in state.session.abandoned() {
            if let Output::Abandon(request) = output {
                self.served.service.abandon(*request);
            }
        }
    }

    /// Does what the session asks for. Messages go out after the lock is given back.
    async fn apply(self: &Arc<Self>, outputs: Vec<Output>) {
        for (at, output) in outputs.iter().enumerate() {
            match output {
                Output::Reply(_) => {}
                Output::Send(key, bytes) => {
                    let last = outputs[at..].iter().any(|o| matches!(o, Output::Finish(k) if k == key))
                        && !outputs[at + 1..].iter().any(|o| matches!(o, Output::Send(k, _) if k == key));
                    let stream = self.lock().streams.get(key).cloned();
                    if let Some(stream) = stream {
                        let frame = match last {
                            true => Frame::Last(StatusCode::OK, bytes.clone()),
                            false => Frame::Part(bytes.clone()),
                        };
                        let _ = stream.send(frame).await;
                    }
                }
                Output::Push(bytes) => self.push(bytes),
                Output::Start(key, request) => self.start(*key, request.clone()),
                Output::Listen(key, filter, peer) => self.listen(*key, filter.clone(), Arc::clone(peer)),
                Output::Drop(key) => {
                    let mut state = self.lock();
                    let handles = [state.work.remove(key), state.listens.remove(key)];
                    drop(state);
                    handles.iter().flatten().for_each(AbortHandle::abort);
                }
                Output::Abandon(request) => self.served.service.abandon((**request).clone()),
                Output::Finish(key) => {
                    self.lock().streams.remove(key);
                }
            }
        }
    }

    fn push(&self, bytes: &Bytes) {
        let mut state = self.lock();
        state.gets.retain(|get| !get.is_closed());
        let sent = state.gets.last().is_some_and(|get| get.try_send(Frame::Part(bytes.clone())).is_ok());
        if !sent {
            if state.waiting.len() == BACKLOG {
                state.waiting.pop_front();
            }
            state.waiting.push_back(bytes.clone());
        }
    }

    /// Runs a call in a task of its own: it goes on when the client disconnects.
    fn start(self: &Arc<Self>, key: CallKey, mut request: Box<Request>) {
        let (sink, events) = async_channel::bounded(BACKLOG);
        request.events = EventSink::new(key, sink);
        let (service, live) = (Arc::clone(&self.served.service), Arc::downgrade(self));
        // Locked until the handle is kept: the work may be done at once.
        let mut state = self.lock();
        let handle = spawn(async move {
            let work = service.call(*request);
            let answer = with_events(work, &events, &live).await;
            if let Some(live) = live.upgrade() {
                let outputs = {
                    let mut state = live.lock();
                    state.work.remove(&key);
                    state.session.answered(key, answer, &live.served)
                };
                live.apply(outputs).await;
            }
        });
        state.work.insert(key, handle);
    }

    fn listen(self: &Arc<Self>, key: CallKey, filter: Filter, peer: Arc<Peer>) {
        let (service, live) = (Arc::clone(&self.served.service), Arc::downgrade(self));
        let mut state = self.lock();
        let handle = spawn(async move {
            let (honoured, changes) = match service.listen(filter, peer).await {
                Ok(listening) => (Ok(listening.honoured), Some(listening.changes)),
                Err(rejection) => (Err(rejection), None),
            };
            if let Some(live) = live.upgrade() {
                let outputs = live.lock().session.listening(key, honoured);
                live.apply(outputs).await;
            }
            let Some(mut changes) = changes else { return };
            while let Some(change) = changes.next().await {
                let Some(live) = live.upgrade() else { return };
                let outputs = live.lock().session.changed(key, &change);
                live.apply(outputs).await;
            }
        });
        state.listens.insert(key, handle);
    }
}

fn spawn(work: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
    let (handle, registration) = AbortHandle::new_pair();
    tokio::spawn(Abortable::new(work, registration));
    handle
}

/// Polls a call, and passes on what happens meanwhile.
async fn with_events<T>(
    work: impl Future<Output = T>,
    events: &async_channel::Receiver<(u64, Event)>,
    live: &Weak<Live>,
) -> T {
    let pass = |key, event| async move {
        if let Some(live) = live.upgrade() {
            let outputs = live.lock().session.event(key, event);
            live.apply(outputs).await;
        }
    };
    tokio::pin!(work);
    loop {
        tokio::select! {
            biased;
            Ok((key, event)) = events.recv() => pass(key, event).await,
            done = &mut work => {
                while let Ok((key, event)) = events.try_recv() {
                    pass(key, event).await;
                }
                return done;
            }
        }
    }
}
