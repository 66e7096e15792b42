//! The program as its users meet it: every obligation by its id, on every transport that it applies to, at the bytes
//! on the wire.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod daily;
mod era;
mod features;
mod gateway;
mod http;
mod keys;
mod life;
mod meta;
mod msg;
mod odd;
mod owner;
mod program;
mod revisions;
mod secrets;
mod sockets;
mod stdio;

use serde_json::{Value, json};
use testkit::{Client, Reply, Wire};

/// The program.
const DATELINE: &str = env!("CARGO_BIN_EXE_dateline");

/// A modern client of a fresh demo.
async fn modern(wire: Wire) -> Client {
    Client::start(wire, DATELINE, &["demo"]).await
}

/// A legacy client of a fresh demo, with an open session and these capabilities.
async fn legacy(wire: Wire, revision: &'static str, capabilities: Value) -> (Client, Reply) {
    let mut client = Client::start(wire, DATELINE, &["demo"]).await;
    let reply = client.handshake(revision, capabilities).await;
    (client, reply)
}

/// A call of the demo's countdown that takes a minute.
fn long_countdown() -> Value {
    json!({"name": "countdown", "arguments": {"from": 600, "intervalMs": 100}, "_meta": {"progressToken": "t"}})
}
