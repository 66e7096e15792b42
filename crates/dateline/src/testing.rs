//! A client in memory, for tests of servers.
//!
//! ```
//! use dateline::testing::Client;
//! use dateline::{Args, Revision, Server, Tool};
//! use serde_json::json;
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Who {
//!     name: String,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let greet = |Args(who): Args<Who>| async move { format!("Hello, {}!", who.name) };
//! let server = Server::new("greeter", "1.0.0").tool(Tool::new("greet", "Greets someone.", greet)).build()?;
//! for revision in Revision::ALL {
//!     let mut client = Client::new(revision).connect(server.clone()).await?;
//!     let result = client.call_tool("greet", json!({"name": "you"})).await?;
//!     assert_eq!(result["content"][0]["text"], "Hello, you!");
//! }
//! # Ok(())
//! # }
//! ```

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;

use proto::Service;
use proto::downstream::Served;
use proto::wire::Limits;
use serde::Serialize;
use serde_json::{Map, Value, json};
use spec::{Era, Method, Notice, Question, Revision, Revisions, meta};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use transport::CancellationToken;

/// The bytes that either side may send before the other one reads.
const BUFFER: usize = 64 * 1024;
/// How often a server may ask before it answers one request. More is taken for a server that never stops.
const ROUNDS: usize = 100;
/// How many notifications are kept until a test takes them. Older ones are dropped first.
const NOTIFICATIONS: usize = 10_000;

/// What answers a question: it takes the question's params and gives the result.
type Answer = Box<dyn Fn(&Value) -> Value + Send>;

/// Why a request has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server answered with a JSON-RPC error.
    #[error("the server answered with error {code}: {message}")]
    Refused {
        /// The error's code.
        code: i64,
        /// The error's message.
        message: String,
        /// The error's data; null where it has none.
        data: Value,
    },
    /// The server sent what a client does not expect.
    #[error("{0}")]
    Protocol(String),
    /// The connection ended.
    #[error("the connection ended: {0}")]
    Io(#[from] io::Error),
}

/// A client that is not connected yet: its revision, and what it can be asked.
pub struct Client {
    revision: Revision,
    answers: HashMap<&'static str, Answer>,
    capabilities: Map<String, Value>,
}

impl Client {
    /// Makes a client of a revision that can be asked nothing.
    pub fn new(revision: Revision) -> Client {
        Client { revision, answers: HashMap::new(), capabilities: Map::new() }
    }

    /// Sets what answers a kind of question, and declares the capability for it. The function takes the question's
    /// params and gives the result, such as `{"action": "accept", "content": {…}}`.
    #[must_use]
    pub fn answer(mut self, question: Question, answer: impl Fn(&Value) -> Value + Send + 'static) -> Client {
        let declared = match question {
            Question::Elicit => json!({"form": {}, "url": {}}),
            _ => json!({}),
        };
        self.capabilities.insert(question.needs().to_owned(), declared);
        self.answers.insert(question.wire(), Box::new(answer));
        self
    }

    /// Sets a member of the capabilities that the client declares.
    #[must_use]
    pub fn capability(mut self, name: &str, value: Value) -> Client {
        self.capabilities.insert(name.to_owned(), value);
        self
    }

    /// Connects to a server in this process. A client of a revision with a handshake makes it here.
    ///
    /// Must be called within a tokio runtime. The server runs until the connection is dropped.
    ///
    /// # Errors
    /// When the handshake fails.
    pub async fn connect(self, service: impl Service) -> Result<Connection, ClientError> {
        let (near, far) = tokio::io::duplex(BUFFER);
        let (reader, writer) = tokio::io::split(far);
        let served = Served {
            service: Arc::new(service),
            revisions: Revisions::only(self.revision),
            limits: Limits::default(),
        };
        let shutdown = CancellationToken::new();
        tokio::spawn(transport::serve_pipe(reader, writer, Arc::new(served), shutdown.clone()));
        let (reader, writer) = tokio::io::split(near);
        let mut connection = Connection {
            client: self,
            writer,
            lines: BufReader::new(reader).lines(),
            last: 0,
            notifications: VecDeque::new(),
            server: Value::Null,
            _shutdown: shutdown.drop_guard(),
        };
        connection.open().await?;
        Ok(connection)
    }
}

/// A connection between a test and a server in the same process. Dropped, it ends.
pub struct Connection {
    client: Client,
    writer: WriteHalf<DuplexStream>,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    /// The id of the last request.
    last: u64,
    notifications: VecDeque<Value>,
    server: Value,
    _shutdown: tokio_util::sync::DropGuard,
}

impl Connection {
    /// What the server says of itself: the result of `initialize`, or of `server/discover`.
    pub fn server(&self) -> &Value {
        &self.server
    }

    /// Calls a tool. Gives the result, which may have `isError`.
    ///
    /// # Errors
    /// When the server answers with a JSON-RPC error, or the connection ends.
    pub async fn call_tool(&mut self, name: &str, arguments: impl Serialize) -> Result<Value, ClientError> {
        self.request(Method::ToolsCall, json!({"name": name, "arguments": arguments})).await
    }

    /// Gets a prompt.
    ///
    /// # Errors
    /// As [`Connection::call_tool`].
    pub async fn get_prompt(&mut self, name: &str, arguments: impl Serialize) -> Result<Value, ClientError> {
        self.request(Method::PromptsGet, json!({"name": name, "arguments": arguments})).await
    }

    /// Reads a resource.
    ///
    /// # Errors
    /// As [`Connection::call_tool`].
    pub async fn read_resource(&mut self, uri: &str) -> Result<Value, ClientError> {
        self.request(Method::ResourcesRead, json!({"uri": uri})).await
    }

    /// Makes a request of any method, with params that are an object. Answers what the server asks meanwhile, in the
    /// way of the client's revision, and gives the result. The request asks for progress.
    ///
    /// # Errors
    /// As [`Connection::call_tool`].
    pub async fn request(&mut self, method: Method, params: Value) -> Result<Value, ClientError> {
        let mut sent = params.clone();
        for _ in 0..ROUNDS {
            let mut result = self.round(method.clone(), sent).await?;
            let Some(Value::Object(asked)) = result.get_mut("inputRequests").map(Value::take) else {
                return Ok(result);
            };
            let mut answers = Map::new();
            for (key, request) in asked {
                answers.insert(key, self.answer_of(&request)?);
            }
            sent = params.clone();
            sent["inputResponses"] = Value::Object(answers);
            if let Some(state) = result.get("requestState") {
                sent["requestState"] = state.clone();
            }
        }
        Err(ClientError::Protocol(format!("the server asked {ROUNDS} times and did not answer")))
    }

    /// Takes the notifications that came with the requests so far: progress, log messages and changes.
    pub fn notifications(&mut self) -> Vec<Value> {
        self.notifications.drain(..).collect()
    }

    async fn open(&mut self) -> Result<(), ClientError> {
        if self.client.revision.era() == Era::Modern {
            self.server = self.request(Method::Discover, json!({})).await?;
            return Ok(());
        }
        let params = json!({
            "protocolVersion": self.client.revision.as_str(),
            "capabilities": self.client.capabilities,
            "clientInfo": information(),
        });
        self.server = self.request(Method::Initialize, params).await?;
        self.send(&json!({"jsonrpc": "2.0", "method": Notice::Initialized.wire()})).await
    }

    /// Sends a request once, and waits for its response.
    async fn round(&mut self, method: Method, mut params: Value) -> Result<Value, ClientError> {
        self.last += 1;
        let id = self.last;
        params[meta::META][meta::PROGRESS_TOKEN] = id.into();
        if self.client.revision.era() == Era::Modern {
            let meta = &mut params[meta::META];
            meta[meta::PROTOCOL_VERSION] = self.client.revision.as_str().into();
            meta[meta::CLIENT_INFO] = information();
            meta[meta::CLIENT_CAPABILITIES] = Value::Object(self.client.capabilities.clone());
        }
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method.wire(), "params": params})).await?;
        loop {
            let mut message = self.receive().await?;
            if message.get("method").is_none() {
                if message["id"] != id {
                    return Err(ClientError::Protocol(format!("a response to no request: {message}")));
                }
                let error = message["error"].take();
                return match error {
                    Value::Null => Ok(message["result"].take()),
                    error => Err(ClientError::Refused {
                        code: error["code"].as_i64().unwrap_or_default(),
                        message: error["message"].as_str().unwrap_or_default().to_owned(),
                        data: error["data"].clone(),
                    }),
                };
            }
            match message.get("id") {
                Some(asked) => {
                    let result = self.answer_of(&message)?;
                    self.send(&json!({"jsonrpc": "2.0", "id": asked, "result": result})).await?;
                }
                None => {
                    if self.notifications.len() == NOTIFICATIONS {
                        self.notifications.pop_front();
                    }
                    self.notifications.push_back(message);
                }
            }
        }
    }

    /// The answer to a question.
    fn answer_of(&self, request: &Value) -> Result<Value, ClientError> {
        let method = request["method"].as_str().unwrap_or_default();
        let unexpected = || ClientError::Protocol(format!("the client has no answer to {method:?}"));
        let answer = self.client.answers.get(method).ok_or_else(unexpected)?;
        Ok(answer(&request["params"]))
    }

    async fn send(&mut self, message: &Value) -> Result<(), ClientError> {
        self.writer.write_all(format!("{message}\n").as_bytes()).await?;
        Ok(self.writer.flush().await?)
    }

    async fn receive(&mut self) -> Result<Value, ClientError> {
        let line = self.lines.next_line().await?;
        let line = line.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        serde_json::from_str(&line).map_err(|e| ClientError::Protocol(format!("{line:?} is no JSON: {e}")))
    }
}

/// What the client says of itself.
fn information() -> Value {
    json!({"name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION")})
}
