//! What a client keeps for the server between the rounds of a request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use dateline::seal::{Clock, Key, Keys, Sealer, SystemClock, purpose};
use dateline::{
    Args, CacheScope, Context, ElicitForm, Error, Limits, Method, Object, Peer, Principal, Prompt, Raw,
    Resource, Result,
};
use dateline::{HttpOptions, Revision, Server, Tool};
use proto::wire::Id;
use proto::{EventSink, Request};
use serde_json::{Value, json};
use testkit::{Client, MODERN, WIRES, Wire};

use super::{House, accept, asked, call, everything, retry};

struct Fixed(Key);

impl Keys for Fixed {
    fn keys(&self) -> Vec<Key> {
        vec![self.0]
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Word {
    word: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[allow(dead_code)]
struct Given {
    n: Option<i64>,
    m: Option<i64>,
}

async fn word(cx: &Context, key: &str) -> Result<String> {
    let filled = cx.elicit(key, ElicitForm::<Word>::new("Which word?")).await?.accepted();
    Ok(filled.map_or_else(|| "none".to_owned(), |filled| filled.word))
}

/// Asks for one word after the other.
async fn two(_: Args<Given>, cx: Context) -> Result<String> {
    let first = word(&cx, "first").await?;
    Ok(format!("{first} {}", word(&cx, "second").await?))
}

/// A server with this key, whose tools and prompt do the same under several names.
fn twice(key: Key) -> Server {
    Server::new("twice", "1")
        .keys(Fixed(key))
        .tool(Tool::new("two", "Asks for two words.", two))
        .tool(Tool::new("too", "Asks for two words.", two))
        .prompt(Prompt::new("two", "Asks for two words.", |cx: Context| async move {
            let first = word(&cx, "first").await?;
            Ok::<_, Error>(format!("{first} {}", word(&cx, "second").await?))
        }))
        .build()
        .unwrap()
}

/// Goes one round of [`two`]; gives what the second round asks.
async fn first_round(client: &mut Client, params: &Value) -> Value {
    let first = client.request("tools/call", params.clone()).await;
    assert_eq!(asked(first.result()), ["first"]);
    let answers = json!({"first": accept(json!({"word": "swordfish"}))});
    let second = client.request("tools/call", retry(params, first.result(), answers)).await;
    assert_eq!(asked(second.result()), ["second"], "{}", second.message);
    second.result().clone()
}

fn second() -> Value {
    json!({"second": accept(json!({"word": "fish"}))})
}

#[testkit::test]
async fn mrtr_04_a_state_that_was_changed_or_belongs_to_another_request_is_32602() {
    let house = House::of(&twice([1; 32])).await;
    let stranger = House::of(&twice([2; 32])).await;
    let params = call("two", json!({"n": 1, "m": 2}));
    for wire in WIRES {
        let mut client = house.client(wire, MODERN, everything()).await;
        let interim = first_round(&mut client, &params).await;
        let state = interim["requestState"].as_str().unwrap();
        assert!(!state.contains("swordfish"), "{state}");
        let again = first_round(&mut client, &params).await;
        assert_ne!(state, again["requestState"], "{wire:?}: what is the same inside differs outside");

        let mut wrong = vec![String::new(), state[1..].to_owned(), state[..state.len() - 1].to_owned()];
        wrong.extend([format!("{state}A"), format!("{state}{state}"), "state".to_owned(), "=".to_owned()]);
        for at in (0..state.len()).step_by(5) {
            let other = if state.as_bytes()[at] == b'A' { "B" } else { "A" };
            wrong.push(format!("{}{other}{}", &state[..at], &state[at + 1..]));
        }
        for wrong in wrong {
            let mut sent = retry(&params, &interim, second());
            sent["requestState"] = json!(wrong);
            let reply = client.request("tools/call", sent).await;
            assert_eq!(reply.code(), -32602, "{wire:?} {wrong}: {}", reply.message);
        }
        for no_string in [json!(7), json!({}), json!([state]), json!(true)] {
            let mut sent = retry(&params, &interim, second());
            sent["requestState"] = no_string;
            assert_eq!(client.request("tools/call", sent).await.code(), -32602, "{wire:?}");
        }
        for (method, other) in [
            ("tools/call", call("too", json!({"n": 1, "m": 2}))),
            ("tools/call", call("two", json!({"n": 1, "m": 3}))),
            ("tools/call", call("two", json!({"n": 1}))),
            ("tools/call", call("two", json!({"n": 1, "m": 2, "l": 3}))),
            ("tools/call", json!({"name": "two", "arguments": {"n": 1, "m": 2}, "more": 1})),
            ("prompts/get", json!({"name": "two"})),
        ] {
            let reply = client.request(method, retry(&other, &interim, second())).await;
            assert_eq!(reply.code(), -32602, "{wire:?} {other}: {}", reply.message);
        }
        let mut other = stranger.client(wire, MODERN, everything()).await;
        let reply = other.request("tools/call", retry(&params, &interim, second())).await;
        assert_eq!(reply.code(), -32602, "{wire:?}: another server's key: {}", reply.message);

        // It is good all the while, as often as it is used, whatever order the members are in.
        let same = json!({"arguments": {"m": 2, "n": 1}, "name": "two", "_meta": {"example.org/n": 1}});
        for params in [&params, &same] {
            let reply = client.request("tools/call", retry(params, &interim, second())).await;
            assert_eq!(reply.said(), "swordfish fish", "{wire:?}: {}", reply.message);
        }
    }
}

#[testkit::test]
async fn mrtr_04_a_state_of_one_principal_is_not_anothers() {
    let house = House::of(&twice([1; 32])).await;
    let params = call("two", json!({}));
    // Whoever has the pipe is the user of this machine; over open HTTP anybody may ask.
    for (mine, theirs) in [(Wire::Stdio, Wire::Http), (Wire::Http, Wire::Stdio)] {
        let mut client = house.client(mine, MODERN, everything()).await;
        let interim = first_round(&mut client, &params).await;
        let mut other = house.client(theirs, MODERN, everything()).await;
        let reply = other.request("tools/call", retry(&params, &interim, second())).await;
        assert_eq!(reply.code(), -32602, "{mine:?} to {theirs:?}: {}", reply.message);
        let reply = client.request("tools/call", retry(&params, &interim, second())).await;
        assert_eq!(reply.said(), "swordfish fish", "{mine:?}");
    }
}

/// A clock that is slow.
struct Behind(Duration);

impl Clock for Behind {
    fn now(&self) -> SystemTime {
        SystemTime::now() - self.0
    }
}

/// What the server with a key would have sealed some time ago, for an hour.
fn sealed(key: Key, clock: impl Clock, principal: &Principal, params: &Value) -> String {
    let peer = Peer {
        revision: Revision::LATEST_MODERN,
        capabilities: Arc::default(),
        client: None,
        log_level: None,
        principal: principal.clone(),
    };
    let request = Request {
        id: Id::read(&Raw::literal("1")).unwrap(),
        method: Method::ToolsCall,
        params: Arc::new(Object::of(params)),
        answers: None,
        peer: Arc::new(peer),
        wants_progress: false,
        events: EventSink::discard(),
    };
    let kept = json!({"answers": [["first", accept(json!({"word": "swordfish"}))]]});
    Sealer::new(Fixed(key), clock)
        .seal(&purpose(&request), principal, Duration::from_secs(3600), &kept)
        .unwrap()
}

#[testkit::test]
async fn mrtr_04_mrtr_08_a_state_is_good_for_a_time_and_no_longer() {
    let key = [3; 32];
    let house = House::of(&twice(key)).await;
    let params = call("two", json!({}));
    for (wire, principal) in [(Wire::Stdio, Principal::local()), (Wire::Http, Principal::anonymous())] {
        let mut client = house.client(wire, MODERN, everything()).await;
        let mut with = async |state: String| {
            let interim = json!({"requestState": state});
            client.request("tools/call", retry(&params, &interim, second())).await
        };
        let fresh = with(sealed(key, SystemClock, &principal, &params)).await;
        assert_eq!(fresh.said(), "swordfish fish", "{wire:?}: {}", fresh.message);
        let recent = with(sealed(key, Behind(Duration::from_secs(3000)), &principal, &params)).await;
        assert_eq!(recent.said(), "swordfish fish", "{wire:?}: {}", recent.message);
        let old = with(sealed(key, Behind(Duration::from_secs(3700)), &principal, &params)).await;
        assert_eq!(old.code(), -32602, "{wire:?}: {}", old.message);
        assert!(!old.text.contains("swordfish"), "{}", old.text);
    }
}

/// Counts as long as it is there.
struct Running(Arc<AtomicUsize>);

impl Running {
    fn new(count: &Arc<AtomicUsize>) -> Running {
        count.fetch_add(1, Ordering::SeqCst);
        Running(Arc::clone(count))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[testkit::test]
async fn mrtr_08_nothing_waits_for_the_answers_to_what_was_asked() {
    let running = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&running);
    let ask = move |cx: Context| {
        let running = Running::new(&counted);
        async move {
            let word = word(&cx, "word").await;
            drop(running);
            word
        }
    };
    let server = Server::new("asks", "1").tool(Tool::new("ask", "Asks.", ask)).build().unwrap();
    // No more than two calls of a pipe may be under way: those that ask are not.
    let limits = Limits { calls: 2, ..Limits::default() };
    let house = House::with(&server, HttpOptions::default(), limits).await;
    for wire in WIRES {
        let mut client = house.client(wire, MODERN, everything()).await;
        let mut first = None;
        for round in 0..50 {
            // The same id is free again each time.
            client.begin_as(json!("same"), "tools/call", call("ask", json!({}))).await;
            let reply = client.reply(&json!("same")).await;
            assert_eq!(asked(reply.result()), ["word"], "{wire:?} {round}");
            first.get_or_insert(reply);
        }
        assert_eq!(running.load(Ordering::SeqCst), 0, "{wire:?}");
        // The first one can be gone on with, by another connection, however many were asked since.
        let mut client = house.client(wire, MODERN, everything()).await;
        let answers = json!({"word": accept(json!({"word": "late"}))});
        let sent = retry(&call("ask", json!({})), first.unwrap().result(), answers);
        assert_eq!(client.request("tools/call", sent).await.said(), "late", "{wire:?}");
        assert_eq!(running.load(Ordering::SeqCst), 0, "{wire:?}");
    }
}

#[testkit::test]
async fn mrtr_09_neither_questions_nor_what_depends_on_answers_is_cached() {
    let minute = Duration::from_secs(60);
    let read = |cx: Context| async move { two(Args(Given { n: None, m: None }), cx).await };
    let server = Server::new("reads", "1")
        .keys(Fixed([4; 32]))
        .cache_lists(CacheScope::Public, minute)
        .resource(Resource::new("ask://two", "two", read).cache(CacheScope::Public, minute))
        .resource(Resource::new("ask://none", "none", || async { "plain" }).cache(CacheScope::Public, minute))
        .build()
        .unwrap();
    let house = House::of(&server).await;
    for wire in WIRES {
        let mut client = house.client(wire, MODERN, everything()).await;
        let hints = |result: &Value| (result.get("ttlMs").cloned(), result.get("cacheScope").cloned());
        let nobodys = (Some(json!(0)), Some(json!("private")));
        let params = json!({"uri": "ask://two"});
        let first = client.request("resources/read", params.clone()).await;
        assert_eq!(asked(first.result()), ["first"], "{wire:?}");
        assert_eq!(hints(first.result()), (None, None), "{wire:?}: {}", first.message);
        let answers = json!({"first": accept(json!({"word": "a"}))});
        let next = client.request("resources/read", retry(&params, first.result(), answers)).await;
        assert_eq!(asked(next.result()), ["second"], "{wire:?}");
        assert_eq!(hints(next.result()), (None, None), "{wire:?}: {}", next.message);
        let read = client.request("resources/read", retry(&params, next.result(), second())).await;
        assert_eq!(read.result()["contents"][0]["text"], "a fish", "{wire:?}");
        assert_eq!(hints(read.result()), nobodys, "{wire:?}: {}", read.message);
        // What nobody was asked for may be kept, as long as nobody answered either.
        let plain = client.request("resources/read", json!({"uri": "ask://none"})).await;
        assert_eq!(hints(plain.result()), (Some(json!(60_000)), Some(json!("public"))), "{wire:?}");
        let given = json!({"uri": "ask://none", "inputResponses": {"more": {"action": "cancel"}}});
        let plain = client.request("resources/read", given).await;
        assert_eq!(hints(plain.result()), nobodys, "{wire:?}: {}", plain.message);
    }
}

#[testkit::test]
async fn meta_09_a_state_and_a_cursor_are_all_that_goes_from_one_request_to_the_next() {
    let say = |name: &str| {
        Tool::new(name, "Says who asks.", |cx: Context| async move {
            cx.log(dateline::Level::Info, None, "it runs").await;
            let can = &cx.peer().capabilities;
            format!(
                "{} {} {}",
                can.sampling(),
                can.roots(),
                cx.peer().client.as_ref().map_or("-", |c| c.as_str())
            )
        })
    };
    let build = || {
        Server::new("free", "1")
            .keys(Fixed([5; 32]))
            .page_size(1)
            .tool(Tool::new("two", "Asks for two words.", two))
            .tool(say("who"))
            .build()
            .unwrap()
    };
    // Two processes with one key are as good as one.
    let (one, other) = (House::of(&build()).await, House::of(&build()).await);
    let params = call("two", json!({}));
    for wire in WIRES {
        let mut client = one.client(wire, MODERN, everything()).await;
        let interim = first_round(&mut client, &params).await;
        let page = client.request("tools/list", json!({})).await;
        assert_eq!(page.result()["tools"][0]["name"], "two");
        let cursor = page.result()["nextCursor"].clone();
        drop(client);
        for house in [&one, &other] {
            let mut fresh = house.client(wire, MODERN, everything()).await;
            let reply = fresh.request("tools/call", retry(&params, &interim, second())).await;
            assert_eq!(reply.said(), "swordfish fish", "{wire:?}: {}", reply.message);
            let page = fresh.request("tools/list", json!({"cursor": cursor})).await;
            assert_eq!(page.result()["tools"][0]["name"], "who", "{wire:?}");
            // Without them there is nothing to go on with: the connection that went on before knows of no place.
            let page = fresh.request("tools/list", json!({})).await;
            assert_eq!(page.result()["tools"][0]["name"], "two", "{wire:?}");
            let reply = fresh.request("tools/call", params.clone()).await;
            assert_eq!(asked(reply.result()), ["first"], "{wire:?}");
        }
        // Nor does it know who asked before, what they could do, and what they wanted logged.
        let mut client = one.client(wire, MODERN, everything()).await;
        let wanted = json!({"io.modelcontextprotocol/logLevel": "debug"});
        let rich =
            client.request("tools/call", json!({"name": "who", "arguments": {}, "_meta": wanted})).await;
        assert_eq!(rich.notifications("notifications/message").len(), 1, "{wire:?}");
        assert_eq!(rich.said(), r#"true true {"name":"testkit","version":"1"}"#, "{wire:?}");
        client.capabilities = json!({});
        let bare = json!({"name": "who", "arguments": {}, "_meta": {"io.modelcontextprotocol/clientInfo": {"name": "x", "version": "2"}}});
        let poor = client.request("tools/call", bare).await;
        assert!(poor.before.is_empty(), "{wire:?}: {:?}", poor.before);
        assert_eq!(poor.said(), r#"false false {"name":"x","version":"2"}"#, "{wire:?}");
    }
}
