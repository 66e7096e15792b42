//! Under which names an endpoint is served, what a refusal says, and when it closes.

use std::path::PathBuf;

use serde_json::{Value, json};
use testkit::{Arrival, Client, Program, Wire, sse_url};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{
    Answer, authority, connected, discover, fetch, fetch_modern, head, id_of, session, told, url, within,
};
use crate::era::{fitting, lent, request};
use crate::gateway::{Config, demo};
use crate::{DATELINE, modern};

fn port(url: &str) -> &str {
    authority(url).rsplit(':').next().unwrap()
}

fn at(url: &str, path: &str) -> String {
    format!("http://{}{path}", authority(url))
}

/// A message without an id, with all of these words.
fn says(answer: &Answer, status: u16, words: &[&str]) {
    let (_, id) = answer.error();
    assert_eq!((answer.status, id), (status, None), "{}", answer.body);
    let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(words.iter().all(|word| message.contains(word)), "{message} lacks one of {words:?}");
}

/// A folder that is there as long as this is.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("dateline-hosts-{}-{name}", std::process::id()));
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

#[testkit::test]
async fn http_01_a_name_that_nobody_allowed_is_refused_on_an_address_that_other_machines_reach() {
    let args = ["demo", "--listen", "0.0.0.0:0", "--allow-remote", "--allow-host", "gateway.example"];
    let program = Program::http(DATELINE, &args).await;
    let url = program.url.as_deref().unwrap();
    let port = port(url);
    for name in [
        "gateway.example",
        "GATEWAY.example",
        "localhost",
        "127.0.0.1",
        "[::1]",
        "192.0.2.7",
        "[2001:db8::7]",
    ] {
        let host = format!("{name}:{port}");
        for headers in
            [vec![("Host", host.clone())], vec![("Host", host.clone()), ("Origin", format!("http://{host}"))]]
        {
            let answer = fetch_modern(url, &discover("d"), &lent(&headers)).await;
            assert_eq!(answer.status, 200, "{headers:?}: {}", answer.body);
        }
    }
    for name in
        ["evil.example", "gateway.example.evil.example", "127.0.0.1.evil.example", "mybox", "127.1", "0x7f.1"]
    {
        let host = format!("{name}:{port}");
        let quoted = format!("{host:?}");
        let flag = format!("--allow-host {name} ");
        // A page that had its name point here sends no Origin with a GET.
        for (path, verb) in [
            (url.to_owned(), "POST"),
            (sse_url(url), "GET"),
            (at(url, "/v1/status"), "GET"),
            (at(url, "/x"), "GET"),
        ] {
            let answer = fetch(&path, verb, &[("Host", &host)], "").await;
            says(&answer, 403, &[&quoted, &flag, "HttpOptions::hosts"]);
        }
    }
}

#[testkit::test]
async fn http_01_an_address_that_is_listened_on_alone_is_the_only_one_beside_loopback() {
    // All of 127.0.0.0/8 is this machine; where it is not, nothing can be listened on there, and other tests show it.
    let program = Program::http(DATELINE, &["demo", "--listen", "127.0.0.2:0"]).await;
    let url = program.url.as_deref().unwrap();
    for (host, status) in [("127.0.0.2", 200), ("localhost", 200), ("192.0.2.7", 403), ("[2001:db8::7]", 403)]
    {
        let host = format!("{host}:{}", port(url));
        assert_eq!(fetch_modern(url, &discover("d"), &[("Host", &host)]).await.status, status, "{host}");
    }
}

#[testkit::test]
async fn http_01_pages_of_this_machine_may_call_under_each_of_its_names_for_itself() {
    let server = modern(Wire::Http).await;
    let url = url(&server);
    let names = ["localhost", "127.0.0.1", "[::1]"];
    for host in names.map(|name| format!("{name}:{}", port(url))) {
        for page in names {
            let origin = format!("http://{page}:{}", port(url));
            let answer = fetch_modern(url, &discover("d"), &[("Host", &host), ("Origin", &origin)]).await;
            assert_eq!(answer.status, 200, "{origin} at {host}: {}", answer.body);
            assert_eq!(answer.header("access-control-allow-origin"), Some(origin.as_str()));
            let foreign = ["http://{page}:1", "http://{page}", "http://evil.example:PORT"];
            for foreign in foreign.map(|origin| origin.replace("{page}", page).replace("PORT", port(url))) {
                let answer =
                    fetch_modern(url, &discover("d"), &[("Host", &host), ("Origin", &foreign)]).await;
                says(&answer, 403, &[&format!("{foreign:?}"), &format!("--allow-origin {foreign} ")]);
            }
        }
    }
}

#[testkit::test]
async fn a_refusal_shows_what_was_sent_escaped_and_no_more_than_can_be_read() {
    let server = modern(Wire::Http).await;
    let url = url(&server);
    let long = format!("{}.example", "a".repeat(5000));
    let answer = fetch(url, "POST", &[("Host", &long)], "{}").await;
    says(&answer, 403, &["aaa", "…"]);
    assert!(!answer.body.contains(&"a".repeat(200)), "{}", answer.body);
    for (header, sent) in [("Host", "a\"b`$(x)"), ("Origin", "http://a\"b`$(x)"), ("Origin", "null")] {
        let answer = fetch(url, "POST", &[(header, sent)], "{}").await;
        says(&answer, 403, &[&format!("{sent:?}")]);
        assert!(!answer.body.contains("--allow-"), "no flag lets that in: {}", answer.body);
    }
    let answer = fetch(url, "POST", &[("Host", "me:secret@evil.example")], "{}").await;
    assert!(answer.status == 403 && !answer.body.contains("secret"), "{}", answer.body);
}

#[testkit::test]
async fn what_two_readers_would_read_as_two_things_is_refused() {
    let server = modern(Wire::Http).await;
    let url = url(&server);
    let here = authority(url);
    let mut live = session(&server, "2025-11-25", json!({})).await;
    let id = id_of(&live);
    let list = request("l", "tools/list", json!({})).to_string();
    let of_session = ("Mcp-Session-Id", id.as_str());
    let version = "MCP-Protocol-Version";
    let kind = ("Content-Type", "application/json");
    for (headers, word) in [
        (vec![("Host", here), ("Host", here)], "host"),
        (vec![("Host", here), ("Host", "evil.example")], "host"),
        (vec![("Host", "evil.example"), ("Host", here)], "host"),
        (vec![("Host", "")], "Host"),
        (vec![of_session, of_session], "mcp-session-id"),
        (vec![of_session, ("Mcp-Session-Id", "other")], "mcp-session-id"),
        (vec![of_session, (version, "2025-11-25"), (version, "2025-06-18")], "mcp-protocol-version"),
        (vec![of_session, ("Last-Event-ID", "1"), ("Last-Event-ID", "2")], "last-event-id"),
        (vec![kind, ("Content-Type", "text/plain")], "content-type"),
        (vec![("Authorization", "Bearer a"), ("Authorization", "Bearer b")], "authorization"),
    ] {
        for (verb, body) in [("POST", list.as_str()), ("GET", ""), ("DELETE", "")] {
            let answer = fetch(url, verb, &headers, body).await;
            says(&answer, 400, &[word]);
        }
    }
    let reply = live.request("tools/list", json!({})).await;
    assert_eq!(reply.status(), Some(200), "the session is as it was");
}

#[testkit::test]
async fn the_request_line_and_the_host_header_must_name_the_same_host() {
    let server = modern(Wire::Http).await;
    let url = url(&server);
    let asked = discover("d");
    let body = asked.to_string();
    let fitting = fitting(&asked);
    let mut headers = lent(&fitting);
    headers.push(("Connection", "close"));
    let send = async |line: &str, host: &str| {
        let all = [&headers[..], &[("Host", host)]].concat();
        let head = head(url, "POST", &all, body.len()).replacen("POST /mcp", &format!("POST {line}"), 1);
        told(url, [head, body.clone()].concat().as_bytes()).await
    };
    let here = authority(url);
    for line in [format!("http://{here}/mcp"), format!("HTTP://{here}/mcp"), "/mcp".to_owned()] {
        assert_eq!(send(&line, here).await.status, 200, "{line}");
    }
    for line in [
        format!("http://evil.example:{}/mcp", port(url)),
        "http://evil.example/mcp".to_owned(),
        format!("http://localhost:{}/mcp", port(url)),
        format!("http://me@{here}/mcp"),
    ] {
        says(&send(&line, here).await, 400, &["request line"]);
        says(&send(&line, "evil.example:1").await, 400, &["request line"]);
    }
    let evil = format!("evil.example:{}", port(url));
    says(&send(&format!("http://{evil}/mcp"), &evil).await, 403, &["evil.example"]);
}

#[testkit::test]
async fn paths_with_a_slash_at_their_end_are_served_and_a_404_names_the_right_ones() {
    let server = modern(Wire::Http).await;
    let url = url(&server);
    assert_eq!(fetch_modern(&format!("{url}/"), &discover("d"), &[]).await.status, 200);
    for revision in testkit::LEGACY {
        let mut client = Client::connect(&format!("{url}/"));
        client.handshake(revision, json!({})).await;
        client.request("tools/list", json!({})).await.result();
        let mut client = Client::connect_sse(&format!("{}/", sse_url(url))).await;
        assert!(client.endpoint().contains("/message?"), "{}", client.endpoint());
        client.handshake(revision, json!({})).await;
        client.request("tools/list", json!({})).await.result();
    }
    for (path, named) in [
        ("/", "\"/\""),
        ("/api/mcp", "/api/mcp"),
        ("/mcp/x", "/mcp/x"),
        ("/v1/status", "/v1/status"),
        ("/%22%0a", "%22%0a"),
    ] {
        for (verb, body) in [("GET", ""), ("POST", "{}"), ("DELETE", "")] {
            says(&fetch(&at(url, path), verb, &[], body).await, 404, &[named, "at /mcp", "at /sse"]);
        }
    }
    let program = Program::http(DATELINE, &["demo", "--era", "modern", "--listen", "127.0.0.1:0"]).await;
    let answer = fetch(&at(program.url.as_deref().unwrap(), "/sse"), "GET", &[], "").await;
    says(&answer, 404, &["at /mcp"]);
    assert!(!answer.json()["error"]["message"].as_str().unwrap().contains("HTTP+SSE"), "{}", answer.body);
}

/// Reads one response off a connection: its head, and its body by its length.
async fn one_answer(stream: &mut tokio::net::TcpStream) -> String {
    let mut read = String::new();
    let mut byte = [0];
    let length = |text: &str| {
        let (head, body) = text.split_once("\r\n\r\n")?;
        let line = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ").map(str::to_owned));
        Some(body.len() >= line?.parse::<usize>().unwrap())
    };
    while length(&read) != Some(true) {
        assert_eq!(within("an answer", stream.read(&mut byte)).await.unwrap(), 1, "{read}");
        read.push(char::from(byte[0]));
    }
    read
}

#[testkit::test]
async fn a_refusal_that_closes_the_connection_says_so_and_another_one_does_not() {
    let server = modern(Wire::Http).await;
    let url = url(&server);
    let evil = ("Origin", "http://evil.example");
    for (headers, status) in [
        (vec![evil], 403),
        (vec![("Host", "evil.example")], 403),
        (vec![("Content-Type", "text/plain")], 415),
        (vec![("Accept", "text/html")], 406),
    ] {
        // The connection ends although the client did not ask for that; nothing of the body is there yet.
        let answer = told(url, head(url, "POST", &headers, 5_000_000).as_bytes()).await;
        assert_eq!((answer.status, answer.header("connection")), (status, Some("close")), "{headers:?}");
    }
    // What has no body is refused, and the next request on the same connection is answered.
    let mut stream = connected(url).await;
    for (headers, status) in [(vec![evil], 403), (vec![("Host", "evil.example")], 403), (vec![], 405)] {
        let head = head(url, "PUT", &headers, 0);
        stream.write_all(head.as_bytes()).await.unwrap();
        let answer = one_answer(&mut stream).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        assert!(!answer.to_ascii_lowercase().contains("connection: close"), "{answer}");
    }
}

#[testkit::test]
async fn the_admin_api_is_not_beside_a_remote_address_without_a_token() {
    let config = Config::new(&[("one", demo("modern"))]);
    let folder = Folder::new("token");
    let (socket, file) = (folder.path("admin.sock"), folder.path("token"));
    let serve = |more: &[&str]| {
        let args = ["serve", "--config", config.path(), "--admin-socket", &socket, "--admin-http"];
        [&args[..], more].concat().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let remote = ["--listen", "0.0.0.0:0", "--allow-remote"];
    for listen in [&remote[..], &["--listen", "127.0.0.1:0", "--listen", "[::]:0", "--allow-remote"]] {
        let args = serve(listen);
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        crate::program::complains(&args, 2, &["--admin-token-file", "dateline key", "dateline status"]).await;
    }
    let with = |file: &str| serve(&[&remote[..], &["--admin-token-file", file]].concat());
    for (text, words) in [
        (None, ["cannot read", "dateline key >"]),
        (Some(""), ["no token", "dateline key >"]),
        (Some("# none\n"), ["no token", "dateline key >"]),
        (Some("short\n"), ["token:1", "16"]),
        (Some("a token with spaces in it\n"), ["token:1", "visible"]),
    ] {
        if let Some(text) = text {
            std::fs::write(&file, text).unwrap();
        }
        let args = with(&file);
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        crate::program::complains(&args, 2, &words).await;
    }
    let token = |n: u8| format!("{n}-token-of-some-length");
    std::fs::write(&file, format!("# two of them\n{}\n  {}  \n", token(1), token(2))).unwrap();
    let args = with(&file);
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let program = Program::http(DATELINE, &args).await;
    let url = program.url.as_deref().unwrap();
    let ask = async |path: &str, sent: &[(&str, &str)]| fetch(&at(url, path), "GET", sent, "").await;
    let bearer = |n: u8| format!("Bearer {}", token(n));
    for path in ["/v1/status", "/v1/logs"] {
        for wrong in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer x",
            &token(1),
            &format!("Basic {}", token(1)),
            &bearer(3),
            &format!("{}x", bearer(1)),
        ] {
            let answer = ask(path, &[("Authorization", wrong)]).await;
            assert_eq!(answer.status, 401, "{path} {wrong:?}");
            assert!(answer.header("www-authenticate").unwrap().starts_with("Bearer "), "{path} {wrong:?}");
            assert!(!answer.body.contains("demo") && !answer.body.contains(&token(1)), "{}", answer.body);
        }
        for right in [bearer(1), bearer(2), bearer(1).replace("Bearer", "bearer")] {
            assert_eq!(ask(path, &[("Authorization", &right)]).await.status, 200, "{path} {right}");
            let foreign = ask(path, &[("Authorization", &right), ("Host", "evil.example")]).await;
            assert_eq!(foreign.status, 403, "{path}");
        }
    }
    assert_eq!(fetch_modern(url, &discover("d"), &[]).await.status, 200, "it is for the admin API alone");
    // The file is read again as it changes; one that is wrong changes nothing.
    for (text, stays) in [("short", 1), (token(3).as_str(), 3)] {
        std::fs::write(format!("{file}.new"), text).unwrap();
        std::fs::rename(format!("{file}.new"), &file).unwrap();
        let admitted = async {
            while ask("/v1/status", &[("Authorization", &bearer(stays))]).await.status != 200 {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        within("the new token is read", admitted).await;
    }
    assert_eq!(ask("/v1/status", &[("Authorization", &bearer(1))]).await.status, 401);
}

#[testkit::test]
async fn what_is_no_host_is_said_at_the_start() {
    for (given, said) in [
        ("*", "name each one"),
        ("http://gateway.example", "host alone"),
        ("gateway.example:4400", "has a port"),
        ("a b", "is no host"),
        ("", "is no host"),
        ("me@gateway.example", "is no host"),
    ] {
        let args = ["demo", "--listen", "127.0.0.1:0", "--allow-host", given];
        let run = crate::program::run(&args).await;
        assert_eq!(run.code, Some(2), "{given}: {}", run.err);
        assert!(run.err.contains("--allow-host") && run.err.contains(said), "{given}: {}", run.err);
    }
}

#[testkit::test]
async fn new_connections_are_refused_while_the_last_call_comes_to_its_end() {
    let folder = Folder::new("end");
    let unix = folder.path("socket");
    let listen = ["demo", "--listen", &format!("unix:{unix}"), "--listen", "127.0.0.1:0"];
    let program = Program::http(DATELINE, &listen).await;
    let url = program.url.clone().unwrap();
    let mut lines = Client::socket(&format!("unix:{unix}")).await;
    let mut client = Client::connect(&url);
    client.program = Some(program);
    let countdown = json!({"name": "countdown", "arguments": {"from": 80, "intervalMs": 100},
        "_meta": {"progressToken": "t"}});
    let mut calls: Vec<Value> = Vec::new();
    for client in [&mut client, &mut lines] {
        calls.push(client.begin("tools/call", countdown.clone()).await);
        client.next("notifications/progress").await;
    }
    crate::program::signal(&client, "TERM").await;
    let refused = async {
        while tokio::net::TcpStream::connect(authority(&url)).await.is_ok()
            || tokio::net::UnixStream::connect(&unix).await.is_ok()
        {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    within("new connections are refused", refused).await;
    for (client, call) in [&mut client, &mut lines].into_iter().zip(&calls) {
        let ended = |a: &Arrival| matches!(a, Arrival::Message(_, m, _) if m["id"] == *call);
        let came = client.leftovers();
        assert!(!came.iter().any(ended), "and the calls are still under way: {came:?}");
    }
    for (client, call) in [&mut client, &mut lines].into_iter().zip(&calls) {
        assert_eq!(client.reply(call).await.said(), "counted down from 80");
    }
    assert_eq!(client.exit().await, Some(0));
}
