//! What the gates let out, before the referee: values of every kind go to every revision, and the closed official
//! schema of that revision accepts each one.

use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::any;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};
use proto::edge::{Pipe, Served};
use proto::project::{self, Stamp};
use proto::upstream::Introduction;
use proto::wire::Limits;
use proto::{
    Answer, Ask, BoxFuture, CacheHint, Capabilities, Change, Description, Event, Filter, Level, Listening, Object,
    Peer, Raw, Rejection, Request, Service, legacy, modern, stream,
};
use serde_json::{Value, json};
use spec::shape::Shape;
use spec::{Capability, Direction, Era, Method, Notice, Question, Revision, Revisions, fields, meta};
use testkit::referee::judge;

use crate::values::{Tape, definition, of_params, of_type};
use crate::{bytes, object, parsed, sent};

fn for_all(cases: u32, test: impl Fn(&mut Tape) -> Result<(), String>) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let choices = proptest::collection::vec(any::<u32>(), 0..600);
    let outcome = TestRunner::new(config)
        .run(&choices, |choices| test(&mut Tape::new(choices)).map_err(TestCaseError::fail));
    match outcome {
        // The choices say nothing to a reader; the value that they made is part of the reason.
        Err(TestError::Fail(reason, _)) => panic!("{}", reason.message()),
        Err(error) => panic!("{error}"),
        Ok(()) => {}
    }
}

fn accepted(
    revision: Revision,
    direction: Direction,
    message: &Value,
    answers: Option<&str>,
    made: &Value,
) -> Result<(), String> {
    judge(revision, direction, message, answers)
        .map_err(|why| format!("{revision} does not accept {message}\nof {made}\n{why}"))
}

fn identity(tape: &mut Tape) -> Object {
    object(&tape.object(&fields::IMPLEMENTATION, &of_type("Implementation")))
}

#[test]
fn results_of_every_method_are_valid_in_every_revision() {
    for row in Method::rows() {
        let places = of_type(row.result.name);
        for_all(96, |tape| {
            let made = tape.object(row.result, &places);
            let identity = identity(tape);
            let id = Raw::of(&7);
            for revision in Revision::ALL.into_iter().filter(|r| row.method.exists(*r)) {
                let stamp = Stamp {
                    identity: &identity,
                    depends_on_answers: tape.flip(),
                    subscription: (row.method == Method::SubscriptionsListen).then_some(&id),
                };
                let result = project::result(object(&made), row, revision.rules(), stamp);
                let message = json!({"jsonrpc": "2.0", "id": 1, "result": result});
                accepted(revision, Direction::ToClient, &message, Some(row.wire), &made)?;
            }
            Ok(())
        });
    }
}

#[test]
fn notifications_are_valid_in_every_revision() {
    for row in Notice::rows().iter().filter(|row| row.direction != Direction::ToServer) {
        let places = of_params(definition(row.wire));
        for_all(96, |tape| {
            let made = tape.object(row.params, &places);
            for revision in row.exists.iter() {
                let mut written = vec![stream::notification(row.notice, object(&made), revision.rules())];
                let mut running = stream::Stream::new(revision.rules(), Some(Raw::of("token")), Some(Level::Debug));
                let event = match row.notice {
                    Notice::Progress => Some(Event::Progress(object(&made))),
                    Notice::Message => Some(Event::Log(Level::Error, object(&made))),
                    _ => None,
                };
                written.extend(event.and_then(|event| running.event(event)));
                for message in &written {
                    accepted(revision, Direction::ToClient, &parsed(message), None, &made)?;
                }
            }
            Ok(())
        });
    }
}

#[test]
fn changes_are_valid_in_every_revision() {
    let changes = [Change::Tools, Change::Prompts, Change::Resources, Change::Resource("demo://a".into())];
    for revision in Revision::ALL {
        let id = Raw::of("listen");
        let subscription = (revision.era() == Era::Modern).then_some(&id);
        for change in &changes {
            let message = parsed(&stream::change(change, subscription, revision.rules()));
            judge(revision, Direction::ToClient, &message, None).unwrap();
        }
    }
}

/// A question, of any sort that some revision has.
fn question(tape: &mut Tape) -> (Ask, Value) {
    let question = Question::ALL[tape.of(3)];
    let made = tape.object(question.params(), &of_params(definition(question.wire())));
    (Ask { question, params: object(&made) }, made)
}

/// Whether a client of the revision can be asked this: what it cannot be asked is refused before the gate.
fn askable(ask: &Ask, revision: Revision) -> bool {
    let all = json!({"roots": {}, "sampling": {"tools": {}, "context": {}}, "elicitation": {"form": {}, "url": {}}});
    let declared = proto::ClientCapabilities::read(object(&all), revision);
    ask.question.exists().contains(revision) && declared.lacks(ask).is_none()
}

#[test]
fn questions_are_valid_in_every_revision() {
    for_all(512, |tape| {
        let (ask, made) = question(tape);
        let identity = identity(tape);
        for revision in Revision::ALL.into_iter().filter(|r| askable(&ask, *r)) {
            if revision.rules().server_requests {
                let params = project::question(&ask, revision.rules());
                let message = json!({"jsonrpc": "2.0", "id": 1, "method": ask.question.wire(), "params": params});
                accepted(revision, Direction::ToClient, &message, None, &made)?;
            } else {
                let asked = project::questions(&[("k".into(), ask.clone())], revision.rules());
                let stamp = Stamp { identity: &identity, depends_on_answers: false, subscription: None };
                let result = project::interim(Some(asked), Some(Raw::of("state")), stamp);
                let message = json!({"jsonrpc": "2.0", "id": 1, "result": result});
                accepted(revision, Direction::ToClient, &message, Some(Method::ToolsCall.wire()), &made)?;
            }
        }
        Ok(())
    });
}
