//! Streamable HTTP at the door: what is let in, in which form it is answered, and with which status.
//!
//! Beside the obligations these are the faults of the field's *doors* that concern a server.

mod batches;
mod cors;
mod crowd;
mod door;
mod forms;
mod headers;
mod held;
mod hosts;
mod limits;
mod posted;
mod resume;
mod sessions;
mod status;
mod streams;

use serde_json::{Value, json};
use testkit::{Client, MODERN, PATIENCE};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::era::{beside, echo, fitting, lent, meta, request};

/// A response, read by hand to the end of its connection.
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"), "{}: {}", self.status, self.body);
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{}: {e}: {}", self.status, self.body))
    }

    /// The code of the JSON-RPC error that the body must be, and the id of it.
    fn error(&self) -> (i64, Option<Value>) {
        let body = self.json();
        assert_eq!(body["jsonrpc"], "2.0", "{body}");
        assert!(body["error"]["message"].is_string() && body.get("result").is_none(), "{body}");
        (body["error"]["code"].as_i64().unwrap(), body.get("id").cloned())
    }

    /// Nothing but a status.
    fn is_empty(&self) -> bool {
        let length = self.header("content-length").unwrap_or("0");
        let no_kind = self.header("content-type").is_none() && self.header("transfer-encoding").is_none();
        self.body.is_empty() && length == "0" && no_kind
    }
}

async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.unwrap_or_else(|_| panic!("{what}: it takes too long"))
}

fn url(client: &Client) -> &str {
    client.program.as_ref().unwrap().url.as_deref().unwrap()
}

fn authority(url: &str) -> &str {
    url.strip_prefix("http://").unwrap().split('/').next().unwrap()
}

async fn connected(url: &str) -> TcpStream {
    within("connecting", TcpStream::connect(authority(url))).await.unwrap()
}

/// The head of a request. Headers named here replace the defaults, an empty value removes one.
fn head(url: &str, verb: &str, headers: &[(&str, &str)], length: usize) -> String {
    let length = length.to_string();
    let defaults = [
        ("Host", authority(url)),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("Content-Length", &length),
    ];
    let named = |name: &str| headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
    let kept = defaults.iter().filter(|(name, _)| !named(name));
    let given = headers.iter().filter(|(_, value)| !value.is_empty());
    let lines: String = kept.chain(given).map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let path = url.splitn(4, '/').last().unwrap();
    format!("{verb} /{path} HTTP/1.1\r\n{lines}\r\n")
}

/// Says something on a connection of its own and reads until the server closes it.
async fn told(url: &str, bytes: &[u8]) -> Answer {
    let mut stream = connected(url).await;
    // A server that refuses may stop to listen before all is said.
    let _ = within("writing", stream.write_all(bytes)).await;
    let mut read = Vec::new();
    let _ = within("the response", stream.read_to_end(&mut read)).await;
    let text = String::from_utf8(read).unwrap();
    testkit::saw_http(url, &String::from_utf8_lossy(bytes), &text);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no response, but {text:?}"));
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let pair = |line: &str| line.split_once(": ").map(|(n, v)| (n.to_owned(), v.to_owned())).unwrap();
    Answer { status, headers: lines.map(pair).collect(), body: body.to_owned() }
}

async fn fetch(url: &str, verb: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let all = [headers, &[("Connection", "close")]].concat();
    let answer = told(url, [&head(url, verb, &all, body.len()), body].concat().as_bytes()).await;
    if verb == "POST" {
        judge(headers, body, &answer);
    }
    answer
}

/// Has the referee judge what came back: one message, or the events of a stream.
fn judge(headers: &[(&str, &str)], asked: &str, answer: &Answer) {
    let named = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("mcp-protocol-version"));
    let named = named.and_then(|(_, version)| spec::Revision::parse(version));
    let mut judge = testkit::TrafficJudge::new(spec::Direction::ToClient);
    // What a session answers is of its revision, which is not known here.
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("mcp-session-id")) {
        judge.note_requests(&serde_json::from_str(asked).unwrap_or_default());
    }
    let events = answer.body.lines().filter_map(|line| line.strip_prefix("data:"));
    for text in events.chain([answer.body.as_str()]) {
        if let Ok(message) = serde_json::from_str::<Value>(text) {
            judge.judge(&message, named, Some(spec::Revision::UNNAMED)).unwrap();
        }
    }
}

/// A modern request with the headers that fit it, and these instead.
async fn fetch_modern(url: &str, request: &Value, headers: &[(&str, &str)]) -> Answer {
    let fitting = fitting(request);
    let named = |name: &str| headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
    let all: Vec<_> =
        lent(&fitting).into_iter().filter(|(name, _)| !named(name)).chain(headers.iter().copied()).collect();
    fetch(url, "POST", &all, &request.to_string()).await
}

fn discover(id: &str) -> Value {
    request(id, "server/discover", json!({"_meta": meta(MODERN)}))
}

fn initialize(revision: &str) -> Value {
    let info = json!({"name": "testkit", "version": "1"});
    request("i", "initialize", json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": info}))
}

/// A live session of the server that another client started.
async fn session(server: &Client, revision: &'static str, capabilities: Value) -> Client {
    let mut client = beside(server);
    client.handshake(revision, capabilities).await;
    client
}

fn id_of(session: &Client) -> String {
    session.session.clone().unwrap()
}

/// Posts what is no request; gives what came back.
async fn post(url: &str, headers: &[(&str, &str)], message: &Value) -> Answer {
    fetch(url, "POST", headers, &message.to_string()).await
}

fn with_progress() -> Value {
    json!({"name": "countdown", "arguments": {"from": 2, "intervalMs": 1}, "_meta": {"progressToken": "t"}})
}

/// Calls another client's tool until the call of this id is among the cancelled ones.
async fn is_cancelled(client: &mut Client, id: &Value) {
    let id = id.to_string();
    let listed = async {
        while !client.call("cancelled_calls", json!({})).await.said().split(' ').any(|listed| listed == id) {}
    };
    within(&format!("cancelling {id}"), listed).await;
}

/// A request of each method that has a name in a header, and that name.
fn named() -> [(Value, &'static str); 3] {
    let haiku = json!({"name": "haiku", "arguments": {"topic": "rain"}, "_meta": meta(MODERN)});
    let welcome = json!({"uri": "demo://welcome", "_meta": meta(MODERN)});
    [
        (request("t", "tools/call", echo(meta(MODERN))), "echo"),
        (request("p", "prompts/get", haiku), "haiku"),
        (request("r", "resources/read", welcome), "demo://welcome"),
    ]
}

/// A header that does not fit: -32020 with 400, to the request's id.
fn is_mismatch(answer: &Answer, asked: &Value, told: &str) {
    let (code, id) = answer.error();
    assert_eq!((answer.status, code, id.as_ref()), (400, -32020, asked.get("id")), "{told}: {}", answer.body);
}
