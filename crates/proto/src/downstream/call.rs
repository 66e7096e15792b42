//! One modern request: opened from its body (and headers), answered in its own form.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use spec::{Method, Notice, Revision, Rules, meta};

use crate::downstream::frame::Frame;
use crate::downstream::output::Served;
use crate::downstream::stream::{self, Stream};
use crate::gates::admit::{self, Admitted};
use crate::gates::project::{self, ResultMeta};
use crate::json::{Object, Raw};
use crate::model::event::Event;
use crate::model::listen::{Change, Filter};
use crate::model::prepared_filter::PreparedFilter;
use crate::model::rejection::Rejection;
use crate::model::request::{Answer, Peer, Principal, Request};
use crate::model::service::Description;
use crate::rpc::wire::{self, ErrorId, Id};

/// What is to be done with a request that was let in.
#[derive(Debug)]
pub enum Opening {
    /// It is answered already.
    Reply(Bytes),
    /// Call the service.
    Call(Box<Request>),
    /// Start a listen.
    Listen(Filter, Arc<Peer>),
}

/// A modern request under way. It knows of no other: two clients may use one id.
#[derive(Debug)]
pub struct Call {
    id: Id,
    weight: usize,
    method: Method,
    stream: Stream,
    peer: Arc<Peer>,
    retried: bool,
    listen: Option<PreparedFilter>,
}

/// Why the server ends a listen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// There is nothing more to hear.
    Over,
    /// The process ends.
    Closing,
    /// Too much waited to be read.
    Behind,
}

impl Ending {
    const fn words(self) -> &'static str {
        match self {
            Ending::Over => "the server ends this subscription",
            Ending::Closing => "the server is going down; listen again",
            Ending::Behind => {
                "too many changes were not read in time, and some are lost; list and listen again"
            }
        }
    }
}

impl Call {
    /// Lets a request in, over HTTP with its headers.
    ///
    /// # Errors
    /// Says why it is refused.
    pub fn open(
        call: &wire::Call,
        headers: Option<&HeaderMap>,
        served: &Served,
        principal: &Principal,
    ) -> Result<(Call, Opening), Rejection> {
        let Admitted { request, token, description } =
            admit::modern(call, headers, &*served.service, served.revisions, principal)?;
        let peer = Arc::clone(&request.peer);
        // A server that does not say that it logs does not.
        let logs = description.capabilities.satisfies(Notice::Message.row().needs);
        let mut opened = Call {
            id: call.id.clone(),
            weight: call.weight(),
            method: request.method.clone(),
            stream: Stream::new(peer.revision.rules(), token, peer.log_level.filter(|_| logs)),
            peer: Arc::clone(&peer),
            retried: request.answers.is_some(),
            listen: None,
        };
        let opening = match request.method {
            Method::Discover => {
                let result = opened.complete(discover(&description, served), &description);
                Opening::Reply(wire::result(&opened.id, &result))
            }
            Method::SubscriptionsListen => {
                let asked = filter(&request.params, &served.limits)?;
                opened.listen = Some(PreparedFilter::of(&asked));
                Opening::Listen(asked, peer)
            }
            _ => Opening::Call(Box::new(request)),
        };
        Ok((opened, opening))
    }

    /// The id.
    pub fn id(&self) -> &Id {
        &self.id
    }

    /// How many bytes the request is.
    pub fn weight(&self) -> usize {
        self.weight
    }

    /// Whether it is a listen.
    pub fn is_listen(&self) -> bool {
        self.listen.is_some()
    }

    fn rules(&self) -> &'static Rules {
        self.stream.rules()
    }

    /// Takes an event of the service; gives its notification, where the client wants one.
    pub fn event(&mut self, event: Event) -> Option<Frame> {
        self.stream.event(event).map(Frame::Part)
    }

    /// Takes the answer of the service; gives the response. Give the events that came before it to [`Call::event`] first.
    pub fn answered(&self, answer: Result<Answer, Rejection>, served: &Served) -> Frame {
        let description = served.service.describe();
        let result = answer.and_then(|answer| match answer {
            Answer::Complete(result) => Ok(self.complete(result, &description)),
            Answer::InputRequired(interim) => {
                admit::interim(&interim, &self.method, &self.peer)?;
                let asked = !interim.questions.is_empty();
                let questions = asked.then(|| project::questions(&interim.questions, self.rules()));
                Ok(project::interim(questions, interim.state, self.result_meta(&description)))
            }
        });
        match result {
            Ok(result) => Frame::Last(StatusCode::OK, wire::result(&self.id, &result)),
            Err(rejection) => {
                let rendered = rejection.render(self.rules());
                let status = StatusCode::from_u16(rendered.status).unwrap_or(StatusCode::BAD_REQUEST);
                Frame::Last(status, wire::error(ErrorId::Of(&self.id), &rendered.error))
            }
        }
    }

    fn complete(&self, result: Object, description: &Description) -> Object {
        project::result(result, self.method.row(), self.rules(), self.result_meta(description))
    }

    fn result_meta<'a>(&self, description: &'a Description) -> ResultMeta<'a> {
        ResultMeta { identity: &description.identity, depends_on_answers: self.retried, subscription: None }
    }

    /// Takes the part of a listen's filter that the service honours; gives the acknowledgement, the listen's first message.
    pub fn listening(&mut self, honoured: Filter) -> Frame {
        let shown = honoured.object();
        self.listen = Some(PreparedFilter::of(&honoured));
        let params = Object::new()
            .with(meta::META, Raw::from(Object::new().with(meta::SUBSCRIPTION_ID, self.id.raw())))
            .with("notifications", Raw::from(shown));
        Frame::Part(stream::notification(Notice::SubscriptionsAcknowledged, params, self.rules()))
    }

    /// Takes a change; gives its notification, where this listen asked for it. [`Change::Behind`] ends the listen.
    pub fn changed(&self, change: &Change, served: &Served) -> Vec<Frame> {
        if *change == Change::Behind {
            return self.ended(Ending::Behind, served).into();
        }
        if !self.listen.as_ref().is_some_and(|wanted| wanted.wants(change)) {
            return Vec::new();
        }
        let told = stream::change(change, Some(&self.id.raw()), self.rules());
        told.map(Frame::Part).into_iter().collect()
    }

    /// Ends a listen; gives its last messages, a notification and the result.
    pub fn ended(&self, why: Ending, served: &Served) -> [Frame; 2] {
        let id = self.id.raw();
        let params = Object::new()
            .with("requestId", id.clone())
            .with("reason", why.words())
            .with(meta::META, Raw::from(Object::new().with(meta::SUBSCRIPTION_ID, id.clone())));
        let description = served.service.describe();
        let added = ResultMeta { subscription: Some(&id), ..self.result_meta(&description) };
        let result = project::result(Object::new(), self.method.row(), self.rules(), added);
        [
            Frame::Part(stream::notification(Notice::Cancelled, params, self.rules())),
            Frame::Last(StatusCode::OK, wire::result(&self.id, &result)),
        ]
    }
}

/// The body of `server/discover`.
fn discover(description: &Description, served: &Served) -> Object {
    let versions: Vec<_> = served.revisions.iter().map(Revision::as_str).collect();
    let mut result = Object::new()
        .with("supportedVersions", Raw::of(&versions))
        .with("capabilities", Raw::from(description.capabilities.object()));
    if let Some(instructions) = &description.instructions {
        result.set("instructions", instructions.as_str());
    }
    project::hint(&mut result, description.hint);
    result
}

/// Reads the filter of a listen.
fn filter(params: &Object, limits: &wire::Limits) -> Result<Filter, Rejection> {
    let wrong = |what: &str| Rejection::Params(format!("\"notifications\": {what}"));
    let asked = params
        .get("notifications")
        .ok_or_else(|| wrong("it is required: an object that names what to listen for"))?
        .object()
        .map_err(|_| wrong("it must be an object"))?;
    let mut filter = Filter::read(&asked).map_err(|why| wrong(&why))?;
    if filter.uris.len() > limits.watched {
        return Err(wrong(&format!(
            "it names {} resources, and {} are the limit; listen to the others in another request",
            filter.uris.len(),
            limits.watched
        )));
    }
    for uri in &mut filter.uris {
        *uri = admit::watchable(uri)?;
    }
    Ok(filter)
}
