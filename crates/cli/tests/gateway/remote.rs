//! Upstreams behind a URL: HTTP+SSE, streams that break off, and servers that are there again.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use testkit::{Client, LATEST_LEGACY, LEGACY, MODERN, PATIENCE, Program, WIRES, Wire};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::{ERAS, another, listed, through, through_at_once};
use crate::DATELINE;

/// Passes connections on to a server, and notes what is asked of it.
pub(super) struct Relay {
    authority: String,
    asked: Arc<Mutex<String>>,
    target: watch::Sender<String>,
    /// Connections end when it changes.
    cuts: watch::Sender<u32>,
}

impl Relay {
    pub(super) async fn start(program: &Program) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let authority = listener.local_addr().unwrap().to_string();
        let relay = Relay {
            authority,
            asked: Arc::default(),
            target: watch::channel(String::new()).0,
            cuts: watch::channel(0).0,
        };
        relay.turn(program);
        let (asked, target, cuts) =
            (Arc::clone(&relay.asked), relay.target.subscribe(), relay.cuts.subscribe());
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let (asked, mut cuts, target) = (Arc::clone(&asked), cuts.clone(), target.borrow().clone());
                cuts.mark_unchanged();
                tokio::spawn(async move {
                    let Ok(far) = TcpStream::connect(target).await else { return };
                    tokio::select! {
                        () = pass(near, far, &asked) => {}
                        _ = cuts.changed() => {}
                    }
                });
            }
        });
        relay
    }

    /// Passes connections on to this server from now on.
    fn turn(&self, program: &Program) {
        let url = program.url.as_deref().unwrap();
        self.target.send_replace(url.split('/').nth(2).unwrap().to_owned());
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.authority)
    }

    /// Cuts all connections.
    fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// The requests so far: verb and path of each.
    fn requests(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        let lines = asked.lines().filter_map(|line| line.strip_suffix(" HTTP/1.1"));
        lines.map(|line| line.split('?').next().unwrap().to_owned()).collect()
    }

    /// The values of a header so far.
    pub(super) fn headers(&self, name: &str) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        let lines = asked.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).collect()
    }
}

/// Passes bytes both ways until either side ends.
async fn pass(near: TcpStream, far: TcpStream, asked: &Mutex<String>) {
    let ((mut near_in, mut near_out), (mut far_in, mut far_out)) = (near.into_split(), far.into_split());
    let up = async {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(read @ 1..) = near_in.read(&mut buffer).await {
            asked.lock().unwrap().push_str(&(String::from_utf8_lossy(&buffer[..read]) + "\n"));
            if far_out.write_all(&buffer[..read]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = up => {}
        _ = tokio::io::copy(&mut far_in, &mut near_out) => {}
    }
}

pub(super) async fn demo_at(era: &str) -> Program {
    let era: &[&str] = if era == "dual" { &[] } else { &["--era", era] };
    Program::http(DATELINE, &[&["demo", "--listen", "127.0.0.1:0"], era].concat()).await
}

async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.unwrap_or_else(|_| panic!("{what}: it takes too long"))
}

/// Calls until it works.
async fn back(client: &mut Client, tool: &str) {
    let trying = async {
        loop {
            let reply = client.call(tool, json!({"message": "back"})).await;
            if reply.message.get("result").is_some() {
                assert_eq!(reply.said(), "back");
                return;
            }
        }
    };
    within("the server is back", trying).await;
}

fn paris() -> Value {
    json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}})
}

/// What goes through a gateway to the demo that is its one server.
async fn all_passes(client: &mut Client, told: &str) {
    let tools = listed(client, "tools", "name").await;
    assert!(
        tools.contains(&"echo".to_owned()) && tools.contains(&"countdown".to_owned()),
        "{told}: {tools:?}"
    );
    assert!(listed(client, "resources", "uri").await.contains(&"demo://welcome".to_owned()), "{told}");
    let read = client.request("resources/read", json!({"uri": "demo://welcome"})).await;
    assert_eq!(read.result()["contents"][0]["text"], "This is dateline's demo server.", "{told}");
    assert_eq!(client.call("echo", json!({"message": "hi"})).await.said(), "hi", "{told}");
    let counting = json!({"name": "countdown", "arguments": {"from": 2, "intervalMs": 1}, "_meta": {"progressToken": "t"}});
    let reply = client.request("tools/call", counting).await;
    assert_eq!(reply.said(), "counted down from 2", "{told}");
    let steps: Vec<_> = reply
        .notifications("notifications/progress")
        .iter()
        .map(|m| m["params"]["progress"].as_f64())
        .collect();
    assert_eq!(steps, [Some(0.0), Some(1.0), Some(2.0)], "{told}");
    // A question, in the way of the client's era.
    let mut asking = json!({"name": "test_sampling", "arguments": {"prompt": "?"}});
    let id = client.begin("tools/call", asking.clone()).await;
    let reply = if client.revision.is_some() {
        let question = client.next("sampling/createMessage").await;
        client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": paris()}), &[]).await;
        client.reply(&id).await
    } else {
        let reply = client.reply(&id).await;
        asking["requestState"] = reply.result()["requestState"].clone();
        let key = reply.result()["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
        asking["inputResponses"] = json!({key: paris()});
        client.request("tools/call", asking).await
    };
    assert_eq!(reply.said(), "LLM response: Paris", "{told}");
}

/// Cancels a call in the way of the client's era; the demo notes that it was cancelled.
async fn cancel_reaches(client: &mut Client, wire: Wire, told: &str) {
    let before = client.call("cancelled_calls", json!({})).await.said().split_whitespace().count();
    let id = client.id();
    let exchange = client.begin_as(id.clone(), "tools/call", crate::long_countdown()).await;
    client.next("notifications/progress").await;
    if wire == Wire::Http && client.revision.is_none() {
        client.disconnect(exchange);
    } else {
        client.notify("notifications/cancelled", json!({"requestId": id})).await;
    }
    let noted = async {
        while client.call("cancelled_calls", json!({})).await.said().split_whitespace().count() == before {}
    };
    within(&format!("{told}: the cancellation arrives"), noted).await;
}

#[testkit::test]
async fn prox_08_an_upstream_of_http_sse_is_found_out_or_named_and_all_passes() {
    let upstream = demo_at("dual").await;
    for named in [false, true] {
        for (wire, revision) in WIRES.into_iter().flat_map(|wire| ERAS.map(|revision| (wire, revision))) {
            let told = format!("{wire:?} {revision}, named: {named}");
            let relay = Relay::start(&upstream).await;
            let mut entry = json!({"url": relay.url("/sse")});
            if named {
                entry["type"] = json!("sse");
            }
            let mut client = through(wire, &[("far", entry)], revision, json!({"sampling": {}})).await;
            let found = relay.requests();
            // The modern probe, the handshake, and only then the old way.
            let due: &[&str] = if named { &["GET /sse"] } else { &["POST /sse", "POST /sse", "GET /sse"] };
            assert_eq!(found[..due.len()], *due, "{told}");
            assert!(found[due.len()..].iter().all(|asked| asked == "POST /message"), "{told}: {found:?}");
            all_passes(&mut client, &told).await;
            cancel_reaches(&mut client, wire, &told).await;
            assert!(relay.headers("mcp-session-id").is_empty(), "{told}: the session is in the URL");
        }
    }
}

#[testkit::test]
async fn an_upstream_of_http_sse_that_is_killed_fails_its_calls_at_once_and_is_back() {
    let mut upstream = demo_at("dual").await;
    let relay = Relay::start(&upstream).await;
    let entry = json!({"url": relay.url("/sse"), "type": "sse"});
    let mut client = through(Wire::Http, &[("far", entry)], LATEST_LEGACY, json!({"sampling": {}})).await;
    let mut modern = another(&client, MODERN, json!({})).await;
    for round in 0..2 {
        let mut calls = Vec::new();
        for client in [&mut client, &mut modern] {
            calls.push(client.id());
            client.begin_as(calls.last().unwrap().clone(), "tools/call", crate::long_countdown()).await;
            client.next("notifications/progress").await;
        }
        // Once by the end of the process, once by that of the connection.
        if round == 0 {
            upstream.child.kill().await.unwrap();
        } else {
            relay.cut();
        }
        for (client, id) in [&mut client, &mut modern].into_iter().zip(calls) {
            let reply = client.reply(&id).await;
            // The message says which of all servers it was.
            assert!(
                reply.error()["message"].as_str().unwrap().contains(&relay.url("/sse")),
                "{}",
                reply.message
            );
        }
        if round == 0 {
            upstream = demo_at("dual").await;
            relay.turn(&upstream);
        }
        back(&mut client, "echo").await;
        back(&mut modern, "echo").await;
        all_passes(&mut client, "back").await;
    }
}

/// A server of HTTP+SSE that opens its stream with these words and answers what is posted as it is told to.
struct Fake {
    url: String,
    /// What was posted: the path and the message.
    posts: Arc<Mutex<Vec<(String, Value)>>>,
}

/// What a fake server does with what is posted.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    /// It answers on the stream.
    Sound,
    /// It takes the handshake and lists, and refuses calls with this status.
    Refuses(u16),
    /// It ends its stream when it is called.
    Leaves,
}

/// A response of a server that has one tool.
fn answer(message: &Value) -> Option<Value> {
    let result = match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": "2024-11-05",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "fake", "version": "1"},
        }),
        "tools/list" => json!({"tools": [{"name": "tool", "inputSchema": {"type": "object"}}]}),
        "tools/call" => json!({"content": [{"type": "text", "text": "done"}]}),
        _ => return None,
    };
    message.get("id").map(|id| json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

/// How an event is written that carries a message: with all that the format allows.
fn event(message: &Value) -> String {
    let text = message.to_string();
    let (one, rest) = text.split_at(text.find(',').unwrap() + 1);
    format!(
        ": a comment\r\nretry: 10\r\nid: 1\r\ndata: {one}\r\ndata:{rest}\r\n\r\nevent: other\r\ndata: {text}\r\n\r\n"
    )
}

impl Fake {
    async fn start(opening: &str, manner: Manner) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let authority = listener.local_addr().unwrap().to_string();
        let opening = opening.replace("AUTHORITY", &authority);
        let posts: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
        let noted = Arc::clone(&posts);
        let (out, events) = tokio::sync::broadcast::channel::<Option<String>>(64);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (events, out) = (events.resubscribe(), out.clone());
                tokio::spawn(serve(stream, opening.clone(), manner, Arc::clone(&noted), out, events));
            }
        });
        Fake { url: format!("http://{authority}/stream"), posts }
    }
}

async fn serve(
    mut stream: TcpStream,
    opening: String,
    manner: Manner,
    noted: Arc<Mutex<Vec<(String, Value)>>>,
    out: tokio::sync::broadcast::Sender<Option<String>>,
    mut events: tokio::sync::broadcast::Receiver<Option<String>>,
) {
    let mut text = String::new();
    loop {
        let whole = text.split_once("\r\n\r\n").filter(|(head, body)| {
            let length = head
                .lines()
                .find_map(|l| l.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
            body.len() >= length.unwrap_or(0)
        });
        let Some((head, body)) = whole else {
            let mut buffer = vec![0; 1 << 16];
            let Ok(read @ 1..) = stream.read(&mut buffer).await else { return };
            text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
            continue;
        };
        if head.starts_with("GET ") {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\r\n";
            stream.write_all((head.to_owned() + &opening).as_bytes()).await.unwrap();
            while let Ok(Some(event)) = events.recv().await {
                stream.write_all(event.as_bytes()).await.unwrap();
            }
            return;
        }
        let message: Value = serde_json::from_str(body).unwrap();
        let path = head.split(' ').nth(1).unwrap().to_owned();
        let called = message["method"] == "tools/call";
        let status = match manner {
            // A client that looks for Streamable HTTP is told that it is not here.
            _ if path == "/stream" => 405,
            Manner::Refuses(status) if called => status,
            _ => 202,
        };
        noted.lock().unwrap().push((path, message.clone()));
        let response = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n");
        stream.write_all(response.as_bytes()).await.unwrap();
        if status == 202 {
            let left = called && manner == Manner::Leaves;
            let event = answer(&message).filter(|_| !left).map(|answer| event(&answer));
            if event.is_some() || left {
                let _ = out.send(event);
            }
        }
        text.clear();
    }
}

#[testkit::test]
async fn an_endpoint_of_http_sse_is_used_where_it_is_of_the_stream_s_own_origin_only() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = elsewhere.local_addr().unwrap().port();
    // However it is written.
    for opening in [
        "event: endpoint\ndata: /messages?s=1\n\n",
        "event: endpoint\r\ndata: messages?s=1\r\n\r\n",
        ": hello\n\nid: 0\nevent:endpoint\ndata:?s=1\n\n",
        "event: endpoint\ndata: http://AUTHORITY/messages?s=1\n\n",
        "event: endpoint\ndata: //AUTHORITY/messages?s=1\n\n",
    ] {
        let fake = Fake::start(opening, Manner::Sound).await;
        let servers = [("far", json!({"url": fake.url, "type": "sse"}))];
        let mut client = through(Wire::Stdio, &servers, LATEST_LEGACY, json!({})).await;
        assert_eq!(client.call("tool", json!({})).await.said(), "done", "{opening:?}");
        let posts = fake.posts.lock().unwrap().clone();
        assert!(posts.iter().all(|(path, _)| path.ends_with("?s=1")), "{opening:?}: {posts:?}");
    }
    let other = format!("event: endpoint\ndata: http://127.0.0.1:{port}/messages\n\n");
    let same_port = format!("event: endpoint\ndata: //127.0.0.1:{port}/messages\n\n");
    for (opening, why) in [
        (other.as_str(), "another origin"),
        (&same_port, "another origin"),
        ("event: endpoint\ndata: https://AUTHORITY/messages\n\n", "another origin"),
        ("event: endpoint\ndata: http://user@localhost/messages\n\n", "another origin"),
        ("event: endpoint\ndata: file:///etc/passwd\n\n", "another origin"),
        ("event: endpoint\ndata: http://[\n\n", "no URL"),
        ("event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n", "endpoint event"),
        ("data: /messages\n\n", "endpoint event"),
    ] {
        let fake = Fake::start(opening, Manner::Sound).await;
        let servers = [("far", json!({"url": fake.url, "type": "sse"}))];
        let mut client = through_at_once(Wire::Stdio, &servers, LATEST_LEGACY, json!({})).await;
        let known = async {
            loop {
                // The list says what is missing in it, and why.
                let reply = client.request("tools/list", json!({})).await;
                let told = reply.notifications("notifications/message");
                if told.iter().any(|m| m["params"]["data"].as_str().unwrap().contains(why)) {
                    return;
                }
            }
        };
        within(&format!("{opening:?} is refused for {why:?}"), known).await;
        assert_eq!(fake.posts.lock().unwrap().len(), 0, "{opening:?}: nothing is posted");
    }
    let visit = tokio::select! {
        biased;
        visit = elsewhere.accept() => Some(visit),
        () = std::future::ready(()) => None,
    };
    assert!(visit.is_none(), "nobody is sent elsewhere");
}

#[testkit::test]
async fn a_server_of_http_sse_that_takes_no_call_or_ends_its_stream_fails_the_call_at_once() {
    let opening = "event: endpoint\ndata: /messages\n\n";
    for manner in [Manner::Refuses(404), Manner::Refuses(500), Manner::Refuses(413), Manner::Leaves] {
        let fake = Fake::start(opening, manner).await;
        // Found out by the fallback, which the fake asks for with 405.
        let servers = [("far", json!({"url": fake.url}))];
        let mut client = through(Wire::Stdio, &servers, LATEST_LEGACY, json!({})).await;
        let methods: Vec<_> = fake.posts.lock().unwrap().iter().map(|(_, m)| m["method"].clone()).collect();
        assert_eq!(methods[..3], ["server/discover", "initialize", "initialize"]);
        // It has no prompts and no resources, and is not asked for them.
        assert_eq!(methods[3..], ["notifications/initialized", "tools/list"]);
        let reply = client.call("tool", json!({})).await;
        let said = reply.error()["message"].as_str().unwrap();
        assert!(said.contains(&fake.url), "{said}");
        if let Manner::Refuses(status) = manner {
            assert!(said.contains(&status.to_string()), "{said}");
        }
    }
}

#[testkit::test]
async fn a_stream_that_a_server_closes_before_the_answer_is_gone_on_with() {
    let upstream = demo_at("legacy").await;
    let relay = Relay::start(&upstream).await;
    let mut first =
        through(Wire::Http, &[("far", json!({"url": relay.url("/mcp")}))], MODERN, json!({})).await;
    let mut due = 0;
    for revision in LEGACY.into_iter().chain([MODERN]) {
        let mut client = another(&first, revision, json!({})).await;
        let reply = client.call("test_reconnection", json!({})).await;
        assert_eq!(reply.said(), "The client came back for this.", "{revision}");
        due += 1;
        let seen = relay.headers("last-event-id");
        assert_eq!(seen.len(), due, "{revision}: once a call: {seen:?}");
    }
    // Cut off in the middle: what was missed comes, and what was had comes once.
    for revision in ERAS {
        let mut client = another(&first, revision, json!({})).await;
        let counting = json!({"name": "countdown", "arguments": {"from": 20, "intervalMs": 5}, "_meta": {"progressToken": "t"}});
        let id = client.begin("tools/call", counting).await;
        let mut steps =
            vec![client.next("notifications/progress").await["params"]["progress"].as_f64().unwrap()];
        relay.cut();
        let reply = client.reply(&id).await;
        assert_eq!(reply.said(), "counted down from 20", "{revision}");
        let rest = reply.notifications("notifications/progress");
        steps.extend(rest.iter().map(|m| m["params"]["progress"].as_f64().unwrap()));
        assert_eq!(steps, (0..=20).map(f64::from).collect::<Vec<_>>(), "{revision}");
    }
    assert_eq!(
        first.call("cancelled_calls", json!({})).await.said(),
        "",
        "nothing was cancelled or run twice"
    );
}

#[testkit::test]
async fn an_upstream_that_no_longer_knows_the_session_is_opened_again_without_a_call_lost() {
    let mut upstream = demo_at("legacy").await;
    let relay = Relay::start(&upstream).await;
    let entry = json!({"url": relay.url("/mcp")});
    let mut client = through(Wire::Http, &[("far", entry)], LATEST_LEGACY, json!({})).await;
    let mut modern = another(&client, MODERN, json!({})).await;
    // It lapses.
    let session = relay.headers("mcp-session-id").pop().unwrap();
    let url = upstream.url.clone().unwrap();
    let deleted = testkit::http(&url, "DELETE", &[("mcp-session-id", &session)], Vec::new()).await.unwrap();
    assert!(deleted.status().is_success());
    for client in [&mut client, &mut modern] {
        assert_eq!(client.call("echo", json!({"message": "hi"})).await.said(), "hi");
    }
    let now = relay.headers("mcp-session-id").pop().unwrap();
    assert_ne!(now, session);
    // It restarts: nobody knows of the old session.
    upstream.child.kill().await.unwrap();
    upstream = demo_at("legacy").await;
    relay.turn(&upstream);
    for client in [&mut client, &mut modern] {
        back(client, "echo").await;
    }
}

#[testkit::test]
async fn changes_of_an_upstream_that_was_away_are_told_though_nobody_calls_it() {
    for era in ["legacy", "modern"] {
        for path in ["/mcp", "/sse"] {
            if (era, path) == ("modern", "/sse") {
                continue;
            }
            let mut upstream = demo_at(era).await;
            let relay = Relay::start(&upstream).await;
            let servers = [("far", json!({"url": relay.url(path)}))];
            let mut client = through(Wire::Http, &servers, MODERN, json!({})).await;
            let filter = json!({"notifications": {"resourcesListChanged": true}});
            client.begin("subscriptions/listen", filter).await;
            client.next("notifications/subscriptions/acknowledged").await;
            upstream.child.kill().await.unwrap();
            // It has other resources when it is back.
            let skills = std::env::temp_dir().join(format!("dateline-skills-{}", std::process::id()));
            std::fs::create_dir_all(skills.join("told-of")).unwrap();
            let skill = "---\nname: told-of\ndescription: One more.\n---\nDo.\n";
            std::fs::write(skills.join("told-of/SKILL.md"), skill).unwrap();
            let args =
                ["demo", "--listen", "127.0.0.1:0", "--era", era, "--skills", skills.to_str().unwrap()];
            upstream = Program::http(DATELINE, &args).await;
            relay.turn(&upstream);
            let told = async {
                loop {
                    client.next("notifications/resources/list_changed").await;
                    if listed(&mut client, "resources", "uri").await.iter().any(|uri| uri.contains("told-of"))
                    {
                        return;
                    }
                }
            };
            within(&format!("{era} {path}: changes are told"), told).await;
        }
    }
}
