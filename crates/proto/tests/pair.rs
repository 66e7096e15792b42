//! A client edge and a server edge, connected in memory: what one sends, the other receives at once. Time is a number that a
//! test advances. The test itself is the client's user and the server's service.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use proto::downstream::http::{
    Accept, HttpSession, Next, Payload, Random, Replay, Reply, Room, StreamReader,
};
use proto::downstream::{Output, Pipe, Served, Session};
use proto::upstream::{self, Calls, Edge};
use proto::wire::{self, Id, Limits, Message};
use proto::{Answer, CallKey, Change, Event, Filter, InputResponses, Principal, Raw, Rejection, Request};
use serde_json::json;
use spec::{Era, Method, Question, Revision, Revisions, header as name};

use super::http::headers;
use super::{Stub, ask, introduction, object, peer, read, tool_call};

/// How long a session is kept that nobody uses.
const IDLE: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

/// The edge of the server: a pipe, or a session over HTTP with the connections that read it.
enum Server {
    Pipe(Box<Pipe>),
    Http(Box<HttpSession>, Vec<StreamReader>),
}

struct Pair {
    client: Edge,
    server: Server,
    served: Arc<Served>,
    now: Duration,
    /// What the client's user is told.
    told: VecDeque<upstream::Output>,
    /// What the server's service is to do.
    to_do: VecDeque<Output>,
    /// The last event that the client saw on a stream.
    seen: Option<String>,
}

fn served(revision: Revision) -> Arc<Served> {
    let revisions = Revisions::only(revision);
    Arc::new(Served { service: Arc::new(Stub), revisions, limits: Limits::default() })
}

fn message(bytes: Bytes) -> Message {
    read(bytes).unwrap()
}

fn initialize(revision: Revision) -> Bytes {
    let params = upstream::Session::initialize(revision, &introduction());
    wire::request(&Id::number(1), Method::Initialize.wire(), &params)
}

/// Makes a client edge of the reply to `initialize`; gives what it sends then, too.
fn initialized(reply: &Output) -> Result<(Edge, Bytes), Rejection> {
    let Output::Reply(reply) = reply else { panic!("{reply:?}") };
    let Message::Response { outcome, .. } = message(reply.clone()) else { panic!("{reply:?}") };
    upstream::Session::open(outcome).map(|(session, _, first)| (Edge::Legacy(session), first))
}

impl Pair {
    fn new(client: Edge, server: Server, served: Arc<Served>) -> Pair {
        let (told, to_do) = (VecDeque::new(), VecDeque::new());
        Pair { client, server, served, now: Duration::ZERO, told, to_do, seen: None }
    }

    /// Connects by a pipe. `Err` where the server refuses the client's era.
    fn pipe(client: Revision, server: Revision) -> Result<Pair, Rejection> {
        let served = served(server);
        let mut pipe = Box::new(Pipe::new(Arc::clone(&served), Principal::local()));
        if client.era() == Era::Modern {
            let edge = Edge::Modern(Calls::new(client, introduction()));
            return Ok(Pair::new(edge, Server::Pipe(pipe), served));
        }
        let (edge, first) = initialized(&pipe.receive(read(initialize(client)))[0])?;
        let mut pair = Pair::new(edge, Server::Pipe(pipe), served);
        pair.send([first]);
        Ok(pair)
    }

    /// Connects over HTTP, with a stream for what concerns no call.
    fn http(client: Revision, server: Revision, replay: Replay) -> Pair {
        let served = served(server);
        let Message::Request(call) = message(initialize(client)) else { panic!() };
        let (session, reply) = Session::open(&call, &served, Principal::anonymous()).unwrap();
        let (edge, first) = initialized(&Output::Reply(reply)).unwrap();
        let random = Some(Random { id: [1; 16], events: [2; 4] });
        let (_, mut session) = HttpSession::open(session, &call.id, random, replay).unwrap();
        let (own, _) = session.open_stream(&HeaderMap::new(), 1, Duration::ZERO).unwrap();
        let mut pair = Pair::new(edge, Server::Http(Box::new(session), vec![own]), served);
        pair.send([first]);
        pair
    }

    /// The client's edge sends messages.
    fn send(&mut self, messages: impl IntoIterator<Item = Bytes>) {
        for sent in messages {
            let outputs = match &mut self.server {
                Server::Pipe(pipe) => pipe.receive(read(sent)),
                Server::Http(session, places) => {
                    let payload = Payload::Message(message(sent));
                    let accept = Accept::read(&HeaderMap::new()).unwrap();
                    let (outputs, reply) = session.post(payload, accept, &self.served, self.now).unwrap();
                    if let Reply::Stream(reader) = reply {
                        places.push(reader);
                    }
                    outputs
                }
            };
            self.apply(outputs);
        }
    }

    /// Does what the server's edge says.
    fn apply(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            match (output, &mut self.server) {
                (Output::Reply(bytes), _) => self.arrive(bytes),
                (Output::Send(_, bytes) | Output::Push(bytes), Server::Pipe(_)) => self.arrive(bytes),
                (Output::Send(key, bytes), Server::Http(session, _)) => {
                    assert!(matches!(session.send(key, &bytes), Room::Taken));
                }
                (Output::Push(bytes), Server::Http(session, _)) => session.push(&bytes),
                (Output::Finish(key), Server::Http(session, _)) => session.finish(key),
                (Output::Finish(_), Server::Pipe(_)) => {}
                (other, _) => self.to_do.push_back(other),
            }
        }
        self.read_streams();
    }

    /// The client reads all streams over HTTP.
    fn read_streams(&mut self) {
        let mut arrived = Vec::new();
        if let Server::Http(session, places) = &mut self.server {
            let now = self.now;
            places.retain(|reader| {
                loop {
                    match session.next(reader) {
                        Next::Event(id, message) => {
                            self.seen = Some(id.text());
                            arrived.push(message);
                        }
                        Next::Wait => return true,
                        Next::End | Next::Release(_) => {
                            session.leave(reader, now);
                            return false;
                        }
                    }
                }
            });
        }
        arrived.into_iter().for_each(|bytes| self.arrive(bytes));
    }

    /// The client's edge receives a message.
    fn arrive(&mut self, bytes: Bytes) {
        for output in self.client.receive(message(bytes), None) {
            match output {
                upstream::Output::Send(bytes) => self.send([bytes]),
                other => self.told.push_back(other),
            }
        }
    }

    fn call(&mut self, key: CallKey, request: &Request) {
        let outgoing = self.client.call(key, request);
        self.send(outgoing.before.into_iter().chain([outgoing.message]));
    }

    /// The service is to work on a call.
    fn started(&mut self) -> (CallKey, Box<Request>) {
        loop {
            match self.to_do.pop_front() {
                Some(Output::Start(key, request)) => return (key, request),
                Some(Output::Listen(..)) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    fn answered(&mut self, key: CallKey, answer: Answer) {
        let outputs = match &mut self.server {
            Server::Pipe(pipe) => pipe.answered(key, Ok(answer)),
            Server::Http(session, _) => session.answered(key, Ok(answer), &self.served, self.now),
        };
        self.apply(outputs);
    }

    fn progress(&mut self, key: CallKey, progress: u32) {
        let event = Event::Progress(object(&json!({ "progress": progress })));
        let outputs = match &mut self.server {
            Server::Pipe(pipe) => pipe.event(key, event),
            Server::Http(session, _) => session.event(key, event),
        };
        self.apply(outputs);
    }

    fn changed(&mut self, key: CallKey, change: &Change) {
        let outputs = match &mut self.server {
            Server::Pipe(pipe) => pipe.changed(key, change),
            Server::Http(session, _) => session.changed(key, change),
        };
        self.apply(outputs);
    }

    /// All connections are cut.
    fn cut(&mut self) {
        let Server::Http(session, places) = &mut self.server else { panic!() };
        for reader in places.drain(..) {
            session.leave(&reader, self.now);
        }
    }

    /// The client comes back behind the last event that it saw.
    fn come_back(&mut self) -> Result<(), u16> {
        let Server::Http(session, places) = &mut self.server else { panic!() };
        let sent = headers(&[(name::LAST_EVENT_ID, self.seen.as_deref().unwrap())]);
        let opened = session.open_stream(&sent, 2, self.now);
        places.push(opened.map_err(|refusal| refusal.response().status().as_u16())?.0);
        self.read_streams();
        Ok(())
    }

    fn is_stale(&self) -> bool {
        let Server::Http(session, _) = &self.server else { panic!() };
        session.is_stale(IDLE, self.now)
    }
}

/// A call of a client that can be asked for its roots and wants progress.
fn request(answers: Option<InputResponses>) -> Request {
    let mut request = tool_call(peer(&json!({"roots": {}})));
    (request.wants_progress, request.answers) = (true, answers.map(Arc::new));
    request
}

fn done() -> Answer {
    Answer::Complete(object(&json!({"content": []})))
}

fn roots() -> Answer {
    let questions = vec![("where".into(), ask(Question::ListRoots, &json!({})))];
    Answer::InputRequired(proto::InputRequired { questions, state: Some(Raw::from("s")) })
}

fn is_done(told: Option<upstream::Output>, of: CallKey) -> bool {
    matches!(told, Some(upstream::Output::Answered(key, Ok(Answer::Complete(_)))) if key == of)
}

/// The client's user is asked for the roots, and answers; gives the key that the call then has.
fn answer(pair: &mut Pair) -> CallKey {
    let answers = |key: &str, state| InputResponses {
        responses: vec![(key.into(), Ok(Raw::literal(r#"{"roots":[]}"#)))],
        state,
    };
    match pair.told.pop_front() {
        Some(upstream::Output::InputRequired(key, questions)) => {
            assert_eq!(questions[0].1.question, Question::ListRoots);
            for output in pair.client.answer(key, &answers(&questions[0].0, None)).unwrap() {
                let upstream::Output::Send(bytes) = output else { panic!("{output:?}") };
                pair.send([bytes]);
            }
            key
        }
        Some(upstream::Output::Answered(key, Ok(Answer::InputRequired(asked)))) => {
            assert_eq!(asked.questions[0].1.question, Question::ListRoots);
            pair.call(key + 1, &request(Some(answers(&asked.questions[0].0, asked.state))));
            key + 1
        }
        other => panic!("{other:?}"),
    }
}

/// A call with progress and a question, one that is cancelled, and a list that changes.
fn script(mut pair: Pair) {
    pair.call(20, &request(None));
    let (key, asked) = pair.started();
    assert!(asked.wants_progress && asked.peer.capabilities.roots());
    pair.progress(key, 1);
    let told = pair.told.pop_front();
    assert!(matches!(told, Some(upstream::Output::Event(20, Event::Progress(_)))), "{told:?}");
    pair.answered(key, roots());
    let now_under = answer(&mut pair);
    let (key, again) = pair.started();
    assert_eq!(*again.params, object(&json!({"name": "x"})));
    let answers = again.answers.unwrap();
    assert_eq!(answers.responses, [("where".into(), Ok(Raw::literal(r#"{"roots":[]}"#)))]);
    assert_eq!(answers.state, Some(Raw::from("s")));
    pair.answered(key, done());
    assert!(is_done(pair.told.pop_front(), now_under));

    pair.call(30, &request(None));
    let (key, _) = pair.started();
    let cancelled = pair.client.cancel(30, "no longer wanted");
    pair.send(cancelled);
    assert!(matches!(pair.to_do.pop_front(), Some(Output::Drop(dropped)) if dropped == key));
    pair.answered(key, done());
    assert_eq!(pair.told.len(), 0, "it is cancelled: {:?}", pair.told);

    let wanted = Filter { tools: true, ..Filter::default() };
    let starting = pair.client.listen(40, &wanted);
    pair.told.extend(starting.outputs);
    pair.send(starting.requests.into_iter().map(|(_, outgoing)| outgoing.message));
    let mut listen = 0;
    if let Some(Output::Listen(key, filter, _)) = pair.to_do.pop_front() {
        listen = key;
        let Server::Pipe(pipe) = &mut pair.server else { panic!("only a modern client asks for it") };
        let outputs = pipe.listening(key, Ok(filter));
        pair.apply(outputs);
    }
    let told = pair.told.pop_front();
    assert!(matches!(told, Some(upstream::Output::Listening(40, _))), "{told:?}");
    pair.changed(listen, &Change::Tools);
    let told = pair.told.pop_front();
    assert!(matches!(told, Some(upstream::Output::Changed(_, Change::Tools))), "{told:?}");
    assert_eq!((pair.told.len(), pair.to_do.len()), (0, 0), "{:?} {:?}", pair.told, pair.to_do);
}

#[test]
fn every_client_reaches_every_server_of_its_era_and_is_refused_by_the_others() {
    for client in Revision::ALL {
        for server in Revision::ALL {
            println!("{client} to {server}");
            match (client.era() == server.era(), Pair::pipe(client, server)) {
                (true, Ok(pair)) => {
                    assert_eq!(pair.client.revision(), server);
                    script(pair);
                    if server.era() == Era::Legacy {
                        script(Pair::http(client, server, Replay::default()));
                    }
                }
                (false, Err(why)) => assert_eq!(client.era(), Era::Legacy, "{why}"),
                (false, Ok(mut pair)) => {
                    assert_eq!(client.era(), Era::Modern);
                    pair.call(20, &request(None));
                    let told = pair.told.pop_front();
                    assert!(matches!(told, Some(upstream::Output::Answered(20, Err(_)))), "{told:?}");
                    assert_eq!(pair.to_do.len(), 0);
                }
                (true, Err(why)) => panic!("{why}"),
            }
        }
    }
}

#[test]
fn a_session_outlives_its_client_s_absence_while_a_call_runs_and_for_a_time_after_that() {
    for revision in Revision::ALL.into_iter().filter(|revision| revision.era() == Era::Legacy) {
        let mut pair = Pair::http(revision, revision, Replay::default());
        pair.call(20, &request(None));
        let (key, _) = pair.started();
        pair.progress(key, 1);
        pair.told.clear();
        pair.cut();
        pair.now += 100 * IDLE;
        assert!(!pair.is_stale(), "{revision}: a call runs");
        pair.progress(key, 2);
        pair.answered(key, done());
        pair.now += IDLE;
        assert!(!pair.is_stale() && pair.told.is_empty(), "{revision}: its client may come back");
        pair.come_back().unwrap();
        assert!(matches!(pair.told.pop_front(), Some(upstream::Output::Event(20, Event::Progress(_)))));
        assert!(is_done(pair.told.pop_front(), 20), "{revision}");
        pair.now += IDLE;
        assert!(!pair.is_stale(), "{revision}");
        pair.now += SECOND;
        assert!(pair.is_stale(), "{revision}");
    }
}
