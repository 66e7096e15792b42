//! Many servers behind one endpoint: what passes through the gateway, between peers of every revision, and what
//! becomes of upstreams that misbehave.

mod bytes;
mod cancellation;
mod errors;
mod lists;
mod misbehaviour;
mod processes;
mod progress;
mod questions;
mod remote;
mod strange;
mod subscriptions;

use std::path::PathBuf;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use testkit::{Client, LATEST_LEGACY, LEGACY, MODERN, Program, Wire};

use crate::DATELINE;

/// A server that misbehaves as its flags say; its tools show what arrived.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripted.py");

/// The upstreams of [`demos`] and [`scripts`]: a legacy one and a modern one.
const SIDES: [&str; 2] = ["old", "new"];

/// A revision of each era.
const ERAS: [&str; 2] = [LATEST_LEGACY, MODERN];

/// A configuration in a file that is there as long as this is.
pub(crate) struct Config(PathBuf);

impl Config {
    pub(crate) fn new(servers: &[(&str, Value)]) -> Config {
        let servers: serde_json::Map<String, Value> =
            servers.iter().map(|(name, server)| ((*name).to_owned(), server.clone())).collect();
        Config::text(&json!({"mcpServers": servers}).to_string())
    }

    pub(crate) fn text(text: &str) -> Config {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("dateline-{}-{count}.json", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Config(path)
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Config {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

pub(crate) fn demo(era: &str) -> Value {
    json!({"command": DATELINE, "args": ["demo", "--stdio", "--era", era]})
}

/// The interpreter of scripted servers itself: what is found by its name may be a slow way to it.
pub(crate) fn python() -> &'static str {
    static PYTHON: LazyLock<String> = LazyLock::new(|| {
        let ask = ["-S", "-c", "import sys; print(sys.executable)"];
        let said = std::process::Command::new("python3").args(ask).output().expect("python3 is installed");
        String::from_utf8(said.stdout).unwrap().trim().to_owned()
    });
    &PYTHON
}

pub(crate) fn scripted(flags: &[&str]) -> Value {
    let args = [&["-S", SCRIPT], flags].concat();
    json!({"command": python(), "args": args, "env": {"DATELINE_TRAFFIC": testkit::traffic_path()}})
}

/// A demo of each era.
fn demos() -> [(&'static str, Value); 2] {
    [("old", demo("legacy")), ("new", demo("modern"))]
}

/// A scripted server of each era.
fn scripts() -> [(&'static str, Value); 2] {
    [("old", scripted(&["--name", "old"])), ("new", scripted(&["--name", "new", "--era", "modern"]))]
}

/// A client of a gateway of its own over these servers, once they all run.
async fn through(
    wire: Wire,
    servers: &[(&str, Value)],
    revision: &'static str,
    capabilities: Value,
) -> Client {
    let mut client = through_at_once(wire, servers, revision, capabilities).await;
    settle(&mut client).await;
    client
}

/// The same, without waiting for the servers.
async fn through_at_once(
    wire: Wire,
    servers: &[(&str, Value)],
    revision: &'static str,
    capabilities: Value,
) -> Client {
    behind(wire, &Config::new(servers), revision, capabilities).await
}

/// A client of a gateway with this configuration.
async fn behind(wire: Wire, config: &Config, revision: &'static str, capabilities: Value) -> Client {
    let mut client = match wire {
        Wire::Stdio => Client::pipe(DATELINE, &["stdio", "--config", config.path()]),
        Wire::Http | Wire::Sse => {
            let args = ["serve", "--config", config.path(), "--listen", "127.0.0.1:0"];
            let program = Program::http(DATELINE, &args).await;
            let mut client = Client::over(wire, program.url.as_deref().unwrap()).await;
            client.program = Some(program);
            client
        }
    };
    open(&mut client, revision, capabilities).await;
    client
}

/// Waits until no server is starting any more, which under load takes longer than a gateway waits by itself.
pub(crate) async fn settle(client: &mut Client) {
    let mut listening = None;
    loop {
        let reply = client.call("no such tool", json!({})).await;
        let why = reply.error()["message"].as_str().unwrap_or_default();
        match (why.contains("is still starting"), &listening) {
            (false, None) => return,
            (false, Some(watch)) => return unwatch(client, watch).await,
            (true, None) => listening = Some(watch(client, &[]).await),
            (true, Some(_)) => drop(client.next("notifications/tools/list_changed").await),
        }
    }
}

/// Opens a session, or asks a modern server who it is: either shows that it has read its configuration.
async fn open(client: &mut Client, revision: &'static str, capabilities: Value) {
    if revision == MODERN {
        client.capabilities = capabilities;
        client.request("server/discover", json!({})).await.result();
    } else {
        client.handshake(revision, capabilities).await.result();
    }
}

/// One more client of the gateway that this one reaches over HTTP.
async fn another(of: &Client, revision: &'static str, capabilities: Value) -> Client {
    let url = of.program.as_ref().and_then(|program| program.url.as_deref());
    let mut client = Client::connect(url.unwrap());
    open(&mut client, revision, capabilities).await;
    client
}

/// A client, and what to call it where it fails.
struct Peer {
    client: Client,
    label: String,
    revision: &'static str,
}

/// Clients of every revision, of one gateway over HTTP, and one of each era over a pipe.
async fn peers(servers: &[(&str, Value)], capabilities: Value) -> Vec<Peer> {
    let peer = |client, wire, revision| Peer { client, label: format!("{wire:?} {revision}"), revision };
    let first = through(Wire::Http, servers, MODERN, capabilities.clone()).await;
    let mut all = Vec::new();
    for revision in LEGACY {
        all.push(peer(another(&first, revision, capabilities.clone()).await, Wire::Http, revision));
    }
    all.push(peer(first, Wire::Http, MODERN));
    for revision in ERAS {
        let client = through(Wire::Stdio, servers, revision, capabilities.clone()).await;
        all.push(peer(client, Wire::Stdio, revision));
    }
    all
}

/// The names in a list.
async fn listed(client: &mut Client, list: &str, by: &str) -> Vec<String> {
    let method =
        if list == "resourceTemplates" { "resources/templates/list" } else { &format!("{list}/list") };
    let reply = client.request(method, json!({})).await;
    let entries = reply.result()[list].as_array().unwrap();
    entries.iter().map(|entry| entry[by].as_str().unwrap().to_owned()).collect()
}

/// What a scripted server's tool says.
async fn say(client: &mut Client, tool: &str, arguments: Value) -> String {
    client.call(tool, arguments).await.said().to_owned()
}

/// The messages that a scripted server's tool shows.
async fn shown(client: &mut Client, tool: &str, arguments: Value) -> Vec<Value> {
    let text = say(client, tool, arguments).await;
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The call that says whose it is, as an upstream got it.
fn of<'a>(calls: &'a [Value], who: &str) -> &'a Value {
    let call = calls.iter().find(|call| call["params"]["arguments"]["who"] == who);
    call.unwrap_or_else(|| panic!("no call of {who} in {calls:?}"))
}

/// Starts a call that only its release ends, and waits until it runs.
async fn hold(client: &mut Client, side: &str, who: &str) -> u64 {
    let arguments = json!({"who": who});
    let call =
        json!({"name": format!("{side}_hold"), "arguments": arguments, "_meta": {"progressToken": who}});
    let exchange = client.begin_as(json!(who), "tools/call", call).await;
    let told = client.next("notifications/progress").await;
    assert_eq!(told["params"]["progressToken"], who);
    exchange
}

/// The cancellations that an upstream got, once there is one; and its calls.
async fn cancellations(client: &mut Client, side: &str) -> (Vec<Value>, Vec<Value>) {
    let method = json!({"method": "notifications/cancelled"});
    let cancelled = shown(client, &format!("{side}_await_line"), method).await;
    (cancelled, shown(client, &format!("{side}_seen"), json!({"method": "tools/call"})).await)
}

/// How a client listens.
struct Watch {
    /// The id of a modern listen.
    listen: Option<Value>,
    /// Its exchange, or that of a session's stream.
    exchange: u64,
    uris: Vec<String>,
}

/// Listens as clients of the revision do: to these resources and to the list of tools.
async fn watch(client: &mut Client, uris: &[&str]) -> Watch {
    let mut watch =
        Watch { listen: None, exchange: 0, uris: uris.iter().map(|uri| (*uri).to_owned()).collect() };
    if client.revision.is_none() {
        let filter = json!({"toolsListChanged": true, "resourceSubscriptions": uris});
        let id = client.id();
        let params = json!({"notifications": filter});
        watch.exchange = client.begin_as(id.clone(), "subscriptions/listen", params).await;
        let first = client.next("notifications/subscriptions/acknowledged").await;
        let honoured = &first["params"]["notifications"];
        let watched = honoured.get("resourceSubscriptions").cloned().unwrap_or_else(|| json!([]));
        assert_eq!((&honoured["toolsListChanged"], watched), (&json!(true), json!(uris)));
        watch.listen = Some(id);
        return watch;
    }
    if client.session.is_some() {
        let headers = [("accept", "text/event-stream"), ("content-type", "")];
        watch.exchange = client.exchange("GET", &headers, Vec::new());
    }
    for uri in uris {
        client.request("resources/subscribe", json!({"uri": uri})).await.result();
    }
    watch
}

/// Gives it up in the same way.
async fn unwatch(client: &mut Client, watch: &Watch) {
    match &watch.listen {
        Some(id) if watch.exchange == 0 => {
            client.notify("notifications/cancelled", json!({"requestId": id})).await;
        }
        Some(_) => client.disconnect(watch.exchange),
        None => {
            for uri in &watch.uris {
                client.request("resources/unsubscribe", json!({"uri": uri})).await.result();
            }
            if watch.exchange > 0 {
                client.disconnect(watch.exchange);
            }
        }
    }
}

pub(crate) async fn signal(name: &str, pid: &str) {
    let status = tokio::process::Command::new("kill").args(["-s", name, pid]).status().await;
    assert!(status.unwrap().success(), "kill -s {name} {pid}");
}
