//! HTTP requests to one server: over which connection they go, which redirects they follow, and when they are repeated.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use hyper_util::client::legacy::connect::HttpInfo;
use url::Url;

use super::body::cause;
use crate::TransportError;
use crate::error::shown;

/// A server behind a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    /// The URL, with the scheme http or https.
    pub url: String,
    /// Headers that are sent with every request, such as `Authorization`.
    pub headers: Vec<(String, String)>,
    /// Whether the server speaks HTTP+SSE and nothing else is tried. Default: `false`.
    pub sse: bool,
}

impl Remote {
    /// A URL without further headers, whose transport the client finds out.
    pub fn new(url: &str) -> Remote {
        Remote { url: url.to_owned(), headers: Vec::new(), sse: false }
    }
}

/// How long a connection may be unused before the client closes it. Servers close theirs after five seconds or more, and
/// a request that is sent while the server closes the connection may be lost.
const UNUSED: Duration = Duration::from_secs(4);
/// How many redirects a request follows. More of them are taken for a circle.
const REDIRECTS: usize = 5;
/// How many connections the client remembers, to see whether the server lets one be used again.
const REMEMBERED: usize = 32;

/// Sends HTTP requests to one server.
pub(in crate::client) struct HttpClient {
    /// Uses connections again.
    pooled: reqwest::Client,
    /// Opens a connection for each request.
    unpooled: reqwest::Client,
    url: Url,
    state: Mutex<State>,
}

struct State {
    /// Where requests go: the URL, or what a permanent redirect named instead.
    location: Url,
    /// The local addresses of connections on which a response came.
    used: VecDeque<SocketAddr>,
    reuse: Reuse,
}

/// Whether the server lets a connection be used for a second request. What it says of that in headers is not relied on.
#[derive(Clone, Copy, PartialEq)]
enum Reuse {
    Unknown,
    Yes,
    No,
}

/// A request, without its URL.
pub(in crate::client) struct HttpRequest {
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// Whether the server may get the request twice without harm.
    pub(super) is_repeatable: bool,
}

impl HttpRequest {
    /// A POST of a message.
    pub(in crate::client) fn post(body: Bytes, mut headers: HeaderMap, is_repeatable: bool) -> HttpRequest {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        HttpRequest { method: Method::POST, headers, body, is_repeatable }
    }

    /// A GET of an event stream.
    pub(in crate::client) fn event_stream(mut headers: HeaderMap) -> HttpRequest {
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        HttpRequest { method: Method::GET, headers, body: Bytes::new(), is_repeatable: true }
    }

    /// A DELETE.
    pub(super) fn delete(headers: HeaderMap) -> HttpRequest {
        HttpRequest { method: Method::DELETE, headers, body: Bytes::new(), is_repeatable: true }
    }
}

impl HttpClient {
    /// Creates a client; no request is sent.
    ///
    /// # Errors
    /// When the URL or a header cannot be used.
    pub(in crate::client) fn new(remote: &Remote) -> Result<HttpClient, TransportError> {
        let unusable = |why: String| TransportError::Url { url: remote.url.clone(), why };
        let url = Url::parse(&remote.url).map_err(|e| unusable(e.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(unusable("it must begin with http:// or https://".into()));
        }
        let headers = headers(remote).map_err(unusable)?;
        let build = |idle: usize| {
            let client = builder(headers.clone()).pool_max_idle_per_host(idle).build();
            client.map_err(|e| unusable(cause(&e)))
        };
        let state = State { location: url.clone(), used: VecDeque::new(), reuse: Reuse::Unknown };
        Ok(HttpClient { pooled: build(usize::MAX)?, unpooled: build(0)?, url, state: Mutex::new(state) })
    }

    /// The URL that was configured.
    pub(in crate::client) fn url(&self) -> &Url {
        &self.url
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request to the server's URL, or to where a permanent redirect led.
    ///
    /// # Errors
    /// As those of [`HttpClient::send_to`].
    pub(in crate::client) async fn send(
        &self,
        request: HttpRequest,
    ) -> Result<reqwest::Response, TransportError> {
        let url = self.state().location.clone();
        self.send_to(url, request).await
    }

    /// Sends a request to a URL of the server's origin. A repeatable request is sent once more where the connection
    /// broke. Any other request goes over a used connection only where the server was seen to let connections be used
    /// again: otherwise it might be lost when the server closes that connection.
    ///
    /// # Errors
    /// [`TransportError::Reach`] where the request did not arrive, [`TransportError::Lost`] where it may have arrived,
    /// [`TransportError::Protocol`] where a redirect cannot be followed.
    pub(in crate::client) async fn send_to(
        &self,
        mut url: Url,
        request: HttpRequest,
    ) -> Result<reqwest::Response, TransportError> {
        let (mut may_repeat, mut redirects) = (request.is_repeatable, 0);
        loop {
            let reuse = self.state().reuse;
            let is_pooled = reuse == Reuse::Yes || (request.is_repeatable && reuse == Reuse::Unknown);
            let client = if is_pooled { &self.pooled } else { &self.unpooled };
            let sending =
                client.request(request.method.clone(), url.clone()).headers(request.headers.clone());
            let sending = if request.body.is_empty() { sending } else { sending.body(request.body.clone()) };
            let response = match sending.send().await {
                Ok(response) => response,
                Err(error) if error.is_connect() || error.is_builder() => {
                    return Err(TransportError::Reach { url: url.to_string(), why: cause(&error) });
                }
                Err(error) => {
                    if is_pooled {
                        self.state().reuse = Reuse::No;
                    }
                    if std::mem::take(&mut may_repeat) {
                        continue;
                    }
                    return Err(TransportError::Lost { url: url.to_string(), why: cause(&error) });
                }
            };
            if is_pooled {
                self.note_connection(&response);
            }
            let Some(location) = self.redirect(&url, &request.method, &response)? else {
                return Ok(response);
            };
            redirects += 1;
            if redirects > REDIRECTS {
                let why =
                    format!("{} leads in a circle: more than {REDIRECTS} redirects", shown(url.as_str()));
                return Err(TransportError::Protocol(why));
            }
            url = location;
        }
    }

    /// Notes on which connection a response came.
    fn note_connection(&self, response: &reqwest::Response) {
        let Some(info) = response.extensions().get::<HttpInfo>() else { return };
        let (mut state, address) = (self.state(), info.local_addr());
        if state.used.contains(&address) {
            if state.reuse == Reuse::Unknown {
                state.reuse = Reuse::Yes;
            }
            return;
        }
        if state.used.len() == REMEMBERED {
            state.used.pop_front();
        }
        state.used.push_back(address);
    }

    /// Where a response redirects a request. The request keeps its method and its body, since a GET in place of a POST
    /// would be another request. It stays on its origin, since its headers may hold secrets that no other origin may
    /// know.
    fn redirect(
        &self,
        from: &Url,
        method: &Method,
        response: &reqwest::Response,
    ) -> Result<Option<Url>, TransportError> {
        let status = response.status();
        let follows = match status.as_u16() {
            301 | 302 | 307 | 308 => true,
            303 => *method == Method::GET,
            _ => return Ok(None),
        };
        let Some(location) = response.headers().get(header::LOCATION) else { return Ok(None) };
        let location = String::from_utf8_lossy(location.as_bytes());
        let refused = |why: &str| {
            let (from, to) = (shown(from.as_str()), shown(&location));
            TransportError::Protocol(format!("{from} answers {status} with the Location {to:?}, {why}"))
        };
        if !follows {
            return Err(refused("which is no place to send a message to"));
        }
        let Ok(to) = from.join(&location) else { return Err(refused("which is no URL")) };
        if to.origin() != self.url.origin() {
            return Err(refused(
                "which is of another origin and is not followed: where that is right, put it into the configuration",
            ));
        }
        let permanent = matches!(status, StatusCode::MOVED_PERMANENTLY | StatusCode::PERMANENT_REDIRECT);
        let mut state = self.state();
        if permanent && state.location == *from {
            state.location = to.clone();
        }
        Ok(Some(to))
    }
}

/// The headers that are sent with every request.
fn headers(remote: &Remote) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in &remote.headers {
        let bad = |what: &str| format!("the {what} of the header {name:?} is not one that HTTP can carry");
        let mut value = HeaderValue::from_str(value).map_err(|_| bad("value"))?;
        value.set_sensitive(true);
        headers.insert(HeaderName::try_from(name.as_str()).map_err(|_| bad("name"))?, value);
    }
    Ok(headers)
}

/// A client that repeats no request and follows no redirect by itself: whether it may is decided above. The TLS provider
/// must be installed before the first client is built.
fn builder(headers: HeaderMap) -> reqwest::ClientBuilder {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // It fails where the application has installed a provider; that one is used then.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    reqwest::Client::builder()
        .default_headers(headers)
        .user_agent(concat!("dateline/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .pool_idle_timeout(UNUSED)
        .tcp_nodelay(true)
}
