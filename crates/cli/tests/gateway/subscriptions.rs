//! Subscriptions and changes.

use serde_json::json;
use testkit::{MODERN, WIRES};

use super::{
    ERAS, SIDES, cancellations, listed, peers, say, scripted, scripts, shown, through, unwatch, watch,
};

#[testkit::test]
async fn an_update_of_a_watched_resource_of_either_upstream_reaches_who_watches_it() {
    for mut peer in peers(&scripts(), json!({})).await {
        let uris = ["scripted://old/a", "scripted://new/by/7"];
        let listen = watch(&mut peer.client, &uris).await.listen;
        for (side, uri) in SIDES.into_iter().zip(uris) {
            for below in ["", "/part"] {
                let arguments = json!({"uri": uri, "below": below});
                let tool = json!({"name": format!("{side}_touch"), "arguments": arguments});
                peer.client.begin("tools/call", tool).await;
                let told = peer.client.next("notifications/resources/updated").await;
                let mut wanted = json!({"uri": format!("{uri}{below}")});
                if let Some(id) = &listen {
                    wanted["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": id});
                }
                let mut params = told["params"].clone();
                params.sort_all_objects();
                wanted.sort_all_objects();
                assert_eq!(params, wanted, "{} of {side}", peer.label);
            }
        }
    }
}

#[testkit::test]
async fn what_is_no_longer_watched_is_given_up_upstream() {
    for (wire, revision) in WIRES.into_iter().flat_map(|wire| ERAS.map(|revision| (wire, revision))) {
        let mut client = through(wire, &scripts(), revision, json!({})).await;
        let uris = ["scripted://old/a", "scripted://new/a"];
        let watching = watch(&mut client, &uris).await;
        unwatch(&mut client, &watching).await;
        let given_up = json!({"method": "resources/unsubscribe"});
        let given_up = shown(&mut client, "old_await_line", given_up).await;
        assert_eq!(given_up[0]["params"]["uri"], uris[0], "{wire:?} {revision}");
        let listens = shown(&mut client, "new_seen", json!({"method": "subscriptions/listen"})).await;
        let (cancelled, _) = cancellations(&mut client, "new").await;
        let watch =
            listens.iter().find(|l| l["params"]["notifications"]["resourceSubscriptions"][0] == uris[1]);
        assert_eq!(cancelled[0]["params"]["requestId"], watch.unwrap()["id"], "{wire:?} {revision}");
    }
}

#[testkit::test]
async fn what_an_upstream_refuses_to_watch_is_not_honoured() {
    let [a, b] = ["scripted://old/a", "scripted://old/b"];
    let servers = [("old", scripted(&["--name", "old", "--unwatched", a]))];
    for wire in WIRES {
        let mut client = through(wire, &servers, MODERN, json!({})).await;
        // The second time nothing is asked upstream for b.
        for _ in 0..2 {
            let filter = json!({"notifications": {"resourceSubscriptions": [a, b]}});
            let id = client.id();
            client.begin_as(id, "subscriptions/listen", filter).await;
            let first = client.next("notifications/subscriptions/acknowledged").await;
            assert_eq!(first["params"]["notifications"]["resourceSubscriptions"], json!([b]), "{wire:?}");
        }
        let subscribed = shown(&mut client, "seen", json!({"method": "resources/subscribe"})).await;
        let uris: Vec<_> = subscribed.iter().map(|line| line["params"]["uri"].as_str().unwrap()).collect();
        assert_eq!(uris, [a, b, a], "{wire:?}");
    }
}

#[testkit::test]
async fn sub_07_a_changed_list_of_an_upstream_is_read_again_and_announced() {
    for mut peer in peers(&scripts(), json!({})).await {
        let client = &mut peer.client;
        listed(client, "tools", "name").await;
        let listen = watch(client, &[]).await.listen;
        for side in SIDES {
            let grown = format!("{side} {}", peer.label).replace([' ', '-'], "_");
            let call = json!({"name": format!("{side}_grow"), "arguments": {"name": grown}});
            client.begin("tools/call", call).await;
            // One may still be under way that tells of the start.
            loop {
                let told = client.next("notifications/tools/list_changed").await;
                if let Some(id) = &listen {
                    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], *id);
                }
                let tools = listed(client, "tools", "name").await;
                if let Some(at) = tools.iter().position(|tool| *tool == grown) {
                    // It stands with those of its upstream.
                    assert!(tools[at - 1].starts_with("old") == (side == "old"), "{}: {tools:?}", peer.label);
                    break;
                }
            }
            assert!(say(client, &grown, json!({})).await.contains(&grown), "{}", peer.label);
        }
    }
}
