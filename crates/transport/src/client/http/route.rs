//! The way to the origin of a server: directly or through a proxy, with TLS or without. The proxy is the one that the
//! variables `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` name.

use std::error::Error;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Uri};
use hyper::rt::{Read, Write};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Matcher;
use rustls::ClientConfig;
use rustls::crypto::{CryptoProvider, ring};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tower_service::Service;

/// How long a connection may be quiet before the system asks whether the other end is still there, and how long it
/// waits between two such questions. A machine that is gone without a word is noticed within a minute.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// How many such questions may stay without an answer.
const KEEPALIVE_RETRIES: u32 = 3;
/// How long data that was sent may stay without an acknowledgement before the connection counts as lost.
#[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

type BoxError = Box<dyn Error + Send + Sync>;

/// A connection to a server or to a proxy.
pub(super) trait Stream: Read + Write + Unpin + Send {}

impl<T: Read + Write + Unpin + Send> Stream for T {}

/// The way to an origin.
pub(super) struct Route {
    /// Where connections go: the origin or a proxy; through a tunnel, the origin.
    target: Uri,
    connector: Connector,
    /// Whether a proxy reads the requests and needs their full URL.
    pub(super) is_proxied: bool,
    /// What such a proxy is shown.
    pub(super) proxy_authorization: Option<HeaderValue>,
}

enum Connector {
    Plain(HttpConnector),
    Tls(HttpsConnector<HttpConnector>),
    Tunnel(Box<HttpsConnector<Tunnel<HttpsConnector<HttpConnector>>>>),
}

impl Route {
    /// The way to an origin, which has the scheme http or https.
    ///
    /// # Errors
    /// When TLS is needed and cannot be used.
    pub(super) fn new(origin: Uri) -> Result<Route, BoxError> {
        let is_https = |uri: &Uri| uri.scheme_str() == Some("https");
        let is_http = |uri: &Uri| uri.scheme_str() == Some("http");
        let Some(proxy) = Matcher::from_system().intercept(&origin) else {
            let connector = match is_https(&origin) {
                true => Connector::Tls((tcp(), tls()?).into()),
                false => Connector::Plain(tcp()),
            };
            return Ok(Route { target: origin, connector, is_proxied: false, proxy_authorization: None });
        };
        if is_https(&origin) {
            let tls = tls()?;
            let to_proxy = HttpsConnector::from((tcp(), Arc::clone(&tls)));
            let mut tunnel = Tunnel::new(proxy.uri().clone(), to_proxy);
            if let Some(authorization) = proxy.basic_auth() {
                tunnel = tunnel.with_auth(authorization.clone());
            }
            let connector = Connector::Tunnel(Box::new((tunnel, tls).into()));
            return Ok(Route { target: origin, connector, is_proxied: false, proxy_authorization: None });
        }
        let connector = match is_http(proxy.uri()) {
            true => Connector::Plain(tcp()),
            false => Connector::Tls((tcp(), tls()?).into()),
        };
        Ok(Route {
            target: proxy.uri().clone(),
            connector,
            is_proxied: true,
            proxy_authorization: proxy.basic_auth().cloned(),
        })
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// When the origin or the proxy cannot be reached.
    pub(super) async fn connect(&self) -> Result<Box<dyn Stream>, BoxError> {
        let target = self.target.clone();
        Ok(match &self.connector {
            Connector::Plain(connector) => Box::new(call(connector.clone(), target).await?),
            Connector::Tls(connector) => Box::new(call(connector.clone(), target).await?),
            Connector::Tunnel(connector) => Box::new(call((**connector).clone(), target).await?),
        })
    }
}

async fn call<C: Service<Uri, Error: Into<BoxError>>>(
    mut connector: C,
    target: Uri,
) -> Result<C::Response, BoxError> {
    poll_fn(|cx| connector.poll_ready(cx)).await.map_err(Into::into)?;
    connector.call(target).await.map_err(Into::into)
}

fn tcp() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(KEEPALIVE));
    tcp.set_keepalive_interval(Some(KEEPALIVE));
    tcp.set_keepalive_retries(Some(KEEPALIVE_RETRIES));
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
    tcp
}

/// TLS that trusts what the system trusts. An application may have installed another cryptography than the one here.
fn tls() -> Result<Arc<ClientConfig>, BoxError> {
    let provider =
        CryptoProvider::get_default().cloned().unwrap_or_else(|| Arc::new(ring::default_provider()));
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = builder.with_platform_verifier()?.with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
