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
//! works: `dateline call greet name=you -- cargo run -q` prints `Hello, you!`. For HTTP, the last lines become
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
//! # Handlers
//!
//! A handler is an async function or closure. What it takes says what it needs: [`Args`] for its arguments, checked and
//! as a type, [`Vars`] for the variables of a resource's URI, [`Cx`] for progress, logs and questions. What it returns
//! becomes the answer (see [`Reply`]), and errors go out by `?`. State is what it holds, as in any program.
//!
//! ```
//! use dateline::{Args, Cx, Json, Prompt, Resource, ResourceTemplate, Result, Server, Tool, Vars};
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
//! async fn price(Args(order): Args<Order>, cx: Cx) -> Result<Json<Price>> {
//!     cx.progress(1.0, Some(2.0), Some("asking the shop")).await;
//!     let each: u32 = if order.what == "tea" { 250 } else { "300".parse()? };
//!     Ok(Json(Price { cents: each * u32::from(order.count) }))
//! }
//!
//! # fn main() -> std::result::Result<(), String> {
//! let server = Server::new("shop", "1.0.0")
//!     .tool(Tool::new("price", "Says what an order costs.", price))
//!     // The fields of the arguments' type are the prompt's arguments.
//!     .prompt(Prompt::new("advise", "Asks what to order.", |Args(order): Args<Order>| async move {
//!         format!("Is {} the right number of {}?", order.count, order.what)
//!     }))
//!     .resource(Resource::new("shop://hours", "Opening hours", || async { "9 to 5" }))
//!     .template(ResourceTemplate::new("shop://goods/{name}", "Goods", |vars: Vars| async move {
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
//! [`Cx::elicit`] asks the user, [`Cx::sample`] the client's model, [`Cx::list_roots`] for its directories. The same line
//! sends a request on the call's stream to a client of 2025-06-18, and an *input required* result to one of 2026-07-28,
//! which may answer another process.
//!
//! ```
//! use dateline::{Args, Cx, Elicited, Form, Result};
//!
//! # #[derive(serde::Deserialize, schemars::JsonSchema)]
//! # struct File { name: String }
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Confirmation {
//!     /// Really?
//!     sure: bool,
//! }
//!
//! async fn delete(Args(file): Args<File>, cx: Cx) -> Result<String> {
//!     let form = Form::<Confirmation>::new(format!("Delete {}?", file.name));
//!     match cx.elicit("sure", form).await? {
//!         Elicited::Accepted(Confirmation { sure: true }) => Ok(format!("deleted {}", file.name)),
//!         // That the user said no is an answer, not an error.
//!         _ => Ok(format!("kept {}", file.name)),
//!     }
//! }
//! ```
//!
//! **What stands before a question runs again with its answer.** The function ends where it asks; once the answer is
//! there, it is called anew, finds the answer at the same place and goes on. So nothing waits for an answer that may not
//! come, nothing behind a question runs before it is answered, and any process that shares the sealing key
//! ([`Builder::keys`]) can go on. Do what must happen once behind the last question. Several things are asked at once with
//! [`Cx::together`]. A client that cannot be asked gets an error that says what is missing, unless the function has another
//! way ([`Error::is_unasked`]).
//!
//! # While it runs
//!
//! A [`Server`] is a handle: [`Server::add_tool`], [`Server::remove_resource`] and the like change what is offered,
//! [`Notifier::resource_updated`] tells those who watch. When a client gives a request up, the handler's future is
//! dropped; [`Cx::cancellation`] reaches what it started elsewhere.
//!
//! # Where to go from here
//!
//! The [examples](https://github.com/dateline-mcp/dateline/tree/main/crates/dateline/examples), each under 80 lines: a
//! first server, one that serves files, one that asks, live resources, a counter mounted in an axum application, tools
//! from JSON. [`Http`] has what an endpoint can be told; [`Extension`] adds methods of your own.

mod directory;
mod folder;
mod skills;

pub use directory::Directory;
pub use proto::{CacheHint, Level, Object, Peer, Principal, Raw, Rejection, Template, wire::Limits};
pub use seal;
pub use server::{
    Args, Builder, Content, Contents, Cx, Elicited, Error, Extension, Form, FromCall, Handler, Json,
    Messages, Notifier, Part, Prompt, Rate, Reply, Resource, ResourceContents, ResourceTemplate, Result,
    Sampled, Server, Together, Tool, ToolResult, Typed, Vars, Visit,
};
pub use skills::Skills;
pub use spec::{Era, Method, Revision, Revisions};
pub use transport::http::{Anonymous, Authenticate, Challenge, Options as HttpOptions, Replay};
pub use transport::{CancellationToken, TransportError};

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use proto::Service;
use proto::downstream::Served;
use transport::http::{Crowd, Paths};

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

/// The same on a Unix socket. Whoever may open the socket's file is served, as the user of this machine.
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

/// An endpoint of Streamable HTTP, with one of HTTP+SSE beside it for clients of 2024-11-05.
pub struct Http {
    service: Arc<dyn Service>,
    revisions: Revisions,
    limits: Limits,
    options: HttpOptions,
    paths: Paths,
    shutdown: CancellationToken,
}

impl Http {
    /// An endpoint at `/mcp`, and HTTP+SSE at `/sse`, that serves every revision on loopback.
    pub fn new(service: impl Service) -> Http {
        Http {
            service: Arc::new(service),
            revisions: Revisions::ALL,
            limits: Limits::default(),
            options: HttpOptions::default(),
            paths: Paths { endpoint: "/mcp".into(), sse: Some("/sse".into()) },
            shutdown: CancellationToken::new(),
        }
    }

    /// The same in these revisions only.
    #[must_use]
    pub fn revisions(self, revisions: Revisions) -> Http {
        Http { revisions, ..self }
    }

    /// The same with these bounds of what is read.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Http {
        Http { limits, ..self }
    }

    /// The same with these options.
    #[must_use]
    pub fn options(self, options: HttpOptions) -> Http {
        Http { options, ..self }
    }

    /// The same at another path.
    #[must_use]
    pub fn path(self, path: &str) -> Http {
        Http { paths: Paths { endpoint: path.into(), ..self.paths }, ..self }
    }

    /// The same with the event stream of HTTP+SSE at another path, or without it. Messages are posted to `message`
    /// beside it.
    #[must_use]
    pub fn sse_path(self, path: Option<&str>) -> Http {
        Http { paths: Paths { sse: path.map(str::to_owned), ..self.paths }, ..self }
    }

    /// The same until this token is cancelled.
    #[must_use]
    pub fn until(self, shutdown: CancellationToken) -> Http {
        Http { shutdown, ..self }
    }

    /// As a router, to be merged into an application. Set [`HttpOptions::hosts`] to the names that the
    /// application is served under.
    pub fn router(self) -> axum::Router {
        let served =
            Arc::new(Served { service: self.service, revisions: self.revisions, limits: self.limits });
        let crowd = Crowd::new(&self.options);
        transport::http::router(&self.paths, served, self.options, crowd, self.shutdown)
    }

    /// Listens on an address; with port 0 on one that is free. Serves once [`Bound::serve`] is awaited, under the names of
    /// this machine for itself, the address listened on (any address, where it is all of them) and
    /// [`HttpOptions::hosts`]: on an address that other machines reach under a name, name it there.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub async fn bind(self, address: &str) -> Result<Bound, TransportError> {
        let failed = |source| TransportError::Listen { address: address.to_owned(), source };
        let listener = tokio::net::TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let options = self.options.clone().listening_on(address.ip());
        let elsewhere = transport::http::elsewhere(&self.paths, self.revisions, options.clone());
        let served =
            Arc::new(Served { service: self.service, revisions: self.revisions, limits: self.limits });
        let crowd = Crowd::new(&options);
        let shutdown = self.shutdown.clone();
        let router =
            transport::http::router(&self.paths, served, options.clone(), crowd.clone(), self.shutdown);
        Ok(Bound {
            address,
            path: self.paths.endpoint,
            listener,
            options,
            elsewhere,
            crowd,
            shutdown,
            router,
        })
    }
}

/// An endpoint that listens.
pub struct Bound {
    address: SocketAddr,
    path: String,
    listener: tokio::net::TcpListener,
    options: HttpOptions,
    crowd: Crowd,
    /// InputResponses where there is nothing else.
    elsewhere: axum::Router,
    shutdown: CancellationToken,
    router: axum::Router,
}

impl Bound {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL that clients on this machine use. Where it is listened on all addresses that is the loopback one.
    pub fn url(&self) -> String {
        let address = match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => {
                SocketAddr::from((Ipv4Addr::LOCALHOST, self.address.port()))
            }
            IpAddr::V6(ip) if ip.is_unspecified() => {
                SocketAddr::from((Ipv6Addr::LOCALHOST, self.address.port()))
            }
            _ => self.address,
        };
        format!("http://{address}{}", self.path)
    }

    /// Serves until it is told to stop.
    ///
    /// # Errors
    /// When the listener fails for good.
    pub async fn serve(self) -> std::io::Result<()> {
        self.serve_beside(axum::Router::new()).await
    }

    /// Serves with the routes of another router beside the endpoint's, behind the same checks of `Host` and `Origin`. It
    /// must have no fallback: where there is nothing, a 404 says where the endpoint is.
    ///
    /// # Errors
    /// When the listener fails for good.
    pub async fn serve_beside(self, beside: axum::Router) -> std::io::Result<()> {
        let beside = transport::http::guarded(beside, self.options.clone()).merge(self.elsewhere.clone());
        self.serve_with(beside).await
    }

    /// Serves with the routes of another router beside the endpoint's, and its fallback. They are not behind the
    /// endpoint's checks of `Host` and `Origin`.
    ///
    /// # Errors
    /// When the listener fails for good.
    pub async fn serve_with(self, beside: axum::Router) -> std::io::Result<()> {
        let router = self.router.merge(beside);
        transport::http::serve(self.listener, router, &self.options, self.crowd, self.shutdown).await
    }
}
