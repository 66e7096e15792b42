//! What dateline says of its own, in logs and errors: nothing that was told to it in confidence.

use serde_json::{Value, json};
use testkit::{Client, Program, Reply, WIRES, Wire};

use crate::DATELINE;
use crate::gateway::Config;
use crate::msg::{everywhere, speaking};

/// A program whose stderr goes to a file too; the shell becomes it.
struct Told {
    file: std::path::PathBuf,
    client: Client,
}

impl Told {
    /// Starts dateline with these arguments, and a client of it on a transport.
    async fn start(wire: Wire, args: &str) -> Told {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let file = std::env::temp_dir().join(format!("dateline-told-{}-{count}", std::process::id()));
        let keep = |how: &str| format!("exec '{DATELINE}' {args} {how} 2> >(tee '{}' >&2)", file.display());
        let client = if wire == Wire::Stdio {
            let how = if args.starts_with("demo") { "--stdio" } else { "" };
            Client::pipe("bash", &["-c", &keep(how)])
        } else {
            let program = Program::http("bash", &["-c", &keep("--listen 127.0.0.1:0")]).await;
            let mut client = Client::over(wire, program.url.as_deref().unwrap()).await;
            client.program = Some(program);
            client
        };
        Told { file, client }
    }

    /// Ends it; gives all that it said on stderr.
    async fn end(mut self) -> String {
        crate::meta::terminate(&self.client);
        self.client.exit().await;
        let said = std::fs::read_to_string(&self.file).unwrap();
        let _ = std::fs::remove_file(&self.file);
        said
    }
}

/// What only the two who share it may know. Each is another one, so that it shows which got out.
const SECRETS: [(&str, &str); 4] = [
    ("authorization", "Bearer secret-bearer"),
    ("cookie", "sid=secret-cookie"),
    ("x-api-key", "secret-key"),
    ("proxy-authorization", "Basic secret-basic"),
];

fn keeps(what: &str, text: &str) {
    assert!(!text.contains("secret"), "{what}: {text}");
}

/// Requests that go wrong in every way, with a secret in each, and one that goes right.
fn wrong() -> Vec<(&'static str, Value)> {
    vec![
        ("tools/call", json!({"name": "add", "arguments": {"a": "secret-argument", "b": 1}})),
        (
            "tools/call",
            json!({"name": "countdown", "arguments": {"from": -1, "intervalMs": "secret-argument"}}),
        ),
        ("prompts/get", json!({"name": "haiku", "arguments": {"topic": ["secret-argument"]}})),
        (
            "completion/complete",
            json!({"ref": {"type": "secret-type"}, "argument": {"name": "a", "value": "secret-value"}}),
        ),
        ("tools/list", json!({"cursor": "secret-cursor"})),
        (
            "tools/call",
            json!({"name": "echo", "arguments": {"message": "hi"}, "requestState": "secret-state"}),
        ),
        (
            "tools/call",
            json!({"name": "echo", "arguments": {"message": "hi"}, "_meta": {"example.org/token": "secret-meta"}}),
        ),
    ]
}

/// Makes a request with secrets in its headers, where there are any.
async fn ask(client: &mut Client, method: &str, params: Value) -> Reply {
    let id = client.id();
    let params = if client.revision.is_none() { client.modern_params(params) } else { params };
    let fitting =
        if client.revision.is_none() { testkit::modern_headers(method, &params) } else { Vec::new() };
    let mut headers: Vec<(&str, &str)> =
        fitting.iter().map(|(name, value)| (*name, value.as_str())).collect();
    headers.extend(SECRETS);
    client.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}), &headers).await;
    client.reply(&id).await
}

#[testkit::test]
async fn log_04_neither_errors_nor_logs_repeat_headers_tokens_or_arguments() {
    for (wire, revision) in everywhere() {
        let what = format!("{wire:?} {revision}");
        let Told { file, client } = Told::start(wire, "demo --log-level trace").await;
        let mut client = speaking(client, revision, json!({})).await;
        let session = client.session.clone();
        for (method, params) in wrong() {
            let reply = ask(&mut client, method, params.clone()).await;
            keeps(&format!("{what} {params}"), &reply.text);
            for message in &reply.before {
                keeps(&what, &message.to_string());
            }
            if let Some(head) = &reply.head {
                keeps(&what, &format!("{:?}", head.headers));
            }
        }
        // Bytes that are no message, and headers that do not fit.
        if wire == Wire::Http {
            for body in
                ["{\"secret-half\": ", "[\"secret-array\"]", "{\"jsonrpc\":\"2.0\",\"secret-member\":1}"]
            {
                let exchange = client.send_text(body, &SECRETS).await;
                let (_, messages) = client.whole(exchange).await;
                keeps(&what, &format!("{messages:?}"));
            }
        }
        let said = Told { file, client }.end().await;
        keeps(&what, &said);
        if let Some(session) = session {
            assert!(!said.contains(&session), "{what}: a session's id is a key to it: {said}");
        }
    }
}

#[testkit::test]
async fn log_04_a_gateway_tells_its_clients_nothing_of_how_it_is_configured() {
    let refused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = Config::new(&[
        (
            "remote",
            json!({
                "url": format!("http://secret-user:secret-password@{refused}/mcp?token=secret-query"),
                "headers": {"Authorization": "Bearer secret-header", "X-Key": "secret-key"},
            }),
        ),
        (
            "absent",
            json!({
                "command": "/nonexistent/secret-folder/program",
                "args": ["--token", "secret-argument"],
                "env": {"TOKEN": "secret-environment"},
            }),
        ),
        (
            "ends",
            json!({
                "command": "bash",
                "args": ["-c", "echo secret-last-words >&2; exit 3", "secret-argument"],
                "env": {"TOKEN": "secret-environment"},
            }),
        ),
        (
            "works",
            json!({"command": DATELINE, "args": ["demo", "--stdio"], "env": {"TOKEN": "secret-environment"}}),
        ),
    ]);
    for wire in WIRES {
        let how = if wire == Wire::Stdio { "stdio" } else { "serve" };
        let args = format!("{how} --config {} --log-level trace", config.path());
        let Told { file, mut client } = Told::start(wire, &args).await;
        // The user of this machine is told more over a pipe, but nothing of this.
        let confidential =
            ["password", "user", "query", "header", "key", "argument", "environment", "bearer"];
        let confidential = confidential.map(|name| format!("secret-{name}"));
        let mut missing = 0;
        for (method, params) in [
            ("server/discover", json!({})),
            ("tools/list", json!({})),
            ("tools/call", json!({"name": "remote_x", "arguments": {}})),
            ("tools/call", json!({"name": "absent", "arguments": {}})),
            ("tools/call", json!({"name": "echo", "arguments": {"message": "hi"}})),
            ("prompts/get", json!({"name": "none"})),
            ("resources/read", json!({"uri": "secret:/none".replace("secret", "x")})),
        ] {
            let logged = json!({"io.modelcontextprotocol/logLevel": "debug"});
            let mut params = params;
            params["_meta"] = logged;
            let reply = ask(&mut client, method, params).await;
            let what = format!("{wire:?} {method}");
            let messages = [&reply.before[..], &[reply.message]].concat();
            for message in messages {
                let text = message.to_string();
                confidential.iter().for_each(|secret| assert!(!text.contains(secret), "{what}: {text}"));
                assert!(!text.contains(config.path()), "{what}: {text}");
                if wire == Wire::Http {
                    keeps(&what, &text);
                    assert!(!text.contains("/nonexistent"), "{what}: {text}");
                }
                missing += text.matches("are missing").count();
            }
        }
        assert!(missing >= 3, "{wire:?}: what is missing is said: {missing}");
        // What goes to stderr is for whoever configured it: what a server said, and which program is not there. What is
        // confidential stays out of that too.
        let said = Told { file, client }.end().await;
        assert!(said.contains("absent"), "{wire:?}: {said}");
        confidential
            .iter()
            .for_each(|secret| assert!(!said.contains(secret), "{wire:?}: {secret} in {said}"));
    }
}
