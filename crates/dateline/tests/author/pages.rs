//! Lists: pages, cursors, how long they may be kept, and what comes and goes while clients walk through them.

use std::time::Duration;

use dateline::seal::{Key, Keys};
use dateline::{CacheScope, Method, Prompt, Resource, ResourceTemplate, Server, Tool};
use serde_json::{Value, json};
use testkit::{Client, MODERN, WIRES, Wire};

use super::{House, everywhere};

struct Fixed(Key);

impl Keys for Fixed {
    fn keys(&self) -> Vec<Key> {
        vec![self.0]
    }
}

fn tool(name: &str) -> Tool {
    Tool::new(name, "Says hi.", || async { "hi" })
}

fn prompt(name: &str) -> Prompt {
    Prompt::new(name, "Says hi.", || async { "hi" })
}

fn resource(name: &str) -> Resource {
    Resource::new(&format!("x:/{name}"), name, || async { "hi" })
}

fn template(name: &str) -> ResourceTemplate {
    ResourceTemplate::new(&format!("x:/{name}/{{id}}"), name, || async { "hi" })
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// The methods that list, and what they list.
const LISTS: [(&str, &str); 4] = [
    ("tools/list", "tools"),
    ("prompts/list", "prompts"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
];

/// A server of five things of each kind, two a page.
fn five(key: Key) -> dateline::Builder {
    let server = Server::new("five", "1").keys(Fixed(key)).page_size(2);
    NAMES.into_iter().fold(server, |server, name| {
        server.tool(tool(name)).prompt(prompt(name)).resource(resource(name)).template(template(name))
    })
}

/// The names on a page, and the cursor of the next.
fn read(result: &Value, list: &str) -> (Vec<String>, Option<String>) {
    let names =
        result[list].as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap().to_owned());
    (names.collect(), result.get("nextCursor").map(|cursor| cursor.as_str().unwrap().to_owned()))
}

async fn page(
    client: &mut Client,
    method: &str,
    list: &str,
    cursor: Option<&str>,
) -> (Vec<String>, Option<String>) {
    let params = cursor.map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
    read(client.request(method, params).await.result(), list)
}

#[testkit::test]
async fn page_01_cursors_hold_across_processes_and_one_that_was_never_issued_is_32602() {
    let (one, other) =
        (House::of(&five([1; 32]).build().unwrap()).await, House::of(&five([1; 32]).build().unwrap()).await);
    let stranger = House::of(&five([2; 32]).build().unwrap()).await;
    for (wire, revision) in everywhere() {
        let what = format!("{wire:?} {revision}");
        let mut client = one.client(wire, revision, json!({})).await;
        let mut second = other.client(wire, revision, json!({})).await;
        let mut foreign = stranger.client(wire, revision, json!({})).await;
        let mut cursors = Vec::new();
        for (method, list) in LISTS {
            let (names, cursor) = page(&mut client, method, list, None).await;
            assert_eq!(names, ["a", "b"], "{what} {method}");
            let cursor = cursor.unwrap();
            // Where one process left off another goes on, and the first one goes on after that.
            let (names, next) = page(&mut second, method, list, Some(&cursor)).await;
            assert_eq!(names, ["c", "d"], "{what} {method}");
            let (names, none) = page(&mut client, method, list, next.as_deref()).await;
            assert_eq!((names, none), (vec!["e".to_owned()], None), "{what} {method}");
            // It can be used again.
            assert_eq!(page(&mut client, method, list, Some(&cursor)).await.0, ["c", "d"], "{what} {method}");
            cursors.push(cursor);
        }
        for (at, (method, _)) in LISTS.into_iter().enumerate() {
            let own = &cursors[at];
            let mut wrong =
                vec![json!(""), json!("2"), json!("c"), json!(own[1..]), json!(format!("{own}A"))];
            // All lists read their cursors in one way: one of them is enough for these.
            let forms = [json!(2), json!({}), json!([own])];
            wrong.extend(forms.into_iter().filter(|_| at == 0));
            wrong.extend(cursors.iter().filter(|cursor| *cursor != own).map(|cursor| json!(cursor)));
            let mut changed = own.clone().into_bytes();
            changed[40] = if changed[40] == b'A' { b'B' } else { b'A' };
            wrong.push(json!(String::from_utf8(changed).unwrap()));
            for wrong in wrong {
                let reply = client.request(method, json!({"cursor": wrong})).await;
                assert_eq!(reply.code(), -32602, "{what} {method} {wrong}: {}", reply.message);
            }
            let reply = foreign.request(method, json!({"cursor": own})).await;
            assert_eq!(reply.code(), -32602, "{what} {method}: of another key: {}", reply.message);
        }
    }
}

#[testkit::test]
async fn page_01_of_what_stays_nothing_is_shown_twice_or_skipped_whatever_comes_and_goes() {
    for (wire, revision) in everywhere() {
        let what = format!("{wire:?} {revision}");
        let server = five([1; 32]).build().unwrap();
        let house = House::of(&server).await;
        let mut client = house.client(wire, revision, json!({})).await;
        let mut names = Vec::new();
        let (first, cursor) = page(&mut client, "tools/list", "tools", None).await;
        names.extend(first);
        // What was shown goes, what is next goes, and some come.
        assert!(server.remove_tool("b") && server.remove_tool("c"));
        server.add_tool(tool("f")).unwrap();
        server.add_tool(tool("b")).unwrap();
        let (second, cursor) = page(&mut client, "tools/list", "tools", cursor.as_deref()).await;
        names.extend(second);
        assert!(server.remove_tool("d") && server.remove_tool("e"));
        let (third, cursor) = page(&mut client, "tools/list", "tools", cursor.as_deref()).await;
        names.extend(third);
        assert_eq!(
            (cursor, &names[..]),
            (None, &["a", "b", "d", "e", "f", "b"].map(str::to_owned)[..]),
            "{what}"
        );
        // The second b is another one, which came later.
        let (now, cursor) = page(&mut client, "tools/list", "tools", None).await;
        assert_eq!(now, ["a", "f"], "{what}");
        // All that is left behind a cursor goes: what comes is a page without entries.
        assert!(server.remove_tool("b"));
        let (rest, none) = page(&mut client, "tools/list", "tools", cursor.as_deref()).await;
        assert_eq!((rest, none), (Vec::new(), None), "{what}");
    }
}

#[testkit::test]
async fn page_02_all_pages_of_a_list_are_for_the_same_callers_and_for_as_long() {
    let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(3600));
    let all = [Method::ToolsList, Method::PromptsList, Method::ResourcesList, Method::ResourcesTemplatesList];
    let unsaid = five([1; 32]).build().unwrap();
    let public = five([1; 32]).cache_lists(CacheScope::Public, minute).build().unwrap();
    let private = all
        .into_iter()
        .fold(five([1; 32]), |server, list| server.cache_method(list, CacheScope::Private, hour));
    // Each list by itself, and over what is said of all.
    let mixed = five([1; 32])
        .cache_lists(CacheScope::Public, minute)
        .cache_method(Method::ToolsList, CacheScope::Private, hour)
        .cache_method(Method::Discover, CacheScope::Private, Duration::ZERO);
    for (server, due) in [
        (unsaid, [(0, "public"); 4]),
        (public, [(60_000, "public"); 4]),
        (private.build().unwrap(), [(3_600_000, "private"); 4]),
        (
            mixed.build().unwrap(),
            [(3_600_000, "private"), (60_000, "public"), (60_000, "public"), (60_000, "public")],
        ),
    ] {
        let house = House::of(&server).await;
        for wire in WIRES {
            let mut client = house.client(wire, MODERN, json!({})).await;
            for ((method, list), (ttl, scope)) in LISTS.into_iter().zip(due) {
                let (mut params, mut pages) = (json!({}), 0);
                loop {
                    let reply = client.request(method, params).await;
                    let hints = (&reply.result()["ttlMs"], &reply.result()["cacheScope"]);
                    assert_eq!(hints, (&json!(ttl), &json!(scope)), "{wire:?} {method} {pages}");
                    pages += 1;
                    let (_, Some(cursor)) = read(reply.result(), list) else { break };
                    params = json!({"cursor": cursor});
                }
                assert_eq!(pages, 3, "{wire:?} {method}");
            }
        }
    }
}

#[testkit::test]
async fn how_long_a_resource_may_be_kept_is_said_of_each() {
    let minute = Duration::from_secs(60);
    let server = Server::new("kept", "1")
        .resource(resource("unsaid"))
        .resource(resource("mine").cache(CacheScope::Private, minute))
        .resource(resource("ours").cache(CacheScope::Public, minute))
        .template(template("each").cache(CacheScope::Public, 2 * minute))
        .cache_method(Method::Discover, CacheScope::Private, minute)
        .build()
        .unwrap();
    let house = House::of(&server).await;
    for wire in WIRES {
        let mut client = house.client(wire, MODERN, json!({})).await;
        for (uri, ttl, scope) in [
            ("x:/unsaid", 0, "private"),
            ("x:/mine", 60_000, "private"),
            ("x:/ours", 60_000, "public"),
            ("x:/each/7", 120_000, "public"),
        ] {
            let reply = client.request("resources/read", json!({"uri": uri})).await;
            let hints = (&reply.result()["ttlMs"], &reply.result()["cacheScope"]);
            assert_eq!(hints, (&json!(ttl), &json!(scope)), "{wire:?} {uri}");
        }
        let reply = client.request("server/discover", json!({})).await;
        let hints = (&reply.result()["ttlMs"], &reply.result()["cacheScope"]);
        assert_eq!(hints, (&json!(60_000), &json!("private")), "{wire:?}");
    }
}

/// The names in a list; nothing else came before it.
async fn told(client: &mut Client, method: &str, list: &str) -> Vec<String> {
    let reply = client.request(method, json!({})).await;
    assert!(reply.before.is_empty(), "each change is told once: {:?}", reply.before);
    read(reply.result(), list).0
}

/// Waits for a list's notification, on the listen or the session.
async fn hears(client: &mut Client, kind: &str) {
    client.next(&format!("notifications/{kind}/list_changed")).await;
}

#[testkit::test]
async fn things_come_and_go_while_clients_are_there_and_they_are_told() {
    for (wire, revision) in everywhere() {
        let what = format!("{wire:?} {revision}");
        let server = Server::new("grows", "1").dynamic().build().unwrap();
        let house = House::of(&server).await;
        let mut client = house.client(wire, revision, json!({})).await;
        // It declares what may come.
        if revision == MODERN {
            let said = client.request("server/discover", json!({})).await;
            let declared = &said.result()["capabilities"];
            assert_eq!(declared["tools"], json!({"listChanged": true}), "{what}");
            assert_eq!(declared["prompts"], json!({"listChanged": true}), "{what}");
            assert_eq!(declared["resources"], json!({"subscribe": true, "listChanged": true}), "{what}");
            let all =
                json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true});
            client.begin("subscriptions/listen", json!({"notifications": all})).await;
            client.next("notifications/subscriptions/acknowledged").await;
        } else if wire == Wire::Http {
            let stream =
                client.exchange("GET", &[("accept", "text/event-stream"), ("content-type", "")], Vec::new());
            assert_eq!(client.head(stream).await.status, 200, "{what}");
        }
        for (method, list) in LISTS {
            assert_eq!(told(&mut client, method, list).await, [""; 0], "{what} {method}");
        }
        server.add_tool(tool("t")).unwrap();
        hears(&mut client, "tools").await;
        server.add_prompt(prompt("p")).unwrap();
        hears(&mut client, "prompts").await;
        server.add_resource(resource("r")).unwrap();
        hears(&mut client, "resources").await;
        server.add_template(template("m")).unwrap();
        hears(&mut client, "resources").await;
        for ((method, list), name) in LISTS.into_iter().zip(["t", "p", "r", "m"]) {
            assert_eq!(told(&mut client, method, list).await, [name], "{what} {method}");
        }
        assert_eq!(client.call("t", json!({})).await.said(), "hi", "{what}");
        client.request("prompts/get", json!({"name": "p"})).await.result();
        for uri in ["x:/r", "x:/m/1"] {
            let read = client.request("resources/read", json!({"uri": uri})).await;
            assert_eq!(read.result()["contents"][0]["text"], "hi", "{what} {uri}");
        }
        // What is refused or not there changes nothing and is told to nobody.
        assert!(server.add_tool(tool("t")).is_err() && server.add_resource(resource("r")).is_err());
        assert!(server.add_prompt(prompt("p")).is_err() && server.add_template(template("m")).is_err());
        assert!(!server.remove_tool("x") && !server.remove_prompt("x") && !server.remove_resource("x:/x"));
        assert!(!server.remove_template("x:/{x}"));
        assert!(server.remove_tool("t"));
        hears(&mut client, "tools").await;
        assert!(server.remove_prompt("p"));
        hears(&mut client, "prompts").await;
        assert!(server.remove_resource("x:/r"));
        hears(&mut client, "resources").await;
        assert!(server.remove_template("x:/m/{id}"));
        hears(&mut client, "resources").await;
        for (method, list) in LISTS {
            assert_eq!(told(&mut client, method, list).await, [""; 0], "{what} {method}");
        }
        assert_eq!(client.call("t", json!({})).await.code(), -32602, "{what}");
        let strays = client.leftovers().into_iter().filter(|a| matches!(a, testkit::Arrival::Message(..)));
        assert_eq!(strays.count(), 0, "{what}: each change is told once");
    }
}
