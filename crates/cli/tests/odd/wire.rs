//! How messages are written, framed and carried.

use serde_json::{Value, json};
use testkit::{Client, PATIENCE};

use super::{ERAS, Odd, behind_one, legacy_beside, stdio};
use crate::DATELINE;
use crate::gateway::Config;

/// What can be read although it is not as it should be.
const READABLE: [&str; 11] = [
    "latin1",
    "control",
    "prefixed",
    "suffixed",
    "pretty",
    "marked",
    "id-text",
    "id-float",
    "error-null",
    "no-version",
    "version-number",
];

/// What cannot, and what is said of it.
const UNREADABLE: [(&str, &str); 9] = [
    ("nan", "the message is not JSON"),
    ("deep", "nests deeper"),
    ("twice", "stands twice"),
    ("long", "over the limit"),
    ("both", "both a \"result\" and an \"error\""),
    ("neither", "neither a \"result\" nor an \"error\""),
    ("result-null", "\"result\" is null"),
    ("version-one", "\"jsonrpc\" is not \"2.0\""),
    ("cut", "the message is not JSON"),
];

/// How many oddities are behind one gateway, in each of six ways: a gateway starts all its servers at once.
const TOGETHER: usize = 3;

/// What is no proper error.
const ERRORS: [(&str, i64); 4] = [
    ("error-text", -32603),
    ("error-no-code", -32603),
    ("error-code-text", -32602),
    ("error-no-message", -32603),
];

/// An odd server in every way that it can be reached: the names that it has there, with its configurations. Over
/// standard streams it is of one era, since each is a process.
fn all_ways(odd: &Odd, name: &str) -> Vec<(String, Value)> {
    let era = ERAS[name.len() % 2];
    let mut all =
        vec![(format!("{name}-sse"), odd.sse(name)), (format!("{name}-{era}-stdio"), stdio(name, era))];
    for era in ERAS {
        all.push((format!("{name}-{era}-http"), odd.http(name, era)));
        all.push((format!("{name}-{era}-events"), json!({"url": odd.url(name, era) + "/events"})));
    }
    all
}

/// Some servers over HTTP in both eras.
fn over_http(odd: &Odd, names: &[&str]) -> Vec<(String, Value)> {
    let of = |name: &&str| ERAS.map(|era| (format!("{name}-{era}"), odd.http(name, era)));
    names.iter().flat_map(of).collect()
}

async fn echoes(client: &mut Client, server: &str) {
    let reply = client.call(&format!("{server}_echo"), json!({"a": "b"})).await;
    assert_eq!(reply.said(), r#"{"a": "b"}"#, "{server}");
}

async fn healthy(client: &mut Client) {
    echoes(client, "healthy").await;
}

fn with_healthy(mut servers: Vec<(String, Value)>) -> Vec<(String, Value)> {
    servers.push(("healthy".to_owned(), stdio("plain", "legacy")));
    servers
}

#[testkit::test]
async fn what_can_be_read_without_guessing_is_read() {
    let odd = Odd::start().await;
    for names in READABLE.chunks(TOGETHER) {
        let servers: Vec<_> = names.iter().flat_map(|name| all_ways(&odd, name)).collect();
        let mut modern = behind_one(&with_healthy(servers.clone()), json!({})).await;
        let mut legacy = legacy_beside(&modern).await;
        for (name, _) in &servers {
            for client in [&mut modern, &mut legacy] {
                let reply = client.call(&format!("{name}_echo"), json!({"a": "b"})).await;
                assert_eq!(reply.said(), r#"{"a": "b"}"#, "{name}");
                let more = &reply.result()["content"][1]["text"];
                match name.split('-').next().unwrap() {
                    "latin1" => assert_eq!(more, "caf\u{fffd}", "{name}"),
                    "control" => assert_eq!(more, "a\u{1}\tb\n  c", "{name}"),
                    _ => assert!(more.is_null(), "{name}: {more}"),
                }
            }
        }
        healthy(&mut modern).await;
    }
}

#[testkit::test]
async fn of_an_answer_that_cannot_be_read_the_call_ends_at_once_and_says_what_was_wrong() {
    let odd = Odd::start().await;
    for together in UNREADABLE.chunks(TOGETHER) {
        let (mut servers, mut whys) = (Vec::new(), Vec::new());
        for (name, why) in together {
            let ways = all_ways(&odd, name);
            whys.extend(vec![*why; ways.len()]);
            servers.extend(ways);
        }
        let mut client = behind_one(&with_healthy(servers.clone()), json!({})).await;
        for ((server, _), why) in servers.iter().zip(whys) {
            for _ in 0..2 {
                let reply = client.call(&format!("{server}_echo"), json!({})).await;
                let message = reply.error()["message"].as_str().unwrap();
                assert!(message.contains("cannot be read") && message.contains(why), "{server}: {message}");
            }
        }
        healthy(&mut client).await;
    }
}

#[testkit::test]
async fn what_a_server_says_in_an_error_of_an_odd_form_is_passed_on() {
    let odd = Odd::start().await;
    let servers: Vec<_> = ERRORS.iter().flat_map(|(name, _)| all_ways(&odd, name)).collect();
    let mut client = behind_one(&with_healthy(servers.clone()), json!({})).await;
    for (name, code) in ERRORS {
        for (server, _) in servers.iter().filter(|(server, _)| server.starts_with(&format!("{name}-"))) {
            let reply = client.call(&format!("{server}_echo"), json!({})).await;
            let message = reply.error()["message"].as_str().unwrap();
            assert!(message.contains("out of cheese"), "{server}: {message}");
            assert_eq!(reply.code(), code, "{server}");
        }
    }
}

#[testkit::test]
async fn event_streams_and_bodies_are_read_as_their_standards_allow() {
    let names = ["events-cr", "events-crlf", "events-untyped", "json-typed", "json-untyped", "no-id"];
    let odd = Odd::start().await;
    let servers = over_http(&odd, &names);
    let mut client = behind_one(&with_healthy(servers.clone()), json!({})).await;
    for (name, _) in &servers {
        echoes(&mut client, name).await;
    }
}

#[testkit::test]
async fn a_server_that_no_longer_knows_the_session_is_opened_again_however_it_says_so() {
    let names = ["forgets-404", "forgets-410", "forgets-400", "forgets-error"];
    let odd = Odd::start().await;
    let servers: Vec<_> = names.iter().map(|name| ((*name).to_owned(), odd.http(name, "legacy"))).collect();
    let mut client = behind_one(&with_healthy(servers), json!({})).await;
    for name in names {
        for _ in 0..2 {
            odd.have(name, "legacy", "forget").await;
            echoes(&mut client, name).await;
        }
        let calls = odd.seen(name, "legacy", "tools/call").await;
        assert_eq!(calls.len(), 2, "{name}: each call was carried out once");
    }
    healthy(&mut client).await;
}

#[testkit::test]
async fn a_call_that_is_refused_opens_no_session_where_the_old_one_is_fine() {
    let odd = Odd::start().await;
    let servers = over_http(&odd, &["refuses-calls"]);
    let mut client = behind_one(&with_healthy(servers.clone()), json!({})).await;
    for (name, _) in &servers {
        for _ in 0..3 {
            let reply = client.call(&format!("{name}_echo"), json!({})).await;
            let message = reply.error()["message"].as_str().unwrap();
            for word in ["400", "text/plain", "bad call"] {
                assert!(message.contains(word), "{name}: {message}");
            }
        }
    }
    assert_eq!(odd.seen("refuses-calls", "legacy", "initialize").await.len(), 1);
    for era in ERAS {
        assert_eq!(odd.seen("refuses-calls", era, "tools/call").await.len(), 3, "{era}");
    }
}

#[testkit::test]
async fn redirects_within_an_origin_are_followed_with_verb_and_body() {
    let odd = Odd::start().await;
    let servers = over_http(&odd, &["moved-301", "moved-302", "moved-307", "moved-308"]);
    let mut client = behind_one(&with_healthy(servers.clone()), json!({})).await;
    for (name, _) in &servers {
        echoes(&mut client, name).await;
        echoes(&mut client, name).await;
    }
}

/// What the user of this machine is told of why servers are not there.
async fn why_missing(servers: &[(&str, Value)]) -> Vec<String> {
    let config = Config::new(servers);
    let mut client = Client::pipe(DATELINE, &["stdio", "--config", config.path()]);
    client.request("server/discover", json!({})).await.result();
    let missing = async {
        loop {
            let params = json!({"_meta": {"io.modelcontextprotocol/logLevel": "debug"}});
            let reply = client.request("tools/list", params).await;
            let told = reply.notifications("notifications/message");
            let told: Vec<String> =
                told.iter().map(|m| m["params"]["data"].as_str().unwrap().to_owned()).collect();
            if told.len() == servers.len() && !told.iter().any(|why| why.contains("still starting")) {
                return told;
            }
        }
    };
    tokio::time::timeout(PATIENCE, missing).await.expect("all servers are tried")
}

#[testkit::test]
async fn what_is_no_server_of_the_protocol_is_named_with_what_it_answers() {
    let odd = Odd::start().await;
    let page = odd.http("web-page", "legacy");
    let elsewhere = odd.http("elsewhere", "modern");
    let servers = [
        ("page", page),
        ("elsewhere", elsewhere),
        ("circle", odd.http("circle", "modern")),
        ("other", odd.http("see-other", "modern")),
        ("refuses", stdio("no-handshake", "legacy")),
    ];
    let told = why_missing(&servers).await;
    for (server, words) in [
        ("page", &["200 OK", "text/html", "<html>\\u{1b}[31m\\u{9b}hello"][..]),
        ("elsewhere", &["307", "\"http://localhost:1/mcp\"", "another origin", "configuration"]),
        ("circle", &["in a circle"]),
        ("other", &["303", "/see-other/modern/there"]),
        ("refuses", &["out of cheese", "its last words on stderr: bad cheese"]),
    ] {
        let why = told.iter().find(|why| why.contains(&format!("the server {server} ")));
        let why = why.unwrap_or_else(|| panic!("{server}: {told:?}"));
        for word in words {
            assert!(why.contains(word), "{server}: {word:?} in {why}");
        }
        assert!(!why.contains("secret"), "{why}");
    }
}

#[testkit::test]
async fn a_server_that_never_answers_the_probe_or_a_listen_is_there_all_the_same() {
    let odd = Odd::start().await;
    let servers = [
        ("probe".to_owned(), odd.http("silent-probe", "legacy")),
        ("listen".to_owned(), odd.http("silent-listen", "modern")),
    ];
    let mut client = behind_one(&with_healthy(servers.to_vec()), json!({})).await;
    for (name, _) in &servers {
        echoes(&mut client, name).await;
    }
}

#[testkit::test]
async fn a_server_that_ends_connections_without_saying_so_works_and_gets_each_call_once() {
    let odd = Odd::start().await;
    let servers = over_http(&odd, &["closes"]);
    let mut client = behind_one(&with_healthy(servers.clone()), json!({})).await;
    for (name, _) in &servers {
        for _ in 0..20 {
            echoes(&mut client, name).await;
        }
    }
    for era in ERAS {
        assert_eq!(odd.seen("closes", era, "tools/call").await.len(), 20, "{era}");
    }
}

#[testkit::test]
async fn a_call_that_may_have_been_carried_out_is_sent_again_only_where_it_may_be() {
    let odd = Odd::start().await;
    let servers = over_http(&odd, &["swallows"]);
    let mut client = behind_one(&with_healthy(servers), json!({})).await;
    for era in ERAS {
        for round in 1..=5 {
            let reply = client.call(&format!("swallows-{era}_read"), json!({})).await;
            assert_eq!(reply.said(), "{}", "{era}");
            assert_eq!(odd.seen("swallows", era, "tools/call").await.len(), 2 * round, "{era}");
        }
        for round in 1..=5 {
            let reply = client.call(&format!("swallows-{era}_echo"), json!({})).await;
            let message = reply.error()["message"].as_str().unwrap();
            assert!(message.contains("is not known"), "{era}: {message}");
            assert_eq!(odd.seen("swallows", era, "tools/call").await.len(), 10 + 2 * round - 1, "{era}");
            // It answers each second time.
            echoes(&mut client, &format!("swallows-{era}")).await;
        }
    }
    healthy(&mut client).await;
}

#[testkit::test]
async fn a_server_that_asks_and_does_not_read_is_let_go_and_one_that_reads_late_is_not() {
    let servers =
        [("floods".to_owned(), stdio("floods", "legacy")), ("pings".to_owned(), stdio("pings", "legacy"))];
    let mut client = behind_one(&with_healthy(servers.to_vec()), json!({})).await;
    let id = client.begin("tools/call", json!({"name": "floods_echo", "arguments": {}})).await;
    for _ in 0..3 {
        echoes(&mut client, "pings").await;
        healthy(&mut client).await;
    }
    let reply = client.reply(&id).await;
    let message = reply.error()["message"].as_str().unwrap();
    assert!(message.contains("does not read"), "{message}");
}

#[testkit::test]
async fn how_a_server_ended_is_told_to_the_user_of_this_machine() {
    for (name, how) in [("exits", "exit status: 3"), ("killed", "signal: 9")] {
        let config = Config::new(&[(name, stdio(name, "legacy"))]);
        let mut client = Client::pipe(DATELINE, &["stdio", "--config", config.path()]);
        client.request("server/discover", json!({})).await.result();
        let reply = client.call("echo", json!({})).await;
        let message = reply.error()["message"].as_str().unwrap();
        for word in [how, "its last words on stderr: out of cheese"] {
            assert!(message.contains(word), "{name}: {message}");
        }
    }
}

#[testkit::test]
async fn a_server_that_ignores_the_end_of_its_session_does_not_hold_up_ours() {
    let odd = Odd::start().await;
    let servers = [("ignores".to_owned(), odd.http("ignores-delete", "legacy"))];
    let mut client = behind_one(&with_healthy(servers.to_vec()), json!({})).await;
    echoes(&mut client, "ignores").await;
    let pid = client.program.as_ref().unwrap().child.id().unwrap();
    crate::gateway::signal("TERM", &pid.to_string()).await;
    assert_eq!(client.exit().await, Some(0));
}

#[testkit::test]
async fn what_is_null_on_its_way_to_a_server_is_left_out() {
    let odd = Odd::start().await;
    let mut client = behind_one(&with_healthy(over_http(&odd, &["plain"])), json!({})).await;
    for era in ERAS {
        let name = format!("plain-{era}_line");
        // It is the client that is wrong here.
        client.unjudged = true;
        let reply = client.request("tools/call", json!({"name": name, "arguments": null})).await;
        let got: Value = serde_json::from_str(reply.said()).unwrap();
        assert!(got["params"].get("arguments").is_none(), "{era}: {got}");
    }
}
