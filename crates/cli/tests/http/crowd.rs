//! Many clients, and clients that vanish.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Arrival, Client, LEGACY, Wire, header, sse_url};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use super::resume::open_files;
use super::{connected, head, id_of, initialize, is_cancelled, session, url, within};
use crate::era::{beside, request};
use crate::{long_countdown, modern};

/// How many sessions there are at once.
const CROWD: usize = 2000;

async fn settle(server: &Client, files: usize) {
    let settled = async {
        while open_files(server) != files {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    within(&format!("{files} open files, of {}", open_files(server)), settled).await;
}

/// Posts on a connection of its own; gives the session that the answer names.
async fn post(url: &str, session: Option<&str>, message: &Value) -> Option<String> {
    let mut headers =
        vec![("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
    headers.extend(session.map(|id| ("mcp-session-id", id)));
    let response = testkit::http(url, "POST", &headers, message.to_string().into_bytes()).await.unwrap();
    assert!(response.status().is_success(), "{}", response.status());
    header(response.headers(), "mcp-session-id").map(str::to_owned)
}

#[testkit::test]
async fn http_13_two_thousand_sessions_with_a_stream_each_cost_a_file_each_and_are_each_told_once() {
    let mut server = modern(Wire::Http).await;
    let quiet = open_files(&server);
    let at = url(&server).to_owned();
    // Connections that wait to be accepted are few.
    let room = std::sync::Arc::new(Semaphore::new(64));
    let opening: Vec<_> = (0..CROWD)
        .map(|number| {
            let (at, room) = (at.clone(), std::sync::Arc::clone(&room));
            tokio::spawn(async move {
                let _room = room.acquire_owned().await.unwrap();
                let revision = LEGACY[number % LEGACY.len()];
                let id = post(&at, None, &initialize(revision)).await.unwrap();
                post(&at, Some(&id), &json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
                let mut client = Client::connect(&at);
                (client.session, client.revision) = (Some(id), Some(revision));
                let stream = client.exchange("GET", &[("accept", "text/event-stream")], Vec::new());
                assert_eq!(client.head(stream).await.status, 200);
                (client, stream)
            })
        })
        .collect();
    let mut clients = Vec::new();
    for opened in opening {
        clients.push(opened.await.unwrap());
    }
    settle(&server, quiet + CROWD).await;
    server.call("test_trigger_tool_change", json!({})).await.result();
    server.call("test_trigger_prompt_change", json!({})).await.result();
    let told = |a: &Arrival| matches!(a, Arrival::Message(..));
    for (client, _) in &mut clients {
        client.next("notifications/prompts/list_changed").await;
        let before = client.leftovers();
        assert_eq!(before.iter().filter(|a| told(a)).count(), 1, "one change of tools: {before:?}");
    }
    for (client, stream) in &mut clients {
        client.disconnect(*stream);
    }
    settle(&server, quiet).await;
    // All sessions are still there; what is said now waits for whoever comes back.
    let id = id_of(&clients[CROWD - 1].0);
    assert_eq!(post(&at, Some(&id), &request("p", "ping", json!({}))).await, None);
}

#[testkit::test]
async fn http_a_client_that_vanishes_leaves_no_connection_and_its_session_can_be_ended() {
    let mut server = modern(Wire::Http).await;
    let quiet = open_files(&server);
    for revision in LEGACY {
        let mut all = Vec::new();
        for number in 0..20 {
            let mut live = session(&server, revision, json!({"sampling": {}})).await;
            let mut streams = vec![live.exchange("GET", &[("accept", "text/event-stream")], Vec::new())];
            let long = json!(format!("{revision}/{number}"));
            streams.push(live.begin_as(long, "tools/call", long_countdown()).await);
            live.next("notifications/progress").await;
            let asking = json!({"name": "test_sampling", "arguments": {"prompt": "?"}});
            streams.push(live.begin_as(json!("ask"), "tools/call", asking).await);
            live.next("sampling/createMessage").await;
            live.head(streams[0]).await;
            all.push((live, streams));
        }
        settle(&server, quiet + 60).await;
        for (live, streams) in &mut all {
            streams.iter().for_each(|stream| live.disconnect(*stream));
        }
        settle(&server, quiet).await;
        // The calls go on, since nobody has cancelled them, until the session ends.
        for (number, (live, _)) in all.iter().enumerate() {
            let mut last = beside(&server);
            (last.session, last.revision) = (live.session.clone(), live.revision);
            let deleted = last.exchange("DELETE", &[], Vec::new());
            assert_eq!(last.head(deleted).await.status, 200, "{revision}");
            is_cancelled(&mut server, &json!(format!("{revision}/{number}"))).await;
        }
        settle(&server, quiet).await;
    }
}

/// Opens an event stream by GET, and waits for its head.
async fn opened(at: &str, session: &str) -> TcpStream {
    let mut stream = connected(at).await;
    let headers = [("Mcp-Session-Id", session), ("Accept", "text/event-stream")];
    stream.write_all(head(at, "GET", &headers, 0).as_bytes()).await.unwrap();
    let mut text = String::new();
    while !text.contains("\r\n\r\n") {
        let mut buffer = vec![0; 1 << 12];
        let read = within("the head", stream.read(&mut buffer)).await.unwrap();
        text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
    }
    assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
    stream
}

#[testkit::test]
async fn http_13_streams_end_in_good_order_with_the_server() {
    for signal in ["TERM", "INT"] {
        let mut server = modern(Wire::Http).await;
        let mut streams = Vec::new();
        for revision in LEGACY {
            let live = session(&server, revision, json!({})).await;
            streams.push((revision, opened(url(&server), &id_of(&live)).await));
            streams.push((revision, opened(&sse_url(url(&server)), "").await));
        }
        let pid = server.program.as_ref().unwrap().child.id().unwrap().to_string();
        assert!(std::process::Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
        for (revision, mut stream) in streams {
            let mut rest = Vec::new();
            within("the end", stream.read_to_end(&mut rest)).await.unwrap();
            let rest = String::from_utf8(rest).unwrap();
            assert!(rest.ends_with("0\r\n\r\n"), "{signal} {revision}: it is cut off: {rest:?}");
        }
        assert_eq!(server.exit().await, Some(0), "{signal}");
    }
}
