//! What waits for the end of the handshake.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::downstream::output::Output;
use crate::rpc::wire::CallKey;

/// What waits until the client says that it is initialized.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Deferred {
    /// A question of a call.
    Question(CallKey, #[serde(with = "crate::saved::message")] Bytes),
    /// A change.
    Change(#[serde(with = "crate::saved::message")] Bytes),
}

impl From<Deferred> for Output {
    fn from(held: Deferred) -> Output {
        match held {
            Deferred::Question(key, bytes) => Output::Send(key, bytes),
            Deferred::Change(bytes) => Output::Push(bytes),
        }
    }
}
