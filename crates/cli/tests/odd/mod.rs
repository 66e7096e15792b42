//! Servers as they are: each is wrong in one way, all are behind one gateway, and each is answered as it should be.
//!
//! `peer.py` plays them by name; what they do is in `wire.py` (how messages are written and carried) and `offers.py`
//! (what lists and results hold).

mod offers;
mod wire;

use serde_json::{Value, json};
use testkit::{Client, Program};

use crate::DATELINE;
use crate::gateway::{Config, python};

const PEER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/odd/peer.py");

/// The eras of odd servers.
const ERAS: [&str; 2] = ["legacy", "modern"];

/// The configuration of an odd server over standard streams.
fn stdio(name: &str, era: &str) -> Value {
    let env = json!({"DATELINE_TRAFFIC": testkit::traffic_path()});
    json!({"command": python(), "args": ["-S", PEER, name, "--era", era], "env": env})
}

/// All odd servers over HTTP, in one process.
struct Odd(Program);

impl Odd {
    async fn start() -> Odd {
        Odd(Program::http(python(), &["-S", PEER, "--http"]).await)
    }

    /// Where the server of a name and era is; with `/sse` behind it that of HTTP+SSE.
    fn url(&self, name: &str, era: &str) -> String {
        format!("{}/{name}/{era}", self.0.url.as_deref().unwrap())
    }

    /// The configuration of one over Streamable HTTP.
    fn http(&self, name: &str, era: &str) -> Value {
        json!({"url": self.url(name, era)})
    }

    /// The configuration of a legacy one over HTTP+SSE.
    fn sse(&self, name: &str) -> Value {
        json!({"url": self.url(name, "legacy") + "/sse", "type": "sse"})
    }

    /// The messages of a method that one has read so far.
    async fn seen(&self, name: &str, era: &str, method: &str) -> Vec<Value> {
        let mut client = Client::connect(&(self.url(name, era) + "/seen"));
        // It is no server of the protocol that answers there.
        client.unjudged = true;
        let asked = client.exchange("GET", &[], Vec::new());
        let (_, bodies) = client.whole(asked).await;
        let seen: Vec<Value> = bodies.into_iter().flat_map(|body| body.as_array().unwrap().clone()).collect();
        seen.into_iter().filter(|message| message["method"] == method).collect()
    }

    /// Has one do something.
    async fn have(&self, name: &str, era: &str, thing: &str) {
        let url = format!("{}/do/{thing}", self.url(name, era));
        let done = testkit::http(&url, "POST", &[], Vec::new()).await.unwrap();
        assert!(done.status().is_success(), "{url}");
    }
}

/// A gateway over all of these, whose tools have the server's name before their own, and a modern client of it.
/// `own` is what is configured of each beside where it is, by name.
async fn behind_one(servers: &[(String, Value)], own: Value) -> Client {
    let named: serde_json::Map<String, Value> = servers.iter().cloned().collect();
    let config = json!({"mcpServers": named, "dateline": {"prefix": "always", "servers": own}});
    let config = Config::text(&config.to_string());
    let args = ["serve", "--config", config.path(), "--listen", "127.0.0.1:0"];
    let program = Program::http(DATELINE, &args).await;
    let mut client = Client::connect(program.url.as_deref().unwrap());
    client.program = Some(program);
    client.request("server/discover", json!({})).await.result();
    crate::gateway::settle(&mut client).await;
    client
}

/// One more client of the same gateway, of a handshake revision.
async fn legacy_beside(client: &Client) -> Client {
    let url = client.program.as_ref().and_then(|program| program.url.clone()).unwrap();
    let mut legacy = Client::connect(&url);
    legacy.handshake(testkit::LATEST_LEGACY, json!({})).await.result();
    legacy
}
