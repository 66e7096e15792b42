//! What a modern request and its result say of themselves.

use serde_json::{Value, json};
use testkit::{Arrival, Client, MODERN, Reply, WIRES, Wire};

use crate::era::{
    CAPABILITIES, OFFERED, SERVER_INFO, VERSION, ask, ask_fitting, echo, haiku_topic, meta, request, sampled,
    status,
};
use crate::{DATELINE, modern};

/// A client that can answer every question.
async fn able(wire: Wire) -> Client {
    let mut client = modern(wire).await;
    client.capabilities = everything_able();
    client
}

fn everything_able() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}, "context": {}}, "roots": {}})
}

fn call(name: &str, arguments: Value) -> Value {
    json!({"name": name, "arguments": arguments})
}

#[testkit::test]
async fn meta_01_discover_tells_versions_capabilities_instructions_and_freshness() {
    for wire in WIRES {
        let mut client = modern(wire).await;
        let reply = client.request("server/discover", json!({})).await;
        assert_eq!(reply.status(), status(wire, 200), "{wire:?}");
        let result = reply.result();
        assert_eq!(result["resultType"], "complete", "{wire:?}");
        assert_eq!(result["supportedVersions"], json!(OFFERED), "{wire:?}");
        let capabilities = json!({
            "tools": {"listChanged": true},
            "prompts": {"listChanged": true},
            "resources": {"listChanged": true, "subscribe": true},
            "completions": {},
            "logging": {},
            "extensions": {"io.modelcontextprotocol/skills": {"directoryRead": true}},
        });
        assert_eq!(result["capabilities"], capabilities, "{wire:?}");
        assert!(result["instructions"].as_str().unwrap().contains("countdown"), "{wire:?}");
        assert!(result["ttlMs"].is_u64(), "{wire:?}: {}", result["ttlMs"]);
        assert!(["public", "private"].contains(&result["cacheScope"].as_str().unwrap()), "{wire:?}");
        let members = [
            "resultType",
            "supportedVersions",
            "capabilities",
            "instructions",
            "ttlMs",
            "cacheScope",
            "_meta",
        ];
        let strange = result.as_object().unwrap().keys().find(|key| !members.contains(&key.as_str()));
        assert_eq!(strange, None, "{wire:?}");
    }
    // Where there are no instructions the member is not there.
    let config = crate::gateway::Config::new(&[]);
    let mut client = Client::pipe(DATELINE, &["stdio", "--config", config.path()]);
    let reply = client.request("server/discover", json!({})).await;
    assert_eq!(reply.result().get("instructions"), None);
    assert_eq!(reply.result()["supportedVersions"], json!(OFFERED));
}

#[testkit::test]
async fn meta_02_the_identity_is_in_meta_and_not_at_the_top() {
    for wire in WIRES {
        let mut client = modern(wire).await;
        let reply = client.request("server/discover", json!({})).await;
        let identity = &reply.result()["_meta"][SERVER_INFO];
        assert_eq!(identity["name"], "dateline-demo", "{wire:?}");
        assert!(identity["version"].is_string(), "{wire:?}");
        for member in ["serverInfo", SERVER_INFO, "name", "version"] {
            assert_eq!(reply.result().get(member), None, "{wire:?} {member}");
        }
    }
}

#[testkit::test]
async fn meta_03_an_unserved_version_is_32022_with_what_is_served() {
    for wire in WIRES {
        let mut client = modern(wire).await;
        for (at, requested) in ["2031-01-01", "1999-01-01", "2026-07-29", "rubbish"].into_iter().enumerate() {
            for method in
                ["server/discover", "tools/list", "tools/call", "subscriptions/listen", "ping", "no/method"]
            {
                let asked = request(format!("{at} {method}"), method, json!({"_meta": meta(requested)}));
                let reply = ask_fitting(&mut client, &asked, &[]).await;
                assert_eq!(reply.code(), -32022, "{wire:?} {requested:?} {method}");
                assert_eq!(reply.status(), status(wire, 400), "{wire:?} {requested:?} {method}");
                let data = json!({"supported": OFFERED, "requested": requested});
                assert_eq!(reply.error()["data"], data, "{wire:?} {requested:?} {method}");
            }
        }
        // A version that is served is taken from the same client afterwards.
        assert_eq!(client.call("echo", json!({"message": "hi"})).await.said(), "hi", "{wire:?}");
    }
}

#[testkit::test]
async fn meta_04_version_and_capabilities_are_required_and_client_info_is_not() {
    for wire in WIRES {
        let mut client = modern(wire).await;
        // What lacks, and whose name the error must give.
        let cases = [
            (json!({CAPABILITIES: {}}), VERSION),
            (json!({VERSION: null, CAPABILITIES: {}}), VERSION),
            (json!({VERSION: 20_260_728, CAPABILITIES: {}}), VERSION),
            (json!({VERSION: [MODERN], CAPABILITIES: {}}), VERSION),
            (json!({VERSION: MODERN}), CAPABILITIES),
            (json!({VERSION: MODERN, CAPABILITIES: null}), CAPABILITIES),
            (json!({VERSION: MODERN, CAPABILITIES: []}), CAPABILITIES),
            (json!({VERSION: MODERN, CAPABILITIES: "none"}), CAPABILITIES),
            (json!({VERSION: MODERN, "clientCapabilities": {}}), CAPABILITIES),
            (json!({}), VERSION),
        ];
        for (at, (meta, lacks)) in cases.into_iter().enumerate() {
            for method in ["server/discover", "tools/list", "subscriptions/listen", "no/method"] {
                let asked = request(format!("{at} {method}"), method, json!({"_meta": meta}));
                let headers = [("mcp-protocol-version", MODERN), ("mcp-method", method)];
                let reply = ask(&mut client, &asked, &headers).await;
                assert_eq!(reply.code(), -32602, "{wire:?} {asked}");
                assert_eq!(reply.status(), status(wire, 400), "{wire:?} {asked}");
                let told = reply.error()["message"].as_str().unwrap();
                assert!(told.contains(lacks), "{wire:?} {asked}: {told}");
            }
        }
        let info = "io.modelcontextprotocol/clientInfo";
        for (at, own) in [json!({}), json!({info: {"name": "me", "version": "1"}})].into_iter().enumerate() {
            let mut meta = meta(MODERN);
            meta.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
            let reply =
                ask_fitting(&mut client, &request(format!("i{at}"), "tools/call", echo(meta)), &[]).await;
            assert_eq!((reply.said(), reply.status()), ("hi", status(wire, 200)), "{wire:?} {own}");
        }
    }
}

/// Calls a tool with these capabilities; gives the keys of what it asks, or what it says.
async fn asked_with(client: &mut Client, capabilities: Value, tool: &str) -> (Vec<String>, String) {
    client.capabilities = capabilities;
    let reply = client.call(tool, json!({})).await;
    let asked = reply.result()["inputRequests"].as_object();
    (asked.map(|map| map.keys().cloned().collect()).unwrap_or_default(), reply.said().to_owned())
}

#[testkit::test]
async fn meta_05_capabilities_are_those_of_this_request_alone() {
    const TOOL: &str = "test_input_required_result_capabilities";
    for wire in WIRES {
        let mut client = modern(wire).await;
        for (capabilities, asks) in [
            (json!({"elicitation": {}}), Some("user_name")),
            (json!({}), None),
            (json!({"sampling": {}}), Some("capital_question")),
            (json!({"elicitation": {"form": {}}}), Some("user_name")),
            (json!({"roots": {}}), None),
        ] {
            let (asked, _) = asked_with(&mut client, capabilities.clone(), TOOL).await;
            let due: Vec<String> = asks.into_iter().map(str::to_owned).collect();
            assert_eq!(asked, due, "{wire:?} {capabilities}");
        }
        // What an earlier request declared does not make up for what this one lacks, nor does it in a retry.
        client.capabilities = json!({"elicitation": {}});
        let name = "test_input_required_result_multi_round";
        let first = client.call(name, json!({})).await;
        assert_eq!(first.result()["resultType"], "input_required", "{wire:?}");
        client.capabilities = json!({});
        let mut retry = call(name, json!({}));
        retry["requestState"] = first.result()["requestState"].clone();
        retry["inputResponses"] = json!({"step1": {"action": "accept", "content": {"name": "Ada"}}});
        let second = client.request("tools/call", retry.clone()).await;
        assert_eq!(second.code(), -32021, "{wire:?}");
        assert_eq!(second.status(), status(wire, 400), "{wire:?}");
        assert!(second.error()["data"]["requiredCapabilities"]["elicitation"].is_object(), "{wire:?}");
        client.capabilities = json!({"elicitation": {}});
        let second = client.request("tools/call", retry).await;
        assert!(second.result()["inputRequests"]["step2"].is_object(), "{wire:?}");
        // Two requests at once are each by themselves.
        let poor = json!({"name": "test_missing_capability", "_meta": meta(MODERN)});
        let mut rich = poor.clone();
        rich["_meta"][CAPABILITIES] = json!({"sampling": {}});
        let [poor, rich] =
            [("poor", poor), ("rich", rich)].map(|(id, params)| request(id, "tools/call", params));
        for asked in [&poor, &rich] {
            let headers = [
                ("mcp-protocol-version", MODERN),
                ("mcp-method", "tools/call"),
                ("mcp-name", "test_missing_capability"),
            ];
            client.send(asked, &headers).await;
        }
        assert_eq!(client.reply(&json!("poor")).await.code(), -32021, "{wire:?}");
        let interim = client.reply(&json!("rich")).await;
        assert_eq!(interim.result()["resultType"], "input_required", "{wire:?}");
    }
}

/// Asks the program to end.
pub(crate) fn terminate(client: &Client) {
    let id = client.program.as_ref().unwrap().child.id().unwrap().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
}

/// Every kind of result that the demo can give to a modern client, with the type that is due.
async fn results(wire: Wire) -> Vec<(String, &'static str, Reply)> {
    let mut client = able(wire).await;
    let mut found = Vec::new();
    for (method, params, kind) in [
        ("server/discover", json!({}), "complete"),
        ("tools/list", json!({}), "complete"),
        ("tools/call", call("echo", json!({"message": "hi"})), "complete"),
        ("tools/call", call("add", json!({"a": 1, "b": 2})), "complete"),
        ("tools/call", call("add", json!({"a": "one"})), "complete"),
        ("tools/call", call("test_error_handling", json!({})), "complete"),
        ("tools/call", call("test_multiple_content_types", json!({})), "complete"),
        ("tools/call", json!({"name": "test_tool_with_progress", "_meta": {"progressToken": 1}}), "complete"),
        ("tools/call", call("test_elicitation", json!({"message": "?"})), "input_required"),
        ("tools/call", call("test_input_required_result_multiple_inputs", json!({})), "input_required"),
        ("prompts/list", json!({}), "complete"),
        ("prompts/get", call("haiku", json!({"topic": "rain"})), "complete"),
        ("prompts/get", call("test_input_required_result_prompt", json!({})), "input_required"),
        ("resources/list", json!({}), "complete"),
        ("resources/templates/list", json!({}), "complete"),
        ("resources/read", json!({"uri": "demo://welcome"}), "complete"),
        ("resources/read", json!({"uri": "test://template/7/data"}), "complete"),
        ("completion/complete", haiku_topic(), "complete"),
    ] {
        found.push((format!("{wire:?} {method} {params}"), kind, client.request(method, params).await));
    }
    // A retry that is complete.
    let interim = client.call("test_sampling", json!({"prompt": "?"})).await;
    let mut retry = call("test_sampling", json!({"prompt": "?"}));
    retry["requestState"] = interim.result()["requestState"].clone();
    retry["inputResponses"] = json!({"sampling": sampled("answer")});
    found.push((format!("{wire:?} retry"), "complete", client.request("tools/call", retry).await));
    // The result of a listen, when the server ends it.
    let listen =
        client.begin("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}})).await;
    client.next("notifications/subscriptions/acknowledged").await;
    terminate(&client);
    found.push((format!("{wire:?} listen"), "complete", client.reply(&listen).await));
    found
}

#[testkit::test]
async fn meta_06_every_result_carries_its_type() {
    for wire in WIRES {
        for (what, kind, reply) in results(wire).await {
            assert_eq!(reply.result()["resultType"], kind, "{what}: {}", reply.message);
        }
    }
}

#[testkit::test]
async fn meta_07_every_result_carries_the_servers_identity() {
    for wire in WIRES {
        for (what, _, reply) in results(wire).await {
            let identity = &reply.result()["_meta"][SERVER_INFO];
            let due =
                json!({"name": "dateline-demo", "version": identity["version"], "title": "dateline demo"});
            assert_eq!(identity, &due, "{what}: {}", reply.message);
            assert!(identity["version"].is_string(), "{what}");
            assert_eq!(reply.result().get("serverInfo"), None, "{what}");
        }
    }
}

#[testkit::test]
async fn meta_08_the_server_never_sends_a_request() {
    for wire in WIRES {
        let mut client = able(wire).await;
        let listed = client.request("tools/list", json!({})).await;
        let watched =
            json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true});
        client.begin("subscriptions/listen", json!({"notifications": watched})).await;
        let mut heard = vec![client.next("notifications/subscriptions/acknowledged").await];
        let (mut asked, mut called) = (0, 0);
        for tool in listed.result()["tools"].as_array().unwrap() {
            let name = tool["name"].as_str().unwrap();
            let arguments = json!({
                "message": "?", "prompt": "?", "a": 1, "b": 2, "from": 1, "intervalMs": 1, "seconds": 0,
                "query": "?", "uri": "demo://welcome", "value": "v",
            });
            let needed = tool["inputSchema"]["properties"].as_object().cloned().unwrap_or_default();
            let arguments: serde_json::Map<_, _> = arguments
                .as_object()
                .unwrap()
                .clone()
                .into_iter()
                .filter(|(k, _)| needed.contains_key(k))
                .collect();
            let params = json!({
                "name": name, "arguments": arguments,
                "_meta": {"progressToken": name, "io.modelcontextprotocol/logLevel": "debug"},
            });
            let asking = request(format!("call {name}"), "tools/call", client.modern_params(params));
            // The header of the demo's one mirrored argument that is given here.
            let reply = ask_fitting(&mut client, &asking, &[("mcp-param-value", "v")]).await;
            asked += usize::from(reply.result()["resultType"] == "input_required");
            called += 1;
            heard.extend(reply.before);
            heard.push(reply.message);
        }
        assert!(asked >= 10 && called >= 25, "{wire:?}: {asked} of {called} tools asked");
        heard.extend(client.leftovers().into_iter().filter_map(|arrival| match arrival {
            Arrival::Message(_, message, _) => Some(message),
            _ => None,
        }));
        for message in heard {
            let request = message.get("method").is_some() && message.get("id").is_some();
            assert!(!request, "{wire:?}: {message}");
        }
    }
}
