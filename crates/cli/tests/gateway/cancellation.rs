//! Cancellation.

use serde_json::json;
use testkit::{Arrival, LATEST_LEGACY, LEGACY, MODERN, Wire};

use super::{SIDES, another, cancellations, hold, of, say, scripts, shown, through};

#[testkit::test]
async fn prox_01_a_cancelled_notification_ends_the_right_call_upstream_by_the_upstream_s_own_id() {
    for (wire, revision) in [
        (Wire::Stdio, MODERN),
        (Wire::Stdio, LATEST_LEGACY),
        (Wire::Stdio, "2024-11-05"),
        (Wire::Http, LATEST_LEGACY),
        (Wire::Http, "2025-06-18"),
        (Wire::Http, "2025-03-26"),
    ] {
        let mut client = through(wire, &scripts(), revision, json!({})).await;
        for side in SIDES {
            let label = format!("{wire:?} {revision} to {side}");
            hold(&mut client, side, "kept").await;
            hold(&mut client, side, "given up").await;
            client
                .notify("notifications/cancelled", json!({"requestId": "given up", "reason": "test"}))
                .await;
            let (cancelled, calls) = cancellations(&mut client, side).await;
            assert_eq!(cancelled.len(), 1, "{label}: {cancelled:?}");
            assert_eq!(cancelled[0]["params"]["requestId"], of(&calls, "given up")["id"], "{label}");
            let release = json!({"name": format!("{side}_release"), "arguments": {}});
            let release = client.begin("tools/call", release).await;
            for id in [json!("kept"), release] {
                client.message("the response", |m| m.get("result").is_some() && m["id"] == id).await;
            }
            let rest = client.leftovers();
            let answered =
                rest.iter().any(|a| matches!(a, Arrival::Message(_, m, _) if m["id"] == "given up"));
            assert!(!answered, "{label}: what was cancelled is not answered");
        }
    }
}

#[testkit::test]
async fn prox_01_a_modern_client_that_disconnects_has_cancelled_its_call_and_no_other() {
    let mut control = through(Wire::Http, &scripts(), MODERN, json!({})).await;
    for side in SIDES {
        let mut stays = another(&control, MODERN, json!({})).await;
        let mut leaves = another(&control, MODERN, json!({})).await;
        hold(&mut stays, side, "stays").await;
        let exchange = hold(&mut leaves, side, "leaves").await;
        leaves.disconnect(exchange);
        let (cancelled, calls) = cancellations(&mut control, side).await;
        assert_eq!(cancelled.len(), 1, "{side}: {cancelled:?}");
        assert_eq!(cancelled[0]["params"]["requestId"], of(&calls, "leaves")["id"], "{side}");
        assert_eq!(say(&mut control, &format!("{side}_release"), json!({})).await, "done");
        assert_eq!(stays.reply(&json!("stays")).await.said(), "released", "{side}");
    }
}

#[testkit::test]
async fn a_legacy_client_that_disconnects_has_cancelled_nothing() {
    let mut control = through(Wire::Http, &scripts(), MODERN, json!({})).await;
    for side in SIDES {
        for revision in LEGACY {
            let mut client = another(&control, revision, json!({})).await;
            let away = format!("away {revision}");
            let exchange = hold(&mut client, side, &away).await;
            client.disconnect(exchange);
            // A cancellation that is sent after it arrives; none for the call of the lost connection came before.
            hold(&mut client, side, revision).await;
            client.notify("notifications/cancelled", json!({"requestId": revision})).await;
            let count = 1 + LEGACY.iter().position(|r| *r == revision).unwrap();
            let method = json!({"method": "notifications/cancelled", "count": count});
            let cancelled = shown(&mut control, &format!("{side}_await_line"), method).await;
            let calls = shown(&mut control, &format!("{side}_seen"), json!({"method": "tools/call"})).await;
            assert_eq!(cancelled.len(), count, "{side} {revision}");
            assert_eq!(
                cancelled[count - 1]["params"]["requestId"],
                of(&calls, revision)["id"],
                "{side} {revision}"
            );
        }
    }
}

#[testkit::test]
async fn a_call_that_ended_is_not_cancelled() {
    let mut client = through(Wire::Stdio, &scripts(), LATEST_LEGACY, json!({})).await;
    for side in SIDES {
        let id = client.id();
        client
            .begin_as(id.clone(), "tools/call", json!({"name": format!("{side}_pid"), "arguments": {}}))
            .await;
        client.reply(&id).await.result();
        client.notify("notifications/cancelled", json!({"requestId": id})).await;
        let seen =
            say(&mut client, &format!("{side}_seen"), json!({"method": "notifications/cancelled"})).await;
        assert_eq!(seen, "", "{side}");
    }
}
