//! Listens.

use dateline::{Resource, ResourceContents, Server, Tool};
use serde_json::{Value, json};
use testkit::{Arrival, Client, Exchange, LEGACY, WIRES, Wire, header};

use super::{local, locals};
use crate::msg::{neighbour, response, sessions, speaking};
use crate::{legacy, modern};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// Opens a listen; gives its exchange.
async fn listen(client: &mut Client, id: &Value, filter: &Value) -> Exchange {
    client.begin_as(id.clone(), "subscriptions/listen", json!({"notifications": filter})).await
}

/// The next message of a listen: it must be on its own stream, and tagged with its id.
async fn event(client: &mut Client, id: &Value, exchange: Exchange) -> Value {
    let tag = |m: &Value| m["params"]["_meta"].get(SUBSCRIPTION) == Some(id);
    let Arrival::Message(at, message, _) = client
        .wait(&format!("a message of the listen {id}"), |a| matches!(a, Arrival::Message(_, m, _) if tag(m)))
        .await
    else {
        unreachable!()
    };
    assert_eq!(at, exchange, "{id}: {message}");
    assert!(message.get("id").is_none(), "{message}");
    message
}

/// Opens a listen and waits for its acknowledgement; gives its exchange.
async fn listening(client: &mut Client, id: &Value, filter: &Value, honoured: &Value) -> Exchange {
    let exchange = listen(client, id, filter).await;
    let first = event(client, id, exchange).await;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{id}: {first}");
    assert_eq!(&first["params"]["notifications"], honoured, "{id}: {first}");
    exchange
}

/// Calls a tool and waits for its response; what else arrives stays in the queue.
async fn trigger(client: &mut Client, tool: &str, arguments: Value) {
    let id = client.begin("tools/call", json!({"name": tool, "arguments": arguments})).await;
    let message = response(client, &id).await;
    assert!(message["result"]["content"].is_array(), "{message}");
}

async fn touch(client: &mut Client, uri: &str) {
    trigger(client, "touch_resource", json!({"uri": uri})).await;
}

/// Changes everything that can be changed: nothing that a listen to something else should hear of.
async fn change_all(client: &mut Client) {
    trigger(client, "test_trigger_tool_change", json!({})).await;
    trigger(client, "test_trigger_prompt_change", json!({})).await;
    touch(client, "test://watched-resource").await;
    touch(client, "demo://welcome").await;
}

/// Everything that came and that nobody waited for.
fn strays(client: &mut Client) -> Vec<Arrival> {
    client
        .leftovers()
        .into_iter()
        .filter(|a| matches!(a, Arrival::Message(..) | Arrival::Rubbish(..)))
        .collect()
}

#[testkit::test]
async fn sub_01_the_acknowledgement_comes_first_and_echoes_what_is_honoured() {
    let all = json!({
        "toolsListChanged": true,
        "promptsListChanged": true,
        "resourcesListChanged": true,
        "resourceSubscriptions": ["demo://welcome", "test://watched-resource"],
    });
    for wire in WIRES {
        let mut client = modern(wire).await;
        for (id, filter, honoured) in [
            (json!("empty"), json!({}), json!({})),
            (json!(71), json!({"toolsListChanged": true}), json!({"toolsListChanged": true})),
            (json!("seventy-two"), all.clone(), all.clone()),
            (
                json!(""),
                json!({"toolsListChanged": false, "promptsListChanged": true}),
                json!({"promptsListChanged": true}),
            ),
            (json!(-1), json!({"vendorListChanged": true, "taskIds": []}), json!({})),
            (json!("none"), json!({"resourceSubscriptions": []}), json!({})),
        ] {
            let exchange = listening(&mut client, &id, &filter, &honoured).await;
            if wire == Wire::Http {
                let head = client.head(exchange).await;
                assert_eq!(head.status, 200, "{filter}");
                assert_eq!(header(&head.headers, "content-type"), Some("text/event-stream"), "{filter}");
            }
        }
        // Also if things change at the very moment.
        for id in 0..20 {
            let id = json!(format!("race {id}"));
            client.begin("tools/call", json!({"name": "test_trigger_tool_change", "arguments": {}})).await;
            listening(&mut client, &id, &all, &all).await;
            client
                .begin(
                    "tools/call",
                    json!({"name": "touch_resource", "arguments": {"uri": "demo://welcome"}}),
                )
                .await;
        }
        for wrong in [
            json!({}),
            json!({"notifications": null}),
            json!({"notifications": []}),
            json!({"notifications": "all"}),
            json!({"notifications": {"toolsListChanged": "yes"}}),
            json!({"notifications": {"promptsListChanged": 1}}),
            json!({"notifications": {"resourceSubscriptions": "demo://welcome"}}),
            json!({"notifications": {"resourceSubscriptions": [1]}}),
        ] {
            let reply = client.request("subscriptions/listen", wrong.clone()).await;
            assert_eq!(reply.code(), -32602, "{wire:?} {wrong}");
        }
        // What the server does not have is not honoured.
        let server = Server::new("tools", "1").tool(Tool::new("say", "Says it.", || async { "it" }));
        let mut client = local(wire, server.build().unwrap()).await;
        listening(&mut client, &json!(1), &all, &json!({"toolsListChanged": true})).await;
    }
}

#[testkit::test]
async fn sub_02_a_listen_gets_only_the_types_it_asked_for_each_tagged_with_its_id() {
    let changed = |kind: &str| format!("notifications/{kind}/list_changed");
    let updated = "notifications/resources/updated";
    for wire in WIRES {
        let mut client = modern(wire).await;
        let watch = |uris: &[&str]| json!({"resourceSubscriptions": uris});
        let cases = [
            (json!("nothing"), json!({}), vec![]),
            (json!(501), json!({"toolsListChanged": true}), vec![(changed("tools"), None)]),
            (json!("prompts"), json!({"promptsListChanged": true}), vec![(changed("prompts"), None)]),
            (json!("resources"), json!({"resourcesListChanged": true}), vec![]),
            (json!("one"), watch(&["demo://welcome"]), vec![(updated.to_owned(), Some("demo://welcome"))]),
            (
                json!("two"),
                watch(&["demo://welcome", "test://watched-resource"]),
                vec![
                    (updated.to_owned(), Some("test://watched-resource")),
                    (updated.to_owned(), Some("demo://welcome")),
                ],
            ),
            (json!("others"), watch(&["demo://welc", "demo://welcome2", "test://static-text"]), vec![]),
            (
                json!(9_007_199_254_740_993_i64),
                json!({"toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": ["demo://welcome"]}),
                vec![
                    (changed("tools"), None),
                    (changed("prompts"), None),
                    (updated.to_owned(), Some("demo://welcome")),
                ],
            ),
        ];
        let mut exchanges = Vec::new();
        for (id, filter, _) in &cases {
            let honoured = filter.clone();
            exchanges.push(listening(&mut client, id, filter, &honoured).await);
        }
        for _ in 0..2 {
            change_all(&mut client).await;
            for ((id, filter, due), exchange) in cases.iter().zip(&exchanges) {
                for (method, uri) in due {
                    let message = event(&mut client, id, *exchange).await;
                    assert_eq!(message["method"], method.as_str(), "{wire:?} {filter}: {message}");
                    assert_eq!(
                        message["params"].get("uri").and_then(Value::as_str),
                        *uri,
                        "{wire:?}: {message}"
                    );
                }
            }
        }
        // All has come that was due: what came besides is in the queue before this.
        trigger(&mut client, "echo", json!({"message": "done"})).await;
        let strays = strays(&mut client);
        assert!(strays.is_empty(), "{wire:?}: {strays:?}");
        // And of what runs beside them, nothing.
        let meta = json!({"progressToken": "t", "io.modelcontextprotocol/logLevel": "debug"});
        for tool in ["test_tool_with_logging", "test_tool_with_progress"] {
            let params = json!({"name": tool, "arguments": {}, "_meta": meta});
            let reply = client.request("tools/call", params).await;
            assert_eq!(reply.before.len(), 3, "{wire:?}: {:?}", reply.before);
            let tagged = reply.before.iter().any(|m| m["params"]["_meta"].get(SUBSCRIPTION).is_some());
            assert!(!tagged, "{wire:?}: {:?}", reply.before);
        }
    }
}

#[testkit::test]
async fn sub_02_sub_07_every_type_is_announced_to_those_who_asked_for_it_alone() {
    for wire in WIRES {
        let resource = Resource::fixed("R", ResourceContents::text("r://1", "text/plain", "one"));
        let prompt = dateline::Prompt::new("p", "P.", || async { "Hello." });
        let tool = Tool::new("t", "T.", || async { "t" });
        let server =
            Server::new("changes", "1").tool(tool).prompt(prompt).resource(resource).build().unwrap();
        let mut client = local(wire, server.clone()).await;
        let cases = [
            ("tools", json!({"toolsListChanged": true}), "notifications/tools/list_changed"),
            ("prompts", json!({"promptsListChanged": true}), "notifications/prompts/list_changed"),
            ("resources", json!({"resourcesListChanged": true}), "notifications/resources/list_changed"),
            ("one", json!({"resourceSubscriptions": ["r://1"]}), "notifications/resources/updated"),
        ];
        let mut exchanges = Vec::new();
        for (id, filter, _) in &cases {
            exchanges.push(listening(&mut client, &json!(id), filter, filter).await);
        }
        for _ in 0..3 {
            server.notifier().resources_changed();
            server.notifier().prompts_changed();
            server.notifier().resource_updated("r://2");
            server.notifier().tools_changed();
            server.notifier().resource_updated("r://1");
            for ((id, _, method), exchange) in cases.iter().zip(&exchanges) {
                let message = event(&mut client, &json!(id), *exchange).await;
                assert_eq!(&message["method"], method, "{wire:?}: {message}");
                let uri = (*id == "one").then(|| json!("r://1"));
                assert_eq!(message["params"].get("uri").cloned(), uri, "{wire:?}: {message}");
            }
        }
        let strays = strays(&mut client);
        assert!(strays.is_empty(), "{wire:?}: {strays:?}");
    }
}

#[testkit::test]
async fn sub_03_several_listens_run_side_by_side_and_a_new_one_replaces_none() {
    for wire in WIRES {
        let mut client = modern(wire).await;
        let tools = json!({"toolsListChanged": true});
        let mut open = Vec::new();
        for id in [json!(1001), json!("1001"), json!("third"), json!("fourth")] {
            let exchange = listening(&mut client, &id, &tools, &tools).await;
            open.push((id, exchange));
            trigger(&mut client, "test_trigger_tool_change", json!({})).await;
            for (id, exchange) in &open {
                let message = event(&mut client, id, *exchange).await;
                assert_eq!(message["method"], "notifications/tools/list_changed", "{wire:?} {id}");
            }
        }
        // One that ends takes none along, and gets no answer.
        let (ended, exchange) = open.remove(1);
        match wire {
            Wire::Stdio => drop(client.notify("notifications/cancelled", json!({"requestId": ended})).await),
            Wire::Http | Wire::Sse => client.disconnect(exchange),
        }
        for _ in 0..2 {
            trigger(&mut client, "test_trigger_tool_change", json!({})).await;
            for (id, exchange) in &open {
                event(&mut client, id, *exchange).await;
            }
        }
        let strays = strays(&mut client);
        assert!(strays.is_empty(), "{wire:?}: {strays:?}");
        // Its id can be used again.
        listening(&mut client, &ended, &tools, &tools).await;
        if wire == Wire::Http {
            // Another client may listen under the same id.
            let mut other = neighbour(&client);
            let (id, _) = &open[0];
            let exchange = listening(&mut other, id, &tools, &tools).await;
            trigger(&mut client, "test_trigger_tool_change", json!({})).await;
            event(&mut other, id, exchange).await;
            event(&mut client, id, open[0].1).await;
        }
    }
}

#[testkit::test]
async fn a_modern_listen_on_a_pipe_ends_without_an_answer_when_it_is_cancelled() {
    let mut client = modern(Wire::Stdio).await;
    let filter = json!({"toolsListChanged": true, "resourceSubscriptions": ["demo://welcome"]});
    for id in [json!("listen"), json!(4000)] {
        listening(&mut client, &id, &filter, &filter).await;
        client.notify("notifications/cancelled", json!({"requestId": id})).await;
        change_all(&mut client).await;
        trigger(&mut client, "echo", json!({"message": "done"})).await;
        let strays = strays(&mut client);
        assert!(strays.is_empty(), "{id}: {strays:?}");
    }
}

#[testkit::test]
async fn sessions_know_nothing_of_listens() {
    for wire in WIRES {
        for revision in LEGACY {
            let (mut client, _) = legacy(wire, revision, json!({})).await;
            let reply = client.request("subscriptions/listen", json!({"notifications": {}})).await;
            assert_eq!(reply.code(), -32601, "{wire:?} {revision}");
        }
    }
}

/// A session that hears of what concerns no call, where that is: on the pipe or, over Streamable HTTP, on a stream that
/// it opened.
struct Listener {
    client: Client,
    own: Exchange,
}

impl Listener {
    async fn of(client: Client, wire: Wire, revision: &'static str) -> Listener {
        let mut client = speaking(client, revision, json!({})).await;
        let own = if wire == Wire::Http {
            let own = client.exchange("GET", &[("accept", "text/event-stream")], Vec::new());
            assert_eq!(client.head(own).await.status, 200);
            own
        } else {
            0
        };
        Listener { client, own }
    }

    /// Waits for this notification on the session's own stream.
    async fn hears(&mut self, message: &Value) {
        let own = self.own;
        let told = |a: &Arrival| matches!(a, Arrival::Message(of, m, _) if *of == own && m == message);
        self.client.wait(&message.to_string(), told).await;
    }

    async fn asks(&mut self, method: &str, uri: &str) {
        let id = self.client.begin(method, json!({"uri": uri})).await;
        assert_eq!(response(&mut self.client, &id).await["result"], json!({}));
    }

    /// Asserts that nothing came but what was waited for.
    async fn heard_all(&mut self, what: &str) {
        // What came before the answer is in the queue.
        let id = self.client.begin("ping", json!({})).await;
        response(&mut self.client, &id).await;
        let strays = strays(&mut self.client);
        assert!(strays.is_empty(), "{what}: {strays:?}");
    }
}

fn updated(uri: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}})
}

#[testkit::test]
async fn sub_05_updates_go_to_sessions_that_subscribed_until_they_unsubscribe() {
    for (wire, revision) in sessions() {
        let what = format!("{wire:?} {revision}");
        let resource = |uri: &str| Resource::fixed(uri, ResourceContents::text(uri, "text/plain", "x"));
        let server = Server::new("watched", "1").resource(resource("r:1")).resource(resource("r:2"));
        let server = server.build().unwrap();
        let mut both = Vec::new();
        for client in locals(wire, server.clone(), 2).await {
            both.push(Listener::of(client, wire, revision).await);
        }
        let [one, other] = &mut both[..] else { unreachable!() };
        one.asks("resources/subscribe", "r:1").await;
        // Twice is once.
        one.asks("resources/subscribe", "r:1").await;
        one.asks("resources/subscribe", "r:2").await;
        other.asks("resources/subscribe", "r:2").await;
        let touch =
            || ["r:3", "r:1", "r:2"].into_iter().for_each(|uri| server.notifier().resource_updated(uri));
        for _ in 0..3 {
            touch();
            one.hears(&updated("r:1")).await;
            one.hears(&updated("r:2")).await;
            other.hears(&updated("r:2")).await;
        }
        // What is given up takes nothing along, of this session or another; what was not there cannot be.
        for uri in ["r:1", "r:1", "r:3"] {
            one.asks("resources/unsubscribe", uri).await;
        }
        for _ in 0..3 {
            touch();
            one.hears(&updated("r:2")).await;
            other.hears(&updated("r:2")).await;
        }
        one.asks("resources/subscribe", "r:1").await;
        other.asks("resources/unsubscribe", "r:2").await;
        for _ in 0..3 {
            touch();
            one.hears(&updated("r:1")).await;
            one.hears(&updated("r:2")).await;
        }
        for session in [one, other] {
            session.heard_all(&what).await;
        }
    }
}

#[testkit::test]
async fn sub_07_changed_lists_are_announced_to_every_session() {
    for (wire, revision) in sessions() {
        let prompt = dateline::Prompt::new("p", "P.", || async { dateline::Messages::new() });
        let server = Server::new("changes", "1")
            .tool(Tool::new("t", "T.", || async { "t" }))
            .prompt(prompt)
            .resource(Resource::fixed("R", ResourceContents::text("r:1", "text/plain", "one")))
            .build()
            .unwrap();
        let mut both = Vec::new();
        for client in locals(wire, server.clone(), 2).await {
            both.push(Listener::of(client, wire, revision).await);
        }
        super::listening(&server, 2).await;
        for _ in 0..2 {
            server.notifier().resources_changed();
            server.notifier().prompts_changed();
            server.notifier().tools_changed();
            for session in &mut both {
                for list in ["tools", "prompts", "resources"] {
                    let method = format!("notifications/{list}/list_changed");
                    session.hears(&json!({"jsonrpc": "2.0", "method": method})).await;
                }
            }
        }
        for session in &mut both {
            session.heard_all(&format!("{wire:?} {revision}")).await;
        }
    }
}
