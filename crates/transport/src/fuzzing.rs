//! What targets of fuzzing see of this crate, and nobody else.

use bytes::Bytes;

use crate::sse::Reader;

/// An event that was heard.
#[derive(Debug, PartialEq, Eq)]
pub struct Heard {
    /// Its kind.
    pub kind: String,
    /// Its id.
    pub id: Option<String>,
    /// Its data.
    pub data: Bytes,
}

/// An event was longer than the limit.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLong;

/// The events of a stream that comes in pieces.
///
/// # Errors
/// When one is longer than the limit.
pub fn events<'a>(pieces: impl Iterator<Item = &'a [u8]>, limit: usize) -> Result<Vec<Heard>, TooLong> {
    let mut reader = Reader::new(limit);
    let mut heard = Vec::new();
    for piece in pieces {
        let events = reader.feed(piece).map_err(|_| TooLong)?;
        heard.extend(events.into_iter().map(|event| Heard {
            kind: event.kind,
            id: event.id,
            data: event.data,
        }));
    }
    Ok(heard)
}
