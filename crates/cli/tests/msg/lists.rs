//! Lists and cursors.

use std::collections::HashMap;

use serde_json::json;
use serde_json::value::RawValue;
use testkit::{Client, LATEST_LEGACY, WIRES, Wire};

use super::{client, everywhere, neighbour};
use crate::{long_countdown, modern};

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

#[testkit::test]
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
            // Called twice, these have changed nothing.
            "test_trigger_tool_change",
            "test_trigger_tool_change",
            "test_trigger_prompt_change",
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

#[testkit::test]
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
