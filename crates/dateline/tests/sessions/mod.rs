//! How many sessions there are, how long, and what is kept for their clients.

mod principals;

use std::sync::Arc;
use std::time::Duration;

use dateline::{Args, Context, HttpOptions, Replay, Server, Tool};
use serde_json::{Value, json};
use testkit::{Arrival, Client, LATEST_LEGACY, LEGACY, PATIENCE, header, sse_url};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Notify;

use crate::serve;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Count {
    to: u32,
}

/// A server with calls that end when they are told to.
struct Gated {
    url: String,
    gate: Arc<Notify>,
    /// Fires when such a call is about to end.
    passed: Arc<Notify>,
}

impl Gated {
    async fn start(options: HttpOptions) -> Gated {
        let (gate, passed) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (shut, through) = (Arc::clone(&gate), Arc::clone(&passed));
        let count = move |Args(count): Args<Count>, cx: Context| {
            let (gate, passed) = (Arc::clone(&shut), Arc::clone(&through));
            async move {
                cx.progress(0.0, None, Some("begun")).await;
                gate.notified().await;
                for step in 1..=count.to {
                    cx.progress(
                        f64::from(step),
                        None,
                        Some("a step of a hundred bytes or so, which is what it takes"),
                    )
                    .await;
                }
                passed.notify_one();
                "counted"
            }
        };
        let ask = |cx: Context| async move {
            let question = json!({"messages": [], "maxTokens": 1});
            Ok::<_, dateline::Error>(cx.sample("question", &question).await?.text())
        };
        let server = Server::new("gated", "1")
            .tool(Tool::new("count", "Counts when it is told to.", count))
            .tool(Tool::new("ask", "Asks.", ask))
            .build()
            .unwrap();
        Gated { url: serve(server, options).await, gate, passed }
    }

    async fn session(&self, revision: &'static str) -> Client {
        let mut client = Client::connect(&self.url);
        client.handshake(revision, json!({"sampling": {}})).await.result();
        client
    }

    /// One more client of a session.
    fn twin(&self, of: &Client) -> Client {
        let mut twin = Client::connect(&self.url);
        (twin.session, twin.revision) = (of.session.clone(), of.revision);
        twin
    }

    /// Waits until the server has noticed the end of all connections.
    async fn quiet(&self) {
        let port = self.url.split([':', '/']).nth(4).unwrap().parse::<u16>().unwrap();
        // The local address, with the far one and the state behind it: all but the one that listens.
        let local = format!(":{port:04X} ");
        let closing = async {
            loop {
                let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
                let ours = table.match_indices(&local).map(|(at, _)| &table[at + local.len()..]);
                if !ours.filter_map(|rest| rest.get(14..16)).any(|state| state == "01" || state == "08") {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        within("all connections are closed", closing).await;
    }

    /// Whether a session is there, without using it.
    async fn is_there(&self, of: &Client) -> bool {
        let mut twin = self.twin(of);
        let exchange = twin.exchange("GET", &[("accept", "application/json")], Vec::new());
        match twin.head(exchange).await.status {
            406 => true,
            404 => false,
            status => panic!("{status}"),
        }
    }
}

impl Gated {
    /// Waits until a session is no longer there.
    async fn ends(&self, session: &Client) {
        let ends = async {
            while self.is_there(session).await {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        within("the session ends", ends).await;
    }
}

fn count(to: u32) -> Value {
    json!({"name": "count", "arguments": {"to": to}, "_meta": {"progressToken": "t"}})
}

async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.unwrap_or_else(|_| panic!("{what}: it takes too long"))
}

#[testkit::test]
async fn http_07_where_no_more_sessions_may_be_the_longest_unused_goes_and_none_that_is_in_use() {
    let gated = Gated::start(HttpOptions::default().sessions(4)).await;
    let mut works = gated.session(LEGACY[0]).await;
    let call = works.begin("tools/call", count(1)).await;
    works.next("notifications/progress").await;
    let mut reads = gated.session(LEGACY[1]).await;
    let stream = reads.exchange("GET", &[("accept", "text/event-stream")], Vec::new());
    assert_eq!(reads.head(stream).await.status, 200);
    let [old, mut new] = [gated.session(LEGACY[2]).await, gated.session(LEGACY[3]).await];
    // A flood of sessions that nothing follows pushes out the longest unused one, and then only its own.
    let params = json!({"protocolVersion": LATEST_LEGACY, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    for _ in 0..40 {
        let mut extra = Client::connect(&gated.url);
        extra.send(&initialize, &[]).await;
        assert!(extra.reply(&json!(1)).await.head.unwrap().headers.contains_key("mcp-session-id"));
    }
    assert!(!gated.is_there(&old).await);
    new.request("ping", json!({})).await.result();
    gated.gate.notify_waiters();
    assert_eq!(works.reply(&call).await.said(), "counted");
    let ended = reads.leftovers().iter().any(|a| matches!(a, Arrival::End(of) if *of == stream));
    assert!(!ended && gated.is_there(&reads).await);
    // Where all are in use a stream that is only read goes before a call that is worked on.
    let full = Gated::start(HttpOptions::default().sessions(2)).await;
    let mut works = full.session(LATEST_LEGACY).await;
    works.begin("tools/call", count(1)).await;
    works.next("notifications/progress").await;
    let mut reads = full.session(LATEST_LEGACY).await;
    let stream = reads.exchange("GET", &[("accept", "text/event-stream")], Vec::new());
    assert_eq!(reads.head(stream).await.status, 200);
    full.session(LATEST_LEGACY).await.request("ping", json!({})).await.result();
    reads.wait("its end", |a| matches!(a, Arrival::End(of) if *of == stream)).await;
    assert!(full.is_there(&works).await && !full.is_there(&reads).await);
    // Modern requests need none.
    Client::connect(&full.url).request("tools/list", json!({})).await.result();
}

#[testkit::test]
async fn answers_that_nobody_fetches_are_kept_within_one_bound_and_those_of_the_longest_unused_go_first() {
    // Each keeps some 11 kB.
    let gated = Gated::start(HttpOptions::default().replay_bytes(40_000)).await;
    let mut sessions = Vec::new();
    for _ in 0..8 {
        let live = gated.session(LATEST_LEGACY).await;
        let seen = vanish(&gated, &live, "a", 60).await;
        gated.quiet().await;
        gated.gate.notify_waiters();
        within("the call ends", gated.passed.notified()).await;
        sessions.push((live, seen));
    }
    let mut outcomes = Vec::new();
    for (live, seen) in &sessions {
        outcomes.push(resumed(&gated, live, seen).await.is_ok());
    }
    let lost = outcomes.iter().take_while(|kept| !**kept).count();
    assert!((4..8).contains(&lost) && outcomes[lost..].iter().all(|kept| *kept), "{outcomes:?}");
}

#[testkit::test]
async fn listens_are_limited_and_one_that_ends_makes_room() {
    let gated = Gated::start(HttpOptions::default().listens(2)).await;
    let listen = || async {
        let mut client = Client::connect(&gated.url);
        let wanted = json!({"notifications": {"toolsListChanged": true}});
        let exchange = client.begin_as(json!("l"), "subscriptions/listen", wanted).await;
        (client.head(exchange).await, client, exchange)
    };
    let (head, mut first, exchange) = listen().await;
    assert_eq!(head.status, 200);
    let mut live = gated.session(LATEST_LEGACY).await;
    let stream = live.exchange("GET", &[("accept", "text/event-stream")], Vec::new());
    assert_eq!(live.head(stream).await.status, 200);
    let (head, mut refused, _) = listen().await;
    assert_eq!((head.status, header(&head.headers, "retry-after")), (503, Some("2")));
    let error = refused.message("a refusal", |m| m.get("error").is_some()).await;
    assert_eq!((&error["id"], &error["error"]["code"]), (&json!("l"), &json!(-32603)));
    assert!(error["error"]["message"].as_str().unwrap().contains("2 open event streams"), "{error}");
    first.disconnect(exchange);
    within("the end of one makes room", async { while listen().await.0.status != 200 {} }).await;
}

#[testkit::test]
async fn a_client_that_reads_nothing_of_its_answer_is_let_go() {
    let long = Tool::new("long", "Says much.", || async { "x".repeat(32 << 20) });
    let server = Server::new("long", "1").tool(long).build().unwrap();
    let options = HttpOptions::default().write_timeout(Duration::from_millis(100));
    let url = serve(server, options).await;
    for revision in [None, Some(LATEST_LEGACY)] {
        let mut opened = Client::connect(&url);
        let mut headers = vec![("accept", "application/json".to_owned())];
        let mut params = json!({"name": "long", "arguments": {}});
        match revision {
            Some(revision) => {
                opened.handshake(revision, json!({})).await.result();
                headers.push(("mcp-session-id", opened.session.clone().unwrap()));
            }
            None => {
                params = opened.modern_params(params);
                headers.extend(testkit::modern_headers("tools/call", &params));
            }
        }
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
        let host = url.trim_start_matches("http://").trim_end_matches("/mcp");
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n",
            body.len()
        );
        let mut stream = tokio::net::TcpStream::connect(host).await.unwrap();
        stream.write_all([head, body].concat().as_bytes()).await.unwrap();
        // It is closed at the other end while nothing is read here.
        let port = format!(":{:04X} ", stream.local_addr().unwrap().port());
        let closed = async {
            loop {
                let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
                let mut lines = table.lines().filter(|line| {
                    line.split_whitespace().nth(2).is_some_and(|far| format!("{far} ").ends_with(&port))
                });
                if lines.all(|line| line.split_whitespace().nth(3) != Some("01")) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        within("it is let go", closed).await;
        let mut read = Vec::new();
        let _ = within("what is left", stream.read_to_end(&mut read)).await;
        assert!(read.len() < 32 << 20, "{revision:?}: all of it was sent");
    }
}

#[testkit::test]
async fn sse_02_no_more_streams_are_opened_than_sessions_may_be_and_unused_ones_go() {
    let gated = Gated::start(HttpOptions::default().sessions(2)).await;
    let at = sse_url(&gated.url);
    let mut unused = Client::connect_sse(&at).await;
    let mut open = [Client::connect_sse(&at).await, Client::connect_sse(&at).await];
    unused.wait("its end", |a| matches!(a, Arrival::End(0))).await;
    open[0].handshake(LATEST_LEGACY, json!({})).await.result();
    open[1].handshake(LATEST_LEGACY, json!({})).await.result();
    let get = || testkit::http(&at, "GET", &[("accept", "text/event-stream")], Vec::new());
    let refused = get().await.unwrap();
    assert_eq!((refused.status().as_u16(), header(refused.headers(), "retry-after")), (503, Some("2")));
    open[0].disconnect(0);
    let room = async { while get().await.unwrap().status() != 200 {} };
    within("the end of one makes room", room).await;
    open[1].request("ping", json!({})).await.result();
}

#[testkit::test]
async fn a_session_that_nobody_uses_ends_and_one_with_a_call_or_an_open_stream_does_not() {
    // Long enough for two requests that follow one another.
    let idle = Duration::from_millis(600);
    let one = async |revision| {
        let gated = Gated::start(HttpOptions::default().session_idle(idle)).await;
        ends_unless_used(&gated, revision).await;
    };
    let [first, second, third, fourth] = LEGACY;
    tokio::join!(one(first), one(second), one(third), one(fourth));
}

async fn ends_unless_used(gated: &Gated, revision: &'static str) {
    let unused = gated.session(revision).await;
    // A long job, whose client is away; a stream; a question that somebody may still answer; and one that nobody can.
    let mut working = gated.session(revision).await;
    let call = working.begin("tools/call", count(1)).await;
    working.next("notifications/progress").await;
    let mut away = gated.session(revision).await;
    let exchange = away.begin_as(json!("away"), "tools/call", count(1)).await;
    away.next("notifications/progress").await;
    away.disconnect(exchange);
    let mut reading = gated.session(revision).await;
    let stream = reading.exchange("GET", &[("accept", "text/event-stream")], Vec::new());
    assert_eq!(reading.head(stream).await.status, 200, "{revision}");
    let mut asked = gated.session(revision).await;
    let question = asked.begin("tools/call", json!({"name": "ask", "arguments": {}})).await;
    let asks = asked.next("sampling/createMessage").await;
    let mut left = gated.session(revision).await;
    let exchange = left.begin_as(json!("left"), "tools/call", json!({"name": "ask", "arguments": {}})).await;
    left.next("sampling/createMessage").await;
    left.disconnect(exchange);
    // Twice as long as one may be unused: one more is opened and ends in between.
    gated.ends(&unused).await;
    gated.ends(&left).await;
    gated.ends(&gated.session(revision).await).await;
    for (what, kept) in [
        ("a call", &working),
        ("a call of one that is away", &away),
        ("a stream", &reading),
        ("a question", &asked),
    ] {
        assert!(gated.is_there(kept).await, "{revision}: the session with {what} is kept");
    }
    let result = json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}});
    asked.send(&json!({"jsonrpc": "2.0", "id": asks["id"], "result": result}), &[]).await;
    assert_eq!(asked.reply(&question).await.said(), "Paris", "{revision}");
    gated.gate.notify_waiters();
    assert_eq!(working.reply(&call).await.said(), "counted", "{revision}");
    reading.disconnect(stream);
    for gone in [&working, &away, &reading, &asked] {
        gated.ends(gone).await;
    }
}

/// Everything on a stream that is gone on with, to its end: ids and messages.
async fn resumed(gated: &Gated, of: &Client, seen: &str) -> Result<(Vec<String>, Vec<Value>), u16> {
    let mut twin = gated.twin(of);
    let exchange =
        twin.exchange("GET", &[("accept", "text/event-stream"), ("last-event-id", seen)], Vec::new());
    let status = twin.head(exchange).await.status;
    twin.wait("the end", |a| matches!(a, Arrival::End(_))).await;
    if status != 200 {
        return Err(status);
    }
    let (mut ids, mut messages) = (Vec::new(), Vec::new());
    for arrival in twin.leftovers() {
        match arrival {
            Arrival::Field(_, field) => ids.push(field.strip_prefix("id: ").unwrap().to_owned()),
            Arrival::Message(_, message, _) => messages.push(message),
            _ => {}
        }
    }
    Ok((ids, messages))
}

/// Begins a call and vanishes once it has an event; gives that event's id.
async fn vanish(gated: &Gated, of: &Client, id: &str, to: u32) -> String {
    let mut twin = gated.twin(of);
    let exchange = twin.begin_as(json!(id), "tools/call", count(to)).await;
    twin.next("notifications/progress").await;
    let id = twin.leftovers().into_iter().filter_map(|a| match a {
        Arrival::Field(_, field) => field.strip_prefix("id: ").map(str::to_owned),
        _ => None,
    });
    let seen = id.last().unwrap();
    twin.disconnect(exchange);
    seen
}

#[testkit::test]
async fn http_14_what_is_kept_is_bounded_and_responses_are_kept_longest() {
    let (few, small) = (Replay { messages: 5, bytes: 1 << 20 }, Replay { messages: 1000, bytes: 1200 });
    for (replay, most) in [(few, 5), (small, 12)] {
        let gated = Gated::start(HttpOptions::default().replay(replay)).await;
        for revision in LEGACY {
            let live = gated.session(revision).await;
            let seen = vanish(&gated, &live, "a", 100).await;
            // What is written to a connection that is gone, but not known to be, counts as sent.
            gated.quiet().await;
            gated.gate.notify_waiters();
            within("the call ends", gated.passed.notified()).await;
            let (ids, messages) = resumed(&gated, &live, &seen).await.unwrap();
            assert!(messages.len() <= most && messages.len() > 2, "{revision}: {} messages", messages.len());
            assert_eq!(ids.len(), messages.len(), "{revision}");
            assert_eq!(messages.last().unwrap()["result"]["content"][0]["text"], "counted", "{revision}");
            // What is kept is the end of it, without a gap.
            let last = messages.len() - 1;
            for (at, message) in messages[..last].iter().enumerate() {
                let due = 100 - last + 1 + at;
                assert_eq!(
                    message["params"]["progress"].as_f64(),
                    u32::try_from(due).ok().map(f64::from),
                    "{revision}"
                );
            }
            // It was seen, and is kept no longer.
            let again = resumed(&gated, &live, ids.last().unwrap()).await.unwrap_or_default();
            assert_eq!(again.1, [Value::Null; 0], "{revision}");
            assert_eq!(
                resumed(&gated, &live, &seen).await.unwrap_or_default().1,
                [Value::Null; 0],
                "{revision}"
            );
        }
    }
}

#[testkit::test]
async fn http_14_the_responses_of_many_calls_are_kept_as_far_as_there_is_room_and_the_rest_is_400() {
    let replay = Replay { messages: 5, bytes: 1 << 20 };
    let gated = Gated::start(HttpOptions::default().replay(replay)).await;
    for revision in LEGACY {
        let live = gated.session(revision).await;
        let mut seen = Vec::new();
        for number in 0..12 {
            seen.push(vanish(&gated, &live, &number.to_string(), 3).await);
        }
        gated.quiet().await;
        for _ in &seen {
            // The one that has waited longest.
            gated.gate.notify_one();
            within("the call ends", gated.passed.notified()).await;
        }
        let mut outcomes = Vec::new();
        for seen in &seen {
            outcomes.push(resumed(&gated, &live, seen).await);
        }
        let lost = outcomes.iter().take_while(|outcome| **outcome == Err(400)).count();
        assert_eq!(lost, 7, "{revision}: {outcomes:?}");
        for (number, outcome) in outcomes.iter().enumerate().skip(lost) {
            let messages = &outcome.as_ref().unwrap().1;
            assert_eq!(messages.last().unwrap()["id"], number.to_string(), "{revision}: {messages:?}");
        }
    }
}

#[testkit::test]
async fn http_16_and_sse_every_quiet_stream_carries_comments_from_its_start() {
    let options = HttpOptions::default().keep_alive(Duration::from_millis(20));
    let gated = Gated::start(options).await;
    for revision in LEGACY {
        let live = gated.session(revision).await;
        let seen = vanish(&gated, &live, "away", 1).await;
        let mut quiet = Vec::new();
        for headers in [
            &[("accept", "text/event-stream")][..],
            &[("accept", "text/event-stream"), ("last-event-id", &seen)],
        ] {
            let mut twin = gated.twin(&live);
            let exchange = twin.exchange("GET", headers, Vec::new());
            quiet.push((twin, exchange));
        }
        // A call that says nothing at all, and one that says something.
        for tool in [json!({"name": "count", "arguments": {"to": 1}}), count(1)] {
            let mut twin = gated.twin(&live);
            let exchange = twin.begin_as(json!(tool.to_string()), "tools/call", tool).await;
            quiet.push((twin, exchange));
        }
        for (client, exchange) in &mut quiet {
            let head = client.head(*exchange).await;
            assert_eq!(header(&head.headers, "x-accel-buffering"), Some("no"), "{revision}");
            assert_eq!(header(&head.headers, "cache-control"), Some("no-store"), "{revision}");
        }
        let mut sse = Client::connect_sse(&sse_url(&gated.url)).await;
        sse.handshake(revision, json!({})).await.result();
        quiet.push((sse, 0));
        for (client, exchange) in &mut quiet {
            for _ in 0..3 {
                client.wait("a comment", |a| matches!(a, Arrival::Comment(of) if of == exchange)).await;
            }
            client.disconnect(*exchange);
        }
        gated.gate.notify_waiters();
    }
}
