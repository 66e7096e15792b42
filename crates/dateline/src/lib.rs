//! Write a Model Context Protocol server once; every client of every revision is served.
//!
//! ```no_run
//! use dateline::{Server, Tool, Args};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Who { name: String }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let greet = |Args(who): Args<Who>| async move { format!("Hello, {}!", who.name) };
//!     let server = Server::new("hello", "1.0.0").tool(Tool::new("greet", "Greets someone.", greet)).build()?;
//!     dateline::stdio(server).await?;
//!     Ok(())
//! }
//! ```
//!
//! A handler is an async function. What it takes says what it needs ([`Args`] for its arguments, [`Cx`] for
//! progress, logs and questions), what it returns becomes the result ([`Reply`]), and errors go out by `?`.
//! It knows nothing of revisions: [`Cx::elicit`] asks a client of 2025-06-18 by a request on the call's stream,
//! and one of 2026-07-28 by an *input required* result, from the same line of code.
//!
//! Serve it with [`stdio`] or [`Http`], or mount [`Http::router`] in an [`axum`] application.

mod directory;
mod folder;
mod skills;

pub use directory::Directory;
pub use proto::{CacheHint, Level, Object, Peer, Principal, Raw, Rejection, wire::Limits};
pub use server::{
    Args, Builder, Content, Contents, Cx, Elicited, Error, Extension, Form, FromCall, Handler, Json,
    Messages, Part, Prompt, Rate, Reply, Resource, ResourceContents, ResourceTemplate, Result, Sampled,
    Server, Template, Together, Tool, ToolResult, Typed, Vars, Visit, seal,
};
pub use skills::Skills;
pub use spec::{Era, Method, Revision, Revisions};
pub use transport::http::{Options as HttpOptions, Replay};
pub use transport::{CancellationToken, TransportError};

use std::net::SocketAddr;
use std::sync::Arc;

use proto::Service;
use proto::edge::Served;
use transport::http::Paths;

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
        transport::http::router(&self.paths, served, self.options, self.shutdown)
    }

    /// Listens on an address; with port 0 on one that is free. Serves once [`Bound::serve`] is awaited.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub async fn bind(self, address: &str) -> Result<Bound, TransportError> {
        let failed = |source| TransportError::Listen { address: address.to_owned(), source };
        let listener = tokio::net::TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Bound {
            address,
            path: self.paths.endpoint.clone(),
            listener,
            shutdown: self.shutdown.clone(),
            router: self.router(),
        })
    }
}

/// An endpoint that listens.
pub struct Bound {
    address: SocketAddr,
    path: String,
    listener: tokio::net::TcpListener,
    shutdown: CancellationToken,
    router: axum::Router,
}

impl Bound {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL that clients use.
    pub fn url(&self) -> String {
        format!("http://{}{}", self.address, self.path)
    }

    /// Serves until it is told to stop.
    ///
    /// # Errors
    /// When the listener fails for good.
    pub async fn serve(self) -> std::io::Result<()> {
        self.serve_with(axum::Router::new()).await
    }

    /// Serves with the routes of another router beside the endpoint's. They are not behind the endpoint's checks of
    /// `Host` and `Origin`.
    ///
    /// # Errors
    /// When the listener fails for good.
    pub async fn serve_with(self, beside: axum::Router) -> std::io::Result<()> {
        transport::http::serve(self.listener, self.router.merge(beside), self.shutdown).await
    }
}
