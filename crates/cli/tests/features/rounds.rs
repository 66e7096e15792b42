//! Questions in every round of a modern request.

use dateline::Raw;
use serde_json::{Value, json};
use testkit::{Reply, WIRES};

use super::{asking, asking_requests, check_interim, everything, interim, local, may_be_asked, retry};
use crate::modern;

fn is_interim(reply: &Reply) -> bool {
    reply.message["result"]["resultType"] == "input_required"
}

#[testkit::test]
async fn mrtr_01_only_calls_prompts_and_reads_are_answered_by_questions() {
    for wire in WIRES {
        // The demo asks in two of them. No other method does, also if it is given answers and a state.
        let mut client = modern(wire).await;
        client.capabilities = everything();
        for (method, params) in asking_requests() {
            assert!(is_interim(&client.request(method, params.clone()).await), "{wire:?} {method} {params}");
        }
        let reference = json!({"type": "ref/prompt", "name": "haiku"});
        let complete = json!({"ref": reference, "argument": {"name": "topic", "value": "r"}});
        for (method, mut params) in [
            ("server/discover", json!({})),
            ("tools/list", json!({})),
            ("prompts/list", json!({})),
            ("resources/list", json!({})),
            ("resources/templates/list", json!({})),
            ("completion/complete", complete.clone()),
        ] {
            params["inputResponses"] = json!({"q": {"action": "accept", "content": {}}});
            params["requestState"] = json!("state");
            let reply = client.request(method, params).await;
            assert_eq!(reply.result()["resultType"], "complete", "{wire:?} {method}");
        }
        // A service that asks before everything is let through in three of them.
        let mut client = local(wire, asking()).await;
        client.capabilities = everything();
        for (method, params, may_ask) in [
            ("tools/call", json!({"name": "form"}), true),
            ("prompts/get", json!({"name": "form"}), true),
            ("resources/read", json!({"uri": "demo://asks"}), true),
            ("tools/list", json!({}), false),
            ("prompts/list", json!({}), false),
            ("resources/list", json!({}), false),
            ("resources/templates/list", json!({}), false),
            ("completion/complete", complete, false),
        ] {
            let reply = client.request(method, params).await;
            if may_ask {
                check_interim(reply.result(), &client.capabilities, method);
                assert!(reply.status().is_none_or(|status| status == 200));
            } else {
                assert_eq!(reply.code(), -32603, "{wire:?} {method}");
            }
        }
    }
}

#[testkit::test]
async fn mrtr_02_only_what_this_very_request_declared_is_asked_in_every_round() {
    let declarations = [
        json!({}),
        json!({"elicitation": {}}),
        json!({"elicitation": {"form": {}}}),
        json!({"elicitation": {"url": {}}}),
        json!({"sampling": {}}),
        json!({"sampling": {"tools": {}, "context": {}}}),
        json!({"roots": {"listChanged": true}}),
        json!({"elicitation": {"form": {}}, "roots": {}}),
        json!({"elicitation": null, "sampling": true, "roots": "yes", "extensions": {"x.example/y": {}}}),
        everything(),
    ];
    for wire in WIRES {
        let mut client = modern(wire).await;
        let (mut first_rounds, mut later_rounds) = (0, 0);
        for (method, params) in asking_requests() {
            for first in &declarations {
                for second in &declarations {
                    client.capabilities = first.clone();
                    let mut sent = params.clone();
                    for round in 0..5 {
                        let reply = client.request(method, sent.clone()).await;
                        let what = format!("{wire:?} {sent} round {round}");
                        if !is_interim(&reply) {
                            let complete = reply.message["result"]["resultType"] == "complete";
                            assert!(complete || reply.code() == -32021, "{what}: {}", reply.message);
                            break;
                        }
                        check_interim(reply.result(), &client.capabilities, &what);
                        *if round == 0 { &mut first_rounds } else { &mut later_rounds } += 1;
                        sent = retry(&params, reply.result());
                        client.capabilities = second.clone();
                        assert!(round < 4, "{what}: it comes to an end");
                    }
                }
            }
        }
        assert!(first_rounds > 100 && later_rounds > 20, "{wire:?}: {first_rounds}, {later_rounds}");
        // Kinds of questions that the demo does not have.
        let mut client = local(wire, asking()).await;
        for kind in ["form", "url", "sampling", "sampling tools", "tool choice", "context", "roots"] {
            let question = interim(kind).questions.remove(0).1;
            let ask = json!({"method": question.question.wire(), "params": Raw::from(question.params).read::<Value>().unwrap()});
            for declared in &declarations {
                client.capabilities = declared.clone();
                let reply = client.call(kind, json!({})).await;
                let what = format!("{wire:?} {kind} {declared}");
                if may_be_asked(declared, &ask) {
                    check_interim(reply.result(), declared, &what);
                } else {
                    assert_eq!(reply.code(), -32021, "{what}: {}", reply.message);
                }
            }
        }
    }
}

#[testkit::test]
async fn mrtr_03_questions_or_a_state_are_there_and_questions_have_no_ids() {
    for wire in WIRES {
        let mut client = modern(wire).await;
        client.capabilities = everything();
        for (method, params) in asking_requests() {
            let (mut sent, mut keys, mut rounds) = (params.clone(), Vec::new(), 0);
            let result = loop {
                let reply = client.request(method, sent.clone()).await;
                if !is_interim(&reply) {
                    break reply;
                }
                rounds += 1;
                check_interim(reply.result(), &everything(), &format!("{wire:?} {sent}"));
                let asked = reply.result()["inputRequests"].as_object().unwrap();
                assert!(!asked.is_empty(), "{wire:?} {sent}");
                for (key, ask) in asked {
                    assert!(!keys.contains(key), "{key} was answered already: {}", reply.message);
                    keys.push(key.clone());
                    let due = match ask["method"].as_str().unwrap() {
                        "elicitation/create" => {
                            ask["params"]["message"].is_string() && ask["params"]["mode"] == "form"
                        }
                        "sampling/createMessage" => {
                            ask["params"]["messages"].is_array() && ask["params"]["maxTokens"].is_number()
                        }
                        "roots/list" => ask["params"].is_object(),
                        _ => false,
                    };
                    assert!(due, "{ask}");
                }
                sent = retry(&params, reply.result());
            };
            assert_eq!(result.result()["resultType"], "complete", "{wire:?} {params}: {}", result.message);
            let due = if params["name"] == "test_input_required_result_multi_round" { 2..=2 } else { 1..=2 };
            assert!(due.contains(&rounds), "{wire:?} {params}: {rounds} rounds");
        }
        let mut client = local(wire, asking()).await;
        client.capabilities = everything();
        // An identifier that 2025-11-25 has is taken off, the rest of the question stays.
        let reply = client.call("url", json!({})).await;
        check_interim(reply.result(), &everything(), "url");
        let due = json!({"mode": "url", "message": "Log in", "url": "https://x.example"});
        assert_eq!(reply.result()["inputRequests"]["q"]["params"], due, "{wire:?}");
        // A state alone is enough; nothing at all is not, and is the server's own fault.
        let reply = client.call("state", json!({})).await;
        check_interim(reply.result(), &json!({}), "state");
        assert_eq!(reply.result()["requestState"], "s", "{wire:?}");
        assert!(reply.result().get("inputRequests").is_none(), "{wire:?}: {}", reply.message);
        assert_eq!(client.call("nothing", json!({})).await.code(), -32603, "{wire:?}");
    }
}

#[testkit::test]
async fn mrtr_06_what_needs_an_undeclared_capability_says_which() {
    let form = json!({"elicitation": {"form": {}}});
    let due = |name: &str| match name {
        "test_missing_capability" | "test_input_required_result_sampling" => json!({"sampling": {}}),
        "test_input_required_result_list_roots" => json!({"roots": {}}),
        _ => form.clone(),
    };
    let check = |reply: &Reply, needed: &Value, what: &str| {
        assert_eq!(reply.code(), -32021, "{what}: {}", reply.message);
        assert_eq!(&reply.error()["data"]["requiredCapabilities"], needed, "{what}: {}", reply.message);
        assert!(reply.error()["message"].is_string(), "{what}");
        assert!(reply.status().is_none_or(|status| status == 400), "{what}: {:?}", reply.status());
    };
    for wire in WIRES {
        let mut client = modern(wire).await;
        for (method, params) in asking_requests() {
            let name = params["name"].as_str().unwrap();
            if name == "test_input_required_result_capabilities" {
                let reply = client.request(method, params).await;
                assert_eq!(reply.result()["resultType"], "complete", "what can go on goes on");
                continue;
            }
            let reply = client.request(method, params.clone()).await;
            check(&reply, &due(name), &format!("{wire:?} {name}"));
        }
        // Another capability does not help; nor does what an earlier request declared.
        client.capabilities = json!({"roots": {}, "elicitation": {"url": {}}});
        let reply = client.call("test_input_required_result_elicitation", json!({})).await;
        check(&reply, &form, "url instead of form");
        let params = json!({"name": "test_input_required_result_multi_round", "arguments": {}});
        client.capabilities = form.clone();
        let asked = client.request("tools/call", params.clone()).await;
        check_interim(asked.result(), &form, "the first round");
        client.capabilities = json!({"sampling": {}});
        let reply = client.request("tools/call", retry(&params, asked.result())).await;
        check(&reply, &form, "the second round");
        client.capabilities = form.clone();
        let reply = client.request("tools/call", retry(&params, asked.result())).await;
        check_interim(reply.result(), &form, "the second round, declared");

        let mut client = local(wire, asking()).await;
        client.capabilities = json!({"sampling": {}, "elicitation": {}});
        for (kind, needed) in [
            ("url", json!({"elicitation": {"url": {}}})),
            ("sampling tools", json!({"sampling": {"tools": {}}})),
            ("tool choice", json!({"sampling": {"tools": {}}})),
            ("roots", json!({"roots": {}})),
        ] {
            let reply = client.call(kind, json!({})).await;
            check(&reply, &needed, &format!("{wire:?} {kind}"));
        }
    }
}
