//! The framing of stdio on Unix sockets and TCP.

use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Arrival, Client, LATEST_LEGACY, LEGACY, MODERN, PATIENCE};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::era::{OFFERED, meta, request};
use crate::msg::speaking;
use crate::{DATELINE, long_countdown};

/// A folder that is there as long as this is.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("dateline-sockets-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn dateline(listen: &[&str]) -> Command {
    let mut command = Command::new(DATELINE);
    command.arg("demo").env("HOME", "/dev/null").stdin(Stdio::null()).kill_on_drop(true);
    for place in listen {
        command.args(["--listen", place]);
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A demo that listens at a Unix socket and a TCP port.
struct Demo {
    child: Child,
    unix: String,
    tcp: String,
}

impl Demo {
    async fn start(path: &str) -> Demo {
        let unix = format!("unix:{path}");
        let mut child = dateline(&[&unix, "tcp:127.0.0.1:0"]).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut places = Vec::new();
        let told = async {
            while places.len() < 2 {
                let line = lines.next_line().await.unwrap().expect("it listens");
                places.push(line.rsplit(" at ").next().unwrap().to_owned());
            }
        };
        tokio::time::timeout(PATIENCE, told).await.expect("it says where it listens");
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        assert_eq!(places[0], unix);
        let tcp = places.pop().unwrap();
        assert!(tcp.starts_with("tcp:127.0.0.1:") && !tcp.ends_with(":0"), "{tcp}");
        Demo { child, unix, tcp }
    }

    fn places(&self) -> [&str; 2] {
        [&self.unix, &self.tcp]
    }

    fn address(&self) -> &str {
        self.tcp.strip_prefix("tcp:").unwrap()
    }

    fn open_files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id().unwrap())).unwrap().count()
    }

    /// Waits until so many files are open.
    async fn settle(&self, files: usize) {
        until(&format!("{files} open files"), || self.open_files() == files).await;
    }

    /// Ends it by a signal; gives its exit code.
    async fn end(mut self, signal: &str) -> Option<i32> {
        let pid = self.child.id().unwrap().to_string();
        assert!(std::process::Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
        tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("it ends").unwrap().code()
    }
}

async fn until(what: &str, test: impl Fn() -> bool) {
    let waiting = async {
        while !test() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("there are never {what}"));
}

async fn says(client: &mut Client, what: &str) {
    assert_eq!(client.call("echo", json!({"message": what})).await.said(), what);
}

#[testkit::test]
async fn stdio_03_every_revision_is_served_line_by_line_on_unix_sockets_and_tcp() {
    let folder = Folder::new();
    let demo = Demo::start(&folder.path("s")).await;
    let quiet = demo.open_files();
    for place in demo.places() {
        for revision in OFFERED {
            let told = format!("{place} {revision}");
            let mut client = speaking(Client::socket(place).await, revision, json!({"sampling": {}})).await;
            says(&mut client, "hi").await;
            let counting = json!({"name": "countdown", "arguments": {"from": 2, "intervalMs": 1}, "_meta": {"progressToken": 1}});
            let reply = client.request("tools/call", counting).await;
            assert_eq!(reply.notifications("notifications/progress").len(), 3, "{told}");
            let id = client
                .begin("tools/call", json!({"name": "test_sampling", "arguments": {"prompt": "?"}}))
                .await;
            if revision == MODERN {
                assert_eq!(client.reply(&id).await.result()["resultType"], "input_required", "{told}");
            } else {
                let question = client.next("sampling/createMessage").await;
                let result =
                    json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}});
                client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result}), &[]).await;
                assert_eq!(client.reply(&id).await.said(), "LLM response: Paris", "{told}");
            }
            // Rubbish costs its line, as it does on stdio.
            for line in ["no json", "{\"jsonrpc\":\"2.0\"", "[[[["] {
                client.send_text(line, &[]).await;
                let refused = client.message("a refusal", |m| m["error"]["code"] == -32700).await;
                assert!(refused["id"].is_null(), "{told}: {refused}");
                says(&mut client, "next").await;
            }
            let rest = client.leftovers();
            assert!(rest.is_empty(), "{told}: {rest:?}");
        }
    }
    demo.settle(quiet).await;
}

#[testkit::test]
async fn stdio_03_what_goes_out_is_one_message_a_line() {
    let folder = Folder::new();
    let demo = Demo::start(&folder.path("s")).await;
    let mut stream = TcpStream::connect(demo.address()).await.unwrap();
    let call = json!({"name": "echo", "arguments": {"message": "a\nb\r\nc\u{2028}d"}, "_meta": meta(MODERN)});
    let lines = [
        request(1, "tools/call", call).to_string(),
        request(2, "tools/list", json!({"_meta": meta(MODERN)})).to_string(),
    ];
    // In one piece, with Windows line ends and empty lines, and the last line without an end.
    let text = format!("{}\r\n\n\r\n{}", lines[0], lines[1]);
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    // The client half is closed: what is answered already is still sent, and the connection ends.
    let mut reader = BufReader::new(&mut stream);
    tokio::time::timeout(PATIENCE, reader.read_until(b'\n', &mut bytes)).await.unwrap().unwrap();
    let first: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(
        (&first["id"], &first["result"]["content"][0]["text"]),
        (&json!(1), &json!("a\nb\r\nc\u{2028}d"))
    );
    assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), 1);
    let mut rest = Vec::new();
    stream.shutdown().await.unwrap();
    tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest))
        .await
        .expect("the connection ends")
        .unwrap();
}

#[testkit::test]
async fn stdio_03_each_connection_is_a_pipe_of_its_own() {
    let folder = Folder::new();
    let demo = Demo::start(&folder.path("s")).await;
    let quiet = demo.open_files();
    let mut clients = Vec::new();
    for place in demo.places() {
        for revision in OFFERED {
            let client = speaking(Client::socket(place).await, revision, json!({})).await;
            clients.push((format!("{place} {revision}"), client));
        }
    }
    // All with the same id at the same time.
    for (told, client) in &mut clients {
        client
            .begin_as(
                json!("same"),
                "tools/call",
                json!({"name": "slow_compute", "arguments": {"seconds": 0.1, "label": told}}),
            )
            .await;
    }
    for (told, client) in &mut clients {
        assert_eq!(client.reply(&json!("same")).await.said(), format!("{told} is done after 0.1 s"));
    }
    demo.settle(quiet + clients.len()).await;
    // One that vanishes takes its calls with it, and no other one's.
    for (_, client) in &mut clients {
        client.begin_as(json!("same"), "tools/call", long_countdown()).await;
        client.next("notifications/progress").await;
    }
    let mut left = clients.split_off(clients.len() / 2);
    let gone = clients.len();
    drop(clients);
    demo.settle(quiet + left.len()).await;
    let (_, control) = &mut left[0];
    let due = vec![r#""same""#; gone].join(" ");
    let cancelled = async { while control.call("cancelled_calls", json!({})).await.said() != due {} };
    tokio::time::timeout(PATIENCE, cancelled).await.expect("just the calls of those that are gone end");
    for (told, client) in &mut left {
        client.next("notifications/progress").await;
        says(client, told).await;
    }
    // A session is not found out of by another connection.
    let mut fresh = Client::socket(demo.places()[0]).await;
    fresh.send(&request("n", "tools/list", json!({})), &[]).await;
    assert_eq!(fresh.reply(&json!("n")).await.code(), -32602);
    drop((left, fresh));
    demo.settle(quiet).await;
}

/// What a program that must not start says.
async fn refused(listen: &[&str]) -> (Option<i32>, String) {
    let output = tokio::time::timeout(PATIENCE, dateline(listen).output()).await.expect("it ends").unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.stdout.is_empty(), "{said}");
    (output.status.code(), said)
}

#[testkit::test]
async fn stdio_03_a_socket_file_is_its_owner_s_and_is_there_as_long_as_it_is_served() {
    let folder = Folder::new();
    let path = folder.path("deep/down/s.sock");
    for (signal, code) in [("TERM", Some(0)), ("INT", Some(0)), ("KILL", None), ("TERM", Some(0))] {
        // After KILL there is a file that nobody listens at: it is replaced.
        let demo = Demo::start(&path).await;
        let file = std::fs::symlink_metadata(&path).unwrap();
        assert!(file.file_type().is_socket());
        assert_eq!(file.permissions().mode() & 0o777, 0o600, "nobody else may connect");
        let above = std::fs::metadata(folder.path("deep/down")).unwrap().permissions().mode();
        assert_eq!(above & 0o777, 0o700, "nor look at what is made for it");
        let mut client = speaking(Client::socket(&demo.unix).await, LATEST_LEGACY, json!({})).await;
        says(&mut client, signal).await;
        // One that is served is not taken away.
        let (code_of_second, said) = refused(&[&format!("unix:{path}")]).await;
        assert_eq!(code_of_second, Some(4), "{said}");
        assert!(said.contains(&path) && said.contains("another"), "{said}");
        says(&mut client, "still here").await;
        assert_eq!(demo.end(signal).await, code, "{signal}");
        client.wait("the end", |a| matches!(a, Arrival::End(_))).await;
        assert_eq!(std::fs::symlink_metadata(&path).is_ok(), signal == "KILL", "{signal}");
    }
    // Anything else at the path is not ours to remove.
    let file = folder.path("file");
    std::fs::write(&file, "precious").unwrap();
    let (code, said) = refused(&[&format!("unix:{file}")]).await;
    assert_eq!(code, Some(4), "{said}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
    // What could be listened at is given back where the rest could not.
    let (code, said) = refused(&[&format!("unix:{path}"), &format!("unix:{file}")]).await;
    assert_eq!(code, Some(4), "{said}");
    assert!(std::fs::symlink_metadata(&path).is_err());
}

#[testkit::test]
async fn stdio_03_a_tcp_address_that_is_taken_or_reachable_from_elsewhere_is_refused() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = format!("tcp:{}", taken.local_addr().unwrap());
    let output = tokio::time::timeout(PATIENCE, dateline(&[&place]).output()).await.unwrap().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", String::from_utf8_lossy(&output.stderr));
    for open in ["tcp:0.0.0.0:0", "tcp:[::]:0"] {
        let output = tokio::time::timeout(PATIENCE, dateline(&[open]).output()).await.unwrap().unwrap();
        assert_eq!(output.status.code(), Some(2), "{open}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[testkit::test]
async fn stdio_03_an_http_request_is_not_taken_for_messages() {
    let folder = Folder::new();
    let demo = Demo::start(&folder.path("s")).await;
    let quiet = demo.open_files();
    let mut params = long_countdown();
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let body = request("smuggled", "tools/call", params).to_string();
    let opening = json!({"protocolVersion": LEGACY[3], "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
    let opening = request("smuggled", "initialize", opening).to_string();
    for first in [
        "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "PUT /\n",
        "\r\n\r\nPOST / HTTP/1.1\r\n\r\n",
        "\u{16}\u{3}\u{1}\u{2}\n",
        // An array is no message that opens a pipe either, nor is what has no end.
        "[]\n",
        "{\"jsonrpc\":\n",
    ] {
        for place in demo.places() {
            let text = format!("{first}{opening}\n{body}\n{body}\n");
            let mut read = Vec::new();
            let answer = async {
                match place.split_once(':').unwrap() {
                    ("tcp", address) => {
                        let mut stream = TcpStream::connect(address).await.unwrap();
                        // The far end may be closed before all is written.
                        let _ = stream.write_all(text.as_bytes()).await;
                        let _ = stream.read_to_end(&mut read).await;
                    }
                    (_, path) => {
                        let mut stream = tokio::net::UnixStream::connect(path).await.unwrap();
                        let _ = stream.write_all(text.as_bytes()).await;
                        let _ = stream.read_to_end(&mut read).await;
                    }
                }
            };
            tokio::time::timeout(PATIENCE, answer)
                .await
                .unwrap_or_else(|_| panic!("{place} is not closed after {first:?}"));
            let said = String::from_utf8_lossy(&read);
            assert!(
                !said.contains("smuggled") && !said.contains("result") && said.lines().count() <= 1,
                "{first:?}: {said}"
            );
        }
    }
    demo.settle(quiet).await;
    // A call that had begun would have been cut off, and noted.
    let mut client = Client::socket(&demo.tcp).await;
    assert_eq!(client.call("cancelled_calls", json!({})).await.said(), "");
}
