//! Definitions that a proxy cannot pass on as they are, and text that wants to be more than text.

use std::process::Stdio;

use serde_json::{Value, json};
use testkit::{MODERN, PATIENCE, Program, WIRES};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use super::{Config, listed, peers, scripted, through};
use crate::DATELINE;
use crate::program::run;

#[testkit::test]
async fn tool_05_a_proxy_renames_what_has_no_legal_name_and_undoes_it_upstream() {
    let long = "l".repeat(200);
    let names = ["x/y z", "größe", "a:b", "fine", "x_y_z", "\u{1b}[31m", &long];
    let definitions: Vec<String> = names
        .iter()
        .map(|name| json!({"name": name, "inputSchema": {"type": "object"}}).to_string())
        .collect();
    let mut flags = vec!["--name", "odd", "--tools", ""];
    definitions.iter().for_each(|definition| flags.extend(["--definition", definition]));
    let modern = [&flags[..], &["--era", "modern"]].concat();
    for flags in [&flags, &modern] {
        for mut peer in peers(&[("odd", scripted(flags))], json!({})).await {
            let shown = listed(&mut peer.client, "tools", "name").await;
            assert_eq!(shown.len(), names.len(), "{}: {shown:?}", peer.label);
            assert_eq!((&*shown[3], &*shown[4]), ("fine", "x_y_z"), "{}: legal names stay", peer.label);
            for (shown_as, own) in shown.iter().zip(names) {
                let legal = |b: u8| b.is_ascii_alphanumeric() || b"_-.".contains(&b);
                assert!((1..=128).contains(&shown_as.len()) && shown_as.bytes().all(legal), "{shown_as:?}");
                assert_eq!(shown.iter().filter(|other| *other == shown_as).count(), 1, "{shown:?}");
                let got: Value =
                    serde_json::from_str(peer.client.call(shown_as, json!({})).await.said()).unwrap();
                assert_eq!(got["params"]["name"], own, "{}", peer.label);
            }
        }
    }
}

fn annotated(name: &str, properties: &Value) -> String {
    json!({"name": name, "inputSchema": {"type": "object", "properties": properties}}).to_string()
}

#[testkit::test]
async fn tool_06_a_proxy_leaves_out_a_tool_whose_annotations_break_the_rules_and_says_so() {
    let text = |header: &str| json!({"type": "string", "x-mcp-header": header});
    let bad = [
        annotated("empty", &json!({"a": text("")})),
        annotated("twice", &json!({"a": text("A"), "b": text("a")})),
        annotated("number", &json!({"a": {"type": "number", "x-mcp-header": "A"}})),
        annotated("within", &json!({"a": {"type": "array", "items": text("A")}})),
    ];
    let good =
        annotated("good", &json!({"a": text("A"), "b": {"type": "object", "properties": {"c": text("C")}}}));
    let mut flags = vec!["--tools", "plain", "--definition", &good];
    bad.iter().for_each(|definition| flags.extend(["--definition", definition]));
    let modern = [&flags[..], &["--era", "modern"]].concat();
    for flags in [&flags, &modern] {
        let servers = [("odd", scripted(flags))];
        for wire in WIRES {
            let mut client = through(wire, &servers, MODERN, json!({})).await;
            assert_eq!(listed(&mut client, "tools", "name").await, ["plain", "good"], "{wire:?}");
            for left_out in ["empty", "twice", "number", "within"] {
                assert_eq!(client.call(left_out, json!({})).await.code(), -32602, "{wire:?} {left_out}");
            }
        }
        // It says so on stderr, without being asked to say more.
        let config = Config::new(&servers);
        let mut command = Command::new(DATELINE);
        command
            .args(["stdio", "--config", config.path()])
            .env("HOME", "/dev/null")
            .env_remove("XDG_STATE_HOME");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        for left_out in ["empty", "twice", "number", "within"] {
            let line = tokio::time::timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
            for word in ["WARN", "odd", left_out, "x-mcp-header", "left out"] {
                assert!(line.contains(word), "{left_out}: {line}");
            }
        }
    }
}

/// Clears the screen, sets its title, and paints; in the shorter form too.
const STEERING: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31mred\r";

fn steers(text: &str) -> bool {
    text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t'))
}

#[testkit::test]
async fn tool_08_what_a_server_says_cannot_steer_a_terminal() {
    let definition = json!({"name": "fine", "title": STEERING, "description": STEERING, "inputSchema": {"type": "object"}});
    let steered = json!({"name": STEERING, "description": STEERING, "inputSchema": {"type": "object"}});
    let (definition, steered) = (definition.to_string(), steered.to_string());
    let flags = ["--tools", "raw,fail", "--definition", &definition, "--definition", &steered];
    let config = Config::new(&[("odd", scripted(&flags))]);
    let result = json!({"content": [{"type": "text", "text": STEERING}, {"type": STEERING}]});
    let result = json!({"result": result.to_string()}).to_string();
    let error = json!({"error": json!({"code": 1, "message": STEERING}).to_string()}).to_string();
    for (args, due) in [
        (vec!["list", "odd"], "fine"),
        (vec!["call", "odd", "raw", &result], "red"),
        (vec!["call", "odd", "fail", &error], "red"),
        (vec!["call", "odd", "fine"], "tools/call"),
    ] {
        let mut args = args;
        args.extend(["--config", config.path()]);
        let run = run(&args).await;
        assert!(run.out.contains(due) || run.err.contains(due), "{args:?}: {:?} {:?}", run.out, run.err);
        assert!(!steers(&run.out) && !steers(&run.err), "{args:?}: {:?} {:?}", run.out, run.err);
    }
}

#[testkit::test]
async fn tool_08_why_a_server_does_not_run_cannot_steer_a_terminal() {
    let refuses = format!(
        "import sys, json\nfor line in sys.stdin:\n  m = json.loads(line)\n  \
         if 'id' in m: print(json.dumps({{'jsonrpc': '2.0', 'id': m['id'], 'error': {{'code': 1, 'message': {STEERING:?}}}}}), flush=True)"
    );
    // Rust writes escapes otherwise than Python.
    let refuses = refuses.replace("\\u{1b}", "\\x1b").replace("\\u{7}", "\\x07").replace("\\u{9b}", "\\x9b");
    let mut server = scripted(&[]);
    server["args"] = json!(["-S", "-c", refuses]);
    let config = Config::new(&[("odd", server)]);
    let listed = run(&["list", "odd", "--config", config.path()]).await;
    assert!(listed.err.contains("owned"), "{:?}", listed.err);
    assert!(!steers(&listed.err), "{:?}", listed.err);
    let socket = format!("{}.sock", config.path());
    let args = ["serve", "--config", config.path(), "--listen", "127.0.0.1:0", "--admin-socket", &socket];
    let _served = Program::http(DATELINE, &args).await;
    for command in ["status", "logs"] {
        let shown = async {
            loop {
                let shown = run(&[command, "--admin-socket", &socket]).await.out;
                if shown.contains("owned") {
                    return shown;
                }
            }
        };
        let shown = tokio::time::timeout(PATIENCE, shown).await.unwrap();
        assert!(!steers(&shown), "{command}: {shown:?}");
    }
}

#[testkit::test]
async fn tool_08_what_a_server_says_on_stderr_cannot_steer_a_log() {
    let script =
        format!("printf '\\033[2Jfirst\\nsecond\\233\\rthird\\n' >&2; exec '{DATELINE}' demo --stdio");
    let config = Config::new(&[("odd", json!({"command": "bash", "args": ["-c", script]}))]);
    for format in ["text", "json"] {
        let mut command = Command::new(DATELINE);
        let args = ["stdio", "--config", config.path(), "--log-level", "info", "--log-format", format];
        command.args(args).env("HOME", "/dev/null").env_remove("XDG_STATE_HOME");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = Vec::new();
        while !String::from_utf8_lossy(&said).contains("third") {
            let read = tokio::time::timeout(PATIENCE, stderr.read_until(b'\n', &mut said)).await;
            assert!(read.unwrap().unwrap() > 0, "{format}: {:?}", String::from_utf8_lossy(&said));
        }
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains("first") && said.contains("second"), "{format}: {said:?}");
        assert!(!steers(&said), "{format}: {said:?}");
    }
}
