//! Opening and ending a connection.

use dateline::{Context, Level, Messages, Prompt, Resource, ResourceContents, Server, Tool};
use serde_json::{Value, json};
use testkit::{
    Arrival, Between, Client, Exchange, LATEST_LEGACY, LEGACY, LEGACY_WIRES, MODERN, Wire, covers,
};

use crate::features::{listening, local, logging};
use crate::msg::{quick, response, sessions};
use crate::{legacy, long_countdown, modern};

#[testkit::test]
async fn life_01_initialize_gives_version_capabilities_and_server() {
    for (wire, revision) in sessions() {
        let (_client, reply) = legacy(wire, revision, json!({})).await;
        let result = reply.result();
        assert!(result["protocolVersion"].is_string(), "{wire:?} {revision}");
        assert!(result["capabilities"]["tools"].is_object(), "{wire:?} {revision}");
        assert_eq!(result["serverInfo"]["name"], "dateline-demo", "{wire:?} {revision}");
        assert!(result["serverInfo"]["version"].is_string(), "{wire:?} {revision}");
    }
}

#[testkit::test]
async fn life_02_a_served_version_is_echoed() {
    for (wire, revision) in sessions() {
        let (_client, reply) = legacy(wire, revision, json!({})).await;
        assert_eq!(reply.result()["protocolVersion"], revision, "{wire:?}");
    }
}

#[testkit::test]
async fn life_03_another_version_is_answered_with_the_latest_handshake_revision() {
    for wire in LEGACY_WIRES {
        // What is asked for is no revision, and all are answered by the latest.
        covers(&LEGACY, wire, Between::Nothing);
        for asked in ["1999-01-01", "2031-01-01", MODERN, "rubbish", ""] {
            let (mut client, reply) =
                legacy(wire, Box::leak(asked.to_owned().into_boxed_str()), json!({})).await;
            assert_eq!(reply.result()["protocolVersion"], LATEST_LEGACY, "{wire:?} {asked:?}");
            // The session works, in the revision that was named.
            client.revision = Some(LATEST_LEGACY);
            assert_eq!(client.call("echo", json!({"message": "hi"})).await.said(), "hi");
        }
    }
}

/// Opens the stream of a session over Streamable HTTP that carries what concerns no call; elsewhere there is but one.
async fn own_stream(client: &mut Client, wire: Wire) -> Exchange {
    if wire != Wire::Http {
        return 0;
    }
    let exchange = client.exchange("GET", &[("accept", "text/event-stream")], Vec::new());
    assert_eq!(client.head(exchange).await.status, 200);
    exchange
}

/// What arrived and was not waited for.
fn heard(client: &mut Client) -> Vec<Value> {
    let message = |arrival| match arrival {
        Arrival::Message(_, message, _) => Some(message),
        _ => None,
    };
    client.leftovers().into_iter().filter_map(message).collect()
}

/// Calls a tool of a session; gives its text. What comes before the answer stays in the queue.
async fn done(client: &mut Client, tool: &str, arguments: Value) -> String {
    let meta = json!({"progressToken": tool});
    let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
    let id = client.begin("tools/call", params).await;
    response(client, &id).await["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

#[testkit::test]
async fn life_04_before_initialized_only_answers_pings_and_log_messages_are_sent() {
    let watched = json!({"uri": "test://watched-resource"});
    for (wire, revision) in sessions() {
        let what = format!("{wire:?} {revision}");
        let mut client = modern(wire).await;
        client.initialize(revision, json!({"sampling": {}})).await.result();
        let own = own_stream(&mut client, wire).await;
        client.request("resources/subscribe", watched.clone()).await.result();
        // Things happen that it would hear of: progress, twice a change, and a question.
        assert_eq!(
            done(&mut client, "countdown", quick(3)["arguments"].clone()).await,
            "counted down from 3"
        );
        for _ in 0..2 {
            done(&mut client, "touch_resource", watched.clone()).await;
        }
        let asking = client.id();
        let question = json!({"name": "test_missing_capability", "arguments": {}});
        let exchange = client.begin_as(asking.clone(), "tools/call", question).await;
        assert_eq!(done(&mut client, "test_logging_tool", json!({})).await, "logged");
        assert_eq!(
            done(&mut client, "countdown", quick(20)["arguments"].clone()).await,
            "counted down from 20"
        );
        client.send(&json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}), &[]).await;
        assert_eq!(response(&mut client, &json!("p")).await["result"], json!({}), "{what}");
        let methods: Vec<_> = heard(&mut client).into_iter().map(|m| m["method"].clone()).collect();
        assert_eq!(methods, ["notifications/message"], "{what}: answers and a log message");

        // All of it but the progress waited for this, and comes once.
        client.notify("notifications/initialized", json!({})).await;
        let asked = |m: &Value| m["method"] == "sampling/createMessage";
        let asked = |a: &Arrival| matches!(a, Arrival::Message(of, m, _) if *of == exchange && asked(m));
        let Arrival::Message(_, asked, _) = client.wait("the question", asked).await else { unreachable!() };
        let updated = |m: &Value| m["method"] == "notifications/resources/updated" && m["params"] == watched;
        let updated = |a: &Arrival| matches!(a, Arrival::Message(of, m, _) if *of == own && updated(m));
        client.wait("the update", updated).await;
        let answer = crate::era::sampled("Paris");
        client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer}), &[]).await;
        assert_eq!(client.reply(&asking).await.said(), "Paris", "{what}");
        let mut params = quick(3);
        params["_meta"] = json!({"progressToken": "t"});
        let reply = client.request("tools/call", params).await;
        assert_eq!(reply.notifications("notifications/progress").len(), 4, "{what}: from now on");
        assert_eq!((reply.before.len(), heard(&mut client)), (4, Vec::new()), "{what}: nothing comes twice");
    }
}

/// A server that offers one of the three, and a method of each of the others.
fn narrow(which: &str) -> Server {
    let server = Server::new("narrow", "1");
    let server = match which {
        "tools" => server.tool(Tool::new("say", "Says it.", |cx: Context| async move {
            cx.log(Level::Info, None, "said").await;
            "it"
        })),
        "prompts" => server.prompt(Prompt::new("p", "P.", || async { Messages::new() })),
        _ => server.resource(Resource::fixed("R", ResourceContents::text("r://1", "text/plain", "one"))),
    };
    server.build().unwrap()
}

#[testkit::test]
async fn life_05_nothing_is_sent_outside_the_capabilities_that_were_declared() {
    let methods = [
        ("tools", "tools/list", json!({})),
        ("tools", "tools/call", json!({"name": "say", "arguments": {}})),
        ("prompts", "prompts/list", json!({})),
        ("prompts", "prompts/get", json!({"name": "p"})),
        ("resources", "resources/list", json!({})),
        ("resources", "resources/templates/list", json!({})),
        ("resources", "resources/read", json!({"uri": "r://1"})),
        ("resources", "resources/subscribe", json!({"uri": "r://1"})),
        ("resources", "resources/unsubscribe", json!({"uri": "r://1"})),
        ("completions", "completion/complete", crate::era::haiku_topic()),
    ];
    for (wire, revision) in sessions() {
        for which in ["tools", "prompts", "resources"] {
            let what = format!("{wire:?} {revision} {which}");
            let server = narrow(which);
            let mut client = local(wire, server.clone()).await;
            let opened = client.handshake(revision, json!({})).await;
            let mut declared = json!({"logging": {}, which: {"listChanged": true}});
            if which == "resources" {
                declared[which]["subscribe"] = json!(true);
            }
            assert_eq!(opened.result()["capabilities"], declared, "{what}");
            let own = own_stream(&mut client, wire).await;
            listening(&server, 1).await;
            for (needed, method, params) in &methods {
                let id = client.begin(method, params.clone()).await;
                let reply = response(&mut client, &id).await;
                let code = reply["error"]["code"].as_i64();
                assert_eq!(code, (*needed != which).then_some(-32601), "{what} {method}: {reply}");
            }
            for _ in 0..2 {
                // What concerns what is declared comes last, so that what came before it is in the queue.
                server.notifier().resource_updated("r://1");
                for kind in
                    ["tools", "prompts", "resources"].into_iter().filter(|kind| *kind != which).chain([which])
                {
                    match kind {
                        "tools" => server.notifier().tools_changed(),
                        "prompts" => server.notifier().prompts_changed(),
                        _ => server.notifier().resources_changed(),
                    }
                }
                let due = format!("notifications/{which}/list_changed");
                let told =
                    |a: &Arrival| matches!(a, Arrival::Message(of, m, _) if *of == own && m["method"] == due);
                client.wait(&due, told).await;
            }
            let id = client.begin("ping", json!({})).await;
            response(&mut client, &id).await;
            let heard: Vec<Value> = heard(&mut client).into_iter().map(|m| m["method"].clone()).collect();
            let due: &[&str] = if which == "tools" { &["notifications/message"] } else { &[] };
            assert_eq!(heard, due, "{what}: but for the log message of the call, nothing");
        }
        // Who logs without saying so is not heard, and cannot be told to.
        let mut client = local(wire, logging(false)).await;
        let opened = client.handshake(revision, json!({})).await;
        assert_eq!(opened.result()["capabilities"], json!({"tools": {}}), "{wire:?} {revision}");
        let refused = client.request("logging/setLevel", json!({"level": "debug"})).await;
        assert_eq!(refused.code(), -32601, "{wire:?} {revision}");
        let reply = client.call("log", json!({})).await;
        assert_eq!(
            (reply.said(), reply.before.len()),
            ("done", 0),
            "{wire:?} {revision}: {:?}",
            reply.before
        );
    }
}

#[testkit::test]
async fn life_07_end_of_input_ends_the_process_and_what_runs() {
    for revision in LEGACY.into_iter().chain([MODERN]) {
        let mut client = modern(Wire::Stdio).await;
        if revision != MODERN {
            client.handshake(revision, json!({})).await;
        }
        let running = client.begin("tools/call", long_countdown()).await;
        client.next("notifications/progress").await;
        let ready =
            client.begin("tools/call", json!({"name": "echo", "arguments": {"message": "owed"}})).await;
        client.close_input();
        assert_eq!(client.reply(&ready).await.said(), "owed", "{revision}: what is ready is still answered");
        assert_eq!(client.exit().await, Some(0), "{revision}");
        let answered =
            client.leftovers().iter().any(|a| matches!(a, Arrival::Message(_, m, _) if m["id"] == running));
        assert!(!answered, "{revision}: what was cancelled is not answered");
    }
}

#[testkit::test]
async fn life_08_a_second_initialize_is_refused_and_changes_nothing() {
    for (wire, revision) in sessions() {
        let what = format!("{wire:?} {revision}");
        let (mut client, _) = legacy(wire, revision, json!({"sampling": {}})).await;
        let own = own_stream(&mut client, wire).await;
        client.request("logging/setLevel", json!({"level": "error"})).await.result();
        client.request("resources/subscribe", json!({"uri": "demo://welcome"})).await.result();
        let listed = client.request("tools/list", json!({})).await.result().clone();
        let running = client.id();
        let question = json!({"name": "test_missing_capability", "arguments": {}});
        client.begin_as(running.clone(), "tools/call", question).await;
        let asked = client.next("sampling/createMessage").await;
        for other in LEGACY.into_iter().chain([MODERN, "rubbish"]) {
            let params = json!({"protocolVersion": other, "capabilities": {}, "clientInfo": {"name": "u", "version": "2"}});
            let reply = client.request("initialize", params).await;
            assert_eq!(
                (reply.code(), reply.status()),
                (-32600, (wire == Wire::Http).then_some(200)),
                "{what}"
            );
            let minted =
                reply.head.as_ref().and_then(|head| testkit::header(&head.headers, "mcp-session-id"));
            assert_eq!(minted, None, "{what}: no session is opened");
            client.notify("notifications/initialized", json!({})).await;
        }
        // Its revision, its calls and their questions, its level, its capabilities and its subscriptions.
        assert_eq!(client.request("tools/list", json!({})).await.result(), &listed, "{what}");
        let answer = crate::era::sampled("Paris");
        client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer}), &[]).await;
        assert_eq!(client.reply(&running).await.said(), "Paris", "{what}");
        assert_eq!(client.call("test_logging_tool", json!({})).await.before.len(), 0, "{what}");
        client.begin("tools/call", json!({"name": "test_missing_capability", "arguments": {}})).await;
        client.next("sampling/createMessage").await;
        client
            .begin("tools/call", json!({"name": "touch_resource", "arguments": {"uri": "demo://welcome"}}))
            .await;
        let updated = |m: &Value| m["method"] == "notifications/resources/updated";
        let updated = |a: &Arrival| matches!(a, Arrival::Message(of, m, _) if *of == own && updated(m));
        client.wait("the update", updated).await;
    }
}
