//! What servers offer: questions in every round, cache hints, listens, tools, resources.

mod asked;
mod cache;
mod listens;
mod named;
mod rounds;
mod tools;

use std::sync::Arc;

use dateline::{Http, Level, Limits, Object, Raw, Rejection, Revisions, Server};
use proto::downstream::Served;
use proto::{
    Answer, BoxFuture, Capabilities, Description, Event, Filter, InputRequest, InputRequired, Listening,
    Peer, Request,
};
use serde_json::{Value, json};
use spec::{Capability, Method, Question};
use testkit::{Client, Wire};
use tokio::net::TcpListener;

/// A client of a server in this process. On a pipe, a shell copies between its standard streams and a socket.
pub(crate) async fn local(wire: Wire, service: impl proto::Service) -> Client {
    locals(wire, service, 1).await.remove(0)
}

/// Clients of one server in this process.
pub(crate) async fn locals(wire: Wire, service: impl proto::Service, count: usize) -> Vec<Client> {
    let mut clients = Vec::with_capacity(count);
    if wire != Wire::Stdio {
        let bound = Http::new(service).bind("127.0.0.1:0").await.unwrap();
        let url = bound.url();
        tokio::spawn(bound.serve());
        for _ in 0..count {
            clients.push(Client::over(wire, &url).await);
        }
        return clients;
    }
    let served = Served { service: Arc::new(service), revisions: Revisions::ALL, limits: Limits::default() };
    let served = Arc::new(served);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    tokio::spawn(async move {
        for _ in 0..count {
            let (reader, writer) = listener.accept().await.unwrap().0.into_split();
            let (served, until) = (Arc::clone(&served), transport::CancellationToken::new());
            tokio::spawn(async move { transport::serve_pipe(reader, writer, served, until).await });
        }
    });
    for _ in 0..count {
        let copy = "exec 3<>/dev/tcp/127.0.0.1/$0; cat <&3 & exec cat >&3";
        clients.push(Client::pipe("bash", &["-c", copy, &port]));
    }
    clients
}

/// Waits until so many listens of a server run: that of a session begins once it is told that the client is ready.
pub(crate) async fn listening(server: &Server, count: usize) {
    let running = async {
        while server.notifier().listeners() < count {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(testkit::PATIENCE, running).await.expect("the listens begin");
}

/// A service that is no [`Server`]: the edges alone see to what goes out.
pub(crate) struct Custom {
    description: Arc<Description>,
    answer: fn(Request) -> BoxFuture<'static, Result<Answer, Rejection>>,
}

impl Custom {
    pub(crate) fn new(
        capabilities: &[Capability],
        answer: fn(Request) -> BoxFuture<'static, Result<Answer, Rejection>>,
    ) -> Custom {
        let description = Description {
            identity: Object::new().with("name", "custom").with("version", "1").into(),
            capabilities: capabilities.iter().fold(Capabilities::none(), |all, one| all.with(*one)),
            instructions: None,
            hint: dateline::CacheHint::default(),
            methods: Vec::new(),
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

    fn abandon(&self, _: proto::Request) {}
    fn header_params(&self, _: &str) -> std::sync::Arc<[proto::HeaderParam]> {
        std::sync::Arc::new([])
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
            let told = json!([{"uri": "demo://asks", "text": "told"}]);
            let result = match request.method {
                Method::ResourcesRead => json!({"ttlMs": 60_000, "cacheScope": "public", "contents": told}),
                Method::PromptsGet => json!({"messages": []}),
                _ => json!({"content": []}),
            };
            Ok(Answer::Complete(Object::of(&result)))
        })
    })
}

/// What [`asking`] asks for.
fn interim(kind: &str) -> InputRequired {
    let text = json!([{"role": "user", "content": {"type": "text", "text": "Hi"}}]);
    let tools = json!([{"name": "t", "inputSchema": {"type": "object"}}]);
    let (question, params) = match kind {
        "nothing" => return InputRequired::default(),
        "state" => return InputRequired { questions: Vec::new(), state: Some(Raw::from("s")) },
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
        "several" => (Question::Sample, several()),
        "conversation" => (Question::Sample, conversation()),
        "roots" => (Question::ListRoots, json!({})),
        _ => (
            Question::Elicit,
            json!({"mode": "form", "message": "Name?", "requestedSchema": form("name", "string")}),
        ),
    };
    InputRequired {
        questions: vec![("q".into(), InputRequest { question, params: Object::of(&params) })],
        state: None,
    }
}

/// A question to a model with a message of several blocks.
fn several() -> Value {
    let blocks =
        json!([{"type": "text", "text": "one"}, {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}]);
    json!({"messages": [
        {"role": "user", "content": blocks},
        {"role": "assistant", "content": [{"type": "text", "text": "two"}]},
    ], "maxTokens": 1})
}

/// A question to a model that has used a tool, and may again.
fn conversation() -> Value {
    let used = json!([{"type": "tool_use", "id": "u", "name": "t", "input": {"n": 1.5}}]);
    let given = json!([{"type": "text", "text": "42"}]);
    let given = json!([{"type": "tool_result", "toolUseId": "u", "content": given, "isError": false}]);
    json!({
        "messages": [{"role": "assistant", "content": used}, {"role": "user", "content": given}],
        "maxTokens": 1,
        "tools": [{"name": "t", "inputSchema": {"type": "object"}}],
        "toolChoice": {"mode": "auto"},
    })
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
pub(crate) fn everything() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}, "context": {}}, "roots": {}})
}

/// What a client's user, model or editor answers to a question.
pub(crate) fn answer(method: &str, params: &Value) -> Value {
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
pub(crate) fn retry(params: &Value, interim: &Value) -> Value {
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
