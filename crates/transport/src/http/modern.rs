//! A modern POST: the call is part of its response, and ends with it.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::Body;
use futures_util::StreamExt as _;
use http::Response;
use proto::downstream::http::{Accept, CallResponse, Refusal};
use proto::downstream::{Call, Ending, Frame};
use proto::{Answer, BoxFuture, BoxStream, Change, EventQueue, Filter, Peer, Rejection, Request};
use tokio_util::sync::CancellationToken;

use super::endpoint::Endpoint;
use super::response::{Frames, accepted, events, full_for, json, within};
use crate::BACKLOG;
use crate::limits::{Counted, Owner};

/// Answers a call: with one JSON object where the service has nothing else to say, and with an event stream where it has,
/// or where it takes longer than a connection may be quiet.
pub(crate) async fn call(
    endpoint: &Arc<Endpoint>,
    call: Call,
    request: Request,
    accept: Accept,
) -> Response<Body> {
    let keep_alive = endpoint.options.keep_alive;
    let mut running = Running::new(endpoint, call, request);
    loop {
        let frame = match accept.stream() {
            true => match within(keep_alive, running.next()).await {
                Some(frame) => frame,
                None => return events(None, running, keep_alive),
            },
            false => running.next().await,
        };
        let Some(frame) = frame else { return accepted() };
        match accept.response(frame) {
            CallResponse::Object(status, message) => return json(status, message),
            CallResponse::Stream(first) => return events(Some(first), running, keep_alive),
            CallResponse::Open => {}
        }
    }
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
    owner: Owner,
) -> Result<Response<Body>, Refusal> {
    let room = endpoint.limits.listens.enter(owner).map_err(|limit| full_for(call.id(), &limit))?;
    let listening = endpoint.served.service.listen(filter, peer).await;
    let listening = listening.map_err(|rejection| Refusal::of(call.id(), &rejection))?;
    let acknowledged = call.listening(listening.honoured);
    let listen = Listen {
        shutdown: endpoint.shutdown.clone(),
        endpoint: Arc::clone(endpoint),
        call,
        changes: listening.changes,
        ready: VecDeque::new(),
        _room: room,
    };
    Ok(events(Some(acknowledged), listen, endpoint.options.keep_alive))
}

/// A call under way. Dropping it cancels the call.
struct Running {
    endpoint: Arc<Endpoint>,
    call: Call,
    /// The service's work on the call; `None` after it has answered.
    work: Option<BoxFuture<'static, Result<Answer, Rejection>>>,
    events: EventQueue,
    /// The answer, while events are sent that came before it.
    answer: Option<Result<Answer, Rejection>>,
}

impl Running {
    fn new(endpoint: &Arc<Endpoint>, call: Call, mut request: Request) -> Running {
        let events = EventQueue::new(BACKLOG);
        request.events = events.sink(0);
        let service = Arc::clone(&endpoint.served.service);
        let work: BoxFuture<'static, _> = Box::pin(async move { service.call(request).await });
        Running { endpoint: Arc::clone(endpoint), call, work: Some(work), events, answer: None }
    }
}

impl Frames for Running {
    async fn next(&mut self) -> Option<Frame> {
        loop {
            while let Some((_, event)) = self.events.try_next() {
                if let Some(frame) = self.call.event(event) {
                    return Some(frame);
                }
            }
            if let Some(answer) = self.answer.take() {
                return Some(self.call.answered(answer, &self.endpoint.served));
            }
            let work = self.work.as_mut()?;
            tokio::select! {
                biased;
                answer = work => {
                    self.work = None;
                    self.answer = Some(answer);
                }
                (_, event) = self.events.next() => {
                    if let Some(frame) = self.call.event(event) {
                        return Some(frame);
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
    shutdown: CancellationToken,
    _room: Counted,
}

impl Frames for Listen {
    async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Some(frame);
            }
            let served = &self.endpoint.served;
            tokio::select! {
                biased;
                () = self.shutdown.cancelled() => self.ready.extend(self.call.ended(Ending::Closing, served)),
                change = self.changes.next() => match change {
                    Some(change) => self.ready.extend(self.call.changed(&change, served)),
                    None => self.ready.extend(self.call.ended(Ending::Over, served)),
                },
            }
        }
    }
}
