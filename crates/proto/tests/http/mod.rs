//! What is done with one HTTP request, without a socket.

mod streams;

use http::{HeaderMap, HeaderName, HeaderValue, Method as Verb, StatusCode};
use proto::Principal;
use proto::downstream::http::{
    Accept, CallResponse, Head, Posted, Refusal, delete, get, head, http_sse, post,
};
use proto::downstream::{Frame, Served};
use proto::wire::Limits;
use serde_json::{Value, json};
use spec::{Revision, Revisions, header as name, meta};
use std::sync::Arc;

use super::{Stub, bytes, parsed};

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let plain = [("content-type", "application/json")];
    let all = plain.iter().chain(pairs);
    all.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())).collect()
}

fn status(refusal: Refusal) -> u16 {
    let response = refusal.response();
    assert!(parsed(response.body())["error"]["message"].is_string());
    response.status().as_u16()
}

/// What is done with a body that is posted, in a word, or the status of the refusal.
fn posted(
    served: Revisions,
    session: Option<Revision>,
    sent: &[(&'static str, &str)],
    body: &Value,
) -> Result<&'static str, u16> {
    let served = Served { service: Arc::new(Stub), revisions: served, limits: Limits::default() };
    let sent = headers(sent);
    let accept = Accept::read(&sent).unwrap();
    let rules = session.map(Revision::rules);
    let posted = post(&sent, bytes(body), accept, rules, &served, &Principal::anonymous());
    posted.map_err(status).map(|posted| match posted {
        Posted::Session(_) => "session",
        Posted::Open { .. } => "open",
        Posted::Call(_, _) => "call",
        Posted::Listen(_, _, _) => "listen",
        Posted::Reply(_) => "reply",
        Posted::Accepted => "accepted",
    })
}

#[test]
fn what_is_posted_goes_to_its_era_and_its_session() {
    let request =
        |method: &str, params: Value| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let modern = Revision::LATEST_MODERN.as_str();
    let marked = json!({"_meta": {meta::PROTOCOL_VERSION: modern, meta::CLIENT_CAPABILITIES: {}}});
    let list = request("tools/list", json!({}));
    let ping = request("ping", json!({}));
    let call = request("tools/list", marked.clone());
    let opening = json!({"protocolVersion": "2025-06-18", "capabilities": {}});
    let initialize = request("initialize", opening);
    let notice = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    let batch = json!([ping.clone()]);
    let mirrored = [(name::PROTOCOL_VERSION, modern), (name::METHOD, "tools/list")];
    let asked = json!({"notifications": {"toolsListChanged": true}, "_meta": marked["_meta"]});
    let listen = request("subscriptions/listen", asked);
    let by_json = [
        ("accept", "application/json"),
        (name::PROTOCOL_VERSION, modern),
        (name::METHOD, "subscriptions/listen"),
    ];
    let (all, legacy) = (Revisions::ALL, Revisions::LEGACY);
    let (named, in_another) =
        ([(name::SESSION_ID, "a")], [(name::SESSION_ID, "a"), (name::PROTOCOL_VERSION, "2025-11-25")]);
    let of_modern = [(name::SESSION_ID, "a"), (name::PROTOCOL_VERSION, modern)];
    let june = Some(Revision::V2025_06_18);
    let march = Some(Revision::V2025_03_26);
    let table: [(_, _, _, &[_], &Value, _); 25] = [
        ("modern", all, None, &mirrored, &call, Ok("call")),
        ("modern without its headers", all, None, &[], &call, Err(400)),
        ("modern where legacy is served", legacy, None, &mirrored, &call, Err(400)),
        ("a listen that takes JSON only", all, None, &by_json, &listen, Err(406)),
        ("a listen", all, None, &by_json[1..], &listen, Ok("listen")),
        ("of no era", all, None, &[], &list, Err(400)),
        ("a ping before the handshake", all, None, &[], &ping, Ok("reply")),
        ("a ping where modern is served", Revisions::MODERN, None, &[], &ping, Err(400)),
        ("a handshake", all, None, &[], &initialize, Ok("open")),
        ("a handshake where modern is served", Revisions::MODERN, None, &[], &initialize, Err(400)),
        ("of a session", all, june, &named, &list, Ok("session")),
        ("of a session, with the mark", all, june, &named, &call, Ok("session")),
        ("of another revision", all, june, &in_another, &list, Err(400)),
        ("a notification of another revision", all, june, &in_another, &notice, Err(400)),
        ("a notification of a modern client", all, june, &of_modern, &notice, Ok("accepted")),
        ("an answer of another revision", all, june, &of_modern, &answer, Err(400)),
        ("of a session that is not open", all, None, &named, &list, Err(404)),
        ("a ping of a session that is not open", all, None, &named, &ping, Err(404)),
        ("a handshake of a client whose session is gone", all, None, &named, &initialize, Ok("open")),
        ("a notification of no session", all, None, &[], &notice, Ok("accepted")),
        ("a notification of one that is not open", all, None, &named, &notice, Err(404)),
        ("an answer of no session", all, None, &[], &answer, Err(400)),
        ("an answer of one that is not open", all, None, &named, &answer, Err(404)),
        ("an array where there are arrays", all, march, &named, &batch, Ok("session")),
        ("an array where there are none", all, june, &named, &batch, Err(400)),
    ];
    for (what, served, session, sent, body, expected) in table {
        assert_eq!(posted(served, session, sent, body), expected, "{what}");
    }
}

#[test]
fn the_method_of_http_says_what_a_request_is_for() {
    let all = Revisions::ALL;
    let of_session = headers(&[(name::SESSION_ID, "a")]);
    let refused = |verb, headers: &HeaderMap, served| head(verb, headers, served).map(|_| ()).map_err(status);
    assert!(matches!(head(&Verb::POST, &headers(&[]), all), Ok(Head::Post(_))));
    assert!(matches!(head(&Verb::GET, &of_session, all), Ok(Head::Get("a"))));
    assert!(matches!(head(&Verb::DELETE, &of_session, all), Ok(Head::Delete("a"))));
    assert_eq!(refused(&Verb::PUT, &of_session, all), Err(405));
    assert_eq!(refused(&Verb::GET, &headers(&[]), all), Err(405), "there is no session to have a stream");
    assert_eq!(refused(&Verb::GET, &of_session, Revisions::MODERN), Err(405));
    assert_eq!(refused(&Verb::POST, &headers(&[("accept", "text/html")]), all), Err(406));
    assert_eq!(refused(&Verb::POST, &HeaderMap::new(), all), Err(415));
    let refusal = head(&Verb::PUT, &of_session, all).unwrap_err().response();
    assert_eq!(refusal.headers()["allow"], "POST");

    let rules = Revision::V2025_06_18.rules();
    let other = headers(&[(name::PROTOCOL_VERSION, "2025-11-25")]);
    let json = headers(&[("accept", "application/json")]);
    assert!(get(&of_session, rules).is_ok() && delete(&json, rules).is_ok());
    assert_eq!(get(&other, rules).map_err(status), Err(400));
    assert_eq!(delete(&other, rules).map_err(status), Err(400));
    assert_eq!(get(&json, rules).map_err(status), Err(406));

    assert_eq!(http_sse::open(&Verb::POST, &of_session).map_err(status), Err(405));
    assert_eq!(http_sse::head(&Verb::GET, &of_session).map_err(status), Err(405));
    assert_eq!(http_sse::message_url("/a/sse/", "7"), "/a/message?session_id=7");
}

#[test]
fn the_first_messages_of_a_modern_request_and_what_its_client_takes_decide_the_form_of_the_response() {
    let (json, stream) = ("application/json", "text/event-stream");
    let both = [json, stream].join(", ");
    let prefers_stream = [stream, json].join(", ");
    let part = || Frame::Part(bytes(&json!({})));
    let last = |status| Frame::Last(status, bytes(&json!({})));
    for (accept, message, expected) in [
        (&*both, part(), "stream"),
        (&both, last(StatusCode::OK), "object 200"),
        (&both, last(StatusCode::NOT_FOUND), "object 404"),
        (&prefers_stream, last(StatusCode::OK), "stream"),
        (&prefers_stream, last(StatusCode::NOT_FOUND), "object 404"),
        (stream, last(StatusCode::OK), "stream"),
        (stream, last(StatusCode::BAD_REQUEST), "object 400"),
        (json, part(), "open"),
        (json, last(StatusCode::OK), "object 200"),
    ] {
        let shown = format!("{accept}: {message:?}");
        let form = match Accept::read(&headers(&[("accept", accept)])).unwrap().response(message) {
            CallResponse::Object(status, _) => format!("object {}", status.as_u16()),
            CallResponse::Stream(_) => "stream".to_owned(),
            CallResponse::Open => "open".to_owned(),
        };
        assert_eq!(form, expected, "{shown}");
    }
}
