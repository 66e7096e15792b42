//! Lists and routes.

use serde_json::{Value, json};
use testkit::{LEGACY, MODERN, WIRES, Wire};

use super::{ERAS, listed, peers, say, scripted, through};
use crate::DATELINE;

#[testkit::test]
async fn prox_09_lists_are_merged_in_order_and_names_changed_only_where_they_collide() {
    let servers = [
        ("zeta", scripted(&["--name", "zeta", "--tools", "z2,common,z1", "--slow", "0.4"])),
        ("alpha", scripted(&["--name", "alpha", "--tools", "a1,common", "--era", "modern"])),
        ("demo", json!({"command": DATELINE, "args": ["demo", "--stdio"]})),
    ];
    for mut peer in peers(&servers, json!({})).await {
        let (client, label) = (&mut peer.client, &peer.label);
        for round in 0..2 {
            let tools = listed(client, "tools", "name").await;
            assert_eq!(tools[..5], ["z2", "zeta_common", "z1", "a1", "alpha_common"], "{label} {round}");
            assert!(tools.contains(&"echo".to_owned()) && tools.contains(&"add".to_owned()), "{label}");
            let prompts = listed(client, "prompts", "name").await;
            assert_eq!(prompts[..2], ["zeta_line", "alpha_line"], "{label} {round}");
            assert!(prompts.contains(&"haiku".to_owned()), "{label}");
            let resources = listed(client, "resources", "uri").await;
            let own = ["scripted://zeta/a", "scripted://zeta/b", "scripted://alpha/a", "scripted://alpha/b"];
            assert_eq!(resources[..4], own, "{label} {round}");
            let templates = listed(client, "resourceTemplates", "uriTemplate").await;
            let own = ["scripted://zeta/by/{id}", "scripted://alpha/by/{id}", "test://template/{id}/data"];
            assert_eq!(templates, own, "{label} {round}");
        }
    }
}

#[testkit::test]
async fn of_two_servers_with_one_resource_the_first_one_is_asked_and_it_is_listed_once() {
    let servers = [
        ("first", scripted(&["--name", "same", "--tools", "one"])),
        ("second", scripted(&["--name", "same", "--tools", "two", "--era", "modern"])),
    ];
    let mut client = through(Wire::Http, &servers, MODERN, json!({})).await;
    assert_eq!(listed(&mut client, "resources", "uri").await, ["scripted://same/a", "scripted://same/b"]);
    let read = client.request("resources/read", json!({"uri": "scripted://same/a"})).await;
    let got: Value = serde_json::from_str(read.result()["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(got["params"].get("_meta"), None, "the legacy one, which is the first, got it");
}

#[testkit::test]
async fn prox_09_every_request_reaches_its_owner_whatever_the_two_speak_and_a_rename_is_undone() {
    let mut servers: Vec<(&str, Value)> =
        LEGACY.map(|r| (r, scripted(&["--name", r, "--tools", "x", "--revision", r]))).to_vec();
    servers.push((MODERN, scripted(&["--name", MODERN, "--tools", "x", "--era", "modern"])));
    for mut peer in peers(&servers, json!({})).await {
        for (upstream, _) in &servers {
            let label = format!("{} to {upstream}", peer.label);
            let client = &mut peer.client;
            let named = |name: &str| json!({"name": name, "arguments": {"topic": "t"}});
            let requests = [
                ("tools/call", named(&format!("{upstream}_x")), "/content/0/text"),
                ("prompts/get", named(&format!("{upstream}_line")), "/messages/0/content/text"),
                ("resources/read", json!({"uri": format!("scripted://{upstream}/a")}), "/contents/0/text"),
                ("resources/read", json!({"uri": format!("scripted://{upstream}/by/7")}), "/contents/0/text"),
                (
                    "completion/complete",
                    json!({
                        "ref": {"type": "ref/prompt", "name": format!("{upstream}_line")},
                        "argument": {"name": "topic", "value": "t"},
                    }),
                    "/completion/values/0",
                ),
                (
                    "completion/complete",
                    json!({
                        "ref": {"type": "ref/resource", "uri": format!("scripted://{upstream}/by/{{id}}")},
                        "argument": {"name": "id", "value": "t"},
                    }),
                    "/completion/values/0",
                ),
            ];
            for (method, params, at) in requests {
                let reply = client.request(method, params.clone()).await;
                let line = reply.result().pointer(at).and_then(Value::as_str);
                let line = line.unwrap_or_else(|| panic!("{label}: {}", reply.message));
                let got: Value = serde_json::from_str(line).unwrap();
                assert_eq!(got["method"], method, "{label}");
                let mut wanted = params;
                for name in ["/name", "/ref/name"] {
                    if let Some(Value::String(name)) = wanted.pointer_mut(name) {
                        *name = name.replace(&format!("{upstream}_"), "");
                    }
                }
                let mut sent = got["params"].clone();
                let meta = sent.as_object_mut().unwrap().shift_remove("_meta");
                assert_eq!(sent, wanted, "{label}: {method}");
                let version = meta.map(|meta| meta["io.modelcontextprotocol/protocolVersion"].clone());
                assert_eq!(version, (*upstream == MODERN).then(|| json!(MODERN)), "{label}: {method}");
            }
        }
    }
}

#[testkit::test]
async fn page_04_a_list_in_several_pages_is_walked_to_its_end() {
    // An empty cursor is one too: only its absence ends a list.
    let servers = [
        ("old", scripted(&["--tools", "a,b,c,d,e", "--pages", "p2,,p4"])),
        ("new", scripted(&["--tools", "f,g,h", "--pages", ",x", "--era", "modern"])),
    ];
    for wire in WIRES {
        for revision in ERAS {
            let mut client = through(wire, &servers, revision, json!({})).await;
            let tools = listed(&mut client, "tools", "name").await;
            assert_eq!(tools, ["a", "b", "c", "d", "e", "f", "g", "h"], "{wire:?} {revision}");
        }
    }
}

#[testkit::test]
async fn page_04_a_list_in_several_pages_stays_whole_when_it_is_read_again() {
    let servers = [
        ("old", scripted(&["--tools", "a,b,grow,c", "--pages", "p2,p3"])),
        ("new", scripted(&["--tools", "d,e,f", "--pages", "x,y", "--era", "modern"])),
    ];
    for revision in ERAS {
        let mut client = through(Wire::Http, &servers, revision, json!({})).await;
        let before = listed(&mut client, "tools", "name").await;
        assert_eq!(before, ["a", "b", "grow", "c", "d", "e", "f"], "{revision}");
        super::watch(&mut client, &[]).await;
        client.begin("tools/call", json!({"name": "grow", "arguments": {"name": "later"}})).await;
        let grown = ["a", "b", "grow", "c", "later", "d", "e", "f"];
        // One may still be under way that tells of the start.
        while listed(&mut client, "tools", "name").await != grown {
            client.next("notifications/tools/list_changed").await;
        }
        assert_eq!(listed(&mut client, "tools", "name").await, grown, "{revision}");
        for tool in ["b", "c", "f", "later"] {
            assert!(say(&mut client, tool, json!({})).await.contains(tool), "{revision} {tool}");
        }
    }
}

#[testkit::test]
async fn page_04_a_cursor_that_does_not_advance_ends_that_list_and_nothing_else() {
    let servers = [
        ("stuck", scripted(&["--tools", "a,b,seen", "--pages", "again,again"])),
        ("stuck-too", scripted(&["--tools", "c,d", "--pages", "again,again", "--era", "modern"])),
        ("sound", scripted(&["--name", "sound", "--tools", "sound"])),
    ];
    let mut client = through(Wire::Http, &servers, MODERN, json!({})).await;
    let tools = listed(&mut client, "tools", "name").await;
    assert_eq!(tools.last().map(String::as_str), Some("sound"), "{tools:?}");
    assert!(say(&mut client, "sound", json!({})).await.contains("tools/call"));
    // They end where a page is wanted again and again.
    let reply = client.call("a", json!({})).await;
    assert!(!reply.message.to_string().contains("not running"), "{}", reply.message);
}
