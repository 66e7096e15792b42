//! HTTP with one connection for each exchange, so that a test can cut one exchange alone.

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::net::TcpStream;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::AbortHandle;

use crate::arrival::{Arrival, Exchange, Head, MODERN};

/// Sends one request on a connection of its own. Dropping the response cuts the connection.
pub async fn http(
    url: &str,
    verb: &str,
    headers: &[(&str, &str)],
    body: Vec<u8>,
) -> Result<http::Response<Incoming>, Box<dyn std::error::Error + Send + Sync>> {
    let rest = url.strip_prefix("http://").ok_or("a test talks plain HTTP")?;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let stream = TcpStream::connect(authority).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let mut request = Request::builder().method(verb).uri(format!("/{path}"));
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        request = request.header("host", authority);
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(Bytes::from(body)))?;
    Ok(sender.send_request(request).await?)
}

/// Runs an exchange in the background.
pub(crate) fn run(
    exchange: Exchange,
    url: &str,
    verb: &str,
    headers: &[(&str, &str)],
    body: Vec<u8>,
    out: UnboundedSender<Arrival>,
    all_fields: bool,
) -> AbortHandle {
    let (url, verb) = (url.to_owned(), verb.to_owned());
    let headers: Vec<(String, String)> =
        headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    let running = tokio::spawn(async move {
        let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        match http(&url, &verb, &headers, body).await {
            Ok(response) => read(exchange, response, &out, all_fields).await,
            Err(error) => drop(out.send(Arrival::Rubbish(exchange, error.to_string()))),
        }
        let _ = out.send(Arrival::End(exchange));
    });
    running.abort_handle()
}

/// Reads the lines of a byte stream to its end.
pub(crate) async fn lines(reader: impl AsyncRead + Unpin, out: UnboundedSender<Arrival>) {
    let mut lines = BufReader::new(reader).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        message(0, &line, &out);
    }
    let _ = out.send(Arrival::End(0));
}

/// Reads a response to its end. Where `kinds` is true, it also reports the kinds of events.
pub(crate) async fn read(
    exchange: Exchange,
    response: http::Response<Incoming>,
    out: &UnboundedSender<Arrival>,
    kinds: bool,
) {
    let (parts, mut body) = response.into_parts();
    let events =
        parts.headers.get("content-type").is_some_and(|v| v.as_bytes().starts_with(b"text/event-stream"));
    let _ = out.send(Arrival::Head(exchange, Head { status: parts.status.as_u16(), headers: parts.headers }));
    let mut buffer = String::new();
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(data) = frame.into_data() else { continue };
        buffer.push_str(&String::from_utf8_lossy(&data));
        while events && let Some(end) = buffer.find("\n\n") {
            let event: String = buffer.drain(..end + 2).collect();
            let data: Vec<&str> = event.lines().filter_map(|line| line.strip_prefix("data:")).collect();
            if event.starts_with(':') {
                let _ = out.send(Arrival::Comment(exchange));
            }
            let told = |line: &&str| line.starts_with("id:") || line.starts_with("retry:");
            for field in event.lines().filter(|line| told(line) || kinds && *line == "event: endpoint") {
                let _ = out.send(Arrival::Field(exchange, field.to_owned()));
            }
            let data = data.join("\n");
            if !data.trim().is_empty() {
                message(exchange, data.trim(), out);
            }
        }
    }
    if !events && !buffer.is_empty() {
        message(exchange, &buffer, out);
    }
}

fn message(exchange: Exchange, text: &str, out: &UnboundedSender<Arrival>) {
    let _ = out.send(match serde_json::from_str(text) {
        Ok(value) => Arrival::Message(exchange, value, text.to_owned()),
        Err(_) => Arrival::Rubbish(exchange, text.to_owned()),
    });
}

/// Returns the URL of HTTP+SSE that belongs to a URL of Streamable HTTP.
pub fn sse_url(url: &str) -> String {
    format!("{}/sse", url.rsplit_once('/').expect("a URL has a path").0)
}

/// Returns the headers that a modern request needs.
pub fn modern_headers(method: &str, params: &Value) -> Vec<(&'static str, String)> {
    let version = params["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str().unwrap_or(MODERN);
    let mut headers = vec![("mcp-protocol-version", version.to_owned()), ("mcp-method", method.to_owned())];
    let named = match method {
        "tools/call" | "prompts/get" => params["name"].as_str(),
        "resources/read" => params["uri"].as_str(),
        _ => None,
    };
    headers.extend(named.map(|name| ("mcp-name", name.to_owned())));
    headers
}

/// Returns the value of a header; `None` where it is absent or no text.
pub fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}
