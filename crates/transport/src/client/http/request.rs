//! HTTP requests to one server: which redirects they follow, and when they are repeated.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::Full;
use percent_encoding::percent_decode_str;
use url::{Position, Url};

use super::body::cause;
use super::pool::{Connection, Pool, Response};
use super::route::Route;
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

/// How many redirects a request follows. More of them are taken for a circle.
const REDIRECTS: usize = 5;
/// Sends HTTP requests to one server.
pub(in crate::client) struct HttpClient {
    route: Route,
    pool: Arc<Pool>,
    /// The headers that are sent with every request.
    headers: HeaderMap,
    url: Url,
    state: Mutex<State>,
}

struct State {
    /// Where requests go: the URL, or what a permanent redirect named instead.
    location: Arc<Location>,
    reuse: Reuse,
}

/// A URL of the server's origin, as it is known and as it stands in a request.
struct Location {
    url: Url,
    uri: Uri,
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

/// Why a request got no response.
enum Failure {
    /// No connection was opened.
    NotConnected(String),
    /// The connection broke after the request was sent, or a part of it.
    Broken(String),
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
        let mut headers = headers(remote, &url).map_err(unusable)?;
        let origin = url.origin().ascii_serialization();
        let origin = Uri::try_from(origin).map_err(|e| unusable(e.to_string()))?;
        let route = Route::new(origin).map_err(|e| unusable(cause(&*e)))?;
        if let Some(authorization) = &route.proxy_authorization {
            headers.insert(header::PROXY_AUTHORIZATION, authorization.clone());
        }
        let uri = uri(&url, &route).map_err(|e| unusable(e.to_string()))?;
        let location = Arc::new(Location { url: url.clone(), uri });
        let state = Mutex::new(State { location, reuse: Reuse::Unknown });
        Ok(HttpClient { route, pool: Arc::default(), headers, url, state })
    }

    /// The URL that was configured.
    pub(in crate::client) fn url(&self) -> &Url {
        &self.url
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn location(&self, url: Url) -> Result<Arc<Location>, TransportError> {
        match uri(&url, &self.route) {
            Ok(uri) => Ok(Arc::new(Location { url, uri })),
            Err(why) => Err(TransportError::Unreachable { url: url.into(), why: why.to_string() }),
        }
    }

    /// Sends a request to the server's URL, or to where a permanent redirect led.
    ///
    /// # Errors
    /// As those of [`HttpClient::send_to`].
    pub(in crate::client) async fn send(&self, request: HttpRequest) -> Result<Response, TransportError> {
        let location = Arc::clone(&self.state().location);
        self.send_along(location, request).await
    }

    /// Sends a request to a URL of the server's origin. A repeatable request is sent once more where the connection
    /// broke. Any other request goes over a used connection only where the server was seen to let connections be used
    /// again: otherwise it might be lost when the server closes that connection.
    ///
    /// # Errors
    /// [`TransportError::Unreachable`] where the request did not arrive, [`TransportError::Unanswered`] where it may have arrived,
    /// [`TransportError::Protocol`] where a redirect cannot be followed.
    pub(in crate::client) async fn send_to(
        &self,
        url: Url,
        request: HttpRequest,
    ) -> Result<Response, TransportError> {
        self.send_along(self.location(url)?, request).await
    }

    async fn send_along(
        &self,
        mut location: Arc<Location>,
        request: HttpRequest,
    ) -> Result<Response, TransportError> {
        let (mut may_repeat, mut redirects) = (request.is_repeatable, 0);
        loop {
            let reuse = self.state().reuse;
            let is_pooled = reuse == Reuse::Yes || (request.is_repeatable && reuse == Reuse::Unknown);
            let response = match self.exchange(self.built(&location, &request), is_pooled).await {
                Ok(response) => response,
                Err(Failure::NotConnected(why)) => {
                    return Err(TransportError::Unreachable { url: location.url.to_string(), why });
                }
                Err(Failure::Broken(why)) => {
                    if is_pooled {
                        self.state().reuse = Reuse::No;
                    }
                    if std::mem::take(&mut may_repeat) {
                        continue;
                    }
                    return Err(TransportError::Unanswered { url: location.url.to_string(), why });
                }
            };
            let Some(next) = self.redirect(&location.url, &request.method, &response)? else {
                return Ok(response);
            };
            redirects += 1;
            if redirects > REDIRECTS {
                let url = shown(location.url.as_str());
                let why = format!("{url} leads in a circle: more than {REDIRECTS} redirects");
                return Err(TransportError::Protocol(why));
            }
            location = next;
        }
    }

    fn built(&self, location: &Location, request: &HttpRequest) -> Request<Full<Bytes>> {
        let mut built = Request::new(Full::new(request.body.clone()));
        *built.method_mut() = request.method.clone();
        *built.uri_mut() = location.uri.clone();
        let mut headers = self.headers.clone();
        for (name, value) in &request.headers {
            headers.insert(name.clone(), value.clone());
        }
        *built.headers_mut() = headers;
        built
    }

    /// Sends a request over one connection, and waits for the head of the response.
    async fn exchange(
        &self,
        mut request: Request<Full<Bytes>>,
        is_pooled: bool,
    ) -> Result<Response, Failure> {
        loop {
            let unused = if is_pooled { self.pool.take() } else { None };
            let mut connection = match unused {
                Some(connection) => connection,
                None => Connection::open(&self.route)
                    .await
                    .map_err(|error| Failure::NotConnected(cause(&*error)))?,
            };
            let was_used = connection.is_used;
            match connection.send(request).await {
                Ok(response) => {
                    if was_used {
                        self.note_reuse();
                    }
                    connection.is_used = true;
                    let pool = is_pooled.then(|| Arc::clone(&self.pool));
                    return Ok(Response::new(response, connection, pool));
                }
                Err(mut error) => match error.take_message() {
                    // The server closed the connection while nobody used it.
                    Some(unsent) if was_used => request = unsent,
                    _ => return Err(Failure::Broken(cause(&error.into_error()))),
                },
            }
        }
    }

    /// Notes that a second response came on a connection.
    fn note_reuse(&self) {
        let mut state = self.state();
        if state.reuse == Reuse::Unknown {
            state.reuse = Reuse::Yes;
        }
    }

    /// Where a response redirects a request. The request keeps its method and its body, since a GET in place of a POST
    /// would be another request. It stays on its origin, since its headers may hold secrets that no other origin may
    /// know.
    fn redirect(
        &self,
        from: &Url,
        method: &Method,
        response: &Response,
    ) -> Result<Option<Arc<Location>>, TransportError> {
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
        let to = self.location(to)?;
        let permanent = matches!(status, StatusCode::MOVED_PERMANENTLY | StatusCode::PERMANENT_REDIRECT);
        let mut state = self.state();
        if permanent && state.location.url == *from {
            state.location = Arc::clone(&to);
        }
        Ok(Some(to))
    }
}

/// The headers that are sent with every request.
fn headers(remote: &Remote, url: &Url) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
    for (name, value) in &remote.headers {
        let bad = |what: &str| format!("the {what} of the header {name:?} is not one that HTTP can carry");
        let mut value = HeaderValue::from_str(value).map_err(|_| bad("value"))?;
        value.set_sensitive(true);
        headers.insert(HeaderName::try_from(name.as_str()).map_err(|_| bad("name"))?, value);
    }
    let agent = concat!("dateline/", env!("CARGO_PKG_VERSION"));
    headers.insert(header::USER_AGENT, HeaderValue::from_static(agent));
    if !headers.contains_key(header::HOST) {
        let host = HeaderValue::from_str(&url[Position::BeforeHost..Position::AfterPort]);
        headers.insert(header::HOST, host.map_err(|e| e.to_string())?);
    }
    if !url.username().is_empty() || url.password().is_some() {
        let decoded = |text: &str| percent_decode_str(text).collect::<Vec<u8>>();
        let (user, password) = (decoded(url.username()), decoded(url.password().unwrap_or_default()));
        let encoded = BASE64.encode([&user[..], b":", &password].concat());
        let mut value = HeaderValue::from_str(&format!("Basic {encoded}")).map_err(|e| e.to_string())?;
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
    }
    Ok(headers)
}

/// A URL as it stands in a request: without its origin, except for a proxy that reads it.
fn uri(url: &Url, route: &Route) -> Result<Uri, http::uri::InvalidUri> {
    let path = &url[Position::BeforePath..Position::AfterQuery];
    match route.is_proxied {
        true => format!("{}{path}", url.origin().ascii_serialization()).parse(),
        false => path.parse(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    /// Answers requests on one connection: at `/part` with a part of the body, at `/last` with the end of the
    /// connection after it.
    async fn answer(mut stream: TcpStream) {
        let mut request = Vec::new();
        while stream.read_buf(&mut request).await.is_ok_and(|read| read > 0) {
            if !request.ends_with(b"\r\n\r\n") {
                continue;
            }
            let text = String::from_utf8(std::mem::take(&mut request)).unwrap();
            let (length, body) = if text.contains("/part") { (10, "part") } else { (4, "done") };
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}");
            stream.write_all(head.as_bytes()).await.unwrap();
            if text.contains("/last") {
                return;
            }
        }
    }

    /// A server; gives its URL, and how many connections it accepted.
    async fn server() -> (Url, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&accepted);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(answer(stream));
            }
        });
        (url, accepted)
    }

    #[tokio::test]
    async fn a_connection_is_used_again_where_its_response_was_read_to_the_end_and_the_server_kept_it() {
        let (url, accepted) = server().await;
        let client = HttpClient::new(&Remote::new(url.as_str())).unwrap_or_else(|e| panic!("{e}"));
        let get = async |path: &str| {
            let request = HttpRequest::event_stream(HeaderMap::new());
            client.send_to(url.join(path).unwrap(), request).await.unwrap_or_else(|e| panic!("{path}: {e}"))
        };
        let whole = async |path: &str| {
            let mut response = get(path).await;
            assert_eq!(response.chunk().await.unwrap().unwrap(), "done");
        };
        whole("/").await;
        whole("/").await;
        assert_eq!(accepted.load(Ordering::SeqCst), 1, "it is used again");
        let mut response = get("/part").await;
        assert_eq!(response.chunk().await.unwrap().unwrap(), "part");
        drop(response);
        whole("/").await;
        assert_eq!(
            accepted.load(Ordering::SeqCst),
            2,
            "the rest of a body would come before the next response"
        );
        whole("/last").await;
        whole("/").await;
        assert_eq!(accepted.load(Ordering::SeqCst), 3, "the server had closed it");
    }

    #[test]
    fn a_url_says_which_host_is_asked_and_who_asks() {
        let remote = Remote::new("http://me%40x:k%3Aey@127.0.0.1:8080/a?b=c#d");
        let client = HttpClient::new(&remote).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(client.headers[header::HOST], "127.0.0.1:8080");
        assert_eq!(client.headers[header::AUTHORIZATION], "Basic bWVAeDprOmV5");
        assert_eq!(client.state().location.uri, "/a?b=c");
        let mut remote = Remote::new("http://127.0.0.1:80");
        remote.headers = vec![("Host".into(), "x.example".into()), ("Accept".into(), "a/b".into())];
        let client = HttpClient::new(&remote).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(client.headers[header::HOST], "x.example");
        assert_eq!(client.headers[header::ACCEPT], "a/b");
        assert_eq!(client.state().location.uri, "/");
    }
}
