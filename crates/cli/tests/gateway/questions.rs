//! Questions.

use serde_json::{Value, json};
use testkit::{Client, LATEST_LEGACY, MODERN, Reply, WIRES, Wire};

use super::{ERAS, SIDES, another, cancellations, demos, hold, of, peers, say, scripts, shown, through};

/// A question of the demo: the tool that asks it, its arguments, the question's method, an answer, and what the tool
/// says to that.
type Question = (&'static str, Value, &'static str, Value, &'static str);

fn questions() -> [Question; 3] {
    let form = json!({"action": "accept", "content": {"username": "ann", "email": "a@b.c"}});
    let sampled = json!({"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m"});
    let roots = json!({"roots": [{"uri": "file:///x", "name": "x"}]});
    let said = "User response: action=accept, content={\"username\":\"ann\",\"email\":\"a@b.c\"}";
    [
        ("test_elicitation", json!({"message": "Who?"}), "elicitation/create", form, said),
        ("test_sampling", json!({"prompt": "?"}), "sampling/createMessage", sampled, "LLM response: Paris"),
        ("test_input_required_result_list_roots", json!({}), "roots/list", roots, "1 roots"),
    ]
}

/// What a client can be asked.
fn everything() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}})
}

/// Calls a tool and answers every question in the client's own way; gives the reply and the questions.
async fn answered(
    client: &mut Client,
    tool: &str,
    arguments: &Value,
    answer: impl Fn(&Value) -> Value,
) -> (Reply, Vec<Value>) {
    let (mut asked, mut call) = (Vec::new(), json!({"name": tool, "arguments": arguments}));
    loop {
        let id = client.begin("tools/call", call.clone()).await;
        while client.revision.is_some() {
            let is_question = |m: &Value| m.get("method").is_some() && m.get("id").is_some();
            let is_reply = |m: &Value| m.get("method").is_none() && m["id"] == id;
            let message = client.message("a question or the answer", |m| is_question(m) || is_reply(m)).await;
            if is_reply(&message) {
                let text = message.to_string();
                return (Reply { head: None, message, text, before: Vec::new() }, asked);
            }
            let result = answer(&message);
            let response = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            asked.push(message);
            client.send(&response, &[]).await;
        }
        let reply = client.reply(&id).await;
        if reply.message["result"]["resultType"] != "input_required" {
            return (reply, asked);
        }
        let result = reply.result();
        call["requestState"] = result["requestState"].clone();
        let mut responses = json!({});
        for (key, question) in result["inputRequests"].as_object().into_iter().flatten() {
            responses[key] = answer(question);
            asked.push(question.clone());
        }
        call["inputResponses"] = responses;
    }
}

#[testkit::test]
async fn questions_pass_between_peers_of_all_revisions_in_the_way_of_each() {
    for mut peer in peers(&demos(), everything()).await {
        for side in SIDES {
            for (tool, arguments, method, answer, said) in questions() {
                let label = format!("{} of {side}: {method}", peer.label);
                if method == "elicitation/create" && ["2024-11-05", "2025-03-26"].contains(&peer.revision) {
                    continue;
                }
                let tool = format!("{side}_{tool}");
                let (reply, asked) = answered(&mut peer.client, &tool, &arguments, |_| answer.clone()).await;
                assert!(reply.said().starts_with(said), "{label}: {}", reply.message);
                assert_eq!(asked.len(), 1, "{label}: {asked:?}");
                assert_eq!(asked[0]["method"], method, "{label}");
                assert_eq!(asked[0].get("id").is_some(), peer.revision != MODERN, "{label}");
                let mode = asked[0]["params"].get("mode");
                let modes = [LATEST_LEGACY, MODERN].contains(&peer.revision);
                assert!(modes || mode.is_none(), "{label}: {asked:?}");
            }
        }
    }
}

#[testkit::test]
async fn several_questions_at_once_and_in_turn_are_all_asked_and_answered() {
    let answer = |question: &Value| match question["method"].as_str().unwrap() {
        "roots/list" => json!({"roots": []}),
        "sampling/createMessage" => {
            json!({"role": "assistant", "content": {"type": "text", "text": "hello"}, "model": "m"})
        }
        _ if question["params"]["requestedSchema"]["properties"].get("color").is_some() => {
            json!({"action": "decline"})
        }
        _ => json!({"action": "accept", "content": {"name": "ann"}}),
    };
    for mut peer in peers(&demos(), everything()).await {
        if ["2024-11-05", "2025-03-26"].contains(&peer.revision) {
            continue;
        }
        for side in SIDES {
            for (tool, count, said) in [
                ("test_input_required_result_multiple_inputs", 3, "ann: hello (0 roots)"),
                ("test_input_required_result_multi_round", 2, "ann: action=decline"),
            ] {
                let tool = format!("{side}_{tool}");
                let (reply, asked) = answered(&mut peer.client, &tool, &json!({}), answer).await;
                assert_eq!(reply.said(), said, "{} of {side}", peer.label);
                assert_eq!(asked.len(), count, "{} of {side}: {asked:?}", peer.label);
            }
        }
    }
}

#[testkit::test]
async fn a_client_that_declared_nothing_is_asked_nothing_and_the_call_ends() {
    for mut peer in peers(&demos(), json!({})).await {
        for side in SIDES {
            for (tool, arguments, method, _, _) in questions() {
                let label = format!("{} of {side}: {method}", peer.label);
                let tool = format!("{side}_{tool}");
                let (reply, asked) = answered(&mut peer.client, &tool, &arguments, |_| json!({})).await;
                assert!(asked.is_empty(), "{label}: {asked:?}");
                let failed =
                    reply.message.get("error").is_some() || reply.message["result"]["isError"] == true;
                assert!(failed, "{label}: {}", reply.message);
                if peer.revision == MODERN && side == "new" {
                    assert_eq!(reply.code(), -32021, "{label}");
                    let (name, _) = method.split_once('/').unwrap();
                    let needed = &reply.error()["data"]["requiredCapabilities"];
                    assert!(needed.get(name).is_some(), "{label}: {needed}");
                }
            }
        }
    }
}

#[testkit::test]
async fn a_question_is_put_only_where_its_very_mode_was_declared() {
    let elicit = |mode| {
        let params = match mode {
            "form" => {
                json!({"mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}}})
            }
            _ => json!({"mode": "url", "message": "?", "url": "https://example.com/", "elicitationId": "e"}),
        };
        json!({"questions": [{"method": "elicitation/create", "params": params}]})
    };
    let sample = json!({"questions": [{"method": "sampling/createMessage", "params": {
        "messages": [], "maxTokens": 1, "tools": [{"name": "t", "inputSchema": {"type": "object"}}],
    }}]});
    let accept = |asked: &Value| match asked["method"] == "elicitation/create" {
        true => json!({"action": "accept"}),
        false => json!({"role": "assistant", "content": {"type": "text", "text": "t"}, "model": "m"}),
    };
    let gateway = through(Wire::Http, &scripts(), MODERN, json!({})).await;
    for revision in ERAS {
        for side in SIDES {
            for (capabilities, arguments, may) in [
                (json!({"elicitation": {}}), elicit("form"), true),
                (json!({"elicitation": {}}), elicit("url"), false),
                (json!({"elicitation": {"url": {}}}), elicit("url"), true),
                (json!({"elicitation": {"url": {}}}), elicit("form"), false),
                (json!({"sampling": {}}), sample.clone(), false),
                (json!({"sampling": {"tools": {}}}), sample.clone(), true),
                (json!({"roots": {}}), elicit("form"), false),
            ] {
                let label = format!("{revision} of {side}: {capabilities}, {arguments}");
                let mut client = another(&gateway, revision, capabilities).await;
                let (reply, asked) = answered(&mut client, &format!("{side}_ask"), &arguments, accept).await;
                assert_eq!(!asked.is_empty(), may, "{label}: {}", reply.message);
                // A legacy server is told, and can go on; a modern one should not have asked.
                let told = reply.message.get("result").is_some() && reply.said().contains("\"error\"");
                let refused = if side == "old" { told } else { reply.message.get("error").is_some() };
                assert_eq!(refused, !may, "{label}: {}", reply.message);
            }
        }
    }
}

/// A question that any client can be asked that has roots.
fn ask_roots() -> Value {
    json!({"questions": [{"method": "roots/list"}]})
}

#[testkit::test]
async fn a_modern_upstream_gets_its_own_state_back_to_the_byte_on_a_retry_with_an_id_of_its_own() {
    for mut peer in peers(&scripts(), everything()).await {
        // A number in its own form shows that the answer is not written anew; no field that is known can hold one.
        peer.client.unjudged = true;
        let (reply, asked) =
            answered(&mut peer.client, "new_ask", &ask_roots(), |_| json!({"roots": [], "n": 1.0})).await;
        assert_eq!(asked.len(), 1, "{}", peer.label);
        let line = reply.said();
        assert!(line.contains(r#""requestState":"st\u00e9\/\u0041""#), "{}: {line}", peer.label);
        assert!(line.contains(r#""inputResponses":{"q0":{"roots":[],"n":1.0}}"#), "{}: {line}", peer.label);
        let calls = shown(&mut peer.client, "new_seen", json!({"method": "tools/call"})).await;
        let mut ids: Vec<String> = calls.iter().map(|call| call["id"].to_string()).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), calls.len(), "{}: {ids:?}", peer.label);
    }
}

#[testkit::test]
async fn a_modern_upstream_that_wants_to_be_called_again_with_a_state_alone_is() {
    for mut peer in peers(&scripts(), json!({})).await {
        let (reply, asked) =
            answered(&mut peer.client, "new_again", &json!({"rounds": 3}), |_| json!({})).await;
        assert!(asked.is_empty(), "{}", peer.label);
        assert!(reply.said().contains(r#""requestState":"3""#), "{}: {}", peer.label, reply.message);
        assert!(!reply.said().contains("inputResponses\":{\""), "{}: {}", peer.label, reply.message);
    }
}

#[testkit::test]
async fn a_result_of_an_unknown_type_is_an_error_and_one_of_none_is_complete() {
    for mut peer in peers(&scripts(), json!({})).await {
        let future = json!({"result": r#"{"resultType":"future","content":[]}"#});
        let reply = peer.client.call("new_raw", future).await;
        assert!(reply.error()["message"].as_str().unwrap().contains("future"), "{}", reply.message);
        let old = json!({"result": r#"{"content":[{"type":"text","text":"as ever"}]}"#});
        assert_eq!(say(&mut peer.client, "new_raw", old).await, "as ever", "{}", peer.label);
    }
}

#[testkit::test]
async fn a_modern_upstream_that_sends_a_request_is_not_answered() {
    let mut client = through(Wire::Stdio, &scripts(), LATEST_LEGACY, everything()).await;
    let reply = client.call("new_wire_request", json!({})).await;
    assert_eq!(reply.said(), "sent");
    // A whole round trip later it would be there.
    assert_eq!(say(&mut client, "new_seen", json!({"method": "tools/list"})).await.lines().count(), 1);
    assert_eq!(say(&mut client, "new_seen", json!({"method": null})).await, "");
}

#[testkit::test]
async fn a_legacy_client_s_refusal_reaches_a_legacy_upstream() {
    let mut client = through(Wire::Stdio, &scripts(), LATEST_LEGACY, everything()).await;
    let id = client.begin("tools/call", json!({"name": "old_ask", "arguments": ask_roots()})).await;
    let question = client.next("roots/list").await;
    let error = json!({"code": -1, "message": "not for you"});
    client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "error": error}), &[]).await;
    let told: Value = serde_json::from_str(client.reply(&id).await.said()).unwrap();
    assert_eq!(told["error"], error);
}

#[testkit::test]
async fn a_legacy_client_s_refusal_ends_the_call_of_a_modern_upstream() {
    for wire in WIRES {
        let mut client = through(wire, &scripts(), LATEST_LEGACY, everything()).await;
        let id = client.begin("tools/call", json!({"name": "new_ask", "arguments": ask_roots()})).await;
        let question = client.next("roots/list").await;
        let error = json!({"code": -1, "message": "not for you"});
        client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "error": error}), &[]).await;
        let next =
            client.message("the end of the call", |m| m["method"] == "roots/list" || m["id"] == id).await;
        assert!(next.get("error").is_some(), "{wire:?}: it is not asked again: {next}");
    }
}

/// Calls a tool that asks; gives the state that came with the question.
async fn asked_state(client: &mut Client, tool: &str, arguments: &Value) -> String {
    let reply = client.call(tool, arguments.clone()).await;
    assert_eq!(reply.result()["resultType"], "input_required", "{}", reply.message);
    reply.result()["requestState"].as_str().unwrap().to_owned()
}

/// Calls a tool again, with a state and an answer.
async fn retry(client: &mut Client, tool: &str, arguments: &Value, state: &str) -> Reply {
    let answers: Value = ["q0", "q1"].iter().map(|key| (*key, json!({"roots": []}))).collect();
    let call =
        json!({"name": tool, "arguments": arguments, "requestState": state, "inputResponses": answers});
    client.request("tools/call", call).await
}

#[testkit::test]
async fn a_state_that_is_changed_foreign_or_used_up_is_refused_and_does_no_harm() {
    for wire in WIRES {
        let mut client = through(wire, &scripts(), MODERN, everything()).await;
        let mut elsewhere = through(Wire::Http, &scripts(), MODERN, everything()).await;
        for side in SIDES {
            let (tool, arguments) = (format!("{side}_ask"), ask_roots());
            let state = asked_state(&mut client, &tool, &arguments).await;
            let middle = state.len() / 2;
            let other = if state.as_bytes()[middle] == b'A' { "B" } else { "A" };
            let changed = format!("{}{other}{}", &state[..middle], &state[middle + 1..]);
            let foreign = asked_state(&mut elsewhere, &tool, &arguments).await;
            let more = json!({"questions": [{"method": "roots/list"}], "more": true});
            let across = if side == "old" { "new_ask" } else { "old_ask" };
            for (what, tool, arguments, state) in [
                ("changed", &*tool, &arguments, &*changed),
                ("cut", &tool, &arguments, &state[..middle]),
                ("empty", &tool, &arguments, ""),
                ("of another gateway", &tool, &arguments, &foreign),
                ("with other arguments", &tool, &more, &state),
                ("of another upstream", across, &arguments, &state),
            ] {
                let reply = retry(&mut client, tool, arguments, state).await;
                assert_eq!(reply.code(), -32602, "{wire:?} {side}, {what}: {}", reply.message);
            }
            let reply = retry(&mut client, &tool, &arguments, &state).await;
            assert!(reply.said().contains("roots"), "{wire:?} {side}: {}", reply.message);
            if side == "old" {
                let reply = retry(&mut client, &tool, &arguments, &state).await;
                assert_eq!(reply.code(), -32602, "{wire:?}, used up: {}", reply.message);
            }
        }
    }
}

#[testkit::test]
async fn a_client_that_cancels_while_it_is_asked_has_cancelled_the_call_upstream() {
    for wire in WIRES {
        let mut client = through(wire, &scripts(), LATEST_LEGACY, everything()).await;
        let mut arguments = ask_roots();
        arguments["who"] = json!("asked");
        let call = json!({"name": "old_ask", "arguments": arguments});
        client.begin_as(json!("asked"), "tools/call", call).await;
        let question = client.next("roots/list").await;
        client.notify("notifications/cancelled", json!({"requestId": "asked"})).await;
        let taken_back = client.next("notifications/cancelled").await;
        assert_eq!(taken_back["params"]["requestId"], question["id"], "{wire:?}");
        let (cancelled, calls) = cancellations(&mut client, "old").await;
        assert_eq!(cancelled[0]["params"]["requestId"], of(&calls, "asked")["id"], "{wire:?}");
    }
}

#[testkit::test]
async fn a_question_that_may_be_another_client_s_is_put_to_nobody() {
    // The upstream does not say in which of its calls it asks, and only the other client could be asked.
    let mut asker = through(Wire::Http, &scripts(), LATEST_LEGACY, json!({})).await;
    let mut bystander = another(&asker, LATEST_LEGACY, everything()).await;
    hold(&mut bystander, "old", "bystander").await;
    let id = asker.begin("tools/call", json!({"name": "old_ask", "arguments": ask_roots()})).await;
    let told = tokio::select! {
        reply = asker.reply(&id) => reply,
        question = bystander.next("roots/list") => panic!("the other client is asked: {question}"),
    };
    let told: Value = serde_json::from_str(told.said()).unwrap();
    assert!(told.get("error").is_some(), "{told}");
}

#[testkit::test]
async fn over_http_a_question_goes_to_no_client_by_a_guess_and_is_refused_at_once() {
    let mut away = through(Wire::Http, &scripts(), MODERN, json!({"elicitation": {}})).await;
    let question = json!({"method": "elicitation/create", "params": {
        "message": "?", "requestedSchema": {"type": "object", "properties": {}},
    }});
    let call = json!({"name": "old_ask", "arguments": {"questions": [question]}});
    let asked = away.request("tools/call", call.clone()).await;
    assert_eq!(asked.result()["resultType"], "input_required");
    // Nothing says whose the next question is, and the clients may be strangers to each other.
    for revision in ERAS {
        let mut client = another(&away, revision, json!({"elicitation": {}})).await;
        let reply = client.request("tools/call", call.clone()).await;
        assert!(reply.said().contains("several calls are under way"), "{revision}: {}", reply.message);
    }
}
