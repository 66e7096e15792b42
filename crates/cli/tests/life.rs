//! Opening and ending a connection.

use serde_json::json;
use testkit::{Arrival, Between, LATEST_LEGACY, LEGACY, MODERN, WIRES, Wire, covers};

use crate::{legacy, long_countdown, modern};

#[tokio::test]
async fn life_01_initialize_gives_version_capabilities_and_server() {
    for wire in WIRES {
        for revision in LEGACY {
            let (_client, reply) = legacy(wire, revision, json!({})).await;
            let result = reply.result();
            assert!(result["protocolVersion"].is_string(), "{wire:?} {revision}");
            assert!(result["capabilities"]["tools"].is_object(), "{wire:?} {revision}");
            assert_eq!(result["serverInfo"]["name"], "dateline-demo", "{wire:?} {revision}");
            assert!(result["serverInfo"]["version"].is_string(), "{wire:?} {revision}");
        }
    }
}

#[tokio::test]
async fn life_02_a_served_version_is_echoed() {
    for wire in WIRES {
        for revision in LEGACY {
            let (_client, reply) = legacy(wire, revision, json!({})).await;
            assert_eq!(reply.result()["protocolVersion"], revision, "{wire:?}");
        }
    }
}

#[tokio::test]
async fn life_03_another_version_is_answered_with_the_latest_handshake_revision() {
    for wire in WIRES {
        // What is asked for is no revision, and all are answered by the latest.
        covers(&LEGACY, wire, Between::Nothing);
        for asked in ["1999-01-01", "2031-01-01", MODERN, "rubbish", ""] {
            let (mut client, reply) =
                legacy(wire, Box::leak(asked.to_owned().into_boxed_str()), json!({})).await;
            assert_eq!(reply.result()["protocolVersion"], LATEST_LEGACY, "{wire:?} {asked:?}");
            // The session works, in the revision that was named.
            client.revision = Some(LATEST_LEGACY);
            assert_eq!(client.call("echo", json!({"message": "hi"})).await.said(), "hi");
        }
    }
}

#[tokio::test]
async fn life_07_end_of_input_ends_the_process_and_what_runs() {
    for era in ["legacy", "modern"] {
        let mut client = modern(Wire::Stdio).await;
        if era == "legacy" {
            client.handshake(LATEST_LEGACY, json!({})).await;
        }
        let running = client.begin("tools/call", long_countdown()).await;
        client.next("notifications/progress").await;
        let ready =
            client.begin("tools/call", json!({"name": "echo", "arguments": {"message": "owed"}})).await;
        client.close_input();
        assert_eq!(client.reply(&ready).await.said(), "owed", "{era}: what is ready is still answered");
        assert_eq!(client.exit().await, Some(0), "{era}");
        let answered =
            client.leftovers().iter().any(|a| matches!(a, Arrival::Message(_, m, _) if m["id"] == running));
        assert!(!answered, "{era}: what was cancelled is not answered");
    }
}
