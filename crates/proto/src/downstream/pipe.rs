//! The machine of one pipe.

use std::collections::HashMap;
use std::sync::Arc;

use spec::{Notice, Revision, Rules};

use crate::downstream::call::{Call, Ending, Opening};
use crate::downstream::era::{EraChoice, choose};
use crate::downstream::frame::Frame;
use crate::downstream::output::{Output, Served, refuse, unreadable};
use crate::downstream::session::Session;
use crate::gates::admit;
use crate::json::Raw;
use crate::model::event::Event;
use crate::model::listen::{Change, Filter};
use crate::model::rejection::Rejection;
use crate::model::request::{Answer, Principal};
use crate::rpc::wire::{self, CallKey, ErrorId, Id, Message, Unreadable};

/// One pipe: modern requests, until a handshake makes the rest of it a legacy session.
pub struct Pipe {
    served: Arc<Served>,
    principal: Principal,
    session: Option<Session>,
    modern: HashMap<CallKey, Call>,
    next: CallKey,
}

impl Pipe {
    /// A fresh pipe, on whose other end is this principal.
    pub fn new(served: Arc<Served>, principal: Principal) -> Pipe {
        Pipe { served, principal, session: None, modern: HashMap::new(), next: 1 }
    }

    fn rules(&self) -> &'static Rules {
        self.session.as_ref().map_or(Revision::LATEST_MODERN.rules(), Session::rules)
    }

    /// How the rest of the pipe behaves, once a handshake has settled it.
    pub fn settled(&self) -> Option<&'static Rules> {
        self.session.as_ref().map(Session::rules)
    }

    /// How many calls and listens are under way.
    pub fn in_flight(&self) -> usize {
        self.modern.len() + self.session.as_ref().map_or(0, Session::in_flight)
    }

    /// Takes in what [`wire::read`] found.
    pub fn receive(&mut self, read: Result<Message, Unreadable>) -> Vec<Output> {
        match (read, &mut self.session) {
            (Ok(message), Some(session)) => session.receive(message, &self.served, true),
            (Ok(message), None) => self.first(message),
            (Err(Unreadable::Batch(batch)), Some(session)) => session.batch(&batch, &self.served, true),
            (Err(error), _) => unreadable(&error, self.rules()).map(Output::Reply).into_iter().collect(),
        }
    }

    /// A line that was longer than the limit.
    pub fn too_long(&self) -> Output {
        let why = format!("the message is longer than {} bytes", self.served.limits.message);
        let rules = self.rules();
        let id = ErrorId::unknown(rules);
        Output::Reply(wire::error(id, &Rejection::Unreadable(why).render(rules).error))
    }

    /// A message while there is no session.
    fn first(&mut self, message: Message) -> Vec<Output> {
        let call = match message {
            Message::Request(call) => call,
            Message::Notification { method, params } => return self.notified(&method, params.as_ref()),
            Message::Response { .. } => return Vec::new(),
        };
        match choose(&call, self.served.revisions) {
            EraChoice::Modern => self.modern(&call),
            EraChoice::Session => match Session::open(&call, &self.served, self.principal.clone()) {
                Ok((session, reply)) => {
                    self.session = Some(session);
                    vec![Output::Reply(reply)]
                }
                Err(rejection) => {
                    vec![Output::Reply(refuse(&call.id, &rejection, Revision::LATEST_LEGACY.rules()))]
                }
            },
            EraChoice::Ping => vec![Output::Reply(wire::result(&call.id, &Default::default()))],
            EraChoice::Neither => {
                let rejection = Rejection::NeitherEra(self.served.revisions);
                vec![Output::Reply(refuse(&call.id, &rejection, self.rules()))]
            }
        }
    }

    fn modern(&mut self, call: &wire::Call) -> Vec<Output> {
        let rules = Revision::LATEST_MODERN.rules();
        let running = self.modern.values().map(|call| (call.id(), call.weight()));
        if let Err(rejection) = admit::room(call, running, &self.served.limits) {
            return vec![Output::Reply(refuse(&call.id, &rejection, rules))];
        }
        let opened = Call::open(call, None, &self.served, &self.principal);
        let key = self.next;
        match opened {
            Err(rejection) => vec![Output::Reply(refuse(&call.id, &rejection, rules))],
            Ok((_, Opening::Reply(bytes))) => vec![Output::Reply(bytes)],
            Ok((call, Opening::Call(request))) => {
                self.next += 1;
                self.modern.insert(key, call);
                vec![Output::Start(key, request)]
            }
            Ok((call, Opening::Listen(filter, peer))) => {
                self.next += 1;
                self.modern.insert(key, call);
                vec![Output::Listen(key, filter, peer)]
            }
        }
    }

    fn notified(&mut self, method: &str, params: Option<&Raw>) -> Vec<Output> {
        if Notice::parse(method) != Some(Notice::Cancelled) {
            return Vec::new();
        }
        let id = params.and_then(|raw| Id::read(raw.object().ok()?.get("requestId")?));
        let found = self.modern.iter().find(|(_, call)| Some(call.id()) == id.as_ref()).map(|(key, _)| *key);
        found
            .map(|key| {
                self.modern.remove(&key);
                Output::Drop(key)
            })
            .into_iter()
            .collect()
    }

    /// Something happened while a call was worked on.
    pub fn event(&mut self, key: CallKey, event: Event) -> Vec<Output> {
        match (self.modern.get_mut(&key), &mut self.session) {
            (Some(call), _) => call.event(event).map(|frame| send(key, frame)).into_iter().collect(),
            (None, Some(session)) => session.event(key, event),
            (None, None) => Vec::new(),
        }
    }

    /// A call ended.
    pub fn answered(&mut self, key: CallKey, answer: Result<Answer, Rejection>) -> Vec<Output> {
        match (self.modern.remove(&key), &mut self.session) {
            (Some(call), _) => {
                vec![send(key, call.answered(answer, &self.served)), Output::Finish(key)]
            }
            (None, Some(session)) => session.answered(key, answer, &self.served),
            (None, None) => Vec::new(),
        }
    }

    /// A listen runs, or could not be started.
    pub fn listening(&mut self, key: CallKey, honoured: Result<Filter, Rejection>) -> Vec<Output> {
        match (self.modern.get_mut(&key), &mut self.session) {
            (Some(call), _) => match honoured {
                Ok(filter) => vec![send(key, call.listening(filter))],
                Err(rejection) => self.answered(key, Err(rejection)),
            },
            (None, Some(session)) => session.listening(key, honoured),
            (None, None) => Vec::new(),
        }
    }

    /// Something changed that a listen watches.
    pub fn changed(&mut self, key: CallKey, change: &Change) -> Vec<Output> {
        match (self.modern.get(&key), &mut self.session) {
            (Some(call), _) => {
                let told = call.changed(change, &self.served);
                self.tell(key, told)
            }
            (None, Some(session)) => session.changed(key, change),
            (None, None) => Vec::new(),
        }
    }

    /// A listen ended from within, or all of them because the process ends.
    pub fn ended(&mut self, key: CallKey, why: Ending) -> Vec<Output> {
        match self.modern.get(&key) {
            Some(call) => {
                let ending = call.ended(why, &self.served);
                self.tell(key, ending)
            }
            None => Vec::new(),
        }
    }

    /// Sends messages of a listen. With the last one it is over.
    fn tell(&mut self, key: CallKey, frames: impl IntoIterator<Item = Frame>) -> Vec<Output> {
        let mut outputs = Vec::new();
        for frame in frames {
            let is_last = matches!(frame, Frame::Last(..));
            outputs.push(send(key, frame));
            if is_last {
                self.modern.remove(&key);
                outputs.extend([Output::Drop(key), Output::Finish(key)]);
            }
        }
        outputs
    }

    /// How many calls are worked on: a listen, and a call whose client is asked something, may never end.
    pub fn owed(&self) -> usize {
        let modern = self.modern.values().filter(|call| !call.is_listen()).count();
        modern + self.session.as_ref().map_or(0, Session::owed)
    }

    /// Returns the calls that wait for answers of the client, which will not come, since the pipe ends.
    pub fn abandoned(&mut self) -> Vec<Output> {
        self.session.as_mut().map(Session::abandoned).unwrap_or_default()
    }

    /// The listens under way, for an orderly end.
    pub fn listens(&self) -> Vec<CallKey> {
        self.modern.iter().filter(|(_, call)| call.is_listen()).map(|(key, _)| *key).collect()
    }
}

/// Sends a message of a modern request. A pipe has no status for it.
fn send(key: CallKey, frame: Frame) -> Output {
    Output::Send(key, frame.into_message())
}
