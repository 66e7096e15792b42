//! Tools and resources: unknown ones, misfits, and handlers that panic.

use dateline::{Context, Resource, ResourceContents, ResourceTemplate, Server, Tool, ToolResult};
use serde_json::json;
use testkit::{MODERN, WIRES};

use super::local;
use crate::modern;
use crate::msg::{client, everywhere, speaking};

#[testkit::test]
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

#[testkit::test]
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

#[testkit::test]
async fn res_03_a_resource_that_does_not_exist_never_yields_empty_contents() {
    let absent = [
        "demo://nothing",
        "demo://welcome/",
        "DEMO://welcome",
        "test://template/1/2/data",
        "test://template//",
        "x:",
    ];
    for wire in WIRES {
        let mut client = modern(wire).await;
        for uri in absent {
            let reply = client.request("resources/read", json!({"uri": uri})).await;
            assert_eq!(reply.code(), -32602, "{wire:?} {uri}: {}", reply.message);
            assert_eq!(reply.error()["data"]["uri"], uri, "{wire:?}");
            assert!(reply.message.get("result").is_none(), "{wire:?} {uri}");
        }
        // Also where a handler finds nothing.
        let none = || async { Vec::<ResourceContents>::new() };
        let server = Server::new("empty", "1")
            .resource(Resource::new("empty://fixed", "Nothing", none))
            .template(ResourceTemplate::new("empty://list/{id}", "No contents", || async {
                Some(Vec::<ResourceContents>::new())
            }))
            .template(ResourceTemplate::new("empty://none/{id}", "Nothing there", || async {
                None::<String>
            }));
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
    let panics = |cx: Context| async move {
        assert!(cx.id().is_empty(), "this is meant to fail");
        "never"
    };
    let misfit = || async { ToolResult::structured(&json!({"sum": "not a number"})) };
    let bare = || async { "only text" };
    let sum = json!({"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]});
    let server = Server::new("unruly", "1")
        .tool(Tool::new("panics", "Panics.", panics))
        .tool(Tool::new("misfit", "Does not do what it says.", misfit).output_schema(&sum))
        .tool(Tool::new("bare", "Gives less than it says.", bare).output_schema(&sum))
        .tool(Tool::new("echo", "Answers.", || async { "alive" }))
        .resource(Resource::new("unruly://panics", "Panics", || async {
            if true {
                panic!("this is meant to fail")
            }
            "never"
        }))
        .prompt(dateline::Prompt::new("panics", "Panics.", || async {
            if true {
                panic!("this is meant to fail")
            }
            "never"
        }));
    server.build().unwrap()
}

#[testkit::test]
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
