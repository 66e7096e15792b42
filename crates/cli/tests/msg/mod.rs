//! Messages of every kind: ids, error codes, notifications, cancellation, progress, logs, lists, pings.

mod absent;
mod cancellation;
mod codes;
mod forms;
mod ids;
mod lists;
mod metas;
mod pings;
mod progress;
mod wrong;

use serde_json::{Value, json};
use testkit::{Client, Exchange, LATEST_LEGACY, LEGACY, LEGACY_WIRES, MODERN, PATIENCE, WIRES, Wire};

use crate::modern;

/// Every revision on every transport.
pub(crate) fn everywhere() -> Vec<(Wire, &'static str)> {
    let modern = WIRES.into_iter().map(|wire| (wire, MODERN));
    sessions().into_iter().chain(modern).collect()
}

/// Every revision with a handshake on every transport.
pub(crate) fn sessions() -> Vec<(Wire, &'static str)> {
    LEGACY_WIRES.into_iter().flat_map(|wire| LEGACY.map(move |revision| (wire, revision))).collect()
}

/// A client of a fresh demo, of any revision.
pub(crate) async fn client(wire: Wire, revision: &'static str, capabilities: Value) -> Client {
    let client = modern(wire).await;
    speaking(client, revision, capabilities).await
}

/// The same client, speaking this revision from now on.
pub(crate) async fn speaking(mut client: Client, revision: &'static str, capabilities: Value) -> Client {
    match revision {
        MODERN => client.capabilities = capabilities,
        _ => drop(client.handshake(revision, capabilities).await),
    }
    client
}

/// Another client of the same HTTP server.
pub(crate) fn neighbour(client: &Client) -> Client {
    let program = client.program.as_ref().expect("it started the server");
    Client::connect(program.url.as_deref().expect("it has a URL"))
}

/// Sends a request whose id is written in just this way.
async fn send_as(client: &mut Client, id: &str, method: &str, params: Value) -> Exchange {
    let params = if client.revision.is_none() { client.modern_params(params) } else { params };
    let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
    let headers =
        if client.revision.is_none() { testkit::modern_headers(method, &params) } else { Vec::new() };
    let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
    client.send_text(&text, &headers).await
}

/// The error to a message without an id to answer with, and its HTTP status.
async fn refusal(client: &mut Client, wire: Wire, exchange: Exchange) -> (Option<u16>, Value) {
    match wire {
        Wire::Stdio | Wire::Sse => {
            let unnamed = |m: &Value| m.get("error").is_some() && m["id"].is_null();
            (None, client.message("an error without an id", unnamed).await)
        }
        Wire::Http => {
            let (head, mut messages) = client.whole(exchange).await;
            assert_eq!(messages.len(), 1, "one error is the body: {messages:?}");
            (Some(head.status), messages.remove(0))
        }
    }
}

/// Asserts that a call works, and that on a pipe nothing arrived that was not asked for.
async fn is_alive(client: &mut Client, what: &str) {
    let reply = client.call("echo", json!({"message": "alive"})).await;
    assert_eq!(reply.said(), "alive", "after {what}");
    assert!(reply.before.is_empty(), "after {what}: {:?}", reply.before);
}

fn cancel(id: &Value) -> Value {
    json!({"requestId": id, "reason": "the user went away"})
}

/// Waits for the response to an id, and takes nothing else out of the queue.
pub(crate) async fn response(client: &mut Client, id: &Value) -> Value {
    let answers = |m: &Value| m.get("method").is_none() && m.get("id") == Some(id);
    client.message(&format!("the response to {id}"), answers).await
}

/// Waits until the demo has noted that a call was cancelled, and no other one than these; none of them is answered.
async fn cancelled(client: &mut Client, ids: &[Value]) {
    let due: Vec<String> = ids.iter().map(Value::to_string).collect();
    let noted = async {
        loop {
            let reply = client.call("cancelled_calls", json!({})).await;
            let answered = reply.before.iter().find(|m| ids.contains(&m["id"]));
            assert!(answered.is_none(), "no response follows: {answered:?}");
            if reply.said() == due.join(" ") {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, noted).await.expect("the cancelled call stops, and it alone");
}

pub(crate) fn quick(from: u32) -> Value {
    json!({"name": "countdown", "arguments": {"from": from, "intervalMs": 1}})
}

/// Whether a peer of a revision may get a code, as the obligation has it.
fn is_of(revision: &str, code: i64) -> bool {
    let is = match code {
        -32700 | -32603..=-32600 => true,
        -32002 => revision != MODERN,
        -32042 => revision == LATEST_LEGACY,
        -32022..=-32020 => revision == MODERN,
        // Application-defined codes are the only others.
        code => !(-32768..=-32000).contains(&code),
    };
    let known = spec::Revision::parse(revision).expect("a revision");
    assert!(!is || spec::Code::may_send(code, known), "the registry says otherwise of {code} in {revision}");
    is
}
