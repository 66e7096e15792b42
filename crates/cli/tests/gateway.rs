//! Many servers behind one endpoint: what passes through the gateway, between peers of every revision, and what
//! becomes of upstreams that misbehave.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Arrival, Client, LATEST_LEGACY, LEGACY, MODERN, PATIENCE, Program, Reply, WIRES, Wire, modern_headers};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::TcpListener;

use crate::DATELINE;

/// A server that misbehaves as its flags say; its tools show what arrived.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripted.py");
/// A legacy upstream and a modern one.
const SIDES: [&str; 2] = ["old", "new"];

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
        let unique = format!("dateline-{}-{}.json", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(unique);
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

pub(crate) fn scripted(flags: &[&str]) -> Value {
    json!({"command": "python3", "args": [&["-S", SCRIPT], flags].concat()})
}

/// A demo of each era.
fn demos() -> [(&'static str, Value); 2] {
    [("old", demo("legacy")), ("new", demo("modern"))]
}

/// A scripted server of each era.
fn scripts() -> [(&'static str, Value); 2] {
    [("old", scripted(&["--name", "old"])), ("new", scripted(&["--name", "new", "--era", "modern"]))]
}

/// A client of a revision, of a gateway of its own over these servers.
async fn through(
    wire: Wire,
    config: &Config,
    revision: &'static str,
    capabilities: &Value,
) -> Client {
    let path = config.path();
    let mut client = match wire {
        Wire::Stdio => Client::pipe(DATELINE, &["stdio", "--config", path]),
        Wire::Http => {
            let program =
                Program::http(DATELINE, &["serve", "--config", path, "--listen", "127.0.0.1:0"]).await;
            let mut client = Client::connect(program.url.as_deref().unwrap());
            client.program = Some(program);
            client
        }
    };
    open(&mut client, revision, capabilities).await;
    client
}

async fn open(client: &mut Client, revision: &'static str, capabilities: &Value) {
    if revision == MODERN {
        client.capabilities = capabilities.clone();
    } else {
        client.handshake(revision, capabilities.clone()).await.result();
    }
}

/// One more client of the gateway that this one reaches over HTTP.
async fn another(of: &Client, revision: &'static str, capabilities: &Value) -> Client {
    let url = of.program.as_ref().and_then(|program| program.url.as_deref());
    let mut client = Client::connect(url.unwrap());
    open(&mut client, revision, capabilities).await;
    client
}

/// A client, and what to call it when it fails.
struct Peer {
    client: Client,
    label: String,
    revision: &'static str,
    wire: Wire,
}

/// Clients of every revision of one gateway over HTTP, and of both eras over a pipe.
async fn peers(servers: &[(&str, Value)], capabilities: &Value) -> Vec<Peer> {
    let config = Config::new(servers);
    let peer = |client, wire, revision| Peer { client, label: format!("{wire:?} {revision}"), revision, wire };
    let first = through(Wire::Http, &config, MODERN, capabilities).await;
    let mut all = Vec::new();
    for revision in LEGACY {
        all.push(peer(another(&first, revision, capabilities).await, Wire::Http, revision));
    }
    all.push(peer(first, Wire::Http, MODERN));
    for revision in [LATEST_LEGACY, MODERN] {
        let mut client = through(Wire::Stdio, &config, revision, capabilities).await;
        // Its answer shows that the configuration was read.
        client.request("tools/list", json!({})).await.result();
        all.push(peer(client, Wire::Stdio, revision));
    }
    all
}

/// The names in a list.
fn names<'a>(reply: &'a Reply, list: &str, by: &str) -> Vec<&'a str> {
    let entries = reply.result()[list].as_array().unwrap();
    entries.iter().map(|entry| entry[by].as_str().unwrap()).collect()
}

async fn tools(client: &mut Client) -> Vec<String> {
    let reply = client.request("tools/list", json!({})).await;
    names(&reply, "tools", "name").into_iter().map(str::to_owned).collect()
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

/// The id under which an upstream got a call that says whose it is.
fn id_of(calls: &[Value], who: &str) -> Value {
    let call = calls.iter().find(|call| call["params"]["arguments"]["who"] == who);
    call.unwrap_or_else(|| panic!("no call of {who} in {calls:?}"))["id"].clone()
}

/// Sends a request whose params are these JSON texts; gives the text of the response, which may be more than the
/// test's own JSON reader takes.
async fn raw(client: &mut Client, id: u32, method: &str, members: &str, meta: &str) -> String {
    let (mut meta, mut headers) = (vec![meta.to_owned()], Vec::new());
    if client.revision.is_none() {
        let named: Value = serde_json::from_str(&format!("{{{}}}", members.split(',').next().unwrap())).unwrap_or_default();
        let params = client.modern_params(named);
        headers = modern_headers(method, &params);
        meta.push(params["_meta"].to_string().trim_matches(['{', '}']).to_owned() + "}");
        if !meta[1].ends_with("}}") && meta[1].contains(":{") {
            meta[1] = params["_meta"].to_string()[1..].trim_end_matches('}').to_owned() + "}";
        }
    }
    let meta = meta.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(",");
    let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{members},"_meta":{{{meta}}}}}}}"#);
    let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
    client.send_text(&text, &headers).await;
    let answers = format!(r#""id":{id},"#);
    let arrival = client.wait("the response", |arrival| match arrival {
        Arrival::Message(_, _, text) | Arrival::Rubbish(_, text) => text.contains(&answers),
        _ => false,
    });
    match arrival.await {
        Arrival::Message(_, _, text) | Arrival::Rubbish(_, text) => text,
        other => panic!("no text: {other:?}"),
    }
}
