//! Cancellation.

use serde_json::json;
use testkit::{Arrival, MODERN, Wire, header};

use super::{cancel, cancelled, client, everywhere, is_alive, neighbour, quick, send_as, sessions};
use crate::{long_countdown, modern};

#[testkit::test]
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

#[testkit::test]
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

#[testkit::test]
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

#[testkit::test]
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

#[testkit::test]
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
