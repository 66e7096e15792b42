//! A live session over Streamable HTTP: its machine, its streams, and the calls that are under way.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use axum::body::Body;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::{AbortHandle, Abortable};
use http::{Response, StatusCode};
use proto::CallKey;
use proto::downstream::http::{Accept, Payload};
use proto::downstream::{Output, Served, Session};
use proto::{Event, EventSink, Filter, Peer, Request};
use spec::Rules;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::endpoint::Endpoint;
use super::legacy;
use super::options::Options;
use super::response::{accepted, event_stream, json, one};
use super::streams::{EventId, Form, Lost, Next, Place, Room, Streams};
use crate::crowd::Counted;
use crate::{BACKLOG, sse};

/// How long an answer may take to go out as one JSON object. What takes longer gets an event stream, on which its
/// client hears that it is alive, and for which it can come back.
const PROMPT: Duration = Duration::from_millis(500);

/// A live session.
pub(crate) struct Live {
    app: Weak<Endpoint>,
    served: Arc<Served>,
    rules: &'static Rules,
    retry: Duration,
    stall: Duration,
    state: Mutex<State>,
}

struct State {
    session: Session,
    streams: Streams,
    /// Calls that are worked on; one that waits for an answer of the client is not among them.
    work: HashMap<CallKey, AbortHandle>,
    listens: HashMap<CallKey, AbortHandle>,
    used: Instant,
    /// More came from its client than the request that opened it.
    begun: bool,
}

/// How much a session is in use: of those of the least use the longest unused goes where there is no room for all.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Use {
    /// It was opened, and nothing came after that.
    None,
    /// Nothing runs in it, and nobody reads.
    Idle,
    /// A connection reads a stream of it.
    Read,
    /// A call is worked on.
    Works,
}

impl Live {
    pub(crate) fn new(session: Session, app: &Arc<Endpoint>) -> Live {
        let mut name = [0; 4];
        // Without randomness no session is opened at all.
        let _ = getrandom::fill(&mut name);
        let options = &app.options;
        Live {
            app: Arc::downgrade(app),
            served: Arc::clone(&app.served),
            rules: session.rules(),
            retry: options.retry,
            stall: options.stall,
            state: Mutex::new(State {
                session,
                streams: Streams::new(u32::from_ne_bytes(name), options.replay, Arc::clone(&app.kept)),
                work: HashMap::new(),
                listens: HashMap::new(),
                used: Instant::now(),
                begun: false,
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the revision behaves that was agreed on.
    pub(crate) fn rules(&self) -> &'static Rules {
        self.rules
    }

    /// Whether nobody has used the session for so long. Work and open streams keep it; a question whose client is
    /// gone does not.
    pub(crate) fn is_stale(&self, idle: Duration) -> bool {
        let state = self.lock();
        state.work.is_empty() && !state.streams.is_read() && state.used.elapsed() > idle
    }

    /// How much it is in use.
    pub(crate) fn in_use(&self) -> Use {
        let state = self.lock();
        match () {
            () if !state.work.is_empty() => Use::Works,
            () if state.streams.is_read() => Use::Read,
            () if state.begun => Use::Idle,
            () => Use::None,
        }
    }

    /// Forgets what is kept in case its client comes back; with `all` also what is not read by connections that it
    /// has, and lets go of those.
    pub(crate) fn forget(&self, all: bool) {
        let mut state = self.lock();
        if all { state.streams.let_go() } else { state.streams.forget() }
    }

    /// Has sessions forget where all of them together keep too much.
    fn relieve(&self) {
        if let Some(app) = self.app.upgrade().filter(|app| app.kept.is_over()) {
            legacy::forget(&app);
        }
    }

    /// Ends all calls and streams.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        let State { work, listens, .. } = &mut *state;
        for (_, handle) in work.drain().chain(listens.drain()) {
            handle.abort();
        }
        state.streams.close();
        for output in state.session.abandoned() {
            if let Output::Abandon(request) = output {
                self.served.service.abandon(*request);
            }
        }
    }

    /// Takes in what a POST carried.
    pub(crate) async fn receive(
        self: &Arc<Self>,
        payload: Payload,
        accept: Accept,
        app: &Endpoint,
    ) -> Response<Body> {
        let (outputs, place) = {
            let mut state = self.lock();
            (state.used, state.begun) = (Instant::now(), true);
            if let Payload::Batch(sent) = &payload
                && let Some(refusal) = state.session.refuses(sent, &self.served)
            {
                // Nothing in it could be accepted.
                return json(StatusCode::BAD_REQUEST, refusal);
            }
            let outputs = match payload {
                Payload::Message(message) => state.session.receive(message, &self.served, accept.stream()),
                Payload::Batch(sent) => state.session.batch(&sent, &self.served, accept.stream()),
            };
            let keys: Vec<CallKey> = outputs
                .iter()
                .filter_map(|output| match output {
                    Output::Start(key, _) | Output::Listen(key, _, _) => Some(*key),
                    _ => None,
                })
                // An answer makes an older call go on, whose stream there is.
                .filter(|key| state.session.is_call(*key) && !state.streams.has(*key))
                .collect();
            let place = (!keys.is_empty()).then(|| state.streams.of_calls(&keys, !accept.stream()));
            (outputs, place)
        };
        let reading = place.map(|place| Reading { live: Arc::clone(self), place, _room: None });
        let reply = outputs.iter().find_map(|output| match output {
            Output::Reply(bytes) => Some(bytes.clone()),
            _ => None,
        });
        self.apply(outputs).await;
        match (reply, reading) {
            (Some(bytes), _) => one(bytes, accept, app.options.keep_alive),
            (None, Some(reading)) => reading.answer(accept, &app.options).await,
            (None, None) => accepted(),
        }
    }

    /// Opens a stream of the session's own.
    pub(crate) fn stream(
        self: &Arc<Self>,
        options: &Options,
        shutdown: &CancellationToken,
        room: Counted,
    ) -> Response<Body> {
        let place = {
            let mut state = self.lock();
            state.begun = true;
            state.streams.of_session()
        };
        let reading = Reading { live: Arc::clone(self), place, _room: Some(room) };
        reading.events(self.rules.priming_event, options.keep_alive, Some(shutdown.clone()))
    }

    /// Goes on with a stream behind the event that its client saw last.
    pub(crate) fn resume(
        self: &Arc<Self>,
        seen: EventId,
        options: &Options,
        shutdown: &CancellationToken,
        room: Counted,
    ) -> Result<Response<Body>, Lost> {
        let place = {
            let mut state = self.lock();
            state.used = Instant::now();
            state.streams.resume(seen, options.streams)?
        };
        // A new stream in the place of one that is gone has ids of its own.
        let fresh = place.stream != seen.stream;
        let reading = Reading { live: Arc::clone(self), place, _room: Some(room) };
        Ok(reading.events(fresh && self.rules.priming_event, options.keep_alive, Some(shutdown.clone())))
    }

    /// How many connections read what concerns no call.
    pub(crate) fn own_streams(&self) -> usize {
        self.lock().streams.own()
    }

    /// Does what the session asks for. Messages go out after the lock is given back.
    async fn apply(self: &Arc<Self>, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Reply(_) => {}
                Output::Send(key, bytes) => self.send(key, &bytes).await,
                Output::Push(bytes) => {
                    self.lock().streams.push(&bytes);
                    self.relieve();
                }
                Output::Start(key, request) => self.start(key, request),
                Output::Listen(key, filter, peer) => self.listen(key, filter, peer).await,
                Output::Drop(key) => {
                    let mut state = self.lock();
                    let handles = [state.work.remove(&key), state.listens.remove(&key)];
                    drop(state);
                    handles.iter().flatten().for_each(AbortHandle::abort);
                }
                Output::Abandon(request) => self.served.service.abandon(*request),
                Output::Finish(key) => self.lock().streams.finish(key),
                Output::Release(key, after) => self.lock().streams.release(key, after),
            }
        }
    }

    /// Puts a message on a call's stream. While its reader is behind, who makes the messages waits; a reader that
    /// stands still is let go.
    async fn send(&self, key: CallKey, bytes: &Bytes) {
        loop {
            let Room::Full(changed) = self.lock().streams.send(key, bytes) else { break };
            let changed = changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            // There may be room since.
            if matches!(self.lock().streams.send(key, bytes), Room::Taken) {
                break;
            }
            if tokio::time::timeout(self.stall, changed).await.is_err() {
                self.lock().streams.give_up(key);
            }
        }
        self.relieve();
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
                    if state.work.is_empty() && state.work.capacity() > BACKLOG {
                        state.work.shrink_to_fit();
                    }
                    state.used = Instant::now();
                    state.session.answered(key, answer, &live.served)
                };
                live.apply(outputs).await;
            }
        });
        state.work.insert(key, handle);
    }

    /// Starts a listen, and waits a moment until it is in place: what changes once the client had its answer is told.
    async fn listen(self: &Arc<Self>, key: CallKey, filter: Filter, peer: Arc<Peer>) {
        let placed = self.start_listening(key, filter, peer);
        let _ = tokio::time::timeout(PROMPT, placed).await;
    }

    fn start_listening(
        self: &Arc<Self>,
        key: CallKey,
        filter: Filter,
        peer: Arc<Peer>,
    ) -> oneshot::Receiver<()> {
        let (service, live) = (Arc::clone(&self.served.service), Arc::downgrade(self));
        let (place, placed) = oneshot::channel();
        let mut state = self.lock();
        let handle = spawn(async move {
            let (honoured, changes) = match service.listen(filter, peer).await {
                Ok(listening) => (Ok(listening.honoured), Some(listening.changes)),
                Err(rejection) => (Err(rejection), None),
            };
            let _ = place.send(());
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
        placed
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

/// A connection that reads a stream. Dropped, it leaves the stream to one that comes back.
struct Reading {
    live: Arc<Live>,
    place: Place,
    /// Its place among the streams that have no end.
    _room: Option<Counted>,
}

impl Drop for Reading {
    fn drop(&mut self) {
        let mut state = self.live.lock();
        state.streams.leave(&self.place);
        state.used = Instant::now();
    }
}

impl Reading {
    /// Answers a POST: by one JSON object where there is nothing else to say and it comes promptly, else by an event
    /// stream.
    async fn answer(self, accept: Accept, options: &Options) -> Response<Body> {
        let deadline = tokio::time::Instant::now() + PROMPT;
        while accept.object() {
            let changed = self.place.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let form = self.live.lock().streams.form(&self.place);
            match form {
                Form::Whole(Some(message)) => return json(StatusCode::OK, message),
                Form::Whole(None) => return accepted(),
                Form::Several => break,
                Form::Open if !accept.stream() => changed.await,
                Form::Open if tokio::time::timeout_at(deadline, changed).await.is_err() => break,
                Form::Open => {}
            }
        }
        let priming = self.live.rules.priming_event;
        self.events(priming, options.keep_alive, None)
    }

    /// An event stream of what is to be read here. It ends with `shutdown` where it would not end by itself.
    fn events(
        self,
        priming: bool,
        keep_alive: Duration,
        shutdown: Option<CancellationToken>,
    ) -> Response<Body> {
        let opening = if priming { self.live.lock().streams.opening(&self.place) } else { None };
        let opening = opening.map(|id| sse::opening(&id.text(), self.live.retry));
        event_stream(futures_util::stream::unfold(Some((self, opening)), move |state| {
            let shutdown = shutdown.clone();
            async move {
                let (reading, opening) = state?;
                if let Some(opening) = opening {
                    return Some((opening, Some((reading, None))));
                }
                let stopped = async {
                    match shutdown {
                        Some(shutdown) => shutdown.cancelled_owned().await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    biased;
                    part = reading.part(keep_alive) => {
                        let (bytes, more) = part?;
                        Some((bytes, more.then_some((reading, None))))
                    }
                    () = stopped => None,
                }
            }
        }))
    }

    /// The next part of the event stream, and whether more will follow.
    async fn part(&self, keep_alive: Duration) -> Option<(Bytes, bool)> {
        loop {
            let changed = self.place.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let next = self.live.lock().streams.next(&self.place);
            match next {
                Next::Event(id, message) => return Some((sse::event_with_id(&id.text(), message), true)),
                Next::Release(after) => return Some((sse::retry(after), false)),
                Next::End => return None,
                Next::Wait => {
                    if tokio::time::timeout(keep_alive, changed).await.is_err() {
                        return Some((Bytes::from_static(sse::KEEP_ALIVE), true));
                    }
                }
            }
        }
    }
}
