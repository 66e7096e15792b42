//! Does what the machine of a session says: runs calls and listens, and puts messages on streams.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::future::{AbortHandle, Abortable};
use futures_util::{FutureExt as _, StreamExt as _};
use http::{HeaderMap, Response};
use proto::downstream::Output;
use proto::downstream::http::{Accept, Payload, Refusal, Reply, Room};
use proto::{Answer, BoxFuture, CallKey, Event, EventQueue, Filter, Peer, Rejection, Request};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::options::Options;
use super::reading::Reading;
use super::response::{accepted, one, refused};
use super::session::OpenSession;
use super::sessions::Sessions;
use crate::limits::Counted;
use crate::{BACKLOG, JSON_WITHIN};

/// A session with what it takes to do what its machine says.
#[derive(Clone)]
pub(crate) struct Driver {
    session: Arc<OpenSession>,
    sessions: Weak<Sessions>,
    /// How long a client may read nothing before its connection is closed.
    write_timeout: Duration,
}

/// What the task of a call or a listen keeps: it does not keep the session open.
#[derive(Clone)]
struct OfTask {
    session: Weak<OpenSession>,
    sessions: Weak<Sessions>,
    write_timeout: Duration,
}

impl OfTask {
    fn driver(&self) -> Option<Driver> {
        let (sessions, write_timeout) = (Weak::clone(&self.sessions), self.write_timeout);
        self.session.upgrade().map(|session| Driver { session, sessions, write_timeout })
    }

    /// Passes on an event of a call.
    async fn event(&self, key: CallKey, event: Event) {
        if let Some(driver) = self.driver() {
            let outputs = driver.session.with(|state| state.machine.event(key, event));
            driver.apply(outputs).await;
        }
    }
}

impl Driver {
    pub(crate) fn new(
        session: Arc<OpenSession>,
        sessions: &Arc<Sessions>,
        write_timeout: Duration,
    ) -> Driver {
        Driver { session, sessions: Arc::downgrade(sessions), write_timeout }
    }

    fn of_task(&self) -> OfTask {
        let (session, sessions) = (Arc::downgrade(&self.session), Weak::clone(&self.sessions));
        OfTask { session, sessions, write_timeout: self.write_timeout }
    }

    /// Takes in what a POST carried, and answers it.
    pub(crate) async fn post(&self, payload: Payload, accept: Accept, options: &Options) -> Response<Body> {
        let (session, now) = (&self.session, self.session.now());
        let posted = session.with(|state| state.machine.post(payload, accept, session.served(), now));
        let (outputs, reply) = match posted {
            Ok(posted) => posted,
            Err(refusal) => return refused(refusal),
        };
        // From here on the stream is left when the client is gone.
        let reading = match &reply {
            Reply::Stream(place) => Some(Reading::new(Arc::clone(session), place.clone(), None)),
            _ => None,
        };
        // What was taken in is done to its end, also when the client is gone meanwhile.
        let mut applying = Box::pin(self.clone().apply(outputs));
        if (&mut applying).now_or_never().is_none() {
            let _ = tokio::spawn(applying).await;
        }
        match (reply, reading) {
            (Reply::Message(bytes), _) => one(bytes, accept),
            (_, Some(reading)) => reading.answer(accept, options).await,
            (_, None) => accepted(),
        }
    }

    /// Opens a stream for what concerns no call, or goes on with a stream that broke off.
    ///
    /// # Errors
    /// Refuses a stream over the limit, and an event that is not known or not kept.
    pub(crate) fn stream(
        &self,
        headers: &HeaderMap,
        options: &Options,
        shutdown: &CancellationToken,
        room: Counted,
    ) -> Result<Response<Body>, Refusal> {
        let (session, now) = (&self.session, self.session.now());
        let opened = session.with(|state| state.machine.open_stream(headers, options.streams, now));
        let (place, opening) = opened?;
        let reading = Reading::new(Arc::clone(session), place, Some(room));
        Ok(reading.events(opening, options, Some(shutdown.clone())))
    }

    /// Does what the machine says. Messages go out after the lock is given back.
    async fn apply(self, outputs: Vec<Output>) {
        let mut outputs = VecDeque::from(outputs);
        while let Some(output) = outputs.pop_front() {
            match output {
                Output::Reply(_) => {}
                Output::Send(key, bytes) => self.send(key, &bytes).await,
                Output::Push(bytes) => {
                    self.session.with(|state| state.machine.push(&bytes));
                    self.relieve();
                }
                Output::Start(key, request) => {
                    let further = self.start(key, request);
                    further.into_iter().rev().for_each(|output| outputs.push_front(output));
                }
                Output::Listen(key, filter, peer) => self.listen(key, filter, peer).await,
                Output::Drop(key) => self.session.stop(key),
                Output::Abandon(request) => self.session.served().service.abandon(*request),
                Output::Finish(key) => self.session.with(|state| state.machine.finish(key)),
                Output::Release(key, after) => {
                    self.session.with(|state| state.machine.release(key, after));
                }
            }
        }
    }

    /// Has sessions forget where all of them together keep too much.
    fn relieve(&self) {
        if let Some(sessions) = self.sessions.upgrade() {
            sessions.relieve();
        }
    }

    /// Puts a message on a call's stream. While the reader of the stream is behind, whoever makes the messages waits. A
    /// reader that reads nothing for too long is closed.
    async fn send(&self, key: CallKey, bytes: &Bytes) {
        let put = || {
            self.session.with(|state| match state.machine.send(key, bytes) {
                Room::Taken => None,
                Room::Full(stream) => Some(state.signal(stream)),
            })
        };
        while let Some(changed) = put() {
            let changed = changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            // There may be room since.
            if put().is_none() {
                break;
            }
            if tokio::time::timeout(self.write_timeout, changed).await.is_err() {
                self.session.with(|state| state.machine.give_up(key));
            }
        }
        self.relieve();
    }

    /// Runs a call. One that is answered at once is over then, and its outputs are given; any other goes on in a task of
    /// its own, also when the client disconnects.
    fn start(&self, key: CallKey, mut request: Box<Request>) -> Vec<Output> {
        let mut events = EventQueue::new(BACKLOG);
        request.events = events.sink(key);
        let service = Arc::clone(&self.session.served().service);
        let mut work: BoxFuture<'static, _> = Box::pin(async move { service.call(*request).await });
        let answer = (&mut work).now_or_never();
        let first = events.try_next();
        if first.is_none()
            && let Some(answer) = answer
        {
            return self.answered(key, answer);
        }
        let of_task = self.of_task();
        let task = async move {
            if let Some((key, event)) = first {
                of_task.event(key, event).await;
            }
            let answer = match answer {
                Some(answer) => answer,
                None => with_events(work, &mut events, &of_task).await,
            };
            // What happened before the answer goes out before it.
            while let Some((key, event)) = events.try_next() {
                of_task.event(key, event).await;
            }
            let Some(driver) = of_task.driver() else { return };
            let outputs = driver.answered(key, answer);
            driver.apply(outputs).await;
        };
        // Locked until the handle is kept: the work may be done at once. The client may have cancelled the call meanwhile.
        self.session.with(|state| {
            if state.machine.is_call(key) {
                state.works(key, spawn(task));
            }
        });
        Vec::new()
    }

    /// Gives the session the answer of the service.
    fn answered(&self, key: CallKey, answer: Result<Answer, Rejection>) -> Vec<Output> {
        let (session, now) = (&self.session, self.session.now());
        session.with(|state| {
            state.worked(key);
            state.machine.answered(key, answer, session.served(), now)
        })
    }

    /// Starts a listen, and waits a moment until it is in place: what changes once the client had its answer is told.
    async fn listen(&self, key: CallKey, filter: Filter, peer: Arc<Peer>) {
        let placed = self.start_listening(key, filter, peer);
        let _ = tokio::time::timeout(JSON_WITHIN, placed).await;
    }

    fn start_listening(&self, key: CallKey, filter: Filter, peer: Arc<Peer>) -> oneshot::Receiver<()> {
        let (service, of_task) = (Arc::clone(&self.session.served().service), self.of_task());
        let (place, placed) = oneshot::channel();
        let task = async move {
            let (honoured, changes) = match service.listen(filter, peer).await {
                Ok(listening) => (Ok(listening.honoured), Some(listening.changes)),
                Err(rejection) => (Err(rejection), None),
            };
            let _ = place.send(());
            if let Some(driver) = of_task.driver() {
                let outputs = driver.session.with(|state| state.machine.listening(key, honoured));
                driver.apply(outputs).await;
            }
            let Some(mut changes) = changes else { return };
            while let Some(change) = changes.next().await {
                let Some(driver) = of_task.driver() else { return };
                let outputs = driver.session.with(|state| state.machine.changed(key, &change));
                driver.apply(outputs).await;
            }
        };
        self.session.with(|state| state.listens(key, spawn(task)));
        placed
    }
}

fn spawn(work: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
    let (handle, registration) = AbortHandle::new_pair();
    tokio::spawn(Abortable::new(work, registration));
    handle
}

/// Polls a call, and passes on what happens meanwhile.
async fn with_events<T>(mut work: BoxFuture<'static, T>, events: &mut EventQueue, of_task: &OfTask) -> T {
    loop {
        tokio::select! {
            biased;
            (key, event) = events.next() => of_task.event(key, event).await,
            answer = &mut work => return answer,
        }
    }
}
