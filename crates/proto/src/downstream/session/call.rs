//! A call of a session.

use std::sync::Arc;

use bytestring::ByteString;
use serde::{Deserialize, Serialize};
use spec::Method;

use crate::downstream::output::Output;
use crate::downstream::session::batch::BatchId;
use crate::downstream::stream::Stream;
use crate::json::Object;
use crate::model::event::EventSink;
use crate::model::input::InputResponses;
use crate::model::request::{Peer, Request};
use crate::rpc::wire::Id;

/// A call that is under way.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Call {
    #[serde(with = "crate::saved::id")]
    pub(super) id: Id,
    #[serde(deserialize_with = "crate::saved::counter")]
    pub(super) weight: usize,
    pub(super) stream: Stream,
    pub(super) work: Work,
    /// The batch that it came in, whose requests are answered together.
    pub(super) batch: Option<BatchId>,
}

/// What is done for a call.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Work {
    /// The service is called, and called again with answers.
    Call {
        /// The request.
        repeat: Repeat,
        /// While the client is asked: the answers that have come, and the state for the next round.
        interim: Option<InputResponses>,
        /// How often the call has asked.
        rounds: u32,
    },
    /// A subscription is set up.
    Subscribe(ByteString),
}

/// A request as plain data, so that the service can be called again.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Repeat {
    #[serde(with = "crate::saved::method")]
    pub(super) method: Method,
    pub(super) params: Object,
    pub(super) answers: Option<InputResponses>,
    #[serde(with = "crate::saved::shared")]
    pub(super) peer: Arc<Peer>,
    pub(super) wants_progress: bool,
}

impl Repeat {
    /// The request, under the id that its client gave it.
    pub(super) fn request(&self, id: &Id) -> Box<Request> {
        Box::new(Request {
            id: id.clone(),
            method: self.method,
            params: self.params.clone(),
            answers: self.answers.clone(),
            peer: Arc::clone(&self.peer),
            wants_progress: self.wants_progress,
            events: EventSink::discard(),
        })
    }
}

impl Call {
    /// Whether the client is asked something.
    pub(super) fn waits(&self) -> bool {
        matches!(self.work, Work::Call { interim: Some(_), .. })
    }

    /// Whether the service works on it.
    pub(super) fn works(&self) -> bool {
        matches!(self.work, Work::Call { interim: None, .. })
    }

    /// The request of a call that waits for answers, with the state that they would come with.
    pub(super) fn abandoned(self) -> Option<Output> {
        match self.work {
            Work::Call { mut repeat, interim: Some(waiting), .. } => {
                repeat.answers = Some(InputResponses { responses: Vec::new(), ..waiting });
                Some(Output::Abandon(repeat.request(&self.id)))
            }
            _ => None,
        }
    }
}
