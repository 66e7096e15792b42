//! The checks that every request meets first: which host it names, which page sends it, which headers stand twice.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::State;
use axum::middleware::Next;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri, header};
use proto::downstream::http::Refusal;
use spec::header as name;
use url::Url;

use super::options::Options;
use super::response::refused;

/// How much is shown of what was sent.
const SHOWN: usize = 100;
/// How often a refusal is logged: who is refused may come again at once, and for ever.
const LOGGED: Duration = Duration::from_secs(60);
/// Headers that may stand once only: of two, each reader would take another.
const ONCE: [HeaderName; 4] = [
    HeaderName::from_static(name::SESSION_ID),
    HeaderName::from_static(name::LAST_EVENT_ID),
    header::CONTENT_TYPE,
    header::AUTHORIZATION,
];

/// Which hosts and origins are let in, and when the last refusal was logged.
pub(crate) struct RequestGuard {
    options: Options,
    logged: Mutex<Option<Instant>>,
}

impl RequestGuard {
    pub(crate) fn new(options: Options) -> Arc<RequestGuard> {
        Arc::new(RequestGuard { options, logged: Mutex::new(None) })
    }

    /// Refuses foreign hosts and origins, and what two readers would read as two different things.
    ///
    /// # Errors
    /// Says what is refused, and how it could be let in. It is logged now and then.
    pub(crate) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        check(uri, headers, &self.options).inspect_err(|refusal| self.log(refusal))
    }

    fn log(&self, refusal: &Refusal) {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.is_none_or(|at| at.elapsed() >= LOGGED) {
            *logged = Some(Instant::now());
            tracing::warn!("a request was refused: {}", String::from_utf8_lossy(refusal.body()));
        }
    }
}

/// Refuses the requests to a router that [`RequestGuard::check`] refuses.
pub(crate) async fn guard_requests(
    State(guard): State<Arc<RequestGuard>>,
    request: Request<Body>,
    next: Next,
) -> Response<Body> {
    match guard.check(request.uri(), request.headers()) {
        Err(refusal) => refused(refusal),
        Ok(()) => next.run(request).await,
    }
}

/// The checks themselves.
///
/// <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#security-&-endpoint>
fn check(uri: &Uri, headers: &HeaderMap, options: &Options) -> Result<(), Refusal> {
    let host = host_of(uri, headers)?;
    if !serves(host, options) {
        let lets = flag("--allow-host", "HttpOptions::hosts", self::host(without_port(host)).ok());
        let why = format!("this endpoint is not served under the Host {}{lets}", shown(host.as_bytes()));
        return Err(Refusal::new(StatusCode::FORBIDDEN, &why));
    }
    if let Some(sent) =
        one(headers, &header::ORIGIN).map_err(|why| Refusal::new(StatusCode::FORBIDDEN, &why))?
        && !sent.to_str().is_ok_and(|origin| admitted(origin, host, options))
    {
        let named = sent.to_str().ok().and_then(|sent| origin(sent).ok().filter(|origin| origin == sent));
        let lets = flag("--allow-origin", "HttpOptions::origins", named);
        let why = format!("pages of the Origin {} may not call this endpoint{lets}", shown(sent.as_bytes()));
        return Err(Refusal::new(StatusCode::FORBIDDEN, &why));
    }
    if headers.len() == headers.keys_len() {
        return Ok(()); // No header stands twice.
    }
    // Of a request outside of a session the headers that mirror its body say what is wrong with two of them.
    let version = HeaderName::from_static(name::PROTOCOL_VERSION);
    let of_session = headers.contains_key(name::SESSION_ID).then_some(&version);
    for once in ONCE.iter().chain(of_session) {
        one(headers, once).map_err(|why| Refusal::new(StatusCode::BAD_REQUEST, &why))?;
    }
    Ok(())
}

/// A header that may stand once.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a HeaderValue>, String> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    match values.next() {
        None => Ok(first),
        Some(_) => Err(format!("the header {name} stands twice")),
    }
}

/// The host that a request names, in one way.
fn host_of<'a>(uri: &Uri, headers: &'a HeaderMap) -> Result<&'a str, Refusal> {
    let wrong = |why: &str| Refusal::new(StatusCode::BAD_REQUEST, why);
    let host = one(headers, &header::HOST).map_err(|why| wrong(&why))?;
    let host = host.ok_or_else(|| wrong("a request must have a Host header"))?;
    let host = host.to_str().map_err(|_| wrong("the Host header is no host"))?;
    let default = if uri.scheme_str() == Some("https") { ":443" } else { ":80" };
    let bare = |authority: &str| authority.strip_suffix(default).unwrap_or(authority).to_ascii_lowercase();
    match uri.authority() {
        Some(authority) if bare(authority.as_str()) != bare(host) => Err(wrong(&format!(
            "the request line names the host {}, and the Host header {}",
            shown(authority.as_str().as_bytes()),
            shown(host.as_bytes())
        ))),
        _ => Ok(host),
    }
}

/// What was sent, so that it can be read by people: escaped, and not all of it where it is long. It may be logged, and
/// so what stands before an `@`, which may be a password, is left out.
pub(crate) fn shown(sent: &[u8]) -> String {
    let text = String::from_utf8_lossy(sent);
    let text = text.rsplit_once('@').map_or(&*text, |(_, text)| text);
    let rest = if text.chars().nth(SHOWN).is_some() { "…" } else { "" };
    format!("{:?}{rest}", text.chars().take(SHOWN).collect::<String>())
}

/// How to let somebody in; nothing where the value is none to be typed into a shell.
fn flag(flag: &str, option: &str, value: Option<String>) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._:/[]".contains(&b);
    match value.filter(|value| value.len() <= SHOWN && value.bytes().all(plain)) {
        Some(value) => format!("; {flag} {value} lets it in ({option} in a program of your own)"),
        None => String::new(),
    }
}

/// Whether the endpoint is served under a host. A page that has its name point here sends that name, so that names have
/// to be known; those of this machine for itself are nobody else's.
fn serves(host: &str, options: &Options) -> bool {
    let Some(hosts) = &options.hosts else { return true };
    let named = without_port(host);
    let address = address(named);
    let is = |allowed: &String| {
        allowed.eq_ignore_ascii_case(named) || (address.is_some() && self::address(allowed) == address)
    };
    is_loopback(named) || (options.addresses && address.is_some()) || hosts.iter().any(is)
}

/// The IP address that a host is.
fn address(host: &str) -> Option<IpAddr> {
    match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(address) => address.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => host.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
    }
}

/// Whether a host is a name of this machine for itself.
fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || address(host).is_some_and(|address| address.is_loopback())
}

fn admitted(origin: &str, host: &str, options: &Options) -> bool {
    if options.origins.iter().any(|allowed| allowed == origin) {
        return true;
    }
    let Ok(url) = Url::parse(origin) else { return false };
    let Some((_, authority)) = origin.split_once("://") else { return false };
    if !matches!(url.scheme(), "http" | "https") {
        return false;
    }
    // Its own pages: the origin's authority is the one that was asked. Where any Host is taken that can be a name
    // which somebody pointed here; an address cannot. On this machine all names for itself are the same.
    let (asked, of_page) = (without_port(host), without_port(authority));
    let same_port = host[asked.len()..] == authority[of_page.len()..];
    (authority == host && (options.hosts.is_some() || address(asked).is_some()))
        || (same_port && is_loopback(asked) && is_loopback(of_page))
}

/// Reads a host without its port, such as `gateway.example`, `192.0.2.7` or `[2001:db8::7]`, and gives it in lower case.
///
/// # Errors
/// Says what is wrong, and what would be right.
pub fn host(text: &str) -> Result<String, String> {
    let form =
        "is no host, which is a name or an IP address, such as gateway.example, 192.0.2.7 or [2001:db8::7]";
    if text == "*" {
        return Err(
            "every host cannot be let in: pages could point names of their own here; name each one".into()
        );
    }
    if text.contains("://") {
        return Err("is a URL; name its host alone".into());
    }
    if let Ok(address) = text.parse::<Ipv6Addr>() {
        return Ok(format!("[{address}]"));
    }
    let bare = without_port(text);
    if bare != text {
        return Err(format!("has a port; a host is let in on each port that is listened on: {bare}"));
    }
    let is_name = !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
    if is_name || address(text).is_some() { Ok(text.to_ascii_lowercase()) } else { Err(form.into()) }
}

/// Reads an origin, `SCHEME://HOST[:PORT]`, and gives it as browsers write it.
///
/// # Errors
/// Says what is wrong, and what would be right.
pub fn origin(text: &str) -> Result<String, String> {
    match text {
        "*" => return Err("pages of every origin cannot be let in; name each one".into()),
        "null" => return Err("is the origin of local files and of pages in a sandbox, of anybody's".into()),
        _ => {}
    }
    let form = "is no origin, which is SCHEME://HOST or SCHEME://HOST:PORT, such as https://app.example";
    let url = Url::parse(text).map_err(|e| format!("{form} ({e})"))?;
    let host = url.host_str().filter(|host| !host.is_empty()).ok_or(form)?;
    let port = url.port().map_or(String::new(), |port| format!(":{port}"));
    let origin = format!("{}://{}{port}", url.scheme(), host.to_ascii_lowercase());
    // A path would suggest that other pages of the site are kept out.
    let bare = matches!(url.path(), "" | "/") && !text.ends_with('/');
    let bare = bare && url.username().is_empty() && url.password().is_none();
    if bare && url.query().is_none() && url.fragment().is_none() {
        Ok(origin)
    } else {
        Err(format!("is more than its origin, which is {origin}"))
    }
}

fn without_port(host: &str) -> &str {
    match host.rfind(':') {
        Some(at) if host[at + 1..].bytes().all(|b| b.is_ascii_digit()) => &host[..at],
        _ => host,
    }
}
