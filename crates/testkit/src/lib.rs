//! Development only: raw clients of any revision on any transport. They send exactly what a test says, and show exactly
//! what came back.
//!
//! A [`Client`] talks to a program over its standard streams or over HTTP. On every transport, all that arrives is put
//! into one queue of [`Arrival`]s, and [`Client::reply`] takes the response to an id out of it. A client does not complete
//! or correct anything; [`referee`] judges each message that arrives. Every wait has a limit. When it passes, the test
//! fails and shows what has arrived.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod arrival;
mod coverage;
mod link;
pub mod matrix;
mod program;
pub mod referee;
mod traffic;

use std::collections::VecDeque;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use program::{prepared, started};

pub use arrival::{Arrival, Exchange, Head, LATEST_LEGACY, LEGACY, LEGACY_WIRES, MODERN, Reply, WIRES, Wire};
pub use coverage::{Between, Note, Observer, covers, run, saw_http};
pub use link::{header, http, modern_headers, sse_url};
pub use program::{PATIENCE, Program};
pub use testkit_macros::test;
pub use traffic::{ScriptedTraffic, TrafficJudge, traffic_path};

enum Link {
    Stdio(Option<Box<dyn AsyncWrite + Send + Unpin>>),
    Http { url: String, exchanges: Vec<(Exchange, AbortHandle)> },
    Sse { endpoint: String, stream: AbortHandle },
}

/// A raw client of one server.
pub struct Client {
    /// The server, where this client started it.
    pub program: Option<Program>,
    link: Link,
    arrivals: mpsc::UnboundedReceiver<Arrival>,
    sender: mpsc::UnboundedSender<Arrival>,
    queue: VecDeque<Arrival>,
    observer: Observer,
    /// The id of the session. Once it is set, every request carries it.
    pub session: Option<String>,
    /// The revision of the session; `None` for a modern client.
    pub revision: Option<&'static str>,
    /// The capabilities that a modern client declares in each request.
    pub capabilities: Value,
    /// Whether the referee does not judge the messages to this client and those of its program to scripted servers. The
    /// test says why.
    pub unjudged: bool,
    judge: traffic::TrafficJudge,
    /// The exchanges that end sessions. Their bodies are no messages.
    deletions: Vec<Exchange>,
    next_id: u64,
    next_exchange: Exchange,
}

impl Client {
    /// Starts a program and connects to it. The program gets `--stdio` for standard streams, and `--listen` for HTTP.
    pub async fn start(wire: Wire, command: &str, args: &[&str]) -> Client {
        match wire {
            Wire::Stdio => Client::pipe(command, &[args, &["--stdio"]].concat()),
            Wire::Http => {
                let program = Program::http(command, &[args, &["--listen", "127.0.0.1:0"]].concat()).await;
                let mut client = Client::connect(program.url.as_deref().expect("it has a URL"));
                client.program = Some(program);
                client
            }
            Wire::Sse => {
                let program = Program::http(command, &[args, &["--listen", "127.0.0.1:0"]].concat()).await;
                let url = sse_url(program.url.as_deref().expect("it has a URL"));
                let mut client = Client::connect_sse(&url).await;
                client.program = Some(program);
                client
            }
        }
    }

    /// Connects to a URL over a transport.
    pub async fn over(wire: Wire, url: &str) -> Client {
        match wire {
            Wire::Stdio => panic!("stdio has no URL"),
            Wire::Http => Client::connect(url),
            Wire::Sse => Client::connect_sse(&sse_url(url)).await,
        }
    }

    /// Starts a program and connects to it over its standard streams.
    pub fn pipe(command: &str, args: &[&str]) -> Client {
        let mut command = prepared(command, args);
        let observer = Observer::new(Wire::Stdio, coverage::between(&command));
        let mut child = started(&mut command);
        let (sender, arrivals) = mpsc::unbounded_channel();
        let stdout = child.stdout.take().expect("stdout is piped");
        let stderr = BufReader::new(child.stderr.take().expect("stderr is piped")).lines();
        tokio::spawn(link::lines(stdout, sender.clone()));
        let stdin = child.stdin.take().expect("stdin is piped");
        let program = Some(Program::new(child, None, stderr, None));
        Client::new(Link::Stdio(Some(Box::new(stdin))), program, observer, sender, arrivals)
    }

    /// Connects to a socket, `unix:PATH` or `tcp:ADDR`. Each line is a message.
    pub async fn socket(place: &str) -> Client {
        let (sender, arrivals) = mpsc::unbounded_channel();
        let out: Box<dyn AsyncWrite + Send + Unpin> = match place.split_once(':') {
            Some(("unix", path)) => {
                let stream =
                    tokio::net::UnixStream::connect(path).await.expect("the socket takes connections");
                let (reader, writer) = stream.into_split();
                tokio::spawn(link::lines(reader, sender.clone()));
                Box::new(writer)
            }
            Some(("tcp", address)) => {
                let stream = tokio::net::TcpStream::connect(address).await.expect("it takes connections");
                let (reader, writer) = stream.into_split();
                tokio::spawn(link::lines(reader, sender.clone()));
                Box::new(writer)
            }
            _ => panic!("{place} is no socket"),
        };
        let observer = Observer::new(Wire::Stdio, Between::Nothing);
        Client::new(Link::Stdio(Some(out)), None, observer, sender, arrivals)
    }

    /// Opens an event stream of HTTP+SSE, and waits for the URL of its messages.
    pub async fn connect_sse(url: &str) -> Client {
        let (sender, arrivals) = mpsc::unbounded_channel();
        let headers = [("accept", "text/event-stream")];
        let stream = link::run(0, url, "GET", &headers, Vec::new(), sender.clone(), true);
        let link = Link::Sse { endpoint: String::new(), stream };
        let observer = Observer::new(Wire::Sse, coverage::between_at(url));
        let mut client = Client::new(link, None, observer, sender, arrivals);
        let first =
            client.wait("the endpoint", |a| matches!(a, Arrival::Rubbish(..) | Arrival::End(_))).await;
        let Arrival::Rubbish(0, path) = first else { panic!("the stream has no endpoint event") };
        let authority = url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
        let fields = client.leftovers();
        let named = |a: &Arrival| matches!(a, Arrival::Field(0, field) if field == "event: endpoint");
        assert!(fields.iter().any(named), "the stream begins with an endpoint event: {fields:?}");
        let Link::Sse { endpoint, .. } = &mut client.link else { unreachable!() };
        *endpoint = format!("{authority}{path}");
        client
    }

    /// Returns the URL to which the messages of an HTTP+SSE session are posted.
    pub fn endpoint(&self) -> &str {
        let Link::Sse { endpoint, .. } = &self.link else { panic!("only HTTP+SSE has an endpoint") };
        endpoint
    }

    /// Connects to a URL over Streamable HTTP.
    pub fn connect(url: &str) -> Client {
        let (sender, arrivals) = mpsc::unbounded_channel();
        let observer = Observer::new(Wire::Http, coverage::between_at(url));
        Client::new(
            Link::Http { url: url.to_owned(), exchanges: Vec::new() },
            None,
            observer,
            sender,
            arrivals,
        )
    }

    fn new(
        link: Link,
        program: Option<Program>,
        observer: Observer,
        sender: mpsc::UnboundedSender<Arrival>,
        arrivals: mpsc::UnboundedReceiver<Arrival>,
    ) -> Client {
        Client {
            program,
            link,
            arrivals,
            sender,
            queue: VecDeque::new(),
            observer,
            session: None,
            revision: None,
            capabilities: json!({}),
            unjudged: false,
            judge: traffic::TrafficJudge::new(spec::Direction::ToClient),
            deletions: Vec::new(),
            next_id: 1,
            next_exchange: 1,
        }
    }

    /// Opens a session with `initialize` and `notifications/initialized`. Returns the reply to `initialize`.
    pub async fn handshake(&mut self, revision: &'static str, capabilities: Value) -> Reply {
        let reply = self.initialize(revision, capabilities).await;
        let taken = self.notify("notifications/initialized", json!({})).await;
        if matches!(self.link, Link::Http { .. }) {
            // The next message has a connection of its own and might overtake this one.
            self.wait("that it is taken", |a| matches!(a, Arrival::End(of) if *of == taken)).await;
        }
        reply
    }

    /// Sends `initialize` only, so that the server does not know yet that the client is ready. Returns the reply.
    pub async fn initialize(&mut self, revision: &'static str, capabilities: Value) -> Reply {
        let params = json!({
            "protocolVersion": revision,
            "capabilities": capabilities,
            "clientInfo": {"name": "testkit", "version": "1"},
        });
        let id = self.id();
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": params}), &[]).await;
        let reply = self.reply(&id).await;
        if let Some(session) = reply.head.as_ref().and_then(|head| head.headers.get("mcp-session-id")) {
            self.session = Some(session.to_str().expect("a session id is ASCII").to_owned());
        }
        self.revision = Some(revision);
        reply
    }

    /// Returns an id that this client has not used.
    pub fn id(&mut self) -> Value {
        self.next_id += 1;
        json!(self.next_id - 1)
    }

    /// Adds the fields of `_meta` that a modern request must carry. Fields that are there stay as they are.
    pub fn modern_params(&self, mut params: Value) -> Value {
        let defaults = [
            ("io.modelcontextprotocol/protocolVersion", json!(MODERN)),
            ("io.modelcontextprotocol/clientInfo", json!({"name": "testkit", "version": "1"})),
            ("io.modelcontextprotocol/clientCapabilities", self.capabilities.clone()),
        ];
        for (key, value) in defaults {
            if params["_meta"].get(key).is_none() {
                params["_meta"][key] = value;
            }
        }
        params
    }

    /// Sends a request in the era of the client, and waits for the response.
    pub async fn request(&mut self, method: &str, params: Value) -> Reply {
        let id = self.begin(method, params).await;
        self.reply(&id).await
    }

    /// Calls a tool.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Reply {
        self.request("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// Sends a request in the era of the client. Returns its id.
    pub async fn begin(&mut self, method: &str, params: Value) -> Value {
        let id = self.id();
        self.begin_as(id.clone(), method, params).await;
        id
    }

    /// Sends a request with this id in the era of the client. Returns the exchange.
    pub async fn begin_as(&mut self, id: Value, method: &str, params: Value) -> Exchange {
        let (params, headers) = match self.revision {
            Some(_) => (params, Vec::new()),
            None => {
                let params = self.modern_params(params);
                let headers = modern_headers(method, &params);
                (params, headers)
            }
        };
        let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}), &headers).await
    }

    /// Sends a notification.
    pub async fn notify(&mut self, method: &str, params: Value) -> Exchange {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}), &[]).await
    }

    /// Sends a message.
    ///
    /// Over HTTP the defaults are a JSON body, both `Accept` types, and the headers of the session. A header that is given
    /// here replaces its default, and an empty value removes the header.
    pub async fn send(&mut self, message: &Value, headers: &[(&str, &str)]) -> Exchange {
        self.send_text(&message.to_string(), headers).await
    }

    /// Sends a text as it is: over standard streams as a line, over HTTP as a body.
    pub async fn send_text(&mut self, text: &str, headers: &[(&str, &str)]) -> Exchange {
        self.judge.note_requests(&serde_json::from_str(text).unwrap_or_default());
        if let Link::Stdio(stdin) = &mut self.link {
            let stdin = stdin.as_mut().expect("the input is open");
            stdin.write_all(format!("{text}\n").as_bytes()).await.expect("the program reads its input");
            self.observer.sent(0, text.as_bytes(), headers, self.revision);
            return 0;
        }
        if let Link::Sse { endpoint, .. } = &self.link {
            let exchange = self.next_exchange;
            self.next_exchange += 1;
            let mut all = vec![("content-type", "application/json")];
            all.extend(headers.iter().filter(|(_, value)| !value.is_empty()));
            let body = text.to_owned().into_bytes();
            // The next message is posted when this one was accepted, so that messages keep their order.
            let posted = link::http(endpoint, "POST", &all, body).await;
            let posted = posted.unwrap_or_else(|e| panic!("the endpoint takes no POST: {e}"));
            if posted.status() == 202 {
                self.observer.sent(0, text.as_bytes(), headers, self.revision);
                return 0;
            }
            link::read(exchange, posted, &self.sender, false).await;
            return exchange;
        }
        self.exchange("POST", headers, text.to_owned().into_bytes())
    }

    /// Sends an HTTP request with any method, with the defaults of [`Client::send`]. Returns the exchange.
    pub fn exchange(&mut self, verb: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Exchange {
        let mut all =
            vec![("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
        if let Some(session) = &self.session {
            all.push(("mcp-session-id", session));
        }
        if let Some(revision) = self.revision.filter(|_| self.session.is_some()) {
            all.push(("mcp-protocol-version", revision));
        }
        all.retain(|(name, _)| !headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name)));
        all.extend(headers.iter().filter(|(_, value)| !value.is_empty()));
        let exchange = self.next_exchange;
        self.next_exchange += 1;
        self.observer.sent(exchange, &body, &all, self.revision);
        let Link::Http { url, exchanges } = &mut self.link else { panic!("stdio has no exchanges") };
        let running = link::run(exchange, url, verb, &all, body, self.sender.clone(), false);
        exchanges.push((exchange, running));
        self.deletions.extend((verb == "DELETE").then_some(exchange));
        exchange
    }

    /// Cuts the connection of an exchange, as a client does that disappears.
    pub fn disconnect(&mut self, exchange: Exchange) {
        if let Link::Sse { stream, .. } = &self.link {
            return stream.abort();
        }
        let Link::Http { exchanges, .. } = &mut self.link else { panic!("stdio has no exchanges") };
        exchanges.iter().filter(|(at, _)| *at == exchange).for_each(|(_, running)| running.abort());
    }

    /// Closes the standard input of the program.
    pub fn close_input(&mut self) {
        let Link::Stdio(stdin) = &mut self.link else { panic!("HTTP has no input") };
        stdin.take();
    }

    /// Waits for the first arrival for which `test` returns true, and takes it out of the queue.
    pub async fn wait(&mut self, what: &str, test: impl Fn(&Arrival) -> bool) -> Arrival {
        let arrival = self.awaited(what, test).await;
        self.observer.received(&arrival, self.revision);
        arrival
    }

    async fn awaited(&mut self, what: &str, test: impl Fn(&Arrival) -> bool) -> Arrival {
        if let Some(at) = self.queue.iter().position(&test) {
            return self.queue.remove(at).expect("it is there");
        }
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let arrival = tokio::time::timeout_at(deadline, self.arrivals.recv()).await;
            if let Ok(Some(arrival)) = &arrival {
                self.judge(arrival);
            }
            match arrival {
                Ok(Some(arrival)) if test(&arrival) => return arrival,
                Ok(Some(arrival)) => self.queue.push_back(arrival),
                Ok(None) | Err(_) => panic!("{what} did not come; what came: {:#?}", self.queue),
            }
        }
    }

    /// Fails the test where a message is not valid in its revision.
    fn judge(&mut self, arrival: &Arrival) {
        let assumed = self.revision.and_then(spec::Revision::parse);
        let unnamed = (!matches!(self.link, Link::Stdio(_))).then_some(spec::Revision::UNNAMED);
        if let (Arrival::Message(exchange, message, _), false) = (arrival, self.unjudged)
            && !self.deletions.contains(exchange)
            && let Err(why) = self.judge.judge(message, assumed, unnamed)
        {
            panic!("{why}");
        }
    }

    /// Waits for a message for which `test` returns true.
    pub async fn message(&mut self, what: &str, test: impl Fn(&Value) -> bool) -> Value {
        let arrival = self.wait(what, |a| matches!(a, Arrival::Message(_, m, _) if test(m))).await;
        let Arrival::Message(_, message, _) = arrival else { unreachable!() };
        message
    }

    /// Waits for a notification or request of a method.
    pub async fn next(&mut self, method: &str) -> Value {
        self.message(method, |m| m["method"] == method).await
    }

    /// Waits for the response to an id.
    pub async fn reply(&mut self, id: &Value) -> Reply {
        let answers = |m: &Value| m.get("method").is_none() && m.get("id") == Some(id);
        let arrival = self
            .wait(&format!("the response to {id}"), |a| matches!(a, Arrival::Message(_, m, _) if answers(m)))
            .await;
        let Arrival::Message(exchange, message, text) = arrival else { unreachable!() };
        let (mut head, mut before, mut rest) = (None, Vec::new(), VecDeque::new());
        let one_stream = !matches!(self.link, Link::Http { .. });
        for arrival in self.queue.drain(..) {
            match arrival {
                Arrival::Head(of, found) if of == exchange => head = Some(found).filter(|_| !one_stream),
                // Responses to other ids stay in the queue.
                Arrival::Message(of, message, _) if of == exchange && message.get("method").is_some() => {
                    before.push(message);
                }
                other => rest.push_back(other),
            }
        }
        self.queue = rest;
        Reply { head, message, text, before }
    }

    /// Waits for the head of an exchange.
    pub async fn head(&mut self, exchange: Exchange) -> Head {
        let arrival = self.wait("the head", |a| matches!(a, Arrival::Head(of, _) if *of == exchange)).await;
        let Arrival::Head(_, head) = arrival else { unreachable!() };
        head
    }

    /// Waits for the end of an exchange. Returns its head and the messages of its body.
    pub async fn whole(&mut self, exchange: Exchange) -> (Head, Vec<Value>) {
        self.wait("the end", |a| matches!(a, Arrival::End(of) if *of == exchange)).await;
        let head = self.head(exchange).await;
        let mut messages = Vec::new();
        self.queue.retain(|arrival| match arrival {
            Arrival::Message(of, message, _) if *of == exchange => {
                messages.push(message.clone());
                false
            }
            _ => true,
        });
        (head, messages)
    }

    /// Waits until the program ends. Returns its exit code.
    pub async fn exit(&mut self) -> Option<i32> {
        let program = self.program.as_mut().expect("this client started a program");
        let ended = tokio::time::timeout(PATIENCE, program.child.wait()).await;
        ended.expect("the program ends").expect("its status is known").code()
    }

    /// Returns all that has arrived and that no test has taken, without waiting for more.
    pub fn leftovers(&mut self) -> Vec<Arrival> {
        while let Ok(arrival) = self.arrivals.try_recv() {
            self.judge(&arrival);
            self.queue.push_back(arrival);
        }
        self.queue.drain(..).collect()
    }
}

impl Drop for Client {
    /// Judges also the messages that no test waited for.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.leftovers();
        }
        if let Some(program) = &mut self.program {
            program.traffic.unjudged |= self.unjudged;
        }
    }
}
