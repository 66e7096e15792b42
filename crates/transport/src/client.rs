//! Connections to servers of any revision. A [`Client`] is a [`Service`], whatever its server speaks.

mod call;
mod connection;
mod http;
mod http_sse;
mod negotiation;
mod outbox;
mod pipe;
mod settings;
mod stdio;
mod tools;

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use proto::{
    Answer, BoxFuture, Description, Filter, HeaderParam, Listening, Peer, Rejection, Request, Service,
};
use spec::{Method, Revision};
use tokio::sync::mpsc;

use self::call::Outcome;
use self::connection::{Connection, StartedCall, StartedListen};
use self::http::{ConnectError, Endpoint, HttpClient};
use self::pipe::Pipe;
use crate::TransportError;

pub use http::Remote;
pub use settings::{EraHint, Settings, Stderr};
pub use stdio::{Guard, Program, watch_over};

/// How long a server may take to acknowledge a listen. Whoever starts the server waits for that.
const ACKNOWLEDGE: Duration = Duration::from_secs(10);

/// A connection to a server. Clones are handles to the same connection, which ends with the last of them.
///
/// A client finds out by itself which revision the server speaks. For its users every server is a modern one: a call
/// to a legacy server that asks something gives [`Answer::InputRequired`], and goes on when the request is made again
/// with the answers.
///
/// # Examples
///
/// ```no_run
/// use proto::{Object, Request, Service as _};
/// use spec::Method;
/// use transport::client::{Client, Program, Settings};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let program = Program {
///     name: "files".into(),
///     command: "files-server".into(),
///     ..Program::default()
/// };
/// let client = Client::start(&program, Settings::new("my-client", "1.0.0")).await?;
/// let answer = client.call(Request::own(Method::ToolsList, Object::new())).await?;
/// println!("{}: {answer:?}", client.revision());
/// client.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    connection: Arc<Connection>,
    link: Link,
}

/// How messages come to the server.
#[derive(Clone)]
enum Link {
    /// On one stream in each direction: the standard streams of a program, or HTTP+SSE.
    Pipe(Pipe),
    /// By Streamable HTTP: each request has a response of its own.
    Http(Arc<Endpoint>),
}

impl Client {
    /// Starts a program and connects to it over its standard streams.
    ///
    /// # Errors
    /// When the program cannot be started, or does not speak the protocol.
    pub async fn start(program: &Program, settings: Settings) -> Result<Client, TransportError> {
        let (connection, queued, pipe) = stdio::start(program, settings).await?;
        Ok(Client::new(connection, queued, Link::Pipe(pipe)))
    }

    /// Connects to the server at a URL, over Streamable HTTP or HTTP+SSE.
    ///
    /// # Errors
    /// When the server cannot be reached, or does not speak the protocol.
    pub async fn connect(remote: &Remote, settings: Settings) -> Result<Client, TransportError> {
        let http = Arc::new(HttpClient::new(remote)?);
        let over_sse = || http_sse::connect(Arc::clone(&http), settings.clone());
        let opened = if remote.sse {
            over_sse().await
        } else {
            match http::connect(Arc::clone(&http), settings.clone()).await {
                Ok((connection, queued, endpoint)) => {
                    return Ok(Client::new(connection, queued, Link::Http(endpoint)));
                }
                // Where neither works, the error of the newer transport says more.
                Err(ConnectError { error, takes_post: false }) => over_sse().await.map_err(|_| error),
                Err(ConnectError { error, takes_post: true }) => Err(error),
            }
        };
        let (connection, queued, pipe) = opened?;
        Ok(Client::new(connection, queued, Link::Pipe(pipe)))
    }

    fn new(
        connection: Arc<Connection>,
        queued: mpsc::UnboundedReceiver<outbox::Queued>,
        link: Link,
    ) -> Client {
        tokio::spawn(send_queued(queued, Arc::downgrade(&connection), link.clone()));
        Client { connection, link }
    }

    /// The revision that client and server speak.
    pub fn revision(&self) -> Revision {
        self.connection.revision()
    }

    /// Whether the connection has ended. All its calls have ended then.
    pub fn is_gone(&self) -> bool {
        self.connection.gone.is_cancelled()
    }

    /// Waits until the connection has ended.
    pub async fn gone(&self) {
        self.connection.gone.cancelled().await;
    }

    /// Why the connection ended, with what the server wrote last to standard error; empty while it lasts.
    pub fn why_gone(&self) -> String {
        self.connection.why_ended()
    }

    /// How many calls are open, those included that wait for an answer of their client.
    pub fn in_flight(&self) -> usize {
        self.connection.open_calls()
    }

    /// Whether all messages of the server come on one stream: those of a program, and those over HTTP+SSE.
    pub fn is_one_stream(&self) -> bool {
        matches!(self.link, Link::Pipe(_))
    }

    /// The id of the server's process, where the client started it and it has not ended.
    pub fn pid(&self) -> Option<u32> {
        match &self.link {
            Link::Pipe(pipe) => pipe.pid(),
            Link::Http(_) => None,
        }
    }

    /// Ends the connection. A program is ended in the way that the specification names, and the client waits for that.
    pub async fn close(&self) {
        self.connection.end("the connection was closed", "");
        match &self.link {
            Link::Pipe(pipe) => pipe.ended().await,
            Link::Http(endpoint) => endpoint.close().await,
        }
    }

    async fn make_call(&self, request: Request) -> Result<Answer, Rejection> {
        let StartedCall { guard, outcome, messages, request: outgoing, is_only } =
            self.connection.begin(&request)?;
        let exchange = async {
            self.link.send(&self.connection, messages).await?;
            match (&self.link, outgoing) {
                (_, None) => {}
                (Link::Pipe(pipe), Some(outgoing)) => {
                    // While other calls run, further ones come soon.
                    pipe.send(&self.connection, outgoing.message, is_only).await?;
                }
                (Link::Http(endpoint), Some(outgoing)) => {
                    return http::call(&self.connection, endpoint, guard.key(), &request, outgoing, outcome)
                        .await;
                }
            }
            outcome.await.map_err(|_| self.connection.ended())
        };
        let limit = self.connection.settings.call;
        let outcome = match tokio::time::timeout(limit, exchange).await {
            Ok(outcome) => outcome?,
            Err(_) => {
                let why = format!("the server did not answer within {} s", limit.as_secs());
                return Err(Rejection::Internal(why));
            }
        };
        if let (Outcome::Ended(Ok(Answer::Complete(result))), Method::ToolsList, Link::Http(_)) =
            (&outcome, request.method, &self.link)
        {
            self.connection.note_tools(result);
        }
        guard.settle(outcome)
    }

    async fn start_listen(&self, filter: Filter) -> Result<Listening, Rejection> {
        let StartedListen { guard, acknowledged, changes, requests } =
            self.connection.begin_listen(&filter)?;
        let limit = self.connection.settings.connect.min(ACKNOWLEDGE);
        let beginning = async {
            match &self.link {
                Link::Pipe(pipe) => {
                    for (_, outgoing) in requests {
                        pipe.send(&self.connection, outgoing.message, true).await?;
                    }
                }
                Link::Http(endpoint) => {
                    http::listen(&self.connection, endpoint, guard.key(), requests).await?;
                }
            }
            acknowledged.await.unwrap_or_else(|_| {
                Err(Rejection::Internal("the server ended a listen without acknowledging it".into()))
            })
        };
        let honoured = tokio::time::timeout(limit, beginning).await.unwrap_or_else(|_| {
            let why = format!("the server did not acknowledge a listen within {} s", limit.as_secs());
            Err(Rejection::Internal(why))
        })?;
        // The stream owns the guard: whoever drops the stream ends the listen.
        let changes = changes.map(move |change| {
            let _ = &guard;
            change
        });
        Ok(Listening { honoured, changes: Box::pin(changes) })
    }
}

impl Link {
    /// Sends messages that have no answer, or whose answer nobody waits for.
    async fn send(&self, connection: &Connection, messages: Vec<Bytes>) -> Result<(), Rejection> {
        for message in messages {
            match self {
                Link::Pipe(pipe) => pipe.send(connection, message, true).await?,
                Link::Http(endpoint) => http::send(connection, endpoint, message).await?,
            }
        }
        Ok(())
    }
}

/// Sends the messages of the outbox, one after the other, while the connection lasts.
async fn send_queued(
    mut queued: mpsc::UnboundedReceiver<outbox::Queued>,
    connection: Weak<Connection>,
    link: Link,
) {
    let Some(gone) = connection.upgrade().map(|connection| connection.gone.clone()) else { return };
    let sending = async {
        while let Some((message, permit)) = queued.recv().await {
            let Some(connection) = connection.upgrade() else { return };
            // Where a message cannot be sent, the task that reads from the server finds that out as well.
            let _ = link.send(&connection, vec![message]).await;
            drop(permit);
        }
    };
    tokio::select! {
        () = sending => {}
        () = gone.cancelled() => {}
    }
}

impl Service for Client {
    fn describe(&self) -> Arc<Description> {
        Arc::clone(&self.connection.description)
    }

    fn call(&self, request: Request) -> BoxFuture<'_, Result<Answer, Rejection>> {
        Box::pin(self.make_call(request))
    }

    fn listen(&self, filter: Filter, _: Arc<Peer>) -> BoxFuture<'_, Result<Listening, Rejection>> {
        Box::pin(self.start_listen(filter))
    }

    fn abandon(&self, request: Request) {
        if let Some(state) = request.answers.as_ref().and_then(|answers| answers.state.as_ref()) {
            self.connection.abandon(state);
        }
    }

    fn header_params(&self, tool: &str) -> Arc<[HeaderParam]> {
        self.connection.tool(tool).map_or_else(|| Arc::from([]), |tool| tool.header_params)
    }
}
