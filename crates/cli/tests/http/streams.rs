//! Streams: comments, disconnects, and segments.

use serde_json::{Value, json};
use testkit::matrix::REVISIONS;
use testkit::{Arrival, Between, LEGACY, MODERN, Wire, header};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{connected, discover, head, id_of, is_cancelled, session, url, with_progress, within};
use crate::era::{beside, echo, fitting, lent, meta, request};
use crate::{long_countdown, modern};

#[testkit::test]
async fn http_16_event_streams_are_not_buffered_and_carry_comments() {
    let mut client = modern(Wire::Http).await;
    // One step, and then a minute of silence.
    let quiet = json!({"name": "countdown", "arguments": {"from": 1, "intervalMs": 60000}, "_meta": {"progressToken": 1}});
    let listen = json!({"notifications": {"toolsListChanged": true}});
    let mut open = Vec::new();
    let call = client.begin_as(json!("call"), "tools/call", quiet.clone()).await;
    let listen = client.begin_as(json!("listen"), "subscriptions/listen", listen).await;
    let mut sessions = Vec::new();
    for revision in LEGACY {
        let mut live = session(&client, revision, json!({})).await;
        open.push((sessions.len(), live.exchange("GET", &[], Vec::new()), format!("{revision} GET")));
        open.push((
            sessions.len(),
            live.begin_as(json!(1), "tools/call", quiet.clone()).await,
            revision.to_owned(),
        ));
        sessions.push(live);
    }
    open.push((sessions.len(), call, "modern call".to_owned()));
    open.push((sessions.len(), listen, "modern listen".to_owned()));
    sessions.push(client);
    for (of, exchange, what) in &open {
        let head = sessions[*of].head(*exchange).await;
        assert_eq!(head.status, 200, "{what}");
        assert_eq!(header(&head.headers, "content-type"), Some("text/event-stream"), "{what}");
        assert_eq!(header(&head.headers, "x-accel-buffering"), Some("no"), "{what}");
    }
    for (of, exchange, what) in &open {
        sessions[*of].wait(what, |a| matches!(a, Arrival::Comment(on) if on == exchange)).await;
    }
}

#[testkit::test]
async fn http_24_a_disconnect_cancels_the_call_and_ends_its_stream() {
    let mut server = modern(Wire::Http).await;
    // While it streams.
    let mut client = beside(&server);
    let id = json!("streams");
    let call = client.begin_as(id.clone(), "tools/call", long_countdown()).await;
    client.next("notifications/progress").await;
    client.disconnect(call);
    is_cancelled(&mut server, &id).await;
    let stray = |a: &Arrival| matches!(a, Arrival::Message(_, m, _) if m.get("id").is_some());
    assert!(!client.leftovers().iter().any(stray));
    // Where only the client's half is closed, the rest of the stream holds no answer and ends.
    let id = json!("half");
    let asked = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": server.modern_params(long_countdown())});
    let fit = fitting(&asked);
    let fit = lent(&fit);
    let body = asked.to_string();
    let mut stream = connected(url(&server)).await;
    stream
        .write_all([&head(url(&server), "POST", &fit, body.len()), &body[..]].concat().as_bytes())
        .await
        .unwrap();
    let mut begun = vec![0; 1 << 16];
    within("the first event", stream.read(&mut begun)).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut rest = Vec::new();
    let _ = within("the end", stream.read_to_end(&mut rest)).await;
    assert!(!String::from_utf8_lossy(&rest).contains("counted down"));
    is_cancelled(&mut server, &id).await;
    // While it is silent, in either form. Nothing shows that it has begun: one of many was caught at it.
    for accept in ["application/json", "application/json, text/event-stream"] {
        let caught = async {
            for round in 0.. {
                let id = format!("silent-{round}-{}", accept.len());
                let mut params = long_countdown();
                params.as_object_mut().unwrap().remove("_meta");
                let asked = request(id.clone(), "tools/call", server.modern_params(params));
                let fit = fitting(&asked);
                let mut fit = lent(&fit);
                fit.push(("accept", accept));
                let call = client.send(&asked, &fit).await;
                for _ in 0..10 {
                    server.call("echo", json!({"message": "hi"})).await;
                }
                client.disconnect(call);
                for _ in 0..50 {
                    if server.call("cancelled_calls", json!({})).await.said().contains(&format!("{id:?}")) {
                        return;
                    }
                }
            }
        };
        within("cancelling a silent call", caught).await;
    }
    // Others are not touched by any of this.
    assert_eq!(server.call("echo", json!({"message": "hi"})).await.said(), "hi");
}

/// Reads one response from a connection that stays open; gives its text, and how many reads it took.
async fn read_one(stream: &mut TcpStream) -> (String, usize) {
    let (mut text, mut reads) = (String::new(), 0);
    let mut buffer = vec![0; 1 << 20];
    loop {
        let n = within("a response", stream.read(&mut buffer)).await.unwrap();
        assert!(n > 0, "the connection was closed after {text}");
        text.push_str(std::str::from_utf8(&buffer[..n]).unwrap());
        reads += 1;
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let complete = match length {
            Some(length) => body.len() == length.parse::<usize>().unwrap(),
            None => body.ends_with("\r\n0\r\n\r\n"),
        };
        if complete {
            return (text, reads);
        }
    }
}

/// The bytes of a modern request, for a connection that stays open.
fn bytes(url: &str, asked: &Value, accept: &str) -> Vec<u8> {
    let fit = fitting(asked);
    let mut fit = lent(&fit);
    fit.push(("Accept", accept));
    let body = asked.to_string();
    [head(url, "POST", &fit, body.len()), body].concat().into_bytes()
}

const EITHER: &str = "application/json, text/event-stream";

#[testkit::test]
async fn http_27_a_response_comes_in_one_segment_and_an_event_in_one() {
    let server = modern(Wire::Http).await;
    let url = url(&server);
    let list = request("l", "tools/list", json!({"_meta": meta(MODERN)}));
    let call = request("e", "tools/call", echo(meta(MODERN)));
    let unknown = request("u", "no/method", json!({"_meta": meta(MODERN)}));
    let progress = request("p", "tools/call", server.modern_params(with_progress()));
    let mut stream = connected(url).await;
    testkit::covers(&REVISIONS, Wire::Http, Between::Nothing);
    // The request, its Accept, and how many writes there may be: one an event, with the head before the first and
    // the end of the stream behind the last.
    for (asked, accept, most) in [
        (discover("d"), EITHER, 1),
        (list, EITHER, 1),
        (call.clone(), EITHER, 1),
        (call, "text/event-stream", 1),
        (unknown, EITHER, 1),
        (progress, EITHER, 4),
    ] {
        let asked = bytes(url, &asked, accept);
        for _ in 0..50 {
            stream.write_all(&asked).await.unwrap();
            let (text, reads) = read_one(&mut stream).await;
            assert!(reads <= most, "{reads} reads, {most} are enough: {text}");
        }
    }
    for revision in LEGACY {
        let live = id_of(&session(&server, revision, json!({})).await);
        let body =
            request("e", "tools/call", json!({"name": "echo", "arguments": {"message": "hi"}})).to_string();
        let headers = [("Mcp-Session-Id", &*live), ("Accept", "application/json")];
        let asked = [head(url, "POST", &headers, body.len()), body].concat();
        for _ in 0..50 {
            stream.write_all(asked.as_bytes()).await.unwrap();
            let (text, reads) = read_one(&mut stream).await;
            assert_eq!(reads, 1, "{revision}: {text}");
        }
    }
}

/// Makes one exchange after another on a connection, as long as calls are made on another one; gives their number.
async fn meanwhile(url: &str, call: &[u8], quick: &[u8]) -> usize {
    let (mut one, mut other) = (connected(url).await, connected(url).await);
    let calls = async {
        for _ in 0..40 {
            one.write_all(call).await.unwrap();
            read_one(&mut one).await;
        }
    };
    tokio::pin!(calls);
    let mut exchanges = 0;
    loop {
        let exchange = async {
            other.write_all(quick).await.unwrap();
            read_one(&mut other).await;
        };
        tokio::select! {
            () = &mut calls => return exchanges,
            () = exchange => exchanges += 1,
        }
    }
}

#[testkit::test]
async fn http_27_a_segment_does_not_wait_for_the_acknowledgement_of_another() {
    let server = modern(Wire::Http).await;
    let url = url(&server);
    let call = request("p", "tools/call", server.modern_params(with_progress()));
    let quick = bytes(url, &discover("d"), EITHER);
    // The same calls as one object and as a stream of segments: with Nagle's algorithm the second segment of each
    // stream would wait for a delayed acknowledgement, which takes many times as long as the call. What goes on
    // meanwhile on another connection is the measure, however fast the machine is.
    let objects = meanwhile(url, &bytes(url, &call, "application/json"), &quick).await;
    let streams = meanwhile(url, &bytes(url, &call, EITHER), &quick).await;
    assert!(
        streams <= 4 * objects.max(40),
        "{streams} exchanges went by while calls were streamed, {objects} while they were not"
    );
}
