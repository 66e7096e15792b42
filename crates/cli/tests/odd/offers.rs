//! What lists and results hold.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{Client, LEGACY, MODERN, PATIENCE, Program};

use super::{ERAS, Odd, stdio};
use crate::DATELINE;
use crate::gateway::{Config, scripted, settle};
use crate::program::run;

/// A gateway with an admin socket.
struct Gateway {
    config: Config,
    program: Program,
}

impl Gateway {
    async fn over(servers: &[(&str, Value)], ours: Value) -> Gateway {
        let named: serde_json::Map<String, Value> =
            servers.iter().map(|(name, server)| ((*name).to_owned(), server.clone())).collect();
        let config = Config::text(&json!({"mcpServers": named, "dateline": ours}).to_string());
        let socket = format!("{}.sock", config.path());
        let args = ["serve", "--config", config.path(), "--listen", "127.0.0.1:0", "--admin-socket", &socket];
        let program = Program::http(DATELINE, &args).await;
        Gateway { program, config }
    }

    /// A client of a revision, once all servers were tried.
    async fn client(&self, revision: &'static str) -> Client {
        let mut client = Client::connect(self.program.url.as_deref().unwrap());
        if revision == MODERN {
            client.request("server/discover", json!({})).await.result();
        } else {
            client.handshake(revision, json!({})).await.result();
        }
        settle(&mut client).await;
        client
    }

    async fn command(&self, args: &[&str]) -> crate::program::Run {
        let socket = format!("{}.sock", self.config.path());
        run(&[args, &["--admin-socket", &socket]].concat()).await
    }

    /// How a server is.
    async fn status(&self, name: &str) -> Value {
        let shown: Value = serde_json::from_str(&self.command(&["status", "--json"]).await.out).unwrap();
        let servers = shown["servers"].as_array().unwrap();
        servers.iter().find(|server| server["name"] == name).unwrap().clone()
    }

    /// Waits until the logs of a server hold these words; gives all of them.
    async fn logged(&self, server: &str, words: &[&str]) -> String {
        let read = async {
            loop {
                let logs = self.command(&["logs", server]).await.out;
                if words.iter().all(|word| logs.contains(word)) {
                    return logs;
                }
            }
        };
        tokio::time::timeout(PATIENCE, read).await.unwrap_or_else(|_| panic!("{server} logs {words:?}"))
    }
}

/// The entries of a list.
async fn list(client: &mut Client, method: &str, list: &str) -> Vec<Value> {
    client.request(method, json!({})).await.result()[list].as_array().unwrap().clone()
}

async fn names(client: &mut Client) -> Vec<String> {
    let tools = list(client, "tools/list", "tools").await;
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// Waits until these tools are listed.
async fn listed(client: &mut Client, due: &[&str]) {
    let waiting = async { while names(client).await != due {} };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("{due:?} are not listed"));
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// The referee sees all that comes.
#[testkit::test]
async fn what_is_wrong_with_an_entry_costs_it_alone_and_is_named() {
    for era in ERAS {
        let servers = [("odd", stdio("offers", era)), ("sound", stdio("plain", "legacy"))];
        let gateway = Gateway::over(&servers, json!({})).await;
        let good =
            ["good", "empty", "none", "null", "any", "php", "flags", "hints", "result", "echo", "line"];
        for revision in LEGACY.into_iter().chain([MODERN]) {
            let mut client = gateway.client(revision).await;
            assert_eq!(names(&mut client).await, good, "{era} {revision}");
            for tool in good {
                assert!(!client.call(tool, json!({})).await.said().is_empty(), "{era} {revision} {tool}");
            }
            let prompts = list(&mut client, "prompts/list", "prompts").await;
            let due = json!([{"name": "fine"}, {"name": "map"}, {"name": "nameless", "arguments": [{"name": "a"}]}]);
            assert_eq!(json!(prompts), due, "{era} {revision}");
            let resources = list(&mut client, "resources/list", "resources").await;
            let due = json!([{"uri": format!("odd://{era}/a"), "name": "a", "size": 12}]);
            assert_eq!(json!(resources), due, "{era} {revision}");
            let templates = list(&mut client, "resources/templates/list", "resourceTemplates").await;
            assert_eq!(templates.len(), 1, "{era} {revision}");
        }
        let status = gateway.status("odd").await;
        assert_eq!(
            (&status["state"], &status["tools"], &status["left_out_count"]),
            (&json!("up"), &json!(9), &json!(13)),
            "{status}"
        );
        let table = gateway.command(&["status"]).await.out;
        let logs = gateway.logged("odd", &["\"string\""]).await;
        for said in [&table, &logs] {
            for words in [
                "\"string\": it is left out: inputSchema is a schema of the type",
                "\"number 11\": it is left out: name is missing",
                "\"map\": of it is left out: arguments is no array",
                "\"no scheme\": it is left out: uri is",
            ] {
                let (name, why) = words.split_once(": ").unwrap();
                assert!(said.contains(name) && said.contains(why), "{words}: {said}");
            }
        }
        assert_eq!(gateway.status("sound").await["left_out_count"], 0);
    }
}

#[testkit::test]
async fn what_is_wrong_in_a_result_is_put_right_shown_as_text_or_named() {
    for era in ERAS {
        let gateway = Gateway::over(&[("odd", stdio("offers", era))], json!({})).await;
        for revision in LEGACY.into_iter().chain([MODERN]) {
            let label = format!("{era} {revision}");
            let mut client = gateway.client(revision).await;
            for (which, due) in [
                ("nulls", json!([text("a")])),
                ("absent", json!([])),
                ("string", json!([text("a")])),
                (
                    "blocks",
                    json!([
                        text("a"),
                        text("{\"type\": \"text\"}"),
                        text("{\"type\": \"image\", \"data\": null, \"mimeType\": \"image/png\"}"),
                        text("{\"type\": \"hologram\"}"),
                        text("7")
                    ]),
                ),
            ] {
                let reply = client.call("result", json!({"which": which})).await;
                assert_eq!(reply.result()["content"], due, "{label} {which}");
                if which == "nulls" && ["2025-06-18", "2025-11-25", MODERN].contains(&revision) {
                    assert_eq!(
                        reply.result()["structuredContent"],
                        json!({"a": null}),
                        "{label}: null is a value there"
                    );
                }
            }
            let prompt = client.request("prompts/get", json!({"name": "fine"})).await;
            assert_eq!(prompt.result()["messages"].as_array().unwrap().len(), 2, "{label}");
            let prompt = client.request("prompts/get", json!({"name": "map"})).await;
            let why = prompt.error()["message"].as_str().unwrap();
            assert!(
                why.contains("the server odd") && why.contains("messages[0].role is none of"),
                "{label}: {why}"
            );
            let uri = format!("odd://{era}/broken");
            let broken = client.request("resources/read", json!({"uri": uri})).await;
            let why = broken.error()["message"].as_str().unwrap();
            assert!(why.contains("the server odd") && why.contains("contents[0]"), "{label}: {why}");
            let reference = json!({"type": "ref/prompt", "name": "fine"});
            let asked = json!({"ref": reference, "argument": {"name": "a", "value": ""}});
            let completed = client.request("completion/complete", asked).await;
            assert_eq!(completed.result()["completion"], json!({"values": ["1", "b"]}), "{label}");
        }
        gateway.logged("odd", &["\"result\"", "content[3] is of the kind \"hologram\""]).await;
    }
}

#[testkit::test]
async fn a_list_that_cannot_be_read_is_read_again_and_what_was_read_of_it_counts() {
    let servers: Vec<(String, Value)> = ERAS
        .into_iter()
        .flat_map(|era| {
            ["fails-once", "fails-on", "empty-cursor", "empty-cursor-refused", "repeats"]
                .map(|name| (format!("{name}-{era}"), stdio(name, era)))
        })
        .collect();
    let servers: Vec<(&str, Value)> = servers.iter().map(|(name, s)| (name.as_str(), s.clone())).collect();
    let gateway = Gateway::over(&servers, json!({"prefix": "always"})).await;
    let mut client = gateway.client(MODERN).await;
    let due: Vec<String> = servers
        .iter()
        .flat_map(|(name, _)| {
            let tools: &[&str] = if name.starts_with("fails-on-") || name.starts_with("repeats") {
                &["echo"]
            } else {
                &["echo", "line"]
            };
            tools.iter().map(move |tool| format!("{name}_{tool}"))
        })
        .collect();
    listed(&mut client, &due.iter().map(String::as_str).collect::<Vec<_>>()).await;
    for era in ERAS {
        for (name, why) in [("fails-on", "this page is lost"), ("repeats", "does not advance")] {
            let status = gateway.status(&format!("{name}-{era}")).await;
            let stale = &status["stale"][0];
            assert_eq!((&status["state"], &stale["list"]), (&json!("up"), &json!("tools/list")), "{status}");
            assert!(stale["why"].as_str().unwrap().contains(why), "{status}");
            assert!(gateway.command(&["status"]).await.out.contains(why));
        }
        for name in ["fails-once", "empty-cursor", "empty-cursor-refused"] {
            let status = gateway.status(&format!("{name}-{era}")).await;
            assert_eq!(status["stale"], json!([]), "{status}");
        }
    }
    gateway
        .logged("fails-once-legacy", &["tools/list cannot be read", "the database is not there yet"])
        .await;
}

#[testkit::test]
async fn a_list_waits_for_no_server() {
    let odd = Odd::start().await;
    let servers = [("mute", odd.http("mute-list", "legacy")), ("sound", scripted(&["--tools", "grow"]))];
    let gateway = Gateway::over(&servers, json!({"prefix": "always"})).await;
    let mut client = gateway.client(MODERN).await;
    let before = ["mute_echo", "mute_line", "sound_grow"];
    listed(&mut client, &before).await;
    // It is asked again when its list is old, and does not answer.
    let asked = async {
        while odd.seen("mute-list", "legacy", "tools/list").await.len() < 2 {
            assert_eq!(names(&mut client).await, before);
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(PATIENCE, asked).await.expect("it is asked again");
    for _ in 0..3 {
        assert_eq!(names(&mut client).await, before);
    }
    client.call("sound_grow", json!({"name": "more"})).await.result();
    listed(&mut client, &["mute_echo", "mute_line", "sound_grow", "sound_more"]).await;
    let logs = gateway.command(&["logs", "mute"]).await.out;
    assert!(!logs.contains("cannot be read"), "nobody waited until it was given up: {logs}");
    odd.have("mute-list", "legacy", "release").await;
    listed(&mut client, &["mute_echo", "mute_line", "mute_late", "sound_grow", "sound_more"]).await;
}

#[testkit::test]
async fn a_resource_is_asked_for_where_a_template_begins_as_its_uri_does() {
    for era in ERAS {
        // The one with the longer beginning is asked first, and does not have it.
        let servers = [("other", stdio("wildcard-other", era)), ("docs", stdio("wildcard", era))];
        let gateway = Gateway::over(&servers, json!({})).await;
        for revision in [LEGACY[3], MODERN] {
            let mut client = gateway.client(revision).await;
            let read = client.request("resources/read", json!({"uri": "docs://a/b/c.md"})).await;
            assert_eq!(read.result()["contents"][0]["text"], "wildcard", "{era} {revision}");
            let none = client.request("resources/read", json!({"uri": "docs://a/b/d.md"})).await;
            assert_eq!(none.code(), if revision == MODERN { -32602 } else { -32002 }, "{era} {revision}");
            let none = client.request("resources/read", json!({"uri": "other://a"})).await;
            assert_eq!(none.code(), if revision == MODERN { -32602 } else { -32002 }, "{era} {revision}");
        }
    }
}

#[testkit::test]
async fn a_listen_has_what_can_be_had_and_says_what_it_has() {
    let servers = [("still", stdio("unsubscribed", "legacy")), ("sound", scripted(&["--name", "sound"]))];
    let gateway = Gateway::over(&servers, json!({})).await;
    let mut client = gateway.client(MODERN).await;
    let filter = json!({"toolsListChanged": true, "resourceSubscriptions": ["still://a", "scripted://sound/a", "no://where"]});
    client.begin("subscriptions/listen", json!({"notifications": filter})).await;
    let told = client.next("notifications/subscriptions/acknowledged").await;
    let due = json!({"toolsListChanged": true, "resourceSubscriptions": ["scripted://sound/a"]});
    assert_eq!(told["params"]["notifications"], due);
    client.begin("tools/call", json!({"name": "touch", "arguments": {"uri": "scripted://sound/a"}})).await;
    assert_eq!(client.next("notifications/resources/updated").await["params"]["uri"], "scripted://sound/a");
    gateway.logged("still", &["1 of its resources cannot be watched", "subscribed to"]).await;
    let mut legacy = gateway.client(LEGACY[3]).await;
    let refused = legacy.request("resources/subscribe", json!({"uri": "still://a"})).await;
    assert!(refused.error()["message"].as_str().unwrap().contains("cannot be subscribed to"));
    legacy.request("resources/subscribe", json!({"uri": "scripted://sound/a"})).await.result();
    let many: Vec<String> = (0..5000).map(|n| format!("no://{n}")).collect();
    let filter = json!({"notifications": {"resourceSubscriptions": many}});
    let refused = client.request("subscriptions/listen", filter).await;
    assert!(
        refused.error()["message"].as_str().unwrap().contains("1000 are the limit"),
        "{}",
        refused.message
    );
}

#[testkit::test]
async fn a_name_that_was_given_stays_with_its_owner() {
    let servers = [
        ("thief", stdio("thief", "legacy")),
        ("plain", stdio("plain", "legacy")),
        ("owner", stdio("owner", "legacy")),
    ];
    let gateway = Gateway::over(&servers, json!({})).await;
    let mut client = gateway.client(MODERN).await;
    let before = ["thief_echo", "grow", "plain_echo", "line", "owner_echo", "only"];
    listed(&mut client, &before).await;
    assert_eq!(client.call("grow", json!({})).await.said(), "stolen");
    let after =
        ["thief_echo", "grow", "thief_plain_echo", "thief_only", "plain_echo", "line", "owner_echo", "only"];
    listed(&mut client, &after).await;
    assert_eq!(client.call("plain_echo", json!({"a": 1})).await.said(), "{\"a\": 1}");
    assert_eq!(client.call("only", json!({})).await.said(), "owner only");
    assert_eq!(client.call("thief_only", json!({})).await.said(), "stolen");
}

#[testkit::test]
async fn names_are_what_the_configuration_says() {
    let definition = json!({"name": "a.b", "inputSchema": {"type": "object"}}).to_string();
    let servers = [("odd", scripted(&["--tools", "line,seen", "--definition", &definition]))];
    let ours = json!({"names": "strict", "servers": {"odd": {"tools": {"line": {"name": "read_it", "title": "Read it"}}}}});
    let gateway = Gateway::over(&servers, ours).await;
    let mut client = gateway.client(MODERN).await;
    assert_eq!(names(&mut client).await, ["read_it", "seen", "a_b"]);
    let got: Value = serde_json::from_str(client.call("read_it", json!({})).await.said()).unwrap();
    assert_eq!(got["params"]["name"], "line");
    let got: Value = serde_json::from_str(client.call("a_b", json!({})).await.said()).unwrap();
    assert_eq!(got["params"]["name"], "a.b");
}

#[testkit::test]
async fn a_change_is_told_where_there_is_one_and_the_last_is_never_lost() {
    let gateway = Gateway::over(&[("chatter", stdio("chatter", "legacy"))], json!({})).await;
    let mut client = gateway.client(MODERN).await;
    listed(&mut client, &["chat"]).await;
    client.begin("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}})).await;
    client.next("notifications/subscriptions/acknowledged").await;
    let mut told = 0;
    let mut count = |client: &mut Client| {
        let changed = |a: &testkit::Arrival| format!("{a:?}").contains("tools/list_changed");
        told += client.leftovers().iter().filter(|a| changed(a)).count();
        told
    };
    // The start of the server may be told to a listen that was opened just then: in one round, and not in each.
    let mut before = 0;
    for _ in 0..3 {
        before = count(&mut client);
        let began = Instant::now();
        // Longer than the time in which changes are put together.
        while began.elapsed() < Duration::from_millis(500) {
            assert_eq!(client.call("chat", json!({})).await.said(), "{}");
        }
        if count(&mut client) == before {
            break;
        }
    }
    assert_eq!(count(&mut client), before, "nothing changed in the last round");
    client.begin("tools/call", json!({"name": "chat", "arguments": {"grow": true}})).await;
    client.next("notifications/tools/list_changed").await;
    assert_eq!(names(&mut client).await, ["chat", "last"]);
    assert_eq!(count(&mut client), before, "it changed once");
}

#[testkit::test]
async fn a_server_that_was_away_comes_back_when_it_is_wanted_or_asked_for() {
    let odd = Odd::start().await;
    let servers = [("away", odd.http("comes-back", "legacy")), ("sound", stdio("plain", "legacy"))];
    let gateway = Gateway::over(&servers, json!({})).await;
    let mut client = gateway.client(MODERN).await;
    let status = gateway.status("away").await;
    assert!(status["state"] != "up" && status["why"].is_string(), "{status}");
    let down = gateway.command(&["restart", "away"]).await;
    assert!(
        down.code == Some(3) && down.err.contains("away was started again and is down"),
        "{:?}",
        down.err
    );
    odd.have("comes-back", "legacy", "come").await;
    let up = gateway.command(&["restart", "away"]).await;
    assert_eq!((up.code, up.out.as_str()), (Some(0), "away was started again and is up\n"), "{}", up.err);
    // What the other had alone until then stays as it is called.
    listed(&mut client, &["away_echo", "away_line", "echo", "line"]).await;
    let restarted = gateway.command(&["restart", "sound", "--json"]).await;
    let report: Value = serde_json::from_str(&restarted.out).unwrap();
    assert_eq!((&report["state"], &report["restarts"]), (&json!("up"), &json!(1)));
    let unknown = gateway.command(&["restart", "awai"]).await;
    assert!(unknown.code == Some(2) && unknown.err.contains("did you mean \"away\"?"), "{:?}", unknown.err);
}

#[testkit::test]
async fn a_server_that_never_answers_a_listen_is_there() {
    let odd = Odd::start().await;
    let gateway = Gateway::over(&[("still", odd.http("no-listen", "modern"))], json!({})).await;
    let mut client = gateway.client(MODERN).await;
    listed(&mut client, &["echo", "line"]).await;
    assert_eq!(gateway.status("still").await["state"], "up");
    assert_eq!(client.call("echo", json!({"a": 1})).await.said(), "{\"a\": 1}");
}

#[testkit::test]
async fn thousands_of_names_that_would_be_the_same_are_all_told_apart() {
    let servers = [("one", stdio("many", "legacy")), ("two", stdio("many", "modern"))];
    let gateway = Gateway::over(&servers, json!({})).await;
    let mut client = gateway.client(MODERN).await;
    let (mut all, mut cursor) = (Vec::new(), None);
    loop {
        let params = cursor.take().map_or(json!({}), |cursor: Value| json!({"cursor": cursor}));
        let page = client.request("tools/list", params).await.result().clone();
        all.extend(
            page["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()),
        );
        match page.get("nextCursor") {
            Some(next) => cursor = Some(next.clone()),
            None => break,
        }
    }
    let distinct: std::collections::BTreeSet<&String> = all.iter().collect();
    assert_eq!((all.len(), distinct.len()), (6000, 6000));
    for (at, own) in [(0, 0x4e00), (2999, 0x4e00 + 2999), (3000, 0x4e00), (5999, 0x4e00 + 2999)] {
        let said = client.call(&all[at], json!({})).await.said().to_owned();
        assert_eq!(said, format!("t\u{e4}{}", char::from_u32(own).unwrap()), "{}", all[at]);
    }
}

#[testkit::test]
async fn a_question_that_nobody_answers_costs_others_nothing_where_there_are_connections() {
    let servers = [("old", scripted(&["--tools", "ask"]))];
    let gateway = Gateway::over(&servers, json!({"servers": {"old": {"pool": {"min": 1, "max": 2}}}})).await;
    let mut client = gateway.client(MODERN).await;
    client.capabilities = json!({"elicitation": {"form": {}}});
    let schema = json!({"type": "object", "properties": {}});
    let question =
        json!({"method": "elicitation/create", "params": {"message": "?", "requestedSchema": schema}});
    for asked in ["by one who leaves", "by another"] {
        let reply = client.call("ask", json!({"questions": [question]})).await;
        assert_eq!(reply.result()["resultType"], "input_required", "{asked}: {}", reply.message);
    }
}
