//! `null` where something may be left out.

use serde_json::{Value, json};
use testkit::{LEGACY, MODERN, WIRES, Wire};

use super::{client, everywhere};
use crate::modern;

#[testkit::test]
async fn null_is_taken_for_what_is_not_there_in_every_revision() {
    for (wire, revision) in everywhere() {
        let mut client = client(wire, revision, json!({})).await;
        let what = format!("{wire:?} {revision}");
        let listed = client.request("tools/list", json!({"cursor": null})).await;
        assert!(listed.result()["tools"].is_array(), "{what}");
        let token = json!({"progressToken": null});
        let called = client
            .request("tools/call", json!({"name": "test_simple_text", "arguments": null, "_meta": token}));
        assert!(!called.await.said().is_empty(), "{what}");
        let argument = json!({"ref": {"type": "ref/prompt", "name": "haiku"}, "argument": {"name": "topic", "value": ""}, "context": null});
        assert!(
            client.request("completion/complete", argument.clone()).await.result()["completion"].is_object(),
            "{what}"
        );
        let mut within = argument;
        within["context"] = json!({"arguments": null});
        assert!(
            client.request("completion/complete", within).await.result()["completion"].is_object(),
            "{what}"
        );
        if revision == MODERN {
            let answers = json!({"name": "test_simple_text", "inputResponses": null, "requestState": null});
            assert!(!client.request("tools/call", answers).await.said().is_empty(), "{what}");
            let meta =
                json!({"io.modelcontextprotocol/logLevel": null, "io.modelcontextprotocol/clientInfo": null});
            client.request("tools/list", json!({"_meta": meta})).await.result();
            continue;
        }
        for params in [json!({"_meta": null}), Value::Null] {
            assert!(client.request("tools/list", params).await.result()["tools"].is_array(), "{what}");
        }
        client.request("ping", Value::Null).await.result();
        // What must be there is missing where it is null.
        assert_eq!(client.request("logging/setLevel", json!({"level": null})).await.code(), -32602, "{what}");
        assert_eq!(client.request("tools/call", json!({"name": null})).await.code(), -32602, "{what}");
    }
}

#[testkit::test]
async fn a_filter_with_nulls_wants_what_is_left() {
    for wire in WIRES {
        let mut client = modern(wire).await;
        let wanted =
            json!({"toolsListChanged": true, "promptsListChanged": null, "resourceSubscriptions": null});
        client.begin("subscriptions/listen", json!({"notifications": wanted})).await;
        let acknowledged = client.next("notifications/subscriptions/acknowledged").await;
        assert_eq!(acknowledged["params"]["notifications"], json!({"toolsListChanged": true}), "{wire:?}");
    }
}

#[testkit::test]
async fn capabilities_that_are_null_declare_nothing() {
    for revision in LEGACY {
        for wire in [Wire::Stdio, Wire::Http, Wire::Sse] {
            let mut client = modern(wire).await;
            let params =
                json!({"protocolVersion": revision, "capabilities": null, "clientInfo": null, "_meta": null});
            let opened = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
            client.send(&opened, &[]).await;
            let reply = client.reply(&json!(1)).await;
            assert_eq!(reply.result()["protocolVersion"], revision, "{wire:?}");
        }
    }
}
