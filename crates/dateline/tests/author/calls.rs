//! Calls: who may make them, how often, how they are given up, and what they get.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dateline::{
    Args, Content, Context, Extension, Json, Messages, Prompt, Rate, Resource, ResourceContents, Server, Tool,
};
use dateline::{ResourceTemplate, Variables};
use serde_json::{Value, json};
use testkit::{LEGACY, MODERN, PATIENCE, WIRES, Wire};
use tokio::sync::Notify;

use super::{House, call, everywhere};

#[testkit::test]
async fn tool_08_calls_are_limited_by_rate() {
    let rate = Rate::per_second(1).burst(3);
    for (wire, revision) in everywhere() {
        let what = format!("{wire:?} {revision}");
        let ran = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&ran);
        let count = move || {
            counted.fetch_add(1, Ordering::SeqCst);
            async { "counted" }
        };
        let server = Server::new("rated", "1").tool(Tool::new("count", "Counts.", count)).calls_rate(rate);
        let house = House::of(&server.build().unwrap()).await;
        let mut client = house.client(wire, revision, json!({})).await;
        let (mut done, mut refused) = (0, 0);
        for at in 0..20 {
            let reply = client.call("count", json!({})).await;
            if reply.message.get("result").is_some() {
                assert_eq!(reply.said(), "counted", "{what}");
                done += 1;
                continue;
            }
            assert!(at >= 3, "{what}: a burst of three is allowed: {}", reply.message);
            assert_eq!(reply.code(), -32603, "{what}: {}", reply.message);
            assert!(reply.error()["message"].as_str().unwrap().contains("try again in"), "{what}");
            refused += 1;
        }
        assert!(done >= 3 && refused >= 10, "{what}: {done} done, {refused} refused");
        assert_eq!(ran.load(Ordering::SeqCst), done, "{what}: what is refused does not run");
        // It is calls that are limited.
        for _ in 0..5 {
            client.request("tools/list", json!({})).await.result();
        }
        // Another connection of the same principal is the same caller.
        let mut other = house.client(wire, revision, json!({})).await;
        let replies = [other.call("count", json!({})).await, other.call("count", json!({})).await];
        assert!(replies.iter().any(|reply| reply.message.get("error").is_some()), "{what}");
    }
}

#[testkit::test]
async fn tool_08_a_server_decides_who_may_call_what() {
    let ran = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&ran);
    let guarded = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        async { "open" }
    };
    let server = Server::new("gated", "1")
        .tool(
            Tool::new("guarded", "Is for some.", guarded)
                .input_schema(json!({"type": "object", "required": ["x"]})),
        )
        .tool(Tool::new("free", "Is for all.", || async { "free" }))
        .allow_calls(|peer, tool| match tool {
            "guarded" if peer.principal.as_str() == "local" => Ok(()),
            "guarded" => Err("this is for the user of this machine".to_owned()),
            _ => Ok(()),
        })
        .build()
        .unwrap();
    let house = House::of(&server).await;
    let mut due = 0;
    for (wire, revision) in everywhere() {
        let what = format!("{wire:?} {revision}");
        let mut client = house.client(wire, revision, json!({})).await;
        assert_eq!(client.call("free", json!({})).await.said(), "free", "{what}");
        let reply = client.call("guarded", json!({"x": 1})).await;
        if wire == Wire::Stdio {
            due += 1;
            assert_eq!(reply.said(), "open", "{what}");
        } else {
            assert_eq!(reply.code(), -32600, "{what}: {}", reply.message);
            assert_eq!(reply.error()["message"], "this is for the user of this machine", "{what}");
            // It is refused before anything is said about the arguments.
            let reply = client.call("guarded", json!({})).await;
            assert_eq!(reply.error()["message"], "this is for the user of this machine", "{what}");
        }
        assert_eq!(ran.load(Ordering::SeqCst), due, "{what}");
    }
}

/// What became of work that a handler started elsewhere.
#[derive(Default)]
struct Elsewhere {
    cancelled: AtomicUsize,
    changed: Notify,
}

#[testkit::test]
async fn work_that_a_handler_started_is_told_when_its_client_gives_up_and_only_then() {
    let elsewhere = Arc::new(Elsewhere::default());
    let seen = Arc::clone(&elsewhere);
    let watch = move |cx: Context| {
        let (token, seen) = (cx.cancellation().clone(), Arc::clone(&seen));
        tokio::spawn(async move {
            token.cancelled().await;
            seen.cancelled.fetch_add(1, Ordering::SeqCst);
            seen.changed.notify_one();
        });
        cx
    };
    let quick = watch.clone();
    let server = Server::new("works", "1")
        .tool(Tool::new("hold", "Never ends.", move |cx: Context| {
            let cx = watch(cx);
            async move {
                cx.progress(1.0, None, None).await;
                std::future::pending::<&str>().await
            }
        }))
        .tool(Tool::new("quick", "Ends at once.", move |cx: Context| {
            quick(cx);
            async { "done" }
        }))
        .build()
        .unwrap();
    let house = House::of(&server).await;
    let mut due = 0;
    for (wire, revision) in everywhere() {
        let what = format!("{wire:?} {revision}");
        let mut client = house.client(wire, revision, json!({})).await;
        assert_eq!(client.call("quick", json!({})).await.said(), "done", "{what}");
        for id in ["one", "two"] {
            let mut params = call("hold", json!({}));
            params["_meta"] = json!({"progressToken": id});
            let exchange = client.begin_as(json!(id), "tools/call", params).await;
            client.next("notifications/progress").await;
            assert_eq!(elsewhere.cancelled.load(Ordering::SeqCst), due, "{what}: not before");
            match (wire, revision) {
                (Wire::Http, MODERN) => client.disconnect(exchange),
                _ => drop(client.notify("notifications/cancelled", json!({"requestId": id})).await),
            }
            due += 1;
            let told = async {
                while elsewhere.cancelled.load(Ordering::SeqCst) < due {
                    elsewhere.changed.notified().await;
                }
            };
            tokio::time::timeout(PATIENCE, told)
                .await
                .unwrap_or_else(|_| panic!("{what} {id}: it is not told"));
        }
        assert_eq!(client.call("quick", json!({})).await.said(), "done", "{what}");
        assert_eq!(
            elsewhere.cancelled.load(Ordering::SeqCst),
            due,
            "{what}: a call that ends by itself is none"
        );
    }
}

#[testkit::test]
async fn res_02_a_resource_within_a_prompt_carries_its_mime_type() {
    let messages = || async {
        Messages::new()
            .user(Content::resource(ResourceContents::text("x:/t", "text/markdown", "# hi")))
            .assistant(Content::resource(ResourceContents::blob("x:/b", "image/png", [1, 2, 3])))
            .user(Content::image([1], "image/gif"))
    };
    let server = Server::new("embeds", "1")
        .prompt(Prompt::new("embeds", "Has resources in it.", messages))
        .tool(Tool::new("embeds", "Has a resource in it.", || async {
            Content::resource(ResourceContents::text("x:/t", "text/markdown", "# hi"))
        }))
        .resource(Resource::new("x:/text", "text", || async { "hi" }))
        .resource(Resource::new("x:/bytes", "bytes", || async { vec![1_u8] }))
        .resource(Resource::new("x:/said", "said", || async { "a,b" }).mime_type("text/csv"))
        .template(ResourceTemplate::new("x:/by/{id}", "by", |vars: Variables| async move {
            vars.get("id").to_owned()
        }))
        .build()
        .unwrap();
    let house = House::of(&server).await;
    for (wire, revision) in everywhere() {
        let what = format!("{wire:?} {revision}");
        let mut client = house.client(wire, revision, json!({})).await;
        let reply = client.request("prompts/get", json!({"name": "embeds"})).await;
        let messages = reply.result()["messages"].as_array().unwrap();
        let text = json!({"uri": "x:/t", "mimeType": "text/markdown", "text": "# hi"});
        let blob = json!({"uri": "x:/b", "mimeType": "image/png", "blob": "AQID"});
        assert_eq!(messages[0]["content"], json!({"type": "resource", "resource": text}), "{what}");
        assert_eq!(messages[1]["content"], json!({"type": "resource", "resource": blob}), "{what}");
        assert_eq!(messages[2]["content"]["mimeType"], "image/gif", "{what}");
        let reply = client.call("embeds", json!({})).await;
        assert_eq!(reply.result()["content"][0]["resource"], text, "{what}");
        for (uri, mime) in [
            ("x:/text", "text/plain"),
            ("x:/bytes", "application/octet-stream"),
            ("x:/said", "text/csv"),
            ("x:/by/7", "text/plain"),
        ] {
            let reply = client.request("resources/read", json!({"uri": uri})).await;
            assert_eq!(reply.result()["contents"][0]["mimeType"], mime, "{what} {uri}");
        }
    }
}

const WEATHER: &str = "com.example/weather";

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct City {
    city: String,
}

fn weather() -> Server {
    let extension = Extension::new(WEATHER)
        .settings(json!({"units": ["C", "F"]}))
        .method("weather/of", |Args(city): Args<City>| async move { json!({"city": city.city, "sun": true}) })
        .open_method("weather/cities", || async { json!({"cities": ["Ulm"]}) });
    // With the extension a client gets more; without it, what the core has.
    let report = |cx: Context| async move {
        match cx.peer().capabilities.extension(WEATHER) {
            Some(settings) => format!("in full, for {}", settings.as_str()),
            None => "in short".to_owned(),
        }
    };
    Server::new("weather", "1")
        .tool(Tool::new("report", "Reports.", report))
        .extension(extension)
        .extension(Extension::new("com.example/empty"))
        .build()
        .unwrap()
}

#[testkit::test]
async fn ext_01_what_a_client_did_not_declare_is_not_used() {
    let house = House::of(&weather()).await;
    for wire in WIRES {
        let mut client = house.client(wire, MODERN, json!({})).await;
        let said = client.request("server/discover", json!({})).await;
        let due = json!({WEATHER: {"units": ["C", "F"]}, "com.example/empty": {}});
        assert_eq!(said.result()["capabilities"]["extensions"], due, "{wire:?}");
        for declared in [
            json!({}),
            json!({"extensions": {}}),
            json!({"extensions": {"com.example/empty": {}, "com.example/Weather": {}, "weather": {}}}),
            json!({"experimental": {WEATHER: {}}}),
        ] {
            client.capabilities = declared.clone();
            let reply = client.request("weather/of", json!({"city": "Ulm"})).await;
            assert_eq!(reply.code(), -32021, "{wire:?} {declared}: {}", reply.message);
            let needed = json!({"extensions": {WEATHER: {}}});
            assert_eq!(reply.error()["data"]["requiredCapabilities"], needed, "{wire:?} {declared}");
            assert_eq!(reply.status(), (wire == Wire::Http).then_some(400), "{wire:?}");
            assert_eq!(client.call("report", json!({})).await.said(), "in short", "{wire:?} {declared}");
            let reply = client.request("weather/cities", json!({})).await;
            assert_eq!(reply.result()["cities"], json!(["Ulm"]), "{wire:?} {declared}");
        }
        client.capabilities = json!({"extensions": {WEATHER: {"units": "C"}}});
        let reply = client.request("weather/of", json!({"city": "Ulm"})).await;
        assert_eq!(
            (&reply.result()["city"], &reply.result()["sun"]),
            (&json!("Ulm"), &json!(true)),
            "{wire:?}"
        );
        assert_eq!(reply.result()["resultType"], "complete", "{wire:?}");
        assert_eq!(client.request("weather/of", json!({"city": 5})).await.code(), -32602, "{wire:?}");
        assert_eq!(
            client.call("report", json!({})).await.said(),
            r#"in full, for {"units":"C"}"#,
            "{wire:?}"
        );
        // What it declared before does not count.
        client.capabilities = json!({});
        assert_eq!(client.request("weather/of", json!({"city": "Ulm"})).await.code(), -32021, "{wire:?}");
        assert_eq!(client.request("weather/on", json!({})).await.code(), -32601, "{wire:?}");
    }
    // Sessions have no extensions.
    for (wire, revision) in everywhere().into_iter().filter(|(_, revision)| LEGACY.contains(revision)) {
        let declared = json!({"extensions": {WEATHER: {}}, "experimental": {WEATHER: {}}});
        let mut client = house.client(wire, revision, declared).await;
        for method in ["weather/of", "weather/cities"] {
            let reply = client.request(method, json!({"city": "Ulm"})).await;
            assert_eq!(reply.code(), -32601, "{wire:?} {revision} {method}: {}", reply.message);
        }
    }
}

#[test]
fn ext_01_an_identifier_has_a_prefix() {
    testkit::covers(&[MODERN], Wire::Http, testkit::Between::Nothing);
    let build = |extension: Extension| Server::new("x", "1").extension(extension).build();
    for wrong in
        ["weather", "", "/", "/weather", "com.example/", "com example/x", "com.example/x/y", "-a/b", "a/b-"]
    {
        let why = build(Extension::new(wrong))
            .err()
            .unwrap_or_else(|| panic!("{wrong:?} is let through"))
            .to_string();
        assert!(why.contains(&format!("{wrong:?}")), "{why}");
    }
    for right in ["com.example/weather", "a/b", "com.example-1/x_y.z"] {
        assert!(build(Extension::new(right)).is_ok(), "{right}");
    }
    let of = |method| Extension::new("a/b").open_method(method, || async { json!({}) });
    assert!(build(of("tools/list")).err().unwrap().to_string().contains("tools/list"));
    assert!(build(Extension::new("a/b").settings(json!([]))).err().unwrap().to_string().contains("object"));
    let twice = Server::new("x", "1")
        .extension(of("c/d"))
        .extension(Extension::new("a/c").method("c/d", || async { json!({}) }));
    assert!(twice.build().err().unwrap().to_string().contains("c/d"));
}

#[derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
struct Trip {
    /// Where to
    city: String,
    days: u8,
    cost: Option<f64>,
    #[serde(default)]
    abroad: bool,
}

#[testkit::test]
async fn arguments_of_prompts_and_variables_of_templates_have_types() {
    let trip = |Args(trip): Args<Trip>| async move { serde_json::to_string(&trip).unwrap() };
    let server = Server::new("trips", "1")
        .prompt(Prompt::new("trip", "Plans a trip.", trip))
        .template(ResourceTemplate::new("trip://{city}/{days}", "trip", trip))
        .tool(Tool::new("trip", "Plans a trip.", |Args(trip): Args<Trip>| async move { Json(trip) }))
        .build()
        .unwrap();
    let house = House::of(&server).await;
    for (wire, revision) in everywhere() {
        let what = format!("{wire:?} {revision}");
        let mut client = house.client(wire, revision, json!({})).await;
        let listed = client.request("prompts/list", json!({})).await;
        let due = json!([
            {"name": "city", "description": "Where to", "required": true},
            {"name": "days", "required": true},
            {"name": "cost", "required": false},
            {"name": "abroad", "required": false},
        ]);
        assert_eq!(listed.result()["prompts"][0]["arguments"], due, "{what}");
        for (arguments, due) in [
            (
                json!({"city": "7", "days": "7"}),
                json!({"city": "7", "days": 7, "cost": null, "abroad": false}),
            ),
            (
                json!({"city": "true", "days": "1", "cost": "1.5", "abroad": "true"}),
                json!({"city": "true", "days": 1, "cost": 1.5, "abroad": true}),
            ),
        ] {
            let reply = client.request("prompts/get", json!({"name": "trip", "arguments": arguments})).await;
            let text = reply.result()["messages"][0]["content"]["text"].as_str().unwrap();
            assert_eq!(serde_json::from_str::<Value>(text).unwrap(), due, "{what}");
        }
        for wrong in [
            json!({"city": "Ulm"}),
            json!({"city": "Ulm", "days": 7}),
            json!({"city": "Ulm", "days": "seven"}),
            json!({"city": "Ulm", "days": "1.5"}),
            json!({"city": "Ulm", "days": "-1"}),
            json!({"city": "Ulm", "days": "300"}),
            json!({"city": "Ulm", "days": "7", "cost": "much"}),
            json!({"city": "Ulm", "days": "7", "abroad": "yes"}),
            json!({"city": "Ulm", "days": ""}),
        ] {
            let reply = client.request("prompts/get", json!({"name": "trip", "arguments": wrong})).await;
            assert_eq!(reply.code(), -32602, "{what} {wrong}: {}", reply.message);
        }
        let read = client.request("resources/read", json!({"uri": "trip://New%20Ulm/3"})).await;
        let text = read.result()["contents"][0]["text"].as_str().unwrap();
        assert!(text.starts_with(r#"{"city":"New Ulm","days":3,"#), "{what}: {text}");
        // A value that is not of its type names nothing that there is.
        for uri in ["trip://Ulm/three", "trip://Ulm/-3", "trip://Ulm/300", "trip://Ulm/3.0"] {
            let reply = client.request("resources/read", json!({"uri": uri})).await;
            let due = if revision == MODERN { -32602 } else { -32002 };
            assert_eq!(reply.code(), due, "{what} {uri}: {}", reply.message);
            assert_eq!(reply.error()["data"]["uri"], uri, "{what}");
        }
    }
}
