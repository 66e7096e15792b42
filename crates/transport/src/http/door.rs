//! What is checked before a request is read: where it comes from, and in which forms it talks.

use std::net::IpAddr;

use http::{HeaderMap, StatusCode, header};
use url::Url;

use super::{Options, Refusal};

/// The forms of answer that a client takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accept {
    pub(crate) json: bool,
    pub(crate) stream: bool,
    /// It takes both and wants a stream: it weighs it more, or names it first.
    pub(crate) rather_stream: bool,
}

impl Accept {
    /// Whether what consists of one message is answered by one JSON object.
    pub(crate) fn object(self) -> bool {
        self.json && !self.rather_stream
    }
}

/// Refuses foreign hosts and origins.
///
/// <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#security-&-endpoint>
pub(crate) fn check(headers: &HeaderMap, options: &Options) -> Result<(), Refusal> {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    if let Some(allowed) = &options.hosts {
        let named = host.map(without_port);
        if !named.is_some_and(|host| allowed.iter().any(|a| a.eq_ignore_ascii_case(host))) {
            return Err(Refusal::plain(StatusCode::FORBIDDEN, "this endpoint is not served under that Host"));
        }
    }
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let Some(origin) = origins.next() else { return Ok(()) };
    let known =
        origins.next().is_none() && origin.to_str().is_ok_and(|origin| admitted(origin, host, options));
    if known {
        Ok(())
    } else {
        Err(Refusal::plain(StatusCode::FORBIDDEN, "pages of that Origin may not call this endpoint"))
    }
}

fn admitted(origin: &str, host: Option<&str>, options: &Options) -> bool {
    if options.origins.iter().any(|allowed| allowed == origin) {
        return true;
    }
    // Its own pages: the origin's authority is the one that was asked. Where any Host is taken that can be a name
    // which somebody pointed here; an address cannot.
    let literal =
        || host.is_some_and(|host| without_port(host).trim_matches(['[', ']']).parse::<IpAddr>().is_ok());
    if options.hosts.is_none() && !literal() {
        return false;
    }
    let Ok(url) = Url::parse(origin) else { return false };
    let authority = origin.split_once("://").map(|(_, authority)| authority);
    matches!(url.scheme(), "http" | "https") && authority.is_some() && authority == host
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

/// Which forms of answer the client takes.
pub(crate) fn accept(headers: &HeaderMap) -> Result<Accept, Refusal> {
    let mut values = headers.get_all(header::ACCEPT).iter().peekable();
    if values.peek().is_none() {
        return Ok(Accept { json: true, stream: true, rather_stream: false });
    }
    // The weight of each form, as far as it was named.
    let (mut json, mut stream) = (0.0, 0.0);
    let mut rather_stream = false;
    for value in values.flat_map(|v| v.to_str().unwrap_or_default().split(',')) {
        let mut parts = value.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
        let weight = parts.find_map(weight).unwrap_or(1.0);
        let of_stream = matches!(kind.as_str(), "text/event-stream" | "text/*");
        if of_stream {
            rather_stream = weight > json;
        } else if matches!(kind.as_str(), "application/json" | "application/*") {
            rather_stream &= weight <= stream;
        }
        match kind.as_str() {
            "*/*" => {
                json = f32::max(json, weight);
                stream = f32::max(stream, weight);
            }
            "application/json" | "application/*" => json = f32::max(json, weight),
            "text/event-stream" | "text/*" => stream = f32::max(stream, weight),
            _ => {}
        }
    }
    let (json, stream) = (json > 0.0, stream > 0.0);
    if json || stream {
        return Ok(Accept { json, stream, rather_stream: json && stream && rather_stream });
    }
    let why = "the Accept header must admit application/json, text/event-stream, or both";
    Err(Refusal::plain(StatusCode::NOT_ACCEPTABLE, why))
}

/// The weight that a parameter of an Accept entry gives: `q=0.5`, in any way of writing it.
fn weight(parameter: &str) -> Option<f32> {
    let (_, weight) = parameter.split_once('=').filter(|(name, _)| name.trim().eq_ignore_ascii_case("q"))?;
    weight.trim().parse().ok()
}

/// Refuses bodies that are not JSON.
pub(crate) fn content_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let value = headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let mut parts = value.split(';').map(str::trim);
    let json = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"));
    let utf8 = parts
        .filter_map(|parameter| parameter.split_once('='))
        .filter(|(name, _)| name.eq_ignore_ascii_case("charset"))
        .all(|(_, charset)| charset.trim_matches('"').eq_ignore_ascii_case("utf-8"));
    if json && utf8 {
        return Ok(());
    }
    let why = "the Content-Type must be application/json, in UTF-8";
    Err(Refusal::plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, why))
}
