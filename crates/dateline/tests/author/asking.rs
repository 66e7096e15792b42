//! Questions: what is answered, how, and by whom.

use dateline::{Cx, Elicited, Error, Form, Result, Server, Tool, Visit};
use serde_json::{Value, json};
use testkit::{LEGACY, MODERN, WIRES};

use super::{House, accept, asked, call, converse, everything, everywhere, retry, text, with_forms};

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Name {
    #[schemars(length(min = 2, max = 10))]
    name: String,
    #[schemars(range(min = 1, max = 9))]
    count: Option<u32>,
}

fn sampling() -> Value {
    json!({"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}], "maxTokens": 5})
}

fn sampled(text: &str) -> Value {
    json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": text}})
}

fn roots() -> Value {
    json!({"roots": [{"uri": "file:///work", "name": "work"}]})
}

/// Three questions at once.
async fn three(cx: Cx) -> Result<String> {
    let question = sampling();
    let form = Form::<Name>::new("Name?");
    let asked = (cx.elicit("name", form), cx.sample("model", &question), cx.list_roots("roots"));
    let (name, said, roots) = cx.together(asked).await?;
    Ok(format!("{:?} {} {}", name.accepted().map(|filled| filled.name), said.text(), roots.len()))
}

/// One question, whose answer is told as it is.
async fn one(cx: Cx) -> Result<String> {
    Ok(match cx.elicit("name", Form::<Name>::new("Name?")).await? {
        Elicited::Accepted(filled) => format!("{} {:?}", filled.name, filled.count),
        Elicited::Declined => "declined".to_owned(),
        Elicited::Cancelled => "cancelled".to_owned(),
    })
}

/// Asks where that is possible, and has another way where it is not.
async fn perhaps(cx: Cx) -> Result<String> {
    match cx.elicit("name", Form::<Name>::new("Name?")).await {
        Ok(filled) => {
            Ok(format!("asked: {}", filled.accepted().map_or_else(String::new, |filled| filled.name)))
        }
        Err(error) if error.is_unasked() => Ok("nobody to ask".to_owned()),
        Err(error) => Err(error),
    }
}

async fn visit(cx: Cx) -> Result<String> {
    let visit = Visit::new("Log in.", "https://x.example/login", "v1");
    Ok(format!("{:?}", cx.visit("visit", visit).await?))
}

fn asks() -> Server {
    Server::new("asks", "1")
        .tool(Tool::new("three", "Asks three things.", three))
        .tool(Tool::new("one", "Asks one thing.", one))
        .tool(Tool::new("perhaps", "Asks if it can.", perhaps))
        .tool(Tool::new("visit", "Sends the user somewhere.", visit))
        .tool(Tool::new("roots", "Asks for roots.", |cx: Cx| async move {
            Ok::<_, Error>(cx.list_roots("roots").await?.len().to_string())
        }))
        .tool(Tool::new("model", "Asks the model.", |cx: Cx| async move {
            Ok::<_, Error>(cx.sample("model", &sampling()).await?.text())
        }))
        .build()
        .unwrap()
}

#[tokio::test]
async fn mrtr_07_what_is_missing_is_asked_again_and_what_is_unknown_is_ignored() {
    let house = House::of(&asks()).await;
    let params = call("three", json!({}));
    for wire in WIRES {
        let mut client = house.client(wire, MODERN, everything()).await;
        let first = client.request("tools/call", params.clone()).await;
        assert_eq!(asked(first.result()), ["name", "model", "roots"], "{wire:?}: all in one round");
        // Nothing is answered: all is asked again, with a state or without.
        for answers in [json!({}), json!({"nobody": accept(json!({"name": "Eve"}))})] {
            let again = client.request("tools/call", retry(&params, first.result(), answers.clone())).await;
            assert_eq!(
                again.result()["inputRequests"],
                first.result()["inputRequests"],
                "{wire:?} {answers}"
            );
            let mut bare = params.clone();
            bare["inputResponses"] = answers;
            let again = client.request("tools/call", bare).await;
            assert_eq!(again.result()["inputRequests"], first.result()["inputRequests"], "{wire:?}");
        }
        // One after the other is answered, in any order, between answers that nobody wants.
        let answers = json!({"roots": roots(), "none": {"x": 1}, "": {}});
        let second = client.request("tools/call", retry(&params, first.result(), answers)).await;
        assert_eq!(asked(second.result()), ["name", "model"], "{wire:?}: {}", second.message);
        let answers = json!({"name": accept(json!({"name": "Ada"})), "Model": sampled("no")});
        let third = client.request("tools/call", retry(&params, second.result(), answers)).await;
        assert_eq!(asked(third.result()), ["model"], "{wire:?}: {}", third.message);
        let answers = json!({"model": sampled("yes")});
        let last = client.request("tools/call", retry(&params, third.result(), answers)).await;
        assert_eq!(last.said(), r#"Some("Ada") yes 1"#, "{wire:?}: {}", last.message);
        // An answer that comes again replaces the one that was kept.
        let answers = json!({"model": sampled("yes"), "name": accept(json!({"name": "Eve"}))});
        let last = client.request("tools/call", retry(&params, third.result(), answers)).await;
        assert_eq!(last.said(), r#"Some("Eve") yes 1"#, "{wire:?}: {}", last.message);
    }
}

/// Answers of no form that the question has, by the tool that asks it.
fn malformed() -> Vec<(&'static str, &'static str, Vec<Value>)> {
    let content = |content: Value| json!({"role": "assistant", "model": "m", "content": content});
    vec![
        (
            "one",
            "name",
            vec![
                json!({}),
                json!({"action": "maybe"}),
                json!({"action": 1}),
                json!({"content": {"name": "Ada"}}),
                json!({"action": "accept"}),
                accept(json!({})),
                accept(json!([])),
                accept(json!("Ada")),
                accept(json!({"name": 5})),
                accept(json!({"name": "A"})),
                accept(json!({"name": "Ada Lovelace"})),
                accept(json!({"name": "Ada", "count": 10})),
                accept(json!({"name": "Ada", "count": "3"})),
                roots(),
                sampled("Ada"),
            ],
        ),
        (
            "model",
            "model",
            vec![
                json!({}),
                json!({"role": "assistant", "model": "m"}),
                content(json!("text")),
                content(json!(5)),
                content(json!(null)),
                content(json!({})),
                content(json!([{"text": "no type"}])),
                accept(json!({"name": "Ada"})),
                roots(),
            ],
        ),
        (
            "roots",
            "roots",
            vec![
                json!({}),
                json!({"roots": {}}),
                json!({"roots": "file:///work"}),
                json!({"roots": [5]}),
                json!({"roots": ["file:///work"]}),
                json!({"roots": [{"name": "work"}]}),
                accept(json!({"roots": []})),
            ],
        ),
    ]
}

#[tokio::test]
async fn mrtr_07_a_malformed_answer_is_32602() {
    let house = House::of(&asks()).await;
    for wire in WIRES {
        let mut client = house.client(wire, MODERN, everything()).await;
        for (tool, key, mut wrong) in malformed() {
            wrong.extend([json!(5), json!("x"), json!([]), json!(true), json!(null)]);
            let params = call(tool, json!({}));
            let first = client.request("tools/call", params.clone()).await;
            for answer in wrong {
                let sent = retry(&params, first.result(), json!({key: answer}));
                let reply = client.request("tools/call", sent).await;
                assert_eq!(reply.code(), -32602, "{wire:?} {tool} {answer}: {}", reply.message);
                let told = reply.error()["message"].as_str().unwrap();
                assert!(told.contains(key), "{wire:?} {tool} {answer}: it says which: {told}");
            }
        }
        for wrong in [json!([]), json!("x")] {
            let mut params = call("one", json!({}));
            params["inputResponses"] = wrong.clone();
            assert_eq!(client.request("tools/call", params).await.code(), -32602, "{wire:?} {wrong}");
        }
    }
}

#[tokio::test]
async fn mrtr_11_what_a_user_did_is_a_value_and_what_fits_no_form_is_refused() {
    let house = House::of(&asks()).await;
    for (wire, revision) in with_forms() {
        let mut client = house.client(wire, revision, json!({"elicitation": {}})).await;
        for (answer, due) in [
            (accept(json!({"name": "Ada"})), "Ada None"),
            (accept(json!({"name": "Ada", "count": 3})), "Ada Some(3)"),
            (accept(json!({"name": "Ada", "count": 3.0})), "Ada Some(3)"),
            (accept(json!({"name": "Ada", "unasked": "more"})), "Ada None"),
            (json!({"action": "decline"}), "declined"),
            (json!({"action": "cancel"}), "cancelled"),
            // What comes with a no is not looked at.
            (json!({"action": "decline", "content": {"name": "x"}}), "declined"),
        ] {
            let (questions, response) =
                converse(&mut client, "tools/call", call("one", json!({})), |_, _| answer.clone()).await;
            assert_eq!(text(&response), due, "{wire:?} {revision} {answer}");
            assert_eq!(questions.len(), 1, "{wire:?} {revision} {answer}");
        }
        let (_, _, wrong) = malformed().swap_remove(0);
        // That each of them is found is shown with rounds; the edges have one way to the check.
        for wrong in wrong.into_iter().skip(4).step_by(2) {
            let (questions, response) =
                converse(&mut client, "tools/call", call("one", json!({})), |_, _| wrong.clone()).await;
            assert_eq!(response["error"]["code"], -32602, "{wire:?} {revision} {wrong}: {response}");
            assert_eq!(questions.len(), 1, "{wire:?} {revision} {wrong}");
        }
    }
}

#[tokio::test]
async fn several_questions_at_once_reach_a_session_before_any_is_answered() {
    let house = House::of(&asks()).await;
    for (wire, revision) in with_forms().into_iter().filter(|(_, revision)| LEGACY.contains(revision)) {
        let mut client = house.client(wire, revision, everything()).await;
        let id = client.begin("tools/call", call("three", json!({}))).await;
        let mut answers = Vec::new();
        for (method, result) in [
            ("elicitation/create", accept(json!({"name": "Ada"}))),
            ("sampling/createMessage", sampled("yes")),
            ("roots/list", roots()),
        ] {
            let asked = client.next(method).await;
            answers.push(json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}));
        }
        for answer in answers.iter().rev() {
            client.send(answer, &[]).await;
        }
        let reply = client.reply(&id).await;
        assert_eq!(reply.said(), r#"Some("Ada") yes 1"#, "{wire:?} {revision}");
        assert!(reply.before.is_empty(), "{wire:?} {revision}: nothing is asked twice: {:?}", reply.before);
    }
}

#[tokio::test]
async fn where_nobody_can_be_asked_a_handler_has_another_way() {
    let house = House::of(&asks()).await;
    for (wire, revision) in everywhere() {
        for declared in [json!({}), json!({"sampling": {}}), json!({"elicitation": {}})] {
            let can = with_forms().contains(&(wire, revision)) && declared.get("elicitation").is_some();
            let mut client = house.client(wire, revision, declared.clone()).await;
            let answer = |_: &str, _: &Value| accept(json!({"name": "Ada"}));
            let (questions, response) =
                converse(&mut client, "tools/call", call("perhaps", json!({})), answer).await;
            let due = if can { "asked: Ada" } else { "nobody to ask" };
            assert_eq!(text(&response), due, "{wire:?} {revision} {declared}");
            assert_eq!(questions.len(), usize::from(can), "{wire:?} {revision} {declared}");
        }
    }
}

#[tokio::test]
async fn a_user_is_sent_to_a_page_where_the_client_can_open_one() {
    let house = House::of(&asks()).await;
    let url = json!({"elicitation": {"url": {}}});
    for (wire, revision) in with_forms() {
        let mut client = house.client(wire, revision, url.clone()).await;
        let can = revision != "2025-06-18";
        for (action, due) in [("accept", "Accepted(())"), ("decline", "Declined"), ("cancel", "Cancelled")] {
            let answer = |_: &str, _: &Value| json!({"action": action});
            let (questions, response) =
                converse(&mut client, "tools/call", call("visit", json!({})), answer).await;
            if !can {
                assert!(response["error"]["code"].is_i64() && questions.is_empty(), "{wire:?}: {response}");
                continue;
            }
            assert_eq!(text(&response), due, "{wire:?} {revision}");
            let params = &questions[0]["params"];
            assert_eq!(params["url"], "https://x.example/login", "{wire:?} {revision}");
            let id = (revision == "2025-11-25").then(|| json!("v1"));
            assert_eq!(params.get("elicitationId").cloned(), id, "{wire:?} {revision}");
        }
    }
}
