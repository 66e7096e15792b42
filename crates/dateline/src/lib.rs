//! Write a Model Context Protocol server once; every client of every revision is served, on stdio, Streamable HTTP and
//! HTTP+SSE.
//!
//! # A server in five minutes
//!
//! ```sh
//! cargo new greeter && cd greeter
//! cargo add dateline schemars serde --features serde/derive
//! cargo add tokio --features macros,rt-multi-thread
//! ```
//!
//! In `src/main.rs`, one function and what to call it:
//!
//! ```no_run
//! use dateline::{Args, Server, Tool};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Who {
//!     /// Whom to greet.
//!     name: String,
//! }
//!
//! async fn greet(Args(who): Args<Who>) -> String {
//!     format!("Hello, {}!", who.name)
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let server = Server::new("greeter", "1.0.0").tool(Tool::new("greet", "Greets someone.", greet)).build()?;
//!     dateline::stdio(server).await?;
//!     Ok(())
//! }
//! ```
//!
//! Any client that launches commands can use it now: `{"command": "greeter"}`. The program `dateline` shows that it
//! works: `dateline call greet name=you -- cargo run -q` prints `Hello, you!`. To serve HTTP, turn on the feature
//! `http` and replace the last lines with
//!
//! ```no_run
//! # use dateline::{Http, Server};
//! # async fn serve(server: Server) -> Result<(), Box<dyn std::error::Error>> {
//! let bound = Http::new(server).bind("127.0.0.1:4401").await?;
//! eprintln!("serving {}", bound.url());
//! bound.serve().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! None is on by default: a server on standard streams needs none.
//!
//! | feature | adds |
//! |---|---|
//! | `http` | [`Http`]: Streamable HTTP, and HTTP+SSE |
//! | `files` | `Directory`: a folder of files as resources |
//! | `skills` | [`Skills`]: agent skills |
//! | `validate-output` | results are checked against the output schemas of their types, in release builds too |
//!
//! A result of the type that made its schema fits by itself, unless the type has a `Serialize` or a schema that is
//! written by hand, or attributes such as `#[schemars(range(max = 3))]` that nothing enforces. Debug builds check it,
//! as `debug_assert!` does, so that tests find what is wrong. Output schemas that are written by hand are always
//! checked.
//!
//! # Handlers
//!
//! A handler is an async function or closure. What it takes says what it needs: [`Args`] for its arguments, checked and
//! as a type, [`Variables`] for the variables of a resource's URI, [`Context`] for progress, logs and questions. What
//! it returns becomes the answer (see [`IntoResponse`]), and `?` turns any error into one that the client gets. What
//! handlers share is in [`State`], or is captured by their closures. Over HTTP, [`Headers`] are the headers of the
//! request, and [`RequestExtension`] is what a layer of the HTTP server or [`Authenticate`] put into it.
//!
//! ```
//! use dateline::{Args, Context, Json, Prompt, Resource, ResourceTemplate, Result, Root, Server, Tool, Variables};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Order {
//!     what: String,
//!     #[schemars(range(min = 1, max = 9))]
//!     count: u8,
//! }
//!
//! #[derive(serde::Serialize, schemars::JsonSchema)]
//! struct Price {
//!     cents: u32,
//! }
//!
//! // The type of the result becomes the tool's output schema.
//! async fn price(Args(order): Args<Order>, cx: Context) -> Result<Json<Price>> {
//!     cx.progress(1.0, Some(2.0), Some("asking the shop")).await;
//!     let each: u32 = if order.what == "tea" { 250 } else { "300".parse()? };
//!     Ok(Json(Price { cents: each * u32::from(order.count) }))
//! }
//!
//! # fn main() -> std::result::Result<(), dateline::BuildError> {
//! let server = Server::new("shop", "1.0.0")
//!     .tool(Tool::new("price", "Says what an order costs.", price))
//!     // The fields of the arguments' type are the prompt's arguments.
//!     .prompt(Prompt::new("advise", "Asks what to order.", |Args(order): Args<Order>| async move {
//!         format!("Is {} the right number of {}?", order.count, order.what)
//!     }))
//!     .resource(Resource::new("shop://hours", "Opening hours", || async { "9 to 5" }))
//!     .template(ResourceTemplate::new("shop://goods/{name}", "Goods", |vars: Variables| async move {
//!         (vars.get("name") == "tea").then(|| "Green tea, 100 g".to_owned())
//!     }))
//!     .build()?;
//! # let _ = server;
//! # Ok(())
//! # }
//! ```
//!
//! # Questions
//!
//! [`Context::elicit`] asks the user, [`Context::sample`] asks the client's model, and [`Context::list_roots`] asks for
//! the client's directories. The same line of code sends a request on the call's stream to a client of 2025-06-18, and
//! an *input required* result to a client of 2026-07-28, which may send its answer to another process.
//!
//! ```
//! use dateline::{Args, Context, ElicitResult, ElicitForm, Result};
//!
//! # #[derive(serde::Deserialize, schemars::JsonSchema)]
//! # struct File { name: String }
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Confirmation {
//!     /// Really?
//!     sure: bool,
//! }
//!
//! async fn delete(Args(file): Args<File>, cx: Context) -> Result<String> {
//!     let form = ElicitForm::<Confirmation>::new(format!("Delete {}?", file.name));
//!     match cx.elicit("sure", form).await? {
//!         ElicitResult::Accepted(Confirmation { sure: true }) => Ok(format!("deleted {}", file.name)),
//!         // That the user said no is an answer, not an error.
//!         _ => Ok(format!("kept {}", file.name)),
//!     }
//! }
//! ```
//!
//! **A handler runs again from its start when the answer is there.** The function ends where it asks. When the client
//! has answered, the function is called again, gets the answer at the same place and goes on. So nothing waits for an
//! answer that may not come, and any process that has the same keys ([`Builder::keys`]) can go on. Work that must not
//! be repeated stands behind the last question, or in [`Context::once`]. [`Context::try_join`] asks several things at
//! once. A client that cannot be asked gets an error that says what is missing, unless the function handles it
//! ([`Error::is_unsupported_by_client`]).
//!
//! # While it runs
//!
//! A [`Server`] is a handle. [`Server::add_tool`], [`Server::remove_resource`] and similar methods change what it
//! offers, and [`Notifier::resource_updated`] tells the clients that watch a resource. When a client cancels a request,
//! the handler's future is dropped; [`Context::cancellation`] also stops work that the handler started elsewhere.
//!
//! # Tests
//!
//! [`testing::Client`] is a client of any revision in memory: it calls a server's tools without sockets and processes,
//! and answers its questions.
//!
//! # Where to go from here
//!
//! The [examples](https://github.com/dateline-mcp/dateline/tree/main/crates/dateline/examples), each under 80 lines: a
//! first server, one that serves files, one that asks, live resources, a counter mounted in an axum application, tools
//! from JSON, replicas that go on with each other's requests. [`Http`] has what an endpoint can be told; [`Extension`]
//! adds methods of your own.

#[cfg(feature = "files")]
mod directory;
// A directory and skills each use a part of it.
#[cfg(any(feature = "files", feature = "skills"))]
#[cfg_attr(not(all(feature = "files", feature = "skills")), allow(dead_code))]
mod folder;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "skills")]
mod skills;
pub mod testing;

pub use ::http::HeaderMap;
#[cfg(feature = "files")]
pub use directory::Directory;
#[cfg(feature = "http")]
pub use http::{Bound, Http};
pub use proto::{CacheHint, Level, Object, Peer, Principal, Raw, Rejection, Template, wire::Limits};
pub use seal;
/// What a [`Service`] is made of: for layers around a server, and for services that are not a [`Server`].
///
/// ```
/// use std::sync::Arc;
///
/// use dateline::service::{
///     Answer, BoxFuture, Description, Filter, HeaderParam, Listening, Request, Service,
/// };
/// use dateline::{Peer, Rejection};
///
/// /// Writes the methods that are called to standard error.
/// struct Traced<S>(S);
///
/// impl<S: Service> Service for Traced<S> {
///     fn describe(&self) -> Arc<Description> {
///         self.0.describe()
///     }
///
///     fn call(&self, request: Request) -> BoxFuture<'_, Result<Answer, Rejection>> {
///         eprintln!("{}", request.method.wire());
///         self.0.call(request)
///     }
///
///     fn listen(&self, filter: Filter, peer: Arc<Peer>) -> BoxFuture<'_, Result<Listening, Rejection>> {
///         self.0.listen(filter, peer)
///     }
///
///     fn abandon(&self, request: Request) {
///         self.0.abandon(request);
///     }
///
///     fn header_params(&self, tool: &str) -> Arc<[HeaderParam]> {
///         self.0.header_params(tool)
///     }
/// }
/// ```
pub mod service {
    pub use ::http::request::Parts;
    pub use proto::wire::Id;
    pub use proto::{
        Answer, BoxFuture, BoxStream, Capabilities, Change, ClientCapabilities, Description, Event,
        EventQueue, EventSink, ExtensionMethod, Filter, HeaderParam, InputRequest, InputRequired,
        InputResponses, Listening, MemberName, Request, Service,
    };
    pub use spec::Capability;
}
#[cfg(feature = "http")]
pub use axum;
pub use server::{
    Args, BuildError, Builder, CacheScope, CompletionArgument, Content, Contents, Context, CreateMessage,
    CreateMessageResult, Definitions, ElicitForm, ElicitResult, ElicitUrl, Error, Extension, FromRequest,
    Handler, Headers, IntoResponse, Json, Messages, Notifier, Prompt, Rate, RequestExtension, Resource,
    ResourceContents, ResourceTemplate, Result, Root, Server, State, Tool, ToolResult, TryJoin, Variables,
};
#[cfg(feature = "skills")]
pub use skills::Skills;
pub use spec::{Era, Method, Question, Revision, Revisions};
#[cfg(feature = "http")]
pub use transport::http::{Anonymous, Authenticate, Challenge, Options as HttpOptions, Replay};
pub use transport::{CancellationToken, TransportError};

use std::sync::Arc;

use proto::Service;
use proto::downstream::Served;

/// Serves standard input and output until the input ends, in every revision.
///
/// # Errors
/// When reading or writing fails.
pub async fn stdio(service: impl Service) -> std::io::Result<()> {
    stdio_until(service, Revisions::ALL, Limits::default(), CancellationToken::new()).await
}

/// Serves standard input and output in some revisions, until the input ends or `shutdown` is cancelled.
///
/// # Errors
/// When reading or writing fails.
pub async fn stdio_until(
    service: impl Service,
    revisions: Revisions,
    limits: Limits,
    shutdown: CancellationToken,
) -> std::io::Result<()> {
    let served = Arc::new(Served { service: Arc::new(service), revisions, limits });
    transport::serve_stdio(served, shutdown).await
}

/// Serves each connection to a TCP address as a pipe of its own, until `shutdown` is cancelled: the framing of
/// standard streams, a message a line. Whoever reaches the address is served.
pub async fn tcp(
    listener: tokio::net::TcpListener,
    service: impl Service,
    revisions: Revisions,
    limits: Limits,
    shutdown: CancellationToken,
) {
    let served = Arc::new(Served { service: Arc::new(service), revisions, limits });
    transport::serve_tcp(listener, served, shutdown).await;
}

/// Serves each connection to a Unix socket as a pipe of its own, until `shutdown` is cancelled. Whoever may open the
/// socket's file is served, as the user of this machine. Unix only.
#[cfg(unix)]
pub async fn unix(
    listener: tokio::net::UnixListener,
    service: impl Service,
    revisions: Revisions,
    limits: Limits,
    shutdown: CancellationToken,
) {
    let served = Arc::new(Served { service: Arc::new(service), revisions, limits });
    transport::serve_unix_lines(listener, served, shutdown).await;
}
