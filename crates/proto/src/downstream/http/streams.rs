//! The event streams of a session: which message goes on which stream, and what is kept for a client that reconnects.
//!
//! A stream stays when its connection ends. Its messages lie in one buffer from which a connection reads, and a later
//! connection goes on behind the last event that its client names.
//!
//! <https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#resumability-and-redelivery>

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::downstream::http::event_id::{EventId, StreamId};
use crate::downstream::http::stream::Stream;
use crate::downstream::http::stream_reader::{Next, ResponseForm, Room, StreamError, StreamReader};
use crate::rpc::wire::CallKey;

/// How many streams that concern no call a session keeps for a client that is away: browsers open a few, and each is
/// replaced by a new one when it breaks off.
const AWAY: usize = 8;
/// How many messages wait on one stream for a reader that is behind before the call that sends them waits too.
const WAITING: usize = 256;
/// How many bytes wait on one stream for a reader that is behind before the call that sends them waits too. One message
/// waits whatever its length.
const WAITING_BYTES: usize = 4 << 20;

/// How much a session keeps for a client that reconnects.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Replay {
    /// Messages.
    pub messages: usize,
    /// Bytes of them. The newest message is kept whatever its length.
    pub bytes: usize,
}

impl Default for Replay {
    /// 1000 messages, 1 MiB.
    fn default() -> Replay {
        Replay { messages: 1000, bytes: 1 << 20 }
    }
}

/// The streams of one session.
#[derive(Debug, Serialize, Deserialize)]
#[serde(try_from = "SavedStreams")]
pub(super) struct Streams {
    /// The start of all its event ids.
    session: u32,
    streams: BTreeMap<StreamId, Stream>,
    /// Where the messages of a call go; the stream may be gone before the call is.
    calls: BTreeMap<CallKey, StreamId>,
    /// Messages that wait for a stream of the session's own.
    #[serde(with = "crate::saved::messages")]
    waiting: VecDeque<Bytes>,
    next: StreamId,
    replay: Replay,
    /// The messages on all streams.
    #[serde(skip)]
    messages: usize,
    /// The bytes of them.
    #[serde(skip)]
    bytes: usize,
    /// The bytes of what waits.
    #[serde(skip)]
    waiting_bytes: usize,
    /// The streams whose readers and senders have something new to look at.
    changed: BTreeSet<StreamId>,
}

/// What is written of [`Streams`]: the counts are counted again.
#[derive(Deserialize)]
struct SavedStreams {
    session: u32,
    streams: BTreeMap<StreamId, Stream>,
    calls: BTreeMap<CallKey, StreamId>,
    #[serde(with = "crate::saved::messages")]
    waiting: VecDeque<Bytes>,
    #[serde(deserialize_with = "crate::saved::counter")]
    next: StreamId,
    replay: Replay,
    changed: BTreeSet<StreamId>,
}

impl TryFrom<SavedStreams> for Streams {
    type Error = &'static str;

    fn try_from(saved: SavedStreams) -> Result<Streams, &'static str> {
        let SavedStreams { session, mut streams, calls, waiting, next, replay, changed } = saved;
        let (mut messages, mut bytes) = (0, 0);
        for of in calls.values() {
            if let Some(stream) = streams.get_mut(of) {
                stream.open += 1;
            }
        }
        for (id, stream) in &mut streams {
            stream.recount()?;
            if *id >= next {
                return Err("a stream has a number that was not given yet");
            }
            messages += stream.events.len();
            bytes += stream.events.iter().map(Bytes::len).sum::<usize>();
        }
        let waiting_bytes = waiting.iter().map(Bytes::len).sum();
        Ok(Streams {
            session,
            streams,
            calls,
            waiting,
            next,
            replay,
            messages,
            bytes,
            waiting_bytes,
            changed,
        })
    }
}

impl Streams {
    /// `session` is in all ids of events, and in those of no other session.
    pub(super) fn new(session: u32, replay: Replay) -> Streams {
        Streams {
            session,
            streams: BTreeMap::new(),
            calls: BTreeMap::new(),
            waiting: VecDeque::new(),
            next: 1,
            replay,
            messages: 0,
            bytes: 0,
            waiting_bytes: 0,
            changed: BTreeSet::new(),
        }
    }

    fn open(&mut self, own: bool, plain: bool, open: usize) -> StreamReader {
        let id = self.next;
        self.next += 1;
        let stream = Stream {
            own,
            plain,
            events: VecDeque::new(),
            first: 1,
            sent: 0,
            unsent: 0,
            named: false,
            open,
            reader: Some(0),
            next_reader: 1,
            release: None,
        };
        self.streams.insert(id, stream);
        StreamReader { stream: id, reader: 0 }
    }

    /// A stream for calls that came in one POST. `plain`: the client takes one JSON object only.
    pub(super) fn of_calls(&mut self, keys: &[CallKey], plain: bool) -> StreamReader {
        let reader = self.open(false, plain, keys.len());
        self.calls.extend(keys.iter().map(|key| (*key, reader.stream)));
        reader
    }

    /// Whether the messages of a call have a stream already, be it one that is gone.
    pub(super) fn has(&self, key: CallKey) -> bool {
        self.calls.contains_key(&key)
    }

    /// A stream of the session's own.
    pub(super) fn of_session(&mut self) -> StreamReader {
        let away = self.streams.iter().filter(|(_, s)| s.own && s.reader.is_none()).map(|(id, _)| *id);
        let away: Vec<_> = away.collect();
        for id in away.iter().take(away.len().saturating_sub(AWAY)) {
            self.remove(*id);
        }
        self.open(true, false, 0)
    }

    /// The place behind an event that a client saw last. A connection that still reads there ends. No more than
    /// `most` streams of the session's own are read then.
    pub(super) fn resume(&mut self, seen: EventId, most: usize) -> Result<StreamReader, StreamError> {
        if seen.session != self.session || seen.stream >= self.next {
            return Err(StreamError::Unknown);
        }
        let full = self.own() >= most;
        let Some(stream) = self.streams.get_mut(&seen.stream) else {
            // What concerns no call is told on any stream of the session's own.
            return match seen.own {
                true if full => Err(StreamError::Full),
                true => Ok(self.of_session()),
                false => Err(StreamError::Forgotten),
            };
        };
        if seen.own != stream.own || seen.number > stream.last() {
            return Err(StreamError::Unknown);
        }
        if full && stream.own && stream.reader.is_none() {
            return Err(StreamError::Full);
        }
        // What it saw is not kept any longer.
        while stream.first <= seen.number {
            let freed = stream.events.pop_front().map_or(0, |message| message.len());
            stream.first += 1;
            self.messages -= 1;
            self.bytes -= freed;
        }
        stream.sent = stream.first - 1;
        stream.unsent = stream.events.iter().map(Bytes::len).sum();
        stream.release = None;
        stream.named = true;
        let reader = stream.next_reader;
        stream.next_reader += 1;
        stream.reader = Some(reader);
        self.changed.insert(seen.stream);
        Ok(StreamReader { stream: seen.stream, reader })
    }

    /// Returns what the connection of a reader does next.
    pub(super) fn next(&mut self, reader: &StreamReader) -> Next {
        let Some(stream) = self.streams.get_mut(&reader.stream) else { return Next::End };
        if stream.reader != Some(reader.reader) {
            return Next::End;
        }
        if stream.own
            && stream.pending() == 0
            && let Some(message) = self.waiting.pop_front()
        {
            self.waiting_bytes -= message.len();
            self.keep(reader.stream, message);
        }
        let Some(stream) = self.streams.get_mut(&reader.stream) else { return Next::End };
        if stream.pending() > 0 {
            stream.sent += 1;
            stream.named = true;
            let message = stream.events[usize::try_from(stream.sent - stream.first).unwrap_or(0)].clone();
            let behind = stream.unsent >= WAITING_BYTES;
            stream.unsent -= message.len();
            let id = EventId {
                session: self.session,
                stream: reader.stream,
                own: stream.own,
                number: stream.sent,
            };
            // Who waits for room gets some well before the reader has nothing to do.
            if stream.pending() == WAITING / 2 || behind && stream.unsent < WAITING_BYTES {
                self.changed.insert(reader.stream);
            }
            return Next::Event(id, message);
        }
        if stream.is_finished() {
            return Next::End;
        }
        match stream.release.take() {
            Some(after) => Next::Release(after),
            None => Next::Wait,
        }
    }

    /// The id of the empty event that a stream opens with.
    pub(super) fn opening(&mut self, reader: &StreamReader) -> Option<EventId> {
        let stream = self.streams.get_mut(&reader.stream)?;
        stream.named = true;
        Some(EventId { session: self.session, stream: reader.stream, own: stream.own, number: 0 })
    }

    /// How a stream that nothing was sent on yet can be answered. One that is whole is over with that.
    pub(super) fn form(&mut self, reader: &StreamReader) -> ResponseForm {
        let Some(stream) = self.streams.get(&reader.stream) else { return ResponseForm::Object(None) };
        match (stream.is_finished(), stream.events.len()) {
            (true, 0 | 1) => {
                let message = stream.events.front().cloned();
                self.remove(reader.stream);
                ResponseForm::Object(message)
            }
            (false, 0) if stream.release.is_none() => ResponseForm::Open,
            _ if stream.plain => ResponseForm::Open,
            _ => ResponseForm::Stream,
        }
    }

    /// Removes a reader whose connection is closed. A client that was told no id cannot reconnect to the stream.
    pub(super) fn leave(&mut self, reader: &StreamReader) {
        let Some(stream) = self.streams.get_mut(&reader.stream) else { return };
        if stream.reader != Some(reader.reader) {
            return;
        }
        stream.reader = None;
        self.changed.insert(reader.stream);
        let over = stream.is_finished() && stream.events.is_empty();
        if stream.named && !over { self.trim() } else { self.remove(reader.stream) }
    }

    /// A message of a call, which goes on the call's stream.
    pub(super) fn send(&mut self, key: CallKey, message: &Bytes) -> Room {
        let Some(id) = self.calls.get(&key).copied() else { return Room::Taken };
        let Some(stream) = self.streams.get(&id) else { return Room::Taken };
        if stream.plain {
            self.forget_events(id);
        } else if stream.reader.is_some() && (stream.pending() >= WAITING || stream.unsent >= WAITING_BYTES) {
            return Room::Full(id);
        }
        self.keep(id, message.clone());
        Room::Taken
    }

    /// Closes the connection of a call's stream, because it reads nothing; the client may reconnect.
    pub(super) fn give_up(&mut self, key: CallKey) {
        let Some(id) = self.calls.get(&key).copied() else { return };
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.reader = None;
        self.changed.insert(id);
        self.trim();
    }

    /// A message that concerns no call: it goes on one stream of the session's own, the newest that is read, or
    /// waits for one.
    pub(super) fn push(&mut self, message: &Bytes) {
        let open = self.streams.iter().rev().find(|(_, stream)| stream.own && stream.reader.is_some());
        match open.map(|(id, stream)| (*id, stream.pending())) {
            Some((id, pending)) if pending < WAITING && self.waiting.is_empty() => {
                self.keep(id, message.clone());
            }
            _ => {
                if self.waiting.len() == WAITING {
                    self.waiting_bytes -= self.waiting.pop_front().map_or(0, |message| message.len());
                }
                self.waiting_bytes += message.len();
                self.waiting.push_back(message.clone());
            }
        }
    }

    /// A call has nothing more to say.
    pub(super) fn finish(&mut self, key: CallKey) {
        let Some(id) = self.calls.remove(&key) else { return };
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.open -= 1;
        self.changed.insert(id);
        // Its client saw everything, or nothing is left that it could come back for.
        if stream.is_finished() && stream.reader.is_none() && stream.events.is_empty() {
            self.remove(id);
        }
    }

    /// The connection that carries a call may be closed.
    pub(super) fn release(&mut self, key: CallKey, after: Duration) {
        let Some(id) = self.calls.get(&key).copied() else { return };
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if !stream.plain && stream.reader.is_some() {
            stream.release = Some(after);
            self.changed.insert(id);
        }
    }

    /// Whether any connection reads.
    pub(super) fn is_read(&self) -> bool {
        self.streams.values().any(|stream| stream.reader.is_some())
    }

    /// How many connections read what concerns no call.
    pub(super) fn own(&self) -> usize {
        self.streams.values().filter(|stream| stream.own && stream.reader.is_some()).count()
    }

    /// How many bytes are kept.
    pub(super) fn kept(&self) -> usize {
        self.bytes + self.waiting_bytes
    }

    /// The streams whose readers and senders have something new to look at since this was asked last.
    pub(super) fn take_changed(&mut self) -> BTreeSet<StreamId> {
        std::mem::take(&mut self.changed)
    }

    /// Whether a stream is there.
    pub(super) fn holds(&self, id: StreamId) -> bool {
        self.streams.contains_key(&id)
    }

    /// Ends all streams.
    pub(super) fn close(&mut self) {
        self.changed.extend(std::mem::take(&mut self.streams).into_keys());
        self.calls.clear();
        self.forget_waiting();
        (self.messages, self.bytes) = (0, 0);
    }

    /// Forgets everything that is kept for a client that reconnects.
    pub(super) fn forget(&mut self) {
        self.forget_waiting();
        self.trim_to(0);
    }

    /// Lets go of all connections: what they do not read is forgotten, too.
    pub(super) fn drop_readers(&mut self) {
        for (id, stream) in self.streams.iter_mut().filter(|(_, stream)| stream.unsent > 0) {
            stream.reader = None;
            self.changed.insert(*id);
        }
        self.forget();
    }

    fn forget_waiting(&mut self) {
        self.waiting = VecDeque::new();
        self.waiting_bytes = 0;
    }

    fn keep(&mut self, id: StreamId, message: Bytes) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        self.messages += 1;
        self.bytes += message.len();
        stream.unsent += message.len();
        stream.events.push_back(message);
        self.changed.insert(id);
        self.trim();
    }

    fn remove(&mut self, id: StreamId) {
        self.forget_events(id);
        if self.streams.remove(&id).is_some() {
            self.changed.insert(id);
        }
    }

    fn forget_events(&mut self, id: StreamId) {
        while self.forget_first(id) {}
    }

    fn forget_first(&mut self, id: StreamId) -> bool {
        let Some(stream) = self.streams.get_mut(&id) else { return false };
        let Some(message) = stream.events.pop_front() else { return false };
        stream.first += 1;
        if stream.sent < stream.first - 1 {
            stream.sent = stream.first - 1;
            stream.unsent -= message.len();
        }
        self.messages -= 1;
        self.bytes -= message.len();
        true
    }

    /// Forgets what is over the limit: first what was sent and is kept only in case it did not arrive, then what a
    /// client that is away missed, and only then responses that it did not see. What a connection is about to
    /// read stays.
    fn trim(&mut self) {
        while self.messages > self.replay.messages || self.bytes > self.replay.bytes && self.messages > 1 {
            if !self.forget_least() {
                return;
            }
        }
    }

    /// Forgets in the same order until so many bytes are left.
    fn trim_to(&mut self, bytes: usize) {
        while self.bytes > bytes && self.forget_least() {}
    }

    /// Forgets one message; says whether there was one that may be forgotten.
    fn forget_least(&mut self) -> bool {
        let sent = |s: &Stream| !s.events.is_empty() && s.first <= s.sent;
        // The last one of a call may be its response, also before the call counts as over.
        let missed = |s: &Stream| s.reader.is_none() && s.events.len() > usize::from(!s.own);
        let response = |s: &Stream| s.reader.is_none() && !s.events.is_empty();
        let found = [&sent as &dyn Fn(&Stream) -> bool, &missed, &response]
            .into_iter()
            .find_map(|test| self.streams.iter().find(|(_, stream)| test(stream)).map(|(id, _)| *id));
        let Some(id) = found else { return false };
        self.forget_first(id);
        let over = |s: &Stream| s.is_finished() && s.reader.is_none() && s.events.is_empty();
        if self.streams.get(&id).is_some_and(over) {
            self.remove(id);
        }
        true
    }
}
