//! The client edges have one face: whatever an upstream speaks, what is behind it is a modern server.

use bytes::Bytes;
use spec::{Revision, Rules};

use crate::model::input::InputResponses;
use crate::model::listen::Filter;
use crate::model::rejection::Rejection;
use crate::model::request::Request;
use crate::rpc::wire::{CallKey, Message};

use crate::upstream::calls::Calls;
use crate::upstream::output::{Outgoing, Output, Starting};
use crate::upstream::session::Session;

/// The edge towards one upstream.
pub enum Edge {
    /// It opened a session with a handshake.
    Legacy(Session),
    /// Its requests stand alone.
    Modern(Calls),
}

impl Edge {
    /// The revision that is spoken.
    pub fn revision(&self) -> Revision {
        match self {
            Edge::Legacy(session) => session.revision(),
            Edge::Modern(calls) => calls.revision(),
        }
    }

    /// How it behaves.
    pub fn rules(&self) -> &'static Rules {
        self.revision().rules()
    }

    /// Sends a request under a key that was never used before.
    pub fn call(&mut self, key: CallKey, request: &Request) -> Outgoing {
        match self {
            Edge::Legacy(session) => session.call(key, request),
            Edge::Modern(calls) => calls.call(key, request),
        }
    }

    /// Answers the questions of a call that is open at the upstream. `None` where it is not open.
    pub fn answer(&mut self, key: CallKey, answers: &InputResponses) -> Option<Vec<Output>> {
        match self {
            Edge::Legacy(session) => session.answer(key, answers),
            Edge::Modern(_) => None,
        }
    }

    /// Gives a call or listen up; what the upstream must be told over a pipe.
    pub fn cancel(&mut self, key: CallKey, reason: &str) -> Vec<Bytes> {
        match self {
            Edge::Legacy(session) => session.cancel(key, reason),
            Edge::Modern(calls) => calls.cancel(key, reason),
        }
    }

    /// Starts to listen. A legacy upstream tells of changed lists unasked; only resources are asked for, and
    /// [`Output::Listening`] comes when it has answered for each.
    pub fn listen(&mut self, key: CallKey, filter: &Filter) -> Starting {
        match self {
            Edge::Legacy(session) => session.watch(key, filter),
            Edge::Modern(calls) => {
                Starting { requests: vec![(key, calls.listen(key, filter))], outputs: Vec::new() }
            }
        }
    }

    /// Takes in one message. `on` is the call whose stream it came on, where there are streams; a response without an
    /// id is its answer there.
    pub fn receive(&mut self, message: Message, on: Option<CallKey>) -> Vec<Output> {
        match self {
            Edge::Legacy(session) => session.receive(message, on),
            Edge::Modern(calls) => calls.receive(message, on),
        }
    }

    /// Ends a call, a listen, or what was asked for one, whose answer cannot be taken.
    pub fn broken(&mut self, key: CallKey, why: &str) -> Vec<Output> {
        let why = Rejection::Internal(format!("the server's answer cannot be read: {why}"));
        match self {
            Edge::Legacy(session) => session.end(key, Err(why)),
            Edge::Modern(calls) => calls.end(key, |_| Err(why)),
        }
    }
}
