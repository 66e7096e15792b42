//! Each transcript `tests/transcripts/session_*.txt` is a part of a session after its handshake. It is run against the edge
//! towards clients under every revision that allows it: as it is, and with the session written and read back between any
//! two of its inputs. A line is a direction and a message:
//!
//! - `<-` the client sends this message to the edge, `->` the edge sends it to the client;
//! - `answers`, `asks`, `fails` and `tells` are what the service does with the call of a key, `honours` and `changes` what
//!   it does with a listen, and with `ends` the session is over;
//! - `starts`, `listens`, `drops`, `finishes` and `abandons` are what the edge wants to be done.
//!
//! Messages stand without `jsonrpc`.

use std::sync::Arc;

use proto::downstream::{Output, Served, Session};
use proto::wire::{Limits, Message, Unreadable};
use proto::{Answer, Change, Event, Filter, InputRequest, InputRequired, Principal, Raw, Rejection, Request};
use serde_json::{Deserializer, Value, json};
use spec::{Era, Question, Revision, Revisions};

use super::{Stub, bytes, object, parsed, read};

/// A line of a transcript: its first word, and the values behind it.
#[derive(Clone, Debug, PartialEq)]
struct Line(String, Vec<Value>);

fn line(word: &str, values: Vec<Value>) -> Line {
    Line(word.to_owned(), values)
}

fn sent(message: &bytes::Bytes) -> Line {
    let mut message = parsed(message);
    match &mut message {
        Value::Array(messages) => messages.iter_mut().for_each(|message| {
            message.as_object_mut().unwrap().remove("jsonrpc");
        }),
        message => {
            message.as_object_mut().unwrap().remove("jsonrpc");
        }
    }
    line("->", vec![message])
}

fn value(raw: &Raw) -> Value {
    serde_json::from_str(raw.as_str()).unwrap()
}

fn shown(request: &Request) -> Vec<Value> {
    let mut values = vec![value(&Raw::from(request.params.clone()))];
    if let Some(answers) = &request.answers {
        let outcome = |answer: &Result<Raw, Raw>| match answer {
            Ok(result) => json!({"result": value(result)}),
            Err(error) => json!({"error": value(error)}),
        };
        values
            .push(answers.responses.iter().map(|(key, answer)| (key.to_string(), outcome(answer))).collect());
        values.extend(answers.state.as_ref().map(value));
    }
    values
}

impl Line {
    fn read(text: &str) -> Line {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        line(word, Deserializer::from_str(rest).into_iter().map(Result::unwrap).collect())
    }

    fn of(output: &Output) -> Line {
        let of = |word: &str, key: &u64, values: Vec<Value>| line(word, [vec![json!(key)], values].concat());
        match output {
            Output::Reply(message) | Output::Send(_, message) | Output::Push(message) => sent(message),
            Output::Start(key, request) => of("starts", key, shown(request)),
            Output::Listen(key, filter, _) => of("listens", key, vec![value(&Raw::from(filter.object()))]),
            Output::Drop(key) => of("drops", key, vec![]),
            Output::Finish(key) => of("finishes", key, vec![]),
            Output::Abandon(request) => line("abandons", shown(request)),
            Output::Release(key, _) => of("releases", key, vec![]),
        }
    }

    /// Does what the line says; gives what comes of it. `None` where the line is itself what comes of an earlier one.
    fn act(&self, session: &mut Session, served: &Served) -> Option<Vec<Line>> {
        let Line(word, values) = self;
        let key = values.first().and_then(Value::as_u64).unwrap_or_default();
        let outputs = match word.as_str() {
            "<-" => match received(&values[0]) {
                Ok(message) => session.receive(message, served, true),
                Err(Unreadable::Batch(messages)) => session.batch(&messages, served, true),
                Err(other) => panic!("{other:?}"),
            },
            "answers" => session.answered(key, Ok(Answer::Complete(object(&values[1]))), served),
            "fails" => {
                let why = Rejection::Internal(values[1].as_str().unwrap().into());
                session.answered(key, Err(why), served)
            }
            "asks" => session.answered(key, Ok(Answer::InputRequired(interim(&values[1..]))), served),
            "tells" => session.event(key, Event::Progress(object(&values[1]))),
            "honours" => session.listening(key, Ok(Filter::read(&object(&values[1])).unwrap())),
            "changes" => {
                let change =
                    values.get(1).map_or(Change::Tools, |uri| Change::Resource(uri.as_str().unwrap().into()));
                session.changed(key, &change)
            }
            "ends" => session.abandoned(),
            _ => return None,
        };
        Some(outputs.iter().map(Line::of).collect())
    }
}

fn received(message: &Value) -> Result<Message, Unreadable> {
    let mut message = message.clone();
    let mark = |message: &mut Value| message["jsonrpc"] = "2.0".into();
    match &mut message {
        Value::Array(messages) => messages.iter_mut().for_each(mark),
        message => mark(message),
    }
    read(bytes(&message))
}

fn interim(values: &[Value]) -> InputRequired {
    let questions = values[0].as_object().unwrap().iter().map(|(key, asked)| {
        let question = Question::parse(asked["method"].as_str().unwrap()).unwrap();
        (key.as_str().into(), InputRequest { question, params: object(&json!({})) })
    });
    InputRequired { questions: questions.collect(), state: values.get(1).map(Raw::of) }
}

fn served() -> Served {
    Served { service: Arc::new(Stub), revisions: Revisions::ALL, limits: Limits::default() }
}

fn opened(revision: Revision, served: &Served) -> Session {
    let params = json!({
        "protocolVersion": revision.as_str(),
        "capabilities": {"roots": {}, "sampling": {}, "elicitation": {}},
        "clientInfo": {"name": "t", "version": "1.0"},
    });
    let initialize = json!({"id": "open", "method": "initialize", "params": params});
    let Ok(Message::Request(call)) = received(&initialize) else { panic!() };
    Session::open(&call, served, Principal::named("somebody")).unwrap().0
}

fn moved(session: &Session) -> Session {
    serde_json::from_str(&serde_json::to_string(session).unwrap()).unwrap()
}

/// Runs a transcript; the session is written and read back before the lines that `moves` names.
#[track_caller]
fn run(revision: Revision, lines: &[Line], how: &str, moves: impl Fn(usize) -> bool) {
    let served = served();
    let mut session = opened(revision, &served);
    let mut came = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if moves(at) {
            session = moved(&session);
        }
        if let Some(outputs) = line.act(&mut session, &served) {
            came.push(line.clone());
            came.extend(outputs);
        }
    }
    for (came, line) in came.iter().zip(lines) {
        assert_eq!(came, line, "{revision}, {how}");
    }
    assert_eq!(came.len(), lines.len(), "{revision}, {how}");
}

#[track_caller]
fn check(transcript: &str) {
    let lines: Vec<Line> = transcript.lines().map(Line::read).collect();
    let batches = lines.iter().any(|Line(word, values)| word == "<-" && values[0].is_array());
    let legacy = Revision::ALL.into_iter().filter(|revision| revision.era() == Era::Legacy);
    for revision in legacy.filter(|revision| revision.rules().batches || !batches) {
        run(revision, &lines, "at one place", |_| false);
        run(revision, &lines, "moved before every line", |_| true);
        for place in 1..lines.len() {
            run(revision, &lines, &format!("moved before line {place}"), |at| at == place);
        }
    }
}

#[test]
fn a_call_reports_and_asks() {
    check(include_str!("transcripts/session_asks.txt"));
}

#[test]
fn questions_and_changes_wait_for_the_handshake() {
    check(include_str!("transcripts/session_not_initialized.txt"));
}

#[test]
fn a_call_that_asks_is_cancelled() {
    check(include_str!("transcripts/session_cancelled.txt"));
}

#[test]
fn a_resource_is_watched() {
    check(include_str!("transcripts/session_subscribes.txt"));
}

#[test]
fn an_array_is_answered_together() {
    check(include_str!("transcripts/session_batch.txt"));
}

#[test]
fn a_session_ends_while_calls_ask() {
    check(include_str!("transcripts/session_ends.txt"));
}

#[test]
fn what_is_no_session_of_this_format_is_an_error() {
    let session = opened(Revision::LATEST_LEGACY, &served());
    let written = serde_json::to_value(&session).unwrap();
    let with = |member: &str, value: Value| {
        let mut changed = written.clone();
        changed[member] = value;
        serde_json::from_str::<Session>(&changed.to_string()).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(with("format", json!(1)), Ok(()));
    let newer = with("format", json!(2)).unwrap_err();
    assert!(newer.contains("it has format 2; this program reads 1"), "{newer}");
    let mut peer = written["peer"].clone();
    peer["revision"] = json!("2999-01-01");
    for (member, value) in [
        ("peer", peer),
        ("peer", json!(null)),
        ("next_key", json!(u64::MAX)),
        ("next_question", json!(-1)),
        ("held", json!([{"Change": 1}])),
        ("calls", json!({"1": {}})),
        ("calls", json!({"x": {}})),
    ] {
        let shown = format!("{member}: {value}");
        with(member, value).expect_err(&shown);
    }
    for text in ["", "{}", "[]", "null", "{\"format\":1}"] {
        assert!(serde_json::from_str::<Session>(text).is_err(), "{text}");
    }
}

/// What a client sent is kept to the byte.
#[test]
fn a_written_value_keeps_its_text() {
    for text in
        [r#"{"z":1.0,"a":[1e400, 9007199254740993 ],"\u0062":{"x" : "\u00e9"}}"#, "1E+2", "\"\\/\"", "[ ]"]
    {
        let raw = Raw::parse(text.into(), 8).unwrap();
        let written = serde_json::to_string(&[&raw]).unwrap();
        assert_eq!(serde_json::from_str::<[Raw; 1]>(&written).unwrap()[0].as_str(), text);
    }
    let twice = serde_json::from_str::<proto::Object>(r#"{"a":1,"a":2}"#);
    assert!(twice.is_err(), "{twice:?}");
}
