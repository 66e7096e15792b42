//! Several messages in one array: answered together where the revision has that, refused everywhere else.

use serde_json::{Value, json};
use testkit::{Arrival, Client, LATEST_LEGACY, LEGACY, LEGACY_WIRES, MODERN, WIRES, Wire};

use super::{fetch, initialize, session, url};
use crate::era::{beside, echo, meta, request};
use crate::msg::{client, sessions};
use crate::{DATELINE, long_countdown, modern};

/// The one revision that has batches.
const BATCHING: &str = "2025-03-26";

fn call(id: impl Into<Value>, tool: &str, arguments: Value) -> Value {
    request(id, "tools/call", json!({"name": tool, "arguments": arguments}))
}

fn ping(id: impl Into<Value>) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": "ping"})
}

fn notification(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// A batch's answer.
struct Answer {
    responses: Vec<Value>,
    /// The messages before it: on its own stream over HTTP.
    before: Vec<Value>,
}

impl Answer {
    /// The response to an id, of which there is one.
    fn of(&self, id: impl Into<Value>) -> &Value {
        let id = id.into();
        let mut found = self.responses.iter().filter(|response| response["id"] == id);
        let first = found.next().unwrap_or_else(|| panic!("no response to {id}: {:?}", self.responses));
        assert!(found.next().is_none(), "two responses to {id}: {:?}", self.responses);
        first
    }

    fn said(&self, id: impl Into<Value>) -> &str {
        self.of(id)["result"]["content"][0]["text"].as_str().unwrap_or_default()
    }

    fn code(&self, id: impl Into<Value>) -> i64 {
        self.of(id)["error"]["code"].as_i64().unwrap_or_default()
    }
}

/// Waits for the array that answers what was sent in an exchange.
async fn answer(client: &mut Client, wire: Wire, exchange: u64) -> Answer {
    let mut messages = match wire {
        Wire::Http => {
            let (head, messages) = client.whole(exchange).await;
            assert_eq!(head.status, 200, "{messages:?}");
            messages
        }
        Wire::Stdio | Wire::Sse => {
            let array = client.message("an array", Value::is_array).await;
            let before = client.leftovers().into_iter().filter_map(|arrival| match arrival {
                Arrival::Message(_, message, _) => Some(message),
                _ => None,
            });
            before.chain([array]).collect()
        }
    };
    let last = messages.pop().unwrap();
    let responses = last.as_array().unwrap_or_else(|| panic!("{wire:?}: no array, but {last}")).clone();
    assert!(
        messages.iter().all(|m| m.get("method").is_some()),
        "{wire:?}: only notices go before: {messages:?}"
    );
    Answer { responses, before: messages }
}

async fn ask(client: &mut Client, wire: Wire, batch: &Value) -> Answer {
    let exchange = client.send(batch, &[]).await;
    answer(client, wire, exchange).await
}

/// Asserts that what was sent is accepted without an answer.
async fn silent(client: &mut Client, wire: Wire, batch: &Value) {
    let exchange = client.send(batch, &[]).await;
    if wire == Wire::Http {
        let (head, messages) = client.whole(exchange).await;
        assert_eq!((head.status, messages), (202, vec![]), "{batch}");
    }
    alive(client, &format!("{wire:?} {batch}")).await;
}

/// Asserts that a call works, and that nothing else was said.
async fn alive(client: &mut Client, what: &str) {
    assert_eq!(client.call("echo", json!({"message": "alive"})).await.said(), "alive", "after {what}");
    let rest = client.leftovers();
    let said = rest.iter().find(|a| matches!(a, Arrival::Message(..) | Arrival::Rubbish(..)));
    assert!(said.is_none(), "after {what}: {said:?}");
}

#[testkit::test]
async fn http_05_the_requests_of_a_batch_are_answered_together_in_one_array() {
    for wire in LEGACY_WIRES {
        let mut client = client(wire, BATCHING, json!({})).await;
        let batch = json!([
            ping(1),
            call("two", "echo", json!({"message": "a"})),
            notification("notifications/none", json!({})),
            request(3, "no/method", json!({})),
            {"jsonrpc": "2.0", "id": 99, "result": {}},
            7,
            [],
            call(4, "slow_compute", json!({"seconds": 0.05, "label": "slow"})),
            request(5, "tools/list", json!({})),
        ]);
        let answer = ask(&mut client, wire, &batch).await;
        assert_eq!(answer.before, [Value::Null; 0], "{wire:?}");
        assert_eq!(answer.of(1), &json!({"jsonrpc": "2.0", "id": 1, "result": {}}), "{wire:?}");
        assert_eq!(answer.said("two"), "a", "{wire:?}");
        assert_eq!(answer.code(3), -32601, "{wire:?}");
        assert_eq!(answer.said(4), "slow is done after 0.05 s", "{wire:?}");
        assert!(answer.of(5)["result"]["tools"].is_array(), "{wire:?}");
        let unnamed: Vec<&Value> = answer.responses.iter().filter(|r| r["id"].is_null()).collect();
        assert_eq!(unnamed.len(), 2, "{wire:?}: one for each element that is no message: {unnamed:?}");
        assert!(unnamed.iter().all(|r| r["error"]["code"] == -32600), "{wire:?}: {unnamed:?}");
        assert_eq!(answer.responses.len(), 7, "{wire:?}: notifications and responses are not answered");
        // What can be answered at once comes in an array too.
        let answer = ask(&mut client, wire, &json!([ping("p")])).await;
        assert_eq!(answer.responses, [json!({"jsonrpc": "2.0", "id": "p", "result": {}})], "{wire:?}");
        alive(&mut client, &format!("{wire:?}")).await;
    }
}

#[testkit::test]
async fn http_05_a_batch_without_requests_is_not_answered_and_an_empty_one_is_refused() {
    for wire in LEGACY_WIRES {
        let mut client = client(wire, BATCHING, json!({})).await;
        silent(&mut client, wire, &json!([notification("notifications/none", json!({}))])).await;
        silent(
            &mut client,
            wire,
            &json!([
                notification("notifications/cancelled", json!({"requestId": 99})),
                {"jsonrpc": "2.0", "id": 99, "result": {}},
                {"jsonrpc": "2.0", "id": 98, "error": {"code": 1, "message": "no"}},
            ]),
        )
        .await;
        let exchange = client.send_text(" [ ] ", &[]).await;
        let refused = match wire {
            Wire::Http => {
                let (head, mut messages) = client.whole(exchange).await;
                assert_eq!(head.status, 400, "there is nothing in it that could be accepted");
                messages.remove(0)
            }
            _ => client.message("a refusal", |m| m.get("error").is_some()).await,
        };
        assert_eq!(refused["error"]["code"], -32600, "{wire:?}: {refused}");
        assert_eq!(refused["id"], Value::Null, "{wire:?}: {refused}");
        alive(&mut client, &format!("an empty batch on {wire:?}")).await;
    }
}

#[testkit::test]
async fn http_05_initialize_is_refused_in_a_batch_and_what_is_beside_it_is_answered() {
    for wire in LEGACY_WIRES {
        let mut client = client(wire, BATCHING, json!({})).await;
        let batch = json!([initialize(LATEST_LEGACY), call(1, "echo", json!({"message": "a"}))]);
        let exchange = client.send(&batch, &[]).await;
        let answer = answer(&mut client, wire, exchange).await;
        assert_eq!((answer.code("i"), answer.said(1)), (-32600, "a"), "{wire:?}");
        // It is the same session as before: another revision would refuse this.
        assert_eq!(ask(&mut client, wire, &json!([ping(2)])).await.responses.len(), 1, "{wire:?}");
    }
    // Nor does one open a session.
    let mut server = modern(Wire::Http).await;
    let batch = json!([initialize(BATCHING)]).to_string();
    let answer = fetch(url(&server), "POST", &[], &batch).await;
    assert_eq!((answer.status, answer.error().0, answer.header("mcp-session-id")), (400, -32600, None));
    let answer = fetch(url(&server), "POST", &[("MCP-Protocol-Version", BATCHING)], &batch).await;
    assert_eq!((answer.status, answer.error().0, answer.header("mcp-session-id")), (400, -32600, None));
    alive(&mut server, "a batch outside of sessions").await;
    for wire in [Wire::Stdio, Wire::Sse] {
        let mut client = modern(wire).await;
        client
            .send(&json!([initialize(BATCHING), notification("notifications/initialized", json!({}))]), &[])
            .await;
        let refused = client.message("a refusal", |m| m.get("error").is_some()).await;
        assert_eq!(refused["error"]["code"], -32600, "{wire:?}");
        let opened = client.handshake(BATCHING, json!({})).await;
        assert_eq!(
            opened.result()["protocolVersion"],
            BATCHING,
            "{wire:?}: it opens nothing and closes nothing"
        );
        alive(&mut client, "a batch before the handshake").await;
    }
}

#[testkit::test]
async fn http_05_every_request_of_a_batch_with_an_id_twice_is_answered() {
    for wire in LEGACY_WIRES {
        let mut client = client(wire, BATCHING, json!({})).await;
        let slow = json!({"seconds": 0.05, "label": "slow"});
        let batch = json!([call(1, "slow_compute", slow), call(1, "echo", json!({"message": "a"})), ping(2)]);
        let answer = ask(&mut client, wire, &batch).await;
        let of_one: Vec<&Value> = answer.responses.iter().filter(|r| r["id"] == 1).collect();
        let refused = of_one.iter().filter(|r| r["error"]["code"] == -32600).count();
        let done = of_one
            .iter()
            .filter(|r| r["result"]["content"][0]["text"] == "slow is done after 0.05 s")
            .count();
        assert_eq!((answer.responses.len(), refused, done), (3, 1, 1), "{wire:?}: {:?}", answer.responses);
    }
}

#[testkit::test]
async fn http_05_a_cancelled_call_of_a_batch_is_not_answered_and_the_others_are() {
    for wire in LEGACY_WIRES {
        let mut client = client(wire, BATCHING, json!({})).await;
        let long = request("long", "tools/call", long_countdown());
        let cancel = notification("notifications/cancelled", json!({"requestId": "long"}));
        // In the same batch.
        let batch = json!([long, cancel, call(1, "echo", json!({"message": "a"}))]);
        let answer = ask(&mut client, wire, &batch).await;
        assert_eq!((answer.responses.len(), answer.said(1)), (1, "a"), "{wire:?}");
        silent(&mut client, wire, &json!([long, cancel])).await;
        // While it is the last one that the batch waits for.
        let batch = json!([long, call(2, "echo", json!({"message": "b"}))]);
        let exchange = client.send(&batch, &[]).await;
        client.next("notifications/progress").await;
        client.send(&cancel, &[]).await;
        let answer = self::answer(&mut client, wire, exchange).await;
        assert_eq!((answer.responses.len(), answer.said(2)), (1, "b"), "{wire:?}");
        // While it is the only one.
        let exchange = client.send(&json!([long]), &[]).await;
        client.next("notifications/progress").await;
        client.send(&json!([cancel, ping(3)]), &[]).await;
        if wire == Wire::Http {
            client.wait("the end", |a| matches!(a, Arrival::End(of) if *of == exchange)).await;
        }
        let array = client.message("an array", Value::is_array).await;
        assert_eq!(array, json!([{"jsonrpc": "2.0", "id": 3, "result": {}}]), "{wire:?}");
        let (mut ids, wanted) = (String::new(), r#""long""#);
        for _ in 0..200 {
            ids = client.call("cancelled_calls", json!({})).await.said().to_owned();
            // One that was cancelled before it began has nothing to note.
            if ids.matches(wanted).count() >= 2 {
                break;
            }
        }
        assert!(ids.matches(wanted).count() >= 2, "{wire:?}: the calls themselves end: {ids}");
    }
}

#[testkit::test]
async fn http_05_progress_and_questions_of_a_batched_call_come_on_the_stream_of_the_batch() {
    for wire in LEGACY_WIRES {
        let mut client = client(wire, BATCHING, json!({"sampling": {}})).await;
        let counting = |id: &str| {
            let params = json!({"name": "countdown", "arguments": {"from": 2, "intervalMs": 1}, "_meta": {"progressToken": id}});
            request(id, "tools/call", params)
        };
        let answer = ask(&mut client, wire, &json!([counting("x"), counting("y")])).await;
        assert_eq!(
            (answer.said("x"), answer.said("y")),
            ("counted down from 2", "counted down from 2"),
            "{wire:?}"
        );
        for token in ["x", "y"] {
            let told: Vec<&Value> = answer
                .before
                .iter()
                .filter(|m| m["params"]["progressToken"] == token)
                .map(|m| &m["params"]["progress"])
                .collect();
            assert_eq!(told, [&json!(0.0), &json!(1.0), &json!(2.0)], "{wire:?} {token}");
        }
        assert_eq!(answer.before.len(), 6, "{wire:?}: {:?}", answer.before);

        let batch = json!([
            call("ask", "test_sampling", json!({"prompt": "?"})),
            call("quick", "echo", json!({"message": "q"}))
        ]);
        let exchange = client.send(&batch, &[]).await;
        let sampling =
            |a: &Arrival| matches!(a, Arrival::Message(_, m, _) if m["method"] == "sampling/createMessage");
        let Arrival::Message(on, question, _) = client.wait("the question", sampling).await else {
            unreachable!()
        };
        assert_eq!(on, exchange, "{wire:?}: it is asked on the stream of the call");
        let result = json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}});
        // The answer comes in a batch too, whose own request is answered by itself.
        let reply = json!([{"jsonrpc": "2.0", "id": question["id"], "result": result}, ping("p")]);
        let replied = client.send(&reply, &[]).await;
        if wire == Wire::Http {
            assert_eq!(self::answer(&mut client, wire, replied).await.responses.len(), 1);
        } else {
            let array = client.message("the ping", |m| m[0]["id"] == "p").await;
            assert_eq!(array.as_array().map(Vec::len), Some(1), "{wire:?}: {array}");
        }
        let answer = self::answer(&mut client, wire, exchange).await;
        assert_eq!((answer.said("ask"), answer.said("quick")), ("LLM response: Paris", "q"), "{wire:?}");
        assert_eq!(answer.responses.len(), 2, "{wire:?}");
    }
}

#[testkit::test]
async fn http_05_a_client_that_takes_one_object_gets_the_array_as_one() {
    let server = modern(Wire::Http).await;
    let mut live = session(&server, BATCHING, json!({"sampling": {}})).await;
    let params = json!({"name": "countdown", "arguments": {"from": 2, "intervalMs": 1}, "_meta": {"progressToken": 1}});
    let batch = json!([
        request("c", "tools/call", params),
        call("s", "test_sampling", json!({"prompt": "?"})),
        ping("p")
    ]);
    let exchange = live.send(&batch, &[("accept", "application/json")]).await;
    let (head, mut messages) = live.whole(exchange).await;
    assert_eq!(testkit::header(&head.headers, "content-type"), Some("application/json"));
    assert_eq!(messages.len(), 1, "{messages:?}");
    let answer = Answer { responses: messages.remove(0).as_array().unwrap().clone(), before: Vec::new() };
    assert_eq!((answer.said("c"), answer.responses.len()), ("counted down from 2", 3));
    assert!(answer.of("s").get("error").is_some(), "nobody can be asked there: {:?}", answer.responses);
    // And one that wants a stream gets it on one.
    let exchange = live.send(&json!([ping("p")]), &[("accept", "text/event-stream")]).await;
    let (head, messages) = live.whole(exchange).await;
    assert_eq!(testkit::header(&head.headers, "content-type"), Some("text/event-stream"));
    assert_eq!(messages, [json!([{"jsonrpc": "2.0", "id": "p", "result": {}}])]);
}

/// What must be refused whole, whatever is in it.
fn batches() -> Vec<Value> {
    let notified = notification("notifications/initialized", json!({}));
    vec![
        json!([]),
        json!([ping(1)]),
        json!([notified]),
        json!([call(1, "echo", json!({"message": "a"})), call(2, "echo", json!({"message": "b"}))]),
        json!([request("m", "tools/call", echo(meta(MODERN)))]),
        json!([initialize(BATCHING), notified]),
        json!([{"jsonrpc": "2.0", "id": 1, "result": {}}]),
        json!([7]),
    ]
}

#[testkit::test]
async fn http_06_a_batch_is_refused_whole_in_every_other_revision() {
    for (wire, revision) in sessions().into_iter().filter(|(_, revision)| *revision != BATCHING) {
        let mut client = client(wire, revision, json!({})).await;
        for batch in batches() {
            let told = format!("{wire:?} {revision} {batch}");
            let exchange = client.send(&batch, &[]).await;
            let refused = match wire {
                Wire::Http => {
                    let (head, mut messages) = client.whole(exchange).await;
                    assert_eq!((head.status, messages.len()), (400, 1), "{told}: {messages:?}");
                    messages.remove(0)
                }
                _ => client.message("a refusal", |m| m.get("error").is_some()).await,
            };
            assert_eq!(refused["error"]["code"], -32600, "{told}: {refused}");
            assert!(refused["id"].is_null(), "{told}: {refused}");
            alive(&mut client, &told).await;
        }
    }
}

#[testkit::test]
async fn http_06_a_batch_is_refused_whole_outside_of_sessions() {
    let mut server = modern(Wire::Http).await;
    for batch in batches() {
        for version in LEGACY.iter().copied().chain([MODERN, "", "2031-01-01"]) {
            let told = format!("{version:?} {batch}");
            let answer =
                fetch(url(&server), "POST", &[("MCP-Protocol-Version", version)], &batch.to_string()).await;
            assert_eq!((answer.status, answer.error().0), (400, -32600), "{told}: {}", answer.body);
            assert_eq!(answer.header("mcp-session-id"), None, "{told}");
        }
        // A live session's header of another revision does not lead into the session.
        let mut live = session(&server, BATCHING, json!({})).await;
        let exchange = live.send(&batch, &[("mcp-protocol-version", LATEST_LEGACY)]).await;
        let (head, messages) = live.whole(exchange).await;
        assert_eq!(
            (head.status, &messages[0]["error"]["code"]),
            (400, &json!(-32600)),
            "{batch}: {messages:?}"
        );
        let mut gone = beside(&server);
        gone.session = Some("gone".to_owned());
        let exchange = gone.send(&batch, &[("mcp-protocol-version", BATCHING)]).await;
        assert!([400, 404].contains(&gone.head(exchange).await.status), "{batch}");
    }
    alive(&mut server, "batches").await;
    for wire in WIRES.into_iter().filter(|wire| *wire != Wire::Http) {
        for (at, batch) in batches().into_iter().enumerate() {
            let mut client = modern(wire).await;
            client.send(&batch, &[]).await;
            let refused = client.message("a refusal", |m| m.get("error").is_some()).await;
            assert_eq!(refused["error"]["code"], -32600, "{wire:?} {batch}: {refused}");
            alive(&mut client, &format!("{wire:?} {batch}")).await;
            client.handshake(LEGACY[at % LEGACY.len()], json!({})).await.result();
        }
    }
}

/// Text of so many bytes, echoed under an id.
fn long(id: u64, bytes: usize) -> Value {
    call(id, "echo", json!({"message": "x".repeat(bytes)}))
}

#[testkit::test]
async fn http_05_an_array_of_more_messages_than_it_may_hold_is_refused_whole() {
    for wire in LEGACY_WIRES {
        let mut client = client(wire, BATCHING, json!({})).await;
        let batch: Vec<Value> = (0..100).map(ping).collect();
        assert_eq!(ask(&mut client, wire, &json!(batch)).await.responses.len(), 100, "{wire:?}");
        let many = [batch, vec![ping(100)]].concat();
        for batch in [json!(many).to_string(), format!("[{}{{}}]", "{},".repeat(100_000))] {
            let exchange = client.send_text(&batch, &[]).await;
            let refused = match wire {
                Wire::Http => {
                    let (head, mut messages) = client.whole(exchange).await;
                    assert_eq!(head.status, 400, "nothing of it was accepted");
                    messages.remove(0)
                }
                _ => client.message("a refusal", |m| m.get("error").is_some()).await,
            };
            assert_eq!(
                (&refused["error"]["code"], &refused["id"]),
                (&json!(-32600), &Value::Null),
                "{wire:?}"
            );
            let why = refused["error"]["message"].as_str().unwrap();
            assert!(why.contains("100 messages"), "{wire:?}: it tells the limit: {why}");
            alive(&mut client, &format!("too many messages on {wire:?}")).await;
        }
    }
}

#[testkit::test]
async fn http_05_answers_that_would_be_too_long_together_are_errors_each_to_its_request() {
    const LIMIT: usize = 40_000;
    for wire in LEGACY_WIRES {
        let mut client = Client::start(wire, DATELINE, &["demo", "--max-message", &LIMIT.to_string()]).await;
        client.handshake(BATCHING, json!({})).await;
        // The demo says of itself more than it was asked for.
        let lists: Vec<Value> = (0..50).map(|id| request(id, "tools/list", json!({}))).collect();
        let answer = ask(&mut client, wire, &json!(lists)).await;
        assert_eq!(answer.responses.len(), 50, "{wire:?}: each request has its answer");
        let (given, refused): (Vec<_>, Vec<_>) =
            answer.responses.iter().partition(|r| r.get("result").is_some());
        assert!(!given.is_empty() && !refused.is_empty(), "{wire:?}: {} given", given.len());
        for error in refused {
            let why = error["error"]["message"].as_str().unwrap();
            assert_eq!(error["error"]["code"], -32603, "{wire:?}: {error}");
            assert!(why.contains("40000 bytes"), "{wire:?}: {why}");
        }
        let length: usize = given.iter().map(|response| response.to_string().len()).sum();
        assert!(length <= LIMIT || given.len() == 1, "{wire:?}: {length}");
        let answer = ask(&mut client, wire, &json!([long(1, 30_000)])).await;
        assert_eq!(answer.said(1).len(), 30_000, "{wire:?}");
    }
}
