//! Questions to a session, as requests on the stream of its call.

use serde_json::{Value, json};
use spec::{Direction, Revision};
use testkit::referee::judge;
use testkit::{Arrival, Client, Exchange, LATEST_LEGACY, Wire, header};

use super::{answer, asking, asking_requests, conversation, local, several};
use crate::legacy;
use crate::msg::sessions;

/// Waits for a question on the stream of a call; over a pipe that is the pipe.
async fn question(client: &mut Client, exchange: Exchange) -> Value {
    let asked = |m: &Value| m.get("id").is_some() && m.get("method").is_some();
    let own = |a: &Arrival| matches!(a, Arrival::Message(of, m, _) if *of == exchange && asked(m));
    let Arrival::Message(_, message, _) = client.wait("a question", own).await else { unreachable!() };
    message
}

/// Sends the response to a question; over HTTP it is accepted, and that is all.
async fn respond(client: &mut Client, wire: Wire, response: &Value) {
    let exchange = client.send(response, &[]).await;
    if wire == Wire::Http {
        let (head, messages) = client.whole(exchange).await;
        assert_eq!((head.status, messages), (202, Vec::new()), "{response}");
    }
}

/// The answer to a question as a response.
fn answered(question: &Value) -> Value {
    let result = answer(question["method"].as_str().unwrap(), &question["params"]);
    json!({"jsonrpc": "2.0", "id": question["id"], "result": result})
}

/// What a revision's clients can declare.
fn declarable(revision: &str) -> Value {
    match revision {
        "2024-11-05" | "2025-03-26" => json!({"sampling": {}, "roots": {}}),
        _ => json!({"elicitation": {}, "sampling": {}, "roots": {"listChanged": true}}),
    }
}

fn has_elicitation(revision: &str) -> bool {
    declarable(revision).get("elicitation").is_some()
}

/// The demo's requests that ask, with the questions that a client gets and the text that comes of the answers.
fn scripts(revision: &str) -> Vec<(&'static str, &'static str, Vec<&'static str>, &'static str)> {
    let (form, model, roots) = ("elicitation/create", "sampling/createMessage", "roots/list");
    let tool = "tools/call";
    let mut all = vec![
        (tool, "test_missing_capability", vec![model], "Paris"),
        (tool, "test_input_required_result_sampling", vec![model], "Paris"),
        (
            tool,
            "test_input_required_result_list_roots",
            vec![roots],
            r#"1 roots: [{"uri":"file:///work","name":"work"}]"#,
        ),
    ];
    if has_elicitation(revision) {
        all.extend([
            (tool, "test_streaming_elicitation", vec![form], "Hello, my name!"),
            (tool, "test_input_required_result_elicitation", vec![form], "Hello, my name!"),
            (tool, "test_input_required_result_request_state", vec![form], "state-ok"),
            (
                tool,
                "test_input_required_result_multiple_inputs",
                vec![form, model, roots],
                "my name: Paris (1 roots)",
            ),
            (tool, "test_input_required_result_multi_round", vec![form, form], "my name: my color"),
            (tool, "test_input_required_result_capabilities", vec![form, model], "my name; Paris"),
            ("prompts/get", "test_input_required_result_prompt", vec![form], "Use this context: my context"),
        ]);
    }
    all
}

#[testkit::test]
async fn mrtr_10_the_same_handlers_ask_a_session_by_requests_on_the_calls_own_stream() {
    for (wire, revision) in sessions() {
        let (mut client, _) = legacy(wire, revision, declarable(revision)).await;
        let get = (wire == Wire::Http)
            .then(|| client.exchange("GET", &[("accept", "text/event-stream")], Vec::new()));
        let mut ids = Vec::new();
        for (method, name, questions, due) in scripts(revision) {
            let what = format!("{wire:?} {revision} {name}");
            let id = client.id();
            let params = json!({"name": name, "arguments": {}});
            let exchange = client.begin_as(id.clone(), method, params).await;
            for kind in questions {
                let asked = question(&mut client, exchange).await;
                assert_eq!(
                    (&asked["method"], &asked["jsonrpc"]),
                    (&json!(kind), &json!("2.0")),
                    "{what}: {asked}"
                );
                assert!(asked["id"].is_string() || asked["id"].is_i64(), "{what}: {asked}");
                assert!(!ids.contains(&asked["id"]), "{what}: an id of its own: {asked}");
                ids.push(asked["id"].clone());
                check_question(&asked, revision);
                respond(&mut client, wire, &answered(&asked)).await;
            }
            let reply = client.reply(&id).await;
            let text = match method {
                "tools/call" => &reply.result()["content"][0]["text"],
                _ => &reply.result()["messages"][0]["content"]["text"],
            };
            assert_eq!(text, due, "{what}: {}", reply.message);
            assert!(reply.before.is_empty(), "{what}: nothing else was asked: {:?}", reply.before);
            for field in ["resultType", "inputRequests", "requestState", "_meta"] {
                assert!(reply.result().get(field).is_none(), "{what}: {}", reply.message);
            }
            if let Some(head) = &reply.head {
                assert_eq!(head.status, 200, "{what}");
                assert_eq!(header(&head.headers, "content-type"), Some("text/event-stream"), "{what}");
            }
        }
        let strays: Vec<_> =
            client.leftovers().into_iter().filter(|a| matches!(a, Arrival::Message(..))).collect();
        assert!(strays.is_empty(), "{wire:?} {revision} {get:?}: {strays:?}");
    }
}

/// The params of a question, in the form of a revision.
fn check_question(asked: &Value, revision: &str) {
    let params = &asked["params"];
    match asked["method"].as_str().unwrap() {
        "elicitation/create" => {
            assert!(
                params["message"].is_string() && params["requestedSchema"]["type"] == "object",
                "{asked}"
            );
            let mode = params.get("mode").cloned();
            let due = if revision == "2025-06-18" {
                mode.is_none()
            } else {
                mode.is_none_or(|mode| mode == "form")
            };
            assert!(due, "{revision}: {asked}");
        }
        "sampling/createMessage" => {
            assert_eq!(params["maxTokens"], 100, "{revision}: {asked}");
            assert_eq!(params["messages"][0]["role"], "user", "{revision}: {asked}");
            assert_eq!(params["messages"][0]["content"]["type"], "text", "{revision}: {asked}");
        }
        _ => assert!(asked.get("params").is_none_or(|params| *params == json!({})), "{revision}: {asked}"),
    }
    assert!(params.get("elicitationId").is_none(), "{asked}");
}

#[testkit::test]
async fn life_06_a_session_is_never_asked_what_it_did_not_declare() {
    for (wire, revision) in sessions() {
        for declared in [json!({}), json!({"experimental": {}}), json!({"elicitation": {}})] {
            let (mut client, _) = legacy(wire, revision, declared.clone()).await;
            for (method, params) in asking_requests() {
                let name = params["name"].as_str().unwrap().to_owned();
                let form = declared.get("elicitation").is_some() && has_elicitation(revision);
                let goes_on = name == "test_input_required_result_capabilities";
                let asks_form = ![
                    "test_missing_capability",
                    "test_input_required_result_sampling",
                    "test_input_required_result_list_roots",
                ]
                .contains(&name.as_str());
                if form && asks_form {
                    continue;
                }
                let reply = client.request(method, params).await;
                let what = format!("{wire:?} {revision} {declared} {name}");
                assert!(reply.before.is_empty(), "{what}: {:?}", reply.before);
                assert_eq!(reply.message.get("result").is_some(), goes_on, "{what}: {}", reply.message);
                assert!(
                    goes_on || [-32600, -32602, -32603].contains(&reply.code()),
                    "{what}: {}",
                    reply.message
                );
            }
        }
    }
}

#[testkit::test]
async fn questions_of_several_calls_of_a_session_do_not_meet() {
    for (wire, revision) in sessions().into_iter().filter(|(_, revision)| has_elicitation(revision)) {
        let (mut client, _) = legacy(wire, revision, declarable(revision)).await;
        let mut calls = Vec::new();
        for _ in 0..3 {
            let id = client.id();
            let params = json!({"name": "test_input_required_result_multiple_inputs", "arguments": {}});
            let exchange = client.begin_as(id.clone(), "tools/call", params).await;
            let mut asked = Vec::new();
            for _ in 0..3 {
                asked.push(question(&mut client, exchange).await);
            }
            calls.push((id, asked));
        }
        // While they wait, the session goes on; a response to nothing, or a second one, is no answer.
        assert_eq!(client.call("echo", json!({"message": "hi"})).await.said(), "hi", "{wire:?} {revision}");
        for (at, (id, asked)) in calls.iter().enumerate().rev() {
            for question in asked.iter().rev() {
                let stray = json!({"jsonrpc": "2.0", "id": 4_000_000, "result": {}});
                let mut answered = answered(question);
                if question["method"] == "elicitation/create" {
                    answered["result"]["content"] = json!({"name": format!("caller {at}")});
                }
                respond(&mut client, wire, &stray).await;
                respond(&mut client, wire, &answered).await;
                answered["result"] = json!({"action": "decline"});
                respond(&mut client, wire, &answered).await;
            }
            let reply = client.reply(id).await;
            assert_eq!(reply.said(), format!("caller {at}: Paris (1 roots)"), "{wire:?} {revision}");
        }
    }
}

#[testkit::test]
async fn a_session_that_refuses_declines_or_cancels_is_heard() {
    for (wire, revision) in sessions().into_iter().filter(|(_, revision)| has_elicitation(revision)) {
        let (mut client, _) = legacy(wire, revision, declarable(revision)).await;
        let ask = async |client: &mut Client| {
            let id = client.id();
            let params = json!({"name": "test_input_required_result_elicitation", "arguments": {}});
            let exchange = client.begin_as(id.clone(), "tools/call", params).await;
            let asked = question(client, exchange).await;
            (id, exchange, asked["id"].clone())
        };
        for (action, said) in [("decline", "Hello, action=decline!"), ("cancel", "Hello, action=cancel!")] {
            let (id, _, asked) = ask(&mut client).await;
            let answered = json!({"jsonrpc": "2.0", "id": asked, "result": {"action": action}});
            respond(&mut client, wire, &answered).await;
            assert_eq!(client.reply(&id).await.said(), said, "{wire:?} {revision}");
        }
        let (id, _, asked) = ask(&mut client).await;
        let refused =
            json!({"jsonrpc": "2.0", "id": asked, "error": {"code": -1, "message": "the user is asleep"}});
        respond(&mut client, wire, &refused).await;
        let reply = client.reply(&id).await;
        assert_eq!(reply.result()["isError"], true, "{wire:?} {revision}: {}", reply.message);
        assert!(reply.said().contains("the user is asleep"), "{wire:?} {revision}: {}", reply.message);

        // An answer that does not fit ends this call, with an error.
        for wrong in [json!({}), json!({"action": "accept", "content": {"name": 5}}), json!([]), json!(null)]
        {
            let (id, _, asked) = ask(&mut client).await;
            let answered = json!({"jsonrpc": "2.0", "id": asked, "result": wrong});
            respond(&mut client, wire, &answered).await;
            let reply = client.reply(&id).await;
            let failed = reply.message.get("error").is_some() || reply.message["result"]["isError"] == true;
            assert!(failed, "{wire:?} {revision} {wrong}: {}", reply.message);
        }

        // A call that is cancelled while it waits takes its question back, and a late answer is nobody's.
        let (id, exchange, asked) = ask(&mut client).await;
        client.notify("notifications/cancelled", json!({"requestId": id})).await;
        let taken_back =
            client.message("the question is taken back", |m| m["method"] == "notifications/cancelled").await;
        assert_eq!(taken_back["params"]["requestId"], asked, "{wire:?} {revision}");
        let answered = json!({"jsonrpc": "2.0", "id": asked, "result": {"action": "decline"}});
        respond(&mut client, wire, &answered).await;
        assert_eq!(client.call("echo", json!({"message": "hi"})).await.said(), "hi", "{wire:?} {revision}");
        if wire == Wire::Http {
            let (_, messages) = client.whole(exchange).await;
            assert!(messages.iter().all(|m| m["id"] != id), "{revision}: {messages:?}");
        }
        let answers = client
            .leftovers()
            .into_iter()
            .filter(|a| matches!(a, Arrival::Message(_, m, _) if m["id"] == id));
        assert_eq!(answers.count(), 0, "{wire:?} {revision}");
    }
}

/// Whether a session of this revision that declared this may be asked a question of this kind, as the obligations and
/// the pages have it.
fn may_be_asked(revision: &str, declared: &Value, kind: &str) -> bool {
    let has = |part: &str| declared.pointer(part).is_some_and(Value::is_object);
    let newest = revision == LATEST_LEGACY;
    match kind {
        "form" if newest => has("/elicitation") && (has("/elicitation/form") || !has("/elicitation/url")),
        "form" => has("/elicitation") && has_elicitation(revision),
        "url" => newest && has("/elicitation/url"),
        "sampling tools" | "tool choice" => newest && has("/sampling/tools"),
        "context" if newest => has("/sampling/context"),
        "sampling" | "context" => has("/sampling"),
        _ => has("/roots"),
    }
}

/// Calls a tool that asks one thing; gives the question, answered, or none where the call ended without one.
async fn asked_by(client: &mut Client, wire: Wire, tool: &str) -> (Option<Value>, testkit::Reply) {
    let id = client.id();
    let exchange = client.begin_as(id.clone(), "tools/call", json!({"name": tool, "arguments": {}})).await;
    let first = |a: &Arrival| {
        matches!(a, Arrival::Message(of, m, _) if *of == exchange && m.get("id").is_some())
            || matches!(a, Arrival::Message(_, m, _) if m["id"] == id)
    };
    let Arrival::Message(_, first, text) = client.wait("a question or the end", first).await else {
        unreachable!()
    };
    if first.get("method").is_none() {
        return (None, testkit::Reply { head: None, message: first, text, before: Vec::new() });
    }
    let result = match first["method"].as_str().unwrap() {
        "elicitation/create" => json!({"action": "decline"}),
        method => answer(method, &first["params"]),
    };
    respond(client, wire, &json!({"jsonrpc": "2.0", "id": first["id"], "result": result})).await;
    let reply = client.reply(&id).await;
    assert!(reply.before.is_empty(), "{tool}: nothing else comes before the answer: {:?}", reply.before);
    (Some(first), reply)
}

#[testkit::test]
async fn life_06_a_question_is_put_only_where_its_very_part_was_declared() {
    let declarations = [
        json!({}),
        json!({"elicitation": {}}),
        json!({"elicitation": {"form": {}}, "sampling": {"context": {}}}),
        json!({"elicitation": {"url": {}}, "sampling": {}}),
        json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}}),
        json!({"roots": {"listChanged": true}, "sampling": null}),
        json!({"roots": true, "sampling": "yes", "elicitation": [], "experimental": {"sampling": {}}}),
    ];
    let kinds = ["form", "url", "sampling", "sampling tools", "tool choice", "context", "roots"];
    for (wire, revision) in sessions() {
        for declared in &declarations {
            let mut client = local(wire, asking()).await;
            client.handshake(revision, declared.clone()).await.result();
            for kind in kinds {
                let what = format!("{wire:?} {revision} {declared} {kind}");
                let (question, reply) = asked_by(&mut client, wire, kind).await;
                assert_eq!(
                    question.is_some(),
                    may_be_asked(revision, declared, kind),
                    "{what}: {question:?}"
                );
                match question {
                    Some(_) => assert_eq!(reply.result()["content"], json!([]), "{what}"),
                    None => assert_eq!(reply.code(), -32600, "{what}: {}", reply.message),
                }
            }
            let strays = client.leftovers();
            assert!(
                !strays.iter().any(|a| matches!(a, Arrival::Message(..))),
                "{wire:?} {revision}: {strays:?}"
            );
        }
    }
}

/// Asserts that the closed schema of the revision has nothing against a question.
fn is_proper(question: &Value, revision: &str) {
    let judged = judge(Revision::parse(revision).unwrap(), Direction::ToClient, question, None);
    assert_eq!(judged, Ok(()), "{revision}: {question}");
}

/// The fields of the demo's form of choices as they are shown to one that knows no titles and no several values.
fn simple_choices() -> Value {
    let any = |values: &str| {
        let hint = format!("Any of these, with commas between them: {values}");
        json!({"type": "string", "description": hint})
    };
    json!({
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {
            "type": "string",
            "enum": ["value1", "value2", "value3"],
            "enumNames": ["First Option", "Second Option", "Third Option"],
        },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": any("option1, option2, option3"),
        "titledMulti": any("value1, value2, value3"),
    })
}

#[testkit::test]
async fn mrtr_12_forms_are_in_the_peer_s_own_form_and_so_is_what_the_handler_gets() {
    for (wire, revision) in sessions() {
        let what = format!("{wire:?} {revision}");
        let (mut client, _) = legacy(wire, revision, json!({"elicitation": {}})).await;
        if !has_elicitation(revision) {
            let reply = client.call("test_elicitation_sep1330_enums", json!({})).await;
            assert_eq!((reply.code(), reply.before.len()), (-32600, 0), "{what}: {}", reply.message);
            continue;
        }
        let id = client.id();
        let params = json!({"name": "test_elicitation_sep1330_enums", "arguments": {}});
        let exchange = client.begin_as(id.clone(), "tools/call", params).await;
        let asked = question(&mut client, exchange).await;
        is_proper(&asked, revision);
        let newest = revision == LATEST_LEGACY;
        let mode = asked["params"].get("mode").cloned();
        assert_eq!(mode, newest.then(|| json!("form")), "{what}");
        let fields = &asked["params"]["requestedSchema"]["properties"];
        let (several, titled) = if newest {
            assert_eq!(
                fields["titledSingle"]["oneOf"][1],
                json!({"const": "value2", "title": "Second Option"})
            );
            assert_eq!(fields["titledMulti"]["items"]["anyOf"][0]["const"], "value1", "{what}: {fields}");
            (json!(["option1", "option3"]), json!(["value2"]))
        } else {
            assert_eq!(fields, &simple_choices(), "{what}");
            (json!("option1, option3"), json!("value2"))
        };
        let content = json!({"titledSingle": "value3", "untitledMulti": several, "titledMulti": titled});
        let accepted = json!({"action": "accept", "content": content});
        respond(&mut client, wire, &json!({"jsonrpc": "2.0", "id": asked["id"], "result": accepted})).await;
        let given = json!({"titledSingle": "value3", "untitledMulti": ["option1", "option3"], "titledMulti": ["value2"]});
        let said = format!("Elicitation completed: action=accept, content={given}");
        assert_eq!(client.reply(&id).await.said(), said, "{what}");
        // Nothing but a form is meant by an empty object.
        let mut client = local(wire, asking()).await;
        client.handshake(revision, json!({"elicitation": {}})).await.result();
        let (question, reply) = asked_by(&mut client, wire, "url").await;
        assert_eq!((question, reply.code()), (None, -32600), "{what}");
        let (question, _) = asked_by(&mut client, wire, "form").await;
        let question = question.unwrap();
        is_proper(&question, revision);
        assert_eq!(question["params"].get("mode").cloned(), newest.then(|| json!("form")), "{what}");
    }
}

#[testkit::test]
async fn mrtr_12_a_model_s_messages_hold_several_blocks_and_tools_where_they_may() {
    let message = |role: &str, content: Value| json!({"role": role, "content": content});
    let text = |text: &str| json!({"type": "text", "text": text});
    for (wire, revision) in sessions() {
        let newest = revision == LATEST_LEGACY;
        for tools in [false, true] {
            let mut client = local(wire, asking()).await;
            let declared = if tools { json!({"sampling": {"tools": {}}}) } else { json!({"sampling": {}}) };
            client.handshake(revision, declared).await.result();
            let (question, _) = asked_by(&mut client, wire, "several").await;
            let question = question.unwrap();
            is_proper(&question, revision);
            let audio = match revision {
                "2024-11-05" => text("[audio audio/wav, about 3 bytes]"),
                _ => json!({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}),
            };
            let mut due = several();
            if !newest {
                let one = message("user", text("one"));
                due["messages"] = json!([one, message("user", audio), message("assistant", text("two"))]);
            }
            assert_eq!(question["params"], due, "{wire:?} {revision}");

            let (question, reply) = asked_by(&mut client, wire, "conversation").await;
            if newest && tools {
                let question = question.unwrap();
                is_proper(&question, revision);
                assert_eq!(question["params"], conversation(), "{wire:?} {revision}");
            } else {
                assert_eq!((question, reply.code()), (None, -32600), "{wire:?} {revision} {tools}");
            }
        }
    }
}
