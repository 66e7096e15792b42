//! Error codes.

use dateline::{Context, Error, Result, Server, Tool};
use serde_json::{Value, json};
use testkit::{Client, LEGACY, MODERN, WIRES, Wire};

use super::{client, is_alive, is_of, refusal, sessions, speaking};
use crate::features::local;
use crate::stdio::rubbish;
use crate::{DATELINE, modern};

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

#[testkit::test]
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

#[testkit::test]
async fn msg_04_msg_10_modern_requests_get_three_codes_of_the_reserved_range_and_no_old_ones() {
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
    // Whoever fails leaves out the data that errors of some codes have.
    client.unjudged = true;
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
    let fail = |cx: Context| async move {
        let arguments: Value = cx.arguments().read()?;
        Result::<()>::Err(Error::code(arguments["code"].as_i64().unwrap_or_default(), "as you wish"))
    };
    let input = json!({"type": "object", "properties": {"code": {"type": "integer"}}});
    let server = Server::new("coded", "1").tool(Tool::new("fail", "Fails.", fail).input_schema(&input));
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
        Wire::Http | Wire::Sse => {
            let args = ["serve", "--config", path, "--listen", "127.0.0.1:0"];
            let program = testkit::Program::http(DATELINE, &args).await;
            let mut client = Client::over(wire, program.url.as_deref().unwrap()).await;
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

#[testkit::test]
async fn msg_09_a_method_whose_capability_is_not_advertised_is_not_found() {
    let say = || Tool::new("say", "Says something.", || async { "something" });
    let haiku = || dateline::Prompt::new("haiku", "A haiku.", || async { "Hello." });
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
