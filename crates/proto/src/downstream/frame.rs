//! The messages that answer a modern request.

use bytes::Bytes;
use http::StatusCode;

/// One of the messages that answer a modern request.
#[derive(Debug)]
pub enum Frame {
    /// More messages follow.
    Part(Bytes),
    /// The last message, with the status of an HTTP response that consists of this message alone.
    Last(StatusCode, Bytes),
}

impl Frame {
    /// Returns the message.
    pub fn into_message(self) -> Bytes {
        match self {
            Frame::Part(message) | Frame::Last(_, message) => message,
        }
    }
}
