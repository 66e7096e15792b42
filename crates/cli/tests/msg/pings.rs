//! Pings.

use serde_json::json;
use testkit::{Arrival, WIRES, header};

use super::{is_alive, sessions, speaking};
use crate::{long_countdown, modern};

#[testkit::test]
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

#[testkit::test]
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
