//! What a handler can do while it works on a request.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytestring::ByteString;
use proto::{Ask, Event, Level, Object, Peer, Raw, Rejection, Request};
use serde::de::DeserializeOwned;
use serde_json::Value;
use spec::Question;

use crate::engine::Server;
use crate::error::{Error, Kind, Result};
use crate::schema::Validator;

/// The request that a handler works on: its arguments, who asks, and ways to report and to ask.
///
/// Questions run the handler again: [`Cx::elicit`], [`Cx::sample`] and [`Cx::list_roots`] end it with an error
/// that `?` passes on, and once the client has answered it starts anew and gets the answer at the same place.
/// What stands before a question therefore runs once per round, and should have no effect that must not be
/// repeated. This is the same for every revision.
#[derive(Clone)]
pub struct Cx(Arc<Inner>);

struct Inner {
    server: Server,
    request: Request,
    arguments: Raw,
    answers: Vec<(ByteString, Result<Raw, Raw>)>,
    asked: Mutex<Vec<(ByteString, Ask)>>,
}

impl Cx {
    pub(crate) fn new(
        server: Server,
        request: Request,
        arguments: Raw,
        answers: Vec<(ByteString, Result<Raw, Raw>)>,
    ) -> Cx {
        Cx(Arc::new(Inner { server, request, arguments, answers, asked: Mutex::default() }))
    }

    /// The arguments, as they were sent; `{}` where there are none.
    pub fn arguments(&self) -> &Raw {
        &self.0.arguments
    }

    /// The id that the client gave the request, as JSON text: for logs. Other clients may use the same one.
    pub fn id(&self) -> &str {
        self.0.request.id.as_str()
    }

    /// Who asks.
    pub fn peer(&self) -> &Peer {
        &self.0.request.peer
    }

    /// The params of the request, with what the client put into `_meta`.
    pub fn params(&self) -> &Object {
        &self.0.request.params
    }

    /// The server, to tell of changes.
    pub fn server(&self) -> &Server {
        &self.0.server
    }

    /// Reports progress, where the client asked for it. `progress` must grow from one report to the next.
    pub async fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        if !self.0.request.wants_progress {
            return;
        }
        let mut params = Object::new().with("progress", Raw::of(&progress));
        if let Some(total) = total {
            params.set("total", Raw::of(&total));
        }
        if let Some(message) = message {
            params.set("message", message);
        }
        self.0.request.events.send(Event::Progress(params)).await;
    }

    /// Lets go of the client's connection: it comes back for the rest after this time, and meanwhile no connection is
    /// held open for a long call. Where the revision or the transport has no way to come back, nothing happens.
    ///
    /// <https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#sending-messages-to-the-server>
    pub async fn release(&self, after: Duration) {
        self.0.request.events.send(Event::Release(after)).await;
    }

    /// Sends a log message, where the client wants this level. It must hold no secrets.
    pub async fn log(&self, level: Level, logger: Option<&str>, data: impl Into<Value>) {
        if self.peer().log_level.is_none_or(|least| level < least) {
            return;
        }
        let mut params = Object::new().with("level", level.as_str());
        if let Some(logger) = logger {
            params.set("logger", logger);
        }
        params.set("data", Raw::of(&data.into()));
        self.0.request.events.send(Event::Log(level, params)).await;
    }

    /// Asks the user to fill in a form. `schema` is a flat object schema
    /// (<https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation>); `key` names the question
    /// within this request.
    ///
    /// # Errors
    /// When the answer is not there yet (pass it on with `?`), the client cannot be asked, or its answer does
    /// not fit.
    pub async fn elicit(&self, key: &str, message: &str, schema: &Value) -> Result<Elicited> {
        let params = Object::new().with("message", message).with("requestedSchema", Raw::of(schema));
        let mode =
            if self.peer().revision.rules().url_elicitation { params.with("mode", "form") } else { params };
        let answer = self.ask(key, Question::Elicit, mode)?;
        let refused = |why: String| Error::reject(Rejection::Params(format!("the answer to {key:?} {why}")));
        let object = answer.object().map_err(|e| refused(e.to_string()))?;
        match object.string("action").as_deref() {
            Some("decline") => Ok(Elicited::Declined),
            Some("cancel") => Ok(Elicited::Cancelled),
            Some("accept") => {
                let content = object.get("content").cloned().unwrap_or(Raw::literal("{}"));
                let value: Value = content.read().map_err(|e| refused(e.to_string()))?;
                let validator = Validator::new(&Raw::of(schema)).map_err(Error::new)?;
                validator.check(&value).map_err(|why| refused(format!("does not fit the form: {why}")))?;
                Ok(Elicited::Accepted(value))
            }
            _ => Err(refused("needs an \"action\": accept, decline or cancel".into())),
        }
    }

    /// Asks the client's model for a completion
    /// (<https://modelcontextprotocol.io/specification/2026-07-28/client/sampling>). `params` are those of
    /// `sampling/createMessage`.
    ///
    /// # Errors
    /// As [`Cx::elicit`].
    pub async fn sample(&self, key: &str, params: &Value) -> Result<Sampled> {
        let answer = self.ask(key, Question::Sample, Object::of(params))?;
        answer.read().map(Sampled).map_err(|e| {
            Error::reject(Rejection::Params(format!("the answer to {key:?} is no sampling result: {e}")))
        })
    }

    /// Asks for the directories that the client works in.
    ///
    /// # Errors
    /// As [`Cx::elicit`].
    pub async fn list_roots(&self, key: &str) -> Result<Vec<Value>> {
        let answer = self.ask(key, Question::ListRoots, Object::new())?;
        let wrong =
            || Error::reject(Rejection::Params(format!("the answer to {key:?} needs an array \"roots\"")));
        let value: Value = answer.read().map_err(|_| wrong())?;
        value.get("roots").and_then(Value::as_array).cloned().ok_or_else(wrong)
    }

    /// The answer to a question; asks it where there is none yet.
    fn ask(&self, key: &str, question: Question, params: Object) -> Result<Raw> {
        match self.0.answers.iter().find(|(k, _)| k == key) {
            Some((_, Ok(answer))) => Ok(answer.clone()),
            Some((_, Err(error))) => {
                let said = Rejection::passed(error);
                Err(Error::new(format_args!("the client could not answer {}: {said}", question.wire())))
            }
            None => {
                let ask = Ask { question, params };
                if let Some(missing) = self.peer().capabilities.lacks(&ask) {
                    return Err(Error::reject(Rejection::MissingCapability(missing)));
                }
                let mut asked = self.0.asked.lock().unwrap_or_else(PoisonError::into_inner);
                if !asked.iter().any(|(k, _)| k == key) {
                    asked.push((key.into(), ask));
                }
                Err(Error(Kind::Asked))
            }
        }
    }

    /// What was asked in this round.
    pub(crate) fn asked(&self) -> Vec<(ByteString, Ask)> {
        std::mem::take(&mut self.0.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What was answered so far.
    pub(crate) fn answers(&self) -> &[(ByteString, Result<Raw, Raw>)] {
        &self.0.answers
    }
}

/// What a user did with a form.
#[derive(Clone, Debug, PartialEq)]
pub enum Elicited {
    /// Filled it in; the content fits the form's schema.
    Accepted(Value),
    /// Said no.
    Declined,
    /// Went away without a choice.
    Cancelled,
}

impl Elicited {
    /// The content as a type; `None` where the user declined or cancelled.
    ///
    /// # Errors
    /// When it does not fit the type.
    pub fn accepted<T: DeserializeOwned>(self) -> Result<Option<T>> {
        match self {
            Elicited::Accepted(content) => Ok(Some(serde_json::from_value(content)?)),
            Elicited::Declined | Elicited::Cancelled => Ok(None),
        }
    }
}

/// What the client's model answered: a `CreateMessageResult`.
#[derive(Clone, Debug)]
pub struct Sampled(Value);

impl Sampled {
    /// All text in it.
    pub fn text(&self) -> String {
        let blocks = match &self.0["content"] {
            Value::Array(blocks) => blocks.as_slice(),
            one => std::slice::from_ref(one),
        };
        blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
    }

    /// The whole.
    pub fn value(&self) -> &Value {
        &self.0
    }
}
