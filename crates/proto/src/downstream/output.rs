//! What the edges towards clients ask a transport to do, and what they refuse.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use spec::{Revisions, Rules};

use crate::model::listen::Filter;
use crate::model::rejection::Rejection;
use crate::model::request::{Peer, Request};
use crate::model::service::Service;
use crate::rpc::wire::{self, CallKey, ErrorId, Id, Unreadable};

/// What a server edge asks a transport to do.
#[derive(Debug)]
pub enum Output {
    /// Answer the message that just came in.
    Reply(Bytes),
    /// Write a message that concerns a call, on that call's stream.
    Send(CallKey, Bytes),
    /// Write a message that concerns no call, on the session's own stream.
    Push(Bytes),
    /// Call the service; give the answer back under the key.
    Start(CallKey, Box<Request>),
    /// Start a listen; give what is honoured, and then the changes, back under the key.
    Listen(CallKey, Filter, Arc<Peer>),
    /// Drop the call or listen; nothing more is sent for it.
    Drop(CallKey),
    /// Tell the service that answers will not come.
    Abandon(Box<Request>),
    /// The call's stream is complete.
    Finish(CallKey),
    /// The connection that carries the call's stream may be closed: the client comes back for the rest after this
    /// time. Where a stream cannot be resumed it means nothing.
    Release(CallKey, Duration),
}

/// What a server serves, and to whom.
pub struct Served {
    /// Whatever answers.
    pub service: Arc<dyn Service>,
    /// The revisions that are served.
    pub revisions: Revisions,
    /// How deep and how long a message may be.
    pub limits: wire::Limits,
}

/// The error to a message that could not be taken; `None` where nothing is answered.
pub fn unreadable(error: &Unreadable, rules: &Rules) -> Option<Bytes> {
    let (id, rejection) = match error {
        Unreadable::Parse(why) => (None, Rejection::Unreadable(why.to_string())),
        Unreadable::Batch(_) => (
            None,
            Rejection::Invalid(
                "several messages in one array are not taken here: send one message at a time".into(),
            ),
        ),
        Unreadable::Invalid { silent: true, .. } => return None,
        Unreadable::Invalid { id, why, .. } => (id.clone(), Rejection::Invalid((*why).into())),
    };
    let id = match &id {
        Some(id) => ErrorId::Of(id),
        None => ErrorId::unknown(rules),
    };
    Some(wire::error(id, &rejection.render(rules).error))
}

/// An error response.
pub fn refuse(id: &Id, rejection: &Rejection, rules: &Rules) -> Bytes {
    wire::error(ErrorId::Of(id), &rejection.render(rules).error)
}
