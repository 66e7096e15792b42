//! Progress and logging.

use serde_json::{Value, json};
use testkit::{Arrival, LEGACY, MODERN, Wire};

use super::{SIDES, another, demos, of, peers, say, scripts, shown, through};

#[testkit::test]
async fn progress_passes_with_the_token_of_the_client() {
    let reports = json!([
        r#""progress":1,"total":9007199254740993"#,
        r#""progress":1.5,"message":"half","vendor":{"x":9007199254740993}"#,
    ]);
    for mut peer in peers(&scripts(), json!({})).await {
        // Unknown fields are to pass.
        peer.client.unjudged = true;
        for side in SIDES {
            for token in [json!("mine"), json!(7)] {
                let label = format!("{} from {side}", peer.label);
                let call = json!({
                    "name": format!("{side}_progress"), "arguments": {"reports": reports},
                    "_meta": {"progressToken": token},
                });
                let reply = peer.client.request("tools/call", call).await;
                assert_eq!(reply.said(), "reported", "{label}");
                let told = reply.notifications("notifications/progress");
                let params: Vec<Value> = told.iter().map(|message| message["params"].clone()).collect();
                let mut second = json!({
                    "progressToken": token, "progress": 1.5, "message": "half",
                    "vendor": {"x": 9_007_199_254_740_993_u64},
                });
                if peer.revision == "2024-11-05" {
                    second.as_object_mut().unwrap().shift_remove("message");
                }
                let first =
                    json!({"progressToken": token, "progress": 1, "total": 9_007_199_254_740_993_u64});
                assert_eq!(params, [first, second], "{label}");
            }
        }
    }
}

#[testkit::test]
async fn log_messages_pass_where_the_client_wants_them() {
    for mut peer in peers(&demos(), json!({})).await {
        for side in SIDES {
            let client = &mut peer.client;
            let tool = format!("{side}_test_logging_tool");
            for (level, wanted) in [("info", 1), ("error", 0), ("debug", 1)] {
                let mut call = json!({"name": tool, "arguments": {}});
                if peer.revision == MODERN {
                    call["_meta"] = json!({"io.modelcontextprotocol/logLevel": level});
                } else {
                    client.request("logging/setLevel", json!({"level": level})).await.result();
                }
                let reply = client.request("tools/call", call).await;
                let told = reply.notifications("notifications/message");
                let label = format!("{} from {side} at {level}", peer.label);
                assert_eq!(told.len(), wanted, "{label}");
                for message in told {
                    assert_eq!(message["params"]["data"], "A log message", "{label}");
                }
            }
            if peer.revision == MODERN {
                let reply = client.call(&tool, json!({})).await;
                assert!(
                    reply.notifications("notifications/message").is_empty(),
                    "{}: none asked",
                    peer.label
                );
            }
        }
    }
}

#[testkit::test]
async fn a_log_message_passes_as_it_was_sent() {
    let params =
        json!({"level": "notice", "logger": "l", "data": {"big": 9_007_199_254_740_993_u64}, "vendor": 1});
    for mut peer in peers(&scripts(), json!({})).await {
        // Unknown fields are to pass.
        peer.client.unjudged = true;
        for side in SIDES {
            let call = json!({
                "name": format!("{side}_log"), "arguments": {"params": params.to_string()},
                "_meta": {"io.modelcontextprotocol/logLevel": "debug"},
            });
            let reply = peer.client.request("tools/call", call).await;
            let told = reply.notifications("notifications/message");
            let told: Vec<&Value> = told.iter().map(|message| &message["params"]).collect();
            assert_eq!(told, [&params], "{} from {side}", peer.label);
        }
    }
}

#[testkit::test]
async fn prox_07_clients_with_the_same_ids_and_tokens_do_not_meet() {
    let mut control = through(Wire::Http, &scripts(), MODERN, json!({})).await;
    for side in SIDES {
        let mut clients = Vec::new();
        let legacy = ["b", "d", "e", "f"].into_iter().zip(LEGACY);
        for (who, revision) in [("a", MODERN), ("c", MODERN)].into_iter().chain(legacy) {
            let mut client = another(&control, revision, json!({})).await;
            let call = json!({
                "name": format!("{side}_hold"), "arguments": {"who": who}, "_meta": {"progressToken": "t"},
            });
            client.begin_as(json!("same"), "tools/call", call).await;
            clients.push((who, client));
        }
        for (who, client) in &mut clients {
            let told = client.next("notifications/progress").await;
            assert_eq!(told["params"]["progressToken"], "t", "{side} {who}");
        }
        let calls = shown(&mut control, &format!("{side}_seen"), json!({"method": "tools/call"})).await;
        let mut ids: Vec<String> = Vec::new();
        for (who, _) in &clients {
            let call = of(&calls, who);
            assert_ne!(call["id"], "same", "{side} {who}");
            assert_ne!(call["params"]["_meta"]["progressToken"], "t", "{side} {who}");
            ids.extend([call["id"].to_string(), call["params"]["_meta"]["progressToken"].to_string()]);
        }
        let distinct =
            |at: usize| ids.iter().skip(at).step_by(2).collect::<std::collections::HashSet<_>>().len();
        assert_eq!((distinct(0), distinct(1)), (6, 6), "{side}: {ids:?}");
        assert_eq!(say(&mut control, &format!("{side}_release"), json!({})).await, "done");
        for (who, client) in &mut clients {
            let reply = client.reply(&json!("same")).await;
            assert_eq!(reply.said(), "released", "{side} {who}");
            assert!(client.leftovers().iter().all(|a| !matches!(a, Arrival::Message(..))), "{side} {who}");
        }
    }
}
