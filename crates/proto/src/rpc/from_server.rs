//! How the messages of servers are read: also damaged ones, as far as they have only one meaning.
//!
//! Servers make mistakes. A damaged message must cost no more than the call that it answers.

use bytes::Bytes;
use bytestring::ByteString;
use serde_json::value::RawValue;
use spec::{Method, Notice, Question};

use crate::json::{Object, ParseError, Raw};
use crate::rpc::outline::Outline;
use crate::rpc::wire::{self, CallKey, Id, Limits, Message};

/// What was read of something that a server sent.
#[derive(Debug)]
pub enum FromServer {
    /// A message.
    Message(Message),
    /// A message that cannot be used.
    Broken {
        /// The call that it answers, where its id was found.
        answers: Option<CallKey>,
        /// What is wrong with it.
        why: String,
    },
    /// A text that is no message, such as a line of a log.
    Rubbish,
}

/// How many `{` of one text are tried as the beginning of a message. Loggers write few of them before a message, and
/// each attempt may read the whole text.
const BEGINNINGS: usize = 8;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// Reads one line, event or body that a server sent.
///
/// Bytes that are not UTF-8 are read as the replacement character U+FFFD. Control characters within strings are
/// accepted. A message may have other text before and after it.
pub fn read_from_server(bytes: Bytes, limits: &Limits) -> Vec<FromServer> {
    let bytes = if bytes.starts_with(BOM) { bytes.slice(BOM.len()..) } else { bytes };
    let text = bytes.trim_ascii();
    if text.is_empty() {
        return Vec::new();
    }
    let why = match Raw::parse(bytes.clone(), limits.depth) {
        Ok(raw) => return all(&raw, limits),
        Err(why) => why,
    };
    if !text.contains(&b'{') {
        return vec![FromServer::Rubbish];
    }
    let broken = |why: &ParseError| {
        let outline = Outline::of(text);
        match outline.answers() {
            None if !outline.is_message() => FromServer::Rubbish,
            answers => FromServer::Broken { answers, why: why.to_string() },
        }
    };
    if matches!(why, ParseError::TooDeep(_)) {
        return vec![broken(&why)];
    }
    let mended = ByteString::from(mended(text));
    match Raw::parse(mended.clone().into_bytes(), limits.depth) {
        Ok(raw) => return all(&raw, limits),
        Err(ParseError::TooDeep(depth)) => return vec![broken(&ParseError::TooDeep(depth))],
        Err(_) => {}
    }
    match within(&mended, limits) {
        // No message was found within the text, so the error of the whole text is the reason.
        found if !found.iter().any(|heard| matches!(heard, FromServer::Message(_))) => vec![broken(&why)],
        found => found,
    }
}

/// Returns the text as UTF-8, with the control characters in strings escaped as JSON requires.
fn mended(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let (mut quoted, mut escaped) = (false, false);
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            c if quoted && c < ' ' => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
                continue;
            }
            _ => {}
        }
        out.push(c);
    }
    out
}

/// Finds the messages in a text that also has other content.
fn within(text: &ByteString, limits: &Limits) -> Vec<FromServer> {
    let mut found = Vec::new();
    let mut rest: &str = text;
    let mut vain = 0;
    while let Some(at) = rest.find('{').filter(|_| vain < BEGINNINGS) {
        rest = &rest[at..];
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<&RawValue>();
        let value = values.next().and_then(Result::ok);
        let end = values.byte_offset();
        let raw = value.and_then(|value| {
            let slice = text.slice_ref(value.get());
            Raw::parse(slice.into_bytes(), limits.depth).ok()
        });
        match raw.as_ref().map(sorted) {
            // An object within a damaged message is no message itself, so the search ends at a damaged one.
            Some(FromServer::Message(message)) => {
                found.push(FromServer::Message(message));
                rest = &rest[end..];
            }
            _ => {
                let outline = Outline::of(rest.as_bytes());
                if outline.is_message() {
                    let why = "the message is not JSON".to_owned();
                    found.push(FromServer::Broken { answers: outline.answers(), why });
                    return found;
                }
                vain += 1;
                rest = &rest[1..];
            }
        }
    }
    found
}

/// Sorts one message, or each message of an array: in a revision with batches a server may answer in an array.
fn all(raw: &Raw, limits: &Limits) -> Vec<FromServer> {
    if !raw.starts_with('[') {
        return vec![sorted(raw)];
    }
    let heard: Vec<FromServer> = raw.array().unwrap_or_default().iter().map(sorted).collect();
    let most = limits.calls.saturating_mul(16);
    if heard.len() > most {
        return vec![FromServer::Broken {
            answers: None,
            why: format!("an array of more than {most} messages"),
        }];
    }
    heard
}

/// Sorts what a server sent by its members. Members that are `null` count as absent.
fn sorted(raw: &Raw) -> FromServer {
    let outline = || Outline::of(raw.as_str().as_bytes());
    let mut object = match raw.object() {
        Ok(object) => object,
        Err(_) if raw.starts_with('{') => {
            return FromServer::Broken {
                answers: outline().answers(),
                why: "a member of the message stands twice; each may stand once".into(),
            };
        }
        Err(_) => return FromServer::Rubbish,
    };
    let take = |object: &mut Object, name: &str| object.take(name).filter(|raw| !raw.is_null());
    let version = object.take("jsonrpc");
    let id = take(&mut object, "id");
    let empty = object.get("result").is_some_and(Raw::is_null);
    let (result, error) = (take(&mut object, "result"), take(&mut object, "error"));
    if let Some(method) = take(&mut object, "method") {
        return asked(version.is_some(), id, &method, take(&mut object, "params"));
    }
    let own = id.as_ref().and_then(Id::own);
    let broken = |why: &str| FromServer::Broken { answers: own, why: why.to_owned() };
    if !version.as_ref().is_none_or(is_two) {
        return if own.is_some() { broken("its \"jsonrpc\" is not \"2.0\"") } else { FromServer::Rubbish };
    }
    let id = own.map(Id::number).or_else(|| id.as_ref().and_then(Id::read));
    match (result, error) {
        // Loggers write objects with an `id` too, so without a version the other members have to fit.
        (Some(result), None) if version.is_some() || (id.is_some() && result.starts_with('{')) => {
            FromServer::Message(Message::Response { id, outcome: Ok(result) })
        }
        (None, Some(error)) if version.is_some() || id.is_some() => {
            FromServer::Message(Message::Response { id, outcome: Err(error) })
        }
        (Some(_), Some(_)) => broken("it has both a \"result\" and an \"error\""),
        (None, None) if version.is_some() && empty => {
            broken("its \"result\" is null, where an object is due")
        }
        (None, None) if version.is_some() => broken("it has neither a \"result\" nor an \"error\""),
        _ => FromServer::Rubbish,
    }
}

/// Reads a request or notification. Without a version it counts only where its method is known.
fn asked(versioned: bool, id: Option<Raw>, method: &Raw, params: Option<Raw>) -> FromServer {
    let Some(method) = method.string() else { return FromServer::Rubbish };
    let known = || {
        Notice::parse(&method).is_some()
            || Question::parse(&method).is_some()
            || Method::parse(&method).is_some()
    };
    if !versioned && !known() {
        return FromServer::Rubbish;
    }
    match id {
        None => FromServer::Message(Message::Notification { method, params }),
        Some(id) => match Id::read(&id) {
            Some(id) => FromServer::Message(Message::Request(wire::Call::new(id, method, params))),
            None => FromServer::Broken {
                answers: None,
                why: format!("its request {method:?} has an id that is neither a string nor an integer"),
            },
        },
    }
}

/// Returns whether a version says 2.0, as a string or as a number.
fn is_two(version: &Raw) -> bool {
    matches!(version.as_str(), "\"2.0\"" | "\"2\"" | "2.0" | "2" | "null")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(text: &[u8]) -> Vec<FromServer> {
        read_from_server(Bytes::copy_from_slice(text), &Limits::default())
    }

    /// The result or error of the one response that is read, for the call 16.
    fn answer(text: &[u8]) -> String {
        match &heard(text)[..] {
            [FromServer::Message(Message::Response { id, outcome })] => {
                assert_eq!(id.as_ref().and_then(Id::as_number), Some(16), "{}", text.escape_ascii());
                let (Ok(raw) | Err(raw)) = outcome;
                raw.as_str().to_owned()
            }
            other => panic!("{}: {other:?}", text.escape_ascii()),
        }
    }

    #[test]
    fn what_has_one_meaning_is_read() {
        let plain = r#"{"a":"b"}"#;
        for text in [
            r#"{"jsonrpc":"2.0","id":16,"result":{"a":"b"}}"#,
            r#"{"jsonrpc":"2.0","id":"16","result":{"a":"b"}}"#,
            r#"{"jsonrpc":"2.0","id":16.0,"result":{"a":"b"}}"#,
            r#"{"jsonrpc":"2.0","id":1.6e1,"result":{"a":"b"}}"#,
            r#"{"jsonrpc":2.0,"id":16,"result":{"a":"b"}}"#,
            r#"{"id":16,"result":{"a":"b"}}"#,
            r#"{"jsonrpc":"2.0","id":16,"result":{"a":"b"},"error":null,"method":null}"#,
            r#"{"jsonrpc":"2.0","id":16,"result":null,"error":{"a":"b"}}"#,
            r#"[{"jsonrpc":"2.0","id":16,"result":{"a":"b"}}]"#,
            "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":16,\"result\":{\"a\":\"b\"}}",
            r#"INFO {done} {"jsonrpc":"2.0","id":16,"result":{"a":"b"}}"#,
            r#"{"jsonrpc":"2.0","id":16,"result":{"a":"b"}} } done"#,
            r#"it's "done": {"level":1}{"jsonrpc":"2.0","id":16,"result":{"a":"b"}}"#,
        ] {
            assert_eq!(answer(text.as_bytes()), plain, "{text}");
        }
        let lossy = answer(b"{\"jsonrpc\":\"2.0\",\"id\":16,\"result\":{\"a\":\"b\xe9\"}}");
        assert_eq!(lossy, "{\"a\":\"b\u{fffd}\"}");
        let control = answer(b"{\"jsonrpc\":\"2.0\",\"id\":16,\"result\":{\"a\":\"b\n\x01\\\"\"}}");
        assert_eq!(control, r#"{"a":"b\u000a\u0001\""}"#);
    }

    #[test]
    fn of_what_cannot_be_read_the_call_is_found() {
        let deep = format!(r#"{{"jsonrpc":"2.0","id":16,"result":{}{}}}"#, "[".repeat(200), "]".repeat(200));
        for (text, due) in [
            (r#"{"jsonrpc":"2.0","id":16,"result":{"a":NaN}}"#, "not JSON"),
            (r#"{"result":{"id":3,"a":Infinity},"id":"16","jsonrpc":"2.0"}"#, "not JSON"),
            (r#"{"jsonrpc":"2.0","id":16,"result":{"a":"#, "not JSON"),
            (r#"{"jsonrpc":"2.0","id":16,"result":{},"result":{}}"#, "stands twice"),
            (r#"{"jsonrpc":"2.0","id":16,"result":{},"error":{}}"#, "both"),
            (r#"{"jsonrpc":"2.0","id":16}"#, "neither"),
            (r#"{"jsonrpc":"2.0","id":16,"result":null}"#, "null"),
            (r#"{"jsonrpc":"1.0","id":16,"result":{}}"#, "jsonrpc"),
            (&deep, "nests deeper"),
            (r#"{"jsonrpc":"2.0","id":16,"result":{"a":NaN,"b":{"id":17,"result":{}}}}"#, "not JSON"),
        ] {
            match &heard(text.as_bytes())[..] {
                [FromServer::Broken { answers: Some(16), why }] => {
                    assert!(why.contains(due), "{text}: {why}")
                }
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn what_is_no_message_is_rubbish() {
        for text in [
            "a line",
            "{",
            "{'a': 1}",
            "[]]",
            "3",
            r#"{"level":30,"id":16,"msg":"x"}"#,
            r#"{"id":16,"result":"ok"}"#,
            r#"{"method":"GET","id":3}"#,
            r#"{"a":{"jsonrpc":"2.0","id":16}}"#,
        ] {
            assert!(
                heard(text.as_bytes()).iter().all(|heard| matches!(heard, FromServer::Rubbish)),
                "{text}"
            );
        }
        assert!(heard(b" ").is_empty());
    }

    #[test]
    fn a_request_is_no_answer_whatever_its_id() {
        assert!(matches!(
            &heard(br#"{"jsonrpc":"2.0","id":16,"method":"x","params":{"a":NaN}}"#)[..],
            [FromServer::Broken { answers: None, .. }]
        ));
        let ping = format!(r#"{{"id":16,"method":"{}","params":null}}"#, Method::Ping.wire());
        assert!(matches!(
            &heard(ping.as_bytes())[..],
            [FromServer::Message(Message::Request(wire::Call { params: None, .. }))]
        ));
    }
}
