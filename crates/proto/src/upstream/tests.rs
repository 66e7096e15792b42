//! Each transcript in `tests/transcripts/` is one way in which a call can go. It is run against the edge towards servers of
//! every revision of its era. A line is a direction and a message:
//!
//! - `->` the edge sends this message to the server, `<-` the server sends it to the edge;
//! - `call`, `retry`, `answer` and `cancel` are what a transport does with the call of a key;
//! - `asks`, `ends` and `fails` are what the transport is given for the call;
//! - `closed` says that the answers came to no open call.
//!
//! Messages stand without `jsonrpc`, and params without `_meta`.

use std::sync::Arc;

use bytestring::ByteString;
use serde_json::{Deserializer, Value, json};
use spec::{Era, Method, Question, Revision};

use super::{Calls, Edge, Introduction, Output, Session};
use crate::json::{Object, Raw};
use crate::model::capability::ClientCapabilities;
use crate::model::input::{InputRequest, InputResponses};
use crate::model::request::{Answer, Peer, Request};
use crate::rpc::wire::{self, Limits};

fn raw(value: &Value) -> Raw {
    Raw::of(value)
}

fn object(value: &Value) -> Object {
    raw(value).object().unwrap()
}

fn edge(revision: Revision) -> Edge {
    let introduction = Introduction { identity: object(&json!({"name": "us", "version": "1"})) };
    match revision.era() {
        Era::Modern => Edge::Modern(Calls::new(revision, introduction)),
        Era::Legacy => {
            let server = json!({"name": "s", "version": "1"});
            let opened =
                json!({"protocolVersion": revision.as_str(), "capabilities": {}, "serverInfo": server});
            Edge::Legacy(Session::open(Ok(raw(&opened))).unwrap().0)
        }
    }
}

/// A tool call of a client that can be asked everything.
fn tool_call(params: &Value) -> Request {
    let declared = object(&json!({"roots": {}, "sampling": {}, "elicitation": {}}));
    let capabilities = Arc::new(ClientCapabilities::read(declared, Revision::LATEST_MODERN));
    let peer = Arc::new(Peer { capabilities, ..(*Peer::own()).clone() });
    Request { peer, ..Request::own(Method::ToolsCall, object(params)) }
}

fn answers(responses: &Value, state: Option<&Value>) -> InputResponses {
    let outcome = |answer: &Value| match answer.get("error") {
        Some(error) => Err(raw(error)),
        None => Ok(raw(&answer["result"])),
    };
    let responses = responses.as_object().unwrap();
    InputResponses {
        responses: responses.iter().map(|(key, answer)| (key.as_str().into(), outcome(answer))).collect(),
        state: state.map(raw),
    }
}

fn questions(questions: &[(ByteString, InputRequest)]) -> Value {
    let shown = |request: &InputRequest| {
        let mut shown = json!({"method": request.question.wire()});
        if !request.params.is_empty() {
            shown["params"] = parsed(&Raw::from(request.params.clone()));
        }
        shown
    };
    questions.iter().map(|(key, request)| (key.to_string(), shown(request))).collect()
}

fn parsed(raw: &Raw) -> Value {
    serde_json::from_str(raw.as_str()).unwrap()
}

/// A line of a transcript: its first word, and the values behind it.
#[derive(Debug, PartialEq)]
struct Line(String, Vec<Value>);

impl Line {
    fn read(text: &str) -> Line {
        let (word, rest) = text.split_once(' ').unwrap();
        Line(word.to_owned(), Deserializer::from_str(rest).into_iter().map(Result::unwrap).collect())
    }

    fn sent(message: &[u8]) -> Line {
        let mut message: Value = serde_json::from_slice(message).unwrap();
        message.as_object_mut().unwrap().remove("jsonrpc");
        if let Some(params) = message.get_mut("params") {
            params.as_object_mut().unwrap().remove("_meta");
        }
        Line("->".to_owned(), vec![message])
    }

    fn of(output: &Output) -> Line {
        let line = |word: &str, key: &u64, value: Value| Line(word.to_owned(), vec![json!(key), value]);
        match output {
            Output::Send(message) => Line::sent(message),
            Output::InputRequired(key, asked) => line("asks", key, questions(asked)),
            Output::Answered(key, Ok(Answer::Complete(result))) => {
                line("ends", key, parsed(&Raw::from(result.clone())))
            }
            Output::Answered(key, Ok(Answer::InputRequired(asked))) => {
                let mut interim = json!({"inputRequests": questions(&asked.questions)});
                if let Some(state) = &asked.state {
                    interim["requestState"] = parsed(state);
                }
                line("ends", key, interim)
            }
            Output::Answered(key, Err(why)) => line("fails", key, json!(why.to_string())),
            other => panic!("not of a call: {other:?}"),
        }
    }

    /// Does what the line says; gives what comes of it. `None` where the line is itself what comes of an earlier one.
    fn act(&self, edge: &mut Edge) -> Option<Vec<Line>> {
        let Line(word, values) = self;
        let key = values[0].as_u64().unwrap_or_default();
        let mut call = |request: &Request| {
            let outgoing = edge.call(key, request);
            outgoing.before.iter().chain([&outgoing.message]).map(|message| Line::sent(message)).collect()
        };
        Some(match word.as_str() {
            "<-" => {
                let mut message = values[0].clone();
                message["jsonrpc"] = "2.0".into();
                let message = wire::read(message.to_string().into(), &Limits::default()).unwrap();
                edge.receive(message, None).iter().map(Line::of).collect()
            }
            "call" => call(&tool_call(&values[1])),
            "retry" => {
                let answers = Some(Arc::new(answers(&values[2], Some(&values[3]))));
                call(&Request { answers, ..tool_call(&values[1]) })
            }
            "answer" => match edge.answer(key, &answers(&values[1], None)) {
                Some(outputs) => outputs.iter().map(Line::of).collect(),
                None => vec![Line("closed".to_owned(), vec![json!(key)])],
            },
            "cancel" => edge.cancel(key, "cancelled").iter().map(|message| Line::sent(message)).collect(),
            _ => return None,
        })
    }
}

fn run(era: Era, transcript: &str) {
    for revision in Revision::ALL.into_iter().filter(|revision| revision.era() == era) {
        let mut edge = edge(revision);
        let mut came = Vec::new();
        for line in transcript.lines().map(Line::read) {
            if let Some(outputs) = line.act(&mut edge) {
                came.push(line);
                came.extend(outputs);
            }
        }
        assert_eq!(came, transcript.lines().map(Line::read).collect::<Vec<_>>(), "{revision}");
    }
}

#[test]
fn a_call_is_asked_twice() {
    run(Era::Legacy, include_str!("../../tests/transcripts/legacy_asks_twice.txt"));
    run(Era::Modern, include_str!("../../tests/transcripts/modern_asks_twice.txt"));
}

#[test]
fn a_call_that_is_parked_is_asked_more_in_the_next_round() {
    run(Era::Legacy, include_str!("../../tests/transcripts/legacy_asks_while_parked.txt"));
}

#[test]
fn a_call_that_is_parked_is_answered() {
    run(Era::Legacy, include_str!("../../tests/transcripts/legacy_answers_while_parked.txt"));
    run(Era::Modern, include_str!("../../tests/transcripts/modern_ends_with_its_question.txt"));
}

#[test]
fn a_call_is_cancelled() {
    run(Era::Legacy, include_str!("../../tests/transcripts/legacy_cancelled_while_parked.txt"));
    run(Era::Modern, include_str!("../../tests/transcripts/modern_cancelled.txt"));
}

/// The kind of the question decides the form of its answer, also where the answer lacks a member that it must have.
#[test]
fn an_answer_has_the_form_that_its_question_wants() {
    let block = |text: &str| json!({"type": "text", "text": text});
    let answer = json!({"role": "assistant", "content": [block("a"), block("b")]});
    for revision in Revision::ALL.into_iter().filter(|revision| revision.era() == Era::Legacy) {
        let mut edge = edge(revision);
        edge.call(16, &tool_call(&json!({"name": "x"})));
        let asked = json!({"messages": [], "maxTokens": 1});
        let question = json!({"id": "a", "method": Question::Sample.wire(), "params": asked});
        Line("<-".to_owned(), vec![question]).act(&mut edge);
        let answered = Line("answer".to_owned(), vec![json!(16), json!({"q1": {"result": answer}})]);
        let content = if revision.rules().sampling_tools { answer["content"].clone() } else { block("a\nb") };
        let due = json!({"id": "a", "result": {"role": "assistant", "content": content}});
        assert_eq!(answered.act(&mut edge), Some(vec![Line("->".to_owned(), vec![due])]), "{revision}");
    }
}
