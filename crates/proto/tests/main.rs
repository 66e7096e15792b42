//! Tests of the edges as state machines, without sockets: each checks the outputs of some inputs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod http;
mod lacking;
mod pair;
mod referee;
mod repair;
mod sessions;
mod values;

use std::sync::Arc;

use bytes::Bytes;
use proto::downstream::{Output, Pipe, Served};
use proto::upstream::{self, Edge, Introduction};
use proto::wire::{self, Limits};
use proto::{
    Answer, BoxFuture, Capabilities, Change, ClientCapabilities, Description, Event, Filter, InputRequest,
    InputRequired, InputResponses, Level, Listening, Object, Peer, Principal, Raw, Rejection, Request,
    Service, project,
};
use serde_json::{Value, json};
use spec::{Capability, Method, Question, Revision, Revisions};

/// A service that is never called. The machines only ask what it can do.
struct Stub;

impl Service for Stub {
    fn describe(&self) -> Arc<Description> {
        let identity = object(&json!({"name": "stub", "version": "1", "title": "Stub"}));
        let capabilities = Capability::ALL.into_iter().fold(Capabilities::none(), Capabilities::with);
        Arc::new(Description::new(identity, capabilities))
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

fn read(bytes: Bytes) -> Result<wire::Message, wire::Unreadable> {
    wire::read(bytes, &Limits::default())
}

fn object(value: &Value) -> Object {
    Object::of(value)
}

fn bytes(value: &Value) -> Bytes {
    value.to_string().into()
}

fn parsed(bytes: &Bytes) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

fn pipe() -> Pipe {
    let served = Served {
        service: Arc::new(Stub),
        revisions: Revisions::ALL,
        limits: Limits::default().calls(3).watched(2).under_way(10_000),
    };
    Pipe::new(Arc::new(served), Principal::local())
}

/// Returns a pipe with an open session of this revision.
fn session(revision: &str, capabilities: &Value) -> Pipe {
    let mut pipe = pipe();
    let params = json!({"protocolVersion": revision, "capabilities": capabilities, "clientInfo": {"name": "t", "version": "1"}});
    pipe.receive(read(bytes(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}))));
    let outputs =
        pipe.receive(read(bytes(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))));
    assert!(matches!(outputs[..], [Output::Listen(0, _, _)]), "{outputs:?}");
    pipe
}

fn call(pipe: &mut Pipe, id: u64, meta: &Value) -> Vec<Output> {
    let params = json!({"name": "x", "arguments": {}, "_meta": meta});
    pipe.receive(read(bytes(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))))
}

fn started(outputs: &[Output]) -> (u64, Request) {
    match outputs {
        [Output::Start(key, request)] => (*key, (**request).clone()),
        other => panic!("expected one call: {other:?}"),
    }
}

fn sent(outputs: &[Output]) -> Vec<Value> {
    let message = |output: &Output| match output {
        Output::Reply(b) | Output::Send(_, b) | Output::Push(b) => Some(parsed(b)),
        _ => None,
    };
    outputs.iter().filter_map(message).collect()
}

fn ask(question: Question, params: &Value) -> InputRequest {
    InputRequest { question, params: object(params) }
}

fn form() -> InputRequest {
    ask(
        Question::Elicit,
        &json!({"mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}}}),
    )
}

fn interim(questions: Vec<(&'static str, InputRequest)>) -> Result<Answer, Rejection> {
    let questions = questions.into_iter().map(|(key, ask)| (key.into(), ask)).collect();
    Ok(Answer::InputRequired(InputRequired { questions, state: Some(Raw::from("state")) }))
}

#[test]
fn a_session_asks_on_the_wire_and_calls_again_with_all_answers() {
    let mut pipe = session("2025-06-18", &json!({"elicitation": {}, "roots": {}}));
    let (key, request) = started(&call(&mut pipe, 7, &json!({})));
    assert!(request.answers.is_none());
    let asked =
        sent(&pipe.answered(key, interim(vec![("a", form()), ("b", ask(Question::ListRoots, &json!({})))])));
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[0]["method"], "elicitation/create");
    assert!(asked[0]["params"].get("mode").is_none(), "2025-06-18 knows no modes");
    assert_eq!(asked[1]["method"], "roots/list");
    let answer =
        |of: &Value, result: Value| bytes(&json!({"jsonrpc": "2.0", "id": of["id"], "result": result}));
    assert!(
        pipe.receive(read(answer(&asked[1], json!({"roots": []})))).is_empty(),
        "one answer is still missing"
    );
    assert!(
        pipe.receive(read(answer(&json!({"id": 99}), json!({})))).is_empty(),
        "an answer to nothing is ignored"
    );
    let first = request;
    let (again, request) = started(&pipe.receive(read(answer(&asked[0], json!({"action": "decline"})))));
    assert_eq!(again, key);
    assert!(Arc::ptr_eq(&first.params, &request.params), "a round copies no params");
    let answers = request.answers.unwrap();
    assert_eq!(answers.state.as_ref().unwrap().string().unwrap(), "state");
    let keys: Vec<_> = answers.responses.iter().map(|(key, _)| &**key).collect();
    assert_eq!(keys, ["b", "a"]);
    let done = sent(&pipe.answered(key, Ok(Answer::Complete(object(&json!({"content": []}))))));
    assert_eq!(done, [json!({"jsonrpc": "2.0", "id": 7, "result": {"content": []}})]);
}

#[test]
fn a_cancelled_call_takes_its_questions_back_and_is_not_answered() {
    let mut pipe = session("2025-11-25", &json!({"elicitation": {}}));
    let (key, _) = started(&call(&mut pipe, 1, &json!({})));
    let asked = sent(&pipe.answered(key, interim(vec![("a", form())])));
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let outputs = pipe.receive(read(bytes(&cancelled)));
    assert!(outputs.iter().any(|o| matches!(o, Output::Drop(k) if *k == key)));
    assert_eq!(sent(&outputs)[0]["params"]["requestId"], asked[0]["id"]);
    assert!(pipe.answered(key, Ok(Answer::Complete(Object::new()))).is_empty());
    assert!(pipe.event(key, Event::Log(Level::Error, Object::new())).is_empty());
    started(&call(&mut pipe, 1, &json!({})));
}

#[test]
fn what_the_client_did_not_declare_is_not_asked() {
    for (revision, capabilities, ask, asked) in [
        ("2025-06-18", json!({}), form(), false),
        ("2025-06-18", json!({"elicitation": {}}), form(), true),
        ("2025-03-26", json!({"elicitation": {}}), form(), false),
        ("2025-11-25", json!({"elicitation": {"url": {}}}), form(), false),
        (
            "2025-11-25",
            json!({"elicitation": {}}),
            ask(Question::Elicit, &json!({"mode": "url", "url": "x"})),
            false,
        ),
        ("2025-11-25", json!({"sampling": {}}), ask(Question::Sample, &json!({"tools": []})), false),
        (
            "2025-11-25",
            json!({"sampling": {"tools": {}}}),
            ask(Question::Sample, &json!({"tools": []})),
            true,
        ),
    ] {
        let mut pipe = session(revision, &capabilities);
        let (key, _) = started(&call(&mut pipe, 1, &json!({})));
        let sent = sent(&pipe.answered(key, interim(vec![("a", ask)])));
        assert_eq!(sent[0].get("method").is_some(), asked, "{revision} {capabilities} {sent:?}");
    }
}

#[test]
fn ids_under_way_are_not_taken_twice_and_their_number_is_limited() {
    let mut pipe = pipe();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let (key, _) = started(&call(&mut pipe, 1, &meta));
    assert_eq!(sent(&call(&mut pipe, 1, &meta))[0]["error"]["code"], -32600);
    started(&call(&mut pipe, 2, &meta));
    started(&call(&mut pipe, 3, &meta));
    assert_eq!(sent(&call(&mut pipe, 4, &meta))[0]["error"]["code"], -32603);
    pipe.answered(key, Ok(Answer::Complete(Object::new())));
    started(&call(&mut pipe, 1, &meta));
}

#[test]
fn a_subscription_tells_until_it_is_ended() {
    let mut pipe = session("2025-06-18", &json!({}));
    let request = |id: u64, method: &str| {
        bytes(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"uri": "u"}}))
    };
    let outputs = pipe.receive(read(request(1, "resources/subscribe")));
    let [Output::Listen(key, filter, _)] = &outputs[..] else { panic!("{outputs:?}") };
    assert_eq!(filter.uris, ["u"]);
    let change = Change::Resource("u".into());
    assert_eq!(sent(&pipe.listening(*key, Ok(filter.clone())))[0]["result"], json!({}));
    assert_eq!(sent(&pipe.changed(*key, &change))[0]["params"], json!({"uri": "u"}));
    let outputs = pipe.receive(read(request(2, "resources/unsubscribe")));
    assert!(outputs.iter().any(|o| matches!(o, Output::Drop(k) if k == key)));
    assert!(pipe.changed(*key, &change).is_empty());
}

fn peer(capabilities: &Value) -> Arc<Peer> {
    let mut peer = (*Peer::own()).clone();
    peer.capabilities = Arc::new(ClientCapabilities::read(object(capabilities), Revision::LATEST_MODERN));
    Arc::new(peer)
}

fn tool_call(peer: Arc<Peer>) -> Request {
    Request::new(Method::ToolsCall, object(&json!({"name": "x"})), peer)
}

fn introduction() -> Introduction {
    Introduction { identity: object(&json!({"name": "us", "version": "1"})) }
}

fn from_upstream(edge: &mut Edge, message: &Value) -> Vec<upstream::Output> {
    edge.receive(wire::read(bytes(message), &Limits::default()).unwrap(), None)
}

fn modern_edge() -> Edge {
    Edge::Modern(upstream::Calls::new(Revision::LATEST_MODERN, introduction()))
}

fn legacy_edge() -> Edge {
    let answer = json!({"protocolVersion": "2025-11-25", "capabilities": {"logging": {}}, "serverInfo": {"name": "s", "version": "1"}});
    Edge::Legacy(upstream::Session::open(Ok(Raw::of(&answer))).unwrap().0)
}

#[test]
fn a_modern_upstream_gets_the_peer_in_each_request_and_its_own_state_back() {
    let mut edge = modern_edge();
    let mut request = tool_call(peer(
        &json!({"sampling": {}, "extensions": {"a/b": {}, "io.modelcontextprotocol/tasks": {}}}),
    ));
    request.answers = Some(Arc::new(InputResponses {
        responses: vec![
            ("k".into(), Ok(Raw::literal("{\"a\":1.0}"))),
            ("bad".into(), Err(Raw::literal("{}"))),
        ],
        state: Some(Raw::literal("\"s\\u0041\"")),
    }));
    let outgoing = edge.call(20, &request);
    let text = String::from_utf8(outgoing.message.to_vec()).unwrap();
    assert!(text.contains(r#""requestState":"s\u0041""#), "to the byte: {text}");
    assert!(text.contains(r#""inputResponses":{"k":{"a":1.0}}"#), "{text}");
    let meta = &parsed(&outgoing.message)["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert_eq!(
        meta["io.modelcontextprotocol/clientCapabilities"],
        json!({"sampling": {}, "extensions": {"a/b": {}}})
    );
    assert!(meta.get("progressToken").is_none() && meta.get("io.modelcontextprotocol/logLevel").is_none());
}

#[test]
fn result_types_of_a_modern_upstream_are_read_strictly() {
    for (result, method, fine) in [
        (json!({"content": []}), Method::ToolsCall, true),
        (json!({"resultType": "complete", "content": []}), Method::ToolsCall, true),
        (json!({"resultType": "input_required", "requestState": "s"}), Method::ToolsCall, true),
        (json!({"resultType": "input_required", "requestState": "s"}), Method::ToolsList, false),
        (json!({"resultType": "task"}), Method::ToolsCall, false),
        (json!({"resultType": 1}), Method::ToolsCall, false),
        (json!([]), Method::ToolsCall, false),
    ] {
        let mut edge = modern_edge();
        let mut request = tool_call(Peer::own());
        request.method = method.clone();
        edge.call(20, &request);
        let outputs = from_upstream(&mut edge, &json!({"jsonrpc": "2.0", "id": 20, "result": result}));
        let [upstream::Output::Answered(20, answer)] = &outputs[..] else { panic!("{outputs:?}") };
        assert_eq!(answer.is_ok(), fine, "{method:?} {result} {answer:?}");
    }
}

#[test]
fn a_legacy_upstreams_question_is_the_one_calls_that_can_be_asked() {
    let question = json!({"jsonrpc": "2.0", "id": "q", "method": "roots/list"});
    let mut edge = legacy_edge();
    let refused = |outputs: &[upstream::Output]| match outputs {
        [upstream::Output::Send(bytes)] => parsed(bytes)["error"]["code"].clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(&from_upstream(&mut edge, &question)), -32600, "nobody is there");
    edge.call(20, &tool_call(peer(&json!({}))));
    assert_eq!(refused(&from_upstream(&mut edge, &question)), -32600, "it declared nothing");
    edge.cancel(20, "");
    edge.call(21, &tool_call(peer(&json!({"roots": {}}))));
    let outputs = from_upstream(&mut edge, &question);
    let [upstream::Output::InputRequired(21, questions)] = &outputs[..] else { panic!("{outputs:?}") };
    let key = questions[0].0.clone();
    let answers = InputResponses { responses: vec![(key, Ok(Raw::literal(r#"{"roots":[]}"#)))], state: None };
    let sent = edge.answer(21, &answers).unwrap();
    let [upstream::Output::Send(bytes)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(parsed(bytes), json!({"jsonrpc": "2.0", "id": "q", "result": {"roots": []}}));
    edge.call(22, &tool_call(peer(&json!({"roots": {}}))));
    assert_eq!(refused(&from_upstream(&mut edge, &question)), -32600, "two could be meant");
}

#[test]
fn a_legacy_session_has_the_level_of_the_most_curious_client() {
    let mut edge = legacy_edge();
    let with = |level| {
        let mut peer = (*Peer::own()).clone();
        peer.log_level = level;
        tool_call(Arc::new(peer))
    };
    assert!(edge.call(20, &with(None)).before.is_empty());
    assert_eq!(parsed(&edge.call(21, &with(Some(Level::Info))).before[0])["params"]["level"], "info");
    assert!(edge.call(22, &with(Some(Level::Error))).before.is_empty());
    assert_eq!(parsed(&edge.call(23, &with(Some(Level::Debug))).before[0])["params"]["level"], "debug");
}

#[test]
fn content_that_a_revision_lacks_comes_in_its_nearest_form() {
    let blocks = json!({"content": [
        {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "u:1", "name": "one", "title": "One"},
        {"type": "text", "text": "t", "_meta": {"x/y": 1}},
        {"type": "from the future", "n": 1.0},
    ], "structuredContent": {"a": 1}});
    let shown = |revision: &str| {
        let mut result = object(&blocks);
        project::object(&mut result, Method::ToolsCall.row().result, Revision::parse(revision).unwrap());
        result
    };
    let old = serde_json::to_value(shown("2024-11-05")).unwrap();
    assert_eq!(old["content"][0], json!({"type": "text", "text": "[audio audio/wav, about 3 bytes]"}));
    assert_eq!(old["content"][1], json!({"type": "text", "text": "[resource One: u:1]"}));
    assert_eq!(old["content"][2], json!({"type": "text", "text": "t"}));
    assert_eq!(old["content"][3], json!({"type": "from the future", "n": 1.0}));
    assert!(old.get("structuredContent").is_none());
    let newer = serde_json::to_value(shown("2025-03-26")).unwrap();
    assert_eq!(newer["content"][0]["type"], "audio");
    assert_eq!(serde_json::to_value(shown("2026-07-28")).unwrap(), blocks);
}

fn subscribe(pipe: &mut Pipe, id: u64, uri: &str) -> Vec<Output> {
    let params = json!({"uri": uri});
    pipe.receive(read(bytes(
        &json!({"jsonrpc": "2.0", "id": id, "method": "resources/subscribe", "params": params}),
    )))
}

#[test]
fn a_session_watches_so_many_resources_and_one_that_is_given_up_makes_room() {
    let mut pipe = session("2025-06-18", &json!({}));
    for (id, uri) in [(1, "a:1"), (2, "a:2")] {
        let outputs = subscribe(&mut pipe, id, uri);
        let [Output::Listen(key, filter, _)] = &outputs[..] else { panic!("{outputs:?}") };
        assert!(!sent(&pipe.listening(*key, Ok(filter.clone()))).is_empty());
    }
    let refused = sent(&subscribe(&mut pipe, 3, "a:3"));
    assert_eq!(refused[0]["error"]["code"], -32602, "{refused:?}");
    assert!(refused[0]["error"]["message"].as_str().unwrap().contains("2 resources"), "{refused:?}");
    assert_eq!(sent(&subscribe(&mut pipe, 4, "a:1"))[0]["result"], json!({}), "it is watched already");
    let long = sent(&subscribe(&mut pipe, 5, &"a".repeat(9000)));
    assert_eq!(long[0]["error"]["code"], -32602, "{long:?}");
    let params = json!({"uri": "a:1"});
    let given_up = json!({"jsonrpc": "2.0", "id": 6, "method": "resources/unsubscribe", "params": params});
    pipe.receive(read(bytes(&given_up)));
    assert!(matches!(subscribe(&mut pipe, 7, "a:3")[..], [Output::Listen(..)]));
}

#[test]
fn the_requests_under_way_are_so_many_bytes_together_and_one_alone_is_of_any_length() {
    let stamp = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    for (mut pipe, mut meta) in [(session("2025-06-18", &json!({})), json!({})), (pipe(), stamp)] {
        meta["vendor/long"] = "x".repeat(20_000).into();
        let (key, _) = started(&call(&mut pipe, 1, &meta));
        let refused = sent(&call(&mut pipe, 2, &meta));
        assert_eq!(refused[0]["error"]["code"], -32603, "{refused:?}");
        assert!(
            refused[0]["error"]["message"].as_str().unwrap().contains("10000 are the limit"),
            "{refused:?}"
        );
        pipe.answered(key, Ok(Answer::Complete(Object::new())));
        started(&call(&mut pipe, 3, &meta));
    }
}

#[test]
fn what_a_client_says_of_itself_is_kept_and_so_is_not_too_long() {
    let open = |info: usize| {
        let mut pipe = pipe();
        let info = json!({"name": "t".repeat(info), "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
        sent(&pipe.receive(read(bytes(
            &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}),
        ))))
    };
    assert!(open(60_000)[0].get("result").is_some());
    assert_eq!(open(70_000)[0]["error"]["code"], -32602);
}

/// A part of a message is not repeated for each other part: a peer decides how many there are of both.
#[test]
fn a_message_of_many_blocks_weighs_no_more_when_it_is_split() {
    let blocks: Vec<Value> = (0..1000).map(|n| json!({"type": "text", "text": n.to_string()})).collect();
    let mut message = json!({"role": "user", "content": blocks});
    for n in 0..1000 {
        message[format!("x{n}")] = json!(n);
    }
    let sampled = ask(Question::Sample, &json!({"messages": [message], "maxTokens": 1}));
    let sent = Raw::from(sampled.params.clone()).as_str().len();
    let params = project::question(&sampled, Revision::parse("2025-06-18").unwrap().rules());
    let shown = Raw::from(params.clone()).as_str().len();
    assert!(shown < 3 * sent, "{sent} became {shown}");
    let messages = params.get("messages").unwrap().array().unwrap();
    assert_eq!(messages.len(), 1000);
    assert!(messages.iter().all(|m| m.object().unwrap().string("role").as_deref() == Some("user")));
    assert_eq!(messages[999].object().unwrap().get("content").unwrap().as_str(), blocks[999].to_string());
}
