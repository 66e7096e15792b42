//! Keys of `_meta`: each reserved one goes only to revisions that define it, every other one as it is.

use dateline::{Context, Object, Raw, Server, Tool};
use proto::{Answer, Event, InputRequest, InputRequired, Level};
use serde_json::{Value, json};
use spec::{Capability, Direction, Question, Revision};
use testkit::referee::judge;
use testkit::{Client, LATEST_LEGACY, MODERN};

use super::{everywhere, speaking};
use crate::features::{Custom, answer, local, retry};

const RELATED: &str = "io.modelcontextprotocol/related-task";

/// Keys that nobody reserves, in forms that a reader might change.
const FREE: &str = r#""vendor.example/key":{"n":1.0,"big":9007199254740993,"e":1e2},"traceparent":"00-\u0061","plain":null,"io.modelcontextprotocol.example/x":[ ]"#;

/// A `_meta` with every key that any revision reserves, and free ones.
fn all_keys() -> Object {
    let info = r#"{"name":"x","version":"1"}"#;
    let text = format!(
        r#"{{"_meta":{{"io.modelcontextprotocol/related-task":{{"taskId":"t"}},"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{info},"io.modelcontextprotocol/clientCapabilities":{{}},"io.modelcontextprotocol/logLevel":"debug","io.modelcontextprotocol/serverInfo":{info},"io.modelcontextprotocol/subscriptionId":"s",{FREE}}}}}"#
    );
    Raw::parse(text.into(), 9).unwrap().object().unwrap()
}

/// A service that puts all keys into everything that it says.
fn keyed() -> Custom {
    Custom::new(&[Capability::Tools, Capability::Logging], |request| {
        Box::pin(async move {
            let with = |members: Value| {
                let mut object = Object::of(&members);
                all_keys().into_iter().for_each(|(name, value)| object.set(name, value));
                object
            };
            if request.answers.is_none() {
                request.events.send(Event::Progress(with(json!({"progress": 1})))).await;
                let log = with(json!({"level": "info", "data": "d"}));
                request.events.send(Event::Log(Level::Info, log)).await;
                let ask = InputRequest { question: Question::ListRoots, params: with(json!({})) };
                return Ok(Answer::InputRequired(InputRequired {
                    questions: vec![("q".into(), ask)],
                    state: None,
                }));
            }
            Ok(Answer::Complete(with(json!({"content": []}))))
        })
    })
}

/// Asserts that the free keys stand in a message's text as they were written, and that its reserved ones are those that
/// the revision has there.
fn has_its_keys(text: &str, meta: &Value, revision: &str, reserved: &[&str], what: &str) {
    assert!(text.contains(FREE), "{what}: {text}");
    let mut due: Vec<&str> = reserved.to_vec();
    due.extend((revision == LATEST_LEGACY).then_some(RELATED));
    let mut found: Vec<&str> = meta.as_object().unwrap().keys().map(String::as_str).collect();
    found.retain(|key| key.starts_with("io.modelcontextprotocol/"));
    due.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, due, "{what}: {text}");
}

#[testkit::test]
async fn msg_05_reserved_keys_go_only_to_revisions_that_define_them_and_others_pass() {
    for (wire, revision) in everywhere() {
        let what = format!("{wire:?} {revision}");
        let mut client = speaking(local(wire, keyed()).await, revision, json!({"roots": {}})).await;
        let proper = |message: &Value, answers: Option<&str>| {
            let revision = Revision::parse(revision).unwrap();
            assert_eq!(judge(revision, Direction::ToClient, message, answers), Ok(()), "{what}: {message}");
        };
        let mut meta = json!({"progressToken": "p"});
        if revision == MODERN {
            meta["io.modelcontextprotocol/logLevel"] = json!("debug");
        }
        let params = json!({"name": "any", "arguments": {}, "_meta": meta});
        let id = client.begin("tools/call", params.clone()).await;
        for method in ["notifications/progress", "notifications/message"] {
            let (message, text) = arrived(&mut client, |m| m["method"] == method).await;
            proper(&message, None);
            let listen: &[&str] =
                if revision == MODERN { &["io.modelcontextprotocol/subscriptionId"] } else { &[] };
            has_its_keys(&text, &message["params"]["_meta"], revision, listen, &format!("{what} {method}"));
        }
        let (message, text) = if revision == MODERN {
            let (interim, text) = arrived(&mut client, |m| m["id"] == id).await;
            proper(&interim, Some("tools/call"));
            let question = &interim["result"]["inputRequests"]["q"];
            has_its_keys(&text, &question["params"]["_meta"], revision, &[], &format!("{what}: a question"));
            let again = client.begin("tools/call", retry(&params, &interim["result"])).await;
            arrived(&mut client, |m| m["id"] == again).await
        } else {
            let (question, text) = arrived(&mut client, |m| m["method"] == "roots/list").await;
            proper(&question, None);
            has_its_keys(&text, &question["params"]["_meta"], revision, &[], &format!("{what}: a question"));
            let result = answer("roots/list", &question["params"]);
            client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result}), &[]).await;
            arrived(&mut client, |m| m["id"] == id).await
        };
        proper(&message, Some("tools/call"));
        // Who answers is the edge's to say.
        let own: &[&str] = if revision == MODERN { &["io.modelcontextprotocol/serverInfo"] } else { &[] };
        let meta = &message["result"]["_meta"];
        has_its_keys(&text, meta, revision, own, &format!("{what}: a result"));
        let who = meta.get("io.modelcontextprotocol/serverInfo").map(|info| info["name"].clone());
        assert_eq!(who, (revision == MODERN).then(|| json!("custom")), "{what}");
    }
}

/// Waits for a message; gives its text too.
async fn arrived(client: &mut Client, test: impl Fn(&Value) -> bool) -> (Value, String) {
    let is = |a: &testkit::Arrival| matches!(a, testkit::Arrival::Message(_, m, _) if test(m));
    let testkit::Arrival::Message(_, message, text) = client.wait("a message", is).await else {
        unreachable!()
    };
    (message, text)
}

#[testkit::test]
async fn msg_05_a_handler_gets_every_key_that_is_not_of_one_hop_as_it_was_sent() {
    let show = |cx: Context| async move { cx.params().get("_meta").map_or("none", Raw::as_str).to_owned() };
    let server = || {
        let tool = Tool::new("show", "Shows _meta.", show).input_schema(json!({"type": "object"}));
        Server::new("shows", "1").tool(tool).build().unwrap()
    };
    for (wire, revision) in everywhere() {
        let mut client = speaking(local(wire, server()).await, revision, json!({})).await;
        let keys = client.modern_params(json!({}))["_meta"].to_string();
        let related = format!(r#""{RELATED}":{{"taskId":"t"}}"#);
        let own = r#""io.modelcontextprotocol/logLevel":"debug","progressToken":"p""#;
        let meta = format!("{{{FREE},{own},{related},{}}}", &keys[1..keys.len() - 1]);
        let headers = testkit::modern_headers("tools/call", &client.modern_params(json!({"name": "show"})));
        let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
        let headers = if revision == MODERN { &headers[..] } else { &[] };
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"show","_meta":{meta}}}}}"#
        );
        client.send_text(&call, headers).await;
        let reply = client.reply(&json!(1)).await;
        let said = reply.said();
        assert!(said[1..].starts_with(FREE), "{wire:?} {revision}: {said}");
        let found: Value = serde_json::from_str(said).unwrap();
        for key in keys_of_one_hop() {
            assert_eq!(found.get(key), None, "{wire:?} {revision}: {said}");
        }
        assert_eq!(found[RELATED]["taskId"], "t", "{wire:?} {revision}: {said}");
    }
}

fn keys_of_one_hop() -> [&'static str; 5] {
    [
        "progressToken",
        "io.modelcontextprotocol/protocolVersion",
        "io.modelcontextprotocol/clientInfo",
        "io.modelcontextprotocol/clientCapabilities",
        "io.modelcontextprotocol/logLevel",
    ]
}
