//! Progress and logs.

use serde_json::{Value, json};
use testkit::{Arrival, Client, MODERN, WIRES, Wire, header};

use super::{cancel, cancelled, client, everywhere, is_alive, quick, response, sessions, speaking};
use crate::features::{local, locals};
use crate::{long_countdown, modern};

/// The progress notifications of a call, checked: the token is the one given, the value always grows.
fn check_progress(notes: &[&Value], token: &Value, revision: &str) {
    let mut last = f64::NEG_INFINITY;
    for note in notes {
        assert_eq!(&note["params"]["progressToken"], token, "{revision}: {note}");
        let progress = note["params"]["progress"].as_f64().expect("progress is a number");
        assert!(progress > last, "{revision}: it grows: {note}");
        assert!(note["params"]["total"].is_number(), "{revision}: {note}");
        last = progress;
        let message = note["params"].get("message");
        assert_eq!(message.is_some(), revision != "2024-11-05", "{revision}: {note}");
        assert!(message.is_none_or(Value::is_string), "{revision}: {note}");
    }
}

#[testkit::test]
async fn prog_01_progress_comes_for_a_token_only_grows_and_stops_at_the_end() {
    for (wire, revision) in everywhere() {
        let mut client = client(wire, revision, json!({})).await;
        for tool in [json!({"name": "test_tool_with_progress", "arguments": {}}), quick(20)] {
            let reply = client.request("tools/call", tool.clone()).await;
            assert!(reply.result()["content"].is_array());
            assert!(
                reply.before.is_empty(),
                "{wire:?} {revision} {tool}: no token, no progress: {:?}",
                reply.before
            );
        }
        for token in [json!("a token"), json!(""), json!(0), json!(-5), json!(9_007_199_254_740_993_i64)] {
            let mut params = quick(20);
            params["_meta"]["progressToken"] = token.clone();
            let reply = client.request("tools/call", params).await;
            let notes = reply.notifications("notifications/progress");
            assert_eq!(
                (notes.len(), reply.before.len()),
                (21, 21),
                "{wire:?} {revision}: {:?}",
                reply.before
            );
            check_progress(&notes, &token, revision);
        }
        // Two at once, and nothing after the end.
        for (id, token) in [("one", json!("1")), ("two", json!(1))] {
            let mut params = quick(20);
            params["_meta"]["progressToken"] = token;
            client.begin_as(json!(id), "tools/call", params).await;
        }
        response(&mut client, &json!("one")).await;
        response(&mut client, &json!("two")).await;
        let left = client.leftovers();
        for token in [json!("1"), json!(1)] {
            let mut own = Vec::new();
            for arrival in &left {
                match arrival {
                    Arrival::Message(_, note, _) if note["params"]["progressToken"] == token => {
                        own.push(note)
                    }
                    _ => {}
                }
            }
            assert_eq!(own.len(), 21, "{wire:?} {revision} {token}");
            check_progress(&own, &token, revision);
        }
        is_alive(&mut client, "calls with progress").await;
        let left = client.leftovers();
        assert!(!left.iter().any(|a| matches!(a, Arrival::Message(..))), "{wire:?} {revision}: {left:?}");
    }
}

#[testkit::test]
async fn prog_01_progress_that_does_not_increase_is_not_sent() {
    for (wire, revision) in everywhere() {
        let mut client = speaking(local(wire, crate::features::wavering()).await, revision, json!({})).await;
        for (meta, due) in [(json!({}), vec![]), (json!({"progressToken": "t"}), vec![1.0, 1.5, 2.0, 10.0])] {
            let reply = client.request("tools/call", json!({"name": "waver", "_meta": meta})).await;
            let sent = reply.notifications("notifications/progress");
            let sent: Vec<f64> = sent.iter().map(|m| m["params"]["progress"].as_f64().unwrap()).collect();
            assert_eq!(sent, due, "{wire:?} {revision}");
        }
    }
}

#[testkit::test]
async fn prog_01_progress_stops_when_the_call_is_cancelled() {
    for (wire, revision) in sessions().into_iter().chain([(Wire::Stdio, MODERN)]) {
        let mut client = client(wire, revision, json!({})).await;
        let mut params = long_countdown();
        params["arguments"]["intervalMs"] = json!(1);
        let id = client.id();
        let exchange = client.begin_as(id.clone(), "tools/call", params).await;
        client.next("notifications/progress").await;
        client.notify("notifications/cancelled", cancel(&id)).await;
        cancelled(&mut client, &[id]).await;
        if wire == Wire::Http {
            // What was sent before has arrived when the call's own stream ends.
            client.wait("the end of the stream", |a| matches!(a, Arrival::End(of) if *of == exchange)).await;
        }
        client.leftovers();
        // A hundred milliseconds and more, in which it would go on.
        let reply = client.request("tools/call", quick(100)).await;
        assert!(reply.before.is_empty(), "{wire:?} {revision}: {:?}", reply.before);
        let left = client.leftovers();
        assert!(!left.iter().any(|a| matches!(a, Arrival::Message(..))), "{wire:?} {revision}: {left:?}");
    }
}

#[testkit::test]
async fn prog_02_progress_and_logs_travel_on_the_stream_of_their_own_request() {
    let mut client = modern(Wire::Http).await;
    let all = json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true});
    let listen =
        client.begin_as(json!("listen"), "subscriptions/listen", json!({"notifications": all})).await;
    client.next("notifications/subscriptions/acknowledged").await;
    let meta = |token: &str| json!({"progressToken": token, "io.modelcontextprotocol/logLevel": "info"});
    let mut exchanges = Vec::new();
    for token in ["a", "b", "c"] {
        let mut params = quick(30);
        params["_meta"] = meta(token);
        exchanges.push((client.begin_as(json!(token), "tools/call", params).await, token, 31, 0));
        let logging = json!({"name": "test_tool_with_logging", "arguments": {}, "_meta": meta("unused")});
        exchanges.push((
            client.begin_as(json!(format!("log {token}")), "tools/call", logging).await,
            token,
            0,
            3,
        ));
    }
    for (exchange, token, progress, logs) in exchanges {
        let (head, messages) = client.whole(exchange).await;
        assert_eq!(head.status, 200);
        assert_eq!(header(&head.headers, "content-type"), Some("text/event-stream"));
        let count = |method: &str| messages.iter().filter(|m| m["method"] == method).count();
        assert_eq!(count("notifications/progress"), progress, "{token}: {messages:?}");
        assert_eq!(count("notifications/message"), logs, "{token}: {messages:?}");
        let own =
            |m: &&Value| m["method"] == "notifications/progress" && m["params"]["progressToken"] != token;
        assert_eq!(messages.iter().filter(own).count(), 0, "{token}: {messages:?}");
        assert_eq!(messages.len(), progress + logs + 1, "{token}: {messages:?}");
        assert!(messages.last().unwrap().get("result").is_some(), "{token}: the response is the last");
    }
    client.call("test_trigger_tool_change", json!({})).await;
    let first = client
        .wait("a message on the listen", |a| matches!(a, Arrival::Message(at, ..) if *at == listen))
        .await;
    let Arrival::Message(_, first, _) = first else { unreachable!() };
    assert_eq!(first["method"], "notifications/tools/list_changed", "nothing of the calls came here");
    assert!(!client.leftovers().iter().any(|a| matches!(a, Arrival::Message(..))));
}

/// What a server declares to a fresh client of this revision, which opens a session where there are any.
async fn declared(client: &mut Client, revision: &'static str) -> Value {
    let reply = match revision {
        MODERN => client.request("server/discover", json!({})).await,
        _ => client.handshake(revision, json!({})).await,
    };
    reply.result()["capabilities"].clone()
}

#[testkit::test]
async fn log_01_a_server_that_logs_declares_the_logging_capability() {
    for (wire, revision) in everywhere() {
        let mut client = modern(wire).await;
        let capabilities = declared(&mut client, revision).await;
        assert_eq!(capabilities["logging"], json!({}), "{wire:?} {revision}");
        let meta = json!({"io.modelcontextprotocol/logLevel": "info"});
        let params = json!({"name": "test_tool_with_logging", "arguments": {}, "_meta": meta});
        let reply = client.request("tools/call", params).await;
        let logs = reply.notifications("notifications/message");
        assert_eq!((logs.len(), reply.before.len()), (3, 3), "{wire:?} {revision}: {:?}", reply.before);
        let whole = |m: &&Value| m["params"]["level"] == "info" && m["params"]["data"].is_string();
        assert!(logs.iter().all(whole), "{wire:?} {revision}: {logs:?}");
    }
}

#[testkit::test]
async fn log_01_without_the_capability_no_log_message_is_sent() {
    for (wire, revision) in everywhere() {
        for logs in [true, false] {
            let mut client = local(wire, crate::features::logging(logs)).await;
            let capabilities = declared(&mut client, revision).await;
            assert_eq!(capabilities.get("logging").cloned(), logs.then(|| json!({})), "{wire:?} {revision}");
            let meta = json!({"io.modelcontextprotocol/logLevel": "debug"});
            let reply = client.request("tools/call", json!({"name": "log", "_meta": meta})).await;
            let sent = reply.notifications("notifications/message");
            assert_eq!(!sent.is_empty(), logs, "{wire:?} {revision}: {sent:?}");
        }
    }
}

/// The levels, the least severe first.
const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

#[testkit::test]
async fn log_03_a_modern_request_gets_the_log_messages_that_it_asks_for_and_no_others() {
    for wire in WIRES {
        let mut client = modern(wire).await;
        for (level, due) in [
            (None, 0),
            (Some("debug"), 3),
            (Some("info"), 3),
            (Some("notice"), 0),
            (Some("warning"), 0),
            (Some("error"), 0),
            (Some("critical"), 0),
            (Some("alert"), 0),
            (Some("emergency"), 0),
            // What an earlier request set does not hold for the next one.
            (None, 0),
        ] {
            let mut params = json!({"name": "test_tool_with_logging", "arguments": {}});
            if let Some(level) = level {
                params["_meta"]["io.modelcontextprotocol/logLevel"] = level.into();
            }
            let reply = client.request("tools/call", params).await;
            assert_eq!(reply.said(), "Tool with logging executed successfully");
            assert_eq!(reply.notifications("notifications/message").len(), due, "{wire:?} {level:?}");
            assert_eq!(reply.before.len(), due, "{wire:?} {level:?}: {:?}", reply.before);
        }
        let mut client = local(wire, crate::features::logging(true)).await;
        for (at, level) in LEVELS.iter().enumerate() {
            let meta = json!({"io.modelcontextprotocol/logLevel": level});
            let reply = client.request("tools/call", json!({"name": "log", "_meta": meta})).await;
            let sent = reply.notifications("notifications/message");
            let sent: Vec<&str> = sent.iter().map(|m| m["params"]["level"].as_str().unwrap()).collect();
            assert_eq!(sent, LEVELS[at..], "{wire:?}: none below {level}, and all others");
        }
        let mut client = modern(wire).await;
        for level in [json!("loud"), json!("INFO"), json!(""), json!(1), json!({"level": "info"})] {
            for method in ["tools/call", "tools/list"] {
                let meta = json!({"io.modelcontextprotocol/logLevel": level});
                let params = json!({"name": "test_tool_with_logging", "arguments": {}, "_meta": meta});
                let reply = client.request(method, params).await;
                assert_eq!(reply.code(), -32602, "{wire:?} {method} {level}");
                assert!(reply.before.is_empty(), "{wire:?} {method} {level}");
            }
        }
    }
}

/// The levels of the log messages that a call of the service that logs brings.
async fn logged(client: &mut Client) -> Vec<String> {
    let reply = client.call("log", json!({})).await;
    let sent = reply.notifications("notifications/message");
    sent.iter().map(|m| m["params"]["level"].as_str().unwrap().to_owned()).collect()
}

#[testkit::test]
async fn log_02_a_level_is_kept_for_its_own_session_and_filters_what_is_sent() {
    for (wire, revision) in sessions() {
        let mut clients = Vec::new();
        for client in locals(wire, crate::features::logging(true), 2).await {
            clients.push(speaking(client, revision, json!({})).await);
        }
        let [one, other] = &mut clients[..] else { unreachable!() };
        // Until it says anything a session hears what is no noise.
        assert_eq!(logged(one).await, LEVELS[1..], "{wire:?} {revision}");
        for (at, level) in LEVELS.iter().enumerate() {
            one.request("logging/setLevel", json!({"level": level})).await.result();
            let opposite = LEVELS.len() - 1 - at;
            other.request("logging/setLevel", json!({"level": LEVELS[opposite]})).await.result();
            for _ in 0..2 {
                assert_eq!(logged(one).await, LEVELS[at..], "{wire:?} {revision}: {level}");
                assert_eq!(logged(other).await, LEVELS[opposite..], "{wire:?} {revision}: not {level}");
            }
        }
        // What is no level changes none.
        for wrong in [
            json!({"level": "loud"}),
            json!({"level": "INFO"}),
            json!({"level": ""}),
            json!({"level": 1}),
            json!({"level": null}),
            json!({"level": ["info"]}),
            json!({}),
            json!({"_meta": {"io.modelcontextprotocol/logLevel": "debug"}}),
        ] {
            let reply = one.request("logging/setLevel", wrong.clone()).await;
            assert_eq!(reply.code(), -32602, "{wire:?} {revision} {wrong}");
        }
        assert_eq!(logged(one).await, LEVELS[7..], "{wire:?} {revision}");
        // A level that stands in a request is that of another era.
        let meta = json!({"io.modelcontextprotocol/logLevel": "debug"});
        let reply = one.request("tools/call", json!({"name": "log", "_meta": meta})).await;
        assert_eq!(reply.before.len(), 1, "{wire:?} {revision}: {:?}", reply.before);
    }
}
