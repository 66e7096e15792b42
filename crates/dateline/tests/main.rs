//! The examples, run as their readers would run them, and what an author can get wrong.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod author;
mod files;
mod sessions;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dateline::{Args, Http, HttpOptions, Json, Limits, Server, Tool};
use serde_json::json;
use testkit::{Arrival, Client, LATEST_LEGACY, LEGACY, Program, Wire};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// A compiled example.
fn example(name: &str) -> String {
    let mut path: PathBuf = std::env::current_exe().unwrap();
    path.pop();
    path.set_file_name("examples");
    path.join(name).to_str().unwrap().to_owned()
}

#[testkit::test]
async fn hello_greets_clients_of_every_revision() {
    let mut modern = Client::pipe(&example("hello"), &[]);
    assert_eq!(modern.call("greet", json!({"name": "you"})).await.said(), "Hello, you!");
    for revision in LEGACY {
        let mut client = Client::pipe(&example("hello"), &[]);
        let reply = client.handshake(revision, json!({})).await;
        assert_eq!(reply.result()["protocolVersion"], revision);
        assert_eq!(client.call("greet", json!({"name": "you"})).await.said(), "Hello, you!");
    }
}

#[testkit::test]
async fn asking_asks_in_the_way_of_each_era() {
    let program = Program::http(&example("asking"), &["127.0.0.1:0"]).await;
    let url = program.url.as_deref().unwrap();
    let mut modern = Client::connect(url);
    modern.capabilities = json!({"elicitation": {}});
    let asked = modern.call("delete", json!({"name": "a.txt"})).await;
    assert_eq!(asked.result()["resultType"], "input_required");
    let retry = json!({
        "name": "delete",
        "arguments": {"name": "a.txt"},
        "requestState": asked.result()["requestState"],
        "inputResponses": {"sure": {"action": "accept", "content": {"sure": true}}},
    });
    assert_eq!(modern.request("tools/call", retry).await.said(), "a.txt would be gone now");

    let mut legacy = Client::connect(url);
    legacy.handshake(LATEST_LEGACY, json!({"elicitation": {}})).await;
    let id = legacy.begin("tools/call", json!({"name": "delete", "arguments": {"name": "a.txt"}})).await;
    let question = legacy.next("elicitation/create").await;
    assert_eq!(question["params"]["message"], "Delete a.txt?");
    legacy.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}), &[]).await;
    assert_eq!(legacy.reply(&id).await.said(), "a.txt stays");
}

#[testkit::test]
async fn live_tells_of_notes_that_come_change_and_go() {
    let mut modern = Client::pipe(&example("live"), &[]);
    let filter = json!({"resourcesListChanged": true, "resourceSubscriptions": ["board://a"]});
    modern.begin("subscriptions/listen", json!({"notifications": filter})).await;
    modern.next("notifications/subscriptions/acknowledged").await;
    let listed = modern.request("resources/list", json!({})).await;
    assert_eq!(listed.result()["resources"], json!([]));
    assert_eq!(modern.call("pin", json!({"name": "a", "text": "one"})).await.said(), "pinned board://a");
    modern.next("notifications/resources/list_changed").await;
    let read = modern.request("resources/read", json!({"uri": "board://a"})).await;
    assert_eq!(read.result()["contents"][0]["text"], "one");
    assert_eq!(modern.call("pin", json!({"name": "a", "text": "two"})).await.said(), "changed board://a");
    assert_eq!(modern.next("notifications/resources/updated").await["params"]["uri"], "board://a");
    assert_eq!(modern.call("pin", json!({"name": "a"})).await.said(), "taken off");
    modern.next("notifications/resources/list_changed").await;
    assert_eq!(modern.request("resources/read", json!({"uri": "board://a"})).await.code(), -32602);

    let mut legacy = Client::pipe(&example("live"), &[]);
    legacy.handshake(LATEST_LEGACY, json!({})).await;
    legacy.call("pin", json!({"name": "b", "text": "one"})).await;
    legacy.next("notifications/resources/list_changed").await;
    legacy.request("resources/subscribe", json!({"uri": "board://b"})).await.result();
    legacy.call("pin", json!({"name": "b", "text": "two"})).await;
    assert_eq!(legacy.next("notifications/resources/updated").await["params"]["uri"], "board://b");
    assert!(legacy.call("pin", json!({"name": "b c"})).await.result()["isError"] == true);
}

#[testkit::test]
async fn mounted_serves_an_application_and_its_tool_from_one_state() {
    let program = Program::http(&example("mounted"), &["127.0.0.1:0"]).await;
    let url = program.url.as_deref().unwrap();
    let mut modern = Client::connect(url);
    assert_eq!(modern.call("count", json!({"by": 5})).await.result()["structuredContent"]["count"], 5);
    let mut legacy = Client::over(Wire::Sse, url).await;
    legacy.handshake(LEGACY[0], json!({})).await;
    assert_eq!(legacy.call("count", json!({"by": -2})).await.said(), r#"{"count":3}"#);
    let page = testkit::http(&url.replace("/mcp", "/"), "GET", &[], Vec::new()).await.unwrap();
    let page = http_body_util::BodyExt::collect(page.into_body()).await.unwrap().to_bytes();
    assert_eq!(&page[..], b"It stands at 3.\n");
}

#[testkit::test]
async fn raw_passes_on_what_it_was_given_to_the_byte() {
    let mut client = Client::pipe(&example("raw"), &[]);
    let text = r#"{"value":[1.0,1e400,12345678901234567890123],"region":"eu"}"#;
    let params = client.modern_params(json!({"name": "mirror", "arguments": "HERE"}));
    let params = params.to_string().replace("\"HERE\"", text);
    client.unjudged = true; // a number that no type here holds
    client
        .send_text(&format!(r#"{{"jsonrpc":"2.0","id":"m","method":"tools/call","params":{params}}}"#), &[])
        .await;
    let said = client
        .wait("the answer", |a| matches!(a, Arrival::Rubbish(_, line) | Arrival::Message(_, _, line) if line.contains("\"m\"")))
        .await;
    let (Arrival::Rubbish(_, line) | Arrival::Message(_, _, line)) = said else { unreachable!() };
    assert!(line.contains(&format!(r#""structuredContent":{text}"#)), "{line}");
    let refused = client.call("mirror", json!({"region": "eu"})).await;
    assert!(refused.said().contains("value"), "{}", refused.message);
}

#[testkit::test]
async fn booking_goes_on_in_another_process_and_reserves_once() {
    let key = std::env::temp_dir().join(format!("dateline-booking-{}.key", std::process::id()));
    std::fs::write(&key, [7; 32]).unwrap();
    let serve = async || Program::http(&example("booking"), &[key.to_str().unwrap(), "127.0.0.1:0"]).await;
    let (one, other) = (serve().await, serve().await);
    std::fs::remove_file(&key).unwrap();
    let connect = |program: &Program| {
        let mut client = Client::connect(program.url.as_deref().unwrap());
        client.capabilities = json!({"elicitation": {}});
        client
    };
    let (mut first, mut second) = (connect(&one), connect(&other));
    let asked = first.call("book", json!({"seat": "12A"})).await;
    assert_eq!(asked.result()["resultType"], "input_required");
    assert_eq!(first.call("reserved", json!({})).await.said(), "12A");
    let retry = json!({
        "name": "book",
        "arguments": {"seat": "12A"},
        "requestState": asked.result()["requestState"],
        "inputResponses": {"sure": {"action": "accept", "content": {"sure": true}}},
    });
    assert_eq!(second.request("tools/call", retry).await.said(), "12A is booked, by its reservation 1");
    // The other process went on, and did not reserve again.
    assert_eq!(second.call("reserved", json!({})).await.said(), "nothing");
    assert_eq!(first.call("reserved", json!({})).await.said(), "12A");
}

/// Serves a server in this process; gives its URL.
async fn serve(server: Server, options: HttpOptions) -> String {
    let bound = Http::new(server).options(options).bind("127.0.0.1:0").await.unwrap();
    let url = bound.url();
    tokio::spawn(bound.serve());
    url
}

#[testkit::test]
async fn a_handler_that_panics_costs_its_own_call() {
    let server = Server::new("panics", "1")
        .tool(Tool::new("panic", "Panics.", || async {
            if true {
                panic!("on purpose");
            }
        }))
        .tool(Tool::new("fine", "Is fine.", || async { "fine" }))
        .build()
        .unwrap();
    let url = serve(server, HttpOptions::default()).await;
    for legacy in [false, true] {
        let mut client = Client::connect(&url);
        if legacy {
            client.handshake(LATEST_LEGACY, json!({})).await;
        }
        let reply = client.call("panic", json!({})).await;
        assert_eq!(reply.code(), -32603);
        assert!(!reply.text.contains("on purpose"), "what a panic says is not the client's: {}", reply.text);
        assert_eq!(client.call("fine", json!({})).await.said(), "fine");
    }
}

#[testkit::test]
async fn a_result_that_does_not_fit_its_schema_is_the_servers_fault() {
    #[derive(serde::Serialize, schemars::JsonSchema)]
    struct Small {
        #[schemars(range(max = 3))]
        n: u32,
    }
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Given {
        n: u32,
    }
    let echo = |Args(given): Args<Given>| async move { Json(Small { n: given.n }) };
    let server = Server::new("fits", "1").tool(Tool::new("small", "Gives it back.", echo)).build().unwrap();
    let mut client = Client::connect(&serve(server, HttpOptions::default()).await);
    assert_eq!(client.call("small", json!({"n": 3})).await.result()["structuredContent"]["n"], 3);
    assert_eq!(client.call("small", json!({"n": 4})).await.code(), -32603);
}

#[testkit::test]
async fn a_client_that_sends_too_slowly_is_sent_away_and_holds_nobody_up() {
    let server =
        Server::new("slow", "1").tool(Tool::new("fine", "Is fine.", || async { "fine" })).build().unwrap();
    let options = HttpOptions::default().body_timeout(Duration::from_millis(50));
    let url = serve(server, options).await;
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let mut slow = tokio::net::TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{{"
    );
    slow.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(Client::connect(&url).call("fine", json!({})).await.said(), "fine");
    let mut answer = vec![0; 1024];
    let read = tokio::time::timeout(testkit::PATIENCE, slow.read(&mut answer)).await.unwrap().unwrap();
    assert!(String::from_utf8_lossy(&answer[..read]).starts_with("HTTP/1.1 408 "));
}

#[testkit::test]
async fn a_quiet_stream_carries_comments_and_a_long_call_becomes_a_stream() {
    let gate = Arc::new(tokio::sync::Notify::new());
    let opened = Arc::clone(&gate);
    let wait = move || {
        let gate = Arc::clone(&opened);
        async move {
            gate.notified().await;
            "done"
        }
    };
    let server = Server::new("long", "1").tool(Tool::new("wait", "Waits.", wait)).build().unwrap();
    let options = HttpOptions::default().keep_alive(Duration::from_millis(20));
    let mut client = Client::connect(&serve(server, options).await);
    let id = client.begin("tools/call", json!({"name": "wait", "arguments": {}})).await;
    for _ in 0..3 {
        client.wait("a comment", |a| matches!(a, Arrival::Comment(_))).await;
    }
    gate.notify_one();
    let reply = client.reply(&id).await;
    assert_eq!(reply.said(), "done");
    let head = reply.head.unwrap();
    assert_eq!(testkit::header(&head.headers, "content-type"), Some("text/event-stream"));
    assert_eq!(testkit::header(&head.headers, "x-accel-buffering"), Some("no"));
}

#[testkit::test]
async fn the_number_of_requests_under_way_is_limited() {
    let server = Server::new("many", "1")
        .tool(Tool::new("wait", "Waits.", std::future::pending::<String>))
        .tool(Tool::new("fine", "Is fine.", || async { "fine" }))
        .build()
        .unwrap();
    let limits = Limits::default().calls(2);
    let bound = Http::new(server).limits(limits).bind("127.0.0.1:0").await.unwrap();
    let url = bound.url();
    tokio::spawn(bound.serve());
    let mut client = Client::connect(&url);
    client.handshake(LATEST_LEGACY, json!({})).await;
    for _ in 0..2 {
        client.begin("tools/call", json!({"name": "wait", "arguments": {}})).await;
    }
    // Which of the requests arrives last is not said: one of the three is refused, and only that one.
    let third = client.begin("tools/call", json!({"name": "wait", "arguments": {}})).await;
    let refused = client.message("a refusal", |m| m.get("error").is_some()).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("limit"), "{third} {refused}");
}

#[test]
fn a_wrong_definition_is_named_before_anybody_is_served() {
    let build = |tool: Tool| Server::new("wrong", "1").tool(tool).build().err().unwrap().to_string();
    let tool = |name: &str| Tool::new(name, "Does nothing.", || async {});
    assert!(build(tool("no spaces")).contains("no spaces"));
    assert!(build(tool("x").input_schema(json!({"type": "string"}))).contains("object"));
    assert!(
        build(tool("x").input_schema(json!({"type": "object", "properties": {"a": {"type": "nonsense"}}})))
            .contains("x")
    );
    let annotated = json!({"type": "object", "properties": {"a": {"type": "number", "x-mcp-header": "A"}}});
    assert!(build(tool("x").input_schema(annotated)).contains("x-mcp-header"));
    let remote = json!({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:1/schema"}}});
    assert!(build(tool("x").input_schema(remote)).contains("x"));
    let twice = Server::new("wrong", "1").tool(tool("x")).tool(tool("x")).build();
    assert!(twice.err().unwrap().to_string().contains("two tools"));
}

#[testkit::test]
async fn an_endpoint_on_all_addresses_is_served_under_each_and_says_how_names_are_let_in() {
    let server =
        || Server::new("doors", "1").tool(Tool::new("fine", "Is fine.", || async { "fine" })).build();
    let status = async |url: &str, host: &str| {
        let answer = testkit::http(url, "PUT", &[("host", host)], Vec::new()).await.unwrap();
        let status = answer.status().as_u16();
        let body = http_body_util::BodyExt::collect(answer.into_body()).await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    };
    let everywhere = |hosts: Option<Vec<String>>| async {
        let options = HttpOptions::default().hosts(hosts);
        let bound = Http::new(server().unwrap()).options(options).bind("0.0.0.0:0").await.unwrap();
        let port = bound.address().port();
        let page = || async { "a page" };
        tokio::spawn(bound.serve_beside(axum::Router::new().route("/page", axum::routing::put(page))));
        (format!("http://127.0.0.1:{port}/mcp"), format!("http://127.0.0.1:{port}/page"))
    };
    for (hosts, name_is_served) in
        [(Some(vec![]), false), (Some(vec!["app.example".to_owned()]), true), (None, true)]
    {
        let (url, page) = everywhere(hosts.clone()).await;
        for host in ["127.0.0.1", "192.0.2.7:80", "[2001:db8::7]", "localhost"] {
            assert_eq!(status(&url, host).await.0, 405, "{hosts:?} {host}");
            assert_eq!(status(&page, host).await, (200, "a page".to_owned()), "{hosts:?} {host}");
        }
        for at in [&url, &page] {
            let (code, body) = status(at, "app.example").await;
            assert_eq!(code != 403, name_is_served, "{hosts:?}: {body}");
            let says = ["\\\"app.example\\\"", "HttpOptions::hosts", "--allow-host app.example"];
            assert!(name_is_served || says.iter().all(|word| body.contains(word)), "{body}");
        }
    }
}
