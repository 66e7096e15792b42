//! What the edges towards servers ask a transport to do.

use bytes::Bytes;
use bytestring::ByteString;
use spec::Question;

use crate::gates::admit;
use crate::json::{Object, Raw};
use crate::model::event::Event;
use crate::model::input::InputRequest;
use crate::model::listen::{Change, Filter};
use crate::model::rejection::Rejection;
use crate::model::request::Answer;
use crate::rpc::wire::CallKey;

/// What a client edge asks a transport to do.
#[derive(Debug)]
pub enum Output {
    /// Write a message to the upstream.
    Send(Bytes),
    /// A call ended with this answer.
    Answered(CallKey, Result<Answer, Rejection>),
    /// A call cannot go on before its client has answered these questions, each under its key. The call stays open at
    /// the upstream: [`Edge::answer`](crate::upstream::Edge::answer) goes on with it.
    InputRequired(CallKey, Vec<(ByteString, InputRequest)>),
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

/// Reads one question of an upstream.
pub(crate) fn ask(method: &str, params: Option<&Raw>) -> Result<InputRequest, Rejection> {
    let question = Question::parse(method).ok_or_else(|| Rejection::UnknownMethod(method.to_owned()))?;
    let params = admit::opened(params)?;
    Ok(InputRequest { question, params })
}
