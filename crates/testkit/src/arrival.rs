//! What comes from a server, and over which transport.

use http::HeaderMap;
use serde_json::Value;

/// The newest handshake revision.
pub const LATEST_LEGACY: &str = "2025-11-25";
/// The newest revision without a handshake.
pub const MODERN: &str = "2026-07-28";
/// Every handshake revision.
pub const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// A transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wire {
    /// Standard streams of a child process.
    Stdio,
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE, of handshake revisions only.
    Sse,
}

/// The transports of a modern client, for obligations that hold on any.
pub const WIRES: [Wire; 2] = [Wire::Stdio, Wire::Http];
/// The transports of a legacy client.
pub const LEGACY_WIRES: [Wire; 3] = [Wire::Stdio, Wire::Http, Wire::Sse];

/// Names an exchange: a POST or GET over HTTP. Over stdio everything is exchange 0, and over HTTP+SSE all that comes
/// on the event stream.
pub type Exchange = u64;

/// Something that came from the server.
#[derive(Clone, Debug)]
pub enum Arrival {
    /// The head of an HTTP response.
    Head(Exchange, Head),
    /// A message, and its text as it was on the wire.
    Message(Exchange, Value, String),
    /// A line or body that is no JSON.
    Rubbish(Exchange, String),
    /// An SSE comment.
    Comment(Exchange),
    /// A field of an SSE event other than its data, such as `id: 7`. It comes before the event's message.
    Field(Exchange, String),
    /// The response is complete, or the output ended.
    End(Exchange),
}

/// The response to a request, with what belongs to it.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The HTTP status and headers.
    pub head: Option<Head>,
    /// The response message.
    pub message: Value,
    /// Its text.
    pub text: String,
    /// What came before it: on its own stream over HTTP, on the pipe over stdio.
    pub before: Vec<Value>,
}

impl Reply {
    /// The result; a test that gets an error instead fails.
    pub fn result(&self) -> &Value {
        assert!(self.message.get("result").is_some(), "expected a result: {}", self.message);
        &self.message["result"]
    }

    /// The error; a test that gets a result instead fails.
    pub fn error(&self) -> &Value {
        assert!(self.message.get("error").is_some(), "expected an error: {}", self.message);
        &self.message["error"]
    }

    /// The error's code.
    pub fn code(&self) -> i64 {
        self.error()["code"].as_i64().expect("a code is an integer")
    }

    /// The HTTP status; `None` over stdio.
    pub fn status(&self) -> Option<u16> {
        self.head.as_ref().map(|head| head.status)
    }

    /// The text of the first block of a tool's result.
    pub fn said(&self) -> &str {
        self.result()["content"][0]["text"].as_str().unwrap_or_default()
    }

    /// The notifications of a method that came before it.
    pub fn notifications(&self, method: &str) -> Vec<&Value> {
        self.before.iter().filter(|m| m["method"] == method && m.get("id").is_none()).collect()
    }
}

/// The head of a response.
#[derive(Clone, Debug)]
pub struct Head {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
}
