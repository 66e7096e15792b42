//! The gateway that runs every day: edited while it runs, watched, with servers that come, go and are killed.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use testkit::{Client, LATEST_LEGACY, PATIENCE, Program};
use tokio::process::Command;

use crate::DATELINE;

/// A folder that is there as long as this is.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("dateline-daily-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        // As editors do it: a new file takes the place of the old one.
        std::fs::write(format!("{path}.new"), text).unwrap();
        std::fs::rename(format!("{path}.new"), &path).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The demo as an upstream.
fn demo() -> Value {
    json!({"command": DATELINE, "args": ["demo", "--stdio"]})
}

/// A gateway over a configuration that can be edited, with an admin socket of its own.
struct Daily {
    folder: Folder,
    program: Program,
}

impl Daily {
    async fn start(servers: Value, ours: Value) -> Daily {
        let folder = Folder::new();
        let config =
            folder.write("config.json", &json!({"mcpServers": servers, "dateline": ours}).to_string());
        let socket = folder.path("admin.sock");
        let args = ["serve", "--config", &config, "--listen", "127.0.0.1:0", "--admin-socket", &socket];
        let program = Program::http(DATELINE, &args).await;
        Daily { folder, program }
    }

    fn edit(&self, servers: Value, ours: Value) {
        self.folder.write("config.json", &json!({"mcpServers": servers, "dateline": ours}).to_string());
    }

    fn url(&self) -> &str {
        self.program.url.as_deref().unwrap()
    }

    async fn legacy(&self) -> Client {
        let mut client = Client::connect(self.url());
        client.handshake(LATEST_LEGACY, json!({})).await;
        client
    }

    fn modern(&self) -> Client {
        Client::connect(self.url())
    }

    /// What `dateline status --json` says of each server.
    async fn status(&self) -> Vec<Value> {
        let output = run(&["status", "--json", "--admin-socket", &self.folder.path("admin.sock")]).await;
        assert_eq!(output.code, 0, "{}", output.err);
        let status: Value = serde_json::from_str(&output.out).unwrap();
        status["servers"].as_array().unwrap().clone()
    }

    /// Waits until a server's status fits.
    async fn until(&self, server: &str, what: &str, test: impl Fn(&Value) -> bool) -> Value {
        let waiting = async {
            loop {
                let found = self.status().await.into_iter().find(|s| s["name"] == server);
                if let Some(found) = found.filter(|s| test(s)) {
                    return found;
                }
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(found) => found,
            Err(_) => panic!("{server} is never {what}: {:#?}", self.status().await),
        }
    }

    async fn pids(&self, server: &str) -> Vec<u64> {
        let up = self.until(server, "up", |s| s["state"] == "up").await;
        up["pids"].as_array().unwrap().iter().map(|pid| pid.as_u64().unwrap()).collect()
    }
}

/// What a command printed.
struct Output {
    code: i32,
    out: String,
    err: String,
}

async fn run_in(home: &str, args: &[&str]) -> Output {
    let mut command = Command::new(DATELINE);
    command.args(args).env("HOME", home).env_remove("XDG_CONFIG_HOME").env_remove("DATELINE_CONFIG");
    let output = tokio::time::timeout(PATIENCE, command.stdin(Stdio::null()).kill_on_drop(true).output());
    let output = output.await.expect("it ends").unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Output { code: output.status.code().unwrap_or(-1), out: text(&output.stdout), err: text(&output.stderr) }
}

async fn run(args: &[&str]) -> Output {
    run_in("/nonexistent", args).await
}

async fn tools(client: &mut Client) -> Vec<String> {
    let reply = client.request("tools/list", json!({})).await;
    let tools = reply.result()["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn signal(pid: u64, name: &str) {
    let sent = std::process::Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status();
    assert!(sent.unwrap().success(), "kill -{name} {pid}");
}

/// Whether a process runs; one that has ended and waits to be noticed does not.
fn runs(pid: u64) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'))
}

async fn ends(pid: u64) {
    let waiting = async {
        while runs(pid) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("{pid} is left behind"));
}

#[testkit::test]
async fn an_edit_is_served_and_what_did_not_change_keeps_running() {
    let daily = Daily::start(json!({"a": demo(), "b": demo()}), json!({})).await;
    let (kept, stopped) = (daily.pids("a").await, daily.pids("b").await);
    let mut legacy = daily.legacy().await;
    legacy.exchange("GET", &[("accept", "text/event-stream")], Vec::new());
    let mut modern = daily.modern();
    modern.begin("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}})).await;
    modern.next("notifications/subscriptions/acknowledged").await;
    // A call of the server that goes: it is finished.
    let running = legacy
        .begin("tools/call", json!({"name": "b_slow_compute", "arguments": {"seconds": 1, "label": "last"}}))
        .await;
    daily.until("b", "busy", |s| s["calls"] == 1).await;
    daily.edit(json!({"a": demo(), "c": demo()}), json!({}));
    legacy.next("notifications/tools/list_changed").await;
    modern.next("notifications/tools/list_changed").await;
    daily.pids("c").await;
    assert_eq!(daily.pids("a").await, kept, "what did not change keeps running");
    assert!(daily.status().await.iter().all(|s| s["name"] != "b"));
    assert_eq!(legacy.reply(&running).await.said(), "last is done after 1 s");
    ends(stopped[0]).await;
    assert!(tools(&mut modern).await.contains(&"c_echo".to_owned()));
}

#[testkit::test]
async fn an_edit_that_is_wrong_changes_nothing() {
    let daily = Daily::start(json!({"a": demo()}), json!({})).await;
    let before = daily.pids("a").await;
    daily.folder.write("config.json", "{ \"mcpServers\": { oops");
    signal(u64::from(daily.program.child.id().unwrap()), "HUP");
    // Both signals are taken in order: when the second edit is served, the first was refused.
    assert!(tools(&mut daily.modern()).await.contains(&"echo".to_owned()));
    daily.edit(json!({"a": demo(), "b": demo()}), json!({}));
    daily.pids("b").await;
    assert_eq!(daily.pids("a").await, before);
}

#[testkit::test]
async fn kill_9_of_a_server_ends_its_calls_at_once_and_it_is_back() {
    let daily = Daily::start(json!({"a": demo(), "b": demo()}), json!({})).await;
    let victim = daily.pids("a").await[0];
    daily.pids("b").await;
    let mut client = daily.legacy().await;
    let mut ids = Vec::new();
    for _ in 0..100 {
        ids.push(
            client
                .begin("tools/call", json!({"name": "a_slow_compute", "arguments": {"seconds": 600}}))
                .await,
        );
    }
    let other =
        client.begin("tools/call", json!({"name": "b_slow_compute", "arguments": {"seconds": 1}})).await;
    daily.until("a", "busy", |s| s["calls"] == 100).await;
    signal(victim, "KILL");
    for id in ids {
        let message = client.reply(&id).await.error()["message"].as_str().unwrap().to_owned();
        assert!(message.contains("the server a ended"), "{message}");
    }
    assert_eq!(client.reply(&other).await.said(), "it is done after 1 s");
    let back = daily.until("a", "back", |s| s["state"] == "up" && s["restarts"] == 1).await;
    assert_ne!(back["pids"][0], victim);
    assert_eq!(client.call("a_echo", json!({"message": "again"})).await.said(), "again");
}

#[testkit::test]
async fn the_end_of_a_killed_server_is_told_with_its_reason_each_time() {
    let daily = Daily::start(json!({"a": demo()}), json!({})).await;
    for killed in 0..4 {
        let up = daily.until("a", "up", |s| s["state"] == "up" && s["restarts"] == killed).await;
        signal(up["pids"][0].as_u64().unwrap(), "KILL");
    }
    daily.until("a", "back", |s| s["state"] == "up" && s["restarts"] == 4).await;
    let logs = run(&["logs", "a", "--admin-socket", &daily.folder.path("admin.sock")]).await.out;
    let down: Vec<&str> = logs.lines().filter(|line| line.contains("down:")).collect();
    assert_eq!(down.len(), 4, "{logs}");
    assert!(down.iter().all(|line| line.contains("the server a ended (signal: 9")), "{down:#?}");
}

#[testkit::test]
async fn a_server_that_is_slow_to_start_is_spoken_to_in_its_own_era() {
    let folder = Folder::new();
    let slow = |name: &str, era: &str| {
        let script = format!("echo >> {}; sleep 3.5; exec {DATELINE} demo --stdio{era}", folder.path(name));
        json!({"command": "/bin/sh", "args": ["-c", script]})
    };
    let servers = json!({"both": slow("both", ""), "old": slow("old", " --era legacy")});
    let daily = Daily::start(servers, json!({})).await;
    let both = daily.until("both", "up", |s| s["state"] == "up").await;
    let old = daily.until("old", "up", |s| s["state"] == "up").await;
    assert_eq!((&both["revision"], &old["revision"]), (&json!("2026-07-28"), &json!(LATEST_LEGACY)));
    // The one that heard `initialize` as well was started again; the other need not be.
    let starts = |name: &str| std::fs::read_to_string(folder.path(name)).unwrap().lines().count();
    assert_eq!((starts("both"), starts("old")), (2, 1));
}

#[testkit::test]
async fn a_server_is_spoken_to_in_the_era_that_is_configured() {
    let old = json!({"command": DATELINE, "args": ["demo", "--stdio", "--era", "legacy"]});
    let mut http = Program::http(DATELINE, &["demo", "--listen", "127.0.0.1:0"]).await;
    let url = http.url.take().unwrap();
    let servers = json!({"pipe": demo(), "http": {"url": url}, "new": {"url": url}, "wrong": old});
    let era = |era: &str| json!({"era": era});
    let eras =
        json!({"pipe": era("legacy"), "http": era("legacy"), "new": era("modern"), "wrong": era("modern")});
    let daily = Daily::start(servers, json!({"servers": eras})).await;
    for (name, revision) in [("pipe", LATEST_LEGACY), ("http", LATEST_LEGACY), ("new", "2026-07-28")] {
        let up = daily.until(name, "up", |s| s["state"] == "up").await;
        assert_eq!(up["revision"], revision, "{name}");
    }
    let wrong = daily.until("wrong", "down", |s| s["state"] == "down").await;
    let why = wrong["why"].as_str().unwrap();
    assert!(why.contains("does not answer server/discover as a modern server does"), "{why}");
}

#[testkit::test]
async fn kill_9_of_dateline_leaves_no_process() {
    let folder = Folder::new();
    let child = folder.path("child.pid");
    // A shell between, and a child that ignores the end of its input, as npx and its like have them.
    let script = format!("sleep 1000 & echo $! > {child}; {DATELINE} demo --stdio; wait");
    let shell = json!({"command": "/bin/sh", "args": ["-c", script]});
    let stubborn = json!({"command": "/bin/sh", "args": ["-c", format!("trap '' TERM HUP; {DATELINE} demo --stdio; sleep 1000")]});
    let daily = Daily::start(json!({"shell": shell, "stubborn": stubborn}), json!({})).await;
    let mut pids = [daily.pids("shell").await, daily.pids("stubborn").await].concat();
    pids.push(std::fs::read_to_string(&child).unwrap().trim().parse().unwrap());
    assert!(pids.iter().all(|pid| runs(*pid)));
    signal(u64::from(daily.program.child.id().unwrap()), "KILL");
    for pid in pids {
        ends(pid).await;
    }
}

#[testkit::test]
async fn status_says_what_is_wrong_with_each_server() {
    let broken = json!({"command": "/bin/sh", "args": ["-c", "echo no licence >&2; exit 3"]});
    let missing = json!({"command": "dateline-no-such-program"});
    let silent = json!({"command": "sleep", "args": ["1000"]});
    let servers = json!({"good": demo(), "broken": broken, "missing": missing, "silent": silent});
    let daily = Daily::start(servers, json!({})).await;
    let good = daily.until("good", "up", |s| s["state"] == "up").await;
    assert_eq!(
        (&good["revision"], &good["era"], &good["transport"]),
        (&json!("2026-07-28"), &json!("modern"), &json!("stdio"))
    );
    let broken = daily.until("broken", "down", |s| s["state"] == "down").await;
    let why = broken["why"].as_str().unwrap();
    assert!(why.contains("exit status: 3") && why.contains("no licence"), "{why}");
    let missing = daily.until("missing", "down", |s| s["state"] == "down").await;
    assert!(missing["why"].as_str().unwrap().contains("dateline-no-such-program"));
    // What is there is served; who asks is told what is not.
    let mut client = daily.legacy().await;
    let reply = client.request("tools/list", json!({})).await;
    assert!(reply.result()["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "echo"));
    let told: Vec<_> = reply.notifications("notifications/message");
    let told = |server: &str| told.iter().any(|m| m["params"]["data"].as_str().unwrap().contains(server));
    assert!(told("broken") && told("missing") && told("silent"));
    let shown = run(&["status", "--admin-socket", &daily.folder.path("admin.sock")]).await.out;
    assert!(shown.lines().any(|line| line.starts_with("good") && line.contains("up")), "{shown}");
    assert!(shown.contains("no licence"), "{shown}");
    let logs = run(&["logs", "broken", "--admin-socket", &daily.folder.path("admin.sock")]).await.out;
    assert!(logs.lines().all(|line| line.contains(" broken ")) && logs.contains("no licence"), "{logs}");
}

#[testkit::test]
async fn without_a_running_dateline_status_says_so() {
    let output = run(&["status", "--admin-socket", "/nonexistent/admin.sock"]).await;
    assert_eq!(output.code, 3);
    assert!(output.err.contains("no dateline is running"), "{}", output.err);
}

#[testkit::test]
async fn the_admin_api_beside_the_endpoint_is_behind_the_same_checks() {
    let folder = Folder::new();
    let config = folder.write("config.json", &json!({"mcpServers": {"a": demo()}}).to_string());
    let socket = folder.path("admin.sock");
    let args =
        ["serve", "--config", &config, "--listen", "127.0.0.1:0", "--admin-socket", &socket, "--admin-http"];
    let program = Program::http(DATELINE, &args).await;
    let url = program.url.as_deref().unwrap().replace("/mcp", "/v1/status");
    for (headers, status) in [
        (vec![], 200),
        (vec![("origin", "http://evil.example.com")], 403),
        (vec![("host", "evil.example.com")], 403),
    ] {
        let response = testkit::http(&url, "GET", &headers, Vec::new()).await.unwrap();
        assert_eq!(response.status().as_u16(), status, "{headers:?}");
    }
    let plain = Daily::start(json!({"a": demo()}), json!({})).await;
    let beside = plain.url().replace("/mcp", "/v1/status");
    assert_eq!(
        testkit::http(&beside, "GET", &[], Vec::new()).await.unwrap().status(),
        404,
        "only where it was asked for"
    );
}

#[testkit::test]
async fn a_pool_grows_while_calls_are_many_and_shrinks_again() {
    let ours = json!({"servers": {"a": {"pool": {"min": 1, "max": 3, "idleSeconds": 1}}}});
    let daily = Daily::start(json!({"a": demo()}), ours).await;
    assert_eq!(daily.pids("a").await.len(), 1);
    let mut client = daily.legacy().await;
    let call = json!({"name": "countdown", "arguments": {"from": 600, "intervalMs": 100}});
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(client.begin("tools/call", call.clone()).await);
    }
    daily.until("a", "three", |s| s["pids"].as_array().unwrap().len() == 3).await;
    for id in ids {
        client.notify("notifications/cancelled", json!({"requestId": id})).await;
    }
    daily.until("a", "one", |s| s["pids"].as_array().unwrap().len() == 1).await;
}

#[testkit::test]
async fn a_server_can_be_started_on_first_use_and_ended_when_unused() {
    let ours = json!({"servers": {"a": {"pool": {"min": 0, "max": 1, "idleSeconds": 1}}}});
    let daily = Daily::start(json!({"a": demo()}), ours).await;
    let idle = daily.until("a", "idle", |s| s["state"] == "idle").await;
    assert_eq!(idle["pids"], json!([]));
    let mut client = daily.modern();
    assert!(tools(&mut client).await.contains(&"echo".to_owned()));
    daily.until("a", "idle again", |s| s["state"] == "idle" && s["pids"] == json!([])).await;
    assert!(tools(&mut client).await.contains(&"echo".to_owned()), "it is listed while it is idle");
    assert_eq!(client.call("echo", json!({"message": "awake"})).await.said(), "awake");
}

#[testkit::test]
async fn tools_are_shown_as_the_configuration_says() {
    let ours = json!({"prefix": "always", "servers": {"a": {
        "allow": ["e*", "add", "countdown"], "deny": ["count*"],
        "tools": {"add": {"title": "Plus", "description": "One and one."}},
    }}});
    let daily = Daily::start(json!({"a": demo()}), ours).await;
    daily.pids("a").await;
    let mut client = daily.modern();
    let reply = client.request("tools/list", json!({})).await;
    let listed = reply.result()["tools"].as_array().unwrap();
    let names: Vec<_> = listed.iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a_echo", "a_add"]);
    assert_eq!((&listed[1]["title"], &listed[1]["description"]), (&json!("Plus"), &json!("One and one.")));
    assert_eq!(client.call("a_add", json!({"a": 1, "b": 1})).await.result()["structuredContent"]["sum"], 2);
    assert_eq!(client.call("a_countdown", json!({"from": 1, "intervalMs": 1})).await.code(), -32602);
}

#[testkit::test]
async fn names_stay_while_a_server_is_away() {
    let folder = Folder::new();
    let config = |b: Value| json!({"mcpServers": {"a": demo(), "b": b}}).to_string();
    let path = folder.write("config.json", &config(demo()));
    let state = folder.path("state");
    let start = async || {
        let mut command = Command::new(DATELINE);
        command.args([
            "serve",
            "--config",
            &path,
            "--listen",
            "127.0.0.1:0",
            "--admin-socket",
            &folder.path("s"),
        ]);
        Program::of(command.env("XDG_STATE_HOME", &state).env("HOME", "/dev/null")).await
    };
    let program = start().await;
    let both = tools(&mut Client::connect(program.url.as_deref().unwrap())).await;
    assert!(both.contains(&"a_echo".to_owned()) && both.contains(&"b_echo".to_owned()), "{both:?}");
    drop(program);
    folder.write("config.json", &config(json!({"command": "dateline-no-such-program"})));
    let program = start().await;
    let one = tools(&mut Client::connect(program.url.as_deref().unwrap())).await;
    assert!(one.contains(&"a_echo".to_owned()) && !one.contains(&"echo".to_owned()), "{one:?}");
}

#[testkit::test]
async fn prox_11_a_session_that_lapsed_is_opened_again() {
    for era in ["legacy", "modern"] {
        let remote = Program::http(DATELINE, &["demo", "--era", era, "--listen", "127.0.0.1:0"]).await;
        let url = remote.url.clone().unwrap();
        let daily = Daily::start(json!({"far": {"url": url}}), json!({})).await;
        daily.until("far", "up", |s| s["state"] == "up" && s["era"] == era && s["transport"] == "http").await;
        let mut client = daily.modern();
        assert_eq!(client.call("echo", json!({"message": "1"})).await.said(), "1");
        // The server is another one now, at the same place: it knows no session.
        let address = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
        drop(remote);
        let _again = Program::http(DATELINE, &["demo", "--era", era, "--listen", &address]).await;
        assert_eq!(client.call("echo", json!({"message": "2"})).await.said(), "2", "{era}");
    }
}

#[testkit::test]
async fn changes_of_a_remote_server_are_passed_on() {
    for era in ["legacy", "modern"] {
        let remote = Program::http(DATELINE, &["demo", "--era", era, "--listen", "127.0.0.1:0"]).await;
        let daily = Daily::start(json!({"far": {"url": remote.url.as_deref().unwrap()}}), json!({})).await;
        daily.until("far", "up", |s| s["state"] == "up").await;
        let mut client = daily.modern();
        let filter = json!({"toolsListChanged": true, "resourceSubscriptions": ["test://watched-resource"]});
        client.begin("subscriptions/listen", json!({"notifications": filter})).await;
        let acknowledged = client.next("notifications/subscriptions/acknowledged").await;
        assert_eq!(acknowledged["params"]["notifications"], filter, "{era}");
        // What is said to have changed and did not is nobody's business.
        client.call("test_trigger_tool_change", json!({})).await;
        client.call("touch_resource", json!({"uri": "test://watched-resource"})).await;
        client.next("notifications/resources/updated").await;
        assert!(!format!("{:?}", client.leftovers()).contains("list_changed"), "{era}");
    }
}

#[testkit::test]
async fn questions_of_a_remote_server_reach_the_client() {
    for era in ["legacy", "modern"] {
        let remote = Program::http(DATELINE, &["demo", "--era", era, "--listen", "127.0.0.1:0"]).await;
        let daily = Daily::start(json!({"far": {"url": remote.url.as_deref().unwrap()}}), json!({})).await;
        daily.until("far", "up", |s| s["state"] == "up").await;
        let mut client = daily.modern();
        client.capabilities = json!({"elicitation": {}});
        let tool = json!({"name": "test_input_required_result_elicitation", "arguments": {}});
        let asked = client.request("tools/call", tool.clone()).await;
        let result = asked.result();
        let (key, _) = result["inputRequests"].as_object().unwrap().iter().next().unwrap();
        let mut retry = tool;
        retry["requestState"] = result["requestState"].clone();
        retry["inputResponses"] = json!({key: {"action": "accept", "content": {"name": "Ada"}}});
        assert_eq!(client.request("tools/call", retry).await.said(), "Hello, Ada!", "{era}");
    }
}

#[testkit::test]
async fn servers_are_added_checked_imported_and_removed() {
    let folder = Folder::new();
    let home = folder.path("");
    let own = ".config/dateline/config.json";
    std::fs::create_dir_all(folder.path(".cursor")).unwrap();
    folder.write(".cursor/mcp.json", &json!({"mcpServers": {"found": demo(), "mine": demo()}}).to_string());
    let dateline = async |args: &[&str]| run_in(&home, args).await;
    let added = dateline(&["add", "mine", "--env", "K=v", "--", DATELINE, "demo", "--stdio"]).await;
    assert_eq!(added.code, 0, "{}", added.err);
    assert_eq!(dateline(&["add", "mine", "http://127.0.0.1:1/mcp"]).await.code, 2, "the name is taken");
    let seen = dateline(&["import"]).await.out;
    assert!(seen.contains("+ found") && seen.contains("- mine"), "{seen}");
    assert!(seen.contains("1 server would be added"), "{seen}");
    assert!(!dateline(&["check-config"]).await.out.contains("found"), "it was only shown");
    assert_eq!(dateline(&["import", "--apply"]).await.code, 0);
    let checked = dateline(&["check-config", "--json"]).await.out;
    let checked: Value = serde_json::from_str(&checked).unwrap();
    let names: Vec<_> = checked["servers"].as_array().unwrap().iter().map(|s| s["name"].clone()).collect();
    assert_eq!(names, ["mine", "found"]);
    let called = dateline(&["call", "found", "add", "a=1", "b=2"]).await;
    assert_eq!((called.code, called.out.as_str()), (0, "3\n"), "{}", called.err);
    assert_eq!(dateline(&["remove", "mine"]).await.code, 0);
    let gone = dateline(&["remove", "mine"]).await;
    assert_eq!(gone.code, 2);
    assert!(gone.err.contains("the configuration has: found"), "{}", gone.err);
    let text = std::fs::read_to_string(folder.path(own)).unwrap();
    assert!(!text.contains("mine"), "{text}");
}

#[testkit::test]
async fn odd_keys_are_warned_of_and_wrong_ones_stop_the_start() {
    let folder = Folder::new();
    let mut server = demo();
    server["arsg"] = json!([]);
    let odd = folder.write("odd.json", &json!({"mcpServers": {"a": server}}).to_string());
    let checked = run(&["check-config", &odd]).await;
    assert_eq!(checked.code, 0);
    assert!(checked.out.contains(&format!("{odd}:1: \"arsg\" is not known")), "{}", checked.out);
    assert!(checked.out.contains("did you mean \"args\"?"), "{}", checked.out);
    let wrong = folder.write("wrong.json", "{\"mcpServers\": {},\n\"dateline\": {\"prefx\": \"always\"}}");
    let stopped = run(&["serve", "--config", &wrong, "--listen", "127.0.0.1:0"]).await;
    assert_eq!(stopped.code, 2);
    assert!(
        stopped.err.contains("wrong.json:2: \"prefx\"") && stopped.err.contains("\"prefix\""),
        "{}",
        stopped.err
    );
    let stdin = Client::pipe(DATELINE, &["stdio", "--config", &wrong]).exit().await;
    assert_eq!(stdin, Some(2));
}

#[testkit::test]
async fn stdio_ends_its_servers_when_its_input_ends() {
    let folder = Folder::new();
    let config = folder.write("config.json", &json!({"mcpServers": {"a": demo()}}).to_string());
    let mut client = Client::pipe(DATELINE, &["stdio", "--config", &config]);
    assert_eq!(client.call("echo", json!({"message": "hi"})).await.said(), "hi");
    let dateline = client.program.as_ref().unwrap().child.id().unwrap();
    let output = std::process::Command::new("pgrep").args(["-P", &dateline.to_string()]).output().unwrap();
    let children: Vec<u64> =
        String::from_utf8_lossy(&output.stdout).lines().map(|l| l.parse().unwrap()).collect();
    assert_eq!(children.len(), 2, "the server and the guard");
    client.close_input();
    assert_eq!(client.exit().await, Some(0));
    for pid in children {
        ends(pid).await;
    }
}

/// A modern server that keeps the head and body of every request, and answers as a tool server does.
async fn recording() -> (String, tokio::sync::mpsc::UnboundedReceiver<(String, Value)>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let (keep, kept) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, keep.clone()));
        }
    });
    (url, kept)
}

async fn answer(
    mut stream: tokio::net::TcpStream,
    keep: tokio::sync::mpsc::UnboundedSender<(String, Value)>,
) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut buffer = Vec::new();
    loop {
        let end = loop {
            if let Some(at) = buffer.windows(4).position(|w| w == b"\r\n\r\n") {
                break at + 4;
            }
            if stream.read_buf(&mut buffer).await.unwrap_or(0) == 0 {
                return;
            }
        };
        let head = String::from_utf8(buffer[..end].to_vec()).unwrap().to_lowercase();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .map_or(0, |n| n.parse().unwrap());
        while buffer.len() < end + length {
            stream.read_buf(&mut buffer).await.unwrap();
        }
        let body: Value = serde_json::from_slice(&buffer[end..end + length]).unwrap();
        buffer.drain(..end + length);
        let result = match body["method"].as_str().unwrap() {
            "server/discover" => json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}),
            "tools/list" => json!({"tools": [{
                "name": "grüß dich",
                "inputSchema": {"type": "object", "properties": {"r": {"type": "string", "x-mcp-header": "Region"}}},
            }]}),
            _ => json!({"content": [{"type": "text", "text": "done"}]}),
        };
        let text = json!({"jsonrpc": "2.0", "id": body["id"], "result": result}).to_string();
        let _ = keep.send((head, body));
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{text}",
            text.len()
        );
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

#[testkit::test]
async fn prox_15_a_request_to_a_modern_server_has_all_that_the_revision_requires() {
    // The revision is the server's.
    testkit::covers(&[testkit::MODERN], testkit::Wire::Http, testkit::Between::Gateway);
    let (url, mut kept) = recording().await;
    let daily = Daily::start(json!({"far": {"url": url}}), json!({})).await;
    daily.until("far", "up", |s| s["state"] == "up").await;
    let mut client = daily.legacy().await;
    let name = tools(&mut client).await.remove(0);
    assert_eq!(client.call(&name, json!({"r": " übersee "})).await.said(), "done");
    let mut methods = Vec::new();
    while let Ok((head, body)) = kept.try_recv() {
        let header = |name: &str| {
            head.lines().find_map(|line| line.strip_prefix(&format!("{name}: "))).map(str::to_owned)
        };
        let meta = &body["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28", "{body}");
        assert!(meta["io.modelcontextprotocol/clientCapabilities"].is_object(), "{body}");
        assert_eq!(header("mcp-protocol-version").as_deref(), Some("2026-07-28"), "{head}");
        assert_eq!(header("mcp-method").as_deref(), body["method"].as_str(), "{head}");
        let accept = header("accept").unwrap();
        assert!(accept.contains("application/json") && accept.contains("text/event-stream"), "{accept}");
        assert!(body.get("method").is_some(), "nothing but requests is sent: {body}");
        let method = body["method"].as_str().unwrap().to_owned();
        if method == "tools/call" {
            assert!(header("mcp-name").unwrap().starts_with("=?base64?"), "{head}");
            assert!(header("mcp-param-region").unwrap().starts_with("=?base64?"), "{head}");
        } else {
            assert_eq!(header("mcp-name"), None, "{head}");
        }
        methods.push(method);
    }
    for method in ["server/discover", "tools/list", "tools/call"] {
        assert!(methods.iter().any(|m| m == method), "{methods:?}");
    }
}

#[testkit::test]
async fn a_merged_list_that_is_longer_than_a_page_comes_in_pages() {
    let names: Vec<String> = (0..300).map(|n| format!("tool{n:03}")).collect();
    let many = crate::gateway::scripted(&["--tools", &names.join(",")]);
    let daily = Daily::start(json!({"many": many, "a": demo()}), json!({})).await;
    daily.pids("many").await;
    daily.pids("a").await;
    for mut client in [daily.modern(), daily.legacy().await] {
        let first = client.request("tools/list", json!({})).await;
        let cursor = first.result()["nextCursor"].clone();
        assert_eq!(first.result()["tools"].as_array().unwrap().len(), 250);
        let second = client.request("tools/list", json!({"cursor": cursor})).await;
        let mut listed: Vec<_> = first.result()["tools"].as_array().unwrap().clone();
        listed.extend(second.result()["tools"].as_array().unwrap().clone());
        assert_eq!(second.result().get("nextCursor"), None);
        assert!(names.iter().zip(&listed).all(|(name, tool)| tool["name"] == **name));
        assert!(listed.iter().any(|tool| tool["name"] == "echo"));
        let never = client.request("tools/list", json!({"cursor": "never issued"})).await;
        assert_eq!(never.code(), -32602);
    }
}

#[testkit::test]
async fn the_words_of_all_servers_on_their_use_are_merged() {
    let daily = Daily::start(json!({"a": demo(), "b": demo()}), json!({})).await;
    daily.pids("a").await;
    daily.pids("b").await;
    let discovered = daily.modern().request("server/discover", json!({})).await;
    let instructions = discovered.result()["instructions"].as_str().unwrap().to_owned();
    assert!(
        instructions.contains("# a\n\nA server to play with") && instructions.contains("# b\n\n"),
        "{instructions}"
    );
}

#[testkit::test]
async fn logs_can_be_structured() {
    let folder = Folder::new();
    let servers = json!({"mcpServers": {"gone": {"command": "dateline-no-such-program"}}});
    let config = folder.write("config.json", &servers.to_string());
    let mut command = Command::new(DATELINE);
    command.args(["stdio", "--config", &config, "--log-format", "json"]).env("HOME", "/dev/null");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.kill_on_drop(true).spawn().unwrap();
    let mut lines =
        tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(child.stderr.take().unwrap()));
    let line = tokio::time::timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
    let logged: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&logged["level"], &logged["fields"]["server"]), (&json!("WARN"), &json!("gone")), "{line}");
}

#[testkit::test]
async fn the_admin_socket_passes_to_the_next_dateline() {
    let folder = Folder::new();
    let socket = folder.path("admin.sock");
    let start = async |name: &str| {
        let config =
            folder.write(&format!("{name}.json"), &json!({"mcpServers": {name: demo()}}).to_string());
        let args = ["serve", "--config", &config, "--listen", "127.0.0.1:0", "--admin-socket", &socket];
        Program::http(DATELINE, &args).await
    };
    let shown = async |name: &str| {
        let waiting = async {
            while !run(&["status", "--admin-socket", &socket]).await.out.contains(&format!("\n{name} ")) {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("{name} is never shown"));
    };
    let mut first = start("first").await;
    shown("first").await;
    let _second = start("second").await;
    shown("first").await;
    signal(u64::from(first.child.id().unwrap()), "TERM");
    assert!(first.child.wait().await.unwrap().success());
    shown("second").await;
    assert!(std::path::Path::new(&socket).exists());
}

/// A pipe to the demo that keeps every line that goes through it.
fn kept_lines(file: &str, era: &str) -> Value {
    json!({"command": "/bin/sh", "args": ["-c", format!("tee -a {file} | {DATELINE} demo --stdio --era {era}")]})
}

fn sent(file: &str, method: &str) -> usize {
    std::fs::read_to_string(file).unwrap_or_default().matches(&format!("\"method\":\"{method}\"")).count()
}

#[testkit::test]
async fn prox_08_what_a_server_is_was_found_out_once_and_again_where_that_proves_wrong() {
    let folder = Folder::new();
    let (old, lines) = (folder.path("old"), folder.path("lines"));
    // What stands behind the configuration can be exchanged while it is away.
    folder.write("era", "legacy");
    let script = format!("tee -a {lines} | {DATELINE} demo --stdio --era $(cat {})", folder.path("era"));
    let changing = json!({"command": "/bin/sh", "args": ["-c", script]});
    let daily =
        Daily::start(json!({"old": kept_lines(&old, "legacy"), "changing": changing}), json!({})).await;
    for (server, file) in [("old", &old), ("changing", &lines)] {
        daily.until(server, "up", |s| s["state"] == "up" && s["era"] == "legacy").await;
        assert_eq!((sent(file, "server/discover"), sent(file, "initialize")), (1, 1), "{server}");
    }
    folder.write("era", "modern");
    for (server, era) in [("old", "legacy"), ("changing", "modern")] {
        signal(daily.pids(server).await[0], "KILL");
        daily.until(server, "back", |s| s["state"] == "up" && s["era"] == era && s["restarts"] != 0).await;
    }
    assert_eq!((sent(&old, "server/discover"), sent(&old, "initialize")), (1, 2), "it is not probed again");
    assert_eq!(sent(&lines, "server/discover"), 2, "it is, since it refused the handshake");
}
