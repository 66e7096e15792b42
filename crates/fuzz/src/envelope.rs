//! Messages.

use bytes::Bytes;
use proto::wire::{self, ErrorId, Id, Limits, Message};
use proto::{FromServer, read_from_server};
use serde_json::Value;

/// A message that is read says what serde_json sees, and written again it is read as the same.
pub(crate) fn read(input: &[u8]) {
    let limits = Limits::default().depth(crate::input::DEPTH);
    let sent = Bytes::copy_from_slice(input);
    // What a server sends is read as far as it has one meaning.
    for heard in read_from_server(sent.clone(), &limits) {
        match heard {
            // It answers nothing, and is written for nobody.
            FromServer::Message(Message::Response { id: None, outcome: Ok(_) }) => {}
            FromServer::Message(message) => again(&message, &limits),
            FromServer::Broken { .. } | FromServer::Rubbish => {}
        }
    }
    let Ok(message) = wire::read(sent.clone(), &limits) else { return };
    let line = wire::one_line(sent);
    assert!(!line.iter().any(|byte| matches!(byte, b'\n' | b'\r')));
    match (&message, wire::read(line, &limits)) {
        (Message::Request(one), Ok(Message::Request(other))) => assert!(one.id == other.id),
        (Message::Notification { method: one, .. }, Ok(Message::Notification { method: other, .. })) => {
            assert_eq!(one, &other);
        }
        (Message::Response { id: one, .. }, Ok(Message::Response { id: other, .. })) => {
            assert!(*one == other)
        }
        (_, other) => panic!("in one line it is {other:?}"),
    }
    again(&message, &limits);
}

fn again(message: &Message, limits: &Limits) {
    match message {
        Message::Request(call) => {
            id(&call.id);
            let Some(params) = call.params.as_ref().and_then(|raw| raw.object().ok()) else { return };
            match wire::read(wire::request(&call.id, &call.method, &params), limits) {
                Ok(Message::Request(read)) => {
                    assert!(read.id == call.id && read.method == call.method);
                    assert!(read.params.and_then(|raw| raw.object().ok()) == Some(params));
                }
                other => panic!("a request is {other:?}"),
            }
        }
        Message::Notification { method, params } => {
            let params = params.as_ref().and_then(|raw| raw.object().ok());
            match wire::read(wire::notification(method, params.as_ref()), limits) {
                Ok(Message::Notification { method: read, params: read_params }) => {
                    assert_eq!(*method, read);
                    assert!(read_params.and_then(|raw| raw.object().ok()) == params);
                }
                other => panic!("a notification is {other:?}"),
            }
        }
        Message::Response { id: sent, outcome } => {
            let written = match (outcome, sent) {
                (Ok(result), Some(id)) => result.object().ok().map(|result| wire::result(id, &result)),
                (Ok(_), None) => panic!("a result without an id"),
                (Err(error), id) => {
                    let id = id.as_ref().map_or(ErrorId::Absent, ErrorId::Of);
                    error.object().ok().map(|error| wire::error(id, &error))
                }
            };
            let Some(written) = written else { return };
            match wire::read(written, limits) {
                Ok(Message::Response { id, outcome: read }) => {
                    assert!(id == *sent && read.is_ok() == outcome.is_ok());
                }
                other => panic!("a response is {other:?}"),
            }
        }
    }
}

/// An id comes back as it was sent, and equals itself however it is written.
fn id(id: &Id) {
    let value: Value = serde_json::from_str(id.as_str()).unwrap_or_default();
    assert!(Id::read(&id.raw()).as_ref() == Some(id));
    if let Some(text) = value.as_str() {
        assert!(Id::read(&proto::Raw::of(&text)).as_ref() == Some(id), "{text}");
    }
}
