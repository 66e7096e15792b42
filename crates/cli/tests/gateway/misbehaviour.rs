//! Upstreams that misbehave.

use serde_json::{Value, json};
use testkit::matrix::REVISIONS;
use testkit::{Arrival, Client, LATEST_LEGACY, LEGACY, MODERN, PATIENCE, WIRES, Wire};

use super::{
    Config, ERAS, SIDES, another, behind, hold, listed, of, say, scripted, scripts, shown, signal, through,
    through_at_once, watch,
};

/// Asserts that each of these servers offers the tool of its name, and that it works, to clients of every revision.
async fn all_work(servers: &[(&str, Value)]) {
    let modern = through(Wire::Http, servers, MODERN, json!({})).await;
    let wanted: Vec<&str> = servers.iter().map(|(name, _)| *name).collect();
    for revision in LEGACY.into_iter().chain([MODERN]) {
        let mut client = another(&modern, revision, json!({})).await;
        assert_eq!(listed(&mut client, "tools", "name").await, wanted, "{revision}");
        for name in &wanted {
            let line = say(&mut client, name, json!({"to": name})).await;
            assert!(line.contains(&format!(r#""arguments":{{"to":"{name}"}}"#)), "{revision} {name}: {line}");
        }
    }
}

/// Scripted servers whose one tool has the name of the server.
fn named<'a>(servers: &[(&'a str, &[&str])]) -> Vec<(&'a str, Value)> {
    servers
        .iter()
        .map(|(name, flags)| (*name, scripted(&[&["--tools", name, "--name", name], *flags].concat())))
        .collect()
}

#[testkit::test]
async fn noise_around_messages_is_skipped() {
    let modern = ["--era", "modern"];
    let noises: [(&str, &[&str]); 6] = [
        ("rubbish", &["--rubbish"]),
        ("banner", &["--banner", "Welcome to the server!\nListening on stdio"]),
        ("crlf", &["--crlf"]),
        ("bom", &["--bom"]),
        ("all", &["--bom", "--crlf", "--banner", "{\"level\":30}", "--rubbish"]),
        ("flood", &["--flood", "17000000"]),
    ];
    let mut servers = Vec::new();
    for (name, flags) in noises {
        servers.push((name.to_owned(), flags.to_vec()));
        servers.push((format!("{name}-modern"), [flags, &modern].concat()));
    }
    let servers: Vec<(&str, &[&str])> =
        servers.iter().map(|(name, flags)| (name.as_str(), flags.as_slice())).collect();
    all_work(&named(&servers)).await;
}

#[testkit::test]
async fn prox_08_a_legacy_server_is_found_out_whatever_it_says_to_the_probe() {
    let error = |code: i32, more: Value| {
        let mut error = json!({"code": code, "message": "what is that?"});
        error.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        error.to_string()
    };
    let none = json!({});
    let errors = [
        ("invalid-params", error(-32602, none.clone())),
        ("invalid-request", error(-32600, none.clone())),
        ("method-not-found", error(-32601, none.clone())),
        ("internal", error(-32603, none.clone())),
        ("parse", error(-32700, none.clone())),
        ("own", error(-32000, none.clone())),
        ("positive", error(1, none.clone())),
        ("unsupported", error(-32022, json!({"data": {"supported": ["2025-06-18"], "requested": MODERN}}))),
        ("textual", r#"{"code":"E_NO","message":"no"}"#.to_owned()),
        ("string", r#""no such method""#.to_owned()),
    ];
    let servers: Vec<(&str, Vec<&str>)> =
        errors.iter().map(|(name, error)| (*name, vec!["--discover", error.as_str()])).collect();
    let servers: Vec<(&str, &[&str])> =
        servers.iter().map(|(name, flags)| (*name, flags.as_slice())).collect();
    all_work(&named(&servers)).await;
}

#[testkit::test]
async fn prox_08_a_legacy_server_that_names_its_revisions_in_the_wrong_member_is_found_out() {
    let wrong =
        json!({"code": -32022, "message": "no", "data": {"supportedVersions": ["2025-11-25"]}}).to_string();
    let none = json!({"code": -32022, "message": "no"}).to_string();
    all_work(&named(&[("wrong-member", &["--discover", &wrong]), ("no-data", &["--discover", &none])])).await;
}

#[testkit::test]
async fn prox_08_a_server_that_is_silent_on_the_probe_or_answers_in_plain_text_is_taken_for_a_legacy_one() {
    all_work(&named(&[("silent", &["--discover", "silent"]), ("text", &["--discover", "text"])])).await;
}

#[testkit::test]
async fn a_server_that_ends_at_anything_but_initialize_is_started_again_without_the_probe() {
    all_work(&named(&[("strict", &["--exit-unless-initialize"]), ("other", &[])])).await;
}

#[testkit::test]
async fn prox_13_of_a_server_that_cannot_run_only_its_own_tools_are_missing() {
    let mut servers = named(&[("dead", &["--exit-at-start"]), ("sound", &[])]);
    servers.push(("absent", json!({"command": "/nonexistent/program"})));
    let pipes = ERAS.map(|revision| (Wire::Stdio, revision));
    for (wire, revision) in pipes.into_iter().chain(REVISIONS.map(|revision| (Wire::Http, revision))) {
        let mut client = through_at_once(wire, &servers, revision, json!({})).await;
        assert_eq!(listed(&mut client, "tools", "name").await, ["sound"], "{wire:?} {revision}");
        assert!(say(&mut client, "sound", json!({})).await.contains("sound"), "{wire:?} {revision}");
        let reply = client.call("dead", json!({})).await;
        let message = reply.error()["message"].as_str().unwrap();
        for word in ["dead", "absent"] {
            assert!(message.contains(&format!("the server {word} is not running")), "{message}");
        }
    }
}

#[testkit::test]
async fn prox_13_a_server_that_never_answers_does_not_hold_up_the_others() {
    let servers = named(&[("mute", &["--mute"]), ("sound", &[])]);
    let mut first = through_at_once(Wire::Http, &servers, MODERN, json!({})).await;
    let lists = tokio::time::timeout(PATIENCE / 2, listed(&mut first, "tools", "name"));
    assert_eq!(lists.await.expect("the others are listed in time"), ["sound"]);
    for revision in REVISIONS {
        let mut client = another(&first, revision, json!({})).await;
        assert!(say(&mut client, "sound", json!({})).await.contains("sound"), "{revision}");
    }
}

#[testkit::test]
async fn prox_01_prox_13_a_call_that_takes_too_long_ends_and_is_cancelled_upstream() {
    let servers: serde_json::Map<String, Value> =
        scripts().into_iter().map(|(name, server)| (name.to_owned(), server)).collect();
    let own = json!({"old": {"callTimeoutSeconds": 1}, "new": {"callTimeoutSeconds": 1}});
    let config = json!({"mcpServers": servers, "dateline": {"servers": own}});
    let config = Config::text(&config.to_string());
    let mut first = behind(Wire::Http, &config, MODERN, json!({})).await;
    super::settle(&mut first).await;
    let mut clients = Vec::new();
    for revision in REVISIONS {
        let mut client = another(&first, revision, json!({})).await;
        for side in SIDES {
            // What is held up here is not felt there.
            let call = json!({"name": format!("{side}_hold"), "arguments": {"who": revision}});
            client.begin_as(json!(format!("{side} {revision}")), "tools/call", call).await;
            assert!(
                say(&mut client, &format!("{side}_line"), json!({})).await.contains("tools/call"),
                "{revision}"
            );
        }
        clients.push((revision, client));
    }
    for (revision, client) in &mut clients {
        for side in SIDES {
            let reply = client.reply(&json!(format!("{side} {revision}"))).await;
            let why = reply.error()["message"].as_str().unwrap();
            assert_eq!(reply.code(), -32603, "{side} {revision}: {why}");
            assert!(why.contains("did not answer within 1 s"), "{side} {revision}: {why}");
        }
    }
    for side in SIDES {
        let all = json!({"method": "notifications/cancelled", "count": REVISIONS.len()});
        let cancelled = shown(&mut first, &format!("{side}_await_line"), all).await;
        let calls = shown(&mut first, &format!("{side}_seen"), json!({"method": "tools/call"})).await;
        for revision in REVISIONS {
            let id = &of(&calls, revision)["id"];
            let times = cancelled.iter().filter(|c| c["params"]["requestId"] == *id).count();
            assert_eq!(times, 1, "{side} {revision}: {cancelled:?}");
        }
    }
}

#[testkit::test]
async fn an_answer_that_a_server_gives_with_its_last_breath_counts() {
    for wire in WIRES {
        for side in SIDES {
            let mut client = through(wire, &scripts(), MODERN, json!({})).await;
            let said = say(&mut client, &format!("{side}_farewell"), json!({})).await;
            assert_eq!(said, "farewell", "{wire:?} {side}");
        }
    }
}

#[testkit::test]
async fn log_04_what_a_server_that_ends_said_on_stderr_is_told_to_the_user_of_this_machine_alone() {
    for wire in WIRES {
        for side in SIDES {
            let mut client = through(wire, &scripts(), MODERN, json!({})).await;
            let reply = client.call(&format!("{side}_crash"), json!({})).await;
            let message = reply.error()["message"].as_str().unwrap();
            assert!(message.contains(&format!("the server {side} ended")), "{wire:?}: {message}");
            let told = message.contains("something went terribly wrong");
            assert_eq!(told, wire == Wire::Stdio, "{wire:?}: {message}");
        }
    }
}

/// Waits until a killed server runs again; gives its new process.
async fn again(client: &mut Client, side: &str, killed: &str) -> String {
    let tool = format!("{side}_pid");
    let waiting = async {
        loop {
            let reply = client.call(&tool, json!({})).await;
            if reply.message.get("result").is_some() && reply.said() != killed {
                return reply.said().to_owned();
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("it runs again")
}

#[testkit::test]
async fn prox_12_a_server_that_is_killed_ends_its_calls_alone_and_is_started_again() {
    let over_http = [MODERN, LEGACY[0], LEGACY[1], LEGACY[2]].map(|revision| (Wire::Http, revision));
    for (wire, revision) in [(Wire::Stdio, LATEST_LEGACY)].into_iter().chain(over_http) {
        let mut client = through(wire, &scripts(), revision, json!({})).await;
        listed(&mut client, "tools", "name").await;
        let listen = watch(&mut client, &[]).await.listen;
        for (side, other) in [("old", "new"), ("new", "old")] {
            let label = format!("{wire:?} {revision} kills {side}");
            hold(&mut client, other, "goes on").await;
            hold(&mut client, side, "is lost").await;
            let pid = say(&mut client, &format!("{side}_pid"), json!({})).await;
            signal("KILL", &pid).await;
            let lost = client.message("the end of the call", |m| m["id"] == "is lost").await;
            let message = lost["error"]["message"].as_str().unwrap_or_default();
            assert!(message.contains(&format!("the server {side} ended")), "{label}: {lost}");
            // Names stay as they are while one is away.
            client.begin("tools/call", json!({"name": format!("{other}_release"), "arguments": {}})).await;
            let kept = client.message("the call of the other", |m| m["id"] == "goes on").await;
            assert_eq!(kept["result"]["content"][0]["text"], "released", "{label}");
            assert_ne!(again(&mut client, side, &pid).await, pid, "{label}");
        }
        let ended = client
            .leftovers()
            .iter()
            .any(|a| matches!(a, Arrival::Message(_, m, _) if Some(&m["id"]) == listen.as_ref()));
        assert!(!ended, "{wire:?} {revision}: a listen outlives the restart");
    }
}

/// Watches a resource of an upstream, kills that, and asserts that once it runs again the resource is still watched.
async fn is_watched_again(side: &str, watching: Value) {
    let mut client = through(Wire::Stdio, &scripts(), LATEST_LEGACY, json!({})).await;
    let uri = format!("scripted://{side}/a");
    watch(&mut client, &[&uri]).await;
    let pid = say(&mut client, &format!("{side}_pid"), json!({})).await;
    signal("KILL", &pid).await;
    again(&mut client, side, &pid).await;
    say(&mut client, &format!("{side}_await_line"), watching).await;
    let touch = json!({"name": format!("{side}_touch"), "arguments": {"uri": uri}});
    client.begin("tools/call", touch).await;
    assert_eq!(client.next("notifications/resources/updated").await["params"]["uri"], uri);
}

#[testkit::test]
async fn a_subscription_outlives_the_restart_of_a_legacy_upstream() {
    is_watched_again("old", json!({"method": "resources/subscribe"})).await;
}

#[testkit::test]
async fn a_subscription_outlives_the_restart_of_a_modern_upstream() {
    // There is one listen more, to the lists.
    is_watched_again("new", json!({"method": "subscriptions/listen", "count": 2})).await;
}
