//! Messages of every kind: ids, error codes, notifications, cancellation, progress, logs, lists, pings.

use std::collections::HashMap;

use dateline::{Cx, Error, Result, Server, Tool};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use testkit::{Arrival, Client, Exchange, LATEST_LEGACY, LEGACY, MODERN, PATIENCE, WIRES, Wire, header};

use crate::features::local;
use crate::stdio::{id_of_unreadable, rubbish};
use crate::{DATELINE, legacy, long_countdown, modern};

/// Every revision on every transport.
pub(crate) fn everywhere() -> Vec<(Wire, &'static str)> {
    let revisions = || LEGACY.into_iter().chain([MODERN]);
    WIRES.into_iter().flat_map(|wire| revisions().map(move |revision| (wire, revision))).collect()
}

/// Every revision with a handshake on every transport.
pub(crate) fn sessions() -> Vec<(Wire, &'static str)> {
    everywhere().into_iter().filter(|(_, revision)| *revision != MODERN).collect()
}

/// A client of a fresh demo, of any revision.
pub(crate) async fn client(wire: Wire, revision: &'static str, capabilities: Value) -> Client {
    let client = modern(wire).await;
    speaking(client, revision, capabilities).await
}

/// The same client, speaking this revision from now on.
pub(crate) async fn speaking(mut client: Client, revision: &'static str, capabilities: Value) -> Client {
    match revision {
        MODERN => client.capabilities = capabilities,
        _ => drop(client.handshake(revision, capabilities).await),
    }
    client
}

/// Another client of the same HTTP server.
pub(crate) fn neighbour(client: &Client) -> Client {
    let program = client.program.as_ref().expect("it started the server");
    Client::connect(program.url.as_deref().expect("it has a URL"))
}

/// Sends a request whose id is written in just this way.
async fn send_as(client: &mut Client, id: &str, method: &str, params: Value) -> Exchange {
    let params = if client.revision.is_none() { client.modern_params(params) } else { params };
    let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
    let headers =
        if client.revision.is_none() { testkit::modern_headers(method, &params) } else { Vec::new() };
    let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
    client.send_text(&text, &headers).await
}

/// The error to a message without an id to answer with, and its HTTP status.
async fn refusal(client: &mut Client, wire: Wire, exchange: Exchange) -> (Option<u16>, Value) {
    match wire {
        Wire::Stdio => {
            let unnamed = |m: &Value| m.get("error").is_some() && m["id"].is_null();
            (None, client.message("an error without an id", unnamed).await)
        }
        Wire::Http => {
            let (head, mut messages) = client.whole(exchange).await;
            assert_eq!(messages.len(), 1, "one error is the body: {messages:?}");
            (Some(head.status), messages.remove(0))
        }
    }
}

/// Asserts that a call works, and that on a pipe nothing arrived that was not asked for.
async fn is_alive(client: &mut Client, what: &str) {
    let reply = client.call("echo", json!({"message": "alive"})).await;
    assert_eq!(reply.said(), "alive", "after {what}");
    assert!(reply.before.is_empty(), "after {what}: {:?}", reply.before);
}

fn cancel(id: &Value) -> Value {
    json!({"requestId": id, "reason": "the user went away"})
}

/// Waits for the response to an id, and takes nothing else out of the queue.
pub(crate) async fn response(client: &mut Client, id: &Value) -> Value {
    let answers = |m: &Value| m.get("method").is_none() && m.get("id") == Some(id);
    client.message(&format!("the response to {id}"), answers).await
}

/// Waits until the demo has noted that a call was cancelled, and no other one than these; none of them is answered.
async fn cancelled(client: &mut Client, ids: &[Value]) {
    let due: Vec<String> = ids.iter().map(Value::to_string).collect();
    let noted = async {
        loop {
            let reply = client.call("cancelled_calls", json!({})).await;
            let answered = reply.before.iter().find(|m| ids.contains(&m["id"]));
            assert!(answered.is_none(), "no response follows: {answered:?}");
            if reply.said() == due.join(" ") {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, noted).await.expect("the cancelled call stops, and it alone");
}

fn quick(from: u32) -> Value {
    json!({"name": "countdown", "arguments": {"from": from, "intervalMs": 1}})
}

#[tokio::test]
async fn msg_01_an_id_of_null_or_a_fraction_is_refused_and_others_come_back_exactly() {
    let ids = [
        "0",
        "-1",
        "7",
        "9007199254740993",
        "18446744073709551615",
        "-9223372036854775808",
        "123456789012345678901234567890",
        r#""""#,
        r#""7""#,
        r#""null""#,
        r#""a b""#,
        r#""\u00e9\n\"\\\/""#,
        r#""日付変更線 💡""#,
    ];
    let refused = ["null", "1.5", "-0.5", "1e-2", "true", "[1]", r#"{"id":1}"#];
    for (wire, revision) in everywhere() {
        let mut client = client(wire, revision, json!({})).await;
        for id in ids {
            let value: Value = serde_json::from_str(id).unwrap();
            for (tool, member) in [("echo", "result"), ("no-such-tool", "error")] {
                let params = json!({"name": tool, "arguments": {"message": "hi"}});
                send_as(&mut client, id, "tools/call", params).await;
                let reply = client.reply(&value).await;
                let members: HashMap<String, Box<RawValue>> = serde_json::from_str(&reply.text).unwrap();
                assert_eq!(members["id"].get(), id, "{wire:?} {revision}");
                assert!(members.contains_key(member), "{wire:?} {revision} {id}: {}", reply.text);
            }
        }
        for id in refused {
            let params = json!({"name": "echo", "arguments": {"message": "hi"}});
            let exchange = send_as(&mut client, id, "tools/call", params).await;
            let (status, error) = refusal(&mut client, wire, exchange).await;
            assert_eq!(error["error"]["code"], -32600, "{wire:?} {revision} {id}: {error}");
            assert_eq!(
                error.get("id").cloned(),
                id_of_unreadable(revision),
                "{wire:?} {revision} {id}: {error}"
            );
            assert_eq!(status, (wire == Wire::Http).then_some(400), "{revision} {id}");
        }
        is_alive(&mut client, "ids that are none").await;
    }
}

#[tokio::test]
async fn an_id_in_flight_is_not_taken_twice_and_both_are_answered() {
    for (wire, revision) in everywhere() {
        let mut client = client(wire, revision, json!({})).await;
        let mut params = quick(200);
        params["_meta"]["progressToken"] = json!("first");
        let first = client.begin_as(json!("twin"), "tools/call", params).await;
        client.next("notifications/progress").await;
        let second = client.begin_as(json!("twin"), "tools/call", quick(0)).await;
        let mut answers = Vec::new();
        for _ in 0..2 {
            let twin = |m: &Value| m["id"] == "twin" && m.get("method").is_none();
            let arrival =
                client.wait("an answer", |a| matches!(a, Arrival::Message(_, m, _) if twin(m))).await;
            let Arrival::Message(exchange, message, _) = arrival else { unreachable!() };
            answers.push((exchange, message));
        }
        let [(of, early), (at, late)] = &answers[..] else { unreachable!() };
        assert_eq!((*of, *at), (second, first), "{wire:?} {revision}");
        assert_eq!(late["result"]["content"][0]["text"], "counted down from 200", "{wire:?} {revision}");
        if wire == Wire::Http && revision == MODERN {
            // Every request stands alone: the other one may be another client's.
            assert_eq!(early["result"]["content"][0]["text"], "counted down from 0", "{early}");
        } else {
            assert_eq!(early["error"]["code"], -32600, "{wire:?} {revision}: {early}");
        }
        // Once it is answered, the id is free.
        client.begin_as(json!("twin"), "tools/call", quick(1)).await;
        assert_eq!(client.reply(&json!("twin")).await.said(), "counted down from 1", "{wire:?} {revision}");
    }
}

/// Whether a peer of a revision may get a code, as the obligation has it.
fn is_of(revision: &str, code: i64) -> bool {
    let is = match code {
        -32700 | -32603..=-32600 => true,
        -32002 => revision != MODERN,
        -32042 => revision == LATEST_LEGACY,
        -32022..=-32020 => revision == MODERN,
        // Application-defined codes are the only others.
        code => !(-32768..=-32000).contains(&code),
    };
    let known = spec::Revision::parse(revision).expect("a revision");
    assert!(!is || spec::Code::may_send(code, known), "the registry says otherwise of {code} in {revision}");
    is
}

/// Requests that fail, each with the code that a session gets and the one that a modern request gets.
fn failing() -> Vec<(&'static str, Value, i64, i64)> {
    let (params, method) = (-32602, -32601);
    let call = |arguments: Value| ("tools/call", arguments, params, params);
    let mut all = vec![
        ("no/such/method", json!({}), method, method),
        ("rpc.discover", json!({}), method, method),
        ("tasks/list", json!({}), method, method),
        ("tasks/get", json!({"taskId": "t"}), method, method),
        ("tasks/result", json!({"taskId": "t"}), method, method),
        ("elicitation/create", json!({"message": "?", "requestedSchema": {}}), method, method),
        ("notifications/initialized", json!({}), method, method),
        call(json!({})),
        call(json!({"name": 5})),
        call(json!({"name": "no-such-tool"})),
        call(json!({"name": "echo", "arguments": [1]})),
        call(json!({"name": "echo", "arguments": "hi"})),
        call(json!({"name": "echo", "arguments": {"message": "hi"}, "_meta": {"progressToken": 1.5}})),
        ("tools/call", json!({"name": "test_missing_capability", "arguments": {}}), -32600, -32021),
        ("tools/call", json!({"name": "test_input_required_result_elicitation"}), -32600, -32021),
        ("tools/call", json!({"name": "test_input_required_result_list_roots"}), -32600, -32021),
        ("prompts/get", json!({"name": "test_input_required_result_prompt"}), -32600, -32021),
        ("prompts/get", json!({}), params, params),
        ("prompts/get", json!({"name": "no-such-prompt"}), params, params),
        ("prompts/get", json!({"name": "haiku"}), params, params),
        ("prompts/get", json!({"name": "haiku", "arguments": {"topic": 5}}), params, params),
        ("resources/read", json!({}), params, params),
        ("resources/read", json!({"uri": 5}), params, params),
        ("resources/read", json!({"uri": "demo://nothing"}), -32002, params),
        ("completion/complete", json!({}), params, params),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "none"}, "argument": {"name": "a", "value": ""}}),
            params,
            params,
        ),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/resource", "uri": "none://{x}"}, "argument": {"name": "x", "value": ""}}),
            params,
            params,
        ),
        ("logging/setLevel", json!({"level": "loud"}), params, method),
        ("resources/subscribe", json!({}), params, method),
        ("resources/unsubscribe", json!({"uri": 5}), params, method),
        ("initialize", json!({}), -32600, method),
        ("subscriptions/listen", json!({}), method, params),
    ];
    for list in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
        all.push((list, json!({"cursor": "bmV2ZXIgaXNzdWVk"}), params, params));
        all.push((list, json!({"cursor": 2}), params, params));
    }
    all
}

/// Provokes every error in [`failing`], and those to what is no request.
async fn provoke(wire: Wire, revision: &'static str) {
    let mut client = client(wire, revision, json!({})).await;
    for (method, params, in_session, alone) in failing() {
        let reply = client.request(method, params.clone()).await;
        let due = if revision == MODERN { alone } else { in_session };
        let what = format!("{wire:?} {revision} {method} {params}");
        assert_eq!(reply.code(), due, "{what}: {}", reply.message);
        assert!(is_of(revision, due), "{what}");
        assert!(reply.error()["message"].is_string(), "{what}");
        let status = match due {
            -32601 if revision == MODERN => Some(404),
            -32021 => Some(400),
            _ => None,
        };
        assert!(
            status.is_none() || wire == Wire::Stdio || reply.status() == status,
            "{what}: {:?}",
            reply.status()
        );
    }
    for (body, code) in rubbish().into_iter().filter(|(body, _)| !body.starts_with(b"[")) {
        let Ok(text) = String::from_utf8(body) else { continue };
        let exchange = client.send_text(&text, &[]).await;
        let (status, error) = refusal(&mut client, wire, exchange).await;
        assert_eq!(error["error"]["code"], code, "{wire:?} {revision} {text:.80}");
        assert_eq!(status, (wire == Wire::Http).then_some(400), "{revision} {text:.80}");
    }
    is_alive(&mut client, "errors of every kind").await;
}

/// Headers that the door of the HTTP endpoint refuses, with the status.
fn refused_at_the_door() -> Vec<(Vec<(&'static str, &'static str)>, u16)> {
    vec![
        (vec![("origin", "https://evil.example")], 403),
        (vec![("host", "evil.example")], 403),
        (vec![("accept", "text/html")], 406),
        (vec![("content-type", "text/plain")], 415),
    ]
}

#[tokio::test]
async fn msg_04_sessions_get_only_the_error_codes_of_their_revision() {
    for (wire, revision) in sessions() {
        provoke(wire, revision).await;
    }
    for revision in LEGACY {
        let mut client = client(Wire::Http, revision, json!({})).await;
        let ping = json!({"jsonrpc": "2.0", "id": "p", "method": "ping"});
        let no_session = (vec![("mcp-session-id", "no-such-session")], 404);
        for (headers, due) in refused_at_the_door().into_iter().chain([no_session]) {
            let exchange = client.send(&ping, &headers).await;
            let (status, error) = refusal(&mut client, Wire::Http, exchange).await;
            assert_eq!(status, Some(due), "{revision} {headers:?}: {error}");
            let code = error["error"]["code"].as_i64().unwrap();
            assert!(is_of(revision, code), "{revision} {headers:?}: {error}");
        }
        for version in [MODERN, "2025-06-18", "1999-01-01", "rubbish"] {
            let exchange = client.send(&ping, &[("mcp-protocol-version", version)]).await;
            let (_, answer) = refusal(&mut client, Wire::Http, exchange).await;
            let code = answer["error"]["code"].as_i64();
            assert!(code.is_none_or(|code| is_of(revision, code)), "{revision} {version}: {answer}");
        }
    }
    for (wire, revision) in sessions() {
        passes_codes(wire, revision).await;
        passes_upstream_codes(wire, revision).await;
    }
}

#[tokio::test]
async fn msg_10_modern_requests_get_three_codes_of_the_reserved_range_and_no_old_ones() {
    for wire in WIRES {
        provoke(wire, MODERN).await;
        passes_codes(wire, MODERN).await;
        passes_upstream_codes(wire, MODERN).await;
        let mut client = modern(wire).await;
        for method in ["ping", "roots/list", "sampling/createMessage", "notifications/cancelled"] {
            let reply = client.request(method, json!({})).await;
            assert_eq!(reply.code(), -32601, "{wire:?} {method}");
            assert!(reply.status().is_none_or(|status| status == 404), "{method}: {:?}", reply.status());
        }
        for version in ["2025-11-25", "2031-01-01", "rubbish"] {
            let meta = json!({"io.modelcontextprotocol/protocolVersion": version});
            let reply = client.request("tools/list", json!({"_meta": meta})).await;
            assert_eq!(reply.code(), -32022, "{wire:?} {version}");
            assert_eq!(reply.error()["data"]["requested"], version, "{wire:?}");
            assert!(reply.status().is_none_or(|status| status == 400), "{:?}", reply.status());
        }
        for (key, value) in [
            ("io.modelcontextprotocol/protocolVersion", json!(5)),
            ("io.modelcontextprotocol/clientCapabilities", json!(null)),
            ("io.modelcontextprotocol/clientCapabilities", json!([])),
            ("io.modelcontextprotocol/logLevel", json!("loud")),
            ("progressToken", json!({})),
        ] {
            let reply = client.request("tools/list", json!({"_meta": {key: value}})).await;
            assert_eq!(reply.code(), -32602, "{wire:?} {key} {value}");
        }
    }
    let mut client = modern(Wire::Http).await;
    let params = client.modern_params(json!({"name": "echo", "arguments": {"message": "hi"}}));
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let right = [("mcp-protocol-version", MODERN), ("mcp-method", "tools/call"), ("mcp-name", "echo")];
    for (at, wrong) in [(0, ""), (0, "2025-11-25"), (1, ""), (1, "tools/list"), (2, ""), (2, "add")] {
        let mut headers = right;
        headers[at].1 = wrong;
        client.send(&call, &headers).await;
        let reply = client.reply(&json!(1)).await;
        assert_eq!((reply.code(), reply.status()), (-32020, Some(400)), "{headers:?}: {}", reply.message);
    }
    for (headers, due) in refused_at_the_door() {
        let exchange = client.send(&call, &[right.as_slice(), headers.as_slice()].concat()).await;
        let (head, messages) = client.whole(exchange).await;
        let code = messages[0]["error"]["code"].as_i64().unwrap();
        assert_eq!(head.status, due, "{headers:?}: {messages:?}");
        assert!(is_of(MODERN, code), "{headers:?}: {messages:?}");
    }
}

/// Codes that some revision gives a meaning to, or all of them forbid.
const RESERVED: [i64; 8] = [-32002, -32042, -32020, -32021, -32022, -32023, -32050, -32099];

/// Calls a tool that fails with each code, and asserts that only what the revision has comes out.
async fn fails_with(client: &mut Client, tool: &str, wire: Wire, revision: &str) {
    for code in RESERVED {
        let reply = client.call(tool, json!({"code": code})).await;
        let sent = reply.code();
        let what = format!("{wire:?} {revision} {tool}: {code} went out as {sent}");
        assert!(is_of(revision, sent), "{what}");
        let is_old = [-32002, -32042].contains(&code);
        assert!(sent == code || !is_old || !is_of(revision, code), "{what}");
    }
    for code in [4001, -1, -31999, -32769] {
        let reply = client.call(tool, json!({"code": code})).await;
        let what = format!("{wire:?} {revision} {tool}: {}", reply.message);
        assert_eq!((reply.code(), &reply.error()["message"]), (code, &json!("as you wish")), "{what}");
    }
}

/// A handler's own codes go out only where they may.
async fn passes_codes(wire: Wire, revision: &'static str) {
    let fail = |cx: Cx| async move {
        let arguments: Value = cx.arguments().read()?;
        Result::<()>::Err(Error::code(arguments["code"].as_i64().unwrap_or_default(), "as you wish"))
    };
    let input = json!({"type": "object", "properties": {"code": {"type": "integer"}}});
    let server = Server::new("coded", "1").tool(Tool::new("fail", "Fails.", fail).input(&input));
    let mut client = speaking(local(wire, server.build().unwrap()).await, revision, json!({})).await;
    fails_with(&mut client, "fail", wire, revision).await;
}

/// A server of 2025-06-18 with one tool, which fails with the code in its arguments.
const FAILING: &str = r#"
while read -r line; do
  [[ $line =~ \"id\":([^,}]+) ]] || continue
  id=${BASH_REMATCH[1]}
  case $line in
  *'"method":"initialize"'*)
    body='"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
  *'"method":"tools/list"'*)
    body='"result":{"tools":[{"name":"fail","inputSchema":{"type":"object"}}]}' ;;
  *'"method":"tools/call"'*)
    [[ $line =~ \"code\":(-?[0-9]+) ]]
    body='"error":{"code":'${BASH_REMATCH[1]}',"message":"as you wish"}' ;;
  *)
    body='"error":{"code":-32601,"message":"method not found"}' ;;
  esac
  echo '{"jsonrpc":"2.0","id":'$id','$body'}'
done"#;

/// An upstream's codes go out only where they may.
async fn passes_upstream_codes(wire: Wire, revision: &'static str) {
    let config = json!({"mcpServers": {"failing": {"command": "bash", "args": ["-c", FAILING]}}});
    let name = format!("dateline-codes-{}-{wire:?}-{revision}.json", std::process::id());
    let file = std::env::temp_dir().join(name);
    std::fs::write(&file, config.to_string()).unwrap();
    let path = file.to_str().unwrap();
    let client = match wire {
        Wire::Stdio => Client::pipe(DATELINE, &["stdio", "--config", path]),
        Wire::Http => {
            let args = ["serve", "--config", path, "--listen", "127.0.0.1:0"];
            let program = testkit::Program::http(DATELINE, &args).await;
            let mut client = Client::connect(program.url.as_deref().unwrap());
            client.program = Some(program);
            client
        }
    };
    let mut client = speaking(client, revision, json!({})).await;
    let listed = client.request("tools/list", json!({})).await;
    let tool = listed.result()["tools"][0]["name"].as_str().expect("the upstream's tool").to_owned();
    fails_with(&mut client, &tool, wire, revision).await;
    std::fs::remove_file(&file).unwrap();
}

#[tokio::test]
async fn msg_09_a_method_whose_capability_is_not_advertised_is_not_found() {
    let say = || Tool::new("say", "Says something.", || async { "something" });
    let haiku = || dateline::Prompt::new("haiku", "A haiku.", |_, _| async { Ok(dateline::Messages::new()) });
    let prompts = [("prompts/list", json!({})), ("prompts/get", json!({"name": "haiku"}))];
    let tools = [("tools/list", json!({})), ("tools/call", json!({"name": "say", "arguments": {}}))];
    let others = [
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({"uri": "demo://welcome"})),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "haiku"}, "argument": {"name": "topic", "value": ""}}),
        ),
    ];
    for wire in WIRES {
        for (server, has, lacks, named) in [
            (Server::new("tools", "1").tool(say()), &tools, &prompts, "tools"),
            (Server::new("prompts", "1").prompt(haiku()), &prompts, &tools, "prompts"),
        ] {
            let mut client = local(wire, server.build().unwrap()).await;
            let discovered = client.request("server/discover", json!({})).await;
            let mut advertised: Vec<_> =
                discovered.result()["capabilities"].as_object().unwrap().keys().cloned().collect();
            advertised.retain(|capability| capability != "logging");
            assert_eq!(advertised, [named], "{wire:?}");
            for (method, params) in has {
                client.request(method, params.clone()).await.result();
            }
            for (method, params) in lacks.iter().chain(&others) {
                let reply = client.request(method, params.clone()).await;
                assert_eq!(reply.code(), -32601, "{wire:?} {named} {method}: {}", reply.message);
                assert!(reply.status().is_none_or(|s| s == 404), "{named} {method}: {:?}", reply.status());
            }
        }
    }
}

/// Notifications of every kind, as they are and malformed, and the HTTP status of each outside of a session.
fn notifications() -> Vec<(Value, u16)> {
    let note =
        |method: &str, params: Value| (json!({"jsonrpc": "2.0", "method": method, "params": params}), 202);
    let malformed = |message: Value| (message, 400);
    vec![
        note("notifications/cancelled", json!({"requestId": 12_345})),
        note("notifications/cancelled", json!({})),
        note("notifications/cancelled", json!({"requestId": null})),
        note("notifications/cancelled", json!({"requestId": {"a": 1}})),
        note("notifications/cancelled", json!([1])),
        note("notifications/cancelled", json!("x")),
        note("notifications/progress", json!({"progressToken": "unknown", "progress": 1})),
        note("notifications/progress", json!(5)),
        note("notifications/roots/list_changed", json!({})),
        note("notifications/unknown", json!({})),
        note("unknown", json!(null)),
        note("", json!({})),
        // Requests without an id are notifications, whatever they ask for.
        note("ping", json!({})),
        note("tools/list", json!({})),
        note("tools/call", json!({"name": "no-such-tool"})),
        note("tools/call", json!({"name": "touch_resource", "arguments": {"uri": "demo://welcome"}})),
        note("subscriptions/listen", json!({})),
        note("logging/setLevel", json!({"level": "loud"})),
        (json!({"jsonrpc": "2.0", "method": "notifications/unknown"}), 202),
        (json!({"jsonrpc": "2.0", "method": "notifications/unknown", "vendor": [1]}), 202),
        malformed(json!({"method": "notifications/unknown"})),
        malformed(json!({"jsonrpc": "1.0", "method": "notifications/unknown"})),
        malformed(json!({"jsonrpc": 2, "method": "notifications/unknown"})),
        malformed(json!({"jsonrpc": "2.0", "method": 5})),
        malformed(json!({"jsonrpc": "2.0", "method": null, "params": {}})),
    ]
}

#[tokio::test]
async fn msg_11_a_notification_is_never_answered_and_messages_are_utf_8() {
    for (wire, revision) in everywhere() {
        let mut client = client(wire, revision, json!({})).await;
        for (notification, status) in notifications() {
            let exchange = client.send(&notification, &[]).await;
            if wire == Wire::Http {
                let (head, messages) = client.whole(exchange).await;
                assert_eq!(head.status, status, "{revision} {notification}");
                // Where it cannot be accepted the body may say why, without an id.
                let silent = messages.is_empty() || status == 400 && messages[0].get("id").is_none();
                assert!(silent, "{revision} {notification}: {messages:?}");
            }
            is_alive(&mut client, &notification.to_string()).await;
        }
        assert!(client.leftovers().iter().all(|a| !matches!(a, Arrival::Message(..) | Arrival::Rubbish(..))));

        let text = "é日付😀\u{2028}\u{feff}\u{10ffff}";
        let reply = client.call("echo", json!({"message": text})).await;
        assert_eq!(reply.said(), text, "{wire:?} {revision}");
        if let Some(head) = &reply.head {
            assert_eq!(header(&head.headers, "content-type"), Some("application/json"), "{revision}");
            let latin = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"caf\xe9\"}".to_vec();
            let exchange = client.exchange("POST", &[], latin);
            let (status, error) = refusal(&mut client, wire, exchange).await;
            assert_eq!((status, &error["error"]["code"]), (Some(400), &json!(-32700)), "{revision}: {error}");
        }
    }
}

#[tokio::test]
async fn can_01_cancelled_stops_the_work_and_no_response_follows() {
    for (wire, revision) in sessions() {
        let mut client = client(wire, revision, json!({})).await;
        let mut quiet = long_countdown();
        quiet["_meta"] = json!({});
        let other = client.begin("tools/call", quiet).await;
        let id = client.id();
        let exchange = client.begin_as(id.clone(), "tools/call", long_countdown()).await;
        client.next("notifications/progress").await;
        // None of these names it.
        let text = json!(id.to_string());
        for params in [
            json!({}),
            cancel(&json!(999)),
            cancel(&text),
            cancel(&json!(null)),
            cancel(&json!([id])),
            json!(7),
        ] {
            client.notify("notifications/cancelled", params).await;
        }
        client.next("notifications/progress").await;
        client.notify("notifications/cancelled", cancel(&id)).await;
        cancelled(&mut client, std::slice::from_ref(&id)).await;
        if wire == Wire::Http {
            let (_, messages) = client.whole(exchange).await;
            assert!(
                messages.iter().all(|m| m["method"] == "notifications/progress"),
                "{revision}: {messages:?}"
            );
        } else {
            let left = client.leftovers();
            assert!(!left.iter().any(|a| matches!(a, Arrival::Message(..))), "{revision}: {left:?}");
        }
        // An id that was cancelled is free again, and the rest goes on.
        client.begin_as(id.clone(), "tools/call", quick(1)).await;
        let reply = client.reply(&id).await;
        assert_eq!(reply.said(), "counted down from 1", "{wire:?} {revision}");
        assert!(reply.before.is_empty(), "{wire:?} {revision}: nothing follows: {:?}", reply.before);
        client.notify("notifications/cancelled", cancel(&id)).await;
        is_alive(&mut client, "cancelling what is done").await;
        client.notify("notifications/cancelled", cancel(&other)).await;
        cancelled(&mut client, &[id, other]).await;
    }
}

#[tokio::test]
async fn can_01_initialize_cannot_be_cancelled() {
    for (wire, revision) in sessions() {
        let mut client = modern(wire).await;
        let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let id = json!("init");
        client.notify("notifications/cancelled", cancel(&id)).await;
        client
            .send(&json!({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": params}), &[])
            .await;
        client.notify("notifications/cancelled", cancel(&id)).await;
        let reply = client.reply(&id).await;
        assert_eq!(reply.result()["protocolVersion"], revision, "{wire:?}");
        let session = reply.head.as_ref().and_then(|head| header(&head.headers, "mcp-session-id"));
        client.session = session.map(str::to_owned);
        client.revision = Some(revision);
        client.notify("notifications/cancelled", cancel(&id)).await;
        client.notify("notifications/initialized", json!({})).await;
        let reply = client.call("echo", json!({"message": "hi"})).await;
        assert_eq!(reply.said(), "hi", "{wire:?} {revision}: the session is open");
    }
}

#[tokio::test]
async fn can_02_cancelled_stops_a_modern_call_on_a_pipe_and_no_response_follows() {
    let mut client = modern(Wire::Stdio).await;
    let mut quiet = long_countdown();
    quiet["_meta"] = json!({});
    client.begin("tools/call", quiet).await;
    let mut ids = Vec::new();
    for id in [json!(70), json!("seventy"), json!("")] {
        client.begin_as(id.clone(), "tools/call", long_countdown()).await;
        client.next("notifications/progress").await;
        let others = [
            json!({}),
            cancel(&json!(999)),
            cancel(&json!("70")),
            cancel(&json!(70.5)),
            cancel(&json!(null)),
        ];
        for wrong in others {
            client.notify("notifications/cancelled", wrong).await;
        }
        client.next("notifications/progress").await;
        client.notify("notifications/cancelled", cancel(&id)).await;
        ids.push(id.clone());
        cancelled(&mut client, &ids).await;
        // The id is free again, and nothing more comes for the call that had it.
        client.leftovers();
        client.begin_as(id.clone(), "tools/call", quick(150)).await;
        let reply = client.reply(&id).await;
        assert_eq!(reply.said(), "counted down from 150");
        assert!(reply.before.is_empty(), "{id}: {:?}", reply.before);
        client.notify("notifications/cancelled", cancel(&id)).await;
        is_alive(&mut client, "cancelling what is done").await;
    }
}

#[tokio::test]
async fn can_02_over_modern_http_the_disconnect_is_the_signal() {
    let mut client = modern(Wire::Http).await;
    let mut second = neighbour(&client);
    // Two clients use one id; a third call of the same client goes on, too.
    let id = json!("shared");
    let mut steady = long_countdown();
    steady["arguments"] = json!({"from": 100, "intervalMs": 5});
    let exchange = client.begin_as(id.clone(), "tools/call", long_countdown()).await;
    client.next("notifications/progress").await;
    second.begin_as(id.clone(), "tools/call", steady).await;
    second.next("notifications/progress").await;
    let beside = client.begin("tools/call", quick(50)).await;
    // A notification is not the signal: nothing is keyed by id alone.
    let noted = second.notify("notifications/cancelled", cancel(&id)).await;
    let (head, messages) = second.whole(noted).await;
    assert_eq!((head.status, messages), (202, Vec::new()));
    client.next("notifications/progress").await;
    assert_eq!(client.call("cancelled_calls", json!({})).await.said(), "", "nothing was cancelled so far");

    client.disconnect(exchange);
    cancelled(&mut client, std::slice::from_ref(&id)).await;
    assert_eq!(
        second.reply(&id).await.said(),
        "counted down from 100",
        "another client's call is not touched"
    );
    assert_eq!(client.reply(&beside).await.said(), "counted down from 50");

    // It holds also for a call of which nothing has come yet: not even a head.
    let silent = json!({"name": "countdown", "arguments": {"from": 600, "intervalMs": 100}});
    let exchange = client.begin_as(json!("silent"), "tools/call", silent).await;
    is_alive(&mut client, "a silent call").await;
    client.disconnect(exchange);
    cancelled(&mut client, &[id, json!("silent")]).await;
}

#[tokio::test]
async fn a_cancellation_names_its_call_in_any_spelling_of_the_id() {
    for (wire, revision) in everywhere().into_iter().filter(|w| *w != (Wire::Http, MODERN)) {
        let mut client = client(wire, revision, json!({})).await;
        send_as(&mut client, r#""caf\u00e9/1""#, "tools/call", long_countdown()).await;
        client.next("notifications/progress").await;
        let cancelled =
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"café\/1"}}"#;
        client.send_text(cancelled, &[]).await;
        let noted = async {
            while client.call("cancelled_calls", json!({})).await.said().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        let noted = tokio::time::timeout(testkit::PATIENCE, noted).await;
        assert!(noted.is_ok(), "{wire:?} {revision}: the same string, written in another way");
    }
}

/// The progress notifications of a call, checked: the token is the one given, the value always grows.
fn check_progress(notes: &[&Value], token: &Value, revision: &str) {
    let mut last = f64::NEG_INFINITY;
    for note in notes {
        assert_eq!(&note["params"]["progressToken"], token, "{revision}: {note}");
        let progress = note["params"]["progress"].as_f64().expect("progress is a number");
        assert!(progress > last, "{revision}: it grows: {note}");
        assert!(note["params"]["total"].is_number(), "{revision}: {note}");
        last = progress;
        let message = note["params"].get("message");
        assert_eq!(message.is_some(), revision != "2024-11-05", "{revision}: {note}");
        assert!(message.is_none_or(Value::is_string), "{revision}: {note}");
    }
}

#[tokio::test]
async fn prog_01_progress_comes_for_a_token_only_grows_and_stops_at_the_end() {
    for (wire, revision) in everywhere() {
        let mut client = client(wire, revision, json!({})).await;
        for tool in [json!({"name": "test_tool_with_progress", "arguments": {}}), quick(20)] {
            let reply = client.request("tools/call", tool.clone()).await;
            assert!(reply.result()["content"].is_array());
            assert!(
                reply.before.is_empty(),
                "{wire:?} {revision} {tool}: no token, no progress: {:?}",
                reply.before
            );
        }
        for token in [json!("a token"), json!(""), json!(0), json!(-5), json!(9_007_199_254_740_993_i64)] {
            let mut params = quick(20);
            params["_meta"]["progressToken"] = token.clone();
            let reply = client.request("tools/call", params).await;
            let notes = reply.notifications("notifications/progress");
            assert_eq!(
                (notes.len(), reply.before.len()),
                (21, 21),
                "{wire:?} {revision}: {:?}",
                reply.before
            );
            check_progress(&notes, &token, revision);
        }
        // Two at once, and nothing after the end.
        for (id, token) in [("one", json!("1")), ("two", json!(1))] {
            let mut params = quick(20);
            params["_meta"]["progressToken"] = token;
            client.begin_as(json!(id), "tools/call", params).await;
        }
        response(&mut client, &json!("one")).await;
        response(&mut client, &json!("two")).await;
        let left = client.leftovers();
        for token in [json!("1"), json!(1)] {
            let mut own = Vec::new();
            for arrival in &left {
                match arrival {
                    Arrival::Message(_, note, _) if note["params"]["progressToken"] == token => {
                        own.push(note)
                    }
                    _ => {}
                }
            }
            assert_eq!(own.len(), 21, "{wire:?} {revision} {token}");
            check_progress(&own, &token, revision);
        }
        is_alive(&mut client, "calls with progress").await;
        let left = client.leftovers();
        assert!(!left.iter().any(|a| matches!(a, Arrival::Message(..))), "{wire:?} {revision}: {left:?}");
    }
}

#[tokio::test]
async fn prog_01_progress_that_does_not_increase_is_not_sent() {
    for (wire, revision) in everywhere() {
        let mut client = speaking(local(wire, crate::features::wavering()).await, revision, json!({})).await;
        for (meta, due) in [(json!({}), vec![]), (json!({"progressToken": "t"}), vec![1.0, 1.5, 2.0, 10.0])] {
            let reply = client.request("tools/call", json!({"name": "waver", "_meta": meta})).await;
            let sent = reply.notifications("notifications/progress");
            let sent: Vec<f64> = sent.iter().map(|m| m["params"]["progress"].as_f64().unwrap()).collect();
            assert_eq!(sent, due, "{wire:?} {revision}");
        }
    }
}

#[tokio::test]
async fn prog_01_progress_stops_when_the_call_is_cancelled() {
    for (wire, revision) in sessions().into_iter().chain([(Wire::Stdio, MODERN)]) {
        let mut client = client(wire, revision, json!({})).await;
        let mut params = long_countdown();
        params["arguments"]["intervalMs"] = json!(1);
        let id = client.begin("tools/call", params).await;
        client.next("notifications/progress").await;
        client.notify("notifications/cancelled", cancel(&id)).await;
        cancelled(&mut client, &[id]).await;
        client.leftovers();
        // A hundred milliseconds and more, in which it would go on.
        let reply = client.request("tools/call", quick(100)).await;
        assert!(reply.before.is_empty(), "{wire:?} {revision}: {:?}", reply.before);
        let left = client.leftovers();
        assert!(!left.iter().any(|a| matches!(a, Arrival::Message(..))), "{wire:?} {revision}: {left:?}");
    }
}

#[tokio::test]
async fn prog_02_progress_and_logs_travel_on_the_stream_of_their_own_request() {
    let mut client = modern(Wire::Http).await;
    let all = json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true});
    let listen =
        client.begin_as(json!("listen"), "subscriptions/listen", json!({"notifications": all})).await;
    client.next("notifications/subscriptions/acknowledged").await;
    let meta = |token: &str| json!({"progressToken": token, "io.modelcontextprotocol/logLevel": "info"});
    let mut exchanges = Vec::new();
    for token in ["a", "b", "c"] {
        let mut params = quick(30);
        params["_meta"] = meta(token);
        exchanges.push((client.begin_as(json!(token), "tools/call", params).await, token, 31, 0));
        let logging = json!({"name": "test_tool_with_logging", "arguments": {}, "_meta": meta("unused")});
        exchanges.push((
            client.begin_as(json!(format!("log {token}")), "tools/call", logging).await,
            token,
            0,
            3,
        ));
    }
    for (exchange, token, progress, logs) in exchanges {
        let (head, messages) = client.whole(exchange).await;
        assert_eq!(head.status, 200);
        assert_eq!(header(&head.headers, "content-type"), Some("text/event-stream"));
        let count = |method: &str| messages.iter().filter(|m| m["method"] == method).count();
        assert_eq!(count("notifications/progress"), progress, "{token}: {messages:?}");
        assert_eq!(count("notifications/message"), logs, "{token}: {messages:?}");
        let own =
            |m: &&Value| m["method"] == "notifications/progress" && m["params"]["progressToken"] != token;
        assert_eq!(messages.iter().filter(own).count(), 0, "{token}: {messages:?}");
        assert_eq!(messages.len(), progress + logs + 1, "{token}: {messages:?}");
        assert!(messages.last().unwrap().get("result").is_some(), "{token}: the response is the last");
    }
    client.call("test_trigger_tool_change", json!({})).await;
    let first = client
        .wait("a message on the listen", |a| matches!(a, Arrival::Message(at, ..) if *at == listen))
        .await;
    let Arrival::Message(_, first, _) = first else { unreachable!() };
    assert_eq!(first["method"], "notifications/tools/list_changed", "nothing of the calls came here");
    assert!(!client.leftovers().iter().any(|a| matches!(a, Arrival::Message(..))));
}

/// What a server declares to a fresh client of this revision, which opens a session where there are any.
async fn declared(client: &mut Client, revision: &'static str) -> Value {
    let reply = match revision {
        MODERN => client.request("server/discover", json!({})).await,
        _ => client.handshake(revision, json!({})).await,
    };
    reply.result()["capabilities"].clone()
}

#[tokio::test]
async fn log_01_a_server_that_logs_declares_the_logging_capability() {
    for (wire, revision) in everywhere() {
        let mut client = modern(wire).await;
        let capabilities = declared(&mut client, revision).await;
        assert_eq!(capabilities["logging"], json!({}), "{wire:?} {revision}");
        let meta = json!({"io.modelcontextprotocol/logLevel": "info"});
        let params = json!({"name": "test_tool_with_logging", "arguments": {}, "_meta": meta});
        let reply = client.request("tools/call", params).await;
        let logs = reply.notifications("notifications/message");
        assert_eq!((logs.len(), reply.before.len()), (3, 3), "{wire:?} {revision}: {:?}", reply.before);
        let whole = |m: &&Value| m["params"]["level"] == "info" && m["params"]["data"].is_string();
        assert!(logs.iter().all(whole), "{wire:?} {revision}: {logs:?}");
    }
}

#[tokio::test]
async fn log_01_without_the_capability_no_log_message_is_sent() {
    for (wire, revision) in everywhere() {
        for logs in [true, false] {
            let mut client = local(wire, crate::features::logging(logs)).await;
            let capabilities = declared(&mut client, revision).await;
            assert_eq!(capabilities.get("logging").cloned(), logs.then(|| json!({})), "{wire:?} {revision}");
            let meta = json!({"io.modelcontextprotocol/logLevel": "debug"});
            let reply = client.request("tools/call", json!({"name": "log", "_meta": meta})).await;
            let sent = reply.notifications("notifications/message");
            assert_eq!(!sent.is_empty(), logs, "{wire:?} {revision}: {sent:?}");
        }
    }
}

/// The levels, the least severe first.
const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

#[tokio::test]
async fn log_03_a_modern_request_gets_the_log_messages_that_it_asks_for_and_no_others() {
    for wire in WIRES {
        let mut client = modern(wire).await;
        for (level, due) in [
            (None, 0),
            (Some("debug"), 3),
            (Some("info"), 3),
            (Some("notice"), 0),
            (Some("warning"), 0),
            (Some("error"), 0),
            (Some("critical"), 0),
            (Some("alert"), 0),
            (Some("emergency"), 0),
            // What an earlier request set does not hold for the next one.
            (None, 0),
        ] {
            let mut params = json!({"name": "test_tool_with_logging", "arguments": {}});
            if let Some(level) = level {
                params["_meta"]["io.modelcontextprotocol/logLevel"] = level.into();
            }
            let reply = client.request("tools/call", params).await;
            assert_eq!(reply.said(), "Tool with logging executed successfully");
            assert_eq!(reply.notifications("notifications/message").len(), due, "{wire:?} {level:?}");
            assert_eq!(reply.before.len(), due, "{wire:?} {level:?}: {:?}", reply.before);
        }
        let mut client = local(wire, crate::features::logging(true)).await;
        for (at, level) in LEVELS.iter().enumerate() {
            let meta = json!({"io.modelcontextprotocol/logLevel": level});
            let reply = client.request("tools/call", json!({"name": "log", "_meta": meta})).await;
            let sent = reply.notifications("notifications/message");
            let sent: Vec<&str> = sent.iter().map(|m| m["params"]["level"].as_str().unwrap()).collect();
            assert_eq!(sent, LEVELS[at..], "{wire:?}: none below {level}, and all others");
        }
        let mut client = modern(wire).await;
        for level in
            [json!("loud"), json!("INFO"), json!(""), json!(1), json!(null), json!({"level": "info"})]
        {
            for method in ["tools/call", "tools/list"] {
                let meta = json!({"io.modelcontextprotocol/logLevel": level});
                let params = json!({"name": "test_tool_with_logging", "arguments": {}, "_meta": meta});
                let reply = client.request(method, params).await;
                assert_eq!(reply.code(), -32602, "{wire:?} {method} {level}");
                assert!(reply.before.is_empty(), "{wire:?} {method} {level}");
            }
        }
    }
}

const LISTS: [(&str, &str); 4] = [
    ("tools/list", "tools"),
    ("prompts/list", "prompts"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
];

/// All four lists, as text.
async fn lists(client: &mut Client) -> Vec<String> {
    let mut all = Vec::new();
    for (method, name) in LISTS {
        let reply = client.request(method, json!({})).await;
        assert!(!reply.result()[name].as_array().unwrap().is_empty(), "{method}");
        let members: HashMap<String, Box<RawValue>> = serde_json::from_str(&reply.text).unwrap();
        all.push(members["result"].get().to_owned());
    }
    all
}

#[tokio::test]
async fn page_03_lists_do_not_vary_by_connection_or_by_what_happened_before() {
    let mut of_processes = Vec::new();
    for wire in WIRES {
        let mut client = modern(wire).await;
        let fresh = lists(&mut client).await;
        client.begin("tools/call", long_countdown()).await;
        client.begin("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}})).await;
        for tool in [
            "echo",
            "no-such-tool",
            "test_trigger_tool_change",
            "test_trigger_prompt_change",
            "test_error_handling",
        ] {
            client.call(tool, json!({})).await;
        }
        client.request("resources/read", json!({"uri": "test://template/9/data"})).await;
        client.request("prompts/get", json!({"name": "test_simple_prompt"})).await;
        client.request("tools/list", json!({"cursor": "never issued"})).await;
        client.capabilities = json!({"elicitation": {}, "sampling": {}, "roots": {}});
        assert_eq!(
            lists(&mut client).await,
            fresh,
            "{wire:?}: after other requests, and with other capabilities"
        );
        if wire == Wire::Http {
            let mut other = neighbour(&client);
            assert_eq!(lists(&mut other).await, fresh, "another client sees the same");
            let mut old = neighbour(&client);
            old.handshake(LATEST_LEGACY, json!({})).await;
            assert_eq!(lists(&mut other).await, fresh, "a session beside it changes nothing");
        }
        of_processes.push(fresh);
        of_processes.push(lists(&mut modern(wire).await).await);
    }
    assert!(of_processes.windows(2).all(|pair| pair[0] == pair[1]), "the order is fixed, in every process");
}

#[tokio::test]
async fn a_cursor_that_was_never_issued_does_not_start_again_at_page_one() {
    for (wire, revision) in everywhere() {
        let mut client = client(wire, revision, json!({})).await;
        for (method, _) in LISTS {
            for cursor in
                [json!(""), json!("0"), json!("bmV2ZXI"), json!("日付"), json!(0), json!({}), json!(["x"])]
            {
                let reply = client.request(method, json!({"cursor": cursor})).await;
                assert_eq!(reply.code(), -32602, "{wire:?} {revision} {method} {cursor}");
            }
        }
    }
}

#[tokio::test]
async fn ping_01_ping_is_answered_at_once_before_initialized_and_while_calls_run() {
    for (wire, revision) in sessions() {
        let mut client = modern(wire).await;
        let ping = |id: &str| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
        let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        client
            .send(&json!({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": params}), &[])
            .await;
        let reply = client.reply(&json!("init")).await;
        let session = reply.head.as_ref().and_then(|head| header(&head.headers, "mcp-session-id"));
        client.session = session.map(str::to_owned);
        client.revision = Some(revision);
        client.send(&ping("before initialized"), &[]).await;
        let reply = client.reply(&json!("before initialized")).await;
        assert_eq!(
            reply.message,
            json!({"jsonrpc": "2.0", "id": "before initialized", "result": {}}),
            "{wire:?}"
        );
        assert!(reply.status().is_none_or(|status| status == 200));

        client.notify("notifications/initialized", json!({})).await;
        let mut running = Vec::new();
        for _ in 0..20 {
            running.push(client.begin("tools/call", long_countdown()).await);
        }
        client.next("notifications/progress").await;
        for params in [json!({}), json!({"_meta": {"vendor/key": 1}}), json!(null)] {
            let mut message = ping("while calls run");
            if !params.is_null() {
                message["params"] = params;
            }
            client.send(&message, &[]).await;
            let reply = client.reply(&json!("while calls run")).await;
            assert_eq!(reply.result(), &json!({}), "{wire:?} {revision}");
            assert!(!reply.before.iter().any(|m| running.contains(&m["id"])), "the calls still run");
        }
        let answered = |a: &Arrival| matches!(a, Arrival::Message(_, m, _) if running.contains(&m["id"]));
        assert!(!client.leftovers().iter().any(answered), "{wire:?} {revision}: the calls still run");
    }
}

#[tokio::test]
async fn ping_is_answered_before_initialize() {
    for wire in WIRES {
        let mut client = modern(wire).await;
        client.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}), &[]).await;
        let reply = client.reply(&json!(1)).await;
        assert_eq!(reply.result(), &json!({}), "{wire:?}");
        assert!(reply.status().is_none_or(|status| status == 200), "{wire:?}");
        let mut client = speaking(client, "2025-06-18", json!({})).await;
        is_alive(&mut client, "a ping before the handshake").await;
    }
}

#[tokio::test]
async fn rubbish_over_http_is_refused_one_by_one_and_the_server_lives_on() {
    for revision in LEGACY.into_iter().chain([MODERN]) {
        let mut client = client(Wire::Http, revision, json!({})).await;
        for (body, code) in rubbish() {
            if revision != MODERN && body.starts_with(b"[") {
                continue;
            }
            let exchange = client.exchange("POST", &[], body.clone());
            let (status, error) = refusal(&mut client, Wire::Http, exchange).await;
            let what = String::from_utf8_lossy(&body);
            assert_eq!(
                (status, &error["error"]["code"]),
                (Some(400), &json!(code)),
                "{revision} {what:.80}: {error}"
            );
            assert_eq!(error.get("id").cloned(), id_of_unreadable(revision), "{revision} {what:.80}");
        }
        for empty in ["", " ", "\r\n"] {
            let exchange = client.send_text(empty, &[]).await;
            let (status, error) = refusal(&mut client, Wire::Http, exchange).await;
            assert_eq!(
                (status, &error["error"]["code"]),
                (Some(400), &json!(-32700)),
                "{revision} {empty:?}"
            );
        }
        is_alive(&mut client, "rubbish").await;
    }
    let mut client = Client::start(Wire::Http, DATELINE, &["demo", "--max-message", "1000"]).await;
    let exchange = client.send_text(&"x".repeat(1001), &[]).await;
    let (status, error) = refusal(&mut client, Wire::Http, exchange).await;
    assert_eq!((status, error.get("id")), (Some(413), None), "{error}");
    assert!(is_of(MODERN, error["error"]["code"].as_i64().unwrap()), "{error}");
    is_alive(&mut client, "a body over the limit").await;
}

/// The same message with every member, at any depth, missing or of a type that is wrong there.
fn mutants(message: &Value) -> Vec<Value> {
    let junk = [json!(null), json!(true), json!(7), json!(-1.5), json!("x"), json!([]), json!({})];
    let mut all = Vec::new();
    if let Value::Object(members) = message {
        for (name, value) in members {
            let with = |replaced: Option<Value>| {
                let mut members = members.clone();
                match replaced {
                    Some(value) => drop(members.insert(name.clone(), value)),
                    None => drop(members.remove(name)),
                }
                Value::Object(members)
            };
            all.push(with(None));
            all.extend(junk.iter().filter(|junk| *junk != value).map(|junk| with(Some(junk.clone()))));
            all.extend(mutants(value).into_iter().map(|inner| with(Some(inner))));
        }
    }
    all
}

/// Whether a message is to be answered at all, and with which id.
enum Due {
    Nothing,
    Answer(Value),
    ErrorWithoutId,
}

fn due(message: &Value) -> Due {
    match message.get("id") {
        None if message.get("method").is_some() => Due::Nothing,
        Some(id) if id.is_string() || id.is_i64() => Due::Answer(id.clone()),
        _ => Due::ErrorWithoutId,
    }
}

/// Valid messages of every method that answers at once.
fn valid(revision: &str) -> Vec<Value> {
    let request = |method: &str, params: Value| {
        let mut message = json!({"jsonrpc": "2.0", "id": "mutant", "method": method, "params": params});
        message["params"]["_meta"]["vendor/key"] = json!("v");
        if revision == MODERN {
            let meta = &mut message["params"]["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = MODERN.into();
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {"form": {}}});
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "t", "version": "1"});
        }
        message
    };
    let reference = json!({"type": "ref/prompt", "name": "haiku"});
    let mut all = vec![
        request("tools/list", json!({"cursor": "x"})),
        request(
            "tools/call",
            json!({"name": "add", "arguments": {"a": 1, "b": 2}, "_meta": {"progressToken": 1}}),
        ),
        request("prompts/get", json!({"name": "haiku", "arguments": {"topic": "rain"}})),
        request("resources/read", json!({"uri": "demo://welcome"})),
        request(
            "completion/complete",
            json!({"ref": reference, "argument": {"name": "topic", "value": "r"}, "context": {"arguments": {"a": "b"}}}),
        ),
    ];
    if revision == MODERN {
        let answer = json!({"user_name": {"action": "accept", "content": {"name": "Ada"}}});
        let retry = json!({"name": "test_input_required_result_elicitation", "arguments": {}, "inputResponses": answer});
        let meta = json!({"io.modelcontextprotocol/logLevel": "info"});
        all.push(request("tools/call", retry));
        all.push(request("server/discover", json!({"_meta": meta})));
    } else {
        all.push(json!({"jsonrpc": "2.0", "id": "mutant", "method": "ping", "params": {"_meta": {}}}));
        all.push(request("resources/subscribe", json!({"uri": "demo://welcome"})));
        all.push(request("resources/unsubscribe", json!({"uri": "demo://welcome"})));
        all.push(request("logging/setLevel", json!({"level": "error"})));
    }
    all
}

/// Sends a message that is wrong somewhere, and asserts that it gets what is due and nothing else.
async fn suffer(client: &mut Client, wire: Wire, revision: &str, message: &Value) -> Option<Value> {
    let method = message["method"].as_str().filter(|method| !method.is_empty()).unwrap_or("tools/list");
    let modern = match revision {
        MODERN => testkit::modern_headers(method, &message["params"]),
        _ => Vec::new(),
    };
    let headers: Vec<(&str, &str)> = modern.iter().map(|(n, v)| (*n, v.as_str())).collect();
    let exchange = client.send(message, &headers).await;
    let answer = match due(message) {
        Due::Nothing => None,
        Due::Answer(id) => Some(client.reply(&id).await.message),
        Due::ErrorWithoutId => Some(refusal(client, wire, exchange).await.1),
    };
    if let Some(error) = answer.as_ref().and_then(|answer| answer.get("error")) {
        let code = error["code"].as_i64().expect("a code is an integer");
        assert!(is_of(revision, code) || revision == "none", "{wire:?} {revision} {message}: {error}");
        assert_ne!(code, -32603, "{wire:?} {revision} {message}: it is not the server's fault: {error}");
    }
    is_alive(client, &message.to_string()).await;
    answer
}

#[tokio::test]
async fn a_field_of_the_wrong_type_ends_its_own_message_alone_on_a_pipe() {
    wrong_types(Wire::Stdio).await;
}

#[tokio::test]
async fn a_field_of_the_wrong_type_ends_its_own_message_alone_over_http() {
    wrong_types(Wire::Http).await;
}

async fn wrong_types(wire: Wire) {
    for revision in LEGACY.into_iter().chain([MODERN]) {
        let mut client = client(wire, revision, json!({})).await;
        for message in valid(revision) {
            for mutant in mutants(&message) {
                suffer(&mut client, wire, revision, &mutant).await;
            }
        }
        let left = client.leftovers();
        let strays: Vec<_> =
            left.iter().filter(|a| matches!(a, Arrival::Message(..) | Arrival::Rubbish(..))).collect();
        assert!(strays.is_empty(), "{wire:?} {revision}: {strays:?}");
    }
}

#[tokio::test]
async fn an_initialize_with_a_field_of_the_wrong_type_ends_that_call_alone() {
    let params = json!({
        "protocolVersion": LATEST_LEGACY,
        "capabilities": {"roots": {"listChanged": true}, "elicitation": {"form": {}}},
        "clientInfo": {"name": "t", "version": "1"},
    });
    let message = json!({"jsonrpc": "2.0", "id": "mutant", "method": "initialize", "params": params});
    for wire in WIRES {
        let mut fresh = modern(wire).await;
        for mutant in mutants(&message) {
            let answer = suffer_before(&mut fresh, wire, &mutant).await;
            // Where it was taken all the same the session that it opened works.
            if let Some(result) = answer.filter(|answer| answer.get("result").is_some()) {
                assert!(result["result"]["protocolVersion"].is_string(), "{wire:?} {mutant}: {result}");
                fresh = modern(wire).await;
            }
        }
        let mut client = speaking(fresh, "2024-11-05", json!({})).await;
        is_alive(&mut client, "all of them").await;
    }
}

/// As [`suffer`], for a client that has no session yet.
async fn suffer_before(client: &mut Client, wire: Wire, message: &Value) -> Option<Value> {
    let exchange = client.send(message, &[]).await;
    let answer = match due(message) {
        Due::Nothing => None,
        Due::Answer(id) => Some(client.reply(&id).await.message),
        Due::ErrorWithoutId => Some(refusal(client, wire, exchange).await.1),
    };
    let opened = answer.as_ref().is_some_and(|answer| answer.get("result").is_some());
    if opened && wire == Wire::Stdio {
        client.revision = Some(LATEST_LEGACY);
    }
    if let Some(error) = answer.as_ref().and_then(|answer| answer.get("error")) {
        let code = error["code"].as_i64().expect("a code is an integer");
        assert!([-32600, -32601, -32602].contains(&code), "{wire:?} {message}: {error}");
    }
    is_alive(client, &message.to_string()).await;
    answer
}

#[tokio::test]
async fn unknown_fields_are_ignored_and_numbers_keep_their_form() {
    for (wire, revision) in everywhere() {
        let mut client = client(wire, revision, json!({})).await;
        let meta = match revision {
            MODERN => client.modern_params(json!({}))["_meta"].to_string(),
            _ => "{}".to_owned(),
        };
        let meta = meta.replacen('{', r#"{"vendor.example/key":{"n":1.0,"e":1e400},"#, 1).replace(",}", "}");
        let headers = [
            ("mcp-protocol-version", revision),
            ("mcp-method", "tools/call"),
            ("mcp-name", "test_custom_header"),
            ("mcp-param-value", "x"),
        ];
        let headers = if revision == MODERN { &headers[..] } else { &[] };
        let arguments = r#"{"value":"x","n":1.0,"big":18446744073709551615,"small":-9223372036854775808,"text":"\u00e9"}"#;
        let text = format!(
            r#"{{"vendor":[1e400],"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"execution":{{"x":1.0}},"name":"test_custom_header","task":null,"arguments":{arguments},"_meta":{meta}}},"z":null}}"#
        );
        client.send_text(&text, headers).await;
        let reply = client.reply(&json!(1)).await;
        assert_eq!(
            reply.said(),
            arguments,
            "{wire:?} {revision}: the handler gets what was sent, to the byte"
        );
    }
}

#[tokio::test]
async fn a_number_that_no_machine_type_holds_is_a_number_all_the_same() {
    for (wire, revision) in everywhere() {
        let mut client = client(wire, revision, json!({})).await;
        let params = json!({"name": "echo", "arguments": {"message": "hi", "vendor": "HUGE"}});
        let headers = match revision {
            MODERN => testkit::modern_headers("tools/call", &client.modern_params(params.clone())),
            _ => Vec::new(),
        };
        let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
        let params = if revision == MODERN { client.modern_params(params) } else { params };
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        client.send_text(&call.to_string().replace("\"HUGE\"", "1e400"), &headers).await;
        let reply = client.reply(&json!(1)).await;
        assert_eq!(reply.said(), "hi", "{wire:?} {revision}: the tool does not know the field");
    }
}

#[tokio::test]
async fn an_integer_may_be_written_with_a_fraction_of_zero() {
    for (wire, revision) in everywhere() {
        let mut client = client(wire, revision, json!({})).await;
        // By the schema that the tool itself gives these are integers.
        let arguments = json!({"from": 2.0, "intervalMs": 0.0});
        let reply = client.call("countdown", arguments).await;
        assert_eq!(reply.said(), "counted down from 2", "{wire:?} {revision}");
    }
}

#[tokio::test]
async fn legacy_errors_and_results_carry_nothing_of_the_modern_era() {
    for (wire, revision) in sessions() {
        let (mut client, opened) = legacy(wire, revision, json!({})).await;
        let replies = [
            opened,
            client.call("echo", json!({"message": "hi"})).await,
            client.request("tools/list", json!({})).await,
            client.request("resources/read", json!({"uri": "demo://welcome"})).await,
        ];
        for reply in replies {
            for field in ["resultType", "ttlMs", "cacheScope", "requestState", "inputRequests"] {
                assert!(
                    reply.result().get(field).is_none(),
                    "{wire:?} {revision} {field}: {}",
                    reply.message
                );
            }
            assert!(!reply.text.contains("io.modelcontextprotocol/"), "{wire:?} {revision}: {}", reply.text);
        }
    }
}
