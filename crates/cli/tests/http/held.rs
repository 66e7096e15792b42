//! What all clients of an endpoint together may hold, and each address of it.

use std::net::SocketAddr;

use serde_json::{Value, json};
use testkit::{Client, LATEST_LEGACY, LEGACY, WIRES, Wire};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use super::{authority, connected, fetch, head, initialize, session, url, within};
use crate::era::{beside, request};
use crate::{DATELINE, modern};

async fn demo(args: &[&str]) -> Client {
    Client::start(Wire::Http, DATELINE, &[&["demo"], args].concat()).await
}

/// A connection from another address of this machine.
async fn from(address: [u8; 4], url: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((address, 0))).unwrap();
    within("connecting", socket.connect(authority(url).parse().unwrap())).await.unwrap()
}

/// The whole response on a connection.
async fn rest(mut stream: TcpStream) -> String {
    let mut read = Vec::new();
    let _ = within("the end", stream.read_to_end(&mut read)).await;
    String::from_utf8(read).unwrap()
}

/// The refusal for want of room: its status, and that it says when to ask again and what of what there is too much.
fn is_full(answer: &str, status: &str, what: &str) {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no response, but {answer:?}"));
    let head = head.to_ascii_lowercase();
    assert!(
        head.starts_with(&format!("http/1.1 {status} ")) && head.contains("\r\nretry-after: 2"),
        "{answer}"
    );
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["error"]["code"], -32603, "{body}");
    assert!(body["error"]["message"].as_str().unwrap().contains(what), "{body}");
}

#[testkit::test]
async fn http_25_413_comes_from_the_announced_length_and_reaches_a_client_that_still_writes() {
    let server = demo(&["--max-message", "1000"]).await;
    let at = url(&server);
    // Nothing of it has to come first.
    let mut stream = connected(at).await;
    stream.write_all(head(at, "POST", &[], 1 << 30).as_bytes()).await.unwrap();
    let mut read = vec![0; 12];
    within("the refusal", stream.read_exact(&mut read)).await.unwrap();
    assert_eq!(read, b"HTTP/1.1 413");
    // Who reads only once all is written gets to read it, too; also where something else is refused.
    for (headers, status) in
        [(&[][..], "413"), (&[("Content-Type", "text/plain")], "415"), (&[("Host", "x.example")], "403")]
    {
        let mut stream = connected(at).await;
        let body = vec![b' '; 16 << 20];
        stream.write_all(head(at, "POST", headers, body.len()).as_bytes()).await.unwrap();
        within("writing", stream.write_all(&body)).await.unwrap_or_else(|e| panic!("{status}: {e}"));
        within("the refusal", stream.read_exact(&mut read)).await.unwrap();
        assert_eq!(read, format!("HTTP/1.1 {status}").as_bytes());
    }
    // Who asks first whether it may send is not asked for it.
    let mut stream = connected(at).await;
    stream.write_all(head(at, "POST", &[("Expect", "100-continue")], 1 << 30).as_bytes()).await.unwrap();
    within("the refusal", stream.read_exact(&mut read)).await.unwrap();
    assert_eq!(read, b"HTTP/1.1 413");
    assert!(rest(stream).await.contains("1000 bytes"));
}

/// A request of which so much was sent, and not more.
async fn half(mut stream: TcpStream, url: &str, length: usize, sent: usize) -> TcpStream {
    stream.write_all(head(url, "POST", &[], length).as_bytes()).await.unwrap();
    within("writing", stream.write_all(&vec![b' '; sent])).await.unwrap();
    stream
}

/// A message behind so much white space that it has this length.
fn padded(message: &str, length: usize) -> String {
    [&" ".repeat(length - message.len()), message].concat()
}

#[testkit::test]
async fn http_25_unfinished_bodies_hold_so_much_together_and_the_oldest_goes() {
    let mut server = demo(&["--max-held", "4000000", "--max-message", "3000000"]).await;
    let at = url(&server).to_owned();
    let mut open = Vec::new();
    for _ in 0..6 {
        open.push(half(connected(&at).await, &at, 2_500_000, 1_500_000).await);
        // Others are served all the while.
        assert_eq!(server.call("echo", json!({"message": "hi"})).await.said(), "hi");
    }
    // The last one has room, and is done.
    let mut last = open.pop().unwrap();
    let asked = initialize(LATEST_LEGACY).to_string();
    last.write_all(padded(&asked, 1_000_000).as_bytes()).await.unwrap();
    let mut read = vec![0; 12];
    within("the answer", last.read_exact(&mut read)).await.unwrap();
    assert_eq!(read, b"HTTP/1.1 200");
    is_full(&rest(open.remove(0)).await, "503", "others need the room");
    // A length that is only announced takes no room.
    for _ in 0..40 {
        open.push(half(connected(&at).await, &at, 2_900_000, 10).await);
    }
    assert_eq!(server.call("echo", json!({"message": "x".repeat(500_000)})).await.said().len(), 500_000);
}

#[testkit::test]
async fn http_25_one_address_uses_up_its_share_and_pushes_out_its_own() {
    let mut server = demo(&["--max-held", "8000000", "--max-message", "2000000"]).await;
    let at = url(&server).to_owned();
    let (greedy, modest) = ([127, 0, 0, 2], [127, 0, 0, 3]);
    let other = half(from(modest, &at).await, &at, 1_900_000, 900_000).await;
    let first = half(from(greedy, &at).await, &at, 1_900_000, 900_000).await;
    let _second = half(from(greedy, &at).await, &at, 1_900_000, 1_000_000).await;
    is_full(&rest(first).await, "503", "others need the room");
    // The other address goes on, and is answered.
    let mut other = other;
    let asked = initialize(LATEST_LEGACY).to_string();
    other.write_all(padded(&asked, 1_000_000).as_bytes()).await.unwrap();
    let mut read = vec![0; 12];
    within("the answer", other.read_exact(&mut read)).await.unwrap();
    assert_eq!(read, b"HTTP/1.1 200");
    assert_eq!(server.call("echo", json!({"message": "hi"})).await.said(), "hi");
}

#[testkit::test]
async fn http_13_connections_that_wait_for_their_client_make_room_and_those_that_work_do_not() {
    let mut server = demo(&["--max-connections", "8"]).await;
    let at = url(&server).to_owned();
    // Half a head, half a body, and nothing at all.
    let text = [head(&at, "POST", &[], 100), "{".to_owned()].concat();
    let mut open = Vec::new();
    for cut in [0, 20, text.len()].repeat(10) {
        let mut stream = connected(&at).await;
        stream.write_all(&text.as_bytes()[..cut]).await.unwrap();
        open.push(stream);
    }
    assert_eq!(server.call("echo", json!({"message": "hi"})).await.said(), "hi");
    for stream in open.drain(..22) {
        assert_eq!(rest(stream).await, "", "it was closed for others");
    }
    drop(open);
    let mut streams = Vec::new();
    for _ in 0..8 {
        let mut client = beside(&server);
        let wanted = json!({"notifications": {"toolsListChanged": true}});
        let listen = client.begin_as(json!("l"), "subscriptions/listen", wanted).await;
        assert_eq!(client.head(listen).await.status, 200);
        streams.push((client, listen));
    }
    is_full(&rest(connected(&at).await).await, "503", "8 connections");
    for (client, listen) in &mut streams {
        client.disconnect(*listen);
    }
    let served = async { while !fetch_ping(&at).await.starts_with("HTTP/1.1 200") {} };
    within("the end of one makes room", served).await;
}

async fn fetch_ping(at: &str) -> String {
    let body = request(1, "ping", json!({})).to_string();
    let mut stream = connected(at).await;
    let text = [head(at, "POST", &[("Connection", "close")], body.len()), body].concat();
    let _ = stream.write_all(text.as_bytes()).await;
    rest(stream).await
}

#[testkit::test]
async fn http_07_one_address_has_a_share_of_the_sessions_and_ends_its_own() {
    let server = demo(&["--max-sessions", "8", "--share", "25"]).await;
    let at = url(&server).to_owned();
    let mut ours = Vec::new();
    for revision in LEGACY {
        ours.push(session(&server, revision, json!({})).await);
    }
    let asked = initialize(LATEST_LEGACY).to_string();
    let mut theirs = Vec::new();
    for _ in 0..20 {
        let mut stream = from([127, 0, 0, 2], &at).await;
        let text = [head(&at, "POST", &[("Connection", "close")], asked.len()), asked.clone()].concat();
        stream.write_all(text.as_bytes()).await.unwrap();
        let answer = rest(stream).await;
        let id = answer.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
        theirs.push(id.unwrap_or_else(|| panic!("{answer}")).to_owned());
    }
    let ping = request(1, "ping", json!({})).to_string();
    for (number, id) in theirs.iter().enumerate() {
        let due = if number < 18 { 404 } else { 200 };
        assert_eq!(fetch(&at, "POST", &[("Mcp-Session-Id", id)], &ping).await.status, due, "{number}");
    }
    for client in &mut ours {
        client.request("ping", json!({})).await.result();
    }
}

#[testkit::test]
async fn http_13_half_sent_requests_do_not_hold_up_the_end_and_calls_under_way_do() {
    let mut server = demo(&[]).await;
    let at = url(&server).to_owned();
    let called = json!({"name": "countdown", "arguments": {"from": 20, "intervalMs": 100}, "_meta": {"progressToken": 1}});
    let slow = server.begin("tools/call", called).await;
    server.next("notifications/progress").await;
    let body = half(connected(&at).await, &at, 1000, 10).await;
    let mut head_only = connected(&at).await;
    head_only.write_all(b"POST /mcp HT").await.unwrap();
    // All of it has arrived.
    assert_eq!(fetch(&at, "POST", &[], &request(1, "ping", json!({})).to_string()).await.status, 200);
    let pid = server.program.as_ref().unwrap().child.id().unwrap().to_string();
    assert!(std::process::Command::new("kill").args(["-s", "TERM", &pid]).status().unwrap().success());
    is_full(&rest(body).await, "503", "going down");
    assert_eq!(rest(head_only).await, "");
    assert!(server.program.as_mut().unwrap().child.try_wait().unwrap().is_none(), "a call is under way");
    server.reply(&slow).await.result();
    assert_eq!(server.exit().await, Some(0));
}

#[testkit::test]
async fn a_listen_names_so_many_resources_and_none_too_long() {
    for wire in WIRES {
        let mut client = modern(wire).await;
        let uris = |many: usize| (0..many).map(|n| format!("demo://watched/{n}")).collect::<Vec<_>>();
        let filter = |uris: Vec<String>| json!({"notifications": {"resourceSubscriptions": uris}});
        for uris in [uris(1001), vec![format!("demo://{}", "x".repeat(9000))]] {
            let refused = client.request("subscriptions/listen", filter(uris)).await;
            assert_eq!(refused.code(), -32602, "{wire:?}");
            assert!(refused.error()["message"].as_str().unwrap().contains("limit"), "{}", refused.message);
        }
        client.begin("subscriptions/listen", filter(uris(1000))).await;
        client.next("notifications/subscriptions/acknowledged").await;
        assert_eq!(client.call("echo", json!({"message": "hi"})).await.said(), "hi", "{wire:?}");
    }
}
