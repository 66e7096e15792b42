//! A connection's place on an event stream, and what is done there.

use std::time::Duration;

use bytes::Bytes;

use crate::downstream::http::event_id::{EventId, StreamId};

/// A connection that reads a stream.
#[derive(Clone, Debug)]
pub struct Place {
    pub(super) stream: StreamId,
    pub(super) reader: u64,
}

impl Place {
    /// The stream that is read.
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
    /// Close, and let the client come back after this time.
    Release(Duration),
    /// Close: the stream is complete, or another connection reads it.
    End,
}

/// How a POST can be answered whose calls have their messages on a stream.
#[derive(Debug)]
pub enum Form {
    /// By one message, or by none at all.
    Object(Option<Bytes>),
    /// By an event stream only: there are several messages, or there is time until the next one.
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
pub(super) enum Lost {
    /// No event of this session has that id.
    Unknown,
    /// What followed is no longer kept.
    Forgotten,
    /// As many streams of the session's own are read as may be.
    Full,
}
