//! The forms of body that a client sends and takes.

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};

use crate::downstream::frame::Frame;
use crate::downstream::http::refusal::Refusal;

/// The forms of response that a client takes.
#[derive(Clone, Copy, Debug)]
pub struct Accept {
    json: bool,
    stream: bool,
    /// The client takes both and prefers an event stream: it weighs it more, or names it first.
    prefers_stream: bool,
}

impl Accept {
    /// Reads the `Accept` header. A client that sends none takes both forms.
    ///
    /// # Errors
    /// Refuses a client that takes neither JSON nor event streams.
    pub fn read(headers: &HeaderMap) -> Result<Accept, Refusal> {
        let mut values = headers.get_all(header::ACCEPT).iter().peekable();
        if values.peek().is_none() {
            return Ok(Accept { json: true, stream: true, prefers_stream: false });
        }
        // The weight of each form, as far as it was named.
        let (mut json, mut stream) = (0.0, 0.0);
        let mut prefers_stream = false;
        for value in values.flat_map(|v| v.to_str().unwrap_or_default().split(',')) {
            let mut parts = value.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
            let weight = parts.find_map(weight).unwrap_or(1.0);
            match kind.as_str() {
                "*/*" => {
                    json = f32::max(json, weight);
                    stream = f32::max(stream, weight);
                }
                "application/json" | "application/*" => {
                    prefers_stream &= weight <= stream;
                    json = f32::max(json, weight);
                }
                "text/event-stream" | "text/*" => {
                    prefers_stream = weight > json;
                    stream = f32::max(stream, weight);
                }
                _ => {}
            }
        }
        let (json, stream) = (json > 0.0, stream > 0.0);
        if json || stream {
            return Ok(Accept { json, stream, prefers_stream: json && stream && prefers_stream });
        }
        let why = "the Accept header must admit application/json, text/event-stream, or both";
        Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, why))
    }

    /// Says how a modern request is answered, from its first messages: give it each message until it says so.
    pub fn response(self, message: Frame) -> CallResponse {
        match message {
            // What goes before the response is not for a client that takes one object only.
            Frame::Part(_) if !self.stream => CallResponse::Open,
            // A status that is not 200 can only stand before any stream, whatever form the client prefers.
            Frame::Last(status, message) if !self.stream || self.object() || status != StatusCode::OK => {
                CallResponse::Object(status, message)
            }
            message => CallResponse::Stream(message),
        }
    }

    /// Whether the client takes an event stream.
    pub fn stream(self) -> bool {
        self.stream
    }

    /// Whether a response that consists of one message is sent as one JSON object.
    pub fn object(self) -> bool {
        self.json && !self.prefers_stream
    }
}

/// How a modern request is answered.
#[derive(Debug)]
pub enum CallResponse {
    /// By one JSON object, with this status.
    Object(StatusCode, Bytes),
    /// By an event stream that begins with this message.
    Stream(Frame),
    /// The next message says it.
    Open,
}

/// The weight that a parameter of an `Accept` entry gives, such as `q=0.5`.
fn weight(parameter: &str) -> Option<f32> {
    let (_, weight) = parameter.split_once('=').filter(|(name, _)| name.trim().eq_ignore_ascii_case("q"))?;
    weight.trim().parse().ok()
}

/// Refuses bodies that are not JSON in UTF-8.
pub(super) fn content_type(headers: &HeaderMap) -> Result<(), Refusal> {
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
    Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why))
}
