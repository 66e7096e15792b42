//! Many servers behind one endpoint: what passes through the gateway, between peers of every revision, and what
//! becomes of upstreams that misbehave.

use std::path::PathBuf;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use testkit::{
    Arrival, Client, LATEST_LEGACY, LEGACY, MODERN, PATIENCE, Program, Reply, WIRES, Wire, modern_headers,
};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

use crate::DATELINE;

/// A server that misbehaves as its flags say; its tools show what arrived.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripted.py");
/// The upstreams of [`demos`] and [`scripts`]: a legacy one and a modern one.
const SIDES: [&str; 2] = ["old", "new"];
/// A revision of each era.
const ERAS: [&str; 2] = [LATEST_LEGACY, MODERN];

/// A configuration in a file that is there as long as this is.
pub(crate) struct Config(PathBuf);

impl Config {
    pub(crate) fn new(servers: &[(&str, Value)]) -> Config {
        let servers: serde_json::Map<String, Value> =
            servers.iter().map(|(name, server)| ((*name).to_owned(), server.clone())).collect();
        Config::text(&json!({"mcpServers": servers}).to_string())
    }

    pub(crate) fn text(text: &str) -> Config {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("dateline-{}-{count}.json", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Config(path)
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Config {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

pub(crate) fn demo(era: &str) -> Value {
    json!({"command": DATELINE, "args": ["demo", "--stdio", "--era", era]})
}

pub(crate) fn scripted(flags: &[&str]) -> Value {
    /// The interpreter itself: what is found by its name may be a slow way to it.
    static PYTHON: LazyLock<String> = LazyLock::new(|| {
        let ask = ["-S", "-c", "import sys; print(sys.executable)"];
        let said = std::process::Command::new("python3").args(ask).output().expect("python3 is installed");
        String::from_utf8(said.stdout).unwrap().trim().to_owned()
    });
    let args = [&["-S", SCRIPT], flags].concat();
    json!({"command": *PYTHON, "args": args})
}

/// A demo of each era.
fn demos() -> [(&'static str, Value); 2] {
    [("old", demo("legacy")), ("new", demo("modern"))]
}

/// A scripted server of each era.
fn scripts() -> [(&'static str, Value); 2] {
    [("old", scripted(&["--name", "old"])), ("new", scripted(&["--name", "new", "--era", "modern"]))]
}

/// A client of a gateway of its own over these servers, once they all run.
async fn through(
    wire: Wire,
    servers: &[(&str, Value)],
    revision: &'static str,
    capabilities: Value,
) -> Client {
    let mut client = through_at_once(wire, servers, revision, capabilities).await;
    settle(&mut client).await;
    client
}

/// The same, without waiting for the servers.
async fn through_at_once(
    wire: Wire,
    servers: &[(&str, Value)],
    revision: &'static str,
    capabilities: Value,
) -> Client {
    let config = Config::new(servers);
    let mut client = match wire {
        Wire::Stdio => Client::pipe(DATELINE, &["stdio", "--config", config.path()]),
        Wire::Http => {
            let args = ["serve", "--config", config.path(), "--listen", "127.0.0.1:0"];
            let program = Program::http(DATELINE, &args).await;
            let mut client = Client::connect(program.url.as_deref().unwrap());
            client.program = Some(program);
            client
        }
    };
    open(&mut client, revision, capabilities).await;
    client
}

/// Waits until no server is starting any more, which under load takes longer than a gateway waits by itself.
async fn settle(client: &mut Client) {
    let mut listening = None;
    loop {
        let reply = client.call("no such tool", json!({})).await;
        let why = reply.error()["message"].as_str().unwrap_or_default();
        match (why.contains("is still starting"), &listening) {
            (false, None) => return,
            (false, Some(watch)) => return unwatch(client, watch).await,
            (true, None) => listening = Some(watch(client, &[]).await),
            (true, Some(_)) => drop(client.next("notifications/tools/list_changed").await),
        }
    }
}

/// Opens a session, or asks a modern server who it is: either shows that it has read its configuration.
async fn open(client: &mut Client, revision: &'static str, capabilities: Value) {
    if revision == MODERN {
        client.capabilities = capabilities;
        client.request("server/discover", json!({})).await.result();
    } else {
        client.handshake(revision, capabilities).await.result();
    }
}

/// One more client of the gateway that this one reaches over HTTP.
async fn another(of: &Client, revision: &'static str, capabilities: Value) -> Client {
    let url = of.program.as_ref().and_then(|program| program.url.as_deref());
    let mut client = Client::connect(url.unwrap());
    open(&mut client, revision, capabilities).await;
    client
}

/// A client, and what to call it where it fails.
struct Peer {
    client: Client,
    label: String,
    revision: &'static str,
}

/// Clients of every revision, of one gateway over HTTP, and one of each era over a pipe.
async fn peers(servers: &[(&str, Value)], capabilities: Value) -> Vec<Peer> {
    let peer = |client, wire, revision| Peer { client, label: format!("{wire:?} {revision}"), revision };
    let first = through(Wire::Http, servers, MODERN, capabilities.clone()).await;
    let mut all = Vec::new();
    for revision in LEGACY {
        all.push(peer(another(&first, revision, capabilities.clone()).await, Wire::Http, revision));
    }
    all.push(peer(first, Wire::Http, MODERN));
    for revision in ERAS {
        let client = through(Wire::Stdio, servers, revision, capabilities.clone()).await;
        all.push(peer(client, Wire::Stdio, revision));
    }
    all
}

/// The names in a list.
async fn listed(client: &mut Client, list: &str, by: &str) -> Vec<String> {
    let method =
        if list == "resourceTemplates" { "resources/templates/list" } else { &format!("{list}/list") };
    let reply = client.request(method, json!({})).await;
    let entries = reply.result()[list].as_array().unwrap();
    entries.iter().map(|entry| entry[by].as_str().unwrap().to_owned()).collect()
}

/// What a scripted server's tool says.
async fn say(client: &mut Client, tool: &str, arguments: Value) -> String {
    client.call(tool, arguments).await.said().to_owned()
}

/// The messages that a scripted server's tool shows.
async fn shown(client: &mut Client, tool: &str, arguments: Value) -> Vec<Value> {
    let text = say(client, tool, arguments).await;
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The call that says whose it is, as an upstream got it.
fn of<'a>(calls: &'a [Value], who: &str) -> &'a Value {
    let call = calls.iter().find(|call| call["params"]["arguments"]["who"] == who);
    call.unwrap_or_else(|| panic!("no call of {who} in {calls:?}"))
}

/// Sends a request whose params are JSON texts: members, and members of `_meta`. Gives the text of the response,
/// which may hold more than the test's own JSON reader takes.
async fn raw(client: &mut Client, method: &str, name: &str, members: &str, meta: &str) -> String {
    let id = client.id();
    let (mut meta, mut headers) = (vec![meta.to_owned()], Vec::new());
    if client.revision.is_none() {
        let params = client.modern_params(json!({"name": name}));
        let keys = params["_meta"].to_string();
        meta.push(keys[1..keys.len() - 1].to_owned());
        headers = modern_headers(method, &params);
    }
    let meta = meta.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(",");
    let params = format!(r#"{{{members}"_meta":{{{meta}}}}}"#);
    let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
    let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
    client.send_text(&text, &headers).await;
    let answers = format!(r#""id":{id},"#);
    let arrival = client.wait("the response", |arrival| match arrival {
        Arrival::Message(_, _, text) | Arrival::Rubbish(_, text) => text.contains(&answers),
        _ => false,
    });
    match arrival.await {
        Arrival::Message(_, _, text) | Arrival::Rubbish(_, text) => text,
        other => panic!("no text: {other:?}"),
    }
}

// Lists and routes.

#[tokio::test]
async fn prox_09_lists_are_merged_in_order_and_names_changed_only_where_they_collide() {
    let servers = [
        ("zeta", scripted(&["--name", "zeta", "--tools", "z2,common,z1", "--slow", "0.4"])),
        ("alpha", scripted(&["--name", "alpha", "--tools", "a1,common", "--era", "modern"])),
        ("demo", json!({"command": DATELINE, "args": ["demo", "--stdio"]})),
    ];
    for mut peer in peers(&servers, json!({})).await {
        let (client, label) = (&mut peer.client, &peer.label);
        for round in 0..2 {
            let tools = listed(client, "tools", "name").await;
            assert_eq!(tools[..5], ["z2", "zeta_common", "z1", "a1", "alpha_common"], "{label} {round}");
            assert!(tools.contains(&"echo".to_owned()) && tools.contains(&"add".to_owned()), "{label}");
            let prompts = listed(client, "prompts", "name").await;
            assert_eq!(prompts[..2], ["zeta_line", "alpha_line"], "{label} {round}");
            assert!(prompts.contains(&"haiku".to_owned()), "{label}");
            let resources = listed(client, "resources", "uri").await;
            let own = ["scripted://zeta/a", "scripted://zeta/b", "scripted://alpha/a", "scripted://alpha/b"];
            assert_eq!(resources[..4], own, "{label} {round}");
            let templates = listed(client, "resourceTemplates", "uriTemplate").await;
            let own = ["scripted://zeta/by/{id}", "scripted://alpha/by/{id}", "test://template/{id}/data"];
            assert_eq!(templates, own, "{label} {round}");
        }
    }
}

#[tokio::test]
async fn of_two_servers_with_one_resource_the_first_one_is_asked_and_it_is_listed_once() {
    let servers = [
        ("first", scripted(&["--name", "same", "--tools", "one"])),
        ("second", scripted(&["--name", "same", "--tools", "two", "--era", "modern"])),
    ];
    let mut client = through(Wire::Http, &servers, MODERN, json!({})).await;
    assert_eq!(listed(&mut client, "resources", "uri").await, ["scripted://same/a", "scripted://same/b"]);
    let read = client.request("resources/read", json!({"uri": "scripted://same/a"})).await;
    let got: Value = serde_json::from_str(read.result()["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(got["params"].get("_meta"), None, "the legacy one, which is the first, got it");
}

#[tokio::test]
async fn prox_09_every_request_reaches_its_owner_whatever_the_two_speak_and_a_rename_is_undone() {
    let mut servers: Vec<(&str, Value)> =
        LEGACY.map(|r| (r, scripted(&["--name", r, "--tools", "x", "--revision", r]))).to_vec();
    servers.push((MODERN, scripted(&["--name", MODERN, "--tools", "x", "--era", "modern"])));
    for mut peer in peers(&servers, json!({})).await {
        for (upstream, _) in &servers {
            let label = format!("{} to {upstream}", peer.label);
            let client = &mut peer.client;
            let named = |name: &str| json!({"name": name, "arguments": {"topic": "t"}});
            let requests = [
                ("tools/call", named(&format!("{upstream}_x")), "/content/0/text"),
                ("prompts/get", named(&format!("{upstream}_line")), "/messages/0/content/text"),
                ("resources/read", json!({"uri": format!("scripted://{upstream}/a")}), "/contents/0/text"),
                ("resources/read", json!({"uri": format!("scripted://{upstream}/by/7")}), "/contents/0/text"),
                (
                    "completion/complete",
                    json!({
                        "ref": {"type": "ref/prompt", "name": format!("{upstream}_line")},
                        "argument": {"name": "topic", "value": "t"},
                    }),
                    "/completion/values/0",
                ),
                (
                    "completion/complete",
                    json!({
                        "ref": {"type": "ref/resource", "uri": format!("scripted://{upstream}/by/{{id}}")},
                        "argument": {"name": "id", "value": "t"},
                    }),
                    "/completion/values/0",
                ),
            ];
            for (method, params, at) in requests {
                let reply = client.request(method, params.clone()).await;
                let line = reply.result().pointer(at).and_then(Value::as_str);
                let line = line.unwrap_or_else(|| panic!("{label}: {}", reply.message));
                let got: Value = serde_json::from_str(line).unwrap();
                assert_eq!(got["method"], method, "{label}");
                let mut wanted = params;
                for name in ["/name", "/ref/name"] {
                    if let Some(Value::String(name)) = wanted.pointer_mut(name) {
                        *name = name.replace(&format!("{upstream}_"), "");
                    }
                }
                let mut sent = got["params"].clone();
                let meta = sent.as_object_mut().unwrap().shift_remove("_meta");
                assert_eq!(sent, wanted, "{label}: {method}");
                let version = meta.map(|meta| meta["io.modelcontextprotocol/protocolVersion"].clone());
                assert_eq!(version, (*upstream == MODERN).then(|| json!(MODERN)), "{label}: {method}");
            }
        }
    }
}

#[tokio::test]
async fn page_04_a_list_in_several_pages_is_walked_to_its_end() {
    // An empty cursor is one too: only its absence ends a list.
    let servers = [
        ("old", scripted(&["--tools", "a,b,c,d,e", "--pages", "p2,,p4"])),
        ("new", scripted(&["--tools", "f,g,h", "--pages", ",x", "--era", "modern"])),
    ];
    for wire in WIRES {
        for revision in ERAS {
            let mut client = through(wire, &servers, revision, json!({})).await;
            let tools = listed(&mut client, "tools", "name").await;
            assert_eq!(tools, ["a", "b", "c", "d", "e", "f", "g", "h"], "{wire:?} {revision}");
        }
    }
}

#[tokio::test]
async fn page_04_a_cursor_that_does_not_advance_ends_that_list_and_nothing_else() {
    let servers = [
        ("stuck", scripted(&["--tools", "a,b,seen", "--pages", "again,again"])),
        ("stuck-too", scripted(&["--tools", "c,d", "--pages", "again,again", "--era", "modern"])),
        ("sound", scripted(&["--name", "sound", "--tools", "sound"])),
    ];
    let mut client = through(Wire::Http, &servers, MODERN, json!({})).await;
    let tools = listed(&mut client, "tools", "name").await;
    assert_eq!(tools.last().map(String::as_str), Some("sound"), "{tools:?}");
    assert!(say(&mut client, "sound", json!({})).await.contains("tools/call"));
    // They end where a page is wanted again and again.
    let reply = client.call("a", json!({})).await;
    assert!(!reply.message.to_string().contains("not running"), "{}", reply.message);
}

// What passes as it is.

/// Members of params with forms of numbers and of white space that a reader might change.
const MEMBERS: &str = concat!(
    r#""arguments":{ "f" : 1.0,"huge":1e400,"big":9007199254740993,"zero":-0.0,"text":"\u00e9\/","#,
    r#""z":1,"a":[ ],"n":null},"vendor":{"x":1.0,"b":[9007199254740993]}"#
);

#[tokio::test]
async fn params_reach_an_upstream_to_the_byte() {
    let servers =
        [("old", scripted(&["--tools", "old"])), ("new", scripted(&["--tools", "new", "--era", "modern"]))];
    for mut peer in peers(&servers, json!({})).await {
        for tool in SIDES {
            let members = format!(r#""name":"{tool}",{MEMBERS},"#);
            let vendor = r#""vendor.example/trace":{"id":9007199254740993,"f":1.0}"#;
            let text = raw(&mut peer.client, "tools/call", tool, &members, vendor).await;
            let response: Value = serde_json::from_str(&text).unwrap();
            let line = response["result"]["content"][0]["text"].as_str().unwrap_or(&text);
            for wanted in [MEMBERS, vendor] {
                assert!(line.contains(wanted), "{} to {tool}: {line}", peer.label);
            }
        }
    }
}

#[tokio::test]
async fn a_result_reaches_a_client_to_the_byte_where_its_revision_has_it() {
    let blocks = r#"[{"type":"text","text":"caf\u00e9\/","vendor":1.0},{"type":"hologram","depth":1e400}]"#;
    let vendor = r#""vendor":{ "big":9007199254740993,"f":1.0}"#;
    let structured = r#""structuredContent":{"n":1e400,"f":1.0}"#;
    let meta = r#""vendor.example/k":1.0"#;
    for mut peer in peers(&scripts(), json!({})).await {
        for side in SIDES {
            let kind = if side == "new" { r#""resultType":"complete","# } else { "" };
            let result = format!(r#"{{{kind}"content":{blocks},{structured},{vendor},"_meta":{{{meta}}}}}"#);
            let tool = format!("{side}_raw");
            let members = format!(r#""name":"{tool}","arguments":{},"#, json!({"result": result}));
            let text = raw(&mut peer.client, "tools/call", &tool, &members, "").await;
            let label = format!("{} from {side}: {text}", peer.label);
            for wanted in
                [vendor, meta, r#""text":"caf\u00e9\/","vendor":1.0"#, r#"{"type":"hologram","depth":1e400}"#]
            {
                assert!(text.contains(wanted), "{label}");
            }
            let has = !["2024-11-05", "2025-03-26"].contains(&peer.revision);
            assert_eq!(text.contains(structured), has, "{label}");
            assert_eq!(text.contains("resultType"), peer.revision == MODERN, "{label}");
        }
    }
}

#[tokio::test]
async fn a_tool_s_definition_reaches_a_client_to_the_byte_where_its_revision_has_it() {
    let schema = r#""inputSchema":{"type":"object", "properties":{"n":{"type":"number","maximum":1e400,"multipleOf":1.0}}}"#;
    let vendor = r#""x-vendor":{ "big":9007199254740993,"f":1.0}"#;
    let execution = r#""execution":{"taskSupport":"optional","vendor":1.0}"#;
    let meta = r#""_meta":{"vendor.example/k":1e400}"#;
    let definition = |name: &str| format!(r#"{{"name":"{name}",{schema},{execution},{vendor},{meta}}}"#);
    let servers = [
        ("old", scripted(&["--tools", "", "--definition", &definition("from-old")])),
        ("new", scripted(&["--tools", "", "--definition", &definition("from-new"), "--era", "modern"])),
    ];
    for mut peer in peers(&servers, json!({})).await {
        let text = raw(&mut peer.client, "tools/list", "", "", "").await;
        let label = format!("{}: {text}", peer.label);
        for wanted in [schema, vendor] {
            assert_eq!(text.matches(wanted).count(), 2, "{label}");
        }
        assert_eq!(text.contains(execution), peer.revision == LATEST_LEGACY, "{label}");
        assert_eq!(text.contains(meta), !["2024-11-05", "2025-03-26"].contains(&peer.revision), "{label}");
        if peer.revision == LATEST_LEGACY {
            assert!(
                text.contains(&definition("from-old")) && text.contains(&definition("from-new")),
                "{label}"
            );
        }
    }
}

// Progress and logging.

#[tokio::test]
async fn progress_passes_with_the_token_of_the_client() {
    let reports = json!([
        r#""progress":1,"total":9007199254740993"#,
        r#""progress":1.5,"message":"half","vendor":{"x":9007199254740993}"#,
    ]);
    for mut peer in peers(&scripts(), json!({})).await {
        for side in SIDES {
            for token in [json!("mine"), json!(7)] {
                let label = format!("{} from {side}", peer.label);
                let call = json!({
                    "name": format!("{side}_progress"), "arguments": {"reports": reports},
                    "_meta": {"progressToken": token},
                });
                let reply = peer.client.request("tools/call", call).await;
                assert_eq!(reply.said(), "reported", "{label}");
                let told = reply.notifications("notifications/progress");
                let params: Vec<Value> = told.iter().map(|message| message["params"].clone()).collect();
                let mut second = json!({
                    "progressToken": token, "progress": 1.5, "message": "half",
                    "vendor": {"x": 9_007_199_254_740_993_u64},
                });
                if peer.revision == "2024-11-05" {
                    second.as_object_mut().unwrap().shift_remove("message");
                }
                let first =
                    json!({"progressToken": token, "progress": 1, "total": 9_007_199_254_740_993_u64});
                assert_eq!(params, [first, second], "{label}");
            }
        }
    }
}

#[tokio::test]
async fn log_messages_pass_where_the_client_wants_them() {
    for mut peer in peers(&demos(), json!({})).await {
        for side in SIDES {
            let client = &mut peer.client;
            let tool = format!("{side}_test_logging_tool");
            for (level, wanted) in [("info", 1), ("error", 0), ("debug", 1)] {
                let mut call = json!({"name": tool, "arguments": {}});
                if peer.revision == MODERN {
                    call["_meta"] = json!({"io.modelcontextprotocol/logLevel": level});
                } else {
                    client.request("logging/setLevel", json!({"level": level})).await.result();
                }
                let reply = client.request("tools/call", call).await;
                let told = reply.notifications("notifications/message");
                let label = format!("{} from {side} at {level}", peer.label);
                assert_eq!(told.len(), wanted, "{label}");
                for message in told {
                    assert_eq!(message["params"]["data"], "A log message", "{label}");
                }
            }
            if peer.revision == MODERN {
                let reply = client.call(&tool, json!({})).await;
                assert!(
                    reply.notifications("notifications/message").is_empty(),
                    "{}: none asked",
                    peer.label
                );
            }
        }
    }
}

#[tokio::test]
async fn a_log_message_passes_as_it_was_sent() {
    let params =
        json!({"level": "notice", "logger": "l", "data": {"big": 9_007_199_254_740_993_u64}, "vendor": 1});
    for mut peer in peers(&scripts(), json!({})).await {
        for side in SIDES {
            let call = json!({
                "name": format!("{side}_log"), "arguments": {"params": params.to_string()},
                "_meta": {"io.modelcontextprotocol/logLevel": "debug"},
            });
            let reply = peer.client.request("tools/call", call).await;
            let told = reply.notifications("notifications/message");
            let told: Vec<&Value> = told.iter().map(|message| &message["params"]).collect();
            assert_eq!(told, [&params], "{} from {side}", peer.label);
        }
    }
}

#[tokio::test]
async fn prox_07_clients_with_the_same_ids_and_tokens_do_not_meet() {
    let mut control = through(Wire::Http, &scripts(), MODERN, json!({})).await;
    for side in SIDES {
        let mut clients = Vec::new();
        for (who, revision) in [("a", MODERN), ("b", LATEST_LEGACY), ("c", MODERN), ("d", "2024-11-05")] {
            let mut client = another(&control, revision, json!({})).await;
            let call = json!({
                "name": format!("{side}_hold"), "arguments": {"who": who}, "_meta": {"progressToken": "t"},
            });
            client.begin_as(json!("same"), "tools/call", call).await;
            clients.push((who, client));
        }
        for (who, client) in &mut clients {
            let told = client.next("notifications/progress").await;
            assert_eq!(told["params"]["progressToken"], "t", "{side} {who}");
        }
        let calls = shown(&mut control, &format!("{side}_seen"), json!({"method": "tools/call"})).await;
        let mut ids: Vec<String> = Vec::new();
        for (who, _) in &clients {
            let call = of(&calls, who);
            assert_ne!(call["id"], "same", "{side} {who}");
            assert_ne!(call["params"]["_meta"]["progressToken"], "t", "{side} {who}");
            ids.extend([call["id"].to_string(), call["params"]["_meta"]["progressToken"].to_string()]);
        }
        let distinct =
            |at: usize| ids.iter().skip(at).step_by(2).collect::<std::collections::HashSet<_>>().len();
        assert_eq!((distinct(0), distinct(1)), (4, 4), "{side}: {ids:?}");
        assert_eq!(say(&mut control, &format!("{side}_release"), json!({})).await, "done");
        for (who, client) in &mut clients {
            let reply = client.reply(&json!("same")).await;
            assert_eq!(reply.said(), "released", "{side} {who}");
            assert!(client.leftovers().iter().all(|a| !matches!(a, Arrival::Message(..))), "{side} {who}");
        }
    }
}

// Cancellation.

/// Starts a call that only its release ends, and waits until it runs.
async fn hold(client: &mut Client, side: &str, who: &str) -> u64 {
    let arguments = json!({"who": who});
    let call =
        json!({"name": format!("{side}_hold"), "arguments": arguments, "_meta": {"progressToken": who}});
    let exchange = client.begin_as(json!(who), "tools/call", call).await;
    let told = client.next("notifications/progress").await;
    assert_eq!(told["params"]["progressToken"], who);
    exchange
}

/// The cancellations that an upstream got, once there is one; and its calls.
async fn cancellations(client: &mut Client, side: &str) -> (Vec<Value>, Vec<Value>) {
    let method = json!({"method": "notifications/cancelled"});
    let cancelled = shown(client, &format!("{side}_await_line"), method).await;
    (cancelled, shown(client, &format!("{side}_seen"), json!({"method": "tools/call"})).await)
}

#[tokio::test]
async fn prox_01_a_cancelled_notification_ends_the_right_call_upstream_by_the_upstream_s_own_id() {
    for (wire, revision) in [
        (Wire::Stdio, MODERN),
        (Wire::Stdio, LATEST_LEGACY),
        (Wire::Stdio, "2024-11-05"),
        (Wire::Http, LATEST_LEGACY),
        (Wire::Http, "2025-03-26"),
    ] {
        let mut client = through(wire, &scripts(), revision, json!({})).await;
        for side in SIDES {
            let label = format!("{wire:?} {revision} to {side}");
            hold(&mut client, side, "kept").await;
            hold(&mut client, side, "given up").await;
            client
                .notify("notifications/cancelled", json!({"requestId": "given up", "reason": "test"}))
                .await;
            let (cancelled, calls) = cancellations(&mut client, side).await;
            assert_eq!(cancelled.len(), 1, "{label}: {cancelled:?}");
            assert_eq!(cancelled[0]["params"]["requestId"], of(&calls, "given up")["id"], "{label}");
            let release = json!({"name": format!("{side}_release"), "arguments": {}});
            let release = client.begin("tools/call", release).await;
            for id in [json!("kept"), release] {
                client.message("the response", |m| m.get("result").is_some() && m["id"] == id).await;
            }
            let rest = client.leftovers();
            let answered =
                rest.iter().any(|a| matches!(a, Arrival::Message(_, m, _) if m["id"] == "given up"));
            assert!(!answered, "{label}: what was cancelled is not answered");
        }
    }
}

#[tokio::test]
async fn prox_01_a_modern_client_that_disconnects_has_cancelled_its_call_and_no_other() {
    let mut control = through(Wire::Http, &scripts(), MODERN, json!({})).await;
    for side in SIDES {
        let mut stays = another(&control, MODERN, json!({})).await;
        let mut leaves = another(&control, MODERN, json!({})).await;
        hold(&mut stays, side, "stays").await;
        let exchange = hold(&mut leaves, side, "leaves").await;
        leaves.disconnect(exchange);
        let (cancelled, calls) = cancellations(&mut control, side).await;
        assert_eq!(cancelled.len(), 1, "{side}: {cancelled:?}");
        assert_eq!(cancelled[0]["params"]["requestId"], of(&calls, "leaves")["id"], "{side}");
        assert_eq!(say(&mut control, &format!("{side}_release"), json!({})).await, "done");
        assert_eq!(stays.reply(&json!("stays")).await.said(), "released", "{side}");
    }
}

#[tokio::test]
async fn a_legacy_client_that_disconnects_has_cancelled_nothing() {
    let mut control = through(Wire::Http, &scripts(), MODERN, json!({})).await;
    for side in SIDES {
        for revision in LEGACY {
            let mut client = another(&control, revision, json!({})).await;
            let away = format!("away {revision}");
            let exchange = hold(&mut client, side, &away).await;
            client.disconnect(exchange);
            // A cancellation that is sent after it arrives; none for the call of the lost connection came before.
            hold(&mut client, side, revision).await;
            client.notify("notifications/cancelled", json!({"requestId": revision})).await;
            let count = 1 + LEGACY.iter().position(|r| *r == revision).unwrap();
            let method = json!({"method": "notifications/cancelled", "count": count});
            let cancelled = shown(&mut control, &format!("{side}_await_line"), method).await;
            let calls = shown(&mut control, &format!("{side}_seen"), json!({"method": "tools/call"})).await;
            assert_eq!(cancelled.len(), count, "{side} {revision}");
            assert_eq!(
                cancelled[count - 1]["params"]["requestId"],
                of(&calls, revision)["id"],
                "{side} {revision}"
            );
        }
    }
}

#[tokio::test]
async fn a_call_that_ended_is_not_cancelled() {
    let mut client = through(Wire::Stdio, &scripts(), LATEST_LEGACY, json!({})).await;
    for side in SIDES {
        let id = client.id();
        client
            .begin_as(id.clone(), "tools/call", json!({"name": format!("{side}_pid"), "arguments": {}}))
            .await;
        client.reply(&id).await.result();
        client.notify("notifications/cancelled", json!({"requestId": id})).await;
        let seen =
            say(&mut client, &format!("{side}_seen"), json!({"method": "notifications/cancelled"})).await;
        assert_eq!(seen, "", "{side}");
    }
}

// Errors.

#[tokio::test]
async fn an_error_passes_with_its_code_its_message_and_its_data() {
    for mut peer in peers(&scripts(), json!({})).await {
        for side in SIDES {
            for code in [12345, -32601, -32602, -32603, -32600] {
                let error = json!({"code": code, "message": "no such luck", "data": {"big": 9_007_199_254_740_993_u64}});
                let reply =
                    peer.client.call(&format!("{side}_fail"), json!({"error": error.to_string()})).await;
                assert_eq!(*reply.error(), error, "{} from {side}", peer.label);
            }
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_none_is_an_error_of_that_call_alone() {
    for mut peer in peers(&scripts(), json!({})).await {
        for side in SIDES {
            for (tool, name, text) in [
                ("raw", "result", "[]"),
                ("raw", "result", "null"),
                ("raw", "result", r#""text""#),
                ("fail", "error", r#""text""#),
                ("fail", "error", "{}"),
                ("fail", "error", r#"{"code":"E_NO","message":["no"]}"#),
            ] {
                let reply = peer.client.call(&format!("{side}_{tool}"), json!({name: text})).await;
                let error = reply.error();
                let label = format!("{} from {side}, {text}: {error}", peer.label);
                assert!(error["code"].is_i64() && error["message"].is_string(), "{label}");
            }
            assert!(say(&mut peer.client, &format!("{side}_line"), json!({})).await.contains("tools/call"));
        }
    }
}

#[tokio::test]
async fn an_error_code_that_a_revision_lacks_does_not_reach_it() {
    for mut peer in peers(&scripts(), json!({})).await {
        for side in SIDES {
            for (code, may) in [
                (-32002, peer.revision != MODERN),
                (-32042, peer.revision == LATEST_LEGACY),
                (-32021, peer.revision == MODERN),
                // They speak of the hop to the upstream.
                (-32020, false),
                (-32022, false),
            ] {
                let error = json!({"code": code, "message": "no such luck"});
                let reply =
                    peer.client.call(&format!("{side}_fail"), json!({"error": error.to_string()})).await;
                let label = format!("{} from {side}: {code}, {}", peer.label, reply.message);
                assert_eq!(reply.error()["message"], "no such luck", "{label}");
                assert_eq!(reply.code() == code, may, "{label}");
                let shown = reply.code();
                assert!(may || [-32603, -32602, -32600].contains(&shown), "{label}");
            }
            let error = json!({"code": -32050, "message": "no such luck"});
            let reply = peer.client.call(&format!("{side}_fail"), json!({"error": error.to_string()})).await;
            assert!(peer.revision != MODERN || reply.code() == -32603, "{}: {}", peer.label, reply.message);
        }
    }
}

#[tokio::test]
async fn an_unknown_resource_has_the_code_of_the_client_s_revision() {
    for mut peer in peers(&scripts(), json!({})).await {
        let wanted = if peer.revision == MODERN { -32602 } else { -32002 };
        for (uri, allowed) in [
            // Nobody's.
            ("nobody://knows", vec![wanted]),
            // The owner says so, in its own way.
            ("scripted://old/by/missing", vec![wanted]),
            // A modern owner's code says less than the older one: it passes as it is, or as what it means.
            ("scripted://new/by/missing", vec![-32602, wanted]),
        ] {
            let reply = peer.client.request("resources/read", json!({"uri": uri})).await;
            let label = format!("{} {uri}: {}", peer.label, reply.message);
            assert!(allowed.contains(&reply.code()), "{label}");
            assert_eq!(reply.error()["data"]["uri"], uri, "{label}");
        }
    }
}

#[tokio::test]
async fn an_unknown_tool_or_prompt_is_an_error_and_reaches_nobody() {
    for mut peer in peers(&scripts(), json!({})).await {
        // Its own name, where only the prefixed ones exist.
        for (method, name) in [("tools/call", "nope"), ("tools/call", "pid"), ("prompts/get", "line")] {
            let reply = peer.client.request(method, json!({"name": name, "arguments": {}})).await;
            assert_eq!(reply.code(), -32602, "{} {method} {name}", peer.label);
            assert!(reply.error()["message"].as_str().unwrap().contains(name), "{}", reply.message);
        }
    }
}

// Questions.

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

#[tokio::test]
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

#[tokio::test]
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

#[tokio::test]
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

#[tokio::test]
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
    let accept = |_: &Value| json!({"action": "accept"});
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

#[tokio::test]
async fn a_modern_upstream_gets_its_own_state_back_to_the_byte_on_a_retry_with_an_id_of_its_own() {
    for mut peer in peers(&scripts(), everything()).await {
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

#[tokio::test]
async fn a_modern_upstream_that_wants_to_be_called_again_with_a_state_alone_is() {
    for mut peer in peers(&scripts(), json!({})).await {
        let (reply, asked) =
            answered(&mut peer.client, "new_again", &json!({"rounds": 3}), |_| json!({})).await;
        assert!(asked.is_empty(), "{}", peer.label);
        assert!(reply.said().contains(r#""requestState":"3""#), "{}: {}", peer.label, reply.message);
        assert!(!reply.said().contains("inputResponses\":{\""), "{}: {}", peer.label, reply.message);
    }
}

#[tokio::test]
async fn a_result_of_an_unknown_type_is_an_error_and_one_of_none_is_complete() {
    for mut peer in peers(&scripts(), json!({})).await {
        let future = json!({"result": r#"{"resultType":"future","content":[]}"#});
        let reply = peer.client.call("new_raw", future).await;
        assert!(reply.error()["message"].as_str().unwrap().contains("future"), "{}", reply.message);
        let old = json!({"result": r#"{"content":[{"type":"text","text":"as ever"}]}"#});
        assert_eq!(say(&mut peer.client, "new_raw", old).await, "as ever", "{}", peer.label);
    }
}

#[tokio::test]
async fn a_modern_upstream_that_sends_a_request_is_not_answered() {
    let mut client = through(Wire::Stdio, &scripts(), LATEST_LEGACY, everything()).await;
    let reply = client.call("new_wire_request", json!({})).await;
    assert_eq!(reply.said(), "sent");
    // A whole round trip later it would be there.
    assert_eq!(say(&mut client, "new_seen", json!({"method": "tools/list"})).await.lines().count(), 1);
    assert_eq!(say(&mut client, "new_seen", json!({"method": null})).await, "");
}

#[tokio::test]
async fn a_legacy_client_s_refusal_reaches_a_legacy_upstream() {
    let mut client = through(Wire::Stdio, &scripts(), LATEST_LEGACY, everything()).await;
    let id = client.begin("tools/call", json!({"name": "old_ask", "arguments": ask_roots()})).await;
    let question = client.next("roots/list").await;
    let error = json!({"code": -1, "message": "not for you"});
    client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "error": error}), &[]).await;
    let told: Value = serde_json::from_str(client.reply(&id).await.said()).unwrap();
    assert_eq!(told["error"], error);
}

#[tokio::test]
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

#[tokio::test]
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

#[tokio::test]
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

#[tokio::test]
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

// Subscriptions and changes.

/// How a client listens.
struct Watch {
    /// The id of a modern listen.
    listen: Option<Value>,
    /// Its exchange, or that of a session's stream.
    exchange: u64,
    uris: Vec<String>,
}

/// Listens as clients of the revision do: to these resources and to the list of tools.
async fn watch(client: &mut Client, uris: &[&str]) -> Watch {
    let mut watch =
        Watch { listen: None, exchange: 0, uris: uris.iter().map(|uri| (*uri).to_owned()).collect() };
    if client.revision.is_none() {
        let filter = json!({"toolsListChanged": true, "resourceSubscriptions": uris});
        let id = client.id();
        let params = json!({"notifications": filter});
        watch.exchange = client.begin_as(id.clone(), "subscriptions/listen", params).await;
        let first = client.next("notifications/subscriptions/acknowledged").await;
        let honoured = &first["params"]["notifications"];
        let watched = honoured.get("resourceSubscriptions").cloned().unwrap_or_else(|| json!([]));
        assert_eq!((&honoured["toolsListChanged"], watched), (&json!(true), json!(uris)));
        watch.listen = Some(id);
        return watch;
    }
    if client.session.is_some() {
        let headers = [("accept", "text/event-stream"), ("content-type", "")];
        watch.exchange = client.exchange("GET", &headers, Vec::new());
    }
    for uri in uris {
        client.request("resources/subscribe", json!({"uri": uri})).await.result();
    }
    watch
}

/// Gives it up in the same way.
async fn unwatch(client: &mut Client, watch: &Watch) {
    match &watch.listen {
        Some(id) if watch.exchange == 0 => {
            client.notify("notifications/cancelled", json!({"requestId": id})).await;
        }
        Some(_) => client.disconnect(watch.exchange),
        None => {
            for uri in &watch.uris {
                client.request("resources/unsubscribe", json!({"uri": uri})).await.result();
            }
            if watch.exchange > 0 {
                client.disconnect(watch.exchange);
            }
        }
    }
}

#[tokio::test]
async fn an_update_of_a_watched_resource_of_either_upstream_reaches_who_watches_it() {
    for mut peer in peers(&scripts(), json!({})).await {
        let uris = ["scripted://old/a", "scripted://new/by/7"];
        let listen = watch(&mut peer.client, &uris).await.listen;
        for (side, uri) in SIDES.into_iter().zip(uris) {
            for below in ["", "/part"] {
                let arguments = json!({"uri": uri, "below": below});
                let tool = json!({"name": format!("{side}_touch"), "arguments": arguments});
                peer.client.begin("tools/call", tool).await;
                let told = peer.client.next("notifications/resources/updated").await;
                let mut wanted = json!({"uri": format!("{uri}{below}")});
                if let Some(id) = &listen {
                    wanted["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": id});
                }
                let mut params = told["params"].clone();
                params.sort_all_objects();
                wanted.sort_all_objects();
                assert_eq!(params, wanted, "{} of {side}", peer.label);
            }
        }
    }
}

#[tokio::test]
async fn what_is_no_longer_watched_is_given_up_upstream() {
    for (wire, revision) in WIRES.into_iter().flat_map(|wire| ERAS.map(|revision| (wire, revision))) {
        let mut client = through(wire, &scripts(), revision, json!({})).await;
        let uris = ["scripted://old/a", "scripted://new/a"];
        let watching = watch(&mut client, &uris).await;
        unwatch(&mut client, &watching).await;
        let given_up = json!({"method": "resources/unsubscribe"});
        let given_up = shown(&mut client, "old_await_line", given_up).await;
        assert_eq!(given_up[0]["params"]["uri"], uris[0], "{wire:?} {revision}");
        let listens = shown(&mut client, "new_seen", json!({"method": "subscriptions/listen"})).await;
        let (cancelled, _) = cancellations(&mut client, "new").await;
        let watch =
            listens.iter().find(|l| l["params"]["notifications"]["resourceSubscriptions"][0] == uris[1]);
        assert_eq!(cancelled[0]["params"]["requestId"], watch.unwrap()["id"], "{wire:?} {revision}");
    }
}

#[tokio::test]
async fn sub_07_a_changed_list_of_an_upstream_is_read_again_and_announced() {
    for mut peer in peers(&scripts(), json!({})).await {
        let client = &mut peer.client;
        listed(client, "tools", "name").await;
        let listen = watch(client, &[]).await.listen;
        for side in SIDES {
            let grown = format!("{side} {}", peer.label).replace([' ', '-'], "_");
            let call = json!({"name": format!("{side}_grow"), "arguments": {"name": grown}});
            client.begin("tools/call", call).await;
            // One may still be under way that tells of the start.
            loop {
                let told = client.next("notifications/tools/list_changed").await;
                if let Some(id) = &listen {
                    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], *id);
                }
                let tools = listed(client, "tools", "name").await;
                if let Some(at) = tools.iter().position(|tool| *tool == grown) {
                    // It stands with those of its upstream.
                    assert!(tools[at - 1].starts_with("old") == (side == "old"), "{}: {tools:?}", peer.label);
                    break;
                }
            }
            assert!(say(client, &grown, json!({})).await.contains(&grown), "{}", peer.label);
        }
    }
}

// Upstreams that misbehave.

/// Asserts that each of these servers offers the tool of its name, and that it works, to clients of both eras.
async fn all_work(servers: &[(&str, Value)]) {
    let mut modern = through(Wire::Http, servers, MODERN, json!({})).await;
    let mut legacy = another(&modern, LATEST_LEGACY, json!({})).await;
    let wanted: Vec<&str> = servers.iter().map(|(name, _)| *name).collect();
    for client in [&mut modern, &mut legacy] {
        assert_eq!(listed(client, "tools", "name").await, wanted);
        for name in &wanted {
            let line = say(client, name, json!({"to": name})).await;
            assert!(line.contains(&format!(r#""arguments":{{"to":"{name}"}}"#)), "{name}: {line}");
        }
    }
}

/// Scripted servers whose one tool has the name of the server.
fn named<'a>(servers: &[(&'a str, &[&str])]) -> Vec<(&'a str, Value)> {
    servers
        .iter()
        .map(|(name, flags)| (*name, scripted(&[&["--tools", name, "--name", name], *flags].concat())))
        .collect()
}

#[tokio::test]
async fn noise_around_messages_is_skipped() {
    let modern = ["--era", "modern"];
    let noises: [(&str, &[&str]); 6] = [
        ("rubbish", &["--rubbish"]),
        ("banner", &["--banner", "Welcome to the server!\nListening on stdio"]),
        ("crlf", &["--crlf"]),
        ("bom", &["--bom"]),
        ("all", &["--bom", "--crlf", "--banner", "{\"level\":30}", "--rubbish"]),
        ("flood", &["--flood", "17000000"]),
    ];
    let mut servers = Vec::new();
    for (name, flags) in noises {
        servers.push((name.to_owned(), flags.to_vec()));
        servers.push((format!("{name}-modern"), [flags, &modern].concat()));
    }
    let servers: Vec<(&str, &[&str])> =
        servers.iter().map(|(name, flags)| (name.as_str(), flags.as_slice())).collect();
    all_work(&named(&servers)).await;
}

#[tokio::test]
async fn prox_08_a_legacy_server_is_found_out_whatever_it_says_to_the_probe() {
    let error = |code: i32, more: Value| {
        let mut error = json!({"code": code, "message": "what is that?"});
        error.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        error.to_string()
    };
    let none = json!({});
    let errors = [
        ("invalid-params", error(-32602, none.clone())),
        ("invalid-request", error(-32600, none.clone())),
        ("method-not-found", error(-32601, none.clone())),
        ("internal", error(-32603, none.clone())),
        ("parse", error(-32700, none.clone())),
        ("own", error(-32000, none.clone())),
        ("positive", error(1, none.clone())),
        ("unsupported", error(-32022, json!({"data": {"supported": ["2025-06-18"], "requested": MODERN}}))),
        ("textual", r#"{"code":"E_NO","message":"no"}"#.to_owned()),
        ("string", r#""no such method""#.to_owned()),
    ];
    let servers: Vec<(&str, Vec<&str>)> =
        errors.iter().map(|(name, error)| (*name, vec!["--discover", error.as_str()])).collect();
    let servers: Vec<(&str, &[&str])> =
        servers.iter().map(|(name, flags)| (*name, flags.as_slice())).collect();
    all_work(&named(&servers)).await;
}

#[tokio::test]
async fn prox_08_a_legacy_server_that_names_its_revisions_in_the_wrong_member_is_found_out() {
    let wrong =
        json!({"code": -32022, "message": "no", "data": {"supportedVersions": ["2025-11-25"]}}).to_string();
    let none = json!({"code": -32022, "message": "no"}).to_string();
    all_work(&named(&[("wrong-member", &["--discover", &wrong]), ("no-data", &["--discover", &none])])).await;
}

#[tokio::test]
async fn prox_08_a_server_that_is_silent_on_the_probe_or_answers_in_plain_text_is_taken_for_a_legacy_one() {
    all_work(&named(&[("silent", &["--discover", "silent"]), ("text", &["--discover", "text"])])).await;
}

#[tokio::test]
async fn a_server_that_ends_at_anything_but_initialize_is_started_again_without_the_probe() {
    all_work(&named(&[("strict", &["--exit-unless-initialize"]), ("other", &[])])).await;
}

#[tokio::test]
async fn prox_13_of_a_server_that_cannot_run_only_its_own_tools_are_missing() {
    let mut servers = named(&[("dead", &["--exit-at-start"]), ("sound", &[])]);
    servers.push(("absent", json!({"command": "/nonexistent/program"})));
    for (wire, revision) in WIRES.into_iter().flat_map(|wire| ERAS.map(|revision| (wire, revision))) {
        let mut client = through_at_once(wire, &servers, revision, json!({})).await;
        assert_eq!(listed(&mut client, "tools", "name").await, ["sound"], "{wire:?} {revision}");
        assert!(say(&mut client, "sound", json!({})).await.contains("sound"), "{wire:?} {revision}");
        let reply = client.call("dead", json!({})).await;
        let message = reply.error()["message"].as_str().unwrap();
        for word in ["dead", "absent"] {
            assert!(message.contains(&format!("the server {word} is not running")), "{message}");
        }
    }
}

#[tokio::test]
async fn prox_13_a_server_that_never_answers_does_not_hold_up_the_others() {
    let servers = named(&[("mute", &["--mute"]), ("sound", &[])]);
    let mut client = through_at_once(Wire::Http, &servers, MODERN, json!({})).await;
    let lists = tokio::time::timeout(PATIENCE / 2, listed(&mut client, "tools", "name"));
    assert_eq!(lists.await.expect("the others are listed in time"), ["sound"]);
    assert!(say(&mut client, "sound", json!({})).await.contains("sound"));
}

#[tokio::test]
async fn an_answer_that_a_server_gives_with_its_last_breath_counts() {
    for wire in WIRES {
        for side in SIDES {
            let mut client = through(wire, &scripts(), MODERN, json!({})).await;
            let said = say(&mut client, &format!("{side}_farewell"), json!({})).await;
            assert_eq!(said, "farewell", "{wire:?} {side}");
        }
    }
}

#[tokio::test]
async fn what_a_server_that_ends_said_on_stderr_is_told_to_whom_it_owes_an_answer() {
    for wire in WIRES {
        for side in SIDES {
            let mut client = through(wire, &scripts(), MODERN, json!({})).await;
            let reply = client.call(&format!("{side}_crash"), json!({})).await;
            let message = reply.error()["message"].as_str().unwrap();
            assert!(message.contains(&format!("the server {side} ended")), "{wire:?}: {message}");
            assert!(message.contains("something went terribly wrong"), "{wire:?}: {message}");
        }
    }
}

async fn signal(name: &str, pid: &str) {
    let status = tokio::process::Command::new("kill").args(["-s", name, pid]).status().await;
    assert!(status.unwrap().success(), "kill -s {name} {pid}");
}

/// Waits until a killed server runs again; gives its new process.
async fn again(client: &mut Client, side: &str, killed: &str) -> String {
    let tool = format!("{side}_pid");
    let waiting = async {
        loop {
            let reply = client.call(&tool, json!({})).await;
            if reply.message.get("result").is_some() && reply.said() != killed {
                return reply.said().to_owned();
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("it runs again")
}

#[tokio::test]
async fn prox_12_a_server_that_is_killed_ends_its_calls_alone_and_is_started_again() {
    for (wire, revision) in [(Wire::Stdio, LATEST_LEGACY), (Wire::Http, MODERN)] {
        let mut client = through(wire, &scripts(), revision, json!({})).await;
        listed(&mut client, "tools", "name").await;
        let listen = watch(&mut client, &[]).await.listen;
        for (side, other) in [("old", "new"), ("new", "old")] {
            let label = format!("{wire:?} {revision} kills {side}");
            hold(&mut client, other, "goes on").await;
            hold(&mut client, side, "is lost").await;
            let pid = say(&mut client, &format!("{side}_pid"), json!({})).await;
            signal("KILL", &pid).await;
            let lost = client.message("the end of the call", |m| m["id"] == "is lost").await;
            let message = lost["error"]["message"].as_str().unwrap_or_default();
            assert!(message.contains(&format!("the server {side} ended")), "{label}: {lost}");
            // Names stay as they are while one is away.
            client.begin("tools/call", json!({"name": format!("{other}_release"), "arguments": {}})).await;
            let kept = client.message("the call of the other", |m| m["id"] == "goes on").await;
            assert_eq!(kept["result"]["content"][0]["text"], "released", "{label}");
            assert_ne!(again(&mut client, side, &pid).await, pid, "{label}");
        }
        let ended = client
            .leftovers()
            .iter()
            .any(|a| matches!(a, Arrival::Message(_, m, _) if Some(&m["id"]) == listen.as_ref()));
        assert!(!ended, "{wire:?} {revision}: a listen outlives the restart");
    }
}

/// Watches a resource of an upstream, kills that, and asserts that once it runs again the resource is still watched.
async fn is_watched_again(side: &str, watching: Value) {
    let mut client = through(Wire::Stdio, &scripts(), LATEST_LEGACY, json!({})).await;
    let uri = format!("scripted://{side}/a");
    watch(&mut client, &[&uri]).await;
    let pid = say(&mut client, &format!("{side}_pid"), json!({})).await;
    signal("KILL", &pid).await;
    again(&mut client, side, &pid).await;
    say(&mut client, &format!("{side}_await_line"), watching).await;
    let touch = json!({"name": format!("{side}_touch"), "arguments": {"uri": uri}});
    client.begin("tools/call", touch).await;
    assert_eq!(client.next("notifications/resources/updated").await["params"]["uri"], uri);
}

#[tokio::test]
async fn a_subscription_outlives_the_restart_of_a_legacy_upstream() {
    is_watched_again("old", json!({"method": "resources/subscribe"})).await;
}

#[tokio::test]
async fn a_subscription_outlives_the_restart_of_a_modern_upstream() {
    // There is one listen more, to the lists.
    is_watched_again("new", json!({"method": "subscriptions/listen", "count": 2})).await;
}

// Processes.

/// Whether a process is there: not ended, or not yet waited for.
fn exists(pid: &str) -> bool {
    std::path::Path::new("/proc").join(pid).exists()
}

/// Takes in processes that stay connected while they live; gives for each its name, its id and the connection.
async fn leashed(listener: &TcpListener, count: usize) -> Vec<(String, String, tokio::net::TcpStream)> {
    let mut all = Vec::new();
    for _ in 0..count {
        let accepted = tokio::time::timeout(PATIENCE, listener.accept()).await;
        let (mut stream, _) = accepted.expect("the processes start in time").unwrap();
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') {
            line.push(stream.read_u8().await.unwrap());
        }
        let line = String::from_utf8(line).unwrap();
        let (name, pid) = line.trim().split_once(' ').unwrap();
        all.push((name.to_owned(), pid.to_owned(), stream));
    }
    all
}

/// Starts a gateway over servers of all sorts, ends it, and asserts that nothing is left of them.
async fn nothing_is_left(wire: Wire, end: impl AsyncFnOnce(&mut Client, u64)) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let leash = ["--leash", &port];
    let servers = [
        ("tame", scripted(&[&["--name", "tame"][..], &leash].concat())),
        ("stubborn", scripted(&[&["--name", "stubborn", "--stubborn"][..], &leash].concat())),
        (
            "parent",
            scripted(&[&["--name", "parent", "--era", "modern", "--grandchild"][..], &leash].concat()),
        ),
        ("demo", demo("modern")),
    ];
    let mut client = through(wire, &servers, MODERN, json!({})).await;
    let mut processes = leashed(&listener, 4).await;
    assert!(listed(&mut client, "tools", "name").await.contains(&"parent_hold".to_owned()));
    let exchange = hold(&mut client, "parent", "held").await;
    end(&mut client, exchange).await;
    assert_eq!(client.exit().await, Some(0), "{wire:?}");
    for (name, pid, stream) in &mut processes {
        // What was started by a server is nobody's child, and may take a moment longer.
        let gone = tokio::time::timeout(PATIENCE, stream.read(&mut [0; 1])).await;
        assert!(matches!(gone, Ok(Ok(0) | Err(_))), "{wire:?}: {name} is left");
        assert!(name == "grandchild" || !exists(pid), "{wire:?}: {name} was not waited for");
    }
}

async fn terminate(client: &mut Client) {
    let pid = client.program.as_ref().unwrap().child.id().unwrap();
    signal("TERM", &pid.to_string()).await;
}

#[tokio::test]
async fn prox_12_no_process_is_left_after_a_termination_over_http() {
    nothing_is_left(Wire::Http, async |client, exchange| {
        // A call that is under way would be waited for.
        client.disconnect(exchange);
        terminate(client).await;
    })
    .await;
}

#[tokio::test]
async fn prox_12_no_process_is_left_after_a_termination_over_a_pipe() {
    nothing_is_left(Wire::Stdio, async |client, _| {
        client.notify("notifications/cancelled", json!({"requestId": "held"})).await;
        terminate(client).await;
    })
    .await;
}

#[tokio::test]
async fn no_process_is_left_after_the_end_of_the_input() {
    nothing_is_left(Wire::Stdio, async |client, _| client.close_input()).await;
}
