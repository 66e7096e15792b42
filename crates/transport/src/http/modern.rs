//! A modern POST: the call lives in its response, and ends with it.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::{Response, StatusCode};
use proto::downstream::http::{Accept, Refusal};
use proto::downstream::{Call, Ending};
use proto::{Answer, BoxFuture, BoxStream, Change, Event, EventSink, Filter, Peer, Rejection, Request};
use tokio_util::sync::CancellationToken;

use super::endpoint::Endpoint;
use super::response::{Frame, Frames, events, full_for, respond};
use crate::BACKLOG;
use crate::crowd::{Counted, Who};

/// Answers a call.
pub(crate) async fn call(
    endpoint: &Arc<Endpoint>,
    call: Call,
    request: Request,
    accept: Accept,
) -> Response<Body> {
    respond(running(endpoint, call, request), accept, endpoint.options.keep_alive).await
}

/// Answers a listen.
///
/// # Errors
/// Refuses it where too many are open, and where the service refuses it.
pub(crate) async fn listen(
    endpoint: &Arc<Endpoint>,
    mut call: Call,
    filter: Filter,
    peer: Arc<Peer>,
    who: Who,
) -> Result<Response<Body>, Refusal> {
    let room = endpoint.crowd.listens.enter(who).map_err(|limit| full_for(call.id(), &limit))?;
    let listening = endpoint.served.service.listen(filter, peer).await;
    let listening = listening.map_err(|rejection| Refusal::of(call.id(), &rejection))?;
    let acknowledged = call.listening(listening.honoured);
    let frames = listening_to(endpoint, call, acknowledged, listening.changes, room);
    Ok(events(frames, endpoint.options.keep_alive))
}

/// A call under way, with all that its stream needs. Dropping it cancels the call.
struct Running {
    endpoint: Arc<Endpoint>,
    call: Call,
    work: Option<BoxFuture<'static, Result<Answer, Rejection>>>,
    events: async_channel::Receiver<(u64, Event)>,
    ready: VecDeque<Bytes>,
    answer: Option<Result<Answer, Rejection>>,
}

fn running(endpoint: &Arc<Endpoint>, call: Call, mut request: Request) -> Frames {
    let (sink, events) = async_channel::bounded(BACKLOG);
    request.events = EventSink::new(0, sink);
    let service = Arc::clone(&endpoint.served.service);
    let work: BoxFuture<'static, _> = Box::pin(async move { service.call(request).await });
    let state = Running {
        endpoint: Arc::clone(endpoint),
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
                let (status, bytes) = self.call.answered(answer, &self.endpoint.served);
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
    endpoint: Arc<Endpoint>,
    call: Call,
    changes: BoxStream<Change>,
    ready: VecDeque<Frame>,
    ended: bool,
    shutdown: CancellationToken,
    _room: Counted,
}

fn listening_to(
    endpoint: &Arc<Endpoint>,
    call: Call,
    acknowledged: Bytes,
    changes: BoxStream<Change>,
    room: Counted,
) -> Frames {
    let state = Listen {
        shutdown: endpoint.shutdown.clone(),
        endpoint: Arc::clone(endpoint),
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
            let [cancelled, result] = self.call.ended(why, &self.endpoint.served);
            self.ready.extend([Frame::Part(cancelled), Frame::Last(StatusCode::OK, result)]);
        }
    }
}
