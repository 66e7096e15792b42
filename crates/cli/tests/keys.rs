//! Keys that processes share: what one of them gave a client, another one takes.

use std::collections::HashSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Client, MODERN, PATIENCE, Program, WIRES, Wire};

use crate::DATELINE;
use crate::features::retry;
use crate::gateway::{Config, demo};
use crate::msg::{everywhere, speaking};
use crate::program::{complains, run, signal, works};

/// A file of keys that is there as long as this is, readable by its owner alone.
struct KeyFile(PathBuf);

impl KeyFile {
    fn new(text: &str) -> KeyFile {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("dateline-{}-{count}.keys", std::process::id()));
        let file = KeyFile(path);
        file.write(text);
        std::fs::set_permissions(&file.0, std::fs::Permissions::from_mode(0o600)).unwrap();
        file
    }

    fn write(&self, text: &str) {
        std::fs::write(&self.0, text).unwrap();
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for KeyFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

async fn new_key() -> String {
    works(&["key"]).await.trim_end().to_owned()
}

/// A modern client of a demo of its own, that can be asked anything.
async fn asked(wire: Wire, args: &[&str]) -> Client {
    let mut client = Client::start(wire, DATELINE, &[&["demo"], args].concat()).await;
    client.capabilities = json!({"elicitation": {}, "sampling": {}, "roots": {}});
    client
}

/// A call that asks twice.
fn twice() -> Value {
    json!({"name": "test_input_required_result_multi_round", "arguments": {}})
}

/// The questions and the state of a first round, from this client's process.
async fn first_round(client: &mut Client) -> Value {
    let reply = client.request("tools/call", twice()).await;
    assert_eq!(reply.result()["resultType"], "input_required", "{}", reply.message);
    reply.result().clone()
}

/// Whether a process takes a state.
async fn takes(client: &mut Client, interim: &Value) -> bool {
    let reply = client.request("tools/call", retry(&twice(), interim)).await;
    if reply.message.get("error").is_none() {
        return true;
    }
    assert_eq!(reply.code(), -32602, "{}", reply.message);
    false
}

#[testkit::test]
async fn mrtr_05_each_round_of_a_call_goes_to_another_process() {
    for wire in WIRES {
        let keys = KeyFile::new(&format!("# ours\n\n  {}  \n", new_key().await));
        let mut processes = Vec::new();
        for _ in 0..3 {
            processes.push(asked(wire, &["--key-file", keys.path()]).await);
        }
        let [one, another, third] = &mut processes[..] else { unreachable!() };
        let first = first_round(one).await;
        let second = another.request("tools/call", retry(&twice(), &first)).await;
        assert_eq!(second.result()["resultType"], "input_required", "{wire:?}");
        assert_ne!(second.result()["inputRequests"], first["inputRequests"], "{wire:?}");
        let last = third.request("tools/call", retry(&twice(), second.result())).await;
        assert_eq!(last.result()["resultType"], "complete", "{wire:?}: {}", last.message);
        // It is bound to the call all the same.
        let other = json!({"name": "test_input_required_result_request_state", "arguments": {}});
        let reply = another.request("tools/call", retry(&other, &first)).await;
        assert_eq!(reply.code(), -32602, "{wire:?}");
        // Whoever has not the key, or another one.
        let elsewhere = KeyFile::new(&new_key().await);
        for args in [&[][..], &["--key-file", elsewhere.path()]] {
            let mut stranger = asked(wire, args).await;
            assert!(!takes(&mut stranger, &first).await, "{wire:?} {args:?}");
            let own = first_round(&mut stranger).await;
            assert!(takes(&mut stranger, &own).await, "{wire:?} {args:?}: its own");
        }
    }
}

#[testkit::test]
async fn mrtr_05_a_key_is_replaced_while_what_it_sealed_is_under_way() {
    for wire in WIRES {
        let (old, new) = (new_key().await, new_key().await);
        let keys = KeyFile::new(&old);
        let mut client = asked(wire, &["--key-file", keys.path()]).await;
        let before = first_round(&mut client).await;
        let fresh = KeyFile::new(&new);
        let mut successor = asked(wire, &["--key-file", fresh.path()]).await;
        keys.write(&format!("{new}\n{old}\n"));
        let sealed = async {
            loop {
                let after = first_round(&mut client).await;
                if takes(&mut successor, &after).await {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, sealed).await.expect("the new key seals");
        assert!(takes(&mut client, &before).await, "{wire:?}: the old one still opens");
        // A file that is wrong changes nothing, and neither does one that is gone.
        keys.write("rubbish\n");
        let refused = "the changed key file is not used";
        client.program.as_mut().unwrap().line(refused).await;
        assert!(takes(&mut client, &before).await, "{wire:?}: a wrong file");
        signal(&client, "HUP").await;
        client.program.as_mut().unwrap().line(refused).await;
        assert!(takes(&mut client, &before).await, "{wire:?}: a wrong file, at SIGHUP");
        keys.write(&new);
        let refused = async {
            while takes(&mut client, &before).await {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, refused).await.expect("the old key is forgotten");
    }
}

#[testkit::test]
async fn mrtr_05_a_gateway_goes_on_where_another_left_off() {
    let keys = KeyFile::new(&new_key().await);
    let mut modern = demo("modern");
    modern["args"].as_array_mut().unwrap().extend([json!("--key-file"), json!(keys.path())]);
    let config = Config::new(&[("new", modern), ("old", demo("legacy"))]);
    let mut processes = Vec::new();
    for keyed in [true, true, false] {
        let mut args = vec!["serve", "--config", config.path(), "--listen", "127.0.0.1:0"];
        if keyed {
            args.extend(["--key-file", keys.path()]);
        }
        let program = Program::http(DATELINE, &args).await;
        let mut client = Client::connect(program.url.as_deref().unwrap());
        client.program = Some(program);
        client.capabilities = json!({"elicitation": {}, "sampling": {}, "roots": {}});
        client.request("tools/list", json!({})).await.result();
        processes.push(client);
    }
    let [one, another, stranger] = &mut processes[..] else { unreachable!() };
    let call = |server: &str| json!({"name": format!("{server}_{}", twice()["name"].as_str().unwrap()), "arguments": {}});
    let first = one.request("tools/call", call("new")).await;
    assert_eq!(first.result()["resultType"], "input_required", "{}", first.message);
    assert_eq!(stranger.request("tools/call", retry(&call("new"), first.result())).await.code(), -32602);
    let second = another.request("tools/call", retry(&call("new"), first.result())).await;
    assert_eq!(second.result()["resultType"], "input_required", "{}", second.message);
    let last = one.request("tools/call", retry(&call("new"), second.result())).await;
    assert_eq!(last.result()["resultType"], "complete", "{}", last.message);
    // A server of a handshake revision waits in the process that asked; there the call is still to be answered.
    let first = one.request("tools/call", call("old")).await;
    assert_eq!(first.result()["resultType"], "input_required", "{}", first.message);
    assert_eq!(another.request("tools/call", retry(&call("old"), first.result())).await.code(), -32602);
    let second = one.request("tools/call", retry(&call("old"), first.result())).await;
    assert_eq!(second.result()["resultType"], "input_required", "{}", second.message);
}

const LISTS: [(&str, &str, &str); 4] = [
    ("tools/list", "tools", "name"),
    ("prompts/list", "prompts", "name"),
    ("resources/list", "resources", "uri"),
    ("resources/templates/list", "resourceTemplates", "uriTemplate"),
];

/// The names on a page, and where the next one is.
async fn page(client: &mut Client, list: usize, cursor: Option<&Value>) -> (Vec<String>, Option<Value>) {
    let (method, members, name) = LISTS[list];
    let params = cursor.map_or(json!({}), |cursor| json!({"cursor": cursor}));
    let reply = client.request(method, params).await;
    let entries = reply.result()[members].as_array().unwrap();
    let names = entries.iter().map(|entry| entry[name].as_str().unwrap().to_owned()).collect();
    (names, reply.result().get("nextCursor").cloned())
}

#[testkit::test]
async fn page_01_each_page_of_a_list_comes_from_another_process() {
    for (wire, revision) in everywhere() {
        let keys = KeyFile::new(&new_key().await);
        let with_keys = ["demo", "--page-size", "2", "--key-file", keys.path()];
        let mut processes = Vec::new();
        for args in [&with_keys[..], &with_keys, &["demo", "--page-size", "2"], &["demo"]] {
            let client = Client::start(wire, DATELINE, args).await;
            processes.push(speaking(client, revision, json!({})).await);
        }
        let [one, another, stranger, whole] = &mut processes[..] else { unreachable!() };
        for list in 0..LISTS.len() {
            let told = format!("{wire:?} {revision} {}", LISTS[list].0);
            let (due, None) = page(whole, list, None).await else { panic!("{told}: the whole has no pages") };
            let (mut seen, mut cursor, mut turn) = (Vec::new(), None, 0);
            loop {
                let client = if turn % 2 == 0 { &mut *one } else { &mut *another };
                let (names, next) = page(client, list, cursor.as_ref()).await;
                assert!(names.len() == 2 || next.is_none(), "{told}: {names:?}");
                seen.extend(names);
                turn += 1;
                let Some(next) = next else { break };
                // Opaque: nothing of where it stands can be read from it, or made up.
                let text = next.as_str().unwrap();
                assert!(text.len() > 40 && cursor.as_ref() != Some(&next), "{told}: {text}");
                let reply = stranger.request(LISTS[list].0, json!({"cursor": next})).await;
                assert_eq!(reply.code(), -32602, "{told}: a process without the key");
                let reply = one.request(LISTS[(list + 1) % 4].0, json!({"cursor": next})).await;
                assert_eq!(reply.code(), -32602, "{told}: the cursor of another list");
                let changed =
                    format!("{}{}", &text[..text.len() - 1], if text.ends_with('A') { 'B' } else { 'A' });
                for made_up in [changed.as_str(), "never issued", "2", ""] {
                    let reply = another.request(LISTS[list].0, json!({"cursor": made_up})).await;
                    assert_eq!(reply.code(), -32602, "{told}: {made_up}");
                }
                cursor = Some(next);
            }
            assert_eq!(seen, due, "{told}");
            assert_eq!(turn, due.len().div_ceil(2), "{told}");
        }
    }
}

#[testkit::test]
async fn a_key_is_printed_and_is_another_one_each_time() {
    let mut keys = HashSet::new();
    for _ in 0..3 {
        let key = works(&["key"]).await;
        assert!(key.ends_with("=\n") && key.len() == 45, "{key:?}");
        keys.insert(key);
    }
    assert_eq!(keys.len(), 3);
}

#[testkit::test]
async fn a_wrong_key_file_is_said_with_its_line_and_not_shown() {
    let good = new_key().await;
    let secret = "c2VjcmV0IG9mIG91cnM=";
    for (text, words) in [
        (format!("# ours\n{good}\n\n{secret}\n"), [":4: ", "has 14 bytes", "32 bytes"]),
        ("top-secret!\n".to_owned(), [":1: ", "neither base64 nor hex", "dateline key"]),
        (format!("{good} {good}\n"), [":1: ", "neither base64 nor hex", "openssl rand -base64 32"]),
        ("# nothing\n\n".to_owned(), ["there is no key in", "dateline key > ", ".keys"]),
    ] {
        let file = KeyFile::new(&text);
        for command in ["demo", "serve"] {
            let args = [command, "--listen", "127.0.0.1:0", "--key-file", file.path()];
            complains(&args, 2, &words).await;
            let run = run(&args).await;
            for hidden in [secret, "top-secret", &good] {
                assert!(!run.err.contains(hidden), "{}", run.err);
            }
        }
    }
    let missing = ["demo", "--stdio", "--key-file", "/nonexistent/keys"];
    complains(&missing, 2, &["/nonexistent/keys", "No such file", "dateline key > "]).await;
}

#[testkit::test]
async fn a_key_file_that_others_can_read_is_warned_of_and_no_log_has_a_key() {
    let key = new_key().await;
    for (mode, warned) in [(0o600, false), (0o400, false), (0o640, true), (0o604, true), (0o622, true)] {
        let file = KeyFile::new(&key);
        std::fs::set_permissions(&file.0, std::fs::Permissions::from_mode(mode)).unwrap();
        let run = run(&["demo", "--stdio", "--key-file", file.path(), "--log-level", "trace"]).await;
        assert_eq!(run.code, Some(0), "{}", run.err);
        assert_eq!(run.err.contains(&format!("chmod 600 {}", file.path())), warned, "{mode:o}: {}", run.err);
        assert!(!run.err.contains(key.trim_end_matches('=')), "{}", run.err);
    }
    // The flag is an environment variable too.
    let file = KeyFile::new("rubbish");
    let mut command = tokio::process::Command::new(DATELINE);
    command.args(["demo", "--stdio"]).env("DATELINE_KEY_FILE", file.path()).kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output()).await.unwrap().unwrap();
    assert_eq!(output.status.code(), Some(2), "{MODERN}: {}", String::from_utf8_lossy(&output.stderr));
}
