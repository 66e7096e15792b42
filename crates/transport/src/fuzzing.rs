//! What targets of fuzzing see of this crate, and nobody else.

use bytes::Bytes;

use crate::sse::{Read, Reader};

/// An event that was heard.
#[derive(Debug, PartialEq, Eq)]
pub struct FromServer {
    /// Its kind.
    pub kind: String,
    /// Its id.
    pub id: Option<String>,
    /// Its data.
    pub data: Bytes,
}

/// The events of a stream that comes in pieces; `None` stands for one that is longer than the limit.
pub fn events<'a>(pieces: impl Iterator<Item = &'a [u8]>, limit: usize) -> Vec<Option<FromServer>> {
    let mut reader = Reader::new(limit);
    let heard = |read| match read {
        Read::Event(event) => Some(FromServer { kind: event.kind, id: event.id, data: event.data }),
        Read::TooLong(_) => None,
    };
    pieces.flat_map(|piece| reader.feed(piece)).map(heard).collect()
}
