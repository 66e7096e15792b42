//! An endpoint of Streamable HTTP.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use proto::Service;
use proto::downstream::Served;
use proto::wire::Limits;
use spec::Revisions;
use transport::http::{Crowd, Options, Paths};
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
    /// An endpoint at `/mcp`, and HTTP+SSE at `/sse`, that serves every revision on loopback.
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
    pub fn options(self, options: Options) -> Http {
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

    /// As a router, to be merged into an application. Set [`Options::hosts`] to the names that the
    /// application is served under.
    pub fn router(self) -> axum::Router {
        let served =
            Arc::new(Served { service: self.service, revisions: self.revisions, limits: self.limits });
        let crowd = Crowd::new(&self.options);
        transport::http::router(&self.paths, served, self.options, crowd, self.shutdown)
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
    options: Options,
    crowd: Crowd,
    /// Answers where there is nothing else: says where the endpoint is.
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
