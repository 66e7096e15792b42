//! Ids, and the notifications that have none.

use std::collections::HashMap;
use std::sync::Arc;

use dateline::{Server, Tool};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use testkit::{Arrival, MODERN, Wire, header};
use tokio::sync::Barrier;

use super::{client, everywhere, is_alive, quick, refusal, send_as, speaking};
use crate::features::locals;
use crate::stdio::id_of_unreadable;

#[testkit::test]
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

#[testkit::test]
async fn msg_02_an_id_in_flight_is_not_taken_twice_and_both_are_answered() {
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

/// A tool that waits until there are as many calls of it as there is room for.
fn meeting(calls: usize) -> Server {
    let meeting = Arc::new(Barrier::new(calls));
    let meet = move || {
        let meeting = Arc::clone(&meeting);
        async move {
            meeting.wait().await;
            "met"
        }
    };
    Server::new("meeting", "1").tool(Tool::new("meet", "Waits for others.", meet)).build().unwrap()
}

#[testkit::test]
async fn msg_02_sessions_of_one_server_may_use_the_same_ids_at_the_same_time() {
    for (wire, revision) in everywhere() {
        let mut clients = Vec::new();
        for client in locals(wire, meeting(4), 3).await {
            clients.push(speaking(client, revision, json!({})).await);
        }
        for round in 0..2 {
            let ids = [json!(7), json!("7"), json!("seven")];
            let id = &ids[round];
            for client in &mut clients {
                let meet = json!({"name": "meet", "arguments": {}});
                client.begin_as(id.clone(), "tools/call", meet.clone()).await;
                if (wire, revision) != (Wire::Http, MODERN) {
                    // Within a session it is taken; one that is written in another way is another id.
                    client.begin_as(id.clone(), "tools/call", meet).await;
                    let refused = client.reply(id).await;
                    assert_eq!(refused.code(), -32600, "{wire:?} {revision}: {}", refused.message);
                    let other = &ids[1 - round];
                    client.begin_as(other.clone(), "tools/list", json!({})).await;
                    client.reply(other).await.result();
                }
            }
            let last = clients[0].begin("tools/call", json!({"name": "meet", "arguments": {}})).await;
            assert_eq!(clients[0].reply(&last).await.said(), "met", "{wire:?} {revision}");
            for client in &mut clients {
                assert_eq!(client.reply(id).await.said(), "met", "{wire:?} {revision}");
            }
        }
    }
}

#[testkit::test]
async fn msg_03_the_error_to_what_could_not_be_parsed_has_the_id_of_the_revision() {
    for (wire, revision) in everywhere() {
        let mut client = client(wire, revision, json!({})).await;
        let headers: &[_] = if revision == MODERN { &[("mcp-protocol-version", MODERN)] } else { &[] };
        let call = r#"{"jsonrpc":"2.0","id":"unread","method":"tools/list","params":{}"#;
        for text in [call, "{", "rubbish", r#"{"jsonrpc":"2.0","id":7,"method":"ping"}}"#, r#"{"id":01}"#] {
            let exchange = client.send_text(text, headers).await;
            let (_, error) = refusal(&mut client, wire, exchange).await;
            assert_eq!(error["error"]["code"], -32700, "{wire:?} {revision} {text}: {error}");
            assert_eq!(error.get("id").cloned(), id_of_unreadable(revision), "{wire:?} {revision} {text}");
            is_alive(&mut client, text).await;
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

#[testkit::test]
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
