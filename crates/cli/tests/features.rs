//! What servers offer: questions in every round, cache hints, listens, tools, resources.

use std::sync::Arc;
use std::time::Duration;

use dateline::{Cx, Http, Level, Limits, Object, Raw, Rejection, Revisions, Server, Tool, ToolResult};
use dateline::{Resource, ResourceContents, ResourceTemplate};
use proto::edge::Served;
use proto::{
    Answer, Ask, BoxFuture, Capabilities, Description, Event, Filter, Interim, Listening, Peer, Request,
};
use serde_json::{Value, json};
use spec::{Capability, Method, Question};
use testkit::{Arrival, Client, Exchange, LEGACY, MODERN, Reply, WIRES, Wire, header};
use tokio::net::TcpListener;

use crate::msg::{client, everywhere, neighbour, response, sessions, speaking};
use crate::{legacy, modern};

/// A client of a server in this process. On a pipe, a shell copies between its standard streams and a socket.
pub(crate) async fn local(wire: Wire, service: impl proto::Service) -> Client {
    if wire == Wire::Http {
        let bound = Http::new(service).bind("127.0.0.1:0").await.unwrap();
        let client = Client::connect(&bound.url());
        tokio::spawn(bound.serve());
        return client;
    }
    let served = Served { service: Arc::new(service), revisions: Revisions::ALL, limits: Limits::default() };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    tokio::spawn(async move {
        let (reader, writer) = listener.accept().await.unwrap().0.into_split();
        let _ = transport::serve_pipe(reader, writer, Arc::new(served), transport::CancellationToken::new())
            .await;
    });
    Client::pipe("bash", &["-c", "exec 3<>/dev/tcp/127.0.0.1/$0; cat <&3 & exec cat >&3", &port])
}

/// A service that is no [`Server`]: the edges alone see to what goes out.
pub(crate) struct Custom {
    description: Arc<Description>,
    answer: fn(Request) -> BoxFuture<'static, Result<Answer, Rejection>>,
}

impl Custom {
    fn new(
        capabilities: &[Capability],
        answer: fn(Request) -> BoxFuture<'static, Result<Answer, Rejection>>,
    ) -> Custom {
        let description = Description {
            identity: Object::new().with("name", "custom").with("version", "1"),
            capabilities: capabilities.iter().fold(Capabilities::none(), |all, one| all.with(*one)),
            instructions: None,
            hint: dateline::CacheHint::default(),
        };
        Custom { description: Arc::new(description), answer }
    }
}

impl proto::Service for Custom {
    fn describe(&self) -> Arc<Description> {
        Arc::clone(&self.description)
    }

    fn call(&self, request: Request) -> BoxFuture<'_, Result<Answer, Rejection>> {
        (self.answer)(request)
    }

    fn listen(&self, _: Filter, _: Arc<Peer>) -> BoxFuture<'_, Result<Listening, Rejection>> {
        Box::pin(async { Err(Rejection::Internal("nothing can be listened to".into())) })
    }
}

/// A service that logs at every level, whether or not it declares that it logs.
pub(crate) fn logging(declared: bool) -> Custom {
    let capabilities: &[Capability] =
        if declared { &[Capability::Tools, Capability::Logging] } else { &[Capability::Tools] };
    Custom::new(capabilities, |request| {
        Box::pin(async move {
            for level in Level::ALL {
                let params = Object::new().with("level", level.as_str()).with("data", "it happened");
                request.events.send(Event::Log(level, params)).await;
            }
            Ok(Answer::Complete(done()))
        })
    })
}

/// A service whose progress wavers.
pub(crate) fn wavering() -> Custom {
    Custom::new(&[Capability::Tools], |request| {
        Box::pin(async move {
            for progress in [1.0, 1.0, 0.5, 1.5, 2.0, 2.0, -3.0, 10.0, 9.0] {
                request
                    .events
                    .send(Event::Progress(Object::new().with("progress", Raw::of(&progress))))
                    .await;
            }
            Ok(Answer::Complete(done()))
        })
    })
}

fn done() -> Object {
    Object::of(&json!({"content": [{"type": "text", "text": "done"}]}))
}

/// A service that asks before everything, whatever it is told; the tool that is called says what for. Once it has
/// an answer its results may be kept by everyone, if one believes what it says.
fn asking() -> Custom {
    let capabilities =
        [Capability::Tools, Capability::Prompts, Capability::Resources, Capability::Completions];
    Custom::new(&capabilities, |request| {
        Box::pin(async move {
            if request.answers.is_none() {
                let name = request.params.string("name").unwrap_or_default();
                return Ok(Answer::InputRequired(interim(&name)));
            }
            let hints = json!({"ttlMs": 60_000, "cacheScope": "public"});
            let (name, content) = match request.method {
                Method::ResourcesRead => ("contents", json!([{"uri": "demo://asks", "text": "told"}])),
                Method::PromptsGet => ("messages", json!([])),
                _ => ("content", json!([])),
            };
            Ok(Answer::Complete(Object::of(&hints).with(name, Raw::of(&content))))
        })
    })
}

/// What [`asking`] asks for.
fn interim(kind: &str) -> Interim {
    let text = json!([{"role": "user", "content": {"type": "text", "text": "Hi"}}]);
    let tools = json!([{"name": "t", "inputSchema": {"type": "object"}}]);
    let (question, params) = match kind {
        "nothing" => return Interim::default(),
        "state" => return Interim { questions: Vec::new(), state: Some(Raw::from("s")) },
        "url" => {
            let params = json!({"mode": "url", "message": "Log in", "url": "https://x.example", "elicitationId": "e1"});
            (Question::Elicit, params)
        }
        "sampling" => (Question::Sample, json!({"messages": text, "maxTokens": 1})),
        "sampling tools" => (Question::Sample, json!({"messages": text, "maxTokens": 1, "tools": tools})),
        "tool choice" => {
            (Question::Sample, json!({"messages": text, "maxTokens": 1, "toolChoice": {"mode": "none"}}))
        }
        "context" => {
            (Question::Sample, json!({"messages": text, "maxTokens": 1, "includeContext": "allServers"}))
        }
        "roots" => (Question::ListRoots, json!({})),
        _ => (
            Question::Elicit,
            json!({"mode": "form", "message": "Name?", "requestedSchema": form("name", "string")}),
        ),
    };
    Interim { questions: vec![("q".into(), Ask { question, params: Object::of(&params) })], state: None }
}

fn form(field: &str, kind: &str) -> Value {
    json!({"type": "object", "properties": {field: {"type": kind}}, "required": [field]})
}

/// The demo's tools that ask.
const ASKING: [&str; 10] = [
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_tampered_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_capabilities",
];

/// Its requests that ask: all of those tools, and a prompt.
fn asking_requests() -> Vec<(&'static str, Value)> {
    let tools = ASKING.map(|name| ("tools/call", json!({"name": name, "arguments": {}})));
    tools.into_iter().chain([("prompts/get", json!({"name": "test_input_required_result_prompt"}))]).collect()
}

/// All that a client can declare.
fn everything() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}, "context": {}}, "roots": {}})
}

/// What a client's user, model or editor answers to a question.
fn answer(method: &str, params: &Value) -> Value {
    match method {
        "elicitation/create" => {
            let fields = params["requestedSchema"]["properties"].as_object().unwrap();
            let filled = fields.iter().map(|(name, schema)| {
                let value =
                    if schema["type"] == "boolean" { json!(true) } else { json!(format!("my {name}")) };
                (name.clone(), value)
            });
            json!({"action": "accept", "content": filled.collect::<serde_json::Map<_, _>>()})
        }
        "sampling/createMessage" => {
            json!({"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m", "stopReason": "endTurn"})
        }
        "roots/list" => json!({"roots": [{"uri": "file:///work", "name": "work"}]}),
        other => panic!("{other} is no question"),
    }
}

/// Answers to everything that an interim result asks.
fn answers(interim: &Value) -> Value {
    let asked = interim["inputRequests"].as_object().unwrap();
    let answered =
        asked.iter().map(|(key, ask)| (key.clone(), answer(ask["method"].as_str().unwrap(), &ask["params"])));
    answered.collect::<serde_json::Map<_, _>>().into()
}

/// The params of the next round.
fn retry(params: &Value, interim: &Value) -> Value {
    let mut params = params.clone();
    params["inputResponses"] = answers(interim);
    if let Some(state) = interim.get("requestState") {
        params["requestState"] = state.clone();
    }
    params
}

/// Whether a client that declared this may be asked that.
fn may_be_asked(declared: &Value, ask: &Value) -> bool {
    let has =
        |path: &[&str]| path.iter().try_fold(declared, |at, name| at.get(name)).is_some_and(Value::is_object);
    let params = &ask["params"];
    match ask["method"].as_str() {
        Some("roots/list") => has(&["roots"]),
        Some("sampling/createMessage") => {
            let tools = params.get("tools").is_some() || params.get("toolChoice").is_some();
            let context = params.get("includeContext").is_some_and(|context| context != "none");
            has(&["sampling"])
                && (!tools || has(&["sampling", "tools"]))
                && (!context || has(&["sampling", "context"]))
        }
        Some("elicitation/create") if params["mode"] == "url" => has(&["elicitation", "url"]),
        Some("elicitation/create") => {
            has(&["elicitation", "form"]) || has(&["elicitation"]) && !has(&["elicitation", "url"])
        }
        _ => false,
    }
}

/// Asserts the form of an interim result, and that a client that declared this may be asked all of it.
fn check_interim(result: &Value, declared: &Value, what: &str) {
    assert_eq!(result["resultType"], "input_required", "{what}: {result}");
    for member in result.as_object().unwrap().keys() {
        let known = ["resultType", "inputRequests", "requestState", "_meta"].contains(&member.as_str());
        assert!(known, "{what}: no content, no cache hints: {result}");
    }
    assert!(
        result.get("inputRequests").is_some() || result.get("requestState").is_some(),
        "{what}: {result}"
    );
    assert!(result.get("requestState").is_none_or(Value::is_string), "{what}: {result}");
    let asked = result
        .get("inputRequests")
        .map(|asked| asked.as_object().expect("a map").clone())
        .unwrap_or_default();
    for ask in asked.values() {
        let members: Vec<&str> = ask.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(members, ["method", "params"], "{what}: no id, no jsonrpc: {ask}");
        assert!(ask["params"].get("elicitationId").is_none(), "{what}: {ask}");
        assert!(may_be_asked(declared, ask), "{what}: {declared} does not allow {ask}");
    }
}

fn is_interim(reply: &Reply) -> bool {
    reply.message["result"]["resultType"] == "input_required"
}

#[tokio::test]
async fn mrtr_01_only_calls_prompts_and_reads_are_answered_by_questions() {
    for wire in WIRES {
        // The demo asks in two of them. No other method does, also if it is given answers and a state.
        let mut client = modern(wire).await;
        client.capabilities = everything();
        for (method, params) in asking_requests() {
            assert!(is_interim(&client.request(method, params.clone()).await), "{wire:?} {method} {params}");
        }
        let reference = json!({"type": "ref/prompt", "name": "haiku"});
        let complete = json!({"ref": reference, "argument": {"name": "topic", "value": "r"}});
        for (method, mut params) in [
            ("server/discover", json!({})),
            ("tools/list", json!({})),
            ("prompts/list", json!({})),
            ("resources/list", json!({})),
            ("resources/templates/list", json!({})),
            ("completion/complete", complete.clone()),
        ] {
            params["inputResponses"] = json!({"q": {"action": "accept", "content": {}}});
            params["requestState"] = json!("state");
            let reply = client.request(method, params).await;
            assert_eq!(reply.result()["resultType"], "complete", "{wire:?} {method}");
        }
        // A service that asks before everything is let through in three of them.
        let mut client = local(wire, asking()).await;
        client.capabilities = everything();
        for (method, params, may_ask) in [
            ("tools/call", json!({"name": "form"}), true),
            ("prompts/get", json!({"name": "form"}), true),
            ("resources/read", json!({"uri": "demo://asks"}), true),
            ("tools/list", json!({}), false),
            ("prompts/list", json!({}), false),
            ("resources/list", json!({}), false),
            ("resources/templates/list", json!({}), false),
            ("completion/complete", complete, false),
        ] {
            let reply = client.request(method, params).await;
            if may_ask {
                check_interim(reply.result(), &client.capabilities, method);
                assert!(reply.status().is_none_or(|status| status == 200));
            } else {
                assert_eq!(reply.code(), -32603, "{wire:?} {method}");
            }
        }
    }
}

#[tokio::test]
async fn mrtr_02_only_what_this_very_request_declared_is_asked_in_every_round() {
    let declarations = [
        json!({}),
        json!({"elicitation": {}}),
        json!({"elicitation": {"form": {}}}),
        json!({"elicitation": {"url": {}}}),
        json!({"sampling": {}}),
        json!({"sampling": {"tools": {}, "context": {}}}),
        json!({"roots": {"listChanged": true}}),
        json!({"elicitation": {"form": {}}, "roots": {}}),
        json!({"elicitation": null, "sampling": true, "roots": "yes", "extensions": {"x.example/y": {}}}),
        everything(),
    ];
    for wire in WIRES {
        let mut client = modern(wire).await;
        let (mut first_rounds, mut later_rounds) = (0, 0);
        for (method, params) in asking_requests() {
            for first in &declarations {
                for second in &declarations {
                    client.capabilities = first.clone();
                    let mut sent = params.clone();
                    for round in 0..5 {
                        let reply = client.request(method, sent.clone()).await;
                        let what = format!("{wire:?} {sent} round {round}");
                        if !is_interim(&reply) {
                            let complete = reply.message["result"]["resultType"] == "complete";
                            assert!(complete || reply.code() == -32021, "{what}: {}", reply.message);
                            break;
                        }
                        check_interim(reply.result(), &client.capabilities, &what);
                        *if round == 0 { &mut first_rounds } else { &mut later_rounds } += 1;
                        sent = retry(&params, reply.result());
                        client.capabilities = second.clone();
                        assert!(round < 4, "{what}: it comes to an end");
                    }
                }
            }
        }
        assert!(first_rounds > 100 && later_rounds > 20, "{wire:?}: {first_rounds}, {later_rounds}");
        // Kinds of questions that the demo does not have.
        let mut client = local(wire, asking()).await;
        for kind in ["form", "url", "sampling", "sampling tools", "tool choice", "context", "roots"] {
            let question = interim(kind).questions.remove(0).1;
            let ask = json!({"method": question.question.wire(), "params": Raw::from(question.params).read::<Value>().unwrap()});
            for declared in &declarations {
                client.capabilities = declared.clone();
                let reply = client.call(kind, json!({})).await;
                let what = format!("{wire:?} {kind} {declared}");
                if may_be_asked(declared, &ask) {
                    check_interim(reply.result(), declared, &what);
                } else {
                    assert_eq!(reply.code(), -32021, "{what}: {}", reply.message);
                }
            }
        }
    }
}

#[tokio::test]
async fn mrtr_03_questions_or_a_state_are_there_and_questions_have_no_ids() {
    for wire in WIRES {
        let mut client = modern(wire).await;
        client.capabilities = everything();
        for (method, params) in asking_requests() {
            let (mut sent, mut keys, mut rounds) = (params.clone(), Vec::new(), 0);
            let result = loop {
                let reply = client.request(method, sent.clone()).await;
                if !is_interim(&reply) {
                    break reply;
                }
                rounds += 1;
                check_interim(reply.result(), &everything(), &format!("{wire:?} {sent}"));
                let asked = reply.result()["inputRequests"].as_object().unwrap();
                assert!(!asked.is_empty(), "{wire:?} {sent}");
                for (key, ask) in asked {
                    assert!(!keys.contains(key), "{key} was answered already: {}", reply.message);
                    keys.push(key.clone());
                    let due = match ask["method"].as_str().unwrap() {
                        "elicitation/create" => {
                            ask["params"]["message"].is_string() && ask["params"]["mode"] == "form"
                        }
                        "sampling/createMessage" => {
                            ask["params"]["messages"].is_array() && ask["params"]["maxTokens"].is_number()
                        }
                        "roots/list" => ask["params"].is_object(),
                        _ => false,
                    };
                    assert!(due, "{ask}");
                }
                sent = retry(&params, reply.result());
            };
            assert_eq!(result.result()["resultType"], "complete", "{wire:?} {params}: {}", result.message);
            let due = if params["name"] == "test_input_required_result_multi_round" { 2..=2 } else { 1..=2 };
            assert!(due.contains(&rounds), "{wire:?} {params}: {rounds} rounds");
        }
        let mut client = local(wire, asking()).await;
        client.capabilities = everything();
        // An identifier that 2025-11-25 has is taken off, the rest of the question stays.
        let reply = client.call("url", json!({})).await;
        check_interim(reply.result(), &everything(), "url");
        let due = json!({"mode": "url", "message": "Log in", "url": "https://x.example"});
        assert_eq!(reply.result()["inputRequests"]["q"]["params"], due, "{wire:?}");
        // A state alone is enough; nothing at all is not, and is the server's own fault.
        let reply = client.call("state", json!({})).await;
        check_interim(reply.result(), &json!({}), "state");
        assert_eq!(reply.result()["requestState"], "s", "{wire:?}");
        assert!(reply.result().get("inputRequests").is_none(), "{wire:?}: {}", reply.message);
        assert_eq!(client.call("nothing", json!({})).await.code(), -32603, "{wire:?}");
    }
}

#[tokio::test]
async fn mrtr_06_what_needs_an_undeclared_capability_says_which() {
    let form = json!({"elicitation": {"form": {}}});
    let due = |name: &str| match name {
        "test_missing_capability" | "test_input_required_result_sampling" => json!({"sampling": {}}),
        "test_input_required_result_list_roots" => json!({"roots": {}}),
        _ => form.clone(),
    };
    let check = |reply: &Reply, needed: &Value, what: &str| {
        assert_eq!(reply.code(), -32021, "{what}: {}", reply.message);
        assert_eq!(&reply.error()["data"]["requiredCapabilities"], needed, "{what}: {}", reply.message);
        assert!(reply.error()["message"].is_string(), "{what}");
        assert!(reply.status().is_none_or(|status| status == 400), "{what}: {:?}", reply.status());
    };
    for wire in WIRES {
        let mut client = modern(wire).await;
        for (method, params) in asking_requests() {
            let name = params["name"].as_str().unwrap();
            if name == "test_input_required_result_capabilities" {
                let reply = client.request(method, params).await;
                assert_eq!(reply.result()["resultType"], "complete", "what can go on goes on");
                continue;
            }
            let reply = client.request(method, params.clone()).await;
            check(&reply, &due(name), &format!("{wire:?} {name}"));
        }
        // Another capability does not help; nor does what an earlier request declared.
        client.capabilities = json!({"roots": {}, "elicitation": {"url": {}}});
        let reply = client.call("test_input_required_result_elicitation", json!({})).await;
        check(&reply, &form, "url instead of form");
        let params = json!({"name": "test_input_required_result_multi_round", "arguments": {}});
        client.capabilities = form.clone();
        let asked = client.request("tools/call", params.clone()).await;
        check_interim(asked.result(), &form, "the first round");
        client.capabilities = json!({"sampling": {}});
        let reply = client.request("tools/call", retry(&params, asked.result())).await;
        check(&reply, &form, "the second round");
        client.capabilities = form.clone();
        let reply = client.request("tools/call", retry(&params, asked.result())).await;
        check_interim(reply.result(), &form, "the second round, declared");

        let mut client = local(wire, asking()).await;
        client.capabilities = json!({"sampling": {}, "elicitation": {}});
        for (kind, needed) in [
            ("url", json!({"elicitation": {"url": {}}})),
            ("sampling tools", json!({"sampling": {"tools": {}}})),
            ("tool choice", json!({"sampling": {"tools": {}}})),
            ("roots", json!({"roots": {}})),
        ] {
            let reply = client.call(kind, json!({})).await;
            check(&reply, &needed, &format!("{wire:?} {kind}"));
        }
    }
}

/// Waits for a question on the stream of a call; over a pipe that is the pipe.
async fn question(client: &mut Client, exchange: Exchange) -> Value {
    let asked = |m: &Value| m.get("id").is_some() && m.get("method").is_some();
    let own = |a: &Arrival| matches!(a, Arrival::Message(of, m, _) if *of == exchange && asked(m));
    let Arrival::Message(_, message, _) = client.wait("a question", own).await else { unreachable!() };
    message
}

/// Sends the response to a question; over HTTP it is accepted, and that is all.
async fn respond(client: &mut Client, wire: Wire, response: &Value) {
    let exchange = client.send(response, &[]).await;
    if wire == Wire::Http {
        let (head, messages) = client.whole(exchange).await;
        assert_eq!((head.status, messages), (202, Vec::new()), "{response}");
    }
}

/// The answer to a question as a response.
fn answered(question: &Value) -> Value {
    let result = answer(question["method"].as_str().unwrap(), &question["params"]);
    json!({"jsonrpc": "2.0", "id": question["id"], "result": result})
}

/// What a revision's clients can declare.
fn declarable(revision: &str) -> Value {
    match revision {
        "2024-11-05" | "2025-03-26" => json!({"sampling": {}, "roots": {}}),
        _ => json!({"elicitation": {}, "sampling": {}, "roots": {"listChanged": true}}),
    }
}

fn has_elicitation(revision: &str) -> bool {
    declarable(revision).get("elicitation").is_some()
}

/// The demo's requests that ask, with the questions that a client gets and the text that comes of the answers.
fn scripts(revision: &str) -> Vec<(&'static str, &'static str, Vec<&'static str>, &'static str)> {
    let (form, model, roots) = ("elicitation/create", "sampling/createMessage", "roots/list");
    let tool = "tools/call";
    let mut all = vec![
        (tool, "test_missing_capability", vec![model], "Paris"),
        (tool, "test_input_required_result_sampling", vec![model], "Paris"),
        (
            tool,
            "test_input_required_result_list_roots",
            vec![roots],
            r#"1 roots: [{"uri":"file:///work","name":"work"}]"#,
        ),
    ];
    if has_elicitation(revision) {
        all.extend([
            (tool, "test_streaming_elicitation", vec![form], "Hello, my name!"),
            (tool, "test_input_required_result_elicitation", vec![form], "Hello, my name!"),
            (tool, "test_input_required_result_request_state", vec![form], "state-ok"),
            (
                tool,
                "test_input_required_result_multiple_inputs",
                vec![form, model, roots],
                "my name: Paris (1 roots)",
            ),
            (
                tool,
                "test_input_required_result_multi_round",
                vec![form, form],
                r#"my name: action=accept, content={"color":"my color"}"#,
            ),
            (tool, "test_input_required_result_capabilities", vec![form, model], "my name; Paris"),
            (
                "prompts/get",
                "test_input_required_result_prompt",
                vec![form],
                r#"Use this context: action=accept, content={"context":"my context"}"#,
            ),
        ]);
    }
    all
}

#[tokio::test]
async fn mrtr_10_the_same_handlers_ask_a_session_by_requests_on_the_calls_own_stream() {
    for (wire, revision) in sessions() {
        let (mut client, _) = legacy(wire, revision, declarable(revision)).await;
        let get = (wire == Wire::Http)
            .then(|| client.exchange("GET", &[("accept", "text/event-stream")], Vec::new()));
        let mut ids = Vec::new();
        for (method, name, questions, due) in scripts(revision) {
            let what = format!("{wire:?} {revision} {name}");
            let id = client.id();
            let params = json!({"name": name, "arguments": {}});
            let exchange = client.begin_as(id.clone(), method, params).await;
            for kind in questions {
                let asked = question(&mut client, exchange).await;
                assert_eq!(
                    (&asked["method"], &asked["jsonrpc"]),
                    (&json!(kind), &json!("2.0")),
                    "{what}: {asked}"
                );
                assert!(asked["id"].is_string() || asked["id"].is_i64(), "{what}: {asked}");
                assert!(!ids.contains(&asked["id"]), "{what}: an id of its own: {asked}");
                ids.push(asked["id"].clone());
                check_question(&asked, revision);
                respond(&mut client, wire, &answered(&asked)).await;
            }
            let reply = client.reply(&id).await;
            let text = match method {
                "tools/call" => &reply.result()["content"][0]["text"],
                _ => &reply.result()["messages"][0]["content"]["text"],
            };
            assert_eq!(text, due, "{what}: {}", reply.message);
            assert!(reply.before.is_empty(), "{what}: nothing else was asked: {:?}", reply.before);
            for field in ["resultType", "inputRequests", "requestState", "_meta"] {
                assert!(reply.result().get(field).is_none(), "{what}: {}", reply.message);
            }
            if let Some(head) = &reply.head {
                assert_eq!(head.status, 200, "{what}");
                assert_eq!(header(&head.headers, "content-type"), Some("text/event-stream"), "{what}");
            }
        }
        let strays: Vec<_> =
            client.leftovers().into_iter().filter(|a| matches!(a, Arrival::Message(..))).collect();
        assert!(strays.is_empty(), "{wire:?} {revision} {get:?}: {strays:?}");
    }
}

/// The params of a question, in the form of a revision.
fn check_question(asked: &Value, revision: &str) {
    let params = &asked["params"];
    match asked["method"].as_str().unwrap() {
        "elicitation/create" => {
            assert!(
                params["message"].is_string() && params["requestedSchema"]["type"] == "object",
                "{asked}"
            );
            let mode = params.get("mode").cloned();
            let due = if revision == "2025-06-18" {
                mode.is_none()
            } else {
                mode.is_none_or(|mode| mode == "form")
            };
            assert!(due, "{revision}: {asked}");
        }
        "sampling/createMessage" => {
            assert_eq!(params["maxTokens"], 100, "{revision}: {asked}");
            assert_eq!(params["messages"][0]["role"], "user", "{revision}: {asked}");
            assert_eq!(params["messages"][0]["content"]["type"], "text", "{revision}: {asked}");
        }
        _ => assert!(asked.get("params").is_none_or(|params| *params == json!({})), "{revision}: {asked}"),
    }
    assert!(params.get("elicitationId").is_none(), "{asked}");
}

#[tokio::test]
async fn a_session_is_never_asked_what_it_did_not_declare() {
    for (wire, revision) in sessions() {
        for declared in [json!({}), json!({"experimental": {}}), json!({"elicitation": {}})] {
            let (mut client, _) = legacy(wire, revision, declared.clone()).await;
            for (method, params) in asking_requests() {
                let name = params["name"].as_str().unwrap().to_owned();
                let form = declared.get("elicitation").is_some() && has_elicitation(revision);
                let goes_on = name == "test_input_required_result_capabilities";
                let asks_form = ![
                    "test_missing_capability",
                    "test_input_required_result_sampling",
                    "test_input_required_result_list_roots",
                ]
                .contains(&name.as_str());
                if form && asks_form {
                    continue;
                }
                let reply = client.request(method, params).await;
                let what = format!("{wire:?} {revision} {declared} {name}");
                assert!(reply.before.is_empty(), "{what}: {:?}", reply.before);
                assert_eq!(reply.message.get("result").is_some(), goes_on, "{what}: {}", reply.message);
                assert!(
                    goes_on || [-32600, -32602, -32603].contains(&reply.code()),
                    "{what}: {}",
                    reply.message
                );
            }
        }
    }
}

#[tokio::test]
async fn questions_of_several_calls_of_a_session_do_not_meet() {
    for (wire, revision) in sessions().into_iter().filter(|(_, revision)| has_elicitation(revision)) {
        let (mut client, _) = legacy(wire, revision, declarable(revision)).await;
        let mut calls = Vec::new();
        for _ in 0..3 {
            let id = client.id();
            let params = json!({"name": "test_input_required_result_multiple_inputs", "arguments": {}});
            let exchange = client.begin_as(id.clone(), "tools/call", params).await;
            let mut asked = Vec::new();
            for _ in 0..3 {
                asked.push(question(&mut client, exchange).await);
            }
            calls.push((id, asked));
        }
        // While they wait, the session goes on; a response to nothing, or a second one, is no answer.
        assert_eq!(client.call("echo", json!({"message": "hi"})).await.said(), "hi", "{wire:?} {revision}");
        for (at, (id, asked)) in calls.iter().enumerate().rev() {
            for question in asked.iter().rev() {
                let stray = json!({"jsonrpc": "2.0", "id": 4_000_000, "result": {}});
                let mut answered = answered(question);
                if question["method"] == "elicitation/create" {
                    answered["result"]["content"] = json!({"name": format!("caller {at}")});
                }
                respond(&mut client, wire, &stray).await;
                respond(&mut client, wire, &answered).await;
                answered["result"] = json!({"action": "decline"});
                respond(&mut client, wire, &answered).await;
            }
            let reply = client.reply(id).await;
            assert_eq!(reply.said(), format!("caller {at}: Paris (1 roots)"), "{wire:?} {revision}");
        }
    }
}

#[tokio::test]
async fn a_session_that_refuses_declines_or_cancels_is_heard() {
    for (wire, revision) in sessions().into_iter().filter(|(_, revision)| has_elicitation(revision)) {
        let (mut client, _) = legacy(wire, revision, declarable(revision)).await;
        let ask = async |client: &mut Client| {
            let id = client.id();
            let params = json!({"name": "test_input_required_result_elicitation", "arguments": {}});
            let exchange = client.begin_as(id.clone(), "tools/call", params).await;
            let asked = question(client, exchange).await;
            (id, exchange, asked["id"].clone())
        };
        for (action, said) in [("decline", "Hello, action=decline!"), ("cancel", "Hello, action=cancel!")] {
            let (id, _, asked) = ask(&mut client).await;
            let answered = json!({"jsonrpc": "2.0", "id": asked, "result": {"action": action}});
            respond(&mut client, wire, &answered).await;
            assert_eq!(client.reply(&id).await.said(), said, "{wire:?} {revision}");
        }
        let (id, _, asked) = ask(&mut client).await;
        let refused =
            json!({"jsonrpc": "2.0", "id": asked, "error": {"code": -1, "message": "the user is asleep"}});
        respond(&mut client, wire, &refused).await;
        let reply = client.reply(&id).await;
        assert_eq!(reply.result()["isError"], true, "{wire:?} {revision}: {}", reply.message);
        assert!(reply.said().contains("the user is asleep"), "{wire:?} {revision}: {}", reply.message);

        // An answer that does not fit ends this call, with an error.
        for wrong in [json!({}), json!({"action": "accept", "content": {"name": 5}}), json!([]), json!(null)]
        {
            let (id, _, asked) = ask(&mut client).await;
            let answered = json!({"jsonrpc": "2.0", "id": asked, "result": wrong});
            respond(&mut client, wire, &answered).await;
            let reply = client.reply(&id).await;
            let failed = reply.message.get("error").is_some() || reply.message["result"]["isError"] == true;
            assert!(failed, "{wire:?} {revision} {wrong}: {}", reply.message);
        }

        // A call that is cancelled while it waits takes its question back, and a late answer is nobody's.
        let (id, exchange, asked) = ask(&mut client).await;
        client.notify("notifications/cancelled", json!({"requestId": id})).await;
        let taken_back =
            client.message("the question is taken back", |m| m["method"] == "notifications/cancelled").await;
        assert_eq!(taken_back["params"]["requestId"], asked, "{wire:?} {revision}");
        let answered = json!({"jsonrpc": "2.0", "id": asked, "result": {"action": "decline"}});
        respond(&mut client, wire, &answered).await;
        assert_eq!(client.call("echo", json!({"message": "hi"})).await.said(), "hi", "{wire:?} {revision}");
        if wire == Wire::Http {
            let (_, messages) = client.whole(exchange).await;
            assert!(messages.iter().all(|m| m["id"] != id), "{revision}: {messages:?}");
        }
        let answers = client
            .leftovers()
            .into_iter()
            .filter(|a| matches!(a, Arrival::Message(_, m, _) if m["id"] == id));
        assert_eq!(answers.count(), 0, "{wire:?} {revision}");
    }
}

const CACHEABLE: [(&str, &str); 6] = [
    ("server/discover", "{}"),
    ("tools/list", "{}"),
    ("prompts/list", "{}"),
    ("resources/list", "{}"),
    ("resources/templates/list", "{}"),
    ("resources/read", r#"{"uri":"demo://welcome"}"#),
];

fn hints(result: &Value) -> (Value, Value) {
    (result["ttlMs"].clone(), result["cacheScope"].clone())
}

fn check_hints(result: &Value, what: &str) {
    assert_eq!(result["resultType"], "complete", "{what}: {result}");
    assert!(result["ttlMs"].is_u64(), "{what}: an integer, 0 or more: {result}");
    assert!(result["cacheScope"] == "public" || result["cacheScope"] == "private", "{what}: {result}");
}

#[tokio::test]
async fn cache_01_cacheable_results_carry_hints_and_a_read_completed_by_answers_is_nobodys() {
    let nobodys = (json!(0), json!("private"));
    for wire in WIRES {
        let mut client = modern(wire).await;
        for (method, params) in CACHEABLE {
            let params: Value = serde_json::from_str(params).unwrap();
            let reply = client.request(method, params).await;
            check_hints(reply.result(), &format!("{wire:?} {method}"));
        }
        for uri in ["test://static-binary", "test://template/5/data"] {
            let reply = client.request("resources/read", json!({"uri": uri})).await;
            check_hints(reply.result(), &format!("{wire:?} {uri}"));
        }
        let given = json!({"uri": "demo://welcome", "inputResponses": {"unasked": {"action": "cancel"}}});
        let reply = client.request("resources/read", given).await;
        assert_eq!(hints(reply.result()), nobodys, "{wire:?}: answers came with it");

        // Every page of a list has its own.
        let say = |name: &str| Tool::new(name, "Says its name.", || async { "name" });
        let server = Server::new("pages", "1").page_size(1).lists_fresh_for(Duration::from_secs(60));
        let server = server.tool(say("one")).tool(say("two")).tool(say("three")).build().unwrap();
        let mut client = local(wire, server).await;
        let (mut params, mut names) = (json!({}), Vec::new());
        loop {
            let reply = client.request("tools/list", params).await;
            check_hints(reply.result(), "a page");
            assert_eq!(hints(reply.result()), (json!(60_000), json!("public")), "{wire:?}");
            names.push(reply.result()["tools"][0]["name"].clone());
            let Some(cursor) = reply.result().get("nextCursor") else { break };
            params = json!({"cursor": cursor});
        }
        assert_eq!(names, ["one", "two", "three"], "{wire:?}");

        // A service says what it likes: a result that an answer went into is for nobody to keep.
        let mut client = local(wire, asking()).await;
        client.capabilities = everything();
        let params = json!({"uri": "demo://asks"});
        let asked = client.request("resources/read", params.clone()).await;
        check_interim(asked.result(), &everything(), "no hints in between");
        let read = client.request("resources/read", retry(&params, asked.result())).await;
        check_hints(read.result(), "read");
        assert_eq!(hints(read.result()), nobodys, "{wire:?}: {}", read.message);
        assert_eq!(read.result()["contents"][0]["text"], "told", "{wire:?}");
        let stated = json!({"uri": "demo://asks", "requestState": "s"});
        let read = client.request("resources/read", stated).await;
        assert_eq!(hints(read.result()), nobodys, "{wire:?}: {}", read.message);
    }
}

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// Opens a listen; gives its exchange.
async fn listen(client: &mut Client, id: &Value, filter: &Value) -> Exchange {
    client.begin_as(id.clone(), "subscriptions/listen", json!({"notifications": filter})).await
}

/// The next message of a listen: it must be on its own stream, and tagged with its id.
async fn event(client: &mut Client, id: &Value, exchange: Exchange) -> Value {
    let tag = |m: &Value| m["params"]["_meta"].get(SUBSCRIPTION) == Some(id);
    let Arrival::Message(at, message, _) = client
        .wait(&format!("a message of the listen {id}"), |a| matches!(a, Arrival::Message(_, m, _) if tag(m)))
        .await
    else {
        unreachable!()
    };
    assert_eq!(at, exchange, "{id}: {message}");
    assert!(message.get("id").is_none(), "{message}");
    message
}

/// Opens a listen and waits for its acknowledgement; gives its exchange.
async fn listening(client: &mut Client, id: &Value, filter: &Value, honoured: &Value) -> Exchange {
    let exchange = listen(client, id, filter).await;
    let first = event(client, id, exchange).await;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{id}: {first}");
    assert_eq!(&first["params"]["notifications"], honoured, "{id}: {first}");
    exchange
}

/// Calls a tool and waits for its response; what else arrives stays in the queue.
async fn trigger(client: &mut Client, tool: &str, arguments: Value) {
    let id = client.begin("tools/call", json!({"name": tool, "arguments": arguments})).await;
    let message = response(client, &id).await;
    assert!(message["result"]["content"].is_array(), "{message}");
}

async fn touch(client: &mut Client, uri: &str) {
    trigger(client, "touch_resource", json!({"uri": uri})).await;
}

/// Changes everything that can be changed: nothing that a listen to something else should hear of.
async fn change_all(client: &mut Client) {
    trigger(client, "test_trigger_tool_change", json!({})).await;
    trigger(client, "test_trigger_prompt_change", json!({})).await;
    touch(client, "test://watched-resource").await;
    touch(client, "demo://welcome").await;
}

/// Everything that came and that nobody waited for.
fn strays(client: &mut Client) -> Vec<Arrival> {
    client
        .leftovers()
        .into_iter()
        .filter(|a| matches!(a, Arrival::Message(..) | Arrival::Rubbish(..)))
        .collect()
}

#[tokio::test]
async fn sub_01_the_acknowledgement_comes_first_and_echoes_what_is_honoured() {
    let all = json!({
        "toolsListChanged": true,
        "promptsListChanged": true,
        "resourcesListChanged": true,
        "resourceSubscriptions": ["demo://welcome", "test://watched-resource"],
    });
    for wire in WIRES {
        let mut client = modern(wire).await;
        for (id, filter, honoured) in [
            (json!("empty"), json!({}), json!({})),
            (json!(71), json!({"toolsListChanged": true}), json!({"toolsListChanged": true})),
            (json!("seventy-two"), all.clone(), all.clone()),
            (
                json!(""),
                json!({"toolsListChanged": false, "promptsListChanged": true}),
                json!({"promptsListChanged": true}),
            ),
            (json!(-1), json!({"vendorListChanged": true, "taskIds": []}), json!({})),
            (json!("none"), json!({"resourceSubscriptions": []}), json!({})),
        ] {
            let exchange = listening(&mut client, &id, &filter, &honoured).await;
            if wire == Wire::Http {
                let head = client.head(exchange).await;
                assert_eq!(head.status, 200, "{filter}");
                assert_eq!(header(&head.headers, "content-type"), Some("text/event-stream"), "{filter}");
            }
        }
        // Also if things change at the very moment.
        for id in 0..20 {
            let id = json!(format!("race {id}"));
            client.begin("tools/call", json!({"name": "test_trigger_tool_change", "arguments": {}})).await;
            listening(&mut client, &id, &all, &all).await;
            client
                .begin(
                    "tools/call",
                    json!({"name": "touch_resource", "arguments": {"uri": "demo://welcome"}}),
                )
                .await;
        }
        for wrong in [
            json!({}),
            json!({"notifications": null}),
            json!({"notifications": []}),
            json!({"notifications": "all"}),
            json!({"notifications": {"toolsListChanged": "yes"}}),
            json!({"notifications": {"promptsListChanged": 1}}),
            json!({"notifications": {"resourceSubscriptions": "demo://welcome"}}),
            json!({"notifications": {"resourceSubscriptions": [1]}}),
        ] {
            let reply = client.request("subscriptions/listen", wrong.clone()).await;
            assert_eq!(reply.code(), -32602, "{wire:?} {wrong}");
        }
        // What the server does not have is not honoured.
        let server = Server::new("tools", "1").tool(Tool::new("say", "Says it.", || async { "it" }));
        let mut client = local(wire, server.build().unwrap()).await;
        listening(&mut client, &json!(1), &all, &json!({"toolsListChanged": true})).await;
    }
}

#[tokio::test]
async fn sub_02_a_listen_gets_only_the_types_it_asked_for_each_tagged_with_its_id() {
    let changed = |kind: &str| format!("notifications/{kind}/list_changed");
    let updated = "notifications/resources/updated";
    for wire in WIRES {
        let mut client = modern(wire).await;
        let watch = |uris: &[&str]| json!({"resourceSubscriptions": uris});
        let cases = [
            (json!("nothing"), json!({}), vec![]),
            (json!(501), json!({"toolsListChanged": true}), vec![(changed("tools"), None)]),
            (json!("prompts"), json!({"promptsListChanged": true}), vec![(changed("prompts"), None)]),
            (json!("resources"), json!({"resourcesListChanged": true}), vec![]),
            (json!("one"), watch(&["demo://welcome"]), vec![(updated.to_owned(), Some("demo://welcome"))]),
            (
                json!("two"),
                watch(&["demo://welcome", "test://watched-resource"]),
                vec![
                    (updated.to_owned(), Some("test://watched-resource")),
                    (updated.to_owned(), Some("demo://welcome")),
                ],
            ),
            (json!("others"), watch(&["demo://welc", "demo://welcome2", "test://static-text"]), vec![]),
            (
                json!(9_007_199_254_740_993_i64),
                json!({"toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": ["demo://welcome"]}),
                vec![
                    (changed("tools"), None),
                    (changed("prompts"), None),
                    (updated.to_owned(), Some("demo://welcome")),
                ],
            ),
        ];
        let mut exchanges = Vec::new();
        for (id, filter, _) in &cases {
            let honoured = filter.clone();
            exchanges.push(listening(&mut client, id, filter, &honoured).await);
        }
        for _ in 0..2 {
            change_all(&mut client).await;
            for ((id, filter, due), exchange) in cases.iter().zip(&exchanges) {
                for (method, uri) in due {
                    let message = event(&mut client, id, *exchange).await;
                    assert_eq!(message["method"], method.as_str(), "{wire:?} {filter}: {message}");
                    assert_eq!(
                        message["params"].get("uri").and_then(Value::as_str),
                        *uri,
                        "{wire:?}: {message}"
                    );
                }
            }
        }
        // All has come that was due: what came besides is in the queue before this.
        trigger(&mut client, "echo", json!({"message": "done"})).await;
        let strays = strays(&mut client);
        assert!(strays.is_empty(), "{wire:?}: {strays:?}");
        // And of what runs beside them, nothing.
        let meta = json!({"progressToken": "t", "io.modelcontextprotocol/logLevel": "debug"});
        for tool in ["test_tool_with_logging", "test_tool_with_progress"] {
            let params = json!({"name": tool, "arguments": {}, "_meta": meta});
            let reply = client.request("tools/call", params).await;
            assert_eq!(reply.before.len(), 3, "{wire:?}: {:?}", reply.before);
            let tagged = reply.before.iter().any(|m| m["params"]["_meta"].get(SUBSCRIPTION).is_some());
            assert!(!tagged, "{wire:?}: {:?}", reply.before);
        }
    }
}

#[tokio::test]
async fn sub_02_every_type_is_announced_to_those_who_asked_for_it_alone() {
    for wire in WIRES {
        let resource = Resource::fixed("R", ResourceContents::text("r://1", "text/plain", "one"));
        let prompt = dateline::Prompt::new("p", "P.", |_, _| async { Ok(dateline::Messages::new()) });
        let tool = Tool::new("t", "T.", || async { "t" });
        let server =
            Server::new("changes", "1").tool(tool).prompt(prompt).resource(resource).build().unwrap();
        let mut client = local(wire, server.clone()).await;
        let cases = [
            ("tools", json!({"toolsListChanged": true}), "notifications/tools/list_changed"),
            ("prompts", json!({"promptsListChanged": true}), "notifications/prompts/list_changed"),
            ("resources", json!({"resourcesListChanged": true}), "notifications/resources/list_changed"),
            ("one", json!({"resourceSubscriptions": ["r://1"]}), "notifications/resources/updated"),
        ];
        let mut exchanges = Vec::new();
        for (id, filter, _) in &cases {
            exchanges.push(listening(&mut client, &json!(id), filter, filter).await);
        }
        for _ in 0..3 {
            server.resources_changed();
            server.prompts_changed();
            server.resource_updated("r://2");
            server.tools_changed();
            server.resource_updated("r://1");
            for ((id, _, method), exchange) in cases.iter().zip(&exchanges) {
                let message = event(&mut client, &json!(id), *exchange).await;
                assert_eq!(&message["method"], method, "{wire:?}: {message}");
                let uri = (*id == "one").then(|| json!("r://1"));
                assert_eq!(message["params"].get("uri").cloned(), uri, "{wire:?}: {message}");
            }
        }
        let strays = strays(&mut client);
        assert!(strays.is_empty(), "{wire:?}: {strays:?}");
    }
}

#[tokio::test]
async fn sub_03_several_listens_run_side_by_side_and_a_new_one_replaces_none() {
    for wire in WIRES {
        let mut client = modern(wire).await;
        let tools = json!({"toolsListChanged": true});
        let mut open = Vec::new();
        for id in [json!(1001), json!("1001"), json!("third"), json!("fourth")] {
            let exchange = listening(&mut client, &id, &tools, &tools).await;
            open.push((id, exchange));
            trigger(&mut client, "test_trigger_tool_change", json!({})).await;
            for (id, exchange) in &open {
                let message = event(&mut client, id, *exchange).await;
                assert_eq!(message["method"], "notifications/tools/list_changed", "{wire:?} {id}");
            }
        }
        // One that ends takes none along, and gets no answer.
        let (ended, exchange) = open.remove(1);
        match wire {
            Wire::Stdio => drop(client.notify("notifications/cancelled", json!({"requestId": ended})).await),
            Wire::Http => client.disconnect(exchange),
        }
        for _ in 0..2 {
            trigger(&mut client, "test_trigger_tool_change", json!({})).await;
            for (id, exchange) in &open {
                event(&mut client, id, *exchange).await;
            }
        }
        let strays = strays(&mut client);
        assert!(strays.is_empty(), "{wire:?}: {strays:?}");
        // Its id can be used again.
        listening(&mut client, &ended, &tools, &tools).await;
        if wire == Wire::Http {
            // Another client may listen under the same id.
            let mut other = neighbour(&client);
            let (id, _) = &open[0];
            let exchange = listening(&mut other, id, &tools, &tools).await;
            trigger(&mut client, "test_trigger_tool_change", json!({})).await;
            event(&mut other, id, exchange).await;
            event(&mut client, id, open[0].1).await;
        }
    }
}

#[tokio::test]
async fn tool_01_an_unknown_tool_is_32602() {
    for (wire, revision) in everywhere() {
        let mut client = client(wire, revision, json!({})).await;
        for name in
            ["no-such-tool", "Echo", "echo2", "echo/../add", "resources/read", "demo://welcome", "%65cho"]
        {
            let reply = client.call(name, json!({"message": "hi"})).await;
            assert_eq!(reply.code(), -32602, "{wire:?} {revision} {name}: {}", reply.message);
            assert!(reply.message.get("result").is_none(), "{wire:?} {revision} {name}");
        }
        let long = "x".repeat(5000);
        let reply = client.call(&long, json!({})).await;
        assert_eq!(reply.code(), -32602, "{wire:?} {revision}");
        assert!(reply.text.len() < 1000, "{wire:?} {revision}: it is not repeated at length");
    }
}

#[tokio::test]
async fn tool_02_input_that_does_not_fit_the_schema_has_the_form_of_the_revision() {
    let unfit = [
        ("echo", json!({})),
        ("echo", json!({"message": 5})),
        ("echo", json!({"message": null})),
        ("add", json!({"a": 1})),
        ("add", json!({"a": "1", "b": 2})),
        ("countdown", json!({"from": -1, "intervalMs": 0})),
        ("countdown", json!({"from": 10_001, "intervalMs": 0})),
        ("countdown", json!({"from": 1.5, "intervalMs": 0})),
        ("test_simple_text", json!({"extra": 1})),
        ("json_schema_2020_12_tool", json!({"name": "n"})),
        ("json_schema_2020_12_tool", json!({"email": "e", "contactMethod": "phone"})),
        ("json_schema_2020_12_tool", json!({"email": "e", "address": {"street": 5}})),
        ("test_custom_header", json!({})),
    ];
    for (wire, revision) in everywhere() {
        let mut client = client(wire, revision, json!({})).await;
        for (tool, arguments) in &unfit {
            let reply = client.call(tool, arguments.clone()).await;
            let what = format!("{wire:?} {revision} {tool} {arguments}");
            if ["2025-11-25", MODERN].contains(&revision) {
                assert_eq!(reply.result()["isError"], true, "{what}: {}", reply.message);
                assert_eq!(reply.result()["content"][0]["type"], "text", "{what}");
                assert!(!reply.said().is_empty(), "{what}: a model can read what is wrong");
                assert!(reply.result().get("structuredContent").is_none(), "{what}");
                assert!(reply.status().is_none_or(|status| status == 200), "{what}");
            } else {
                assert_eq!(reply.code(), -32602, "{what}: {}", reply.message);
                assert!(reply.message.get("result").is_none(), "{what}");
            }
        }
        // What is no object is no set of arguments, in any revision.
        for arguments in [json!([]), json!("message"), json!(7), json!(true)] {
            let reply = client.call("echo", arguments.clone()).await;
            assert_eq!(reply.code(), -32602, "{wire:?} {revision} {arguments}: {}", reply.message);
        }
        let reply =
            client.call("json_schema_2020_12_tool", json!({"email": "e", "address": {"street": "s"}})).await;
        assert!(reply.said().starts_with("JSON Schema 2020-12 tool called with"), "{wire:?} {revision}");
        let reply = client.request("tools/call", json!({"name": "test_simple_text"})).await;
        assert!(reply.result().get("isError").is_none_or(|e| e == false), "none at all are an empty object");
    }
}

#[tokio::test]
async fn res_03_a_resource_that_does_not_exist_never_yields_empty_contents() {
    // Without a name there is no header that holds it.
    let absent = [
        "demo://nothing",
        "demo://welcome/",
        "DEMO://welcome",
        "test://template/1/2/data",
        "test://template//",
        "x",
        "",
    ];
    for wire in WIRES {
        let mut client = modern(wire).await;
        for uri in absent.into_iter().filter(|uri| wire == Wire::Stdio || !uri.is_empty()) {
            let reply = client.request("resources/read", json!({"uri": uri})).await;
            assert_eq!(reply.code(), -32602, "{wire:?} {uri}: {}", reply.message);
            assert_eq!(reply.error()["data"]["uri"], uri, "{wire:?}");
            assert!(reply.message.get("result").is_none(), "{wire:?} {uri}");
        }
        // Also where a handler finds nothing.
        let none = |_: Cx| async { Ok(Vec::<ResourceContents>::new()) };
        let server = Server::new("empty", "1")
            .resource(Resource::new("empty://fixed", "Nothing", none))
            .template(ResourceTemplate::new("empty://list/{id}", "No contents", |_, _| async {
                Ok(Some(Vec::new()))
            }))
            .template(ResourceTemplate::new("empty://none/{id}", "Nothing there", |_, _| async { Ok(None) }));
        let mut client = local(wire, server.build().unwrap()).await;
        for uri in ["empty://fixed", "empty://list/1", "empty://none/1"] {
            let reply = client.request("resources/read", json!({"uri": uri})).await;
            assert_eq!(reply.code(), -32602, "{wire:?} {uri}: {}", reply.message);
            assert_eq!(reply.error()["data"]["uri"], uri, "{wire:?}");
        }
    }
}

/// A server whose handlers do what handlers should not.
fn unruly() -> Server {
    let panics = |cx: Cx| async move {
        assert!(cx.id().is_empty(), "this is meant to fail");
        "never"
    };
    let misfit = || async { ToolResult::structured(&json!({"sum": "not a number"})) };
    let bare = || async { "only text" };
    let sum = json!({"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]});
    let server = Server::new("unruly", "1")
        .tool(Tool::new("panics", "Panics.", panics))
        .tool(Tool::new("misfit", "Does not do what it says.", misfit).output(&sum))
        .tool(Tool::new("bare", "Gives less than it says.", bare).output(&sum))
        .tool(Tool::new("echo", "Answers.", || async { "alive" }))
        .resource(Resource::new("unruly://panics", "Panics", |_| async { panic!("this is meant to fail") }))
        .prompt(dateline::Prompt::new("panics", "Panics.", |_, _| async { panic!("this is meant to fail") }));
    server.build().unwrap()
}

#[tokio::test]
async fn a_handler_that_panics_costs_its_own_call_and_a_misfit_result_is_the_servers_fault() {
    for (wire, revision) in everywhere() {
        let mut client = speaking(local(wire, unruly()).await, revision, json!({})).await;
        for (method, params) in [
            ("tools/call", json!({"name": "panics", "arguments": {}})),
            ("resources/read", json!({"uri": "unruly://panics"})),
            ("prompts/get", json!({"name": "panics"})),
            ("tools/call", json!({"name": "misfit", "arguments": {}})),
            ("tools/call", json!({"name": "bare", "arguments": {}})),
        ] {
            let reply = client.request(method, params.clone()).await;
            assert_eq!(reply.code(), -32603, "{wire:?} {revision} {params}: {}", reply.message);
            assert!(
                !reply.text.contains("this is meant to fail"),
                "{wire:?}: internals stay inside: {}",
                reply.text
            );
            assert_eq!(
                client.call("echo", json!({})).await.said(),
                "alive",
                "{wire:?} {revision} after {params}"
            );
        }
    }
}

#[tokio::test]
async fn a_modern_listen_on_a_pipe_ends_without_an_answer_when_it_is_cancelled() {
    let mut client = modern(Wire::Stdio).await;
    let filter = json!({"toolsListChanged": true, "resourceSubscriptions": ["demo://welcome"]});
    for id in [json!("listen"), json!(4000)] {
        listening(&mut client, &id, &filter, &filter).await;
        client.notify("notifications/cancelled", json!({"requestId": id})).await;
        change_all(&mut client).await;
        trigger(&mut client, "echo", json!({"message": "done"})).await;
        let strays = strays(&mut client);
        assert!(strays.is_empty(), "{id}: {strays:?}");
    }
}

#[tokio::test]
async fn sessions_know_nothing_of_listens() {
    for wire in WIRES {
        for revision in LEGACY {
            let (mut client, _) = legacy(wire, revision, json!({})).await;
            let reply = client.request("subscriptions/listen", json!({"notifications": {}})).await;
            assert_eq!(reply.code(), -32601, "{wire:?} {revision}");
        }
    }
}
