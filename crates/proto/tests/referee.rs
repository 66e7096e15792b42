//! What the gates let out, judged by the referee: values of every kind are sent to every revision, and the closed schema
//! of that revision accepts each one.

use std::sync::Arc;

use proptest::prelude::any;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};
use proto::downstream::{Pipe, Served, stream};
use proto::project::{self, ResultMeta};
use proto::upstream::{self, Edge, Introduction};
use proto::wire::Limits;
use proto::{
    Answer, BoxFuture, Capabilities, Change, Description, Event, Filter, InputRequest, InputResponses, Level,
    Listening, Object, Peer, Principal, Raw, Rejection, Request, Service,
};
use serde_json::{Value, json};
use spec::{Capability, Direction, Era, Method, Notice, Question, Revision, Revisions, fields};
use testkit::referee::judge;

use crate::values::{Tape, definition, of_params, of_type};
use crate::{bytes, object, parsed, read, sent};

pub(crate) fn for_all(cases: u32, test: impl Fn(&mut Tape) -> Result<(), String>) {
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
            let identity = Raw::from(identity(tape));
            let id = Raw::of(&7);
            for revision in Revision::ALL.into_iter().filter(|r| row.method.exists(*r)) {
                let added = ResultMeta {
                    identity: &identity,
                    depends_on_answers: tape.flip(),
                    subscription: (row.method == Method::SubscriptionsListen).then_some(&id),
                };
                let result = project::result(object(&made), row, revision.rules(), added);
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
                let mut running =
                    stream::Stream::new(revision.rules(), Some(Raw::of("token")), Some(Level::Debug));
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
            let message = parsed(&stream::change(change, subscription, revision.rules()).unwrap());
            judge(revision, Direction::ToClient, &message, None).unwrap();
        }
    }
}

/// Makes a question of any kind that some revision has.
fn question(tape: &mut Tape) -> (InputRequest, Value) {
    let question = Question::ALL[tape.of(3)];
    let made = tape.object(question.params(), &of_params(definition(question.wire())));
    (InputRequest { question, params: object(&made) }, made)
}

/// Returns whether a client of the revision can be asked this. Other questions are refused before the gate.
pub(crate) fn askable(ask: &InputRequest, revision: Revision) -> bool {
    let all = json!({"roots": {}, "sampling": {"tools": {}, "context": {}}, "elicitation": {"form": {}, "url": {}}});
    let declared = proto::ClientCapabilities::read(object(&all), revision);
    ask.question.exists().contains(revision) && declared.lacks(ask).is_none()
}

#[test]
fn questions_are_valid_in_every_revision() {
    for_all(512, |tape| {
        let (ask, made) = question(tape);
        let identity = Raw::from(identity(tape));
        for revision in Revision::ALL.into_iter().filter(|r| askable(&ask, *r)) {
            if revision.era() == Era::Legacy {
                let params = project::question(&ask, revision.rules());
                let message =
                    json!({"jsonrpc": "2.0", "id": 1, "method": ask.question.wire(), "params": params});
                accepted(revision, Direction::ToClient, &message, None, &made)?;
            } else {
                let asked = project::questions(&[("k".into(), ask.clone())], revision.rules());
                let added = ResultMeta { identity: &identity, depends_on_answers: false, subscription: None };
                let result = project::interim(Some(asked), Some(Raw::of("state")), added);
                let message = json!({"jsonrpc": "2.0", "id": 1, "result": result});
                accepted(revision, Direction::ToClient, &message, Some(Method::ToolsCall.wire()), &made)?;
            }
        }
        Ok(())
    });
}

/// Makes a client's answer to a question, in any form that some revision has.
fn answer(tape: &mut Tape) -> (Question, Value) {
    let question = Question::ALL[tape.of(3)];
    (question, tape.object(question.answer(), &of_type(question.answer().name)))
}

/// Whether a filled in form has a field of several values.
pub(crate) fn gives_several(answer: &Value) -> bool {
    answer["content"].as_object().is_some_and(|content| content.values().any(Value::is_array))
}

#[test]
fn answers_to_upstreams_are_valid_in_every_revision() {
    for_all(256, |tape| {
        let (question, made) = answer(tape);
        // Where a form has no choice of several values, nothing has asked for several.
        let several = question == Question::Elicit && gives_several(&made);
        for revision in question.exists().iter().filter(|r| !several || r.rules().rich_choices) {
            let reply = project::reply(question, Raw::of(&made), revision.rules());
            if revision.era() == Era::Modern {
                let response = project::input_response(Raw::of(&made), revision.rules());
                assert_eq!(response.as_str(), reply.as_str(), "{question:?}");
            }
            let message = json!({"jsonrpc": "2.0", "id": 1, "result": reply});
            accepted(revision, Direction::ToServer, &message, Some(question.wire()), &made)?;
        }
        Ok(())
    });
}

/// Says of itself what it was made with.
struct Made(Arc<Description>);

impl Service for Made {
    fn describe(&self) -> Arc<Description> {
        Arc::clone(&self.0)
    }
    fn call(&self, _: Request) -> BoxFuture<'_, Result<Answer, Rejection>> {
        unreachable!()
    }
    fn listen(&self, _: Filter, _: Arc<Peer>) -> BoxFuture<'_, Result<Listening, Rejection>> {
        unreachable!()
    }

    fn abandon(&self, _: proto::Request) {}
    fn header_params(&self, _: &str) -> std::sync::Arc<[proto::HeaderParam]> {
        std::sync::Arc::new([])
    }
}

#[test]
fn what_a_server_says_of_itself_is_valid_in_every_revision() {
    for_all(128, |tape| {
        let mut capabilities = Capabilities::none();
        for capability in Capability::ALL {
            capabilities = if tape.flip() { capabilities.with(capability) } else { capabilities };
        }
        if tape.flip() {
            capabilities.extensions = object(&json!({"example.org/own": {"a": 1.5}}));
        }
        let identity = Raw::from(identity(tape));
        let instructions = tape.flip().then(|| tape.text());
        let made = json!({"identity": &identity, "capabilities": capabilities.object()});
        let mut description = Description::new(identity, capabilities);
        description.instructions = instructions;
        let service = Arc::new(Made(Arc::new(description)));
        for revision in Revision::ALL {
            let introduction = Introduction { identity: object(&json!({"name": "t", "version": "1"})) };
            let (method, params) = opening(revision, &introduction);
            let served =
                Served { service: service.clone(), revisions: Revisions::ALL, limits: Limits::default() };
            let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            let mut pipe = Pipe::new(Arc::new(served), Principal::local());
            let said = sent(&pipe.receive(read(bytes(&request))));
            accepted(revision, Direction::ToClient, &said[0], Some(method), &made)?;
        }
        Ok(())
    });
}

/// Returns the first request to a server, with its params.
fn opening(revision: Revision, introduction: &Introduction) -> (&'static str, Object) {
    match revision.era() {
        Era::Legacy => (Method::Initialize.wire(), upstream::Session::initialize(revision, introduction)),
        Era::Modern => (Method::Discover.wire(), upstream::Calls::discover(revision, introduction)),
    }
}

#[test]
fn what_is_said_to_upstreams_is_valid_in_every_revision() {
    for_all(128, |tape| {
        let introduction = Introduction { identity: identity(tape) };
        let capabilities = tape.object(&fields::CLIENT_CAPABILITIES, &of_type("ClientCapabilities"));
        let made = json!({"identity": introduction.identity.clone(), "capabilities": capabilities});
        for revision in Revision::ALL {
            let (method, params) = opening(revision, &introduction);
            let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            accepted(revision, Direction::ToServer, &message, None, &made)?;
        }
        let declared = proto::ClientCapabilities::read(object(&capabilities), Revision::LATEST_MODERN);
        let mut peer = (*Peer::own()).clone();
        peer.capabilities = Arc::new(declared);
        peer.log_level = tape.flip().then_some(Level::Info);
        let mut request = Request::own(Method::ToolsCall, object(&json!({"name": "t"})));
        request.peer = Arc::new(peer);
        request.wants_progress = tape.flip();
        let (_, reply) = answer(tape);
        request.answers = tape.flip().then(|| {
            let responses = vec![("k".into(), Ok(Raw::of(&reply)))];
            Arc::new(InputResponses { responses, state: Some(Raw::of("state")) })
        });
        let mut edge = Edge::Modern(upstream::Calls::new(Revision::LATEST_MODERN, introduction));
        let message = parsed(&edge.call(20, &request).message);
        accepted(Revision::LATEST_MODERN, Direction::ToServer, &message, None, &made)
    });
}

/// Members that no row names stay as they were sent, at every depth.
#[test]
fn unknown_fields_pass_untouched() {
    const UNKNOWN: &str = r#"{ "vendor" : 1.0, "vendor\u0041":[ ] }"#;
    let text = r#"{"content":[{"type":"text","text":"t","vendorBlock":UNKNOWN,"annotations":{"vendorHint":UNKNOWN,"priority":1.0,"lastModified":"2025-01-01T00:00:00Z"}},{"type":"vendor","own":UNKNOWN},{"type":"resource","resource":{"uri":"u:1","text":"","vendorPart":UNKNOWN}}],"vendorResult":UNKNOWN,"structuredContent":{"a":UNKNOWN}}"#;
    let text = text.replace("UNKNOWN", UNKNOWN);
    let identity = Raw::from(object(&json!({"name": "t", "version": "1"})));
    for revision in Revision::ALL {
        let result = Raw::parse(text.clone().into(), 64).unwrap().object().unwrap();
        let added = ResultMeta { identity: &identity, depends_on_answers: false, subscription: None };
        let shown = project::result(result, Method::ToolsCall.row(), revision.rules(), added);
        let shown = Raw::from(shown);
        let left = if revision.rules().version_header == spec::VersionHeader::Absent { 5 } else { 6 };
        assert_eq!(shown.as_str().matches(UNKNOWN).count(), left, "{revision}: {}", shown.as_str());
        let ask = InputRequest {
            question: Question::Elicit,
            params: Raw::parse(format!(r#"{{"message":"?","own":{UNKNOWN}}}"#).into(), 64)
                .unwrap()
                .object()
                .unwrap(),
        };
        assert!(
            Raw::from(project::question(&ask, revision.rules())).as_str().contains(UNKNOWN),
            "{revision}"
        );
    }
}

/// An object that needs no change keeps its text, even the white space in it.
#[test]
fn what_needs_no_change_passes_to_the_byte() {
    let text = r#"{"tools":[ {"name" : "t",  "inputSchema":{"type":"object"} } , {"name":"u"} ],"x":[ 1 ]}"#;
    for revision in Revision::ALL {
        let mut tools = Raw::parse(text.into(), 64).unwrap().object().unwrap();
        project::object(&mut tools, Method::ToolsList.row().result, revision);
        assert_eq!(Raw::from(tools).as_str(), text, "{revision}");
    }
}

#[test]
fn a_form_of_choices_is_asked_and_answered_in_a_revision_without_them() {
    let choices = json!([{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}]);
    let ask = InputRequest {
        question: Question::Elicit,
        params: object(&json!({"message": "?", "requestedSchema": {"type": "object", "properties": {
            "one": {"type": "string", "title": "One", "oneOf": choices},
            "some": {"type": "array", "title": "Some", "description": "Which?", "items": {"anyOf": choices}},
            "plain": {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}},
        }}})),
    };
    let rules = Revision::V2025_06_18.rules();
    let shown = serde_json::to_value(project::question(&ask, rules)).unwrap();
    let hint = "Any of these, with commas between them: ";
    assert_eq!(
        shown["requestedSchema"]["properties"],
        json!({
            "one": {"type": "string", "title": "One", "enum": ["r", "b"], "enumNames": ["Red", "Blue"]},
            "some": {"type": "string", "title": "Some", "description": format!("Which?\n{hint}r, b")},
            "plain": {"type": "string", "description": format!("{hint}x, y")},
        })
    );
    let given = json!({"action": "accept", "content": {"one": "r", "some": "r, b", "plain": ""}});
    let restored = project::answer(&ask, Raw::of(&given), rules);
    let wanted = json!({"action": "accept", "content": {"one": "r", "some": ["r", "b"], "plain": []}});
    assert_eq!(serde_json::to_value(restored).unwrap(), wanted);
    for question in [Question::Elicit, Question::ListRoots] {
        let other = InputRequest { question, params: ask.params.clone() };
        let untouched = project::answer(&other, Raw::literal(r#"{ "action" : "decline" }"#), rules);
        assert_eq!(untouched.as_str(), r#"{ "action" : "decline" }"#);
    }
}

#[test]
fn what_one_message_cannot_hold_is_said_in_several_or_in_words() {
    let blocks =
        json!([{"type": "text", "text": "a"}, {"type": "tool_use", "id": "1", "name": "n", "input": {}}]);
    let ask = InputRequest {
        question: Question::Sample,
        params: object(&json!({"messages": [{"role": "user", "content": blocks}], "maxTokens": 1})),
    };
    let text = |text: &str| json!({"type": "text", "text": text});
    for revision in [Revision::V2024_11_05, Revision::V2025_06_18] {
        let shown = serde_json::to_value(project::question(&ask, revision.rules())).unwrap();
        let messages = json!([
            {"role": "user", "content": text("a")},
            {"role": "user", "content": text("[tool call n: {}]")},
        ]);
        assert_eq!(shown["messages"], messages, "{revision}");
        let given = Raw::of(&json!({"role": "assistant", "model": "m", "content": blocks}));
        let reply = project::reply(Question::Sample, given, revision.rules());
        let reply = serde_json::to_value(reply).unwrap();
        assert_eq!(reply["content"], text("a\n[tool call n: {}]"), "{revision}");
    }
    let identity = Raw::from(object(&json!({"name": "t", "version": "1"})));
    let added = ResultMeta { identity: &identity, depends_on_answers: false, subscription: None };
    let result = object(&json!({"content": [], "structuredContent": [1.5]}));
    let shown = project::result(result, Method::ToolsCall.row(), Revision::V2025_11_25.rules(), added);
    assert_eq!(serde_json::to_value(shown).unwrap(), json!({"content": [text("[1.5]")]}));
}

/// A client whose revision has elicitation ids gets an id also from a server whose revision has none.
#[test]
fn a_url_is_its_own_name() {
    let asked = json!({"mode": "url", "message": "?", "url": "https://example.org/1"});
    let ask = InputRequest { question: Question::Elicit, params: object(&asked) };
    let shown = |revision: Revision| serde_json::to_value(project::question(&ask, revision.rules())).unwrap();
    assert_eq!(shown(Revision::V2025_11_25)["elicitationId"], "https://example.org/1");
    assert_eq!(shown(Revision::V2026_07_28), asked);
}

#[test]
fn requests_that_are_passed_on_are_valid_in_every_revision() {
    let introduction = || Introduction { identity: object(&json!({"name": "t", "version": "1"})) };
    for row in Method::rows() {
        let places = of_params(definition(row.wire));
        for_all(64, |tape| {
            let made = tape.object(row.params, &places);
            let mut request = Request::own(row.method.clone(), object(&made));
            request.wants_progress = tape.flip();
            for revision in Revision::ALL.into_iter().filter(|r| row.method.exists(*r)) {
                let mut edge = match revision.era() {
                    Era::Modern => Edge::Modern(upstream::Calls::new(revision, introduction())),
                    Era::Legacy => {
                        let info = json!({"name": "t", "version": "1"});
                        let opened = json!({"protocolVersion": revision.as_str(), "capabilities": {}, "serverInfo": info});
                        Edge::Legacy(upstream::Session::open(Ok(Raw::of(&opened))).unwrap().0)
                    }
                };
                let message = parsed(&edge.call(20, &request).message);
                accepted(revision, Direction::ToServer, &message, None, &made)?;
            }
            Ok(())
        });
    }
}
