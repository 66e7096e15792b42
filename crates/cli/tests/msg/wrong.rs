//! What is not as it should be: rubbish, wrong types, unknown fields, odd numbers.

use dateline::{Context, Error, Messages, Prompt, Rate, Server, Tool};
use serde_json::{Value, json};
use testkit::{Arrival, Client, LATEST_LEGACY, LEGACY, MODERN, WIRES, Wire};

use super::{client, everywhere, is_alive, is_of, refusal, sessions, speaking};
use crate::features::local;
use crate::stdio::{id_of_unreadable, rubbish};
use crate::{DATELINE, legacy, modern};

#[testkit::test]
async fn rubbish_over_http_is_refused_one_by_one_and_the_server_lives_on() {
    for revision in LEGACY.into_iter().chain([MODERN]) {
        let mut client = client(Wire::Http, revision, json!({})).await;
        let version: &[_] = if revision == MODERN { &[("mcp-protocol-version", MODERN)] } else { &[] };
        for (body, code) in rubbish() {
            if revision != MODERN && body.starts_with(b"[") {
                continue;
            }
            let exchange = client.exchange("POST", version, body.clone());
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

fn completion() -> Value {
    let reference = json!({"type": "ref/prompt", "name": "haiku"});
    json!({"ref": reference, "argument": {"name": "topic", "value": "r"}, "context": {"arguments": {"a": "b"}}})
}

/// A server that completes as often as it is asked to: a demo does not.
fn tireless() -> Server {
    let echo = |cx: Context| async move {
        let arguments: Value = cx.arguments().read()?;
        Ok::<_, Error>(arguments["message"].as_str().unwrap_or_default().to_owned())
    };
    let haiku = Prompt::new("haiku", "A haiku.", || async { Messages::new() });
    Server::new("tireless", "1")
        .completions_rate(Rate::per_second(1_000_000))
        .tool(Tool::new("echo", "Says what you say.", echo).input_schema(json!({"type": "object"})))
        .prompt(haiku.argument("topic", "What about.", true).choices("topic", ["rain"]))
        .build()
        .unwrap()
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
    let mut all = vec![
        request("tools/list", json!({"cursor": "x"})),
        request(
            "tools/call",
            json!({"name": "add", "arguments": {"a": 1, "b": 2}, "_meta": {"progressToken": 1}}),
        ),
        request("prompts/get", json!({"name": "haiku", "arguments": {"topic": "rain"}})),
        request("resources/read", json!({"uri": "demo://welcome"})),
        request("completion/complete", completion()),
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

#[testkit::test]
async fn a_field_of_the_wrong_type_ends_its_own_message_alone_on_a_pipe() {
    wrong_types(Wire::Stdio).await;
}

#[testkit::test]
async fn a_field_of_the_wrong_type_ends_its_own_message_alone_over_http() {
    wrong_types(Wire::Http).await;
}

async fn wrong_types(wire: Wire) {
    for revision in LEGACY.into_iter().chain([MODERN]) {
        let demo = client(wire, revision, json!({})).await;
        let tireless = speaking(local(wire, tireless()).await, revision, json!({})).await;
        let (completing, others): (Vec<_>, Vec<_>) =
            valid(revision).into_iter().partition(|message| message["method"] == "completion/complete");
        for (mut client, messages) in [(demo, others), (tireless, completing)] {
            for message in messages {
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
}

#[testkit::test]
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

#[testkit::test]
async fn msg_08_unknown_fields_are_ignored_and_numbers_keep_their_form() {
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
        // The one has numbers that this client's own reader does not take.
        for text in [&text, &text.replace("1e400", "1e4")] {
            client.send_text(text, headers).await;
            let reply = client.reply(&json!(1)).await;
            assert_eq!(
                reply.said(),
                arguments,
                "{wire:?} {revision}: the handler gets what was sent, to the byte"
            );
        }
    }
}

#[testkit::test]
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

#[testkit::test]
async fn an_integer_may_be_written_with_a_fraction_of_zero() {
    for (wire, revision) in everywhere() {
        let mut client = client(wire, revision, json!({})).await;
        // By the schema that the tool itself gives these are integers.
        let arguments = json!({"from": 2.0, "intervalMs": 0.0});
        let reply = client.call("countdown", arguments).await;
        assert_eq!(reply.said(), "counted down from 2", "{wire:?} {revision}");
    }
}

#[testkit::test]
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
