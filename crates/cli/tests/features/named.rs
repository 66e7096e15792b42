//! What is asked for by name: completions, resources and prompts, also where there are none.

use dateline::{
    CompletionArgument, Messages, Prompt, Rate, Resource, ResourceContents, ResourceTemplate, Server,
};
use serde_json::{Value, json};
use testkit::{Client, LEGACY, MODERN, Reply, Wire};

use super::local;
use crate::modern;
use crate::msg::{client, everywhere, response, speaking};

/// Params of a completion of a prompt's argument.
fn of_prompt(prompt: &str, argument: &str, value: &str) -> Value {
    json!({"ref": {"type": "ref/prompt", "name": prompt}, "argument": {"name": argument, "value": value}})
}

/// Params of a completion of a template's variable.
fn of_template(uri: &str, variable: &str, value: &str) -> Value {
    json!({"ref": {"type": "ref/resource", "uri": uri}, "argument": {"name": variable, "value": value}})
}

async fn completed(client: &mut Client, params: Value) -> Value {
    client.request("completion/complete", params).await.result()["completion"].clone()
}

const TWO: &str = "test_prompt_with_arguments";

#[testkit::test]
async fn comp_01_a_hundred_values_at_most_come_the_best_first_with_how_many_there_are() {
    for (wire, revision) in everywhere() {
        let what = format!("{wire:?} {revision}");
        let mut client = modern(wire).await;
        let capabilities = if revision == MODERN {
            client.request("server/discover", json!({})).await.result()["capabilities"].clone()
        } else {
            client.handshake(revision, json!({})).await.result()["capabilities"].clone()
        };
        // At first the capability had no name; the method was there.
        let due = (revision != LEGACY[0]).then(|| json!({}));
        assert_eq!(capabilities.get("completions").cloned(), due, "{what}");

        let all = completed(&mut client, of_prompt(TWO, "arg2", "")).await;
        let first: Vec<String> = (1..=100).map(|n| format!("any-{n}")).collect();
        assert_eq!(all, json!({"values": first, "total": 120, "hasMore": true}), "{what}");
        let some = completed(&mut client, of_prompt(TWO, "arg2", "-12")).await;
        assert_eq!(some, json!({"values": ["any-12", "any-120"], "total": 2, "hasMore": false}), "{what}");
        // The same before what begins with it, whatever the order in which they stand, and in any case.
        for (typed, values) in [
            ("TESTED", json!(["tested"])),
            ("test", json!(["test", "testing", "tested"])),
            ("sted", json!(["tested"])),
            ("none of them", json!([])),
        ] {
            let completion = completed(&mut client, of_prompt(TWO, "arg1", typed)).await;
            let total = values.as_array().unwrap().len();
            assert_eq!(completion, json!({"values": values, "total": total, "hasMore": false}), "{what}");
        }
        for (typed, values) in [
            ("r", json!(["rain", "rust", "revisions"])),
            ("LINE", json!(["the date line"])),
            ("e", json!(["revisions", "the date line"])),
        ] {
            let ranked = completed(&mut client, of_prompt("haiku", "topic", typed)).await;
            assert_eq!(ranked["values"], values, "{what} {typed}");
        }
        let of_template = completed(&mut client, of_template("test://template/{id}/data", "id", "7")).await;
        assert_eq!(of_template["values"], json!(["71", "72", "73"]), "{what}");
    }
}

#[testkit::test]
async fn comp_01_who_asks_too_often_is_told_so() {
    let prompt = || {
        let haiku = Prompt::new("haiku", "A haiku.", || async { Messages::new() });
        haiku.argument("topic", "What about.", true).choices("topic", ["rain"])
    };
    for (wire, revision) in everywhere() {
        let server = Server::new("rated", "1").prompt(prompt()).completions_rate(Rate::per_second(1));
        let mut client = speaking(local(wire, server.build().unwrap()).await, revision, json!({})).await;
        let mut asked = Vec::new();
        for _ in 0..20 {
            asked.push(client.begin("completion/complete", of_prompt("haiku", "topic", "")).await);
        }
        let (mut given, mut refused) = (0, 0);
        for id in asked {
            let message = response(&mut client, &id).await;
            match message.get("result") {
                Some(result) => {
                    assert_eq!(result["completion"]["values"], json!(["rain"]), "{wire:?} {revision}");
                    given += 1;
                }
                None => {
                    assert_eq!(message["error"]["code"], -32603, "{wire:?} {revision}: {message}");
                    let why = message["error"]["message"].as_str().unwrap();
                    assert!(why.contains("too many") && why.contains("try again in"), "{why}");
                    refused += 1;
                }
            }
        }
        assert!(given >= 1 && refused >= 1, "{wire:?} {revision}: {given} given, {refused} refused");
        // Nothing else is held up by it.
        client.request("prompts/list", json!({})).await.result();
    }
}

#[testkit::test]
async fn comp_02_unknown_references_are_refused_and_other_arguments_count_where_they_exist() {
    for (wire, revision) in everywhere() {
        let mut client = client(wire, revision, json!({})).await;
        let template = "test://template/{id}/data";
        let mut misnamed = of_prompt(TWO, "arg1", "");
        misnamed["ref"] = json!({"type": "ref/tool", "name": "echo"});
        let mut nameless = of_prompt(TWO, "arg1", "");
        nameless["ref"] = json!({"type": "ref/prompt"});
        let mut valueless = of_prompt(TWO, "arg1", "");
        valueless["argument"] = json!({"name": "arg1"});
        for wrong in [
            of_prompt("no-such-prompt", "arg1", ""),
            of_prompt("Haiku", "topic", ""),
            of_prompt(TWO, "arg3", ""),
            of_prompt("test_simple_prompt", "topic", ""),
            of_template("test://template/{no}/data", "no", ""),
            of_template("test://template/1/data", "id", ""),
            of_template("demo://welcome", "id", ""),
            of_template(template, "no", ""),
            misnamed,
            nameless,
            valueless,
        ] {
            let reply = client.request("completion/complete", wrong.clone()).await;
            assert_eq!(reply.code(), -32602, "{wire:?} {revision} {wrong}: {}", reply.message);
            assert!(!reply.error()["message"].as_str().unwrap().is_empty(), "{wire:?} {revision} {wrong}");
        }
        // An argument that nothing completes is none that is unknown.
        let none = of_prompt("test_prompt_with_embedded_resource", "resourceUri", "x");
        assert_eq!(completed(&mut client, none).await["values"], json!([]), "{wire:?} {revision}");

        let has = !LEGACY[..2].contains(&revision);
        let mut params = of_prompt(TWO, "arg2", "-99");
        params["context"] = json!({"arguments": {"arg1": "testing", "arg9": "x"}});
        let due = if has { "testing-99" } else { "any-99" };
        assert_eq!(
            completed(&mut client, params.clone()).await["values"],
            json!([due]),
            "{wire:?} {revision}"
        );
        for empty in [json!({}), json!({"arguments": {}}), json!({"arguments": {"arg2": "other"}})] {
            params["context"] = empty;
            let completion = completed(&mut client, params.clone()).await;
            assert_eq!(completion["values"], json!(["any-99"]), "{wire:?} {revision}");
        }
        // Where it does not exist it is a field as any that nobody knows.
        for wrong in [json!(5), json!({"arguments": []}), json!({"arguments": {"arg1": 5}})] {
            params["context"] = wrong.clone();
            let reply = client.request("completion/complete", params.clone()).await;
            let code = reply.message["error"]["code"].as_i64();
            assert_eq!(code, has.then_some(-32602), "{wire:?} {revision} {wrong}: {}", reply.message);
        }
    }
}

async fn read(client: &mut Client, uri: &str) -> Reply {
    client.request("resources/read", json!({"uri": uri})).await
}

#[testkit::test]
async fn res_01_uris_are_checked_templates_are_read_and_what_is_not_there_says_which_it_is() {
    for (wire, revision) in everywhere() {
        let what = format!("{wire:?} {revision}");
        let path = |vars: dateline::Variables| async move {
            let said = json!({"path": vars.get("path"), "kind": vars.get("kind")}).to_string();
            let text = ResourceContents::text(&vars.uri, "text/plain", said);
            (vars.get("kind") != "none").then_some(text)
        };
        let server = Server::new("files", "1")
            .template(ResourceTemplate::new("files:///{+path}?kind={kind}", "Files", path))
            .resource(Resource::fixed("R", ResourceContents::text("r:one", "text/plain", "one")))
            .build()
            .unwrap();
        let mut own = speaking(local(wire, server).await, revision, json!({})).await;
        for (uri, path, kind) in [
            ("files:///a/b.txt?kind=x", "a/b.txt", "x"),
            ("files:///a%20b/%E6%97%A5?kind=%2F%25", "a b/日", "/%"),
            ("files:///a?b?kind=c", "a?b", "c"),
        ] {
            let reply = read(&mut own, uri).await;
            let contents = &reply.result()["contents"][0];
            let said: Value = serde_json::from_str(contents["text"].as_str().unwrap()).unwrap();
            assert_eq!(
                (&contents["uri"], said),
                (&json!(uri), json!({"path": path, "kind": kind})),
                "{what}"
            );
        }
        assert_eq!(read(&mut own, "r:one").await.result()["contents"][0]["text"], "one", "{what}");
        let mut demo = client(wire, revision, json!({})).await;
        let reply = read(&mut demo, "test://template/42/data").await;
        let said = reply.result()["contents"][0]["text"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(said).unwrap()["id"], "42", "{what}");

        let code = if revision == MODERN { -32602 } else { -32002 };
        for (of_demo, absent) in [
            (false, "files:///a"),
            (false, "files:///?kind=x"),
            (false, "files:///a?kind=none"),
            (false, "files:///a?kind=x/y"),
            // Half an escape, and one that is not UTF-8, stand for nothing.
            (false, "files:///%2?kind=x"),
            (false, "files:///%FF?kind=x"),
            (false, "r:one#part"),
            (true, "demo://nothing"),
            (true, "test://template//data"),
        ] {
            let reply = read(if of_demo { &mut demo } else { &mut own }, absent).await;
            assert_eq!(reply.code(), code, "{what} {absent}: {}", reply.message);
            assert_eq!(reply.error()["data"], json!({"uri": absent}), "{what}");
        }
        // HTTP has no header of no characters.
        let all = ["x", "/etc/passwd", "no uri", "://x", "1://x", "http://[", ""];
        for wrong in all.into_iter().filter(|uri| !uri.is_empty() || (wire, revision) != (Wire::Http, MODERN))
        {
            let reply = read(&mut demo, wrong).await;
            assert_eq!(reply.code(), -32602, "{what} {wrong:?}: {}", reply.message);
            assert!(reply.error()["message"].as_str().unwrap().contains("URI"), "{what}: {}", reply.message);
        }
    }
}

#[testkit::test]
async fn prompt_01_an_unknown_prompt_and_a_missing_argument_are_refused() {
    for (wire, revision) in everywhere() {
        let mut client = client(wire, revision, json!({})).await;
        let get = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
        for (params, named) in [
            (get("no-such-prompt", json!({})), "no-such-prompt"),
            (get("Haiku", json!({"topic": "rain"})), "Haiku"),
            (get("haiku", json!({})), "topic"),
            (json!({"name": "haiku"}), "topic"),
            (get("haiku", json!({"Topic": "rain"})), "topic"),
            (get(TWO, json!({"arg1": "1"})), "arg2"),
            (get(TWO, json!({"arg2": "2"})), "arg1"),
            (get("haiku", json!({"topic": 5})), "string"),
            (get("haiku", json!([])), "arguments"),
        ] {
            let reply = client.request("prompts/get", params.clone()).await;
            assert_eq!(reply.code(), -32602, "{wire:?} {revision} {params}: {}", reply.message);
            let why = reply.error()["message"].as_str().unwrap();
            assert!(why.contains(named), "{wire:?} {revision} {params}: {why}");
        }
        // One that it does not know is no reason to refuse.
        let more = get(TWO, json!({"arg1": "1", "arg2": "", "arg3": "3"}));
        let reply = client.request("prompts/get", more).await;
        let text = &reply.result()["messages"][0]["content"]["text"];
        assert_eq!(text, "Prompt with arguments: arg1='1', arg2=''", "{wire:?} {revision}");
    }
}

#[testkit::test]
async fn comp_01_an_answer_of_a_hundred_values_has_no_more() {
    let server = |values: usize| {
        let all = move |_: CompletionArgument| async move { (0..values).map(|n| n.to_string()).collect() };
        let prompt = Prompt::new("p", "P.", || async { Messages::new() });
        let prompt = prompt.argument("a", "A.", false).complete("a", all);
        Server::new("counts", "1").prompt(prompt).build().unwrap()
    };
    for (wire, revision) in everywhere() {
        for (count, given, more) in [(0, 0, false), (100, 100, false), (101, 100, true)] {
            let mut client = speaking(local(wire, server(count)).await, revision, json!({})).await;
            let completion = completed(&mut client, of_prompt("p", "a", "")).await;
            assert_eq!(completion["values"].as_array().unwrap().len(), given, "{wire:?} {revision}");
            assert_eq!(
                (&completion["total"], &completion["hasMore"]),
                (&json!(count), &json!(more)),
                "{wire:?}"
            );
        }
    }
}
