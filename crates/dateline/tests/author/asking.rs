//! Questions: what is answered, how, and by whom.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use dateline::{Context, ElicitForm, ElicitResult, ElicitUrl, Error, Prompt, Resource, Result, Server, Tool};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
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
async fn three(cx: Context) -> Result<String> {
    let question = sampling();
    let form = ElicitForm::<Name>::new("Name?");
    let asked = (cx.elicit("name", form), cx.sample("model", &question), cx.list_roots("roots"));
    let (name, said, roots) = cx.try_join(asked).await?;
    Ok(format!("{:?} {} {}", name.accepted().map(|filled| filled.name), said.text(), roots.len()))
}

/// One question, whose answer is told as it is.
async fn one(cx: Context) -> Result<String> {
    Ok(match cx.elicit("name", ElicitForm::<Name>::new("Name?")).await? {
        ElicitResult::Accepted(filled) => format!("{} {:?}", filled.name, filled.count),
        ElicitResult::Declined => "declined".to_owned(),
        ElicitResult::Cancelled => "cancelled".to_owned(),
    })
}

/// Asks where that is possible, and has another way where it is not.
async fn perhaps(cx: Context) -> Result<String> {
    match cx.elicit("name", ElicitForm::<Name>::new("Name?")).await {
        Ok(filled) => {
            Ok(format!("asked: {}", filled.accepted().map_or_else(String::new, |filled| filled.name)))
        }
        Err(error) if error.is_unsupported_by_client() => Ok("nobody to ask".to_owned()),
        Err(error) => Err(error),
    }
}

async fn visit(cx: Context) -> Result<String> {
    let visit = ElicitUrl::new("Log in.", "https://x.example/login", "v1");
    Ok(format!("{:?}", cx.elicit_url("visit", visit).await?))
}

fn asks() -> Server {
    Server::new("asks", "1")
        .tool(Tool::new("three", "Asks three things.", three))
        .tool(Tool::new("one", "Asks one thing.", one))
        .tool(Tool::new("perhaps", "Asks if it can.", perhaps))
        .tool(Tool::new("visit", "Sends the user somewhere.", visit))
        .tool(Tool::new("roots", "Asks for roots.", |cx: Context| async move {
            Ok::<_, Error>(cx.list_roots("roots").await?.len().to_string())
        }))
        .tool(Tool::new("model", "Asks the model.", |cx: Context| async move {
            Ok::<_, Error>(cx.sample("model", &sampling()).await?.text())
        }))
        .build()
        .unwrap()
}

#[testkit::test]
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

#[testkit::test]
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
        for wrong in [json!([]), json!("x"), json!(5)] {
            let mut params = call("one", json!({}));
            params["inputResponses"] = wrong.clone();
            assert_eq!(client.request("tools/call", params).await.code(), -32602, "{wire:?} {wrong}");
        }
    }
}

#[testkit::test]
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

#[testkit::test]
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

#[testkit::test]
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

#[testkit::test]
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

/// How often something ran that stands behind a question.
#[derive(Clone, Default)]
struct Steps(Arc<AtomicU32>);

impl Steps {
    fn step(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn take(&self) -> u32 {
        self.0.swap(0, Ordering::SeqCst)
    }
}

async fn name_of(cx: &Context, key: &str) -> Result<String> {
    let filled = cx.elicit(key, ElicitForm::<Name>::new("Name?")).await?.accepted();
    Ok(filled.map_or_else(|| "nobody".to_owned(), |filled| filled.name))
}

/// Handlers that do not pass on what asking gives them, by what they do instead.
fn swallowing(behind: &Steps) -> Server {
    let tool = |name: &str, handler: Run| Tool::new(name, "Does not pass it on.", handler.0);
    /// A handler whose future is in a box, so that all of them have one type.
    struct Run(Box<dyn Fn(Context) -> proto::BoxFuture<'static, Result<String>> + Send + Sync>);
    let with = |work: fn(Context, Steps) -> proto::BoxFuture<'static, Result<String>>| {
        let behind = behind.clone();
        Run(Box::new(move |cx| work(cx, behind.clone())))
    };
    let counted = behind.clone();
    let prompt = move |cx: Context| {
        let behind = counted.clone();
        async move {
            let name = name_of(&cx, "one").await.unwrap_or("default".into());
            behind.step();
            name
        }
    };
    let resource = prompt.clone();
    Server::new("swallows", "1")
        .tool(tool(
            "unwrap_or",
            with(|cx, behind| {
                Box::pin(async move {
                    let name = name_of(&cx, "one").await.unwrap_or("default".into());
                    behind.step();
                    Ok(name)
                })
            }),
        ))
        .tool(tool(
            "ok",
            with(|cx, behind| {
                Box::pin(async move {
                    let name = cx.elicit("one", ElicitForm::<Name>::new("Name?")).await.ok();
                    behind.step();
                    Ok(name.and_then(ElicitResult::accepted).map_or("none".into(), |filled| filled.name))
                })
            }),
        ))
        .tool(tool(
            "another_error",
            with(|cx, behind| {
                Box::pin(async move {
                    let name = name_of(&cx, "one").await.map_err(|_| Error::code(7, "no name"))?;
                    behind.step();
                    Ok(name)
                })
            }),
        ))
        .tool(tool(
            "or_at_once",
            with(|cx, behind| {
                Box::pin(async move {
                    let asked = name_of(&cx, "one");
                    let name = tokio::select! { biased; name = asked => name, () = async {} => Ok("nobody waited".into()) };
                    // What has another way goes it, but the user was asked, and that decides.
                    if name.as_deref().is_ok_and(|name| name == "Ada") {
                        behind.step();
                    }
                    name
                })
            }),
        ))
        .prompt(Prompt::new("prompt", "Does not pass it on.", prompt))
        .resource(Resource::new("swallows://one", "One", resource))
        .build()
        .unwrap()
}

#[testkit::test]
async fn a_question_that_a_handler_swallows_is_asked_and_nothing_behind_it_runs_before() {
    let behind = Steps::default();
    let house = House::of(&swallowing(&behind)).await;
    let tools = ["unwrap_or", "ok", "another_error", "or_at_once"];
    let mut requests: Vec<_> = tools.map(|tool| ("tools/call", call(tool, json!({})))).to_vec();
    requests.push(("prompts/get", json!({"name": "prompt"})));
    requests.push(("resources/read", json!({"uri": "swallows://one"})));
    for (wire, revision) in with_forms() {
        let mut client = house.client(wire, revision, everything()).await;
        for (method, params) in &requests {
            let steps = behind.clone();
            let answer = move |_: &str, _: &Value| {
                assert_eq!(steps.take(), 0, "nothing ran before the answer");
                accept(json!({"name": "Ada"}))
            };
            let (questions, response) = converse(&mut client, method, params.clone(), answer).await;
            let told = format!("{wire:?} {revision} {method} {params}: {response}");
            assert_eq!(questions.len(), 1, "{told}");
            assert!(response["result"].to_string().contains("Ada"), "{told}");
            assert_eq!(behind.take(), 1, "{told}");
        }
    }
}

/// Handlers that ask several things at once, each in a way of its own.
fn at_once() -> Server {
    let both = |name: Result<String>, other: Result<String>| Ok::<_, Error>(format!("{} {}", name?, other?));
    Server::new("at once", "1")
        .tool(Tool::new("join", "Asks two things.", move |cx: Context| async move {
            let (one, other) = tokio::join!(name_of(&cx, "a"), name_of(&cx, "b"));
            both(one, other)
        }))
        .tool(Tool::new("try_join", "Asks two things.", move |cx: Context| async move {
            let (one, other) = tokio::try_join!(name_of(&cx, "a"), name_of(&cx, "b"))?;
            both(Ok(one), Ok(other))
        }))
        .tool(Tool::new("many", "Asks two things.", move |cx: Context| async move {
            let asked = ["a", "b"].map(|key| name_of(&cx, key));
            let names: Vec<_> = asked.into_iter().collect::<FuturesUnordered<_>>().collect().await;
            let [one, other] = names.try_into().map_err(|_| Error::new("two were asked"))?;
            both(one, other)
        }))
        .tool(Tool::new("spawned", "Asks two things.", move |cx: Context| async move {
            let [one, other] = ["a", "b"].map(|key| {
                let cx = cx.clone();
                tokio::spawn(async move { name_of(&cx, key).await.unwrap_or("default".into()) })
            });
            both(Ok(one.await?), Ok(other.await?))
        }))
        .tool(Tool::new("blocking", "Asks two things.", move |cx: Context| async move {
            let wait = |key: &str| tokio::runtime::Handle::current().block_on(name_of(&cx, key));
            let (one, other) = tokio::task::block_in_place(|| (wait("a"), wait("b")));
            both(one, other)
        }))
        .build()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_asked_at_once_goes_out_at_once_however_it_is_waited_for() {
    let house = House::of(&at_once()).await;
    for tool in ["join", "try_join", "many", "spawned", "blocking"] {
        let params = call(tool, json!({}));
        for wire in WIRES {
            let mut client = house.client(wire, MODERN, everything()).await;
            let first = client.request("tools/call", params.clone()).await;
            let mut keys = asked(first.result());
            keys.sort_unstable();
            assert_eq!(keys, ["a", "b"], "{tool} {wire:?}");
            let answers = json!({"a": accept(json!({"name": "Ada"})), "b": accept(json!({"name": "Ada"}))});
            let last = client.request("tools/call", retry(&params, first.result(), answers)).await;
            assert_eq!(last.said(), "Ada Ada", "{tool} {wire:?}: {}", last.message);
        }
        for (wire, revision) in with_forms().into_iter().filter(|(_, of)| LEGACY.contains(of)) {
            let mut client = house.client(wire, revision, everything()).await;
            let id = client.begin("tools/call", params.clone()).await;
            let questions =
                [client.next("elicitation/create").await, client.next("elicitation/create").await];
            for question in questions {
                let result = accept(json!({"name": "Ada"}));
                client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result}), &[]).await;
            }
            let reply = client.reply(&id).await;
            assert_eq!((reply.said(), reply.before.len()), ("Ada Ada", 0), "{tool} {wire:?} {revision}");
        }
    }
}

#[testkit::test]
async fn a_round_ends_at_a_question_but_not_where_no_answer_would_help() {
    let cancelled = Arc::new(tokio::sync::Notify::new());
    let told = Arc::clone(&cancelled);
    let server = Server::new("ends", "1")
        .tool(Tool::new("panics", "Asks and panics.", |cx: Context| async move {
            let _ = tokio::join!(name_of(&cx, "a"), async {
                if true {
                    panic!("on purpose");
                }
            });
        }))
        .tool(Tool::new("lacks", "Asks the user and the model.", |cx: Context| async move {
            let question = sampling();
            let asked = cx.try_join((
                cx.elicit("name", ElicitForm::<Name>::new("Name?")),
                cx.sample("model", &question),
            ));
            Ok::<_, Error>(asked.await?.1.text())
        }))
        .tool(Tool::new("elsewhere", "Has work elsewhere while it asks.", move |cx: Context| {
            let told = Arc::clone(&told);
            async move {
                let token = cx.cancellation().clone();
                tokio::spawn(async move {
                    token.cancelled().await;
                    told.notify_one();
                });
                name_of(&cx, "a").await
            }
        }))
        .build()
        .unwrap();
    let house = House::of(&server).await;
    for (wire, revision) in with_forms() {
        let mut client = house.client(wire, revision, json!({"elicitation": {}})).await;
        let refuse = |_: &str, _: &Value| panic!("nobody is to be asked");
        let lacks = if revision == MODERN { -32021 } else { -32600 };
        for (tool, code) in [("panics", -32603), ("lacks", lacks)] {
            let (_, response) = converse(&mut client, "tools/call", call(tool, json!({})), refuse).await;
            assert_eq!(response["error"]["code"], code, "{tool} {wire:?} {revision}: {response}");
        }
        let answer = |_: &str, _: &Value| accept(json!({"name": "Ada"}));
        let (_, response) = converse(&mut client, "tools/call", call("elsewhere", json!({})), answer).await;
        assert_eq!(text(&response), "Ada", "{wire:?} {revision}");
        let heard = tokio::time::timeout(testkit::PATIENCE, cancelled.notified()).await;
        heard.expect("what the handler started hears that the round is over");
    }
}
