//! Limits: sizes, nesting, and slow senders.

use serde_json::{Value, json};
use testkit::{Client, LATEST_LEGACY, LEGACY, MODERN, Wire};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{connected, fetch, head, id_of, session, told, url, within};
use crate::era::{echo, meta, request};
use crate::{DATELINE, modern};

/// A modern echo whose text has exactly so many bytes.
fn sized(bytes: usize) -> String {
    let asked = request("sized", "tools/call", echo(meta(MODERN))).to_string();
    format!("{asked}{}", " ".repeat(bytes - asked.len()))
}

/// A request of so many levels of objects within each other.
fn nested(id: &str, mut levels: usize, marked: bool) -> String {
    let mut asked = request(id, "tools/call", echo(meta(MODERN)));
    if !marked {
        asked["params"].as_object_mut().unwrap().remove("_meta");
    }
    asked["params"]["arguments"]["deep"] = json!("DEEP");
    levels -= 3;
    let deep = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    asked.to_string().replace("\"DEEP\"", &deep)
}

#[testkit::test]
async fn http_25_a_body_over_the_limit_is_413_and_the_process_lives_on() {
    const LIMIT: usize = 1000;
    let mut server = Client::start(Wire::Http, DATELINE, &["demo", "--max-message", "1000"]).await;
    let at = url(&server).to_owned();
    let fit = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", "echo")];
    let mut sessions = vec![String::new()];
    for revision in LEGACY {
        sessions.push(id_of(&session(&server, revision, json!({})).await));
    }
    for session in &sessions {
        let in_session = [("Mcp-Session-Id", session.as_str())];
        let headers = if session.is_empty() { &fit[..] } else { &in_session };
        assert_eq!(fetch(&at, "POST", headers, &sized(LIMIT)).await.status, 200);
        for size in [LIMIT + 1, 5_000_000] {
            let answer = fetch(&at, "POST", headers, &sized(size)).await;
            assert_eq!((answer.status, answer.error()), (413, (-32600, None)), "{size}");
            assert!(answer.body.contains("1000"), "it tells the limit: {}", answer.body);
        }
        // A body whose length is not told beforehand.
        for (size, status) in [(LIMIT, 200), (LIMIT + 1, 413)] {
            let chunked = [headers, &[("Transfer-Encoding", "chunked"), ("Content-Length", "")]].concat();
            let chunked = [&chunked[..], &[("Connection", "close")]].concat();
            let body = format!("{size:x}\r\n{}\r\n0\r\n\r\n", sized(size));
            let answer = told(&at, [head(&at, "POST", &chunked, 0), body].concat().as_bytes()).await;
            assert_eq!(answer.status, status, "{size}: {}", answer.body);
        }
        // It is refused as soon as it is too long: nobody waits for the rest of it.
        let mut stream = connected(&at).await;
        let begun = [head(&at, "POST", headers, 1 << 40), sized(LIMIT + 1)].concat();
        stream.write_all(begun.as_bytes()).await.unwrap();
        let mut read = vec![0; 12];
        within("the refusal", stream.read_exact(&mut read)).await.unwrap();
        assert_eq!(read, b"HTTP/1.1 413");
    }
    assert_eq!(server.call("echo", json!({"message": "hi"})).await.said(), "hi");
    assert!(server.program.as_mut().unwrap().child.try_wait().unwrap().is_none());
}

#[testkit::test]
async fn http_25_nesting_over_the_limit_is_400_and_the_process_lives_on() {
    let mut server = modern(Wire::Http).await;
    let fit = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", "echo")];
    let mut peers = vec![(MODERN, String::new())];
    for revision in LEGACY {
        peers.push((revision, id_of(&session(&server, revision, json!({})).await)));
    }
    for (revision, session) in &peers {
        let (modern, session) = (session.is_empty(), ("Mcp-Session-Id", session.as_str()));
        let headers = if modern { fit.to_vec() } else { vec![session] };
        let url = url(&server);
        let answer = fetch(url, "POST", &headers, &nested("deep", 128, modern)).await;
        assert_eq!((answer.status, &answer.json()["id"]), (200, &json!("deep")), "{revision}");
        for text in
            [nested("deeper", 129, modern), nested("deepest", 1_000_000, modern), "[".repeat(1_000_000)]
        {
            let answer = fetch(url, "POST", &headers, &text).await;
            let (code, id) = answer.error();
            assert_eq!((answer.status, code), (400, -32700), "{revision}: {}", answer.body);
            assert!(matches!(id, None | Some(Value::Null)), "{revision}: {id:?}");
        }
    }
    assert_eq!(server.call("echo", json!({"message": "hi"})).await.said(), "hi");
    assert!(server.program.as_mut().unwrap().child.try_wait().unwrap().is_none());
}

#[testkit::test]
async fn http_25_a_slow_sender_holds_up_nobody_else() {
    let mut server = modern(Wire::Http).await;
    let at = url(&server).to_owned();
    let fit = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", "echo")];
    let whole =
        [head(&at, "POST", &[&fit[..], &[("Connection", "close")]].concat(), 500), sized(500)].concat();
    // Some that stop within the head, some within the body.
    let mut slow = Vec::new();
    for cut in [1, 20, whole.len() - 500, whole.len() - 499, whole.len() - 1].repeat(20) {
        let mut stream = connected(&at).await;
        stream.write_all(&whole.as_bytes()[..cut]).await.unwrap();
        slow.push((stream, cut));
    }
    for _ in 0..20 {
        assert_eq!(server.call("echo", json!({"message": "hi"})).await.said(), "hi");
    }
    let mut live = session(&server, LATEST_LEGACY, json!({})).await;
    assert_eq!(live.call("echo", json!({"message": "hi"})).await.said(), "hi");
    // Those who were slow are served when they are done.
    for (mut stream, cut) in slow {
        stream.write_all(&whole.as_bytes()[cut..]).await.unwrap();
        let mut text = String::new();
        within("the late answer", stream.read_to_string(&mut text)).await.unwrap();
        assert!(text.starts_with("HTTP/1.1 200") && text.contains("\"hi\""), "{cut}: {text}");
    }
}

#[testkit::test]
async fn a_message_of_megabytes_is_taken_where_nothing_is_configured() {
    let mut server = modern(Wire::Http).await;
    let long = "x".repeat(8 << 20);
    assert_eq!(server.call("echo", json!({"message": long})).await.said(), long);
    for revision in LEGACY {
        let mut live = session(&server, revision, json!({})).await;
        assert_eq!(live.call("echo", json!({"message": long})).await.said(), long, "{revision}");
    }
}
