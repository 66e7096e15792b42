//! A connection that reads an event stream, and what it does next.

use std::time::Duration;

use bytes::Bytes;

use crate::downstream::http::event_id::{EventId, StreamId};

/// A connection that reads a stream.
#[derive(Clone, Debug)]
pub struct StreamReader {
    pub(super) stream: StreamId,
    pub(super) reader: u64,
}

impl StreamReader {
    /// Returns the id of the stream.
    pub fn stream(&self) -> StreamId {
        self.stream
    }
}

/// What a connection does next.
#[derive(Debug)]
pub enum Next {
    /// Send this event.
    Event(EventId, Bytes),
    /// Wait until something changed.
    Wait,
    /// Close; the client may reconnect after this time.
    Release(Duration),
    /// Close: the stream is complete, or another connection reads it.
    End,
}

/// How a POST can be answered, once messages of its calls are known.
#[derive(Debug)]
pub enum ResponseForm {
    /// By one message, or by no message at all.
    Object(Option<Bytes>),
    /// By an event stream only: there are several messages, or more may follow.
    Stream,
    /// Nothing is known yet.
    Open,
}

/// Whether there was room for a message.
#[derive(Debug)]
pub enum Room {
    /// The message is on its way, or nobody will ever read it.
    Taken,
    /// The reader of this stream is behind. Try again when the stream has changed.
    Full(StreamId),
}

/// Why a client cannot read a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StreamError {
    /// No event of this session has that id.
    Unknown,
    /// What followed is no longer kept.
    Forgotten,
    /// The session has as many streams of its own as it may have.
    Full,
}
