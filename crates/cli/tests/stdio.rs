//! Standard streams to the byte: one message a line, and what becomes of lines that are no messages.

use std::process::Stdio;

use serde_json::{Value, json};
use testkit::{Arrival, Between, Client, LATEST_LEGACY, LEGACY, MODERN, Observer, PATIENCE, Wire};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::DATELINE;
use crate::msg::response;

/// A text that holds every kind of line break, control and non-ASCII characters.
const TRICKY: &str = "a\nb\r\nc\u{2028}d\u{2029}e\u{85}f\t\"\\\u{0}\u{7f}é日😀";

/// A program whose streams are read and written as bytes.
struct Bytes {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    log: JoinHandle<String>,
    /// All output so far.
    seen: Vec<u8>,
    observer: Observer,
    judge: testkit::TrafficJudge,
}

impl Bytes {
    fn start(args: &[&str]) -> Bytes {
        let mut child = Command::new(DATELINE)
            .args(args)
            .env("HOME", "/dev/null")
            .env_remove("DATELINE_CONFIG")
            .env_remove("DATELINE_LOG")
            .env_remove("XDG_CONFIG_HOME")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        let log = tokio::spawn(all(child.stderr.take().unwrap()));
        let observer = Observer::new(Wire::Stdio, Between::Nothing);
        let judge = testkit::TrafficJudge::new(spec::Direction::ToClient);
        Bytes { child, input, output, log, seen: Vec::new(), observer, judge }
    }

    /// A demo, with a session of this revision unless it is the modern one.
    async fn demo(args: &[&str], revision: &str) -> Bytes {
        let mut bytes = Bytes::start(&[&["demo", "--stdio"], args].concat());
        if revision != MODERN {
            bytes.handshake(revision).await;
        }
        bytes
    }

    async fn handshake(&mut self, revision: &str) {
        let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        self.message(&json!({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": params}))
            .await;
        let reply = self.line().await;
        assert_eq!(reply["result"]["protocolVersion"], revision, "{reply}");
        self.message(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    }

    async fn write(&mut self, bytes: &[u8]) {
        self.observer.sent(0, bytes, &[], None);
        // Bytes that are no message ask nothing.
        for line in bytes.split(|byte| *byte == b'\n') {
            self.judge.note_requests(&serde_json::from_slice(line).unwrap_or_default());
        }
        let input = self.input.as_mut().unwrap();
        timeout(PATIENCE, input.write_all(bytes)).await.expect("the input is read in time").unwrap();
    }

    async fn message(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes()).await;
    }

    /// The next line, which must be a message.
    async fn line(&mut self) -> Value {
        let start = self.seen.len();
        let read = timeout(PATIENCE, self.output.read_until(b'\n', &mut self.seen)).await;
        read.unwrap_or_else(|_| panic!("no line came after {:?}", tail(&self.seen))).unwrap();
        let line = &self.seen[start..];
        let message: Value = serde_json::from_slice(line).unwrap_or_else(|e| panic!("{e}: {:?}", tail(line)));
        self.observer.received(&Arrival::Message(0, message.clone(), String::new()), None);
        self.judge.judge(&message, None, None).unwrap();
        message
    }

    /// The answer to an echo, which must be the next line.
    async fn is_alive(&mut self, revision: &str, after: &str) {
        let params = stamped(revision, json!({"name": "echo", "arguments": {"message": "still here"}}));
        self.message(&json!({"jsonrpc": "2.0", "id": "alive", "method": "tools/call", "params": params}))
            .await;
        let line = self.line().await;
        assert_eq!(line["id"], "alive", "{revision}: after {after}: {line}");
        assert_eq!(line["result"]["content"][0]["text"], "still here", "{revision}: after {after}: {line}");
    }

    /// The response to an id, behind whatever notifications.
    async fn answer(&mut self, id: &str) -> Value {
        loop {
            let line = self.line().await;
            if line["id"] == id {
                return line;
            }
        }
    }

    /// Closes the input; gives all that was written to the output, and to stderr, until the program ended.
    async fn end(mut self) -> (Vec<u8>, String) {
        drop(self.input.take());
        let start = self.seen.len();
        let rest = timeout(PATIENCE, self.output.read_to_end(&mut self.seen)).await;
        rest.expect("the output ends").unwrap();
        for line in self.seen[start..].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let message = serde_json::from_slice(line).unwrap_or_else(|e| panic!("{e}: {:?}", tail(line)));
            self.judge.judge(&message, None, None).unwrap();
        }
        let status = timeout(PATIENCE, self.child.wait()).await.expect("the program ends").unwrap();
        assert_eq!(status.code(), Some(0));
        (self.seen, self.log.await.unwrap())
    }
}

async fn all(mut stream: impl AsyncRead + Unpin) -> String {
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text).await;
    String::from_utf8(text).expect("stderr is UTF-8")
}

/// The end of what may be long.
fn tail(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(500)..]).into_owned()
}

/// Params in the form of a revision's requests.
fn stamped(revision: &str, mut params: Value) -> Value {
    if revision == MODERN {
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = MODERN.into();
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    }
    params
}

fn revisions() -> impl Iterator<Item = &'static str> {
    LEGACY.into_iter().chain([MODERN])
}

/// The id of an error to what could not be read: none; in the older revisions, whose error messages need one, null.
pub(crate) fn id_of_unreadable(revision: &str) -> Option<Value> {
    ["2024-11-05", "2025-03-26", "2025-06-18"].contains(&revision).then_some(Value::Null)
}

/// Requests whose answers are long, hold line breaks, or come with notifications.
fn talkative(revision: &str) -> Vec<(&'static str, Value)> {
    let call = |name: &str, arguments: Value| {
        let meta = match revision {
            MODERN => json!({"progressToken": "p\n", "io.modelcontextprotocol/logLevel": "debug"}),
            _ => json!({"progressToken": "p\n"}),
        };
        ("tools/call", json!({"name": name, "arguments": arguments, "_meta": meta}))
    };
    vec![
        call("echo", json!({"message": TRICKY})),
        call("echo", json!({"message": "long ".repeat(100_000)})),
        call("no such tool\n\r\n", json!({})),
        call("test_tool_with_progress", json!({})),
        call("test_tool_with_logging", json!({})),
        call("test_multiple_content_types", json!({})),
        ("tools/list", json!({})),
        ("resources/read", json!({"uri": "no such\nresource"})),
        ("prompts/get", json!({"name": "haiku", "arguments": {"topic": TRICKY}})),
        ("no/such\nmethod", json!({})),
    ]
}

#[testkit::test]
async fn stdio_01_one_message_a_line_and_nothing_else_on_stdout() {
    for revision in revisions() {
        let mut bytes = Bytes::demo(&[], revision).await;
        let requests = talkative(revision);
        let answers = requests.len() + usize::from(revision != MODERN);
        for (id, (method, params)) in requests.iter().enumerate() {
            let params = stamped(revision, params.clone());
            bytes.message(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        }
        let (mut open, mut echoed, mut notified) = (requests.len(), Value::Null, Vec::new());
        while open > 0 {
            let line = bytes.line().await;
            match line.get("method") {
                Some(method) => notified.push(method.as_str().unwrap().to_owned()),
                None => open -= 1,
            }
            if line["id"] == 0 {
                echoed = line["result"]["content"][0]["text"].clone();
            }
        }
        assert_eq!(echoed, TRICKY, "{revision}");
        assert_eq!(notified.iter().filter(|m| *m == "notifications/progress").count(), 3, "{revision}");
        assert_eq!(notified.iter().filter(|m| *m == "notifications/message").count(), 3, "{revision}");

        let (output, _) = bytes.end().await;
        let text = String::from_utf8(output).expect("the output is UTF-8");
        assert!(text.ends_with('\n') && !text.contains('\r'), "{revision}");
        let mut answered = 0;
        for line in text.split_terminator('\n') {
            let message: Value =
                serde_json::from_str(line).unwrap_or_else(|e| panic!("{revision}: {e}: {line:?}"));
            assert_eq!(message["jsonrpc"], "2.0", "{revision}: {line}");
            let kinds =
                ["method", "result", "error"].iter().filter(|kind| message.get(kind).is_some()).count();
            assert_eq!(kinds, 1, "{revision}: one message a line: {line}");
            answered += usize::from(message.get("method").is_none());
        }
        assert_eq!(answered, answers, "{revision}");
    }
}

#[testkit::test]
async fn stdio_01_logs_go_to_stderr() {
    let file = std::env::temp_dir().join(format!("dateline-stdio-01-{}.json", std::process::id()));
    let good = json!({"command": DATELINE, "args": ["demo", "--stdio"]});
    let config = json!({"mcpServers": {"good": good, "bad": {"command": "/nonexistent/program"}}});
    std::fs::write(&file, config.to_string()).unwrap();
    let mut bytes = Bytes::start(&["--log-level", "trace", "stdio", "--config", file.to_str().unwrap()]);
    let params = stamped(MODERN, json!({}));
    bytes.message(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params})).await;
    let listed = bytes.line().await;
    assert_eq!(listed["id"], 1, "{listed}");
    bytes.write(b"rubbish\n").await;
    assert_eq!(bytes.line().await["error"]["code"], -32700);
    let (output, log) = bytes.end().await;
    std::fs::remove_file(&file).unwrap();
    assert_eq!(output.iter().filter(|b| **b == b'\n').count(), 2, "{:?}", tail(&output));
    for level in ["INFO", "WARN"] {
        assert!(log.contains(level), "{level} is logged on stderr: {log:?}");
    }
}

#[testkit::test]
async fn stdio_02_a_line_that_is_no_json_or_too_long_is_refused_and_the_next_one_served() {
    const LIMIT: usize = 2000;
    let padded = |length: usize| {
        let ping = |room| format!(r#"{{"jsonrpc":"2.0","id":1,{}"method":"ping"}}"#, " ".repeat(room));
        ping(length - ping(0).len())
    };
    let refused: [(&str, Vec<u8>); 8] = [
        ("half a message", br#"{"jsonrpc":"2.0","id":1,"method":"ping""#.to_vec()),
        ("text", b"Server is listening".to_vec()),
        ("bytes that are not UTF-8", b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}".to_vec()),
        ("zeros", vec![0; 100]),
        ("two messages in one line", [padded(60), padded(60)].concat().into_bytes()),
        ("one byte more than the limit", padded(LIMIT + 1).into_bytes()),
        // Longer than one read takes in, and ending in the middle of one.
        ("a megabyte", padded((1 << 20) + 777).into_bytes()),
        ("a megabyte of text", vec![b'x'; (1 << 20) + 777]),
    ];
    for revision in revisions() {
        let mut bytes = Bytes::demo(&["--max-message", &LIMIT.to_string()], revision).await;
        for (what, line) in &refused {
            bytes.write(&[line.as_slice(), b"\n"].concat()).await;
            let error = bytes.line().await;
            assert_eq!(error["error"]["code"], -32700, "{revision}: {what}: {error}");
            assert!(error["error"]["message"].is_string(), "{revision}: {what}: {error}");
            assert_eq!(error.get("id").cloned(), id_of_unreadable(revision), "{revision}: {what}: {error}");
            bytes.is_alive(revision, what).await;
        }
        if revision != MODERN {
            bytes.write(format!("{}\n", padded(LIMIT)).as_bytes()).await;
            assert_eq!(
                bytes.line().await["result"],
                json!({}),
                "{revision}: what is as long as the limit is taken"
            );
        }
    }
}

/// Lines that are no message a server can take, each with the code of its error.
pub(crate) fn rubbish() -> Vec<(Vec<u8>, i64)> {
    let nested = |open: &str, close: &str| [open.repeat(5000), close.repeat(5000)].concat();
    let texts: [(&str, i64); 38] = [
        ("rubbish", -32700),
        ("{", -32700),
        ("}", -32700),
        ("[", -32700),
        ("\"", -32700),
        ("{]", -32700),
        ("nul", -32700),
        ("01", -32700),
        ("NaN", -32700),
        ("{'jsonrpc': '2.0'}", -32700),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping",}"#, -32700),
        (r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025"#, -32700),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}{"#, -32700),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping"} // as you asked"#, -32700),
        ("Content-Length: 40", -32700),
        ("GET /mcp HTTP/1.1", -32700),
        ("<html><body>502 Bad Gateway</body></html>", -32700),
        ("\u{1b}[32mready\u{1b}[0m", -32700),
        ("null", -32600),
        ("true", -32600),
        ("1", -32600),
        ("1e400", -32600),
        ("\"ping\"", -32600),
        ("[]", -32600),
        ("[1,2,3]", -32600),
        ("[null]", -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"initialize"},{"jsonrpc":"2.0","method":"x"}]"#, -32600),
        ("{}", -32600),
        (r#"{"jsonrpc":"2.0"}"#, -32600),
        (r#"{"jsonrpc":"2.0","params":{}}"#, -32600),
        (r#"{"jsonrpc":"2.0","result":{}}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"initialize","params":{}}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"initialize","params":{}}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":false,"method":5}"#, -32600),
    ];
    let mut all: Vec<(Vec<u8>, i64)> = texts.map(|(text, code)| (text.as_bytes().to_vec(), code)).into();
    all.extend([
        (nested("[", "]").into_bytes(), -32700),
        (nested("{\"a\":", "}").into_bytes(), -32700),
        ("[".repeat(100_000).into_bytes(), -32700),
        ((0..=255).filter(|b| *b != b'\n').collect(), -32700),
        (b"\x7fELF\x02\x01\x01\0\0\0".to_vec(), -32700),
        (b"\xff\xfe{\0}\0".to_vec(), -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\xc3\"}".to_vec(), -32700),
        // A surrogate in UTF-8 is not UTF-8.
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xed\xa0\x80\"}".to_vec(), -32700),
    ]);
    all
}

#[testkit::test]
async fn rubbish_before_initialize_is_refused_line_by_line_and_the_pipe_lives_on() {
    let mut bytes = Bytes::start(&["demo", "--stdio"]);
    for (line, code) in rubbish() {
        bytes.write(&[line.as_slice(), b"\n"].concat()).await;
        let error = bytes.line().await;
        assert_eq!(error["error"]["code"], code, "{:?}: {error}", tail(&line));
        assert_eq!(error.get("id"), None, "{:?}: {error}", tail(&line));
        bytes.is_alive(MODERN, &tail(&line)).await;
    }
    bytes.handshake(LATEST_LEGACY).await;
    bytes.is_alive(LATEST_LEGACY, "the handshake").await;
    let (output, _) = bytes.end().await;
    assert_eq!(output.iter().filter(|b| **b == b'\n').count(), 2 * rubbish().len() + 2);
}

#[testkit::test]
async fn rubbish_in_a_session_is_refused_line_by_line_and_the_session_lives_on() {
    for revision in LEGACY {
        let mut bytes = Bytes::demo(&[], revision).await;
        // Arrays are no rubbish in every revision.
        for (line, code) in rubbish().into_iter().filter(|(line, _)| !line.starts_with(b"[")) {
            bytes.write(&[line.as_slice(), b"\n"].concat()).await;
            let error = bytes.line().await;
            assert_eq!(error["error"]["code"], code, "{revision}: {:?}: {error}", tail(&line));
            assert_eq!(error.get("id").cloned(), id_of_unreadable(revision), "{revision}: {:?}", tail(&line));
            bytes.is_alive(revision, &tail(&line)).await;
        }
    }
}

#[testkit::test]
async fn requests_before_initialize_are_refused_one_by_one_and_the_handshake_still_works() {
    let init = |params: Value| ("initialize", params);
    let refused = [
        ("tools/list", json!({})),
        ("tools/call", json!({"name": "echo", "arguments": {"message": "hi"}})),
        ("resources/subscribe", json!({"uri": "demo://welcome"})),
        ("logging/setLevel", json!({"level": "debug"})),
        ("no/such/method", json!({})),
        ("", json!({})),
        init(json!({})),
        init(json!([])),
        init(
            json!({"protocolVersion": 20_251_125, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}),
        ),
        init(
            json!({"protocolVersion": LATEST_LEGACY, "capabilities": [], "clientInfo": {"name": "t", "version": "1"}}),
        ),
        init(json!({"protocolVersion": LATEST_LEGACY, "clientInfo": {"name": "t", "version": "1"}})),
    ];
    let mut bytes = Bytes::start(&["demo", "--stdio"]);
    for (id, (method, params)) in refused.iter().enumerate() {
        bytes.message(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        let error = bytes.line().await;
        assert_eq!(error["id"], id, "{method} {params}: {error}");
        assert_eq!(error["error"]["code"], -32602, "{method} {params}: {error}");
        bytes.is_alive(MODERN, method).await;
    }
    bytes.handshake("2025-06-18").await;
    bytes.is_alive("2025-06-18", "the handshake").await;
}

#[testkit::test]
async fn responses_to_nothing_are_not_answered() {
    for revision in revisions() {
        let mut bytes = Bytes::demo(&[], revision).await;
        for response in [
            json!({"jsonrpc": "2.0", "id": 1, "result": {}}),
            json!({"jsonrpc": "2.0", "id": "alive", "error": {"code": -32603, "message": "no"}}),
            json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "no"}}),
            json!({"jsonrpc": "2.0", "error": {"code": -32700, "message": "no"}}),
            json!({"jsonrpc": "2.0", "id": 2, "result": null}),
        ] {
            bytes.message(&response).await;
            bytes.is_alive(revision, &response.to_string()).await;
        }
    }
}

#[testkit::test]
async fn a_byte_order_mark_windows_line_ends_and_empty_lines_are_taken() {
    for revision in revisions() {
        let mut bytes = Bytes::start(&["demo", "--stdio"]);
        bytes.write(b"\xef\xbb\xbf").await;
        if revision != MODERN {
            bytes.handshake(revision).await;
        }
        let params = stamped(revision, json!({"name": "echo", "arguments": {"message": TRICKY}}));
        let call = |id| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        let text = format!("\r\n\n   \t \n{}\r\n\r\n  {}  \r\n{}", call(1), call(2), call(3));
        bytes.write(text.as_bytes()).await;
        for id in [1, 2] {
            let line = bytes.line().await;
            assert_eq!(
                (&line["id"], &line["result"]["content"][0]["text"]),
                (&json!(id), &json!(TRICKY)),
                "{revision}"
            );
        }
        // Half a line, at the end of the input, is a line.
        let answered = usize::from(revision != MODERN) + 2;
        let (output, _) = bytes.end().await;
        let text = String::from_utf8(output).unwrap();
        let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        assert_eq!((text.lines().count(), &last["id"]), (answered + 1, &json!(3)), "{revision}: {last}");
        assert_eq!(last["result"]["content"][0]["text"], TRICKY, "{revision}");
    }
}

#[testkit::test]
async fn a_line_of_fifty_megabytes_is_refused_and_one_of_eight_is_served() {
    let mut client = Client::start(Wire::Stdio, DATELINE, &["demo"]).await;
    client.send_text(&"x".repeat((50 << 20) + 777), &[]).await;
    let error = client.message("an error", |m| m.get("error").is_some()).await;
    assert_eq!((&error["error"]["code"], error.get("id")), (&json!(-32700), None), "{error}");
    let long = "y".repeat(8 << 20);
    let reply = client.call("echo", json!({"message": long})).await;
    assert!(reply.said() == long, "a long message comes back whole");
}

#[testkit::test]
async fn a_thousand_lines_at_once_are_all_answered() {
    for revision in revisions() {
        let mut client = crate::msg::client(Wire::Stdio, revision, json!({})).await;
        for id in 0..1000 {
            let arguments =
                json!({"name": "echo", "arguments": {"message": format!("{id} {}", "z".repeat(500))}});
            client.begin_as(json!(format!("call {id}")), "tools/call", arguments).await;
        }
        for id in 0..1000 {
            let reply = response(&mut client, &json!(format!("call {id}"))).await;
            let said = reply["result"]["content"][0]["text"].as_str().unwrap_or_default();
            assert!(said.starts_with(&format!("{id} z")), "{revision}: {reply}");
        }
        assert!(client.leftovers().is_empty(), "{revision}: nothing is answered twice");
    }
}

/// A gateway over a demo, on standard streams.
fn over_a_demo() -> (Bytes, crate::gateway::Config) {
    let config =
        crate::gateway::Config::new(&[("demo", json!({"command": DATELINE, "args": ["demo", "--stdio"]}))]);
    (Bytes::start(&["stdio", "--config", config.path()]), config)
}

fn slow(revision: &str, id: &str) -> Value {
    let params = json!({"name": "slow_compute", "arguments": {"seconds": 0.5, "label": id}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": stamped(revision, params)})
}

/// The messages in what was written.
fn messages(output: &[u8]) -> Vec<Value> {
    let lines = output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

#[testkit::test]
async fn what_was_asked_before_the_input_ends_is_answered_by_a_gateway_as_by_a_server() {
    for revision in revisions() {
        for gateway in [false, true] {
            let (mut bytes, _config) = match gateway {
                true => over_a_demo(),
                false => (Bytes::start(&["demo", "--stdio"]), crate::gateway::Config::new(&[])),
            };
            // All is said at once, before anything is answered.
            let mut asked = Vec::new();
            if revision != MODERN {
                let params = json!({"protocolVersion": revision, "capabilities": {"sampling": {}}, "clientInfo": {"name": "t", "version": "1"}});
                asked.push(json!({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": params}));
                asked.push(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
                // Who will answer no question is not waited for.
                let question = json!({"name": "test_sampling", "arguments": {"prompt": "?"}});
                asked.push(
                    json!({"jsonrpc": "2.0", "id": "asks", "method": "tools/call", "params": question}),
                );
            } else {
                let listen = stamped(revision, json!({"notifications": {"toolsListChanged": true}}));
                asked.push(
                    json!({"jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen", "params": listen}),
                );
            }
            asked.push(slow(revision, "slow"));
            asked.push(json!({"jsonrpc": "2.0", "id": "list", "method": "tools/list", "params": stamped(revision, json!({}))}));
            for message in &asked {
                bytes.message(message).await;
            }
            let said = messages(&bytes.end().await.0);
            for id in ["slow", "list"] {
                let answer =
                    said.iter().find(|message| message["id"] == id && message.get("method").is_none());
                let answer =
                    answer.unwrap_or_else(|| panic!("{revision} {gateway}: no answer to {id}: {said:?}"));
                assert!(answer.get("result").is_some(), "{revision} {gateway}: {answer}");
            }
        }
    }
}

#[testkit::test]
async fn what_was_asked_before_the_process_is_told_to_end_is_answered() {
    for revision in revisions() {
        let (mut bytes, _config) = over_a_demo();
        if revision != MODERN {
            bytes.handshake(revision).await;
        }
        let list = |id| json!({"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": stamped(revision, json!({}))});
        bytes.message(&list("before")).await;
        bytes.answer("before").await;
        bytes.message(&slow(revision, "slow")).await;
        // With its answer the call before it was read, too.
        bytes.message(&list("after")).await;
        bytes.answer("after").await;
        let pid = bytes.child.id().unwrap().to_string();
        assert!(std::process::Command::new("kill").args(["-s", "TERM", &pid]).status().unwrap().success());
        let answer = bytes.answer("slow").await;
        assert!(answer.get("result").is_some(), "{revision}: {answer}");
        bytes.end().await;
    }
}

#[testkit::test]
async fn a_client_that_asks_without_reading_is_not_read_on_and_gets_every_answer_later() {
    const FLOOD: usize = 30_000;
    let mut bytes = Bytes::demo(&[], LATEST_LEGACY).await;
    let mut input = bytes.input.take().unwrap();
    let (told, mut written) = tokio::sync::watch::channel(0);
    let writing = tokio::spawn(async move {
        for id in 0..FLOOD {
            let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n");
            input.write_all(line.as_bytes()).await.unwrap();
            told.send_replace(id + 1);
        }
        input
    });
    // It comes to a halt, far from the end: half a second without a line is a halt, since a line takes microseconds.
    let halt = std::time::Duration::from_millis(500);
    while timeout(halt, written.changed()).await.is_ok_and(|told| told.is_ok()) {}
    let halted = *written.borrow();
    assert!(halted < FLOOD / 2, "{halted} requests were taken, and no answer was read");
    for id in 0..FLOOD {
        let line = bytes.line().await;
        assert_eq!(line["id"], id);
        bytes.seen.clear();
    }
    bytes.input = Some(writing.await.unwrap());
    bytes.end().await;
}
