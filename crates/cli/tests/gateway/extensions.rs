//! Extensions that dateline does not know: servers' declarations and methods reach clients.

use std::process::Stdio;

use serde_json::{Value, json};
use testkit::{Client, LEGACY, MODERN, PATIENCE, Wire};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use super::bytes::{MEMBERS, raw};
use super::remote::{Relay, demo_at};
use super::{Config, another, behind, scripted, settle, through};
use crate::DATELINE;

/// What a modern server declares, and a legacy one.
const WEATHER: &str =
    r#"{"extensions":{"com.example/weather":{"units":["C","F"]},"io.modelcontextprotocol/tasks":{}}}"#;
const TIDES: &str = r#"{"experimental":{"tides":{"v":1}}}"#;

/// A server that would have every method, and declares nothing; a modern and a legacy one that each declare one thing.
fn servers() -> [(&'static str, Value); 3] {
    let methods = "weather/now,tides/next,nobody/knows";
    [
        ("plain", scripted(&["--name", "plain", "--methods", methods])),
        (
            "weather",
            scripted(&["--era", "modern", "--declares", WEATHER, "--methods", "weather/now,shared/method"]),
        ),
        ("tides", scripted(&["--declares", TIDES, "--methods", "tides/next,shared/method"])),
    ]
}

/// The message that a scripted server got, by its answer.
fn line(answer: &str) -> String {
    let answer: Value = serde_json::from_str(answer).unwrap();
    answer["result"]["line"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[testkit::test]
async fn what_servers_declare_beyond_the_core_is_declared_to_clients_whose_revision_has_it() {
    let mut modern = through(Wire::Http, &servers(), MODERN, json!({})).await;
    let url = modern.program.as_ref().and_then(|program| program.url.clone()).unwrap();
    let discovered = modern.request("server/discover", json!({})).await;
    let declared = &discovered.result()["capabilities"];
    // A task belongs to one server, so tasks are not declared.
    assert_eq!(declared["extensions"], json!({"com.example/weather": {"units": ["C", "F"]}}));
    assert_eq!(declared["experimental"], json!({"tides": {"v": 1}}));
    for revision in LEGACY {
        let opened = Client::connect(&url).handshake(revision, json!({})).await;
        let declared = &opened.result()["capabilities"];
        assert_eq!(declared["experimental"], json!({"tides": {"v": 1}}), "{revision}");
        assert_eq!(declared.get("extensions"), None, "{revision}");
    }
}

#[testkit::test]
async fn a_method_of_an_unknown_extension_reaches_the_server_that_declared_it_to_the_byte() {
    let own =
        json!({"extensions": {"com.example/weather": {"units": "F"}, "io.modelcontextprotocol/tasks": {}}});
    let first = through(Wire::Http, &servers(), MODERN, own.clone()).await;
    let mut clients = Vec::new();
    for revision in LEGACY {
        clients.push((revision, another(&first, revision, json!({})).await));
    }
    clients.push((MODERN, first));
    clients.push((MODERN, through(Wire::Stdio, &servers(), MODERN, own).await));
    for (revision, mut client) in clients {
        // The params are for the extension to define.
        client.unjudged = true;
        let vendor = r#""vendor.example/trace":{"id":9007199254740993,"f":1.0}"#;
        let members = format!("{MEMBERS},\"none\":null,");
        let text = raw(&mut client, "tides/next", "", &members, vendor).await;
        assert!(text.contains(r#""none":null"#), "{revision}: the answer stays as it was sent: {text}");
        let got = line(&text);
        assert!(got.contains(&members[..members.len() - 1]) && got.contains(vendor), "{revision}: {got}");

        let text = raw(&mut client, "weather/now", "", &members, vendor).await;
        if revision == MODERN {
            let got = line(&text);
            assert!(got.contains(&members[..members.len() - 1]) && got.contains(vendor), "{got}");
            let got: Value = serde_json::from_str(&got.replace("1e400", "1")).unwrap();
            let declared = &got["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
            assert_eq!(*declared, json!({"extensions": {"com.example/weather": {"units": "F"}}}));
        } else {
            // The revision has no extensions, so this one was not declared to the client.
            assert!(text.contains("-32601"), "{revision}: {text}");
        }
        // Both have it; the first one of the configuration that was declared to this client is asked.
        let text = raw(&mut client, "shared/method", "", "", vendor).await;
        assert_eq!(line(&text).contains("clientCapabilities"), revision == MODERN, "{revision}: {text}");

        for unknown in ["nobody/knows", "notifications/cancelled", "roots/list", "tasks/get"] {
            assert_eq!(client.request(unknown, json!({})).await.code(), -32601, "{revision} {unknown}");
        }
    }
}

#[testkit::test]
async fn of_two_servers_that_declare_one_extension_the_first_is_asked_and_the_second_is_warned_of() {
    let declares = |version: u32| json!({"extensions": {"com.example/files": {"v": version}}}).to_string();
    let (one, two) = (declares(1), declares(2));
    let server = |name: &str, declares: &str, methods: &str| {
        scripted(&["--name", name, "--era", "modern", "--declares", declares, "--methods", methods])
    };
    let config = Config::new(&[
        ("other", scripted(&["--declares", TIDES, "--methods", "files/stat"])),
        ("a", server("a", &one, "files/stat")),
        ("b", server("b", &two, "files/stat,files/lock")),
    ]);
    let mut client = behind(Wire::Http, &config, MODERN, json!({"roots": {}})).await;
    settle(&mut client).await;
    let discovered = client.request("server/discover", json!({})).await;
    assert_eq!(discovered.result()["capabilities"]["extensions"], json!({"com.example/files": {"v": 1}}));
    let mut pids = Vec::new();
    for (method, uri) in [
        ("files/stat", "unknown://x"),
        ("files/stat", "scripted://b/a"),
        ("files/stat", "scripted://a/a"),
        ("files/lock", "unknown://x"),
    ] {
        let reply = client.request(method, json!({"uri": uri})).await;
        pids.push(reply.result()["pid"].as_u64().unwrap());
    }
    let [a, b] = [pids[0], pids[1]];
    assert_ne!(a, b, "who has the resource is asked first");
    assert_eq!(pids[2..], [a, b], "who has no such method is not the last to be asked");

    let mut command = Command::new(DATELINE);
    command.args(["stdio", "--config", config.path()]).env("HOME", "/dev/null").env_remove("XDG_STATE_HOME");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = tokio::time::timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
    for word in ["WARN", "the server a declares the extension", "com.example/files", "asked first"] {
        assert!(line.contains(word), "{word}: {line}");
    }
}

#[testkit::test]
async fn a_method_of_an_extension_reaches_a_server_over_http() {
    let upstream = demo_at("modern").await;
    let relay = Relay::start(&upstream).await;
    let far = [("far", json!({"url": relay.url("/mcp")}))];
    let mut client = through(Wire::Http, &far, MODERN, json!({})).await;
    let discovered = client.request("server/discover", json!({})).await;
    let skills = &discovered.result()["capabilities"]["extensions"]["io.modelcontextprotocol/skills"];
    assert_eq!(*skills, json!({"directoryRead": true}));
    let listed = client.request("skills/list", json!({})).await;
    let uri = listed.result()["skills"][0]["uri"].as_str().unwrap_or_else(|| panic!("{:?}", listed.result()));
    let folder = json!({"uri": uri.rsplit_once('/').unwrap().0});
    client.request("resources/directory/read", folder).await.result();
    let methods = relay.headers("mcp-method");
    for method in ["skills/list", "resources/directory/read"] {
        assert_eq!(methods.iter().filter(|sent| *sent == method).count(), 1, "{methods:?}");
    }
    let mut legacy = another(&client, LEGACY[3], json!({})).await;
    assert_eq!(legacy.request("skills/list", json!({})).await.code(), -32601, "it was not declared to it");
}
