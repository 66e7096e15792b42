//! Requests over HTTP: on which connection, where to, and when once more.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method as Verb, StatusCode, header};
use hyper_util::client::legacy::connect::HttpInfo;
use url::Url;

use super::Remote;
use super::body::cause;
use crate::TransportError;
use crate::error::shown;

/// How long a connection may be unused before it is let go: servers close theirs after five seconds and more, and a
/// request that meets such an end may be lost.
const UNUSED: Duration = Duration::from_secs(4);
/// How often a request is sent elsewhere before its server is taken for one that leads in a circle.
const REDIRECTS: usize = 5;
/// How many connections are remembered, to see whether one is used again.
const REMEMBERED: usize = 32;

/// Sends requests to one server.
pub(super) struct Http {
    /// Uses connections again.
    kept: reqwest::Client,
    /// Has a connection for each request.
    fresh: reqwest::Client,
    url: Url,
    state: Mutex<Connections>,
}

struct Connections {
    /// Where requests go, which a permanent redirect changes.
    place: Url,
    /// Our ends of those that served a request.
    served: VecDeque<SocketAddr>,
    keeps: Keeps,
}

/// Whether the server keeps connections open after an answer, as it says or not.
#[derive(Clone, Copy, PartialEq)]
enum Keeps {
    Unknown,
    Yes,
    No,
}

/// A request.
pub(super) struct Ask {
    pub(super) verb: Verb,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// Nothing happens where the server gets it twice.
    pub(super) repeatable: bool,
}

impl Ask {
    /// One that carries a message.
    pub(super) fn post(body: Bytes, mut headers: HeaderMap, repeatable: bool) -> Ask {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ask { verb: Verb::POST, headers, body, repeatable }
    }

    /// One for a stream of events.
    pub(super) fn stream(mut headers: HeaderMap) -> Ask {
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        Ask { verb: Verb::GET, headers, body: Bytes::new(), repeatable: true }
    }
}

impl Http {
    pub(super) fn new(remote: &Remote, url: Url) -> Result<Http, String> {
        let headers = headers(remote)?;
        let build = |idle: usize| {
            builder(headers.clone()).pool_max_idle_per_host(idle).build().map_err(|e| cause(&e))
        };
        let state = Connections { place: url.clone(), served: VecDeque::new(), keeps: Keeps::Unknown };
        Ok(Http { kept: build(usize::MAX)?, fresh: build(0)?, url, state: Mutex::new(state) })
    }

    /// The URL that was configured.
    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    fn state(&self) -> MutexGuard<'_, Connections> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request to where the server is.
    pub(super) async fn send(&self, ask: Ask) -> Result<reqwest::Response, TransportError> {
        let place = self.state().place.clone();
        self.send_to(place, ask).await
    }

    /// Sends a request to a URL of the server's own origin. It is sent once more where the connection broke and it is
    /// repeatable. Any other one goes over a connection that was used before only where the server was seen to keep
    /// its connections, so that it does not meet the end of one.
    ///
    /// # Errors
    /// [`TransportError::Reach`] where nothing arrived, [`TransportError::Lost`] where it may have.
    pub(super) async fn send_to(&self, mut url: Url, ask: Ask) -> Result<reqwest::Response, TransportError> {
        let (mut again, mut hops) = (ask.repeatable, 0);
        loop {
            let keeps = self.state().keeps;
            let pooled = keeps == Keeps::Yes || (ask.repeatable && keeps == Keeps::Unknown);
            let client = if pooled { &self.kept } else { &self.fresh };
            let request = client.request(ask.verb.clone(), url.clone()).headers(ask.headers.clone());
            let request = if ask.body.is_empty() { request } else { request.body(ask.body.clone()) };
            let response = match request.send().await {
                Ok(response) => response,
                Err(error) if error.is_connect() || error.is_builder() => {
                    return Err(TransportError::Reach { url: url.to_string(), why: cause(&error) });
                }
                Err(error) => {
                    if pooled {
                        self.state().keeps = Keeps::No;
                    }
                    if std::mem::take(&mut again) {
                        continue;
                    }
                    return Err(TransportError::Lost { url: url.to_string(), why: cause(&error) });
                }
            };
            if pooled {
                self.served(&response);
            }
            let Some(onward) = self.onward(&url, &ask.verb, &response)? else { return Ok(response) };
            hops += 1;
            if hops > REDIRECTS {
                let why =
                    format!("{} leads in a circle: more than {REDIRECTS} redirects", shown(url.as_str()));
                return Err(TransportError::Protocol(why));
            }
            url = onward;
        }
    }

    /// Notes on which connection an answer came.
    fn served(&self, response: &reqwest::Response) {
        let Some(info) = response.extensions().get::<HttpInfo>() else { return };
        let (mut state, end) = (self.state(), info.local_addr());
        if state.served.contains(&end) {
            if state.keeps == Keeps::Unknown {
                state.keeps = Keeps::Yes;
            }
            return;
        }
        if state.served.len() == REMEMBERED {
            state.served.pop_front();
        }
        state.served.push_back(end);
    }

    /// Where an answer sends the request. It goes on with its verb and body, since what a server says to a POST is no
    /// answer to a GET; and to the same origin alone, since headers hold what only that may know.
    fn onward(
        &self,
        from: &Url,
        verb: &Verb,
        response: &reqwest::Response,
    ) -> Result<Option<Url>, TransportError> {
        let status = response.status();
        let follows = match status.as_u16() {
            301 | 302 | 307 | 308 => true,
            303 => *verb == Verb::GET,
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
        if permanent && state.place == *from {
            state.place = to.clone();
        }
        Ok(Some(to))
    }
}

/// What is sent with every request.
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

/// The TLS provider must be there before a client is built. Nothing is sent again by the client itself: only we know
/// what may be.
fn builder(headers: HeaderMap) -> reqwest::ClientBuilder {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // It fails where the application installed one, which then serves.
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
