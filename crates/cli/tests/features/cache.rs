//! Cache hints.

use std::time::Duration;

use dateline::{Server, Tool};
use serde_json::{Value, json};
use testkit::WIRES;

use super::{asking, check_interim, everything, local, retry};
use crate::modern;

const CACHEABLE: [(&str, &str); 6] = [
    ("server/discover", "{}"),
    ("tools/list", "{}"),
    ("prompts/list", "{}"),
    ("resources/list", "{}"),
    ("resources/templates/list", "{}"),
    ("resources/read", r#"{"uri":"demo://welcome"}"#),
];

fn hints(result: &Value) -> (Value, Value) {
    (result["ttlMs"].clone(), result["cacheScope"].clone())
}

fn check_hints(result: &Value, what: &str) {
    assert_eq!(result["resultType"], "complete", "{what}: {result}");
    assert!(result["ttlMs"].is_u64(), "{what}: an integer, 0 or more: {result}");
    assert!(result["cacheScope"] == "public" || result["cacheScope"] == "private", "{what}: {result}");
}

#[testkit::test]
async fn cache_01_cacheable_results_carry_hints_and_a_read_completed_by_answers_is_nobodys() {
    let nobodys = (json!(0), json!("private"));
    for wire in WIRES {
        let mut client = modern(wire).await;
        for (method, params) in CACHEABLE {
            let params: Value = serde_json::from_str(params).unwrap();
            let reply = client.request(method, params).await;
            check_hints(reply.result(), &format!("{wire:?} {method}"));
        }
        for uri in ["test://static-binary", "test://template/5/data"] {
            let reply = client.request("resources/read", json!({"uri": uri})).await;
            check_hints(reply.result(), &format!("{wire:?} {uri}"));
        }
        let given = json!({"uri": "demo://welcome", "inputResponses": {"unasked": {"action": "cancel"}}});
        let reply = client.request("resources/read", given).await;
        assert_eq!(hints(reply.result()), nobodys, "{wire:?}: answers came with it");

        // Every page of a list has its own.
        let say = |name: &str| Tool::new(name, "Says its name.", || async { "name" });
        let server = Server::new("pages", "1")
            .page_size(1)
            .cache_lists(dateline::CacheScope::Public, Duration::from_secs(60));
        let server = server.tool(say("one")).tool(say("two")).tool(say("three")).build().unwrap();
        let mut client = local(wire, server).await;
        let (mut params, mut names) = (json!({}), Vec::new());
        loop {
            let reply = client.request("tools/list", params).await;
            check_hints(reply.result(), "a page");
            assert_eq!(hints(reply.result()), (json!(60_000), json!("public")), "{wire:?}");
            names.push(reply.result()["tools"][0]["name"].clone());
            let Some(cursor) = reply.result().get("nextCursor") else { break };
            params = json!({"cursor": cursor});
        }
        assert_eq!(names, ["one", "two", "three"], "{wire:?}");

        // A service says what it likes: a result that an answer went into is for nobody to keep.
        let mut client = local(wire, asking()).await;
        client.capabilities = everything();
        let params = json!({"uri": "demo://asks"});
        let asked = client.request("resources/read", params.clone()).await;
        check_interim(asked.result(), &everything(), "no hints in between");
        let read = client.request("resources/read", retry(&params, asked.result())).await;
        check_hints(read.result(), "read");
        assert_eq!(hints(read.result()), nobodys, "{wire:?}: {}", read.message);
        assert_eq!(read.result()["contents"][0]["text"], "told", "{wire:?}");
        let stated = json!({"uri": "demo://asks", "requestState": "s"});
        let read = client.request("resources/read", stated).await;
        assert_eq!(hints(read.result()), nobodys, "{wire:?}: {}", read.message);
    }
}
