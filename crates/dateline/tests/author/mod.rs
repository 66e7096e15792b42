//! What an author's server is to clients of every revision on every transport.

mod asking;
mod calls;
mod forms;
mod head;
mod listens;
mod memory;
mod mirrored;
mod pages;
mod schemas;
mod state;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use dateline::{CancellationToken, Http, HttpOptions, Limits, Revisions, Server};
use serde_json::{Value, json};
use testkit::{Client, LEGACY, LEGACY_WIRES, MODERN, WIRES, Wire};

/// Every revision on every transport.
fn everywhere() -> Vec<(Wire, &'static str)> {
    let modern = WIRES.into_iter().map(|wire| (wire, MODERN));
    LEGACY_WIRES
        .into_iter()
        .flat_map(|wire| LEGACY.map(move |revision| (wire, revision)))
        .chain(modern)
        .collect()
}

/// Every place where users can be asked to fill in forms.
fn with_forms() -> Vec<(Wire, &'static str)> {
    everywhere()
        .into_iter()
        .filter(|(_, revision)| !["2024-11-05", "2025-03-26"].contains(revision))
        .collect()
}

/// One server on every transport: over HTTP, and on a socket where each connection is a pipe.
struct House {
    url: String,
    socket: PathBuf,
    shutdown: CancellationToken,
}

impl House {
    async fn of(server: &Server) -> House {
        House::with(server, HttpOptions::default(), Limits::default()).await
    }

    async fn with(server: &Server, options: HttpOptions, limits: Limits) -> House {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let socket = std::env::temp_dir().join(format!("dateline-author-{}-{count}", std::process::id()));
        let shutdown = CancellationToken::new();
        let listener = tokio::net::UnixListener::bind(&socket).unwrap();
        tokio::spawn(dateline::unix(listener, server.clone(), Revisions::ALL, limits, shutdown.clone()));
        let http = Http::new(server.clone()).options(options).limits(limits).until(shutdown.clone());
        let bound = http.bind("127.0.0.1:0").await.unwrap();
        let url = bound.url();
        tokio::spawn(bound.serve());
        House { url, socket, shutdown }
    }

    /// A client of a revision, with these capabilities, on a connection of its own.
    async fn client(&self, wire: Wire, revision: &'static str, capabilities: Value) -> Client {
        let mut client = match wire {
            Wire::Stdio => Client::socket(&format!("unix:{}", self.socket.display())).await,
            wire => Client::over(wire, &self.url).await,
        };
        match revision {
            MODERN => client.capabilities = capabilities,
            _ => drop(client.handshake(revision, capabilities).await),
        }
        client
    }
}

impl Drop for House {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.socket);
    }
}

/// All that a client can declare.
fn everything() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}, "context": {}}, "roots": {}})
}

fn call(tool: &str, arguments: Value) -> Value {
    json!({"name": tool, "arguments": arguments})
}

/// The params of a retry.
fn retry(params: &Value, interim: &Value, answers: Value) -> Value {
    let mut params = params.clone();
    params["inputResponses"] = answers;
    params["requestState"] = interim["requestState"].clone();
    params
}

/// The keys of what is asked.
fn asked(result: &Value) -> Vec<&str> {
    assert_eq!(result["resultType"], "input_required", "{result}");
    result["inputRequests"].as_object().unwrap().keys().map(String::as_str).collect()
}

/// What the user did.
fn accept(content: Value) -> Value {
    json!({"action": "accept", "content": content})
}

/// Makes a request and answers whatever is asked meanwhile, one question after another, in the way of the client's
/// era; gives the questions and the response.
async fn converse(
    client: &mut Client,
    method: &str,
    params: Value,
    answer: impl Fn(&str, &Value) -> Value,
) -> (Vec<Value>, Value) {
    let mut questions = Vec::new();
    if client.revision.is_none() {
        let mut sent = params.clone();
        loop {
            let reply = client.request(method, sent).await;
            if reply.message["result"]["resultType"] != "input_required" {
                return (questions, reply.message);
            }
            let mut answers = json!({});
            for (key, ask) in reply.result()["inputRequests"].as_object().unwrap() {
                answers[key] = answer(ask["method"].as_str().unwrap(), &ask["params"]);
                questions.push(ask.clone());
            }
            sent = retry(&params, reply.result(), answers);
        }
    }
    let id = client.begin(method, params).await;
    loop {
        let comes =
            |m: &Value| m.get("method").is_some() == m.get("id").is_some_and(|of| *of != id) || m["id"] == id;
        let message =
            client.message("a question or the response", |m| m.get("id").is_some() && comes(m)).await;
        let Some(asks) = message["method"].as_str() else { return (questions, message) };
        let result = answer(asks, &message["params"]);
        client.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}), &[]).await;
        questions.push(message);
    }
}

/// The text of a tool's response.
fn text(response: &Value) -> &str {
    response["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{response}"))
}
