//! What an author tests in memory: state that handlers share, work that is done once, what a client is asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use dateline::testing::{Client, ClientError};
use dateline::{
    Context, CreateMessage, ElicitForm, Error, Messages, Question, Resource, Result, Revision, Server, State,
    Tool,
};
use serde_json::{Value, json};

use super::{House, accept, converse, everything, text, with_forms};

/// Books in two rounds: what it reserves before the first question is reserved once.
async fn book(cx: Context, reserved: State<AtomicU32>) -> Result<String> {
    let reserve = async { Ok::<_, Error>(reserved.fetch_add(1, Ordering::Relaxed) + 1) };
    let number = cx.once("reserve", reserve).await?;
    for question in ["sure", "really"] {
        cx.elicit(question, ElicitForm::raw("Sure?", json!({"type": "object", "properties": {}}))).await?;
    }
    Ok(format!("reservation {number}"))
}

/// Fails the first time, and is then asked again.
async fn unsteady(cx: Context, tries: State<AtomicU32>) -> Result<String> {
    let work = || async {
        match tries.fetch_add(1, Ordering::Relaxed) {
            0 => Err(Error::new("not yet")),
            tried => Ok(tried),
        }
    };
    let failed = cx.once("work", work()).await.is_err();
    let tried = cx.once("work", work()).await?;
    Ok(format!("{failed} {tried} {}", cx.once("work", work()).await?))
}

fn books() -> Server {
    Server::new("books", "1")
        .state(AtomicU32::new(0))
        .tool(Tool::new("book", "Books.", book))
        .tool(Tool::new("unsteady", "Tries.", unsteady))
        .tool(Tool::new("lacks", "Takes what is not there.", |_: State<String>| async { "?" }))
        .build()
        .unwrap()
}

#[testkit::test]
async fn what_is_done_once_is_not_done_again_after_a_question() {
    let server = books();
    let house = House::of(&server).await;
    for (number, (wire, revision)) in (1..).zip(with_forms()) {
        let mut client = house.client(wire, revision, everything()).await;
        let params = json!({"name": "book", "arguments": {}});
        let (questions, response) =
            converse(&mut client, "tools/call", params, |_, _| accept(json!({}))).await;
        let what = format!("{wire:?} {revision}");
        assert_eq!((questions.len(), text(&response)), (2, &*format!("reservation {number}")), "{what}");
    }
}

#[testkit::test]
async fn work_that_fails_is_not_remembered() {
    let mut client = Client::new(Revision::LATEST_MODERN).connect(books()).await.unwrap();
    let result = client.call_tool("unsteady", json!({})).await.unwrap();
    assert_eq!(result["content"][0]["text"], "true 1 1");
}

#[testkit::test]
async fn a_state_that_was_not_given_costs_the_call_that_takes_it() {
    for revision in Revision::ALL {
        let mut client = Client::new(revision).connect(books()).await.unwrap();
        let refused = client.call_tool("lacks", json!({})).await.unwrap_err();
        assert!(matches!(refused, ClientError::Refused { code: -32603, .. }), "{revision:?}: {refused}");
        assert!(client.call_tool("unsteady", json!({})).await.is_ok());
    }
}

async fn asks(cx: Context) -> Result<String> {
    let question = CreateMessage::new(Messages::new().user("Hi"), 5).system_prompt("Be short.");
    let said = cx.sample("model", question).await?;
    let roots = cx.list_roots("roots").await?;
    let roots: Vec<(&str, Option<&str>)> = roots.iter().map(|root| (root.uri(), root.name())).collect();
    cx.progress(1.0, None, Some("asked")).await;
    Ok(format!("{} of {} {:?} {roots:?}", said.text(), said.model(), said.stop_reason()))
}

#[testkit::test]
async fn a_client_in_memory_answers_in_the_way_of_every_revision() {
    let server = Server::new("asks", "1")
        .tool(Tool::new("asks", "Asks the model and for roots.", asks))
        .resource(Resource::new("asks://x", "x", || async { "text" }))
        .build()
        .unwrap();
    for revision in Revision::ALL {
        let asked = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&asked);
        let sampled = move |params: &Value| {
            count.fetch_add(1, Ordering::Relaxed);
            assert_eq!(params["systemPrompt"], "Be short.");
            assert_eq!((&params["maxTokens"], &params["messages"][0]["role"]), (&json!(5), &json!("user")));
            let content = json!({"type": "text", "text": "Hello"});
            json!({"role": "assistant", "model": "m", "stopReason": "endTurn", "content": content})
        };
        let client = Client::new(revision)
            .answer(Question::Sample, sampled)
            .answer(Question::ListRoots, |_| json!({"roots": [{"uri": "file:///work", "name": "work"}]}));
        let mut client = client.connect(server.clone()).await.unwrap();
        assert!(client.server()["capabilities"]["tools"].is_object(), "{revision:?}");
        let result = client.call_tool("asks", json!({})).await.unwrap();
        let due = r#"Hello of m Some("endTurn") [("file:///work", Some("work"))]"#;
        assert_eq!((&result["content"][0]["text"], asked.load(Ordering::Relaxed)), (&json!(due), 1));
        let progress = client.notifications();
        assert_eq!(progress.last().map(|notice| &notice["params"]["progress"]), Some(&json!(1.0)));
        assert!(client.notifications().is_empty());
        assert_eq!(client.read_resource("asks://x").await.unwrap()["contents"][0]["text"], "text");
        let mut mute = Client::new(revision).connect(server.clone()).await.unwrap();
        assert!(mute.call_tool("asks", json!({})).await.is_err(), "{revision:?} cannot be asked");
        let wrong = mute.get_prompt("none", json!({})).await;
        assert!(matches!(wrong, Err(ClientError::Refused { .. })));
    }
}
