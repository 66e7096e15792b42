//! The form of an answer: an object or a stream, as `Accept` admits.

use serde_json::{Value, json};
use testkit::{Client, Exchange, LEGACY, MODERN, Wire, header};

use super::{discover, fetch, fetch_modern, id_of, initialize, session, url, with_progress};
use crate::era::{beside, echo, fitting, lent, meta, request};
use crate::modern;

/// The values of Accept, with the forms that each admits.
const ACCEPTS: &[(&str, &[&str])] = &[
    ("application/json, text/event-stream", &["application/json", "text/event-stream"]),
    ("", &["application/json", "text/event-stream"]),
    ("*/*", &["application/json", "text/event-stream"]),
    ("application/json", &["application/json"]),
    ("APPLICATION/JSON", &["application/json"]),
    ("application/*", &["application/json"]),
    ("text/html, application/json;q=0.9", &["application/json"]),
    ("text/event-stream;q=0, application/json", &["application/json"]),
    ("text/event-stream", &["text/event-stream"]),
    ("text/*", &["text/event-stream"]),
    ("text/event-stream, application/json;q=0", &["text/event-stream"]),
    ("text/event-stream;q=0.1, text/html", &["text/event-stream"]),
];

/// Waits for the end of an exchange; gives its kind of content and its messages.
async fn formed(client: &mut Client, exchange: Exchange) -> (u16, String, Vec<Value>) {
    let (head, messages) = client.whole(exchange).await;
    (head.status, header(&head.headers, "content-type").unwrap_or_default().to_owned(), messages)
}

/// Sends a request under each Accept; the answer must have a form that it admits.
async fn in_admitted_forms(
    client: &mut Client,
    asked: &Value,
    headers: &[(&str, &str)],
    accepts: &[(&str, &[&str])],
) {
    for (at, (accept, forms)) in accepts.iter().enumerate() {
        let mut asked = asked.clone();
        asked["id"] = json!(format!("{} {at}", asked["id"]));
        let headers = [headers, &[("accept", *accept)]].concat();
        let exchange = client.send(&asked, &headers).await;
        let (status, kind, messages) = formed(client, exchange).await;
        let told = format!("{asked} accepting {accept:?}: {status} {kind} {}", json!(messages));
        assert_eq!(status, 200, "{told}");
        assert!(forms.contains(&kind.as_str()), "{told}");
        // One response, the last thing that is said; one JSON object is all there is.
        let (last, before) = messages.split_last().unwrap();
        assert_eq!(last["id"], asked["id"], "{told}");
        assert!(last.get("result").is_some() || last.get("error").is_some(), "{told}");
        assert!(before.iter().all(|m| m.get("id").is_none()), "{told}");
        assert!(kind == "text/event-stream" || before.is_empty(), "{told}");
    }
}

#[testkit::test]
async fn http_04_a_request_is_answered_by_an_object_or_a_stream_as_accept_admits() {
    let mut client = modern(Wire::Http).await;
    for (method, params) in [
        ("tools/list", json!({})),
        ("tools/call", json!({"name": "echo", "arguments": {"message": "hi"}})),
        ("tools/call", json!({"name": "none"})),
        ("tools/call", with_progress()),
        ("resources/read", json!({"uri": "demo://none"})),
    ] {
        let asked = request(method, method, client.modern_params(params));
        let fitting = fitting(&asked);
        in_admitted_forms(&mut client, &asked, &lent(&fitting), ACCEPTS).await;
    }
    for revision in LEGACY {
        let mut live = session(&client, revision, json!({})).await;
        for (method, params) in [
            ("tools/list", json!({})),
            ("tools/call", json!({"name": "echo", "arguments": {"message": "hi"}})),
            ("tools/call", json!({"name": "none"})),
            ("tools/call", with_progress()),
        ] {
            in_admitted_forms(&mut live, &request(method, method, params), &[], ACCEPTS).await;
        }
    }
    // A stream says what goes before the answer.
    let streamed = client.request("tools/call", with_progress()).await;
    assert_eq!(streamed.notifications("notifications/progress").len(), 3);
}

#[testkit::test]
async fn http_04_what_is_answered_at_once_has_the_admitted_form_too() {
    let mut client = modern(Wire::Http).await;
    let fitting = [("mcp-protocol-version", MODERN), ("mcp-method", "server/discover")];
    in_admitted_forms(&mut client, &discover("d"), &fitting, ACCEPTS).await;
    for revision in LEGACY {
        in_admitted_forms(&mut beside(&client), &initialize(revision), &[], ACCEPTS).await;
        let mut live = session(&client, revision, json!({})).await;
        for (method, params) in [
            ("ping", json!({})),
            ("logging/setLevel", json!({"level": "info"})),
            ("resources/subscribe", json!({"uri": "demo://welcome"})),
            ("resources/unsubscribe", json!({"uri": "demo://welcome"})),
            ("no/method", json!({})),
        ] {
            in_admitted_forms(&mut live, &request(method, method, params), &[], ACCEPTS).await;
        }
    }
}

#[testkit::test]
async fn http_04_a_form_with_a_weight_of_zero_is_not_admitted_however_it_is_written() {
    let mut client = modern(Wire::Http).await;
    let asked = request("z", "tools/call", echo(meta(MODERN)));
    let fitting = fitting(&asked);
    let accepts: [(&str, &[&str]); 4] = [
        ("text/event-stream, application/json; q=0", &["text/event-stream"]),
        ("text/event-stream, application/json;q=0.0", &["text/event-stream"]),
        ("text/event-stream, application/json;q=0.000", &["text/event-stream"]),
        ("text/event-stream, application/json;Q=0", &["text/event-stream"]),
    ];
    in_admitted_forms(&mut client, &asked, &lent(&fitting), &accepts).await;
}

#[testkit::test]
async fn http_04_no_admitted_form_is_406_and_another_content_type_415() {
    let server = modern(Wire::Http).await;
    let url = url(&server);
    let modern = [request("e", "tools/call", echo(meta(MODERN))), discover("d")];
    let headers = |asked: &Value| fitting(asked).into_iter().collect();
    let mut cases: Vec<(Value, Vec<(&str, String)>)> =
        modern.map(|asked| (asked.clone(), headers(&asked))).to_vec();
    for revision in LEGACY {
        cases.push((initialize(revision), Vec::new()));
        let id = id_of(&session(&server, revision, json!({})).await);
        cases.push((request("l", "tools/list", json!({})), vec![("Mcp-Session-Id", id)]));
    }
    for (asked, own) in &cases {
        let own = lent(own);
        let text = asked.to_string();
        for accept in
            ["text/html", "image/*, text/plain", "application/json;q=0, text/event-stream;q=0", "nonsense"]
        {
            let answer = fetch(url, "POST", &[&own[..], &[("Accept", accept)]].concat(), &text).await;
            assert_eq!((answer.status, answer.error().0), (406, -32600), "{asked} {accept}");
        }
        for kind in [
            "",
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "application/jsonl",
            "text/json",
            "application/json; charset=utf-16",
        ] {
            let answer = fetch(url, "POST", &[&own[..], &[("Content-Type", kind)]].concat(), &text).await;
            assert_eq!((answer.status, answer.error().0), (415, -32600), "{asked} {kind}");
        }
        let utf8 = [&own[..], &[("Content-Type", "Application/JSON; Charset=\"UTF-8\"")]].concat();
        assert_eq!(fetch(url, "POST", &utf8, &text).await.status, 200, "{asked}");
    }
}

#[testkit::test]
async fn http_04_a_listen_that_may_not_be_a_stream_is_406_to_its_id() {
    let server = modern(Wire::Http).await;
    let params = json!({"notifications": {"toolsListChanged": true}, "_meta": meta(MODERN)});
    let asked = request("listen", "subscriptions/listen", params);
    let answer = fetch_modern(url(&server), &asked, &[("Accept", "application/json")]).await;
    assert_eq!((answer.status, answer.error()), (406, (-32600, Some(json!("listen")))));
}
