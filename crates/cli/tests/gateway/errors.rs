//! Errors.

use serde_json::json;
use testkit::{LATEST_LEGACY, MODERN};

use super::{SIDES, peers, say, scripts};

#[testkit::test]
async fn an_error_passes_with_its_code_its_message_and_its_data() {
    for mut peer in peers(&scripts(), json!({})).await {
        for side in SIDES {
            for code in [12345, -32601, -32602, -32603, -32600] {
                let error = json!({"code": code, "message": "no such luck", "data": {"big": 9_007_199_254_740_993_u64}});
                let reply =
                    peer.client.call(&format!("{side}_fail"), json!({"error": error.to_string()})).await;
                assert_eq!(*reply.error(), error, "{} from {side}", peer.label);
            }
        }
    }
}

#[testkit::test]
async fn an_answer_that_is_none_is_an_error_of_that_call_alone() {
    for mut peer in peers(&scripts(), json!({})).await {
        for side in SIDES {
            for (tool, name, text) in [
                ("raw", "result", "[]"),
                ("raw", "result", "null"),
                ("raw", "result", r#""text""#),
                ("fail", "error", r#""text""#),
                ("fail", "error", "{}"),
                ("fail", "error", r#"{"code":"E_NO","message":["no"]}"#),
            ] {
                let reply = peer.client.call(&format!("{side}_{tool}"), json!({name: text})).await;
                let error = reply.error();
                let label = format!("{} from {side}, {text}: {error}", peer.label);
                assert!(error["code"].is_i64() && error["message"].is_string(), "{label}");
            }
            assert!(say(&mut peer.client, &format!("{side}_line"), json!({})).await.contains("tools/call"));
        }
    }
}

#[testkit::test]
async fn an_error_code_that_a_revision_lacks_does_not_reach_it() {
    for mut peer in peers(&scripts(), json!({})).await {
        // The upstream leaves out the data that errors of these codes have.
        peer.client.unjudged = true;
        for side in SIDES {
            for (code, may) in [
                (-32002, peer.revision != MODERN),
                (-32042, peer.revision == LATEST_LEGACY),
                (-32021, peer.revision == MODERN),
                // They speak of the hop to the upstream.
                (-32020, false),
                (-32022, false),
            ] {
                let error = json!({"code": code, "message": "no such luck"});
                let reply =
                    peer.client.call(&format!("{side}_fail"), json!({"error": error.to_string()})).await;
                let label = format!("{} from {side}: {code}, {}", peer.label, reply.message);
                assert_eq!(reply.error()["message"], "no such luck", "{label}");
                assert_eq!(reply.code() == code, may, "{label}");
                let shown = reply.code();
                assert!(may || [-32603, -32602, -32600].contains(&shown), "{label}");
            }
            let error = json!({"code": -32050, "message": "no such luck"});
            let reply = peer.client.call(&format!("{side}_fail"), json!({"error": error.to_string()})).await;
            assert!(peer.revision != MODERN || reply.code() == -32603, "{}: {}", peer.label, reply.message);
        }
    }
}

#[testkit::test]
async fn an_unknown_resource_has_the_code_of_the_client_s_revision() {
    for mut peer in peers(&scripts(), json!({})).await {
        let wanted = if peer.revision == MODERN { -32602 } else { -32002 };
        for (uri, allowed) in [
            // Nobody's.
            ("nobody://knows", vec![wanted]),
            // The owner says so, in its own way.
            ("scripted://old/by/missing", vec![wanted]),
            // A modern owner's code says less than the older one: it passes as it is, or as what it means.
            ("scripted://new/by/missing", vec![-32602, wanted]),
        ] {
            let reply = peer.client.request("resources/read", json!({"uri": uri})).await;
            let label = format!("{} {uri}: {}", peer.label, reply.message);
            assert!(allowed.contains(&reply.code()), "{label}");
            assert_eq!(reply.error()["data"]["uri"], uri, "{label}");
        }
    }
}

#[testkit::test]
async fn an_unknown_tool_or_prompt_is_an_error_and_reaches_nobody() {
    for mut peer in peers(&scripts(), json!({})).await {
        // Its own name, where only the prefixed ones exist.
        for (method, name) in [("tools/call", "nope"), ("tools/call", "pid"), ("prompts/get", "line")] {
            let reply = peer.client.request(method, json!({"name": name, "arguments": {}})).await;
            assert_eq!(reply.code(), -32602, "{} {method} {name}", peer.label);
            assert!(reply.error()["message"].as_str().unwrap().contains(name), "{}", reply.message);
        }
    }
}
