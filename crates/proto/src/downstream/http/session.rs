//! A session over Streamable HTTP: its messages and its event streams.
//!
//! <https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http>

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use spec::{Rules, header as name};

use crate::downstream::http::accept::Accept;
use crate::downstream::http::event_id::{EventId, StreamId};
use crate::downstream::http::random;
use crate::downstream::http::refusal::Refusal;
use crate::downstream::http::request::Payload;
use crate::downstream::http::stream_reader::{Next, ResponseForm, Room, StreamError, StreamReader};
use crate::downstream::http::streams::{Replay, Streams};
use crate::downstream::output::{Output, Served};
use crate::downstream::session::Session;
use crate::model::event::Event;
use crate::model::listen::{Change, Filter};
use crate::model::rejection::Rejection;
use crate::model::request::{Answer, Principal};
use crate::rpc::wire::{CallKey, Id};
use crate::saved::Format;

/// A session over Streamable HTTP.
///
/// Times are durations since the session was opened.
///
/// Like [`Session`] it is plain data that serde writes and reads, with what is kept for a client that reconnects: so the
/// client can go on by `Last-Event-ID` with another process.
#[derive(Debug, Serialize, Deserialize)]
pub struct HttpSession {
    format: Format,
    session: Session,
    streams: Streams,
    /// When its client or a call did something last.
    used: Duration,
    /// More came from its client than the request that opened it.
    begun: bool,
}

/// The random bytes of a session over HTTP.
#[derive(Clone, Copy, Debug)]
pub struct Random {
    /// The random bytes of its id.
    pub id: [u8; random::ID],
    /// Random bytes that the ids of its events contain.
    pub events: [u8; 4],
}

/// How a POST to a session is answered.
#[derive(Debug)]
pub enum Reply {
    /// By this message.
    Message(Bytes),
    /// By what its calls send, which is read here.
    Stream(StreamReader),
    /// By nothing.
    Nothing,
}

/// How much a session is in use. Where a session has to end, it is one of the least use.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Use {
    /// It was opened, and nothing came after that.
    None,
    /// No call runs, and no connection reads.
    Idle,
    /// A connection reads a stream of it.
    Read,
    /// A call runs.
    Works,
}

impl HttpSession {
    /// Opens a session over HTTP, with its id, of random bytes. They are also in the ids of its events, so that an id of
    /// another session is not taken for one of this session. `request` is the id of the `initialize` request.
    ///
    /// # Errors
    /// Refuses the request where the system gives no random bytes.
    pub fn open(
        session: Session,
        request: &Id,
        random: Option<Random>,
        replay: Replay,
    ) -> Result<(String, HttpSession), Refusal> {
        let random = random.ok_or_else(|| {
            let why = Rejection::Internal(random::NO_ID.into());
            Refusal::of(request, &why).status(StatusCode::SERVICE_UNAVAILABLE)
        })?;
        let streams = Streams::new(u32::from_ne_bytes(random.events), replay);
        let opened = HttpSession { format: Format, session, streams, used: Duration::ZERO, begun: false };
        Ok((random::session_id(random.id), opened))
    }

    /// Returns the principal that opened the session.
    pub fn principal(&self) -> &Principal {
        self.session.principal()
    }

    /// How the session's revision behaves.
    pub fn rules(&self) -> &'static Rules {
        self.session.rules()
    }

    /// Whether the session was unused for longer than `idle`. Running calls and open connections keep it; a question
    /// whose client is gone does not.
    pub fn is_stale(&self, idle: Duration, now: Duration) -> bool {
        !self.session.works() && !self.streams.is_read() && now.saturating_sub(self.used) > idle
    }

    /// Whether a key is that of a call under way.
    pub fn is_call(&self, key: CallKey) -> bool {
        self.session.is_call(key)
    }

    /// How much the session is in use.
    pub fn in_use(&self) -> Use {
        match () {
            () if self.session.works() => Use::Works,
            () if self.streams.is_read() => Use::Read,
            () if self.begun => Use::Idle,
            () => Use::None,
        }
    }

    /// Takes in what was posted. Do what the outputs say before the POST is answered.
    ///
    /// # Errors
    /// Refuses an array that has nothing to accept.
    pub fn post(
        &mut self,
        payload: Payload,
        accept: Accept,
        served: &Served,
        now: Duration,
    ) -> Result<(Vec<Output>, Reply), Refusal> {
        (self.used, self.begun) = (now, true);
        if let Payload::Batch(batch) = &payload
            && let Some(refusal) = self.session.refuses(batch, served)
        {
            return Err(Refusal::with_body(refusal));
        }
        let outputs = match payload {
            Payload::Message(message) => self.session.receive(message, served, accept.stream()),
            Payload::Batch(batch) => self.session.batch(&batch, served, accept.stream()),
        };
        let reply = outputs.iter().find_map(|output| match output {
            Output::Reply(bytes) => Some(Reply::Message(bytes.clone())),
            _ => None,
        });
        let calls = outputs.iter().filter_map(|output| match output {
            Output::Start(key, _) | Output::Listen(key, _, _) => Some(*key),
            _ => None,
        });
        // An answer makes an older call go on, which has a stream already.
        let fresh: Vec<CallKey> =
            calls.filter(|key| self.session.is_call(*key) && !self.streams.has(*key)).collect();
        let reply = reply.unwrap_or_else(|| match fresh.is_empty() {
            true => Reply::Nothing,
            false => Reply::Stream(self.streams.of_calls(&fresh, !accept.stream())),
        });
        Ok((outputs, reply))
    }

    /// Opens a stream for what concerns no call, or goes on with a stream behind the event that the request names. No
    /// more than `most` streams of the first kind are read at once. Gives the id of the empty event that the stream opens
    /// with, where it has one.
    ///
    /// # Errors
    /// Refuses a request where too many streams are open, or whose event is not known or not kept.
    pub fn open_stream(
        &mut self,
        headers: &HeaderMap,
        most: usize,
        now: Duration,
    ) -> Result<(StreamReader, Option<EventId>), Refusal> {
        (self.used, self.begun) = (now, true);
        let bad = |why| Refusal::new(StatusCode::BAD_REQUEST, why);
        let opened = match headers.get(name::LAST_EVENT_ID) {
            None if self.streams.own() >= most => Err(StreamError::Full),
            None => Ok((self.streams.of_session(), true)),
            Some(seen) => {
                let seen = seen.to_str().ok().and_then(EventId::read).ok_or(StreamError::Unknown);
                seen.and_then(|seen| {
                    let reader = self.streams.resume(seen, most)?;
                    // A new stream in the place of one that is gone has ids of its own.
                    let is_new = !seen.is_of(reader.stream());
                    Ok((reader, is_new))
                })
            }
        };
        let (reader, is_new) = opened.map_err(|lost| match lost {
            StreamError::Unknown => bad("Last-Event-ID names no event of this session"),
            StreamError::Forgotten => bad("what followed that event is no longer kept; ask again"),
            StreamError::Full => {
                let why = "this session has as many open streams as it may";
                Refusal::new(StatusCode::TOO_MANY_REQUESTS, why)
            }
        })?;
        let opening = if is_new { self.opening(&reader) } else { None };
        Ok((reader, opening))
    }

    /// The id of the empty event that a new stream opens with, where the revision has that.
    pub fn opening(&mut self, reader: &StreamReader) -> Option<EventId> {
        if self.rules().priming_event { self.streams.opening(reader) } else { None }
    }

    /// How a POST can be answered whose stream nothing was sent on yet. With [`ResponseForm::Object`] the stream is over.
    pub fn form(&mut self, reader: &StreamReader) -> ResponseForm {
        self.streams.form(reader)
    }

    /// Returns what the connection of a reader does next.
    pub fn next(&mut self, reader: &StreamReader) -> Next {
        self.streams.next(reader)
    }

    /// The connection at a place is closed.
    pub fn leave(&mut self, reader: &StreamReader, now: Duration) {
        self.used = now;
        self.streams.leave(reader);
    }

    /// Something happened while a call was worked on.
    pub fn event(&mut self, key: CallKey, event: Event) -> Vec<Output> {
        self.session.event(key, event)
    }

    /// A call ended, or has to ask first.
    pub fn answered(
        &mut self,
        key: CallKey,
        answer: Result<Answer, Rejection>,
        served: &Served,
        now: Duration,
    ) -> Vec<Output> {
        self.used = now;
        self.session.answered(key, answer, served)
    }

    /// A listen runs, or could not be started.
    pub fn listening(&mut self, key: CallKey, honoured: Result<Filter, Rejection>) -> Vec<Output> {
        self.session.listening(key, honoured)
    }

    /// Something changed that the session watches.
    pub fn changed(&mut self, key: CallKey, change: &Change) -> Vec<Output> {
        self.session.changed(key, change)
    }

    /// Puts a message of a call on the call's stream.
    pub fn send(&mut self, key: CallKey, message: &Bytes) -> Room {
        self.streams.send(key, message)
    }

    /// Closes the connection that reads a call's stream, because it reads nothing; the client may reconnect.
    pub fn give_up(&mut self, key: CallKey) {
        self.streams.give_up(key);
    }

    /// Puts a message that concerns no call on one stream for such messages: the newest that is read. Where none is
    /// read, the message waits for one.
    pub fn push(&mut self, message: &Bytes) {
        self.streams.push(message);
    }

    /// A call has nothing more to say.
    pub fn finish(&mut self, key: CallKey) {
        self.streams.finish(key);
    }

    /// Allows the connection of a call's stream to be closed; the client reconnects after this time.
    pub fn release(&mut self, key: CallKey, after: Duration) {
        self.streams.release(key, after);
    }

    /// Ends all calls and streams. The outputs say what the service is to be told.
    pub fn close(&mut self) -> Vec<Output> {
        self.streams.close();
        self.session.abandoned()
    }

    /// Forgets what is kept for a client that reconnects.
    pub fn forget(&mut self) {
        self.streams.forget();
    }

    /// Forgets all that is kept, and lets go of the connections that have not read everything.
    pub fn drop_readers(&mut self) {
        self.streams.drop_readers();
    }

    /// How many bytes of messages are kept.
    pub fn kept(&self) -> usize {
        self.streams.kept()
    }

    /// The streams whose readers and senders have something new to look at since this was asked last.
    pub fn take_changed(&mut self) -> BTreeSet<StreamId> {
        self.streams.take_changed()
    }

    /// Whether a stream is there.
    pub fn has_stream(&self, id: StreamId) -> bool {
        self.streams.holds(id)
    }
}
