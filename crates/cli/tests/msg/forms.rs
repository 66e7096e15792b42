//! What is sent, in the form of each revision: the closed schemas have nothing against any message, and what a revision
//! has no form for is said in words.

use std::collections::BTreeSet;

use dateline::{
    Content, Context, Level, Messages, Prompt, Resource, ResourceContents, ResourceTemplate, Server, Tool,
    ToolResult, Variables,
};
use serde_json::{Value, json};
use spec::{Direction, Revision};
use testkit::referee::judge;
use testkit::{Arrival, Client, LATEST_LEGACY, LEGACY, MODERN, Wire};

use super::{client, everywhere, speaking};
use crate::features::{answer, everything, local, retry};

/// A client whose every message from the server is held against the closed schema of its revision.
struct Judged {
    client: Client,
    revision: &'static str,
    /// The methods of the notifications and requests that came.
    seen: BTreeSet<String>,
    results: usize,
    errors: usize,
}

impl Judged {
    fn new(client: Client, revision: &'static str) -> Judged {
        Judged { client, revision, seen: BTreeSet::new(), results: 0, errors: 0 }
    }

    fn judge(&mut self, message: &Value, answers: Option<&str>) {
        let revision = Revision::parse(self.revision).unwrap();
        let judged = judge(revision, Direction::ToClient, message, answers);
        assert_eq!(judged, Ok(()), "{} {answers:?}: {message}", self.revision);
        self.seen.extend(message["method"].as_str().map(str::to_owned));
        self.results += usize::from(message.get("result").is_some());
        self.errors += usize::from(message.get("error").is_some());
    }

    /// Sends a request, answers what it asks, and judges all that comes until it is answered.
    async fn ask(&mut self, method: &str, params: &Value) -> Value {
        let mut sent = params.clone();
        loop {
            let id = self.client.begin(method, sent).await;
            let message = loop {
                let any = |a: &Arrival| matches!(a, Arrival::Message(..));
                let Arrival::Message(_, message, _) = self.client.wait("a message", any).await else {
                    unreachable!()
                };
                if message.get("method").is_none() && message["id"] == id {
                    break message;
                }
                self.judge(&message, None);
                if message.get("id").is_some() {
                    let result = answer(message["method"].as_str().unwrap(), &message["params"]);
                    let response = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
                    self.client.send(&response, &[]).await;
                }
            };
            self.judge(&message, Some(method));
            if message["result"]["resultType"] != "input_required" {
                return message;
            }
            sent = retry(params, &message["result"]);
        }
    }

    /// Opens a session, or asks a modern server who it is.
    async fn open(&mut self) {
        let what = self.revision;
        let (opened, method) = if what == MODERN {
            self.client.capabilities = everything();
            (self.client.request("server/discover", json!({})).await, "server/discover")
        } else {
            (self.client.handshake(what, everything()).await, "initialize")
        };
        opened.result();
        self.judge(&opened.message, Some(method));
    }

    /// Asks for every list, and for something of every kind that there is not.
    async fn look_around(&mut self) {
        for list in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
            assert!(self.ask(list, &json!({})).await.get("result").is_some(), "{} {list}", self.revision);
        }
        for (method, params) in [
            ("tools/call", json!({"name": "none"})),
            ("prompts/get", json!({"name": "none"})),
            ("resources/read", json!({"uri": "none:1"})),
            ("logging/setLevel", json!({"level": "loud"})),
            ("no/method", json!({})),
        ] {
            assert!(self.ask(method, &params).await.get("error").is_some(), "{} {method}", self.revision);
        }
    }
}

/// What a call of one of the demo's tools needs.
fn arguments(tool: &str) -> Value {
    match tool {
        "echo" | "test_elicitation" => json!({"message": "hi"}),
        "add" => json!({"a": 1, "b": 2}),
        "countdown" => json!({"from": 2, "intervalMs": 1}),
        "query_region" => json!({"query": "?"}),
        "touch_resource" => json!({"uri": "demo://welcome"}),
        "slow_compute" => json!({"seconds": 0.001}),
        "test_sampling" => json!({"prompt": "?"}),
        "test_custom_header" => json!({"value": "x"}),
        "json_schema_2020_12_tool" => json!({"email": "e"}),
        _ => json!({}),
    }
}

#[testkit::test]
async fn msg_06_nothing_of_the_demo_is_foreign_to_the_peer_s_revision() {
    for (wire, revision) in everywhere() {
        let mut judged = Judged::new(crate::modern(wire).await, revision);
        judged.open().await;
        judged.look_around().await;
        if revision == MODERN {
            let filter = json!({"toolsListChanged": true, "resourceSubscriptions": ["demo://welcome"]});
            judged.client.begin("subscriptions/listen", json!({"notifications": filter})).await;
        } else {
            judged.ask("ping", &json!({})).await;
            judged.ask("logging/setLevel", &json!({"level": "debug"})).await;
            judged.ask("resources/subscribe", &json!({"uri": "demo://welcome"})).await;
            if wire == Wire::Http {
                judged.client.exchange("GET", &[("accept", "text/event-stream")], Vec::new());
            }
        }
        let listed = judged.ask("tools/list", &json!({})).await;
        let tools: Vec<String> = listed["result"]["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect();
        // One of them makes the client come back for its answer.
        for tool in tools.iter().filter(|tool| *tool != "test_reconnection") {
            let mut meta = json!({"progressToken": tool});
            if revision == MODERN {
                meta["io.modelcontextprotocol/logLevel"] = json!("debug");
            }
            judged
                .ask("tools/call", &json!({"name": tool, "arguments": arguments(tool), "_meta": meta}))
                .await;
        }
        for prompt in [
            "haiku",
            "test_prompt_with_embedded_resource",
            "test_prompt_with_image",
            "test_input_required_result_prompt",
        ] {
            let arguments = json!({"topic": "rain", "resourceUri": "r:1"});
            judged.ask("prompts/get", &json!({"name": prompt, "arguments": arguments})).await;
        }
        for uri in ["demo://welcome", "test://static-binary", "test://template/1/data"] {
            judged.ask("resources/read", &json!({"uri": uri})).await;
        }
        judged.ask("completion/complete", &crate::era::haiku_topic()).await;
        let mut due = vec![
            "notifications/message",
            "notifications/progress",
            "notifications/tools/list_changed",
            "notifications/resources/updated",
        ];
        if revision == MODERN {
            due.push("notifications/subscriptions/acknowledged");
        } else {
            due.extend(["notifications/prompts/list_changed", "roots/list", "sampling/createMessage"]);
            due.extend((!LEGACY[..2].contains(&revision)).then_some("elicitation/create"));
        }
        let due: BTreeSet<String> = due.into_iter().map(str::to_owned).collect();
        assert_eq!(judged.seen, due, "{wire:?} {revision}: each kind came, and no other");
        assert!(
            judged.results >= tools.len() && judged.errors >= 5,
            "{wire:?} {revision}: {}",
            judged.results
        );
    }
}

/// A tool whose result has content of every kind, with these annotations and this `_meta`.
fn all(notes: Value, meta: Value) -> Tool {
    Tool::new("all", "Gives everything.", move |cx: Context| {
        let (notes, meta) = (notes.clone(), meta.clone());
        async move {
            cx.progress(1.0, Some(2.0), Some("half")).await;
            cx.log(Level::Warning, Some("l"), json!({"n": 1})).await;
            let with = |content: Content| content.with("annotations", &notes).with("_meta", &meta);
            let link = Content::link("r:1", "R").with("title", json!("The R")).with("size", json!(3));
            let link = link
                .with("icons", json!([{"src": "https://x.example/i.png"}]))
                .with("mimeType", json!("text/plain"));
            ToolResult::new([
                with(Content::text("text")),
                with(Content::image([1, 2, 3], "image/png")),
                with(Content::audio([1, 2, 3], "audio/wav")),
                with(link),
                with(Content::resource(ResourceContents::text("r:1", "text/plain", "one"))),
            ])
            .meta(&meta)
        }
    })
}

/// A server that offers everything that any revision has.
fn rich() -> Server {
    let icons = json!([{"src": "https://x.example/i.png", "mimeType": "image/png", "sizes": ["any"], "theme": "dark"}]);
    let meta = json!({"x.example/level": 1});
    let notes = json!({"audience": ["user"], "priority": 0.5, "lastModified": "2025-01-12T15:00:58Z"});
    let hints = json!({"title": "T", "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false});
    let sum = || async { ToolResult::structured(&json!({"sum": 3})) };
    let array = || async { ToolResult::structured(&json!([1, 2])) };
    let prompt = || async {
        let audio = Content::audio([1, 2, 3], "audio/wav");
        Messages::new().user(audio).assistant(Content::link("r:1", "R")).user("said")
    };
    let template = ResourceTemplate::new("t:{id}", "T", |vars: Variables| async move {
        ResourceContents::blob(&vars.uri, "image/png", [1, 2, 3])
    });
    Server::new("rich", "1")
        .title("The rich one")
        .identity("description", "Has everything.")
        .identity("websiteUrl", "https://x.example")
        .identity("icons", icons.clone())
        .instructions("Ask for anything.")
        .tool(
            all(notes.clone(), meta.clone())
                .input_schema(json!({"type": "object"}))
                .with("title", "The tool")
                .with("annotations", &hints)
                .with("execution", json!({"taskSupport": "forbidden"}))
                .with("icons", &icons)
                .with("_meta", &meta),
        )
        .tool(
            Tool::new("sum", "An object.", sum)
                .output_schema(json!({"type": "object", "properties": {"sum": {"type": "number"}}})),
        )
        .tool(
            Tool::new("array", "An array.", array)
                .output_schema(json!({"type": "array", "items": {"type": "number"}})),
        )
        .prompt(
            Prompt::new("p", "P.", prompt)
                .argument("a", "A.", false)
                .choices("a", ["x"])
                .with("title", "The prompt")
                .with("icons", icons.clone())
                .with("_meta", meta.clone()),
        )
        .resource(
            Resource::fixed("R", ResourceContents::text("r:1", "text/plain", "one"))
                .with("title", "The resource")
                .with("size", 3)
                .with("annotations", notes.clone())
                .with("icons", icons.clone())
                .with("_meta", meta.clone()),
        )
        .template(
            template
                .with("title", "The template")
                .with("annotations", notes)
                .with("icons", icons)
                .with("_meta", meta),
        )
        .build()
        .unwrap()
}

#[testkit::test]
async fn msg_06_what_a_revision_lacks_of_what_is_offered_is_left_out_and_the_rest_is_there() {
    for (wire, revision) in everywhere() {
        let at = LEGACY.iter().position(|r| *r == revision).unwrap_or(4);
        let mut judged = Judged::new(local(wire, rich()).await, revision);
        judged.open().await;
        judged.look_around().await;
        let meta = match revision {
            MODERN => json!({"progressToken": 1, "io.modelcontextprotocol/logLevel": "debug"}),
            _ => json!({"progressToken": 1}),
        };
        for tool in ["all", "sum", "array"] {
            let called =
                judged.ask("tools/call", &json!({"name": tool, "arguments": {}, "_meta": meta})).await;
            let structured = called["result"].get("structuredContent").is_some();
            let due = match tool {
                "all" => false,
                "sum" => at >= 2,
                _ => revision == MODERN,
            };
            assert_eq!(structured, due, "{wire:?} {revision} {tool}: {called}");
        }
        assert!(
            judged.seen.contains("notifications/progress") && judged.seen.contains("notifications/message")
        );
        for uri in ["r:1", "t:1"] {
            judged.ask("resources/read", &json!({"uri": uri})).await;
        }
        judged.ask("prompts/get", &json!({"name": "p"})).await;
        // Nothing is left out that the revision has.
        for (method, list, since) in [
            ("tools/list", "tools", [("annotations", 1), ("title", 2), ("_meta", 2), ("icons", 3)]),
            ("prompts/list", "prompts", [("arguments", 0), ("title", 2), ("_meta", 2), ("icons", 3)]),
            ("resources/list", "resources", [("size", 0), ("title", 2), ("_meta", 2), ("icons", 3)]),
            (
                "resources/templates/list",
                "resourceTemplates",
                [("annotations", 0), ("title", 2), ("_meta", 2), ("icons", 3)],
            ),
        ] {
            let listed = judged.ask(method, &json!({})).await;
            for (field, since) in since {
                let has = listed["result"][list][0].get(field).is_some();
                assert_eq!(has, at >= since, "{wire:?} {revision} {list} {field}: {listed}");
            }
        }
        let listed = judged.ask("tools/list", &json!({})).await;
        let tools = &listed["result"]["tools"];
        let has = |tool: usize, field: &str| tools[tool].get(field).is_some();
        assert_eq!(has(0, "execution"), revision == LATEST_LEGACY, "{wire:?} {revision}");
        assert_eq!(
            (has(1, "outputSchema"), has(2, "outputSchema")),
            (at >= 2, revision == MODERN),
            "{wire:?} {revision}"
        );
    }
}

/// The contents of a tool's and a prompt's answer.
fn blocks() -> [Content; 4] {
    [
        Content::text("before"),
        Content::audio(b"sound!", "audio/ogg"),
        Content::link("file:///a.txt", "a").with("title", json!("The file")),
        Content::link("file:///b.txt", "b").with("mimeType", json!("text/plain")),
    ]
}

#[testkit::test]
async fn msg_07_content_that_a_revision_lacks_is_named_in_text() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let server = || {
        let tool = Tool::new("all", "All.", || async { ToolResult::new(blocks()) });
        let prompt = Prompt::new("all", "All.", || async {
            blocks().into_iter().fold(Messages::new(), Messages::user)
        });
        Server::new("blocks", "1").tool(tool).prompt(prompt).build().unwrap()
    };
    for (wire, revision) in everywhere() {
        let at = LEGACY.iter().position(|r| *r == revision).unwrap_or(4);
        let audio = if at == 0 {
            text("[audio audio/ogg, about 6 bytes]")
        } else {
            json!({"type": "audio", "data": "c291bmQh", "mimeType": "audio/ogg"})
        };
        let (one, other) = if at < 2 {
            (text("[resource The file: file:///a.txt]"), text("[resource b: file:///b.txt]"))
        } else {
            let link = |uri: &str, name: &str| json!({"type": "resource_link", "uri": uri, "name": name});
            let (mut one, mut other) = (link("file:///a.txt", "a"), link("file:///b.txt", "b"));
            one["title"] = json!("The file");
            other["mimeType"] = json!("text/plain");
            (one, other)
        };
        let due = [text("before"), audio, one, other];
        let mut client = speaking(local(wire, server()).await, revision, json!({})).await;
        let reply = client.call("all", json!({})).await;
        assert_eq!(reply.result()["content"], json!(due), "{wire:?} {revision}");
        let reply = client.request("prompts/get", json!({"name": "all"})).await;
        let messages = due.map(|content| json!({"role": "user", "content": content}));
        assert_eq!(reply.result()["messages"], json!(messages), "{wire:?} {revision}");
    }
    // The demo's sound is no exception.
    for (wire, revision) in everywhere() {
        let mut client = client(wire, revision, json!({})).await;
        let kind = client.call("test_audio_content", json!({})).await.result()["content"][0]["type"].clone();
        assert_eq!(kind, if revision == LEGACY[0] { "text" } else { "audio" }, "{wire:?} {revision}");
    }
}
