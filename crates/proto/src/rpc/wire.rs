//! JSON-RPC envelopes. They are read by their members; params and results are not parsed.
//!
//! <https://modelcontextprotocol.io/specification/2026-07-28/basic/index#messages>

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use bytestring::ByteString;
use http::request::Parts;
use serde::Deserializer as _;
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use spec::{Rules, meta};

use crate::json::path;
use crate::json::{Object, ParseError, Raw, write_string};

/// The member of a message that holds its params.
const PARAMS: &str = "params";

/// Names a call within a connection or session. It is never sent.
pub type CallKey = u64;

/// The id of a request: a string or an integer. The response repeats it exactly as it was sent.
#[derive(Clone, Debug)]
pub struct Id {
    sent: ByteString,
    /// The string without escapes, where the sent text has some: two texts may mean the same string.
    meant: Option<ByteString>,
}

impl PartialEq for Id {
    fn eq(&self, other: &Id) -> bool {
        self.meant.as_ref().unwrap_or(&self.sent) == other.meant.as_ref().unwrap_or(&other.sent)
    }
}

impl Eq for Id {}

impl Id {
    /// Reads an id. Returns `None` for everything that is neither a string nor an integer, such as `null` or a fraction.
    pub fn read(raw: &Raw) -> Option<Id> {
        let text = raw.as_str();
        let digits = text.strip_prefix('-').unwrap_or(text);
        let integer = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        let meant =
            || text.contains('\\').then(|| raw.string().map(|text| format!("\"{text}\"").into())).flatten();
        (integer || text.starts_with('"')).then(|| Id { sent: text.into(), meant: meant() })
    }

    /// Makes the id of a request that this program sends.
    pub fn number(n: u64) -> Id {
        Id { sent: n.to_string().into(), meant: None }
    }

    /// Returns the id as a JSON value.
    pub fn raw(&self) -> Raw {
        Raw::trusted(self.sent.clone())
    }

    /// Returns the number that [`Id::number`] made the id of; `None` for an id that it did not make.
    pub fn as_number(&self) -> Option<u64> {
        self.sent.parse().ok()
    }

    /// Returns the JSON text.
    pub fn as_str(&self) -> &str {
        &self.sent
    }

    /// Reads the number of an id that this program sent. Some peers send `2` back as `"2"` or `2.0`.
    pub fn own(raw: &Raw) -> Option<u64> {
        let text = raw.as_str();
        number(text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text))
    }
}

/// Reads a whole number in any form that JSON allows: `2`, `2.0`, `2e0`.
pub(crate) fn number(text: &str) -> Option<u64> {
    /// Up to 2^53 floating point numbers represent every integer exactly; some peers know no other numbers.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if !text.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let fraction = || text.parse().ok().filter(|n: &f64| n.fract() == 0.0 && *n <= EXACT);
    text.parse().ok().or_else(|| fraction().map(|n| n as u64))
}

/// A message.
#[derive(Clone, Debug)]
pub enum Message {
    /// A request.
    Request(Call),
    /// A notification.
    Notification {
        /// The method.
        method: ByteString,
        /// The params as sent.
        params: Option<Raw>,
    },
    /// A response.
    Response {
        /// The id of the request that it answers. An error to an unreadable message has none.
        id: Option<Id>,
        /// The result, or the error object.
        outcome: Result<Raw, Raw>,
    },
}

/// A request as it was received.
#[derive(Clone, Debug)]
pub struct Call {
    /// The id.
    pub id: Id,
    /// The method.
    pub method: ByteString,
    /// The params as sent.
    pub params: Option<Raw>,
    /// The head of the HTTP request that carried it, where one did.
    pub head: Option<Arc<Parts>>,
    opened: OnceLock<Result<Opened, ParseError>>,
}

/// The params of a request and their `_meta`, both opened.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    /// The params. Absent params and `null` count as an empty object.
    pub(crate) params: Object,
    /// The `_meta` of the params, where it is an object.
    pub(crate) meta: Option<Object>,
}

impl Opened {
    /// `meta` is the `_meta` of the params, where it was opened already.
    fn new(params: Object, meta: Option<Object>) -> Opened {
        let open = || params.get(meta::META).and_then(|raw| raw.object().ok());
        let meta = meta.or_else(open);
        Opened { params, meta }
    }
}

impl Call {
    /// Makes a request.
    pub fn new(id: Id, method: ByteString, params: Option<Raw>) -> Call {
        Call { id, method, params, head: None, opened: OnceLock::new() }
    }

    /// Returns the params, opened. They are opened at the first call only: the era of a request is found by them, and
    /// then the request is admitted by them.
    ///
    /// # Errors
    /// Where the params are no object.
    pub(crate) fn opened(&self) -> Result<&Opened, &ParseError> {
        let open = || {
            let sent = self.params.as_ref().filter(|raw| !raw.is_null());
            sent.map_or_else(|| Ok(Object::new()), Raw::object).map(|params| Opened::new(params, None))
        };
        self.opened.get_or_init(open).as_ref()
    }

    /// Returns how many bytes of the message are kept until it is answered.
    pub fn weight(&self) -> usize {
        self.id.as_str().len() + self.params.as_ref().map_or(0, |params| params.as_str().len())
    }
}

/// An array, which may hold several messages.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The array as sent.
    pub sent: Raw,
    /// The head of the HTTP request that carried it, where one did.
    pub head: Option<Arc<Parts>>,
}

/// Why a text is not accepted as a message.
#[derive(Clone, Debug)]
pub enum Unreadable {
    /// It is not JSON.
    Parse(ParseError),
    /// It is an array, which may hold several messages.
    Batch(Batch),
    /// It is JSON, but no message.
    Invalid {
        /// Its id, where it has a valid one.
        id: Option<Id>,
        /// What is wrong, and what would be right.
        why: &'static str,
        /// It is answered by nothing, since it looks like a notification.
        silent: bool,
    },
}

/// Limits on what one peer may send.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The length of a message in bytes.
    pub message: usize,
    /// How deep objects and arrays may be nested.
    pub depth: usize,
    /// How many requests of a session or pipe may wait for their answers at once.
    pub calls: usize,
    /// How many bytes the requests of a session or pipe that wait for their answers may have together. A single
    /// request may be longer.
    pub under_way: usize,
    /// How many messages an array may hold, where the revision has batches. The answers of one array may have as many
    /// bytes together as one message may have.
    pub batch: usize,
    /// How many resources a session or a `subscriptions/listen` request may watch.
    pub watched: usize,
}

impl Default for Limits {
    /// Returns 16 MiB a message, 128 levels, 1000 requests of 64 MiB together, 100 messages in an array and 1000
    /// resources.
    fn default() -> Limits {
        Limits { message: 16 << 20, depth: 128, calls: 1000, under_way: 64 << 20, batch: 100, watched: 1000 }
    }
}

impl Limits {
    /// Sets how many bytes a message may have; 16 MiB by default.
    #[must_use]
    pub const fn message(mut self, bytes: usize) -> Limits {
        self.message = bytes;
        self
    }

    /// Sets how deep objects and arrays may be nested; 128 levels by default.
    #[must_use]
    pub const fn depth(mut self, levels: usize) -> Limits {
        self.depth = levels;
        self
    }

    /// Sets how many requests of a session or pipe may wait for their answers at once; 1000 by default.
    #[must_use]
    pub const fn calls(mut self, requests: usize) -> Limits {
        self.calls = requests;
        self
    }

    /// Sets how many bytes the requests of a session or pipe that wait for their answers may have together; 64 MiB by
    /// default. A single request may be longer.
    #[must_use]
    pub const fn under_way(mut self, bytes: usize) -> Limits {
        self.under_way = bytes;
        self
    }

    /// Sets how many messages an array may hold; 100 by default.
    #[must_use]
    pub const fn batch(mut self, messages: usize) -> Limits {
        self.batch = messages;
        self
    }

    /// Sets how many resources a session or a `subscriptions/listen` request may watch; 1000 by default.
    #[must_use]
    pub const fn watched(mut self, resources: usize) -> Limits {
        self.watched = resources;
        self
    }
}

/// Reads one message.
///
/// # Errors
/// Where the bytes are no message.
pub fn read(bytes: Bytes, limits: &Limits) -> Result<Message, Unreadable> {
    /// Every request is read that far: its era stands in `_meta`.
    const PATH: &[&str] = &[PARAMS, meta::META];
    let (raw, opened) = path::parse_along(bytes, limits.depth, PATH).map_err(Unreadable::Parse)?;
    sort_opened(raw, opened.into_iter())
}

/// Reads a message, or an array of them, out of the body of an HTTP request. Its head goes with the requests in it.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_body(body: Bytes, head: &Arc<Parts>, limits: &Limits) -> Result<Message, Unreadable> {
    let head = Some(Arc::clone(head));
    match read(body, limits) {
        Ok(Message::Request(call)) => Ok(Message::Request(Call { head, ..call })),
        Err(Unreadable::Batch(batch)) => Err(Unreadable::Batch(Batch { head, ..batch })),
        other => other,
    }
}

/// Reads one message from a JSON value.
///
/// # Errors
/// Where the value is no message.
pub fn sort(raw: Raw) -> Result<Message, Unreadable> {
    sort_opened(raw, std::iter::empty())
}

/// Reads one message. `opened` are the message itself, its params and their `_meta`, as far as they were opened already.
fn sort_opened(raw: Raw, mut opened: impl Iterator<Item = Object>) -> Result<Message, Unreadable> {
    if raw.starts_with('[') {
        return Err(Unreadable::Batch(Batch { sent: raw, head: None }));
    }
    let invalid = |id: Option<Id>, why| Unreadable::Invalid { id, why, silent: false };
    let object = match opened.next().map_or_else(|| raw.object(), Ok) {
        Ok(object) => object,
        Err(_) if raw.starts_with('{') => {
            return Err(invalid(None, "a member of the message stands twice; each may stand once"));
        }
        Err(_) => return Err(invalid(None, "a message is a JSON object with \"jsonrpc\": \"2.0\"")),
    };
    let (mut version, mut sent_id, mut method) = (None, None, None);
    let (mut params, mut result, mut error) = (None, None, None);
    for (name, value) in object {
        match &*name {
            "jsonrpc" => version = Some(value),
            "id" => sent_id = Some(value),
            "method" => method = Some(value),
            PARAMS => params = Some(value),
            "result" => result = Some(value),
            "error" => error = Some(value),
            _ => {}
        }
    }
    let id = sent_id.as_ref().and_then(Id::read);
    if version.and_then(|version| version.string()).as_deref() != Some("2.0") {
        let silent = sent_id.is_none() && method.is_some();
        return Err(Unreadable::Invalid { id, why: "\"jsonrpc\" must be \"2.0\"", silent });
    }
    match (method, result, error) {
        (Some(method), None, None) => {
            let Some(method) = method.string() else {
                let silent = sent_id.is_none();
                return Err(Unreadable::Invalid { id, why: "\"method\" must be a string", silent });
            };
            match (sent_id, id) {
                (None, _) => Ok(Message::Notification { method, params }),
                (Some(_), Some(id)) => {
                    let call = Call::new(id, method, params);
                    if let Some(params) = opened.next() {
                        let _ = call.opened.set(Ok(Opened::new(params, opened.next())));
                    }
                    Ok(Message::Request(call))
                }
                (Some(_), None) => Err(invalid(
                    None,
                    "\"id\" must be a string or an integer; null and fractions are not ids",
                )),
            }
        }
        (None, Some(result), None) => match id {
            Some(id) => Ok(Message::Response { id: Some(id), outcome: Ok(result) }),
            None => Err(invalid(None, "a result must carry the \"id\" of its request")),
        },
        (None, None, Some(error)) => Ok(Message::Response { id, outcome: Err(error) }),
        (None, None, None) => Err(invalid(id, "a message has a \"method\", a \"result\" or an \"error\"")),
        _ => Err(invalid(id, "a message has only one of \"method\", \"result\" and \"error\"")),
    }
}

/// Returns whether an array has more than `most` elements. It reads no further than necessary.
pub fn holds_more(array: &Raw, most: usize) -> bool {
    struct AtMost(usize);
    impl<'de> Visitor<'de> for AtMost {
        type Value = ();
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "an array of at most {} elements", self.0)
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
            let mut seen = 0;
            while elements.next_element::<IgnoredAny>()?.is_some() {
                seen += 1;
                if seen > self.0 {
                    return Err(serde::de::Error::invalid_length(seen, &self));
                }
            }
            Ok(())
        }
    }
    serde_json::Deserializer::from_str(array.as_str()).deserialize_seq(AtMost(most)).is_err()
}

/// Begins a message, with room for what follows.
fn begin(room: usize) -> String {
    const HEAD: &str = r#"{"jsonrpc":"2.0""#;
    /// Enough for the names of the members, and for most ids and methods.
    const ENVELOPE: usize = 128;
    let mut out = String::with_capacity(ENVELOPE + room);
    out.push_str(HEAD);
    out
}

fn member(out: &mut String, name: &str, value: &str) {
    out.push_str(",\"");
    out.push_str(name);
    out.push_str("\":");
    out.push_str(value);
}

fn end(mut out: String) -> Bytes {
    out.push('}');
    out.into()
}

/// Writes a result.
pub fn result(id: &Id, result: &Object) -> Bytes {
    let mut out = begin(result.len_written());
    member(&mut out, "id", id.as_str());
    out.push_str(",\"result\":");
    result.write(&mut out);
    end(out)
}

/// Writes a request.
pub fn request(id: &Id, method: &str, params: &Object) -> Bytes {
    let mut out = begin(params.len_written());
    member(&mut out, "id", id.as_str());
    message_body(out, method, Some(params))
}

/// Writes a notification.
pub fn notification(method: &str, params: Option<&Object>) -> Bytes {
    message_body(begin(params.map_or(0, Object::len_written)), method, params)
}

fn message_body(mut out: String, method: &str, params: Option<&Object>) -> Bytes {
    out.push_str(",\"method\":");
    write_string(method, &mut out);
    if let Some(params) = params {
        out.push_str(",\"params\":");
        params.write(&mut out);
    }
    end(out)
}

/// The id of an error.
#[derive(Clone, Copy, Debug)]
pub enum ErrorId<'a> {
    /// The id of the request.
    Of(&'a Id),
    /// No id, since the message could not be read.
    Absent,
    /// `null`, as JSON-RPC itself prescribes.
    Null,
}

impl ErrorId<'static> {
    /// Returns the id of an error that answers a message whose own id is not known.
    pub fn unknown(rules: &Rules) -> ErrorId<'static> {
        if rules.null_id_when_unreadable { ErrorId::Null } else { ErrorId::Absent }
    }
}

/// Writes an error.
pub fn error(id: ErrorId<'_>, error: &Object) -> Bytes {
    let mut out = begin(error.len_written());
    match id {
        ErrorId::Of(id) => member(&mut out, "id", id.as_str()),
        ErrorId::Null => member(&mut out, "id", "null"),
        ErrorId::Absent => {}
    }
    out.push_str(",\"error\":");
    error.write(&mut out);
    end(out)
}

/// Writes a message on one line.
///
/// Strings in JSON escape line breaks, so every line break is white space between values and becomes a space.
pub fn one_line(bytes: Bytes) -> Bytes {
    if bytes.iter().any(|b| matches!(b, b'\n' | b'\r')) {
        bytes.iter().map(|b| if matches!(b, b'\n' | b'\r') { b' ' } else { *b }).collect::<Vec<u8>>().into()
    } else {
        bytes
    }
}
