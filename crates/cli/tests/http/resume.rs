//! The streams of a session: what goes out on which, and what a client gets that comes back.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use testkit::{Arrival, Client, LATEST_LEGACY, LEGACY, Wire, header};

use super::{fetch, id_of, session, url, within};
use crate::era::beside;
use crate::{long_countdown, modern};

/// A part of an event stream, in the order in which it came.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    Id(String),
    Retry(u64),
    Message(Value),
}

impl Part {
    fn of(arrival: &Arrival) -> Option<Part> {
        match arrival {
            Arrival::Message(_, message, _) => Some(Part::Message(message.clone())),
            Arrival::Field(_, field) => match field.split_once(": ").unwrap() {
                ("id", id) => Some(Part::Id(id.to_owned())),
                ("retry", after) => Some(Part::Retry(after.parse().unwrap())),
                other => panic!("what is {other:?}"),
            },
            _ => None,
        }
    }
}

/// A demo, whose open files say how many connections it has.
struct Server {
    client: Client,
    /// Its open files without connections.
    quiet: usize,
}

impl Server {
    async fn start() -> Server {
        let client = modern(Wire::Http).await;
        let quiet = open_files(&client);
        Server { client, quiet }
    }

    /// Waits until it has noticed the end of all connections but so many.
    async fn settle(&self, open: usize) {
        let noticed = async {
            while open_files(&self.client) != self.quiet + open {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
        };
        within(&format!("{open} connections are open"), noticed).await;
    }
}

/// How many files a client's own server has open.
pub(super) fn open_files(server: &Client) -> usize {
    let pid = server.program.as_ref().unwrap().child.id().unwrap();
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// One more client of a session, for one stream.
fn twin(of: &Client, server: &Server) -> Client {
    let mut twin = beside(&server.client);
    (twin.session, twin.revision) = (of.session.clone(), of.revision);
    twin
}

/// A stream of a session, read on a connection of its own.
struct Stream {
    client: Client,
    exchange: u64,
    parts: Vec<Part>,
}

impl Stream {
    /// Opens one by GET, or goes on with one, and waits for its head.
    async fn open(of: &Client, server: &Server, seen: Option<&str>) -> Stream {
        let mut client = twin(of, server);
        let mut headers = vec![("accept", "text/event-stream"), ("content-type", "")];
        headers.extend(seen.map(|seen| ("last-event-id", seen)));
        let exchange = client.exchange("GET", &headers, Vec::new());
        let head = client.head(exchange).await;
        assert_eq!(head.status, 200, "{seen:?}");
        assert_eq!(header(&head.headers, "content-type"), Some("text/event-stream"));
        Stream { client, exchange, parts: Vec::new() }
    }

    /// Posts a call.
    async fn call(of: &Client, server: &Server, id: &str, params: Value) -> Stream {
        let mut client = twin(of, server);
        let exchange = client.begin_as(json!(id), "tools/call", params).await;
        Stream { client, exchange, parts: Vec::new() }
    }

    /// The next part.
    async fn next(&mut self, what: &str) -> Part {
        let arrival = self.client.wait(what, |a| Part::of(a).is_some()).await;
        self.parts.push(Part::of(&arrival).unwrap());
        self.parts.last().unwrap().clone()
    }

    /// The next message; what comes before it is an id at most.
    async fn message(&mut self, what: &str) -> Value {
        loop {
            if let Part::Message(message) = self.next(what).await {
                return message;
            }
        }
    }

    /// Waits for a message of a method; gives how many messages came until then, with it.
    async fn until(&mut self, method: &str) -> usize {
        let mut count = 1;
        while self.message(method).await["method"] != method {
            count += 1;
        }
        count
    }

    /// Everything to the end of the stream.
    async fn rest(&mut self) -> &[Part] {
        let exchange = self.exchange;
        self.client.wait("the end", |a| matches!(a, Arrival::End(of) if *of == exchange)).await;
        self.arrived()
    }

    /// Everything that came so far.
    fn arrived(&mut self) -> &[Part] {
        self.parts.extend(self.client.leftovers().iter().filter_map(Part::of));
        &self.parts
    }

    fn ids(&self) -> Vec<&str> {
        self.parts
            .iter()
            .filter_map(|part| if let Part::Id(id) = part { Some(id.as_str()) } else { None })
            .collect()
    }

    fn messages(&self) -> Vec<&Value> {
        self.parts
            .iter()
            .filter_map(|part| if let Part::Message(m) = part { Some(m) } else { None })
            .collect()
    }

    /// The id of the event that carried the last message, or that opened the stream.
    fn last(&self) -> String {
        (*self.ids().last().unwrap()).to_owned()
    }

    /// Its connection is cut; gives what had come.
    fn cut(mut self) -> Vec<Part> {
        std::mem::take(&mut self.parts)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.client.disconnect(self.exchange);
    }
}

/// A session of which the server knows that it is initialized.
async fn opened(server: &Server, revision: &'static str, capabilities: Value) -> Client {
    let mut live = session(&server.client, revision, capabilities).await;
    live.wait("the 202", |a| matches!(a, Arrival::Head(_, head) if head.status == 202)).await;
    live
}

const TOOLS: &str = "notifications/tools/list_changed";
const PROMPTS: &str = "notifications/prompts/list_changed";

/// Makes the server tell the session something that concerns no call.
async fn tell(client: &mut Client, method: &str) {
    let tool = if method == TOOLS { "test_trigger_tool_change" } else { "test_trigger_prompt_change" };
    let reply = client.call(tool, json!({})).await;
    assert_eq!(reply.said(), "changed");
    assert!(reply.before.is_empty(), "it concerns no call: {:?}", reply.before);
}

/// Opens a GET stream that is told of the next change, however long the server takes to notice the end of others.
async fn reads(client: &mut Client, stream: &mut Stream) {
    tell(client, PROMPTS).await;
    stream.until(PROMPTS).await;
}

fn counting(from: u32, every: u32) -> Value {
    json!({"name": "countdown", "arguments": {"from": from, "intervalMs": every}, "_meta": {"progressToken": "t"}})
}

/// The stream that an id names: what all ids of a stream have in common, and those of no other.
fn stream_of(id: &str) -> &str {
    id.rsplit_once('-').unwrap_or_else(|| panic!("{id} names no stream")).0
}

#[testkit::test]
async fn http_13_a_message_goes_out_on_one_of_several_streams() {
    let server = Server::start().await;
    for revision in LEGACY {
        let mut live = opened(&server, revision, json!({})).await;
        let other = opened(&server, revision, json!({})).await;
        let mut of_other = Stream::open(&other, &server, None).await;
        let mut streams = Vec::new();
        for _ in 0..3 {
            streams.push(Stream::open(&live, &server, None).await);
        }
        let newest = streams.last_mut().unwrap();
        for _ in 0..5 {
            tell(&mut live, TOOLS).await;
            // A change that still waits for a listener is not told twice, so each is waited for.
            assert_eq!(newest.until(TOOLS).await, 1, "{revision}");
            assert_eq!(of_other.until(TOOLS).await, 1, "{revision}");
        }
        // Of another kind, behind them: when this has come, they have.
        tell(&mut live, PROMPTS).await;
        assert_eq!(newest.until(PROMPTS).await, 1, "{revision}");
        for stream in &mut streams {
            stream.arrived();
        }
        let told: Vec<usize> = streams.iter().map(|stream| stream.messages().len()).collect();
        assert_eq!(told.iter().sum::<usize>(), 6, "{revision}: {told:?}");
        // The end of one leaves the others, which take over.
        let last = streams.pop().unwrap().cut().len();
        assert!(last > 0, "{revision}");
        server.settle(3).await;
        for stream in &mut streams {
            stream.parts.clear();
        }
        tell(&mut live, TOOLS).await;
        tell(&mut live, PROMPTS).await;
        assert_eq!(streams[1].until(PROMPTS).await, 2, "{revision}");
        assert_eq!(streams[0].arrived(), [], "{revision}");
        while of_other.messages().len() < 8 {
            of_other.message("what each session is told").await;
        }
        assert_eq!(of_other.messages().len(), 8, "{revision}: each session is told once");
        drop((streams, of_other));
        server.settle(0).await;
    }
}

#[testkit::test]
async fn http_13_what_concerns_a_call_goes_on_the_stream_of_the_call() {
    let server = Server::start().await;
    for revision in LEGACY {
        let mut live = opened(&server, revision, json!({"sampling": {}, "roots": {}})).await;
        let mut own = Stream::open(&live, &server, None).await;
        let mut first = Stream::call(&live, &server, "first", counting(3, 1)).await;
        let mut second = Stream::call(
            &live,
            &server,
            "second",
            json!({"name": "test_tool_with_logging", "arguments": {}}),
        )
        .await;
        let asking = json!({"name": "test_sampling", "arguments": {"prompt": "?"}});
        let mut third = Stream::call(&live, &server, "third", asking).await;
        let question = third.message("the question").await;
        assert_eq!(question["method"], "sampling/createMessage", "{revision}");
        let result = json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}});
        live.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result}), &[]).await;
        for (stream, id, method, count) in [
            (&mut first, "first", "notifications/progress", 4),
            (&mut second, "second", "notifications/message", 3),
            (&mut third, "third", "sampling/createMessage", 1),
        ] {
            stream.rest().await;
            let mut messages = stream.messages();
            let response = messages.pop().unwrap();
            assert_eq!(
                (&response["id"], response.get("result").is_some()),
                (&json!(id), true),
                "{revision}: {response}"
            );
            assert_eq!(messages.len(), count, "{revision} {id}: {messages:?}");
            assert!(messages.iter().all(|m| m["method"] == method), "{revision} {id}: {messages:?}");
        }
        tell(&mut live, PROMPTS).await;
        assert_eq!(
            own.until(PROMPTS).await,
            1,
            "{revision}: nothing of a call is told here: {:?}",
            own.parts
        );
    }
}

#[testkit::test]
async fn http_13_a_get_without_a_session_is_405_and_streams_are_limited() {
    let server = Server::start().await;
    let answer = fetch(url(&server.client), "GET", &[("Accept", "text/event-stream")], "").await;
    assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")));
    answer.error();
    for revision in LEGACY {
        let mut live = opened(&server, revision, json!({})).await;
        let id = id_of(&live);
        let get = [("Mcp-Session-Id", id.as_str()), ("Accept", "application/json")];
        let answer = fetch(url(&server.client), "GET", &get, "").await;
        assert_eq!((answer.status, answer.error().1), (406, None), "{revision}");
        // Names a stream of the session's own that is gone, as far as one knows.
        let mut call = Stream::call(&live, &server, "first", counting(1, 1)).await;
        call.rest().await;
        let gone = call.last().replace("-c", "-s");
        assert_ne!(gone, call.last());
        let mut first = Stream::open(&live, &server, None).await;
        reads(&mut live, &mut first).await;
        let known = first.last();
        let mut open = vec![first];
        while open.len() < 32 {
            open.push(Stream::open(&live, &server, None).await);
        }
        let call = Stream::call(&live, &server, "c", long_countdown()).await;
        for seen in [None, Some(gone.as_str())] {
            let mut extra = twin(&live, &server);
            let mut headers = vec![("accept", "text/event-stream")];
            headers.extend(seen.map(|seen| ("last-event-id", seen)));
            let exchange = extra.exchange("GET", &headers, Vec::new());
            let head = extra.head(exchange).await;
            let due = if seen.is_none() { [429, 429] } else { [429, 400] };
            assert!(due.contains(&head.status), "{revision} {seen:?}: {}", head.status);
        }
        // Who comes back takes the place of its own connection, which ends.
        let again = Stream::open(&live, &server, Some(&known)).await;
        open[0].rest().await;
        open[0] = again;
        assert_eq!(
            live.call("echo", json!({"message": "hi"})).await.said(),
            "hi",
            "{revision}: calls are not counted"
        );
        open.pop().unwrap().cut();
        let room = async {
            loop {
                let mut extra = twin(&live, &server);
                let exchange = extra.exchange("GET", &[("accept", "text/event-stream")], Vec::new());
                match extra.head(exchange).await.status {
                    200 => return,
                    status => assert_eq!(status, 429, "{revision}"),
                }
            }
        };
        within("the end of a stream makes room", room).await;
        drop(call);
    }
}

#[testkit::test]
async fn http_14_event_ids_are_unique_in_a_session_and_name_their_stream() {
    let server = Server::start().await;
    for revision in LEGACY {
        let mut live = opened(&server, revision, json!({})).await;
        let mut streams = Vec::new();
        for at in 0..3 {
            let mut own = Stream::open(&live, &server, None).await;
            for _ in 0..2 {
                reads(&mut live, &mut own).await;
            }
            own.arrived();
            streams.push(own);
            let mut call = Stream::call(&live, &server, &at.to_string(), counting(2, 1)).await;
            call.rest().await;
            streams.push(call);
        }
        let all: Vec<&str> = streams.iter().flat_map(Stream::ids).collect();
        let messages: usize = streams.iter().map(|stream| stream.messages().len()).sum();
        let priming = if revision == LATEST_LEGACY { streams.len() } else { 0 };
        assert_eq!(all.len(), messages + priming, "{revision}: every message has an id: {all:?}");
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "{revision}: {all:?}");
        let mut names = BTreeSet::new();
        for stream in &streams {
            let of: BTreeSet<&str> = stream.ids().into_iter().map(stream_of).collect();
            assert_eq!(of.len(), 1, "{revision}: {of:?}");
            assert!(
                names.insert(of.first().unwrap().to_string()),
                "{revision}: {of:?} is another's: {names:?}"
            );
        }
    }
}

#[testkit::test]
async fn http_14_a_stream_opens_with_an_empty_event_from_2025_11_25_on() {
    let server = Server::start().await;
    for revision in LEGACY {
        let mut live = opened(&server, revision, json!({})).await;
        let mut own = Stream::open(&live, &server, None).await;
        reads(&mut live, &mut own).await;
        let mut call = Stream::call(&live, &server, "c", counting(2, 1)).await;
        call.rest().await;
        // A call that says nothing is soon on a stream that its client can come back for.
        let mut silent =
            Stream::call(&live, &server, "s", json!({"name": "slow_compute", "arguments": {"seconds": 0.8}}))
                .await;
        silent.rest().await;
        for (what, stream) in [("GET", &own), ("call", &call), ("silent call", &silent)] {
            let told = format!("{revision} {what}: {:?}", stream.parts);
            let ids = stream.ids();
            if revision == LATEST_LEGACY {
                let [Part::Id(opening), Part::Retry(after), Part::Id(_), ..] = &stream.parts[..] else {
                    panic!("no opening event: {told}");
                };
                assert!(*after > 0, "{told}");
                assert_eq!(ids.iter().filter(|id| *id == opening).count(), 1, "{told}");
                assert_eq!(ids.len(), stream.messages().len() + 1, "{told}");
            } else {
                assert!(!stream.parts.iter().any(|part| matches!(part, Part::Retry(_))), "{told}");
                assert_eq!(ids.len(), stream.messages().len(), "{told}");
            }
        }
    }
}

#[testkit::test]
async fn http_14_replay_goes_on_behind_the_event_named_on_that_stream_alone() {
    let server = Server::start().await;
    for revision in LEGACY {
        let mut live = opened(&server, revision, json!({})).await;
        let mut one = Stream::open(&live, &server, None).await;
        let mut ids = Vec::new();
        for method in [TOOLS, PROMPTS, TOOLS] {
            tell(&mut live, method).await;
            one.until(method).await;
            ids.push(one.last());
        }
        one.cut();
        server.settle(0).await;
        // What went out is replayed on no other stream: not on that of a call, not on a plain GET.
        let mut call = Stream::call(&live, &server, "c", counting(3, 1)).await;
        call.rest().await;
        assert_eq!(call.messages().len(), 5, "{revision}: {:?}", call.parts);
        let mut two = Stream::open(&live, &server, None).await;
        tell(&mut live, PROMPTS).await;
        assert_eq!(two.until(PROMPTS).await, 1, "{revision}: {:?}", two.parts);
        let fourth = two.last();
        two.cut();
        server.settle(0).await;
        // Behind the first: the second and the third with the ids that they had, and not what the other stream had.
        let mut back = Stream::open(&live, &server, Some(&ids[0])).await;
        tell(&mut live, PROMPTS).await;
        for method in [PROMPTS, TOOLS, PROMPTS] {
            assert_eq!(back.message("a replay").await["method"], method, "{revision}");
        }
        assert_eq!(back.ids()[..2], ids[1..], "{revision}");
        assert!(!back.ids().contains(&&*fourth), "{revision}: {:?}", back.ids());
        // What came anew on a stream that was gone on with has an id of that stream.
        let fifth = back.last();
        assert_eq!(stream_of(&fifth), stream_of(&ids[0]), "{revision}");
        back.cut();
        server.settle(0).await;
        // The event that is named is acknowledged: neither it nor one before it is sent again.
        let mut back = Stream::open(&live, &server, Some(&ids[2])).await;
        assert_eq!(back.until(PROMPTS).await, 1, "{revision}");
        assert_eq!(back.last(), fifth, "{revision}");
        back.cut();
        server.settle(0).await;
        let mut back = Stream::open(&live, &server, Some(&fifth)).await;
        tell(&mut live, TOOLS).await;
        assert_eq!(back.until(TOOLS).await, 1, "{revision}: {:?}", back.parts);
        assert!(!ids.contains(&back.last()) && back.last() != fifth, "{revision}: {:?}", back.parts);
        back.cut();
        server.settle(0).await;
        // The other stream's own event is still there for who asks for what came before it.
        let mut back = Stream::open(&live, &server, Some(&format!("{}-0", stream_of(&fourth)))).await;
        back.message("the fourth").await;
        assert_eq!(back.last(), fourth, "{revision}");
        back.cut();
        server.settle(0).await;
    }
}

#[testkit::test]
async fn http_14_what_nobody_could_read_waits_for_the_next_stream_and_goes_out_once() {
    let server = Server::start().await;
    for revision in LEGACY {
        let mut live = opened(&server, revision, json!({})).await;
        for method in [TOOLS, PROMPTS] {
            tell(&mut live, method).await;
        }
        for round in 0..2 {
            let mut stream = Stream::open(&live, &server, None).await;
            let due = if round == 0 { 2 } else { 1 };
            if round == 1 {
                tell(&mut live, PROMPTS).await;
            }
            assert_eq!(stream.until(PROMPTS).await, due, "{revision}: {:?}", stream.parts);
            stream.cut();
            server.settle(0).await;
        }
    }
}

/// The numbers that progress messages report.
fn progress(messages: &[&Value]) -> Vec<u64> {
    let of = |m: &&Value| m["params"]["progress"].as_f64();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    messages.iter().filter_map(of).map(|progress| progress as u64).collect()
}

#[testkit::test]
async fn http_14_http_15_a_call_whose_client_is_away_goes_on_and_is_gone_on_with() {
    let mut server = Server::start().await;
    for revision in LEGACY {
        let mut live = opened(&server, revision, json!({})).await;
        let mut own = Stream::open(&live, &server, None).await;
        // In the middle of it, twice.
        let mut call = Stream::call(&live, &server, "middle", counting(12, 10)).await;
        let mut all = Vec::new();
        for _ in 0..2 {
            call.message("progress").await;
            call.message("progress").await;
            let seen = call.last();
            // What else is on the way to a client that is cut off is not seen.
            let end = call.parts.iter().rposition(|part| part == &Part::Id(seen.clone())).unwrap() + 2;
            all.extend(call.cut().into_iter().take(end));
            call = Stream::open(&live, &server, Some(&seen)).await;
        }
        call.rest().await;
        all.append(&mut call.parts);
        call.parts = all;
        let all = call;
        let mut messages = all.messages();
        let response = messages.pop().unwrap();
        assert_eq!(response["result"]["content"][0]["text"], "counted down from 12", "{revision}");
        assert_eq!(progress(&messages), (0..=12).collect::<Vec<_>>(), "{revision}: each once, in order");
        // To the end of it: what was not read is there afterwards.
        let mut call = Stream::call(&live, &server, "away", counting(3, 10)).await;
        call.message("progress").await;
        let seen = call.last();
        call.cut();
        let slow = json!({"seconds": 0.1});
        live.call("slow_compute", slow).await.result();
        server.settle(1).await;
        let mut back = Stream::open(&live, &server, Some(&seen)).await;
        back.rest().await;
        let messages = back.messages();
        assert_eq!(progress(&messages), [1, 2, 3], "{revision}: {messages:?}");
        assert_eq!((messages.len(), &messages[3]["id"]), (4, &json!("away")), "{revision}: {messages:?}");
        // Having it, the client does not get it again.
        let last = back.last();
        let answer = fetch(
            url(&server.client),
            "GET",
            &[("Mcp-Session-Id", &id_of(&live)), ("Last-Event-ID", &last)],
            "",
        )
        .await;
        assert!(!answer.body.contains("counted down"), "{revision}: {}", answer.body);
        tell(&mut live, PROMPTS).await;
        assert_eq!(own.until(PROMPTS).await, 1, "{revision}: {:?}", own.parts);
        own.cut();
        server.settle(0).await;
    }
    assert_eq!(
        server.client.call("cancelled_calls", json!({})).await.said(),
        "",
        "nobody has cancelled anything"
    );
}

#[testkit::test]
async fn http_15_a_silent_call_and_a_question_outlive_their_connection() {
    let server = Server::start().await;
    let live = opened(&server, LATEST_LEGACY, json!({"sampling": {}})).await;
    let mut call =
        Stream::call(&live, &server, "s", json!({"name": "slow_compute", "arguments": {"seconds": 0.8}}))
            .await;
    call.next("the opening event").await;
    let seen = call.last();
    call.cut();
    let mut back = Stream::open(&live, &server, Some(&seen)).await;
    back.rest().await;
    assert_eq!(back.messages()[0]["result"]["content"][0]["text"], "it is done after 0.8 s");
    assert_eq!(back.messages().len(), 1);
    for revision in LEGACY {
        let mut live = opened(&server, revision, json!({"sampling": {}})).await;
        // The question was seen; it is answered before the client is back.
        let mut call =
            Stream::call(&live, &server, "q", json!({"name": "test_sampling", "arguments": {"prompt": "?"}}))
                .await;
        let question = call.message("the question").await;
        let seen = call.last();
        call.cut();
        server.settle(0).await;
        let result = json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}});
        live.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result}), &[]).await;
        let mut back = Stream::open(&live, &server, Some(&seen)).await;
        back.rest().await;
        assert_eq!(back.messages().len(), 1, "{revision}: {:?}", back.parts);
        assert_eq!(back.messages()[0]["result"]["content"][0]["text"], "LLM response: Paris", "{revision}");
    }
}

#[testkit::test]
async fn http_14_a_last_event_id_that_names_nothing_here_is_400() {
    let server = Server::start().await;
    for revision in LEGACY {
        let mut live = opened(&server, revision, json!({})).await;
        let mut other = opened(&server, revision, json!({})).await;
        // Both sessions have the same streams.
        let mut foreign = Vec::new();
        for session in [&mut live, &mut other] {
            let mut own = Stream::open(session, &server, None).await;
            reads(session, &mut own).await;
            let mut call = Stream::call(session, &server, "c", counting(1, 1)).await;
            call.rest().await;
            foreign = vec![own.last(), call.last()];
        }
        let (id, stream) = (id_of(&live), stream_of(&foreign[0]).to_owned());
        let none = [
            format!("{stream}-99"),
            format!("{stream}-"),
            format!("{stream}-0-0"),
            stream.replace("-s", "-c") + "-0",
            stream,
            "s-1".into(),
            "x".into(),
            "-".into(),
            "--".into(),
            "s1-0".into(),
        ];
        let huge =
            ["99999999999999999999999999", "s99999999999999999999-1", "c1-99999999999999999999", "0-s1-0"]
                .map(str::to_owned);
        for seen in none.iter().chain(&huge).chain(&foreign) {
            let headers =
                [("Mcp-Session-Id", id.as_str()), ("Last-Event-ID", seen), ("Accept", "text/event-stream")];
            // A stream would never end.
            let answer =
                within(&format!("{revision} {seen:?}"), fetch(url(&server.client), "GET", &headers, ""))
                    .await;
            let (code, of) = answer.error();
            assert_eq!((answer.status, of), (400, None), "{revision} {seen:?}");
            assert!(!(-32099..=-32020).contains(&code), "{revision} {seen:?}: {code} is of another era");
        }
    }
}

#[testkit::test]
async fn http_14_a_server_that_closes_early_says_when_to_come_back() {
    let server = Server::start().await;
    for revision in LEGACY {
        let live = opened(&server, revision, json!({})).await;
        let params = json!({"name": "test_reconnection", "arguments": {}});
        let mut call = Stream::call(&live, &server, "r", params).await;
        let parts = call.rest().await.to_vec();
        let response = if revision == LATEST_LEGACY {
            let [Part::Id(opening), Part::Retry(1000), Part::Retry(500)] = &parts[..] else {
                panic!("{revision}: {parts:?}");
            };
            let mut back = Stream::open(&live, &server, Some(opening)).await;
            back.rest().await;
            let [Part::Id(id), Part::Message(response)] = &back.parts[..] else {
                panic!("{revision}: {:?}", back.parts);
            };
            assert_ne!(id, opening);
            response.clone()
        } else {
            // Before that revision clients do not know to come back: the connection stays.
            let Some(Part::Message(response)) = parts.last() else { panic!("{revision}: {parts:?}") };
            assert!(!parts.iter().any(|part| matches!(part, Part::Retry(_))), "{revision}: {parts:?}");
            response.clone()
        };
        assert_eq!(response["id"], "r", "{revision}");
        assert_eq!(response["result"]["content"][0]["text"], "The client came back for this.", "{revision}");
    }
}

#[testkit::test]
async fn streams_that_are_gone_on_with_do_not_steal_each_other_s_place() {
    let server = Server::start().await;
    for revision in LEGACY {
        let mut live = opened(&server, revision, json!({})).await;
        let mut streams = Vec::new();
        for _ in 0..2 {
            let mut stream = Stream::open(&live, &server, None).await;
            reads(&mut live, &mut stream).await;
            streams.push(stream);
        }
        for _ in 0..3 {
            let seen: Vec<String> = streams.iter().map(Stream::last).collect();
            streams.drain(..).for_each(|stream| drop(stream.cut()));
            server.settle(0).await;
            for seen in &seen {
                let mut stream = Stream::open(&live, &server, Some(seen)).await;
                stream.parts.push(Part::Id(seen.clone()));
                streams.push(stream);
            }
            server.settle(2).await;
            tell(&mut live, PROMPTS).await;
            streams[1].until(PROMPTS).await;
        }
        let ended =
            |stream: &mut Stream| stream.client.leftovers().iter().any(|a| matches!(a, Arrival::End(_)));
        assert_eq!(streams.iter_mut().filter_map(|s| ended(s).then_some(())).count(), 0, "{revision}");
        streams.into_iter().for_each(|stream| drop(stream.cut()));
        server.settle(0).await;
    }
}
