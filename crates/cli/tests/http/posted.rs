//! HTTP+SSE: an event stream that says where to post, and the doors of both routes.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use testkit::{Arrival, Client, LEGACY, MODERN, Wire, sse_url};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::resume::open_files;
use super::{Answer, authority, connected, fetch, initialize, is_cancelled, url, within};
use crate::era::{echo, meta, request};
use crate::{long_countdown, modern};

/// An event stream, as bytes.
struct Raw {
    stream: TcpStream,
    text: String,
}

impl Raw {
    /// Opens one in a version of HTTP in which the body is as it was written.
    async fn open(sse: &str, headers: &str) -> Raw {
        let mut stream = connected(sse).await;
        let head = format!("GET /sse HTTP/1.0\r\nHost: {}\r\n{headers}\r\n", authority(sse));
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut raw = Raw { stream, text: String::new() };
        let head = raw.until("\r\n\r\n").await.to_ascii_lowercase();
        assert!(head.starts_with("http/1.0 200 "), "{head}");
        for line in ["content-type: text/event-stream", "cache-control: no-store", "x-accel-buffering: no"] {
            assert!(head.contains(line), "{line}: {head}");
        }
        raw
    }

    /// Takes out what comes up to an end.
    async fn until(&mut self, end: &str) -> String {
        while !self.text.contains(end) {
            let mut buffer = vec![0; 1 << 16];
            let read = within("an event", self.stream.read(&mut buffer)).await.unwrap();
            assert!(read > 0, "the stream ended after {:?}", self.text);
            self.text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
        }
        let at = self.text.find(end).unwrap() + end.len();
        self.text.drain(..at).collect()
    }

    /// The URL that the first event names.
    async fn endpoint(&mut self, sse: &str) -> String {
        let event = self.until("\n\n").await;
        let path = event.strip_prefix("event: endpoint\ndata: ").and_then(|rest| rest.strip_suffix("\n\n"));
        let path = path.unwrap_or_else(|| panic!("the first event is {event:?}"));
        format!("http://{}{path}", authority(sse))
    }

    /// The message of the next event, which must be just that.
    async fn message(&mut self) -> Value {
        let event = self.until("\n\n").await;
        let data = event.strip_prefix("event: message\ndata: ").and_then(|rest| rest.strip_suffix("\n\n"));
        serde_json::from_str(data.unwrap_or_else(|| panic!("an event is {event:?}"))).unwrap()
    }
}

/// The id of the session that posts to a URL.
fn id_in(endpoint: &str) -> &str {
    endpoint.rsplit_once("session_id=").unwrap().1
}

async fn accepted(endpoint: &str, message: &Value) {
    let answer = fetch(endpoint, "POST", &[("Accept", "")], &message.to_string()).await;
    assert!(answer.status == 202 && answer.is_empty(), "{message}: {} {:?}", answer.status, answer.body);
}

#[testkit::test]
async fn sse_01_the_stream_opens_with_the_endpoint_and_every_message_is_a_message_event() {
    // The bytes are read by hand, below what a client shows.
    testkit::covers(&LEGACY, Wire::Sse, testkit::Between::Nothing);
    let server = modern(Wire::Http).await;
    let sse = sse_url(url(&server));
    for revision in LEGACY {
        let mut raw = Raw::open(&sse, "Accept: text/event-stream\r\n").await;
        let endpoint = raw.endpoint(&sse).await;
        let mut opening = initialize(revision);
        opening["params"]["capabilities"] = json!({"sampling": {}});
        accepted(&endpoint, &opening).await;
        assert_eq!(raw.message().await["result"]["protocolVersion"], revision);
        accepted(&endpoint, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        // Responses, progress, log messages, changes and questions.
        let counting = json!({"name": "countdown", "arguments": {"from": 1, "intervalMs": 1}, "_meta": {"progressToken": 7}});
        accepted(&endpoint, &request(1, "tools/call", counting)).await;
        for step in 0..2 {
            let told = raw.message().await;
            assert_eq!(
                (&told["params"]["progressToken"], &told["params"]["progress"]),
                (&json!(7), &json!(f64::from(step)))
            );
        }
        assert_eq!(raw.message().await["id"], 1, "{revision}");
        accepted(&endpoint, &request(2, "tools/call", json!({"name": "test_logging_tool", "arguments": {}})))
            .await;
        assert_eq!(raw.message().await["method"], "notifications/message", "{revision}");
        assert_eq!(raw.message().await["id"], 2, "{revision}");
        accepted(
            &endpoint,
            &request(3, "tools/call", json!({"name": "test_trigger_tool_change", "arguments": {}})),
        )
        .await;
        let both = [raw.message().await, raw.message().await];
        assert_eq!(
            both.iter().filter(|m| m["method"] == "notifications/tools/list_changed").count(),
            1,
            "{revision}: {both:?}"
        );
        assert_eq!(both.iter().filter(|m| m["id"] == 3).count(), 1, "{revision}: {both:?}");
        accepted(
            &endpoint,
            &request(4, "tools/call", json!({"name": "test_sampling", "arguments": {"prompt": "?"}})),
        )
        .await;
        let question = raw.message().await;
        assert_eq!(question["method"], "sampling/createMessage", "{revision}");
        let result = json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}});
        accepted(&endpoint, &json!({"jsonrpc": "2.0", "id": question["id"], "result": result})).await;
        assert_eq!(raw.message().await["result"]["content"][0]["text"], "LLM response: Paris", "{revision}");
        // What is not acceptable as a message, but is JSON, is refused where the answers are.
        accepted(&endpoint, &json!({"jsonrpc": "2.0", "id": 5})).await;
        let refused = raw.message().await;
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(5), &json!(-32600)), "{revision}");
        accepted(&endpoint, &request(6, "no/method", json!({}))).await;
        assert_eq!(raw.message().await["error"]["code"], -32601, "{revision}");
    }
    // A client that says nothing about what it takes gets the stream too.
    Raw::open(&sse, "").await.endpoint(&sse).await;
}

#[testkit::test]
async fn sse_02_the_session_s_id_has_128_random_bits_and_is_gone_with_its_stream() {
    let server = modern(Wire::Http).await;
    let quiet = open_files(&server);
    let sse = sse_url(url(&server));
    let mut ids = BTreeSet::new();
    let mut seen: Vec<BTreeSet<u8>> = Vec::new();
    let mut last = String::new();
    for _ in 0..200 {
        let mut raw = Raw::open(&sse, "").await;
        last = raw.endpoint(&sse).await;
        let id = id_in(&last);
        assert!(id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~".contains(&b)), "{id:?}");
        seen.resize(seen.len().max(id.len()), BTreeSet::new());
        id.bytes().zip(&mut seen).for_each(|(byte, at)| {
            at.insert(byte);
        });
        assert!(ids.insert(id.to_owned()), "{id} was given twice");
    }
    #[allow(clippy::cast_precision_loss)]
    let bits: f64 = seen.iter().map(|bytes| (bytes.len() as f64).log2()).sum();
    assert!(bits >= 128.0, "{bits} bits");
    let noticed = async {
        while open_files(&server) != quiet {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    };
    within("the end of all streams", noticed).await;
    let answer = fetch(&last, "POST", &[], &initialize(LEGACY[0]).to_string()).await;
    assert_eq!((answer.status, answer.error().1), (404, None), "{}", answer.body);
}

/// Asserts that something is refused, with an error as the body that answers no request.
fn is_refused(answer: &Answer, status: u16, told: &str) {
    let (code, id) = answer.error();
    assert_eq!((answer.status, id.filter(|id| !id.is_null())), (status, None), "{told}: {}", answer.body);
    assert!(!(-32099..=-32020).contains(&code), "{told}: {code} is of another era");
}

#[testkit::test]
async fn sse_02_both_doors_refuse_what_is_foreign_unknown_or_no_message() {
    let server = modern(Wire::Http).await;
    let sse = sse_url(url(&server));
    let mut client = Client::connect_sse(&sse).await;
    client.handshake(LEGACY[0], json!({})).await.result();
    let endpoint = client.endpoint().to_owned();
    let good =
        request("never", "tools/call", json!({"name": "echo", "arguments": {"message": "hi"}})).to_string();
    let folder = sse.rsplit_once('/').unwrap().0;
    // Origin and Host, before anything else: whether there is such a session is nobody's business.
    let unknown = format!("{folder}/message?session_id=00000000000000000000000000000000");
    let doubled = format!("{endpoint}&session_id=x");
    for (at, verb) in [
        (&sse, "GET"),
        (&sse, "POST"),
        (&endpoint, "POST"),
        (&endpoint, "GET"),
        (&unknown, "POST"),
        (&doubled, "POST"),
    ] {
        for foreign in
            [("Origin", "https://evil.example"), ("Origin", "null"), ("Host", "evil.example"), ("Host", "")]
        {
            let answer = fetch(at, verb, &[foreign], &good).await;
            if foreign == ("Host", "") {
                assert!([400, 403].contains(&answer.status), "{verb} {at} without a Host: {}", answer.status);
            } else {
                is_refused(&answer, 403, &format!("{verb} {at} {foreign:?}"));
            }
        }
    }
    let own = format!("http://{}", authority(&sse));
    accepted(&endpoint, &json!({"jsonrpc": "2.0", "method": "notifications/none"})).await;
    let answer = fetch(
        &endpoint,
        "POST",
        &[("Origin", &own)],
        &json!({"jsonrpc": "2.0", "method": "notifications/none"}).to_string(),
    )
    .await;
    assert_eq!(answer.status, 202, "its own pages may");
    // A session that is not there, however it is not named.
    for bad in [
        "",
        "?",
        "?session_id=",
        "?session_id",
        "?sessionId=x",
        "?session_id=%00",
        "?session_id=%ff",
        "?session_id=a&session_id=b",
        "?%",
    ] {
        is_refused(&fetch(&format!("{folder}/message{bad}"), "POST", &[], &good).await, 404, bad);
    }
    is_refused(&fetch(&unknown, "POST", &[], &good).await, 404, "unknown");
    // Verbs. A client that looks for Streamable HTTP here learns that there is none.
    for verb in ["POST", "DELETE", "PUT", "PATCH", "OPTIONS"] {
        let answer = fetch(&sse, verb, &[], &initialize(LEGACY[3]).to_string()).await;
        is_refused(&answer, 405, verb);
        assert_eq!(answer.header("allow"), Some("GET"), "{verb}");
        assert_eq!(answer.header("mcp-session-id"), None, "{verb}");
    }
    for verb in ["GET", "DELETE", "PUT"] {
        let answer = fetch(&endpoint, verb, &[], &good).await;
        is_refused(&answer, 405, verb);
        assert_eq!(answer.header("allow"), Some("POST"), "{verb}");
    }
    is_refused(
        &fetch(&sse, "GET", &[("Accept", "application/json")], "").await,
        406,
        "a GET that takes no stream",
    );
    // Bodies.
    for kind in ["text/plain", "", "application/json; charset=latin1", "application/x-www-form-urlencoded"] {
        is_refused(&fetch(&endpoint, "POST", &[("Content-Type", kind)], &good).await, 415, kind);
    }
    for rubbish in
        ["", "{", "hello", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}x", &"[".repeat(100_000)]
    {
        let answer = fetch(&endpoint, "POST", &[], rubbish).await;
        is_refused(&answer, 400, &rubbish[..rubbish.len().min(20)]);
        assert_eq!(answer.error().0, -32700, "{}", answer.body);
    }
    let huge = format!(
        r#"{{"jsonrpc":"2.0","id":"never","method":"ping","params":{{"x":"{}"}}}}"#,
        "x".repeat(17 << 20)
    );
    is_refused(&fetch(&endpoint, "POST", &[], &huge).await, 413, "a huge body");
    // None of it was taken in, and the session goes on.
    let reply = client.call("echo", json!({"message": "hi"})).await;
    assert_eq!((reply.said(), reply.before.len()), ("hi", 0));
    let rest = client.leftovers();
    assert!(!rest.iter().any(|a| matches!(a, Arrival::Message(..) | Arrival::End(_))), "{rest:?}");
}

#[testkit::test]
async fn sse_03_every_handshake_revision_is_negotiated_and_no_other_era_is_spoken() {
    let server = modern(Wire::Http).await;
    let sse = sse_url(url(&server));
    for revision in LEGACY.into_iter().chain([MODERN, "2024-10-07", "2031-01-01"]) {
        let mut client = Client::connect_sse(&sse).await;
        // A modern request is none here, before the handshake or after it.
        for method in ["server/discover", "tools/list"] {
            let asked = request(method, method, json!({"_meta": meta(MODERN)}));
            client.send(&asked, &[]).await;
            assert!(
                client.reply(&json!(method)).await.message.get("error").is_some(),
                "{revision}: {method}"
            );
        }
        let opened = client.handshake(revision, json!({})).await;
        let due = if LEGACY.contains(&revision) { revision } else { LEGACY[3] };
        assert_eq!(opened.result()["protocolVersion"], due, "{revision}");
        client.send(&request("m", "tools/call", echo(meta(MODERN))), &[]).await;
        let reply = client.reply(&json!("m")).await;
        assert_eq!(reply.said(), "hi", "{revision}: a session owns the key");
        assert!(reply.result().get("resultType").is_none(), "{revision}: {}", reply.message);
        // Each stream is a session of its own, with ids of its own.
        let mut other = Client::connect_sse(&sse).await;
        other.handshake(LEGACY[1], json!({})).await.result();
        for client in [&mut client, &mut other] {
            client
                .begin_as(
                    json!("same"),
                    "tools/call",
                    json!({"name": "slow_compute", "arguments": {"seconds": 0.01}}),
                )
                .await;
        }
        for client in [&mut client, &mut other] {
            client.reply(&json!("same")).await.result();
        }
    }
}

#[testkit::test]
async fn sse_a_client_that_vanishes_leaves_nothing_and_its_calls_are_cancelled() {
    let mut server = modern(Wire::Http).await;
    let quiet = open_files(&server);
    let sse = sse_url(url(&server));
    for revision in LEGACY {
        let mut clients = Vec::new();
        for at in 0..20 {
            let mut client = Client::connect_sse(&sse).await;
            client.handshake(revision, json!({"sampling": {}})).await.result();
            client.begin_as(json!(format!("{revision}/{at}")), "tools/call", long_countdown()).await;
            client.next("notifications/progress").await;
            client.begin("tools/call", json!({"name": "test_sampling", "arguments": {"prompt": "?"}})).await;
            client.next("sampling/createMessage").await;
            clients.push(client);
        }
        let endpoints: Vec<String> = clients.iter().map(|client| client.endpoint().to_owned()).collect();
        let open = async {
            while open_files(&server) != quiet + 20 {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
        };
        within("a connection each", open).await;
        for client in &mut clients {
            client.disconnect(0);
        }
        let closed = async {
            while open_files(&server) != quiet {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
        };
        within("no connection", closed).await;
        for at in 0..20 {
            is_cancelled(&mut server, &json!(format!("{revision}/{at}"))).await;
        }
        for endpoint in endpoints {
            is_refused(
                &fetch(&endpoint, "POST", &[], &initialize(revision).to_string()).await,
                404,
                "a vanished session",
            );
        }
    }
}
