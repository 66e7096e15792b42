//! An endpoint of Streamable HTTP.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use proto::Service;
use proto::downstream::Served;
use proto::wire::Limits;
use spec::Revisions;
use transport::http::{Endpoint, Options, Paths};
use transport::{CancellationToken, TransportError};

/// An endpoint of Streamable HTTP, with one of HTTP+SSE beside it for clients of 2024-11-05.
pub struct Http {
    service: Arc<dyn Service>,
    revisions: Revisions,
    limits: Limits,
    options: Options,
    paths: Paths,
    shutdown: CancellationToken,
}

impl Http {
    /// Makes an endpoint at `/mcp`, with HTTP+SSE at `/sse`, that serves every revision.
    pub fn new(service: impl Service) -> Http {
        Http {
            service: Arc::new(service),
            revisions: Revisions::ALL,
            limits: Limits::default(),
            options: Options::default(),
            paths: Paths { endpoint: "/mcp".into(), sse: Some("/sse".into()) },
            shutdown: CancellationToken::new(),
        }
    }

    /// Sets the revisions that are served; all by default.
    #[must_use]
    pub fn revisions(self, revisions: Revisions) -> Http {
        Http { revisions, ..self }
    }

    /// Sets the limits of what is read from a client.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Http {
        Http { limits, ..self }
    }

    /// Sets the options: hosts, origins, timeouts, and limits of sessions and streams.
    #[must_use]
    pub fn options(self, options: Options) -> Http {
        Http { options, ..self }
    }

    /// Sets the path of Streamable HTTP; `/mcp` by default.
    #[must_use]
    pub fn path(self, path: &str) -> Http {
        Http { paths: Paths { endpoint: path.into(), ..self.paths }, ..self }
    }

    /// Sets the path of the event stream of HTTP+SSE; `/sse` by default. With `None` HTTP+SSE is not served. Clients post
    /// messages to `message` beside it.
    #[must_use]
    pub fn sse_path(self, path: Option<&str>) -> Http {
        Http { paths: Paths { sse: path.map(str::to_owned), ..self.paths }, ..self }
    }

    /// Sets a token that ends the endpoint when it is cancelled.
    #[must_use]
    pub fn until(self, shutdown: CancellationToken) -> Http {
        Http { shutdown, ..self }
    }

    /// Makes a router, to be merged into an axum application. Set [`Options::hosts`] to the names that the
    /// application is served under.
    pub fn router(self) -> axum::Router {
        transport::http::router(&self.endpoint())
    }

    fn endpoint(self) -> Arc<Endpoint> {
        let served =
            Arc::new(Served { service: self.service, revisions: self.revisions, limits: self.limits });
        Endpoint::new(&self.paths, served, self.options, self.shutdown)
    }

    /// Listens on an address; with port 0 on one that is free. Serves once [`Bound::serve`] is awaited, under the names of
    /// this machine for itself, the address listened on (any address, where it is all of them) and
    /// [`Options::hosts`]: on an address that other machines reach under a name, name it there.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub async fn bind(self, address: &str) -> Result<Bound, TransportError> {
        let failed = |source| TransportError::Listen { address: address.to_owned(), source };
        let listener = tokio::net::TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let options = self.options.clone().listening_on(address.ip());
        let elsewhere = transport::http::elsewhere(&self.paths, self.revisions, options.clone());
        let path = self.paths.endpoint.clone();
        let endpoint = self.options(options.clone()).endpoint();
        Ok(Bound { address, path, listener, options, elsewhere, endpoint })
    }
}

/// An endpoint that listens.
pub struct Bound {
    address: SocketAddr,
    path: String,
    listener: tokio::net::TcpListener,
    options: Options,
    /// Answers where there is nothing else: says where the endpoint is.
    elsewhere: axum::Router,
    endpoint: Arc<Endpoint>,
}

impl Bound {
    /// Gives the address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Gives the URL that clients on this machine use: on the loopback address where it listens on all addresses.
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
        let router = transport::http::router(&self.endpoint).merge(beside);
        transport::http::serve(self.listener, self.endpoint, router).await
    }
}
