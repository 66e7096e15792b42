//! Listens: how long they last, how they end, and what becomes of those who do not read.

use std::sync::Arc;
use std::time::Duration;

use dateline::{CancellationToken, HttpOptions, Limits};
use dateline::{Http, Resource, Revisions, Server, Tool};
use serde_json::{Value, json};
use testkit::{Arrival, Client, MODERN, PATIENCE, WIRES, Wire};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Notify;

use super::{House, call};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// A server with things to listen to, and a call that ends when it is told to.
fn live(gate: &Arc<Notify>) -> Server {
    let gate = Arc::clone(gate);
    Server::new("live", "1")
        .tool(Tool::new("hi", "Says hi.", || async { "hi" }))
        .tool(Tool::new("wait", "Waits.", move || {
            let gate = Arc::clone(&gate);
            async move {
                gate.notified().await;
                "waited"
            }
        }))
        .resource(Resource::new("x:/", "x", || async { "x" }))
        .build()
        .unwrap()
}

fn tools() -> Value {
    json!({"toolsListChanged": true})
}

async fn listen(client: &mut Client, id: &Value, filter: &Value) {
    client.begin_as(id.clone(), "subscriptions/listen", json!({"notifications": filter})).await;
    let acknowledged = |m: &Value| {
        m["method"] == "notifications/subscriptions/acknowledged" && m["params"]["_meta"][SUBSCRIPTION] == *id
    };
    client.message("the acknowledgement", acknowledged).await;
}

/// Makes a call, which shows that all that was due before it has come; nothing was.
async fn quiet(client: &mut Client, what: &str) {
    let reply = client.call("hi", json!({})).await;
    assert_eq!(reply.said(), "hi", "{what}");
    assert!(reply.before.is_empty(), "{what}: {:?}", reply.before);
}

/// Asserts that these are all that a listen was told at its end: the notification, and then the result.
fn ends(messages: &[Value], id: &Value, what: &str) {
    let [cancelled, result] = messages else { panic!("{what} {id}: {messages:?}") };
    assert_eq!(cancelled["method"], "notifications/cancelled", "{what}: {cancelled}");
    assert_eq!(cancelled["params"]["requestId"], *id, "{what}: {cancelled}");
    assert_eq!(cancelled["params"]["_meta"][SUBSCRIPTION], *id, "{what}: {cancelled}");
    assert!(cancelled["params"]["reason"].is_string(), "{what}: {cancelled}");
    assert_eq!(result["id"], *id, "{what}: {result}");
    assert_eq!(result["result"]["resultType"], "complete", "{what}: {result}");
    assert_eq!(result["result"]["_meta"][SUBSCRIPTION], *id, "{what}: {result}");
}

/// Everything that comes until there are so many responses, in the order in which it comes.
async fn until(client: &mut Client, responses: usize) -> Vec<Value> {
    let (mut messages, mut left) = (Vec::new(), responses);
    while left > 0 {
        let arrival = client.wait("the end of the listens", |a| matches!(a, Arrival::Message(..))).await;
        let Arrival::Message(_, message, _) = arrival else { unreachable!() };
        left -= usize::from(message.get("method").is_none());
        messages.push(message);
    }
    messages
}

#[testkit::test]
async fn can_03_sub_04_sub_06_a_listen_that_the_server_ends_is_told_so_and_then_has_its_result() {
    for wire in WIRES {
        let what = format!("{wire:?}");
        let gate = Arc::new(Notify::new());
        let server = live(&gate);
        let house = House::of(&server).await;
        let mut client = house.client(wire, MODERN, json!({})).await;
        // Many at once, under ids of every kind.
        let mut ids: Vec<Value> = (0..200).map(|n| json!(format!("listen {n}"))).collect();
        ids.extend([json!(1_000_001), json!(-7), json!(""), json!("1000001")]);
        for id in &ids {
            listen(&mut client, id, &tools()).await;
        }
        assert_eq!(server.notifier().listeners(), ids.len(), "{what}");
        server.notifier().tools_changed();
        for id in &ids {
            let tagged = |m: &Value| {
                m["method"] == "notifications/tools/list_changed" && m["params"]["_meta"][SUBSCRIPTION] == *id
            };
            client.message("the change", tagged).await;
        }
        // Some that the client ends are not answered, and a call is under way.
        let given_up: Vec<Value> = (0..3).map(|n| json!(format!("given up {n}"))).collect();
        for id in &given_up {
            let params = json!({"notifications": tools()});
            let exchange = client.begin_as(id.clone(), "subscriptions/listen", params).await;
            client.next("notifications/subscriptions/acknowledged").await;
            match wire {
                Wire::Http => client.disconnect(exchange),
                _ => drop(client.notify("notifications/cancelled", json!({"requestId": id})).await),
            }
        }
        let waits = client.begin_as(json!("waits"), "tools/call", call("wait", json!({}))).await;
        quiet(&mut client, &what).await;
        house.shutdown.cancel();
        let mut came = until(&mut client, ids.len()).await;
        // The call goes on, and is not told of anything.
        gate.notify_waiters();
        gate.notify_one();
        let ended = client.reply(&json!("waits")).await;
        assert_eq!((ended.said(), ended.before.len()), ("waited", 0), "{what} {waits}");
        for id in &ids {
            let of = |m: &Value| m["id"] == *id || m["params"]["requestId"] == *id;
            let own: Vec<Value> = came.iter().filter(|m| of(m)).cloned().collect();
            ends(&own, id, &what);
            came.retain(|m| !of(m));
        }
        assert!(came.is_empty(), "{what}: nothing else is told: {came:?}");
        let strays = client.leftovers().into_iter().filter(|a| matches!(a, Arrival::Message(..)));
        assert_eq!(strays.count(), 0, "{what}");
    }
}

#[testkit::test]
async fn can_03_nothing_else_makes_the_server_cancel() {
    for wire in WIRES {
        let what = format!("{wire:?}");
        let gate = Arc::new(Notify::new());
        let server = live(&gate);
        let house = House::of(&server).await;
        let mut client = house.client(wire, MODERN, json!({})).await;
        listen(&mut client, &json!("stays"), &tools()).await;
        // Calls that fail, that are given up, that do not exist; a listen that is refused.
        for (method, params) in [
            ("tools/call", call("none", json!({}))),
            ("tools/call", call("hi", json!({"x": 1}))),
            ("subscriptions/listen", json!({"notifications": 5})),
            ("no/method", json!({})),
        ] {
            let reply = client.request(method, params).await;
            assert!(reply.before.is_empty(), "{what} {method}: {:?}", reply.before);
        }
        for id in ["a", "b"] {
            let exchange = client.begin_as(json!(id), "tools/call", call("wait", json!({}))).await;
            match wire {
                Wire::Http => client.disconnect(exchange),
                _ => drop(client.notify("notifications/cancelled", json!({"requestId": id})).await),
            }
        }
        client.notify("notifications/cancelled", json!({"requestId": "nobody"})).await;
        // Things come and go.
        server.add_tool(Tool::new("new", "Is new.", || async { "new" })).unwrap();
        client.next("notifications/tools/list_changed").await;
        assert!(server.remove_tool("new"), "{what}");
        client.next("notifications/tools/list_changed").await;
        quiet(&mut client, &what).await;
        let strays: Vec<Arrival> =
            client.leftovers().into_iter().filter(|a| matches!(a, Arrival::Message(..))).collect();
        assert!(strays.is_empty(), "{what}: {strays:?}");
    }
}

#[testkit::test]
async fn sub_04_a_listen_has_no_timeout() {
    let gate = Arc::new(Notify::new());
    let server = live(&gate);
    // Shorter than any day.
    let second = Duration::from_secs(1);
    let options = HttpOptions::default().body_timeout(second).session_idle(second);
    let house = House::with(&server, options, Limits::default()).await;
    for wire in WIRES {
        let mut client = house.client(wire, MODERN, json!({})).await;
        listen(&mut client, &json!("patient"), &tools()).await;
        for _ in 0..3 {
            // A day goes by, for all that measures time here.
            tokio::time::pause();
            tokio::time::advance(Duration::from_secs(24 * 3600)).await;
            tokio::time::resume();
            assert_eq!(client.call("hi", json!({})).await.said(), "hi", "{wire:?}");
            server.notifier().tools_changed();
            let told = client.next("notifications/tools/list_changed").await;
            assert_eq!(told["params"]["_meta"][SUBSCRIPTION], "patient", "{wire:?}");
        }
        assert!(server.notifier().listeners() >= 1, "{wire:?}");
        let ended =
            client.leftovers().into_iter().filter(|a| matches!(a, Arrival::Message(..) | Arrival::End(_)));
        // Over HTTP the calls beside it have ended.
        let due = if wire == Wire::Http { 3 } else { 0 };
        assert_eq!(ended.count(), due, "{wire:?}");
    }
}

/// Reads what is left, and gives the messages in it.
async fn rest(mut from: impl AsyncRead + Unpin, is_end: impl Fn(&Value) -> bool) -> Vec<Value> {
    let (mut bytes, mut buffer, mut messages) = (Vec::new(), vec![0; 1 << 20], Vec::<Value>::new());
    loop {
        let n = tokio::time::timeout(PATIENCE, from.read(&mut buffer)).await.expect("more comes").unwrap();
        assert!(n > 0, "it ends without a word: {:?}", messages.last());
        bytes.extend_from_slice(&buffer[..n]);
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = bytes.drain(..=end).collect();
            let line = line.strip_prefix(b"data: ").unwrap_or(&line);
            messages.extend(serde_json::from_slice(line).ok().filter(Value::is_object));
        }
        if messages.last().is_some_and(&is_end) {
            return messages;
        }
    }
}

/// Changes thousands of resources while one client, whose connection this is, does not read what it is told of them.
/// As many bytes as are given stand in each of them.
async fn slow_reader(
    server: &Server,
    house: &House,
    mut slow: impl AsyncRead + AsyncWrite + Unpin,
    (what, bytes): (&str, usize),
) {
    // The first bytes show that it listens.
    let mut first = [0; 12];
    tokio::time::timeout(PATIENCE, slow.read_exact(&mut first)).await.expect("it is acknowledged").unwrap();
    let mut quick = house.client(Wire::Http, MODERN, json!({})).await;
    listen(&mut quick, &json!("quick"), &json!({"resourceSubscriptions": ["x:/"]})).await;
    let mut piped = house.client(Wire::Stdio, MODERN, json!({})).await;
    listen(&mut piped, &json!("piped"), &json!({"resourceSubscriptions": ["x:/"]})).await;
    assert_eq!(server.notifier().listeners(), 3, "{what}");
    // It is one message again and again, and a large one: the referee would take longer than all the rest.
    (quick.unjudged, piped.unjudged) = (true, true);
    let filling = "f".repeat(bytes);
    let mut changed = 0;
    while server.notifier().listeners() == 3 {
        assert!(changed < 4000, "{what}: it is never let go");
        for _ in 0..100 {
            server.notifier().resource_updated(&format!("x:/{changed}/{filling}"));
            changed += 1;
        }
        // Whoever reads hears of every one, in order.
        for client in [&mut quick, &mut piped] {
            for n in changed - 100..changed {
                let told = client.next("notifications/resources/updated").await;
                let uri = told["params"]["uri"].as_str().unwrap();
                assert!(uri.starts_with(&format!("x:/{n}/")), "{what}: {n}, but {:.20}", uri);
            }
            assert_eq!(client.call("hi", json!({})).await.said(), "hi", "{what}");
        }
    }
    assert_eq!(server.notifier().listeners(), 2, "{what}: it alone is let go");
    let messages = rest(slow, |m| m["id"] == "slow").await;
    let (told, end) = messages.split_at(messages.len() - 2);
    ends(end, &json!("slow"), what);
    let reason = end[0]["params"]["reason"].as_str().unwrap();
    assert!(reason.contains("not read in time"), "{what}: {reason}");
    let updates: Vec<&str> = told.iter().filter_map(|m| m["params"]["uri"].as_str()).collect();
    assert!(updates.len() >= 256 && updates.len() < changed, "{what}: {} of {changed}", updates.len());
    for (n, uri) in updates.iter().enumerate() {
        assert!(uri.starts_with(&format!("x:/{n}/")), "{what}: without a gap up to its end: {n} {uri:.20}");
    }
}

fn listen_slowly() -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"notifications": {"resourceSubscriptions": ["x:/"]}, "_meta": meta});
    json!({"jsonrpc": "2.0", "id": "slow", "method": "subscriptions/listen", "params": params})
}

#[testkit::test]
async fn who_does_not_read_over_http_is_let_go_with_a_reason_and_costs_the_others_nothing() {
    let server = live(&Arc::default());
    let house = House::of(&server).await;
    let address = house.url.trim_start_matches("http://").trim_end_matches("/mcp");
    // A system takes megabytes before it holds up who writes; with a small window it takes less.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut slow = socket.connect(address.parse().unwrap()).await.unwrap();
    let body = listen_slowly().to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         mcp-protocol-version: {MODERN}\r\nmcp-method: subscriptions/listen\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    slow.write_all(head.as_bytes()).await.unwrap();
    slow_reader(&server, &house, slow, ("http", 20_000)).await;
}

#[testkit::test]
async fn who_does_not_read_a_pipe_is_let_go_with_a_reason_and_costs_the_others_nothing() {
    let server = live(&Arc::default());
    let house = House::of(&server).await;
    let mut slow = tokio::net::UnixStream::connect(&house.socket).await.unwrap();
    slow.write_all(format!("{}\n", listen_slowly()).as_bytes()).await.unwrap();
    slow_reader(&server, &house, slow, ("pipe", 2000)).await;
}

#[testkit::test]
async fn a_listen_whose_client_is_gone_is_forgotten() {
    let server = live(&Arc::default());
    let house = House::of(&server).await;
    for wire in WIRES {
        for round in 0..5 {
            let mut client = house.client(wire, MODERN, json!({})).await;
            listen(&mut client, &json!("gone"), &tools()).await;
            assert_eq!(server.notifier().listeners(), 1, "{wire:?} {round}");
            match wire {
                Wire::Http => client.disconnect(1),
                _ => drop(client),
            }
            let gone = async {
                while server.notifier().listeners() > 0 {
                    server.notifier().tools_changed();
                    tokio::task::yield_now().await;
                }
            };
            tokio::time::timeout(PATIENCE, gone).await.expect("nobody listens any more");
        }
    }
}

#[testkit::test]
async fn can_03_sub_06_a_service_that_ends_its_listens_ends_them_in_the_same_way() {
    use dateline::{Peer, Rejection};
    use proto::{Answer, BoxFuture, Change, Description, Filter, Listening, Request};

    /// Its listens end after one change.
    struct Brief(Server);

    impl proto::Service for Brief {
        fn describe(&self) -> Arc<Description> {
            self.0.describe()
        }

        fn call(&self, request: Request) -> BoxFuture<'_, Result<Answer, Rejection>> {
            self.0.call(request)
        }

        fn listen(&self, filter: Filter, _: Arc<Peer>) -> BoxFuture<'_, Result<Listening, Rejection>> {
            let changes = Box::pin(futures_util::stream::iter([Change::Tools]));
            Box::pin(std::future::ready(Ok(Listening { honoured: filter, changes })))
        }

        fn abandon(&self, _: proto::Request) {}
        fn header_params(&self, _: &str) -> std::sync::Arc<[proto::HeaderParam]> {
            std::sync::Arc::new([])
        }
    }

    let brief = || Brief(live(&Arc::default()));
    let bound = Http::new(brief()).bind("127.0.0.1:0").await.unwrap();
    let url = bound.url();
    tokio::spawn(bound.serve());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = format!("tcp:{}", listener.local_addr().unwrap());
    tokio::spawn(dateline::tcp(
        listener,
        brief(),
        Revisions::ALL,
        Limits::default(),
        CancellationToken::new(),
    ));
    for (wire, mut client) in
        [(Wire::Http, Client::connect(&url)), (Wire::Stdio, Client::socket(&place).await)]
    {
        for id in [json!("one"), json!(2)] {
            listen(&mut client, &id, &tools()).await;
            let came = until(&mut client, 1).await;
            assert_eq!(came[0]["method"], "notifications/tools/list_changed", "{wire:?}");
            ends(&came[1..], &id, &format!("{wire:?}"));
        }
        assert_eq!(client.call("hi", json!({})).await.said(), "hi", "{wire:?}");
    }
}
