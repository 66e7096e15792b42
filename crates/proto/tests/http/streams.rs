//! The event streams of a session: which message goes on which, and what a client that comes back is sent.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use proto::downstream::http::{
    Accept, HttpSession, Next, Payload, Posted, Random, Refusal, Replay, Reply, ResponseForm, Room,
    StreamReader, Use, post,
};
use proto::downstream::{Output, Served};
use proto::wire::Limits;
use proto::{Answer, CallKey, Object, Principal};
use serde_json::{Value, json};
use spec::{Revisions, header as name};
use std::sync::Arc;

use super::super::{Stub, bytes, parsed, read};
use super::{head_of, headers};

const MOST: usize = 2;

/// A session, and what it is served.
struct Opened {
    session: HttpSession,
    /// It is written and read back after every step, as one that goes from process to process.
    moves: bool,
    served: Served,
    now: Duration,
}

fn opened(moves: bool, revision: &str, replay: Replay) -> Opened {
    let served = Served { service: Arc::new(Stub), revisions: Revisions::ALL, limits: Limits::default() };
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {"protocolVersion": revision, "capabilities": {}}});
    let sent = headers(&[]);
    let accept = Accept::read(&sent).unwrap();
    let posted =
        post(&head_of(&sent), bytes(&initialize), accept, None, &served, &Principal::anonymous()).unwrap();
    let Posted::Open { id, session, .. } = posted else { panic!("{posted:?}") };
    let random = Random { id: [0xf0; 16], events: 0xabc_u32.to_ne_bytes() };
    let (name, session) = HttpSession::open(*session, &id, Some(random), replay).unwrap();
    assert_eq!(name, "f0".repeat(16));
    Opened { session, moves, served, now: Duration::ZERO }
}

impl Opened {
    /// Ends a step.
    fn step(&mut self) {
        if self.moves {
            let written = serde_json::to_string(&self.session).unwrap();
            self.session = serde_json::from_str(&written).unwrap();
            assert_eq!(serde_json::to_string(&self.session).unwrap(), written);
        }
    }

    /// Posts a call; gives its key, and where its messages are read.
    fn call(&mut self, id: u64, sent: &[(&'static str, &str)]) -> (CallKey, StreamReader) {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"});
        let accept = Accept::read(&headers(sent)).unwrap();
        let payload = Payload::Message(read(bytes(&message)).unwrap());
        let (outputs, reply) = self.session.post(payload, accept, &self.served, self.now).unwrap();
        self.step();
        match (&outputs[..], reply) {
            ([Output::Start(key, _)], Reply::Stream(reader)) => (*key, reader),
            other => panic!("{other:?}"),
        }
    }

    /// The service answers a call.
    fn answer(&mut self, key: CallKey) {
        let answer = Ok(Answer::Complete(Object::of(&json!({"tools": []}))));
        for output in self.session.answered(key, answer, &self.served, self.now) {
            match output {
                Output::Send(key, bytes) => {
                    assert!(matches!(self.session.send(key, &bytes), Room::Taken));
                }
                Output::Finish(key) => self.session.finish(key),
                other => panic!("{other:?}"),
            }
            self.step();
        }
    }

    fn send(&mut self, key: CallKey, text: &str) {
        assert!(matches!(self.session.send(key, &message(text)), Room::Taken));
        self.step();
    }

    /// What is read by a reader until there is nothing more: each event's id and `text`, or the response's id.
    fn read(&mut self, reader: &StreamReader) -> Vec<(String, Value)> {
        let mut found = Vec::new();
        while let Next::Event(id, message) = self.session.next(reader) {
            let message = parsed(&message);
            let shown = message.get("text").or(message.get("id")).unwrap().clone();
            found.push((id.text(), shown));
            self.step();
        }
        found
    }

    /// Comes back behind an event, or opens a stream of the session's own.
    fn open_stream(&mut self, seen: Option<&str>) -> Result<StreamReader, u16> {
        let sent = seen.map_or_else(HeaderMap::new, |seen| headers(&[(name::LAST_EVENT_ID, seen)]));
        let opened = self.session.open_stream(&sent, MOST, self.now);
        self.step();
        opened.map(|(reader, _)| reader).map_err(|refusal: Refusal| refusal.response().status().as_u16())
    }
}

fn message(text: &str) -> Bytes {
    bytes(&json!({ "text": text }))
}

fn ids(read: &[(String, Value)]) -> Vec<&str> {
    read.iter().map(|(id, _)| id.as_str()).collect()
}

#[test]
fn a_message_goes_on_the_stream_of_its_call_and_what_concerns_no_call_on_one_other() {
    for moves in [false, true] {
        let mut opened = opened(moves, "2025-11-25", Replay::default());
        let ((first, one), (second, two)) = (opened.call(1, &[]), opened.call(2, &[]));
        opened.session.push(&message("waits"));
        let own = [opened.open_stream(None).unwrap(), opened.open_stream(None).unwrap()];
        assert_eq!(opened.open_stream(None).unwrap_err(), 429, "no more than {MOST} are read at once");
        opened.send(first, "a");
        opened.send(second, "b");
        assert_eq!(opened.read(&own[1]), [("abc-s4-1".to_owned(), json!("waits"))]);
        opened.session.push(&message("newest"));
        assert_eq!(opened.read(&own[0]), [], "a message is sent once");
        assert_eq!(opened.read(&own[1]), [("abc-s4-2".to_owned(), json!("newest"))]);
        opened.answer(first);
        assert_eq!(
            opened.read(&one),
            [("abc-c1-1".to_owned(), json!("a")), ("abc-c1-2".to_owned(), json!(1))],
            "the response comes last"
        );
        assert_eq!(opened.read(&two), [("abc-c2-1".to_owned(), json!("b"))]);
        assert!(
            matches!(opened.session.next(&one), Next::End) && matches!(opened.session.next(&two), Next::Wait)
        );
        let changed: Vec<u64> = opened.session.take_changed().into_iter().collect();
        assert_eq!(changed, [1, 2, 4], "nothing is new for the other reader");
    }
}

#[test]
fn a_client_that_comes_back_is_sent_what_it_missed_and_nothing_twice() {
    for moves in [false, true] {
        let mut opened = opened(moves, "2025-11-25", Replay::default());
        let (call, reader) = opened.call(1, &[]);
        assert_eq!(opened.session.opening(&reader).unwrap().text(), "abc-c1-0");
        opened.send(call, "a");
        opened.send(call, "b");
        assert_eq!(ids(&opened.read(&reader)), ["abc-c1-1", "abc-c1-2"]);
        opened.session.leave(&reader, opened.now);
        opened.answer(call);
        let again = opened.open_stream(Some("abc-c1-1")).unwrap();
        assert_eq!(ids(&opened.read(&again)), ["abc-c1-2", "abc-c1-3"]);
        // A connection that reads is replaced by one that comes back.
        let third = opened.open_stream(Some("abc-c1-2")).unwrap();
        assert!(matches!(opened.session.next(&again), Next::End));
        assert_eq!(ids(&opened.read(&third)), ["abc-c1-3"]);
        opened.session.leave(&third, opened.now);
        for (seen, status) in
            [("abd-c1-1", 400), ("abc-c9-1", 400), ("abc-s1-1", 400), ("abc-c1-9", 400), ("rubbish", 400)]
        {
            assert_eq!(opened.open_stream(Some(seen)).unwrap_err(), status, "{seen}");
        }
        let last = opened.open_stream(Some("abc-c1-3")).unwrap();
        assert_eq!(opened.read(&last), []);
        opened.session.leave(&last, opened.now);
        assert_eq!((opened.session.kept(), opened.open_stream(Some("abc-c1-3")).unwrap_err()), (0, 400));
    }
}

#[test]
fn over_the_limit_a_response_that_was_missed_goes_last() {
    for moves in [false, true] {
        let mut opened = opened(moves, "2025-11-25", Replay { messages: 2, bytes: 1000 });
        let (call, reader) = opened.call(1, &[]);
        opened.session.opening(&reader);
        opened.session.leave(&reader, opened.now);
        for text in ["a", "b", "c"] {
            opened.send(call, text);
        }
        opened.answer(call);
        let again = opened.open_stream(Some("abc-c1-0")).unwrap();
        let read = opened.read(&again);
        assert_eq!((ids(&read), &read[1].1), (vec!["abc-c1-3", "abc-c1-4"], &json!(1)));
        opened.session.forget();
        assert_eq!(opened.session.kept(), 0);
    }
}

#[test]
fn a_reader_that_is_behind_stops_the_call_until_it_reads_on_or_is_let_go() {
    for moves in [false, true] {
        let mut opened = opened(moves, "2025-06-18", Replay::default());
        let (call, reader) = opened.call(1, &[]);
        let sent =
            (0..1000).take_while(|_| matches!(opened.session.send(call, &message("a")), Room::Taken)).count();
        let full = opened.session.send(call, &message("b"));
        assert!(matches!(full, Room::Full(stream) if stream == reader.stream()), "{full:?} after {sent}");
        assert!(matches!(opened.session.next(&reader), Next::Event(_, _)));
        assert!(matches!(opened.session.send(call, &message("b")), Room::Taken));
        assert!(matches!(opened.session.send(call, &message("c")), Room::Full(_)));
        opened.session.give_up(call);
        assert!(matches!(opened.session.next(&reader), Next::End));
        assert!(
            matches!(opened.session.send(call, &message("c")), Room::Taken),
            "it is kept for a later reader"
        );
    }
}

#[test]
fn one_message_is_an_object_and_several_are_a_stream() {
    for moves in [false, true] {
        let mut opened = opened(moves, "2025-06-18", Replay::default());
        let (call, reader) = opened.call(1, &[]);
        assert!(matches!(opened.session.form(&reader), ResponseForm::Open));
        opened.answer(call);
        assert!(matches!(opened.session.form(&reader), ResponseForm::Object(Some(_))));
        let (call, reader) = opened.call(2, &[]);
        opened.send(call, "progress");
        assert!(matches!(opened.session.form(&reader), ResponseForm::Stream));
        // A client that takes one object only is not sent what comes before the response.
        let (call, reader) = opened.call(3, &[("accept", "application/json")]);
        opened.send(call, "progress");
        assert!(matches!(opened.session.form(&reader), ResponseForm::Open));
        opened.answer(call);
        let ResponseForm::Object(Some(response)) = opened.session.form(&reader) else { panic!() };
        assert_eq!(parsed(&response)["id"], 3);
    }
}

#[test]
fn calls_and_readers_keep_a_session_and_time_alone_ends_it() {
    for moves in [false, true] {
        let mut opened = opened(moves, "2025-06-18", Replay::default());
        let (idle, late) = (Duration::from_secs(60), Duration::from_secs(61));
        assert_eq!(opened.session.in_use(), Use::None);
        let (call, reader) = opened.call(1, &[]);
        assert_eq!((opened.session.in_use(), opened.session.is_stale(idle, late)), (Use::Works, false));
        opened.answer(call);
        assert_eq!((opened.session.in_use(), opened.session.is_stale(idle, late)), (Use::Read, false));
        opened.session.leave(&reader, Duration::from_secs(2));
        assert_eq!((opened.session.in_use(), opened.session.is_stale(idle, late)), (Use::Idle, false));
        assert!(opened.session.is_stale(idle, late + Duration::from_secs(2)));
    }
}

#[test]
fn a_written_session_whose_streams_contradict_themselves_is_an_error() {
    let mut opened = opened(false, "2025-11-25", Replay::default());
    let (call, reader) = opened.call(1, &[]);
    opened.send(call, "a");
    opened.read(&reader);
    let written = serde_json::to_value(&opened.session).unwrap();
    let read = |value: &Value| serde_json::from_str::<HttpSession>(&value.to_string());
    assert!(read(&written).is_ok());
    for (member, value) in [
        ("first", json!(0)),
        ("first", json!(3)),
        ("sent", json!(2)),
        ("sent", json!(u64::MAX)),
        ("next_reader", json!(u64::MAX)),
        ("events", json!([])),
        ("events", json!([1])),
    ] {
        let mut broken = written.clone();
        broken["streams"]["streams"]["1"][member] = value.clone();
        assert!(read(&broken).is_err(), "{member}: {value}");
    }
    for (pointer, value) in
        [("/streams/next", json!(1)), ("/format", json!(2)), ("/session/format", json!(0))]
    {
        let mut broken = written.clone();
        *broken.pointer_mut(pointer).unwrap() = value;
        assert!(read(&broken).is_err(), "{pointer}");
    }
}
