//! What waits for the end of the handshake.

use bytes::Bytes;

use crate::downstream::output::Output;
use crate::rpc::wire::CallKey;

/// What waits until the client says that it is initialized.
#[derive(Debug)]
pub(super) enum Held {
    /// A question of a call.
    Question(CallKey, Bytes),
    /// A change.
    Change(Bytes),
}

impl From<Held> for Output {
    fn from(held: Held) -> Output {
        match held {
            Held::Question(key, bytes) => Output::Send(key, bytes),
            Held::Change(bytes) => Output::Push(bytes),
        }
    }
}
