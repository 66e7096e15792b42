//! JSON-RPC envelopes: sorted by their keys, params and results left raw.
//!
//! <https://modelcontextprotocol.io/specification/2026-07-28/basic/index#messages>

use bytes::Bytes;
use bytestring::ByteString;
use serde::Deserializer as _;
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use spec::Rules;

use crate::json::{Object, ParseError, Raw};

/// Names a call within a connection or session; never sent.
pub type CallKey = u64;

/// A request id, a string or an integer, that comes back exactly as it was sent.
#[derive(Clone, Debug)]
pub struct Id {
    sent: ByteString,
    /// What it means, where that can be written in several ways: a string without its escapes.
    meant: Option<ByteString>,
}

impl PartialEq for Id {
    fn eq(&self, other: &Id) -> bool {
        self.meant.as_ref().unwrap_or(&self.sent) == other.meant.as_ref().unwrap_or(&other.sent)
    }
}

impl Eq for Id {}

impl Id {
    /// Reads an id; `None` for null, fractions and everything that is neither a string nor an integer.
    pub fn read(raw: &Raw) -> Option<Id> {
        let text = raw.as_str();
        let digits = text.strip_prefix('-').unwrap_or(text);
        let integer = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        let meant =
            || text.contains('\\').then(|| raw.string().map(|text| format!("\"{text}\"").into())).flatten();
        (integer || text.starts_with('"')).then(|| Id { sent: text.into(), meant: meant() })
    }

    /// An id of our own.
    pub fn number(n: u64) -> Id {
        Id { sent: n.to_string().into(), meant: None }
    }

    /// The JSON text.
    pub fn raw(&self) -> Raw {
        Raw::trusted(self.sent.clone())
    }

    /// The number, where it is one of our own.
    pub fn as_number(&self) -> Option<u64> {
        self.sent.parse().ok()
    }

    /// The JSON text.
    pub fn as_str(&self) -> &str {
        &self.sent
    }

    /// What an id is a number of our own by, in whatever form a peer sends it back.
    pub fn own(raw: &Raw) -> Option<u64> {
        let text = raw.as_str();
        number(text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text))
    }
}

/// The number that a text is: `2`, `2.0`, `2e0`.
pub(crate) fn number(text: &str) -> Option<u64> {
    /// Up to here every integer is a number of its own for peers that know floating point only.
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
        /// The id that it answers; errors to unreadable messages have none.
        id: Option<Id>,
        /// The result, or the error object.
        outcome: Result<Raw, Raw>,
    },
}

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Call {
    /// The id.
    pub id: Id,
    /// The method.
    pub method: ByteString,
    /// The params as sent.
    pub params: Option<Raw>,
}

impl Call {
    /// How many bytes it keeps while it is under way.
    pub fn weight(&self) -> usize {
        self.id.as_str().len() + self.params.as_ref().map_or(0, |params| params.as_str().len())
    }
}

/// A message that cannot be taken.
#[derive(Clone, Debug)]
pub enum Unreadable {
    /// No JSON.
    Parse(ParseError),
    /// Several messages in one array.
    Batch(Raw),
    /// JSON, but no message; with the id, where there is a valid one.
    Invalid {
        /// The id to answer with.
        id: Option<Id>,
        /// What is wrong and what would be right.
        why: &'static str,
        /// Nothing is answered, as to a notification.
        silent: bool,
    },
}

/// Bounds of what is read from a peer.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of one message.
    pub message: usize,
    /// Levels of objects and arrays within each other.
    pub depth: usize,
    /// Requests of one session or pipe that may be under way at once.
    pub calls: usize,
    /// Bytes of the requests of one session or pipe that may be under way at once. One alone is taken whatever its
    /// length.
    pub under_way: usize,
    /// Messages in one array, where the revision has that. Their answers together are at most as long as one message.
    pub batch: usize,
    /// Resources that one session or one listen may watch.
    pub watched: usize,
}

impl Default for Limits {
    /// 16 MiB, 128 levels, 1000 requests of 64 MiB, 100 messages in an array, 1000 resources.
    fn default() -> Limits {
        Limits { message: 16 << 20, depth: 128, calls: 1000, under_way: 64 << 20, batch: 100, watched: 1000 }
    }
}

/// Sorts one message.
///
/// # Errors
/// When it is none.
pub fn read(bytes: Bytes, limits: &Limits) -> Result<Message, Unreadable> {
    let raw = Raw::parse(bytes, limits.depth).map_err(Unreadable::Parse)?;
    sort(raw)
}

/// Sorts one message that is known to be JSON.
///
/// # Errors
/// When it is none.
pub fn sort(raw: Raw) -> Result<Message, Unreadable> {
    if raw.starts_with('[') {
        return Err(Unreadable::Batch(raw));
    }
    let invalid = |id: Option<Id>, why| Unreadable::Invalid { id, why, silent: false };
    let mut object = match raw.object() {
        Ok(object) => object,
        Err(_) if raw.starts_with('{') => {
            return Err(invalid(None, "a member of the message stands twice; each may stand once"));
        }
        Err(_) => return Err(invalid(None, "a message is a JSON object with \"jsonrpc\": \"2.0\"")),
    };
    let sent_id = object.take("id");
    let id = sent_id.as_ref().and_then(Id::read);
    let method = object.take("method");
    if object.string("jsonrpc").as_deref() != Some("2.0") {
        let silent = sent_id.is_none() && method.is_some();
        return Err(Unreadable::Invalid { id, why: "\"jsonrpc\" must be \"2.0\"", silent });
    }
    let (result, error) = (object.take("result"), object.take("error"));
    match (method, result, error) {
        (Some(method), None, None) => {
            let Some(method) = method.string() else {
                let silent = sent_id.is_none();
                return Err(Unreadable::Invalid { id, why: "\"method\" must be a string", silent });
            };
            let params = object.take("params");
            match (sent_id, id) {
                (None, _) => Ok(Message::Notification { method, params }),
                (Some(_), Some(id)) => Ok(Message::Request(Call { id, method, params })),
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

/// Whether an array holds more elements than `most`. It is not looked at any further than that.
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

const HEAD: &[u8] = br#"{"jsonrpc":"2.0""#;

fn begin(room: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(room + 64);
    out.extend_from_slice(HEAD);
    out
}

fn member(out: &mut Vec<u8>, name: &str, value: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    out.extend_from_slice(value.as_bytes());
}

/// Writes a result.
pub fn result(id: &Id, result: &Object) -> Bytes {
    let mut out = begin(256);
    member(&mut out, "id", id.as_str());
    out.extend_from_slice(b",\"result\":");
    result.write(&mut out);
    out.push(b'}');
    out.into()
}

/// Writes a request.
pub fn request(id: &Id, method: &str, params: &Object) -> Bytes {
    let mut out = begin(256);
    member(&mut out, "id", id.as_str());
    message_body(out, method, Some(params))
}

/// Writes a notification.
pub fn notification(method: &str, params: Option<&Object>) -> Bytes {
    message_body(begin(128), method, params)
}

fn message_body(mut out: Vec<u8>, method: &str, params: Option<&Object>) -> Bytes {
    out.extend_from_slice(b",\"method\":");
    let _ = serde_json::to_writer(&mut out, method);
    if let Some(params) = params {
        out.extend_from_slice(b",\"params\":");
        params.write(&mut out);
    }
    out.push(b'}');
    out.into()
}

/// The id of an error.
#[derive(Clone, Copy, Debug)]
pub enum ErrorId<'a> {
    /// The request's.
    Of(&'a Id),
    /// None: what could not be read has no id.
    Absent,
    /// `null`, as JSON-RPC itself has it.
    Null,
}

impl ErrorId<'static> {
    /// The id of an error to a message whose own id is not known.
    pub fn unknown(rules: &Rules) -> ErrorId<'static> {
        if rules.null_id_when_unreadable { ErrorId::Null } else { ErrorId::Absent }
    }
}

/// Writes an error.
pub fn error(id: ErrorId<'_>, error: &Object) -> Bytes {
    let mut out = begin(128);
    match id {
        ErrorId::Of(id) => member(&mut out, "id", id.as_str()),
        ErrorId::Null => member(&mut out, "id", "null"),
        ErrorId::Absent => {}
    }
    out.extend_from_slice(b",\"error\":");
    error.write(&mut out);
    out.push(b'}');
    out.into()
}

/// A message in one line: line breaks in JSON are white space, since strings cannot hold them raw.
pub fn one_line(bytes: Bytes) -> Bytes {
    if bytes.iter().any(|b| matches!(b, b'\n' | b'\r')) {
        bytes.iter().map(|b| if matches!(b, b'\n' | b'\r') { b' ' } else { *b }).collect::<Vec<u8>>().into()
    } else {
        bytes
    }
}
