//! Requests with a place for their id, and what is expected in answer.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::Outcome;
use crate::job::{Ask, Era};

/// Stands in a template where the id comes, which has as many digits.
const PLACE: &str = "!!id!id!";
/// The first id. All have eight digits, so that a template's length does not change.
pub(crate) const FIRST_ID: u32 = 10_000_000;

pub(crate) const MODERN: &str = "2026-07-28";
pub(crate) const LEGACY: &str = "2025-11-25";

/// Text that carries the id in some places.
#[derive(Clone)]
pub(crate) struct Template {
    text: Vec<u8>,
    places: Vec<usize>,
}

impl Template {
    pub(crate) fn new(text: &str) -> Template {
        let places = text.match_indices(PLACE).map(|(at, _)| at).collect();
        Template { text: text.as_bytes().to_vec(), places }
    }

    /// The text with the places.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.text).unwrap_or_default()
    }

    /// The text with this id.
    pub(crate) fn with(&mut self, id: u32) -> &[u8] {
        let digits = id.to_string();
        for at in &self.places {
            self.text[*at..at + PLACE.len()].copy_from_slice(digits.as_bytes());
        }
        &self.text
    }
}

/// A request, and what tells its answer.
#[derive(Clone)]
pub(crate) struct Exchange {
    /// The message.
    pub(crate) message: Template,
    pub(crate) method: &'static str,
    /// The tool that is called.
    pub(crate) name: Option<String>,
    expected: Expected,
}

#[derive(Clone)]
enum Expected {
    /// The text as a JSON string, and whether progress comes before.
    Text { text: Template, progress: bool },
    /// So many tools.
    Tools(usize),
}

/// A text of so many bytes, as JSON. It begins with the id, and has lines, which JSON escapes.
fn text(bytes: usize) -> String {
    let mut text = String::from(PLACE);
    while text.len() < bytes {
        text.push(if text.len() % 64 == 63 { '\n' } else { char::from(b'a' + (text.len() % 26) as u8) });
    }
    serde_json::Value::String(text).to_string()
}

impl Exchange {
    pub(crate) fn new(ask: &Ask, era: Era) -> Exchange {
        let (method, params, expected, name) = match ask {
            Ask::Call { tool, bytes, progress } => {
                let text = text(*bytes);
                let params = format!(r#""name":"{tool}","arguments":{{"text":{text}}}"#);
                let expected = Expected::Text { text: Template::new(&text), progress: *progress };
                ("tools/call", params, expected, Some(tool.clone()))
            }
            Ask::List { tools } => ("tools/list", String::new(), Expected::Tools(*tools), None),
        };
        let token = matches!(expected, Expected::Text { progress: true, .. });
        let message = Template::new(&request(era, method, &params, token));
        Exchange { message, method, name, expected }
    }

    /// Checks the messages that came in answer to a request.
    pub(crate) fn check(&mut self, id: u32, messages: &[&[u8]]) -> Outcome<()> {
        let wrong = |why: &str| {
            let mut shown = format!("{why} in answer to {id}:");
            for message in messages {
                let start = String::from_utf8_lossy(&message[..message.len().min(400)]).into_owned();
                let _ = write!(shown, " {start}");
            }
            shown
        };
        let (answer, before) = messages.split_last().ok_or_else(|| wrong("nothing"))?;
        let progress = matches!(self.expected, Expected::Text { progress: true, .. });
        if before.len() != usize::from(progress) || !before.iter().all(|message| reports(message, id)) {
            return Err(wrong("other messages than expected"));
        }
        let answer: Answer =
            serde_json::from_slice(answer).map_err(|error| wrong(&format!("not an answer ({error})")))?;
        if answer.jsonrpc != "2.0" || answer.id != id || answer.result.is_error {
            return Err(wrong("a wrong answer"));
        }
        match &mut self.expected {
            Expected::Text { text, .. } => match &answer.result.content[..] {
                [Content { kind: "text", text: got }] if same(got, text.with(id)) => Ok(()),
                _ => Err(wrong("another text")),
            },
            Expected::Tools(tools) => {
                let all_have_schemas =
                    answer.result.tools.iter().all(|tool| tool.input_schema.get().starts_with('{'));
                let named = answer.result.tools.iter().any(|tool| tool.name == "echo");
                let whole = answer.result.tools.len() == *tools && answer.result.next_cursor.is_none();
                if all_have_schemas && named && whole { Ok(()) } else { Err(wrong("another list")) }
            }
        }
    }
}

/// Whether two JSON strings are equal. There is more than one way to escape a character.
fn same(got: &RawValue, expected: &[u8]) -> bool {
    got.get().as_bytes() == expected
        || match (serde_json::from_str::<String>(got.get()), serde_json::from_slice::<String>(expected)) {
            (Ok(got), Ok(expected)) => got == expected,
            _ => false,
        }
}

/// A request as text, with a place for its id.
pub(crate) fn request(era: Era, method: &str, params: &str, token: bool) -> String {
    let token = if token { format!(r#""progressToken":{PLACE}"#) } else { String::new() };
    let meta = match era {
        Era::Modern => {
            let comma = if token.is_empty() { "" } else { "," };
            let of = "io.modelcontextprotocol";
            format!(
                r#""_meta":{{"{of}/protocolVersion":"{MODERN}","{of}/clientInfo":{{"name":"load","version":"1"}},"{of}/clientCapabilities":{{}}{comma}{token}}}"#
            )
        }
        Era::Legacy if token.is_empty() => String::new(),
        Era::Legacy => format!(r#""_meta":{{{token}}}"#),
    };
    let comma = if params.is_empty() || meta.is_empty() { "" } else { "," };
    format!(r#"{{"jsonrpc":"2.0","id":{PLACE},"method":"{method}","params":{{{params}{comma}{meta}}}}}"#)
}

/// The request that opens a session.
pub(crate) fn initialize() -> String {
    let client = r#""capabilities":{},"clientInfo":{"name":"load","version":"1"}"#;
    request(Era::Legacy, "initialize", &format!(r#""protocolVersion":"{LEGACY}",{client}"#), false)
}

/// The notification that ends the handshake.
pub(crate) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

#[derive(Deserialize)]
struct Answer<'a> {
    jsonrpc: &'a str,
    id: u32,
    #[serde(borrow)]
    result: Outcomes<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outcomes<'a> {
    #[serde(borrow, default)]
    content: Vec<Content<'a>>,
    #[serde(borrow, default)]
    tools: Vec<Tool<'a>>,
    #[serde(borrow, default)]
    next_cursor: Option<&'a RawValue>,
    #[serde(default)]
    is_error: bool,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    text: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tool<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    input_schema: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Progress {
    progress_token: u32,
    progress: f64,
}

/// A notification's method and, as JSON, its params.
#[derive(Deserialize)]
pub(crate) struct Notification<'a> {
    #[serde(borrow)]
    pub(crate) method: Cow<'a, str>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

/// Whether it is the first report of progress of this request.
fn reports(message: &[u8], id: u32) -> bool {
    let Ok(Notification { method, params: Some(params) }) = serde_json::from_slice(message) else {
        return false;
    };
    let progress = serde_json::from_str::<Progress>(params.get());
    method == "notifications/progress"
        && progress
            .is_ok_and(|progress| progress.progress_token == id && (progress.progress - 1.0).abs() < 1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(progress: bool) -> Exchange {
        Exchange::new(&Ask::Call { tool: "echo".into(), bytes: 100, progress }, Era::Modern)
    }

    /// What a server that is right sends for a request.
    fn answer(exchange: &mut Exchange, id: u32) -> String {
        let request: serde_json::Value =
            serde_json::from_slice(exchange.message.with(id)).unwrap_or_default();
        let content = serde_json::json!([{"type": "text", "text": request["params"]["arguments"]["text"]}]);
        serde_json::json!({"jsonrpc": "2.0", "id": request["id"], "result": {"content": content}}).to_string()
    }

    #[test]
    fn only_the_right_answer_is_taken() {
        let mut exchange = call(false);
        let right = answer(&mut exchange, FIRST_ID);
        assert_eq!(exchange.check(FIRST_ID, &[right.as_bytes()]), Ok(()));
        let escaped = right.replace("\\n", "\\u000a");
        assert_eq!(exchange.check(FIRST_ID, &[escaped.as_bytes()]), Ok(()));
        // The answer to another request has another id and another text.
        let another = answer(&mut exchange, FIRST_ID + 1);
        let mixed = another.replacen("10000001", "10000000", 1);
        let failed = right.replace("\"content\"", "\"isError\":true,\"content\"");
        let cut = right.replace("klm", "kl");
        for wrong in [another, mixed, failed, cut, String::new()] {
            assert!(exchange.check(FIRST_ID, &[wrong.as_bytes()]).is_err(), "{wrong}");
        }
        assert!(exchange.check(FIRST_ID, &[]).is_err());
        assert!(exchange.check(FIRST_ID, &[right.as_bytes(), right.as_bytes()]).is_err());
    }

    #[test]
    fn progress_is_expected_where_it_is_asked_for() {
        let mut exchange = call(true);
        let right = answer(&mut exchange, FIRST_ID);
        let progress = |token: u32| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}"#
            )
        };
        let (own, other) = (progress(FIRST_ID), progress(FIRST_ID + 1));
        assert_eq!(exchange.check(FIRST_ID, &[own.as_bytes(), right.as_bytes()]), Ok(()));
        assert!(exchange.check(FIRST_ID, &[other.as_bytes(), right.as_bytes()]).is_err());
        assert!(exchange.check(FIRST_ID, &[right.as_bytes()]).is_err());
    }
}
