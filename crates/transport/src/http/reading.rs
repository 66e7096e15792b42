//! A connection that reads a stream of a session.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{Response, StatusCode};
use proto::downstream::http::{Accept, EventId, Next, ResponseForm, StreamReader};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::options::Options;
use super::response::{accepted, event_stream, json};
use super::session::OpenSession;
use crate::limits::Counted;
use crate::{JSON_WITHIN, sse};

/// A connection that reads a stream. When it is dropped, the stream stays, so that the client can reconnect to it.
pub(crate) struct Reading {
    session: Arc<OpenSession>,
    place: StreamReader,
    /// Wakes when there is something to read, or no more.
    changed: Arc<Notify>,
    /// Its place among the streams that have no end.
    _room: Option<Counted>,
}

impl Drop for Reading {
    fn drop(&mut self) {
        let now = self.session.now();
        self.session.with(|state| state.machine.leave(&self.place, now));
    }
}

impl Reading {
    pub(crate) fn new(session: Arc<OpenSession>, place: StreamReader, room: Option<Counted>) -> Reading {
        let changed = session.with(|state| state.signal(place.stream()));
        Reading { session, place, changed, _room: room }
    }

    /// Answers a POST: by one JSON object where there is nothing else to say and it comes promptly, else by an event
    /// stream.
    pub(crate) async fn answer(self, accept: Accept, options: &Options) -> Response<Body> {
        let deadline = tokio::time::Instant::now() + JSON_WITHIN;
        while accept.object() {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let form = self.session.with(|state| state.machine.form(&self.place));
            match form {
                ResponseForm::Object(Some(message)) => return json(StatusCode::OK, message),
                ResponseForm::Object(None) => return accepted(),
                ResponseForm::Stream => break,
                ResponseForm::Open if !accept.stream() => changed.await,
                ResponseForm::Open if tokio::time::timeout_at(deadline, changed).await.is_err() => break,
                ResponseForm::Open => {}
            }
        }
        let opening = self.session.with(|state| state.machine.opening(&self.place));
        self.events(opening, options, None)
    }

    /// An event stream of what is to be read here. It ends with `shutdown` where it would not end by itself.
    pub(crate) fn events(
        self,
        opening: Option<EventId>,
        options: &Options,
        shutdown: Option<CancellationToken>,
    ) -> Response<Body> {
        let opening = opening.map(|id| sse::opening(&id.text(), options.retry));
        let keep_alive = options.keep_alive;
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
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let next = self.session.with(|state| state.machine.next(&self.place));
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
