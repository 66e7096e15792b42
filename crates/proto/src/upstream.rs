//! The client edges have one face: whatever an upstream speaks, what is behind it is a modern server.

use bytes::Bytes;
use spec::{Question, Revision, Rules};

use crate::legacy;
use crate::modern;
use crate::raw::{Object, Raw};
use crate::rejection::Rejection;
use crate::service::{Answer, Answers, Ask, Change, Event, Filter, Request};
use crate::wire::Message;

pub use crate::edge::CallKey;

/// What a client edge asks a transport to do.
#[derive(Debug)]
pub enum Output {
    /// Write a message to the upstream.
    Send(Bytes),
    /// A call ended, or asks for input. A legacy upstream's call that asks is still under way.
    Answered(CallKey, Result<Answer, Rejection>),
    /// Something happened while a call was worked on.
    Event(CallKey, Event),
    /// A listen runs.
    Listening(CallKey, Filter),
    /// A listen could not be started, or the upstream ended it; with what it said, where that was an error.
    Ended(CallKey, Option<Rejection>),
    /// Something changed: for one listen, or for whoever listens.
    Changed(Option<CallKey>, Change),
}

/// What dateline says of itself to an upstream.
#[derive(Clone, Debug)]
pub struct Introduction {
    /// An `Implementation` object.
    pub identity: Object,
}

/// The edge towards one upstream.
pub enum Edge {
    /// It opened a session with a handshake.
    Legacy(legacy::client::Session),
    /// Its requests stand alone.
    Modern(modern::client::Calls),
}

/// How to send a request.
#[derive(Debug)]
pub struct Outgoing {
    /// What must be sent before it.
    pub before: Vec<Bytes>,
    /// The message.
    pub message: Bytes,
    /// Its params, from which HTTP takes its headers.
    pub params: Object,
}

/// How a listen is started.
#[derive(Debug)]
pub struct Starting {
    /// What is to be sent, each under the key that its answer comes to.
    pub requests: Vec<(CallKey, Outgoing)>,
    /// What happens at once.
    pub outputs: Vec<Output>,
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

    /// Answers what a call that is still under way has asked; says whether it was under way.
    pub fn answer(&mut self, key: CallKey, answers: Answers) -> Option<Vec<Output>> {
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

/// Reads one question of an upstream.
pub(crate) fn ask(method: &str, params: Option<&Raw>) -> Result<Ask, Rejection> {
    let question = Question::parse(method).ok_or_else(|| Rejection::UnknownMethod(method.to_owned()))?;
    let params = crate::admit::opened(params)?;
    Ok(Ask { question, params })
}
