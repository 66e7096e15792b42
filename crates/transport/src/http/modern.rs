//! A modern POST: the call lives in its response, and ends with it.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::{HeaderMap, Response, StatusCode};
use proto::downstream::{Call, Ending, Opening};
use proto::{Answer, BoxFuture, BoxStream, Change, Event, EventSink, Rejection, Request, wire};
use tokio_util::sync::CancellationToken;

use super::door::Accept;
use super::respond::{Frame, Frames, events, one, respond};
use super::{App, Refusal, principal};
use crate::BACKLOG;
use crate::crowd::{Counted, Who};

pub(crate) async fn post(
    app: &Arc<App>,
    headers: &HeaderMap,
    call: &wire::Call,
    accept: Accept,
    who: Who,
) -> Result<Response<Body>, Refusal> {
    let refuse = |rejection: Rejection| Refusal::of(&call.id, &rejection);
    let (mut opened, opening) = Call::open(call, Some(headers), &app.served, &principal()).map_err(refuse)?;
    match opening {
        Opening::Reply(bytes) => Ok(one(bytes, accept, app.options.keep_alive)),
        Opening::Call(request) => {
            Ok(respond(running(app, opened, *request), accept, app.options.keep_alive).await)
        }
        Opening::Listen(_, _) if !accept.stream => {
            let why = "a listen is answered by text/event-stream, which the Accept header must admit";
            Err(Refusal { status: StatusCode::NOT_ACCEPTABLE, ..refuse(Rejection::Invalid(why.into())) })
        }
        Opening::Listen(filter, peer) => {
            let room = app.crowd.listens.enter(who).map_err(|full| Refusal::full_to(&call.id, &full))?;
            let listening = app.served.service.listen(filter, peer).await.map_err(refuse)?;
            let acknowledged = opened.listening(listening.honoured);
            let frames = listen(app, opened, acknowledged, listening.changes, room);
            Ok(events(frames, app.options.keep_alive))
        }
    }
}

/// A call under way, with all that its stream needs. Dropping it cancels the call.
struct Running {
    app: Arc<App>,
    call: Call,
    work: Option<BoxFuture<'static, Result<Answer, Rejection>>>,
    events: async_channel::Receiver<(u64, Event)>,
    ready: VecDeque<Bytes>,
    answer: Option<Result<Answer, Rejection>>,
}

fn running(app: &Arc<App>, call: Call, mut request: Request) -> Frames {
    let (sink, events) = async_channel::bounded(BACKLOG);
    request.events = EventSink::new(0, sink);
    let service = Arc::clone(&app.served.service);
    let work: BoxFuture<'static, _> = Box::pin(async move { service.call(request).await });
    let state = Running {
        app: Arc::clone(app),
        call,
        work: Some(work),
        events,
        ready: VecDeque::new(),
        answer: None,
    };
    Box::pin(stream::unfold(state, |mut state| async move {
        let frame = state.next().await?;
        Some((frame, state))
    }))
}

impl Running {
    async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Some(Frame::Part(bytes));
            }
            if let Some(answer) = self.answer.take() {
                let (status, bytes) = self.call.answered(answer, &self.app.served);
                return Some(Frame::Last(StatusCode::from_u16(status).unwrap_or(StatusCode::OK), bytes));
            }
            let work = self.work.as_mut()?;
            tokio::select! {
                biased;
                Ok((_, event)) = self.events.recv() => self.ready.extend(self.call.event(event)),
                answer = work => {
                    self.work = None;
                    self.answer = Some(answer);
                    // What happened before the answer goes out before it.
                    while let Ok((_, event)) = self.events.try_recv() {
                        self.ready.extend(self.call.event(event));
                    }
                }
            }
        }
    }
}

/// A listen under way.
struct Listen {
    app: Arc<App>,
    call: Call,
    changes: BoxStream<Change>,
    ready: VecDeque<Frame>,
    ended: bool,
    shutdown: CancellationToken,
    _room: Counted,
}

fn listen(
    app: &Arc<App>,
    call: Call,
    acknowledged: Bytes,
    changes: BoxStream<Change>,
    room: Counted,
) -> Frames {
    let state = Listen {
        shutdown: app.shutdown.clone(),
        app: Arc::clone(app),
        call,
        changes,
        ready: VecDeque::from([Frame::Part(acknowledged)]),
        ended: false,
        _room: room,
    };
    Box::pin(stream::unfold(state, |mut state| async move {
        let frame = state.next().await?;
        Some((frame, state))
    }))
}

impl Listen {
    async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Some(frame);
            }
            if self.ended {
                return None;
            }
            let (change, closing) = tokio::select! {
                biased;
                () = self.shutdown.cancelled() => (None, true),
                change = self.changes.next() => (change, false),
            };
            let why = match change {
                Some(Change::Behind) => Ending::Behind,
                Some(change) => {
                    self.ready.extend(self.call.changed(&change).map(Frame::Part));
                    continue;
                }
                None if closing => Ending::Closing,
                None => Ending::Over,
            };
            self.ended = true;
            let [cancelled, result] = self.call.ended(why, &self.app.served);
            self.ready.extend([Frame::Part(cancelled), Frame::Last(StatusCode::OK, result)]);
        }
    }
}
