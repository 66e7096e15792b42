//! Streamable HTTP at the door: what is let in, in which form it is answered, and with which status.
//!
//! Beside the obligations these are the faults of the field's *doors* that concern a server.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use testkit::{Arrival, Client, Exchange, LATEST_LEGACY, LEGACY, MODERN, PATIENCE, Program, Wire, header};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::era::{
    CAPABILITIES, LOG_LEVEL, VERSION, ask, beside, echo, fitting, haiku_topic, lent, meta, request, sampled,
};
use crate::{DATELINE, long_countdown, modern};

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
    let path = url.rsplit('/').next().unwrap();
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
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no response, but {text:?}"));
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let pair = |line: &str| line.split_once(": ").map(|(n, v)| (n.to_owned(), v.to_owned())).unwrap();
    Answer { status, headers: lines.map(pair).collect(), body: body.to_owned() }
}

async fn fetch(url: &str, verb: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let headers = [headers, &[("Connection", "close")]].concat();
    told(url, [&head(url, verb, &headers, body.len()), body].concat().as_bytes()).await
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

#[tokio::test]
async fn http_01_a_foreign_origin_or_host_is_403_on_every_route() {
    let server = modern(Wire::Http).await;
    let (url, here) = (url(&server), authority(url(&server)));
    let port = here.rsplit(':').next().unwrap();
    let own = format!("http://{here}");
    let rebound = format!("evil.example:{port}");
    let (prefixed, other) = (format!("http://{here}.evil.example"), format!("http://user@{here}"));
    let foreign = [
        "http://evil.example",
        "https://evil.example:443",
        "null",
        "http://127.0.0.1:1",
        "http://127.0.0.1",
        "file://",
        "chrome-extension://abcdefgh",
        &prefixed,
        &other,
    ];
    for verb in ["POST", "GET", "DELETE", "PUT", "OPTIONS", "HEAD"] {
        for origin in foreign {
            let answer = fetch(url, verb, &[("Origin", origin)], &discover("o").to_string()).await;
            assert_eq!(answer.status, 403, "{verb} {origin}");
            if verb != "HEAD" {
                assert_eq!(answer.error().1, None, "{verb} {origin}: nothing was read that has an id");
            }
        }
        let twice = fetch(url, verb, &[("Origin", &own), ("Origin", "http://evil.example")], "").await;
        assert_eq!(twice.status, 403, "{verb}");
        for host in ["evil.example", &rebound, "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1"]
        {
            let page = format!("http://{host}");
            for headers in [&[("Host", host)][..], &[("Host", host), ("Origin", &page)]] {
                assert_eq!(fetch(url, verb, headers, "").await.status, 403, "{verb} {headers:?}");
            }
        }
    }
    // Its own origin, and none at all, under each name of this machine.
    let names = ["127.0.0.1", "localhost", "LocalHost", "[::1]"].map(|name| format!("{name}:{port}"));
    for host in &names {
        let page = format!("http://{host}");
        for headers in [&[("Host", host.as_str())][..], &[("Host", host.as_str()), ("Origin", &page)]] {
            assert_eq!(fetch_modern(url, &discover("d"), headers).await.status, 200, "{headers:?}");
        }
    }
    for revision in LEGACY {
        let evil = ("Origin", "http://evil.example");
        let answer = fetch(url, "POST", &[evil], &initialize(revision).to_string()).await;
        assert_eq!((answer.status, answer.header("mcp-session-id")), (403, None), "{revision}");
        let mut live = session(&server, revision, json!({})).await;
        let (id, list) = (id_of(&live), request("l", "tools/list", json!({})).to_string());
        for (verb, body) in [("POST", list.as_str()), ("GET", ""), ("DELETE", "")] {
            let answer = fetch(url, verb, &[evil, ("Mcp-Session-Id", &id)], body).await;
            assert_eq!((answer.status, answer.error().1), (403, None), "{revision} {verb}");
        }
        // And the session is as it was.
        let reply = ask(&mut live, &request("l", "tools/list", json!({})), &[("origin", &own)]).await;
        assert_eq!(reply.status(), Some(200), "{revision}");
    }
}

#[tokio::test]
async fn http_01_where_other_machines_may_call_foreign_pages_may_not() {
    let program = Program::http(DATELINE, &["demo", "--listen", "0.0.0.0:0", "--allow-remote"]).await;
    let url = program.url.as_deref().unwrap();
    let port = authority(url).rsplit(':').next().unwrap();
    let (machine, name) = (format!("192.0.2.7:{port}"), format!("gateway.example:{port}"));
    for host in [&machine, &name] {
        let answer = fetch_modern(url, &discover("d"), &[("Host", host)]).await;
        assert_eq!(answer.status, 200, "{host}: {}", answer.body);
        for origin in ["http://evil.example", "null", "http://127.0.0.1"] {
            let answer = fetch_modern(url, &discover("d"), &[("Host", host), ("Origin", origin)]).await;
            assert_eq!((answer.status, answer.error().1), (403, None), "{host} {origin}");
        }
    }
    // No page is served here: a name that is asked for and is the page's own too may have been pointed here.
    let rebound = format!("http://evil.example:{port}");
    let headers = [("Host", rebound.strip_prefix("http://").unwrap()), ("Origin", &rebound)];
    assert_eq!(fetch_modern(url, &discover("d"), &headers).await.status, 403, "a rebound name");
}

/// Posts what is no request; gives what came back.
async fn post(url: &str, headers: &[(&str, &str)], message: &Value) -> Answer {
    fetch(url, "POST", headers, &message.to_string()).await
}

#[tokio::test]
async fn http_03_notifications_and_responses_are_202_without_a_body_or_an_error() {
    let server = modern(Wire::Http).await;
    let url = url(&server);
    let notification = |method: &str| json!({"jsonrpc": "2.0", "method": method, "params": {}});
    let response = |id: &Value| json!({"jsonrpc": "2.0", "id": id, "result": sampled("late")});
    for method in ["notifications/cancelled", "notifications/none", "tools/call"] {
        // Header rules are for requests.
        let wrong = [("MCP-Protocol-Version", "1999-01-01"), ("Mcp-Method", "wrong"), ("Mcp-Name", "wrong")];
        for headers in [&[][..], &[("MCP-Protocol-Version", MODERN)], &wrong] {
            let answer = post(url, headers, &notification(method)).await;
            assert_eq!(
                (answer.status, answer.is_empty()),
                (202, true),
                "{method} {headers:?}: {}",
                answer.body
            );
        }
    }
    for revision in LEGACY {
        let mut live = session(&server, revision, json!({"sampling": {}})).await;
        let id = id_of(&live);
        let in_session = [("Mcp-Session-Id", id.as_str()), ("MCP-Protocol-Version", revision)];
        for method in ["notifications/initialized", "notifications/roots/list_changed", "notifications/none"]
        {
            let answer = post(url, &in_session, &notification(method)).await;
            assert_eq!((answer.status, answer.is_empty()), (202, true), "{revision} {method}");
        }
        // A response that is waited for, one that nobody waits for, and an error.
        let asking =
            live.begin("tools/call", json!({"name": "test_sampling", "arguments": {"prompt": "?"}})).await;
        let question = live.next("sampling/createMessage").await;
        let refused = json!({"jsonrpc": "2.0", "id": 99, "error": {"code": -1, "message": "no"}});
        for answered in [response(&question["id"]), response(&json!("nobody")), refused] {
            let answer = post(url, &in_session, &answered).await;
            assert_eq!((answer.status, answer.is_empty()), (202, true), "{revision} {answered}");
        }
        assert_eq!(live.reply(&asking).await.said(), "LLM response: late", "{revision}");
        // What is not accepted has the status of an error.
        let gone = [("Mcp-Session-Id", "gone"), ("MCP-Protocol-Version", revision)];
        for message in [notification("notifications/initialized"), response(&json!(1))] {
            let answer = post(url, &gone, &message).await;
            assert_eq!((answer.status, answer.error().1), (404, None), "{revision} {message}");
        }
        let malformed = json!({"jsonrpc": "1.0", "method": "notifications/initialized"});
        assert_eq!(post(url, &in_session, &malformed).await.status, 400, "{revision}");
    }
    assert_eq!(post(url, &[], &response(&json!(1))).await.status, 400, "a response without a session");
    for malformed in [
        json!({"jsonrpc": "1.0", "method": "notifications/cancelled"}),
        json!({"jsonrpc": "2.0", "method": 7}),
        json!({"jsonrpc": "2.0", "method": "m", "result": {}}),
    ] {
        assert_eq!(post(url, &[], &malformed).await.status, 400, "{malformed}");
    }
}

#[tokio::test]
async fn http_03_what_a_session_does_not_take_in_is_not_202() {
    let server = modern(Wire::Http).await;
    let url = url(&server);
    for revision in LEGACY {
        let mut live = session(&server, revision, json!({"sampling": {}})).await;
        let id = id_of(&live);
        let running =
            live.begin("tools/call", json!({"name": "test_sampling", "arguments": {"prompt": "?"}})).await;
        let question = live.next("sampling/createMessage").await;
        let other = if revision == LEGACY[0] { LEGACY[1] } else { LEGACY[0] };
        let cancel =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": running}});
        let result = json!({"jsonrpc": "2.0", "id": question["id"], "result": sampled("x")});
        for version in [other, "1999-01-01"] {
            for message in [&cancel, &result] {
                let headers = [("Mcp-Session-Id", id.as_str()), ("MCP-Protocol-Version", version)];
                let answer = post(url, &headers, message).await;
                assert_eq!(answer.status, 400, "{revision}, header {version}: {message}: {}", answer.body);
            }
        }
        post(url, &[("Mcp-Session-Id", &id)], &result).await;
        assert_eq!(
            live.reply(&running).await.said(),
            "LLM response: x",
            "{revision}: nothing had any effect"
        );
    }
}

/// The values of Accept, with the forms that each admits.
const ACCEPTS: &[(&str, &[&str])] = &[
    ("application/json, text/event-stream", &["application/json", "text/event-stream"]),
    ("", &["application/json", "text/event-stream"]),
    ("*/*", &["application/json", "text/event-stream"]),
    ("application/json", &["application/json"]),
    ("APPLICATION/JSON", &["application/json"]),
    ("application/*", &["application/json"]),
    ("text/html, application/json;q=0.9", &["application/json"]),
    ("text/event-stream;q=0, application/json", &["application/json"]),
    ("text/event-stream", &["text/event-stream"]),
    ("text/*", &["text/event-stream"]),
    ("text/event-stream, application/json;q=0", &["text/event-stream"]),
    ("text/event-stream;q=0.1, text/html", &["text/event-stream"]),
];

/// Waits for the end of an exchange; gives its kind of content and its messages.
async fn formed(client: &mut Client, exchange: Exchange) -> (u16, String, Vec<Value>) {
    let (head, messages) = client.whole(exchange).await;
    (head.status, header(&head.headers, "content-type").unwrap_or_default().to_owned(), messages)
}

/// Sends a request under each Accept; the answer must have a form that it admits.
async fn in_admitted_forms(
    client: &mut Client,
    asked: &Value,
    headers: &[(&str, &str)],
    accepts: &[(&str, &[&str])],
) {
    for (at, (accept, forms)) in accepts.iter().enumerate() {
        let mut asked = asked.clone();
        asked["id"] = json!(format!("{} {at}", asked["id"]));
        let headers = [headers, &[("accept", *accept)]].concat();
        let exchange = client.send(&asked, &headers).await;
        let (status, kind, messages) = formed(client, exchange).await;
        let told = format!("{asked} accepting {accept:?}: {status} {kind} {}", json!(messages));
        assert_eq!(status, 200, "{told}");
        assert!(forms.contains(&kind.as_str()), "{told}");
        // One response, the last thing that is said; one JSON object is all there is.
        let (last, before) = messages.split_last().unwrap();
        assert_eq!(last["id"], asked["id"], "{told}");
        assert!(last.get("result").is_some() || last.get("error").is_some(), "{told}");
        assert!(before.iter().all(|m| m.get("id").is_none()), "{told}");
        assert!(kind == "text/event-stream" || before.is_empty(), "{told}");
    }
}

fn with_progress() -> Value {
    json!({"name": "countdown", "arguments": {"from": 2, "intervalMs": 1}, "_meta": {"progressToken": "t"}})
}

#[tokio::test]
async fn http_04_a_request_is_answered_by_an_object_or_a_stream_as_accept_admits() {
    let mut client = modern(Wire::Http).await;
    for (method, params) in [
        ("tools/list", json!({})),
        ("tools/call", json!({"name": "echo", "arguments": {"message": "hi"}})),
        ("tools/call", json!({"name": "none"})),
        ("tools/call", with_progress()),
        ("resources/read", json!({"uri": "demo://none"})),
    ] {
        let asked = request(method, method, client.modern_params(params));
        let fitting = fitting(&asked);
        in_admitted_forms(&mut client, &asked, &lent(&fitting), ACCEPTS).await;
    }
    for revision in LEGACY {
        let mut live = session(&client, revision, json!({})).await;
        for (method, params) in [
            ("tools/list", json!({})),
            ("tools/call", json!({"name": "echo", "arguments": {"message": "hi"}})),
            ("tools/call", json!({"name": "none"})),
            ("tools/call", with_progress()),
        ] {
            in_admitted_forms(&mut live, &request(method, method, params), &[], ACCEPTS).await;
        }
    }
    // A stream says what goes before the answer.
    let streamed = client.request("tools/call", with_progress()).await;
    assert_eq!(streamed.notifications("notifications/progress").len(), 3);
}

#[tokio::test]
async fn http_04_what_is_answered_at_once_has_the_admitted_form_too() {
    let mut client = modern(Wire::Http).await;
    let fitting = [("mcp-protocol-version", MODERN), ("mcp-method", "server/discover")];
    in_admitted_forms(&mut client, &discover("d"), &fitting, ACCEPTS).await;
    for revision in LEGACY {
        in_admitted_forms(&mut beside(&client), &initialize(revision), &[], ACCEPTS).await;
        let mut live = session(&client, revision, json!({})).await;
        for (method, params) in [
            ("ping", json!({})),
            ("logging/setLevel", json!({"level": "info"})),
            ("resources/subscribe", json!({"uri": "demo://welcome"})),
            ("resources/unsubscribe", json!({"uri": "demo://welcome"})),
            ("no/method", json!({})),
        ] {
            in_admitted_forms(&mut live, &request(method, method, params), &[], ACCEPTS).await;
        }
    }
}

#[tokio::test]
async fn http_04_a_form_with_a_weight_of_zero_is_not_admitted_however_it_is_written() {
    let mut client = modern(Wire::Http).await;
    let asked = request("z", "tools/call", echo(meta(MODERN)));
    let fitting = fitting(&asked);
    let accepts: [(&str, &[&str]); 4] = [
        ("text/event-stream, application/json; q=0", &["text/event-stream"]),
        ("text/event-stream, application/json;q=0.0", &["text/event-stream"]),
        ("text/event-stream, application/json;q=0.000", &["text/event-stream"]),
        ("text/event-stream, application/json;Q=0", &["text/event-stream"]),
    ];
    in_admitted_forms(&mut client, &asked, &lent(&fitting), &accepts).await;
}

#[tokio::test]
async fn http_04_no_admitted_form_is_406_and_another_content_type_415() {
    let server = modern(Wire::Http).await;
    let url = url(&server);
    let modern = [request("e", "tools/call", echo(meta(MODERN))), discover("d")];
    let headers = |asked: &Value| fitting(asked).into_iter().collect();
    let mut cases: Vec<(Value, Vec<(&str, String)>)> =
        modern.map(|asked| (asked.clone(), headers(&asked))).to_vec();
    for revision in LEGACY {
        cases.push((initialize(revision), Vec::new()));
        let id = id_of(&session(&server, revision, json!({})).await);
        cases.push((request("l", "tools/list", json!({})), vec![("Mcp-Session-Id", id)]));
    }
    for (asked, own) in &cases {
        let own = lent(own);
        let text = asked.to_string();
        for accept in
            ["text/html", "image/*, text/plain", "application/json;q=0, text/event-stream;q=0", "nonsense"]
        {
            let answer = fetch(url, "POST", &[&own[..], &[("Accept", accept)]].concat(), &text).await;
            assert_eq!((answer.status, answer.error().0), (406, -32600), "{asked} {accept}");
        }
        for kind in [
            "",
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "application/jsonl",
            "text/json",
            "application/json; charset=utf-16",
        ] {
            let answer = fetch(url, "POST", &[&own[..], &[("Content-Type", kind)]].concat(), &text).await;
            assert_eq!((answer.status, answer.error().0), (415, -32600), "{asked} {kind}");
        }
        let utf8 = [&own[..], &[("Content-Type", "Application/JSON; Charset=\"UTF-8\"")]].concat();
        assert_eq!(fetch(url, "POST", &utf8, &text).await.status, 200, "{asked}");
    }
}

#[tokio::test]
async fn http_04_a_listen_that_may_not_be_a_stream_is_406_to_its_id() {
    let server = modern(Wire::Http).await;
    let params = json!({"notifications": {"toolsListChanged": true}, "_meta": meta(MODERN)});
    let asked = request("listen", "subscriptions/listen", params);
    let answer = fetch_modern(url(&server), &asked, &[("Accept", "application/json")]).await;
    assert_eq!((answer.status, answer.error()), (406, (-32600, Some(json!("listen")))));
}

#[tokio::test]
async fn http_07_a_session_id_is_visible_ascii_and_has_128_random_bits() {
    let server = modern(Wire::Http).await;
    let mut ids = BTreeSet::new();
    let mut seen: Vec<BTreeSet<u8>> = Vec::new();
    for at in 0..400 {
        let revision = LEGACY[at % LEGACY.len()];
        let answer = fetch(url(&server), "POST", &[], &initialize(revision).to_string()).await;
        assert_eq!(answer.status, 200, "{revision}");
        let id = answer.header("mcp-session-id").unwrap_or_else(|| panic!("{revision}: no id"));
        assert!(id.bytes().all(|b| (0x21..=0x7e).contains(&b)), "{revision}: {id:?}");
        seen.resize(seen.len().max(id.len()), BTreeSet::new());
        id.bytes().zip(&mut seen).for_each(|(byte, at)| {
            at.insert(byte);
        });
        assert!(ids.insert(id.to_owned()), "{id} was given twice");
    }
    // What the places of the id hold, as bits: a counter or a clock would leave most of them unchanged.
    #[allow(clippy::cast_precision_loss)]
    let bits: f64 = seen.iter().map(|bytes| (bytes.len() as f64).log2()).sum();
    assert!(bits >= 128.0, "{bits} bits");
}

#[tokio::test]
async fn http_08_a_request_without_the_id_after_initialize_is_400() {
    let server = modern(Wire::Http).await;
    for revision in LEGACY {
        let mut live = session(&server, revision, json!({})).await;
        for (method, params) in [
            ("tools/list", json!({})),
            ("tools/call", json!({"name": "echo", "arguments": {"message": "hi"}})),
            ("logging/setLevel", json!({"level": "info"})),
        ] {
            for version in [revision, ""] {
                let headers = [("mcp-session-id", ""), ("mcp-protocol-version", version)];
                let asked = request(format!("{method} {version}"), method, params.clone());
                let reply = ask(&mut live, &asked, &headers).await;
                assert_eq!(
                    (reply.status(), reply.code()),
                    (Some(400), -32602),
                    "{revision} {method} {version:?}"
                );
            }
        }
        assert_eq!(
            live.call("echo", json!({"message": "hi"})).await.said(),
            "hi",
            "{revision}: with it all is well"
        );
    }
}

/// Whatever names a session that is not there is told so.
async fn is_gone(url: &str, revision: &str, id: &str) {
    let headers = [("Mcp-Session-Id", id), ("MCP-Protocol-Version", revision)];
    let only = &headers[..1];
    for headers in [&headers[..], only] {
        let asked = request("gone", "tools/list", json!({}));
        let answer = post(url, headers, &asked).await;
        let (code, of) = answer.error();
        assert_eq!((answer.status, of), (404, Some(json!("gone"))), "{revision} {id}");
        assert!(!(-32099..=-32020).contains(&code), "{revision} {id}: {code} is of another era");
        for message in [
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"jsonrpc": "2.0", "id": 1, "result": {}}),
        ] {
            let answer = post(url, headers, &message).await;
            assert_eq!((answer.status, answer.error().1), (404, None), "{revision} {id} {message}");
        }
        for verb in ["GET", "DELETE"] {
            let answer = fetch(url, verb, headers, "").await;
            assert_eq!((answer.status, answer.error().1), (404, None), "{revision} {id} {verb}");
        }
    }
}

#[tokio::test]
async fn http_09_an_id_that_was_ended_or_never_given_is_404() {
    let server = modern(Wire::Http).await;
    for revision in LEGACY {
        let ended = id_of(&session(&server, revision, json!({})).await);
        let answer = fetch(url(&server), "DELETE", &[("Mcp-Session-Id", &ended)], "").await;
        assert!(answer.status < 300, "{revision}: {}", answer.status);
        for id in [ended.as_str(), "0", "00000000000000000000000000000000", "!\"~ {}"] {
            is_gone(url(&server), revision, id).await;
        }
    }
}

/// Calls another client's tool until the call of this id is among the cancelled ones.
async fn is_cancelled(client: &mut Client, id: &Value) {
    let id = id.to_string();
    let listed = async {
        while !client.call("cancelled_calls", json!({})).await.said().split(' ').any(|listed| listed == id) {}
    };
    within(&format!("cancelling {id}"), listed).await;
}

#[tokio::test]
async fn http_10_delete_ends_the_session_with_all_that_runs_in_it() {
    let mut server = modern(Wire::Http).await;
    for revision in LEGACY {
        let mut live = session(&server, revision, json!({})).await;
        let mut other = session(&server, revision, json!({})).await;
        let stream = live.exchange("GET", &[], Vec::new());
        assert_eq!(live.head(stream).await.status, 200, "{revision}");
        let running = json!(format!("ended with {revision}").replace(' ', "-"));
        let call = live.begin_as(running.clone(), "tools/call", long_countdown()).await;
        live.next("notifications/progress").await;
        let deleted = live.exchange("DELETE", &[], Vec::new());
        let (head, _) = live.whole(deleted).await;
        assert!([200, 204].contains(&head.status), "{revision}: {}", head.status);
        live.wait("the end of the GET", |a| matches!(a, Arrival::End(of) if *of == stream)).await;
        live.wait("the end of the call", |a| matches!(a, Arrival::End(of) if *of == call)).await;
        let rest = live.leftovers();
        let answered =
            rest.iter().any(|a| matches!(a, Arrival::Message(_, m, _) if m.get("id") == Some(&running)));
        assert!(!answered, "{revision}: {rest:?}");
        is_cancelled(&mut server, &running).await;
        is_gone(url(&server), revision, &id_of(&live)).await;
        assert_eq!(
            other.call("echo", json!({"message": "hi"})).await.said(),
            "hi",
            "{revision}: another one lives"
        );
    }
    // Where no session is named there is none to end.
    let answer = fetch(url(&server), "DELETE", &[], "").await;
    assert_eq!((answer.status, answer.error().1), (405, None));
}

#[tokio::test]
async fn http_16_event_streams_are_not_buffered_and_carry_comments() {
    let mut client = modern(Wire::Http).await;
    // One step, and then a minute of silence.
    let quiet = json!({"name": "countdown", "arguments": {"from": 1, "intervalMs": 60000}, "_meta": {"progressToken": 1}});
    let listen = json!({"notifications": {"toolsListChanged": true}});
    let mut open = Vec::new();
    let call = client.begin_as(json!("call"), "tools/call", quiet.clone()).await;
    let listen = client.begin_as(json!("listen"), "subscriptions/listen", listen).await;
    let mut sessions = Vec::new();
    for revision in LEGACY {
        let mut live = session(&client, revision, json!({})).await;
        open.push((sessions.len(), live.exchange("GET", &[], Vec::new()), format!("{revision} GET")));
        open.push((
            sessions.len(),
            live.begin_as(json!(1), "tools/call", quiet.clone()).await,
            revision.to_owned(),
        ));
        sessions.push(live);
    }
    open.push((sessions.len(), call, "modern call".to_owned()));
    open.push((sessions.len(), listen, "modern listen".to_owned()));
    sessions.push(client);
    for (of, exchange, what) in &open {
        let head = sessions[*of].head(*exchange).await;
        assert_eq!(head.status, 200, "{what}");
        assert_eq!(header(&head.headers, "content-type"), Some("text/event-stream"), "{what}");
        assert_eq!(header(&head.headers, "x-accel-buffering"), Some("no"), "{what}");
    }
    for (of, exchange, what) in &open {
        sessions[*of].wait(what, |a| matches!(a, Arrival::Comment(on) if on == exchange)).await;
    }
}

#[tokio::test]
async fn http_17_a_modern_request_gets_no_session_id() {
    let server = modern(Wire::Http).await;
    let url = url(&server);
    let live = id_of(&session(&server, LATEST_LEGACY, json!({})).await);
    for sent in ["", "made-up", &live] {
        let session = ("Mcp-Session-Id", sent);
        let progress = server.modern_params(with_progress());
        for asked in [
            discover("d"),
            request("e", "tools/call", echo(meta(MODERN))),
            request("p", "tools/call", progress),
            request("n", "no/method", json!({"_meta": meta(MODERN)})),
            request("v", "tools/list", json!({"_meta": meta("2031-01-01")})),
            request(
                "i",
                "initialize",
                json!({"protocolVersion": MODERN, "capabilities": {}, "_meta": meta(MODERN)}),
            ),
        ] {
            for wrong in [("X-Nothing", "wrong"), ("Mcp-Method", "wrong"), ("Accept", "text/html")] {
                let answer = fetch_modern(url, &asked, &[session, wrong]).await;
                assert_eq!(answer.header("mcp-session-id"), None, "{sent:?} {wrong:?} {asked}");
            }
        }
        let mut client = beside(&server);
        client.session = Some(sent.to_owned()).filter(|id| !id.is_empty());
        let listen = json!({"notifications": {"toolsListChanged": true}});
        let listen = client.begin_as(json!("l"), "subscriptions/listen", listen).await;
        assert!(!client.head(listen).await.headers.contains_key("mcp-session-id"), "{sent:?}");
    }
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert_eq!(post(url, &[], &cancelled).await.header("mcp-session-id"), None);
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

#[tokio::test]
async fn http_18_version_method_and_name_are_required_and_values_keep_their_case() {
    let server = modern(Wire::Http).await;
    let url = url(&server);
    let mut requests: Vec<(Value, Option<&str>)> = named().map(|(asked, name)| (asked, Some(name))).to_vec();
    for (method, params) in [
        ("server/discover", json!({})),
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("completion/complete", haiku_topic()),
        ("subscriptions/listen", json!({"notifications": {}})),
    ] {
        requests.push((request(method, method, server.modern_params(params)), None));
    }
    for (asked, name) in &requests {
        let method = asked["method"].as_str().unwrap();
        let mut faults = vec![
            ("mcp-protocol-version", String::new()),
            ("mcp-protocol-version", LATEST_LEGACY.to_owned()),
            ("mcp-protocol-version", "2026-07-28, 2026-07-28".to_owned()),
            ("mcp-method", String::new()),
            ("mcp-method", method.to_uppercase()),
            ("mcp-method", "ping".to_owned()),
        ];
        if let Some(name) = name {
            faults.extend(
                ["", "other", &name.to_uppercase(), &format!("{name}/")].map(|n| ("mcp-name", n.to_owned())),
            );
        }
        for (header, value) in &faults {
            is_mismatch(
                &fetch_modern(url, asked, &[(header, value)]).await,
                asked,
                &format!("{header} {value:?}"),
            );
        }
        // Said twice is not said.
        let twice = fetch_modern(url, asked, &[("mcp-method", method), ("mcp-method", "wrong")]).await;
        is_mismatch(&twice, asked, "two methods");
        let twice =
            fetch_modern(url, asked, &[("mcp-protocol-version", MODERN), ("Mcp-Protocol-Version", "x")])
                .await;
        is_mismatch(&twice, asked, "two versions");
        if method == "subscriptions/listen" {
            continue;
        }
        // Names fold case, and space around a value is none of it.
        for spell in [str::to_uppercase, |name: &str| name.replace("mcp", "mCp").replace('n', "N")] {
            let given = fitting(asked).into_iter().map(|(name, value)| (spell(name), format!("  {value} ")));
            let given: Vec<_> = given.collect();
            let given: Vec<_> = given.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            let answer = fetch(url, "POST", &given, &asked.to_string()).await;
            assert_eq!(answer.status, 200, "{given:?}: {}", answer.body);
        }
    }
    // The methods of tasks are known only where the extension is: with all headers they are unknown methods.
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let asked = request(method, method, json!({"taskId": "t", "_meta": meta(MODERN)}));
        let answer = fetch_modern(url, &asked, &[("Mcp-Name", "t")]).await;
        assert_eq!((answer.status, answer.error().0), (404, -32601), "{method}");
    }
}

/// Text in the form that a header can carry.
fn sentinel(base64: &str) -> String {
    format!("=?base64?{base64}?=")
}

fn region(id: &str, region: &str) -> Value {
    let arguments = json!({"region": region, "query": "q"});
    request(id, "tools/call", json!({"name": "query_region", "arguments": arguments, "_meta": meta(MODERN)}))
}

#[tokio::test]
async fn http_20_the_base64_form_is_decoded_before_comparing_and_a_broken_one_refused() {
    let server = modern(Wire::Http).await;
    let url = url(&server);
    let encoded = ["ZWNobw==", "aGFpa3U=", "ZGVtbzovL3dlbGNvbWU="];
    for ((asked, name), encoded) in named().iter().zip(encoded) {
        let answer = fetch_modern(url, asked, &[("Mcp-Name", &sentinel(encoded))]).await;
        assert_eq!(answer.status, 200, "{name}: {}", answer.body);
        for wrong in [
            sentinel("b3RoZXI="),                    // another name
            sentinel("RUNITw=="),                    // in another case
            sentinel(encoded.trim_end_matches('=')), // without its padding
            sentinel(&encoded[1..]),                 // not base64 of anything
            sentinel("!!!!"),                        // no base64
            sentinel("/////w=="),                    // no UTF-8
            format!("=?BASE64?{encoded}?="),         // the marks are as they are
            format!("=?base64?{encoded}"),
            format!("{encoded}?="),
            encoded.to_owned(),
        ] {
            is_mismatch(&fetch_modern(url, asked, &[("Mcp-Name", &wrong)]).await, asked, &wrong);
        }
    }
    // A name that no header can carry otherwise is found to be unknown, and not to differ.
    let params = json!({"name": "größe", "arguments": {}, "_meta": meta(MODERN)});
    let asked = request("g", "tools/call", params);
    let answer = fetch_modern(url, &asked, &[("Mcp-Name", &sentinel("Z3LDtsOfZQ=="))]).await;
    assert_eq!((answer.status, answer.error().0), (200, -32602), "{}", answer.body);
    is_mismatch(&fetch_modern(url, &asked, &[("Mcp-Name", "größe")]).await, &asked, "bytes beyond ASCII");
    // So it is with parameters. The text that looks like the form is sent in the form.
    for (at, (value, encoded)) in [
        ("Zürich", "WsO8cmljaA=="),
        (" padded ", "IHBhZGRlZCA="),
        ("line1\nline2", "bGluZTEKbGluZTI="),
        ("=?base64?literal?=", "PT9iYXNlNjQ/bGl0ZXJhbD89"),
        ("us-west1", "dXMtd2VzdDE="),
    ]
    .into_iter()
    .enumerate()
    {
        let asked = region(&format!("z{at}"), value);
        let answer = fetch_modern(url, &asked, &[("Mcp-Param-Region", &sentinel(encoded))]).await;
        assert_eq!(answer.status, 200, "{value:?}: {}", answer.body);
        assert_eq!(answer.json()["result"]["content"][0]["text"], format!("{value}: q"), "{value:?}");
        for wrong in [sentinel("ZWNobw=="), sentinel("!!!!"), sentinel("/////w==")] {
            is_mismatch(&fetch_modern(url, &asked, &[("Mcp-Param-Region", &wrong)]).await, &asked, value);
        }
    }
    let literal = region("literal", "=?base64?literal?=");
    is_mismatch(
        &fetch_modern(url, &literal, &[("Mcp-Param-Region", "=?base64?literal?=")]).await,
        &literal,
        "literal",
    );
}

#[tokio::test]
async fn http_20_only_names_and_parameters_have_a_base64_form() {
    let server = modern(Wire::Http).await;
    let asked = request("m", "tools/call", echo(meta(MODERN)));
    for (header, encoded) in
        [("Mcp-Method", "dG9vbHMvY2FsbA=="), ("MCP-Protocol-Version", "MjAyNi0wNy0yOA==")]
    {
        is_mismatch(
            &fetch_modern(url(&server), &asked, &[(header, &sentinel(encoded))]).await,
            &asked,
            header,
        );
    }
}

#[tokio::test]
async fn http_21_a_header_fault_is_32020_with_400_and_a_missing_meta_field_is_not() {
    let server = modern(Wire::Http).await;
    let url = url(&server);
    let call = request("c", "tools/call", echo(meta(MODERN)));
    let region = region("r", "eu");
    for (asked, header, values) in [
        (&call, "MCP-Protocol-Version", &["", LATEST_LEGACY, "2031-01-01", "\u{e9}"][..]),
        (&call, "Mcp-Method", &["", "tools/list", "TOOLS/CALL", "\u{e9}"]),
        (&call, "Mcp-Name", &["", "add", "ECHO", "=?base64?!?=", "\u{e9}"]),
        (&region, "Mcp-Param-Region", &["", "us", "EU", "=?base64?!?=", "\u{e9}"]),
    ] {
        let right = ("Mcp-Param-Region", if std::ptr::eq(asked, &region) { "eu" } else { "" });
        for value in values {
            let more = if header == right.0 { ("x-none", "") } else { right };
            let answer = fetch_modern(url, asked, &[(header, value), more]).await;
            is_mismatch(&answer, asked, &format!("{header}: {value:?}"));
            let told = answer.json()["error"]["message"].as_str().unwrap().to_ascii_lowercase();
            assert!(told.contains(&header.to_ascii_lowercase()), "{header}: {value:?}: {told}");
        }
        assert_eq!(fetch_modern(url, asked, &[right]).await.status, 200, "{header}");
    }
    for (at, lacking) in
        [json!({VERSION: MODERN}), json!({CAPABILITIES: {}}), json!({})].into_iter().enumerate()
    {
        let asked = request(at, "tools/call", echo(lacking));
        // Whatever the headers say.
        for headers in
            [&[][..], &[("Mcp-Method", "")], &[("Mcp-Name", "wrong"), ("MCP-Protocol-Version", "")]]
        {
            let answer = fetch_modern(url, &asked, headers).await;
            assert_eq!((answer.status, answer.error().0), (400, -32602), "{asked} {headers:?}");
        }
    }
}

#[tokio::test]
async fn http_22_an_unknown_or_removed_method_is_404_with_32601() {
    let server = modern(Wire::Http).await;
    let url = url(&server);
    let uri = json!({"uri": "demo://welcome"});
    for (method, params) in [
        ("initialize", json!({"protocolVersion": LATEST_LEGACY, "capabilities": {}})),
        ("initialize", json!({})),
        ("ping", json!({})),
        ("logging/setLevel", json!({"level": "info"})),
        ("resources/subscribe", uri.clone()),
        ("resources/unsubscribe", uri),
        ("no/method", json!({})),
        ("Tools/List", json!({})),
        ("", json!({})),
        ("notifications/cancelled", json!({"requestId": 1})),
        ("roots/list", json!({})),
        ("sampling/createMessage", json!({})),
        ("elicitation/create", json!({})),
    ] {
        let asked = request(format!("{method} {params}"), method, server.modern_params(params));
        let mut headers = vec![("Accept", "application/json, text/event-stream")];
        if method.is_empty() {
            // There is no header for a method without a name: it is the header then that does not fit.
            is_mismatch(&fetch_modern(url, &asked, &headers).await, &asked, "no name");
            continue;
        }
        for accept in ["application/json, text/event-stream", "application/json", "text/event-stream"] {
            headers[0].1 = accept;
            let answer = fetch_modern(url, &asked, &headers).await;
            assert_eq!(
                (answer.status, answer.error()),
                (404, (-32601, Some(asked["id"].clone()))),
                "{asked}"
            );
        }
    }
    for (method, params) in [
        ("tools/call", json!({"arguments": {}})),
        ("tools/call", json!({"name": 7})),
        ("tools/call", json!({"name": "none"})),
        ("tools/call", json!({"name": "echo", "arguments": []})),
        ("tools/list", json!({"cursor": "never issued"})),
        ("prompts/get", json!({"name": "none"})),
        ("resources/read", json!({})),
        ("completion/complete", json!({})),
        ("subscriptions/listen", json!({})),
    ] {
        let asked = request(format!("{method} {params}"), method, server.modern_params(params));
        let answer = fetch_modern(url, &asked, &[("Accept", "application/json, text/event-stream")]).await;
        assert_eq!((answer.status, answer.error().0), (200, -32602), "{asked}");
    }
}

/// A modern request, headers that replace those that fit it, the code of its error, and the status of that.
type Fault = (Value, Vec<(&'static str, &'static str)>, i64, u16);

/// A fault of every kind that a modern request can have.
fn faults(client: &Client) -> Vec<Fault> {
    let asked = |id: &str, method: &str, params: Value| request(id, method, client.modern_params(params));
    let call = |id: &str, params: Value| asked(id, "tools/call", params);
    let cap = json!({"name": "test_missing_capability"});
    let level = json!({"name": "echo", "_meta": {LOG_LEVEL: "loud"}});
    let token = json!({"name": "echo", "_meta": {"progressToken": {}}});
    let state = json!({"name": "test_elicitation", "arguments": {"message": "?"}, "requestState": "made up"});
    vec![
        (call("header", json!({"name": "echo"})), vec![("mcp-name", "add")], -32020, 400),
        (call("capability", cap), vec![], -32021, 400),
        (request("version", "tools/list", json!({"_meta": meta("2031-01-01")})), vec![], -32022, 400),
        (request("meta", "tools/list", json!({"_meta": {VERSION: MODERN}})), vec![], -32602, 400),
        (asked("method", "no/method", json!({})), vec![], -32601, 404),
        (asked("removed", "ping", json!({})), vec![], -32601, 404),
        (call("tool", json!({"name": "none"})), vec![], -32602, 200),
        (call("arguments", json!({"name": "echo", "arguments": 7})), vec![], -32602, 200),
        (call("level", level), vec![], -32602, 200),
        (call("token", token), vec![], -32602, 200),
        (call("state", state), vec![], -32602, 200),
        (asked("resource", "resources/read", json!({"uri": "demo://none"})), vec![], -32602, 200),
        (asked("prompt", "prompts/get", json!({"name": "none"})), vec![], -32602, 200),
        (asked("cursor", "tools/list", json!({"cursor": "x"})), vec![], -32602, 200),
        (asked("listen", "subscriptions/listen", json!({"notifications": 7})), vec![], -32602, 200),
    ]
}

#[tokio::test]
async fn http_23_every_error_is_json_rpc_with_the_status_that_is_assigned() {
    let server = modern(Wire::Http).await;
    let url = url(&server);
    for (asked, headers, code, status) in faults(&server) {
        for accept in ["application/json, text/event-stream", "application/json", "*/*"] {
            let answer = fetch_modern(url, &asked, &[&headers[..], &[("accept", accept)]].concat()).await;
            let given = (answer.status, answer.error());
            assert_eq!(given, (status, (code, Some(asked["id"].clone()))), "{asked} {accept}");
        }
    }
    // What is no request has no id, and a body all the same.
    let cut = "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"tools/list\"";
    let headers = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/list")];
    for (text, code) in [
        (cut, -32700),
        ("", -32700),
        ("\u{feff}nonsense", -32700),
        ("[]", -32600),
        ("7", -32600),
        ("{\"jsonrpc\": \"2.0\"}", -32600),
        ("{\"jsonrpc\": \"2.0\", \"id\": null, \"method\": \"tools/list\"}", -32600),
    ] {
        let answer = fetch(url, "POST", &headers, text).await;
        assert_eq!((answer.status, answer.error()), (400, (code, None)), "{text}");
    }
    // So it is with what HTTP itself refuses.
    let asked = discover("d").to_string();
    let large = format!("{asked}{}", " ".repeat(16 << 20));
    for (verb, header, body, status) in [
        ("POST", ("Origin", "http://evil.example"), &asked, 403),
        ("GET", ("Accept", "text/event-stream"), &String::new(), 405),
        ("DELETE", ("Accept", "*/*"), &String::new(), 405),
        ("PUT", ("Accept", "*/*"), &asked, 405),
        ("PATCH", ("Accept", "*/*"), &asked, 405),
        ("OPTIONS", ("Accept", "*/*"), &String::new(), 405),
        ("POST", ("Accept", "text/html"), &asked, 406),
        ("POST", ("Accept", "*/*"), &large, 413),
        ("POST", ("Content-Type", "text/plain"), &asked, 415),
    ] {
        let fitting = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "server/discover"), header];
        let answer = fetch(url, verb, &fitting, body).await;
        assert_eq!(answer.status, status, "{verb} {header:?}");
        answer.error();
        assert_eq!(answer.header("allow").is_some(), status == 405, "{verb} {header:?}");
    }
}

#[tokio::test]
async fn http_23_a_status_is_decided_before_a_stream_begins() {
    let server = modern(Wire::Http).await;
    for (asked, headers, code, status) in faults(&server) {
        let headers = [&headers[..], &[("accept", "text/event-stream")]].concat();
        let answer = fetch_modern(url(&server), &asked, &headers).await;
        assert_eq!(answer.status, status, "{asked}");
        assert!(answer.body.contains(&format!("\"code\":{code}")), "{asked}: {}", answer.body);
    }
}

#[tokio::test]
async fn http_24_a_disconnect_cancels_the_call_and_ends_its_stream() {
    let mut server = modern(Wire::Http).await;
    // While it streams.
    let mut client = beside(&server);
    let id = json!("streams");
    let call = client.begin_as(id.clone(), "tools/call", long_countdown()).await;
    client.next("notifications/progress").await;
    client.disconnect(call);
    is_cancelled(&mut server, &id).await;
    let stray = |a: &Arrival| matches!(a, Arrival::Message(_, m, _) if m.get("id").is_some());
    assert!(!client.leftovers().iter().any(stray));
    // Where only the client's half is closed, the rest of the stream holds no answer and ends.
    let id = json!("half");
    let asked = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": server.modern_params(long_countdown())});
    let fit = fitting(&asked);
    let fit = lent(&fit);
    let body = asked.to_string();
    let mut stream = connected(url(&server)).await;
    stream
        .write_all([&head(url(&server), "POST", &fit, body.len()), &body[..]].concat().as_bytes())
        .await
        .unwrap();
    let mut begun = vec![0; 1 << 16];
    within("the first event", stream.read(&mut begun)).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut rest = Vec::new();
    let _ = within("the end", stream.read_to_end(&mut rest)).await;
    assert!(!String::from_utf8_lossy(&rest).contains("counted down"));
    is_cancelled(&mut server, &id).await;
    // While it is silent, in either form. Nothing shows that it has begun: one of many was caught at it.
    for accept in ["application/json", "application/json, text/event-stream"] {
        let caught = async {
            for round in 0.. {
                let id = format!("silent-{round}-{}", accept.len());
                let mut params = long_countdown();
                params.as_object_mut().unwrap().remove("_meta");
                let asked = request(id.clone(), "tools/call", server.modern_params(params));
                let fit = fitting(&asked);
                let mut fit = lent(&fit);
                fit.push(("accept", accept));
                let call = client.send(&asked, &fit).await;
                for _ in 0..10 {
                    server.call("echo", json!({"message": "hi"})).await;
                }
                client.disconnect(call);
                for _ in 0..50 {
                    if server.call("cancelled_calls", json!({})).await.said().contains(&format!("{id:?}")) {
                        return;
                    }
                }
            }
        };
        within("cancelling a silent call", caught).await;
    }
    // Others are not touched by any of this.
    assert_eq!(server.call("echo", json!({"message": "hi"})).await.said(), "hi");
}

/// A modern echo whose text has exactly so many bytes.
fn sized(bytes: usize) -> String {
    let asked = request("sized", "tools/call", echo(meta(MODERN))).to_string();
    format!("{asked}{}", " ".repeat(bytes - asked.len()))
}

/// A request of so many levels of objects within each other.
fn nested(id: &str, mut levels: usize, marked: bool) -> String {
    let mut asked = request(id, "tools/call", echo(meta(MODERN)));
    if !marked {
        asked["params"].as_object_mut().unwrap().remove("_meta");
    }
    asked["params"]["arguments"]["deep"] = json!("DEEP");
    levels -= 3;
    let deep = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    asked.to_string().replace("\"DEEP\"", &deep)
}

#[tokio::test]
async fn http_25_a_body_over_the_limit_is_413_and_the_process_lives_on() {
    const LIMIT: usize = 1000;
    let mut server = Client::start(Wire::Http, DATELINE, &["demo", "--max-message", "1000"]).await;
    let at = url(&server).to_owned();
    let fit = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", "echo")];
    let mut sessions = vec![String::new()];
    for revision in LEGACY {
        sessions.push(id_of(&session(&server, revision, json!({})).await));
    }
    for session in &sessions {
        let in_session = [("Mcp-Session-Id", session.as_str())];
        let headers = if session.is_empty() { &fit[..] } else { &in_session };
        assert_eq!(fetch(&at, "POST", headers, &sized(LIMIT)).await.status, 200);
        for size in [LIMIT + 1, 5_000_000] {
            let answer = fetch(&at, "POST", headers, &sized(size)).await;
            assert_eq!((answer.status, answer.error()), (413, (-32600, None)), "{size}");
            assert!(answer.body.contains("1000"), "it tells the limit: {}", answer.body);
        }
        // A body whose length is not told beforehand.
        for (size, status) in [(LIMIT, 200), (LIMIT + 1, 413)] {
            let chunked = [headers, &[("Transfer-Encoding", "chunked"), ("Content-Length", "")]].concat();
            let chunked = [&chunked[..], &[("Connection", "close")]].concat();
            let body = format!("{size:x}\r\n{}\r\n0\r\n\r\n", sized(size));
            let answer = told(&at, [head(&at, "POST", &chunked, 0), body].concat().as_bytes()).await;
            assert_eq!(answer.status, status, "{size}: {}", answer.body);
        }
        // It is refused as soon as it is too long: nobody waits for the rest of it.
        let mut stream = connected(&at).await;
        let begun = [head(&at, "POST", headers, 1 << 40), sized(LIMIT + 1)].concat();
        stream.write_all(begun.as_bytes()).await.unwrap();
        let mut read = vec![0; 12];
        within("the refusal", stream.read_exact(&mut read)).await.unwrap();
        assert_eq!(read, b"HTTP/1.1 413");
    }
    assert_eq!(server.call("echo", json!({"message": "hi"})).await.said(), "hi");
    assert!(server.program.as_mut().unwrap().child.try_wait().unwrap().is_none());
}

#[tokio::test]
async fn http_25_nesting_over_the_limit_is_400_and_the_process_lives_on() {
    let mut server = modern(Wire::Http).await;
    let fit = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", "echo")];
    let mut peers = vec![(MODERN, String::new())];
    for revision in LEGACY {
        peers.push((revision, id_of(&session(&server, revision, json!({})).await)));
    }
    for (revision, session) in &peers {
        let (modern, session) = (session.is_empty(), ("Mcp-Session-Id", session.as_str()));
        let headers = if modern { fit.to_vec() } else { vec![session] };
        let url = url(&server);
        let answer = fetch(url, "POST", &headers, &nested("deep", 128, modern)).await;
        assert_eq!((answer.status, &answer.json()["id"]), (200, &json!("deep")), "{revision}");
        for text in
            [nested("deeper", 129, modern), nested("deepest", 1_000_000, modern), "[".repeat(1_000_000)]
        {
            let answer = fetch(url, "POST", &headers, &text).await;
            let (code, id) = answer.error();
            assert_eq!((answer.status, code), (400, -32700), "{revision}: {}", answer.body);
            assert!(matches!(id, None | Some(Value::Null)), "{revision}: {id:?}");
        }
    }
    assert_eq!(server.call("echo", json!({"message": "hi"})).await.said(), "hi");
    assert!(server.program.as_mut().unwrap().child.try_wait().unwrap().is_none());
}

#[tokio::test]
async fn http_25_a_slow_sender_holds_up_nobody_else() {
    let mut server = modern(Wire::Http).await;
    let at = url(&server).to_owned();
    let fit = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", "echo")];
    let whole =
        [head(&at, "POST", &[&fit[..], &[("Connection", "close")]].concat(), 500), sized(500)].concat();
    // Some that stop within the head, some within the body.
    let mut slow = Vec::new();
    for cut in [1, 20, whole.len() - 500, whole.len() - 499, whole.len() - 1].repeat(20) {
        let mut stream = connected(&at).await;
        stream.write_all(&whole.as_bytes()[..cut]).await.unwrap();
        slow.push((stream, cut));
    }
    for _ in 0..20 {
        assert_eq!(server.call("echo", json!({"message": "hi"})).await.said(), "hi");
    }
    let mut live = session(&server, LATEST_LEGACY, json!({})).await;
    assert_eq!(live.call("echo", json!({"message": "hi"})).await.said(), "hi");
    // Those who were slow are served when they are done.
    for (mut stream, cut) in slow {
        stream.write_all(&whole.as_bytes()[cut..]).await.unwrap();
        let mut text = String::new();
        within("the late answer", stream.read_to_string(&mut text)).await.unwrap();
        assert!(text.starts_with("HTTP/1.1 200") && text.contains("\"hi\""), "{cut}: {text}");
    }
}

/// Reads one response from a connection that stays open; gives its text, and how many reads it took.
async fn read_one(stream: &mut TcpStream) -> (String, usize) {
    let (mut text, mut reads) = (String::new(), 0);
    let mut buffer = vec![0; 1 << 20];
    loop {
        let n = within("a response", stream.read(&mut buffer)).await.unwrap();
        assert!(n > 0, "the connection was closed after {text}");
        text.push_str(std::str::from_utf8(&buffer[..n]).unwrap());
        reads += 1;
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let complete = match length {
            Some(length) => body.len() == length.parse::<usize>().unwrap(),
            None => body.ends_with("\r\n0\r\n\r\n"),
        };
        if complete {
            return (text, reads);
        }
    }
}

/// The bytes of a modern request, for a connection that stays open.
fn bytes(url: &str, asked: &Value, accept: &str) -> Vec<u8> {
    let fit = fitting(asked);
    let mut fit = lent(&fit);
    fit.push(("Accept", accept));
    let body = asked.to_string();
    [head(url, "POST", &fit, body.len()), body].concat().into_bytes()
}

const EITHER: &str = "application/json, text/event-stream";

#[tokio::test]
async fn http_27_a_response_comes_in_one_segment_and_an_event_in_one() {
    let server = modern(Wire::Http).await;
    let url = url(&server);
    let list = request("l", "tools/list", json!({"_meta": meta(MODERN)}));
    let call = request("e", "tools/call", echo(meta(MODERN)));
    let unknown = request("u", "no/method", json!({"_meta": meta(MODERN)}));
    let progress = request("p", "tools/call", server.modern_params(with_progress()));
    let mut stream = connected(url).await;
    // The request, its Accept, and how many writes there may be: one an event, with the head before the first and
    // the end of the stream behind the last.
    for (asked, accept, most) in [
        (discover("d"), EITHER, 1),
        (list, EITHER, 1),
        (call.clone(), EITHER, 1),
        (call, "text/event-stream", 1),
        (unknown, EITHER, 1),
        (progress, EITHER, 4),
    ] {
        let asked = bytes(url, &asked, accept);
        for _ in 0..50 {
            stream.write_all(&asked).await.unwrap();
            let (text, reads) = read_one(&mut stream).await;
            assert!(reads <= most, "{reads} reads, {most} are enough: {text}");
        }
    }
    for revision in LEGACY {
        let live = id_of(&session(&server, revision, json!({})).await);
        let body =
            request("e", "tools/call", json!({"name": "echo", "arguments": {"message": "hi"}})).to_string();
        let asked = [head(url, "POST", &[("Mcp-Session-Id", &live)], body.len()), body].concat();
        for _ in 0..50 {
            stream.write_all(asked.as_bytes()).await.unwrap();
            let (text, reads) = read_one(&mut stream).await;
            assert_eq!(reads, 1, "{revision}: {text}");
        }
    }
}

/// Makes one exchange after another on a connection, as long as calls are made on another one; gives their number.
async fn meanwhile(url: &str, call: &[u8], quick: &[u8]) -> usize {
    let (mut one, mut other) = (connected(url).await, connected(url).await);
    let calls = async {
        for _ in 0..40 {
            one.write_all(call).await.unwrap();
            read_one(&mut one).await;
        }
    };
    tokio::pin!(calls);
    let mut exchanges = 0;
    loop {
        let exchange = async {
            other.write_all(quick).await.unwrap();
            read_one(&mut other).await;
        };
        tokio::select! {
            () = &mut calls => return exchanges,
            () = exchange => exchanges += 1,
        }
    }
}

#[tokio::test]
async fn http_27_a_segment_does_not_wait_for_the_acknowledgement_of_another() {
    let server = modern(Wire::Http).await;
    let url = url(&server);
    let call = request("p", "tools/call", server.modern_params(with_progress()));
    let quick = bytes(url, &discover("d"), EITHER);
    // The same calls as one object and as a stream of segments: with Nagle's algorithm the second segment of each
    // stream would wait for a delayed acknowledgement, which takes many times as long as the call. What goes on
    // meanwhile on another connection is the measure, however fast the machine is.
    let objects = meanwhile(url, &bytes(url, &call, "application/json"), &quick).await;
    let streams = meanwhile(url, &bytes(url, &call, EITHER), &quick).await;
    assert!(
        streams <= 4 * objects.max(40),
        "{streams} exchanges went by while calls were streamed, {objects} while they were not"
    );
}

#[tokio::test]
async fn a_message_of_megabytes_is_taken_where_nothing_is_configured() {
    let mut server = modern(Wire::Http).await;
    let long = "x".repeat(8 << 20);
    assert_eq!(server.call("echo", json!({"message": long})).await.said(), long);
    for revision in LEGACY {
        let mut live = session(&server, revision, json!({})).await;
        assert_eq!(live.call("echo", json!({"message": long})).await.said(), long, "{revision}");
    }
}

#[tokio::test]
async fn a_legacy_peer_is_refused_in_json_rpc_of_its_own_era() {
    let server = modern(Wire::Http).await;
    let url = url(&server);
    for revision in LEGACY {
        let live = id_of(&session(&server, revision, json!({})).await);
        let list = request("l", "tools/list", json!({})).to_string();
        let (id, gone) = (("Mcp-Session-Id", live.as_str()), ("Mcp-Session-Id", "gone"));
        let mut met = BTreeMap::new();
        for (headers, body, status) in [
            (vec![id], "{", 400),
            (vec![], list.as_str(), 400),
            (vec![id, ("Origin", "http://evil.example")], &list, 403),
            (vec![gone], &list, 404),
            (vec![id, ("Accept", "text/html")], &list, 406),
            (vec![id, ("Content-Type", "text/plain")], &list, 415),
        ] {
            let answer = fetch(url, "POST", &headers, body).await;
            assert_eq!(answer.status, status, "{revision} {headers:?}");
            met.insert(status, answer.error().0);
        }
        assert!(met.values().all(|code| (-32700..=-32600).contains(code)), "{revision}: {met:?}");
    }
}
