//! Ids of the events of a session.

/// Names a stream within its session.
pub type StreamId = u64;

/// Names an event: its session, its stream, whether that is one of the session's own, and the event's number in it.
/// Number 0 is the empty event that a stream may open with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EventId {
    /// What tells the events of one session from those of another: a client that has a new session may still come
    /// back with an id of the old one.
    pub(super) session: u32,
    pub(super) stream: StreamId,
    pub(super) own: bool,
    pub(super) number: u64,
}

impl EventId {
    /// The text that is sent.
    pub fn text(self) -> String {
        format!("{:x}-{}{}-{}", self.session, if self.own { 's' } else { 'c' }, self.stream, self.number)
    }

    /// Whether the event is one of a stream.
    pub(super) fn is_of(self, stream: StreamId) -> bool {
        self.stream == stream
    }

    /// Reads what a client sent.
    pub(super) fn read(text: &str) -> Option<EventId> {
        let (session, rest) = text.split_once('-')?;
        let own = match rest.as_bytes().first()? {
            b's' => true,
            b'c' => false,
            _ => return None,
        };
        let (stream, number) = rest[1..].split_once('-')?;
        let session = u32::from_str_radix(session, 16).ok()?;
        Some(EventId { session, stream: stream.parse().ok()?, own, number: number.parse().ok()? })
    }
}
