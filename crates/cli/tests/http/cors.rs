//! What a page in a browser may do here, and what it can read of the answers.

use serde_json::{Value, json};
use testkit::{Client, LEGACY, MODERN, Program, Wire, header, sse_url};

use super::{Answer, authority, discover, fetch, fetch_modern, id_of, initialize};
use crate::DATELINE;
use crate::era::{ask, ask_fitting, echo, meta, request};

const PAGE: &str = "https://app.example";
const OTHER_PAGE: &str = "http://localhost:5173";
/// Of pages that nobody let in; the last ones look like one that was.
const FOREIGN: [&str; 7] = [
    "http://evil.example",
    "null",
    "file://",
    "http://app.example",
    "https://app.example:444",
    "https://app.example.evil.example",
    "https://APP.example",
];
/// Whatever a page's client has to send, as a browser names it in a preflight.
const SENT: &str = "accept,authorization,content-type,last-event-id,mcp-method,mcp-name,mcp-param-region,\
                    mcp-protocol-version,mcp-session-id";

/// A demo that pages of both origins may call.
async fn demo() -> Program {
    let allowed = ["demo", "--listen", "127.0.0.1:0", "--allow-origin", PAGE, "--allow-origin", OTHER_PAGE];
    Program::http(DATELINE, &allowed).await
}

async fn preflight(url: &str, origin: &str, verb: &str, wanted: &str) -> Answer {
    let asks = [
        ("Origin", origin),
        ("Access-Control-Request-Method", verb),
        ("Access-Control-Request-Headers", wanted),
    ];
    fetch(url, "OPTIONS", &asks, "").await
}

/// The names in a header, in order and in lower case.
fn names(value: Option<&str>) -> Vec<String> {
    let mut names: Vec<_> =
        value.unwrap_or_default().split(',').map(|name| name.trim().to_ascii_lowercase()).collect();
    names.retain(|name| !name.is_empty());
    names.sort();
    names
}

fn sorted(list: &str) -> Vec<String> {
    names(Some(list))
}

/// Nothing in it lets a page read it.
fn is_kept(answer: &Answer) -> bool {
    !answer.headers.iter().any(|(name, _)| name.to_ascii_lowercase().starts_with("access-control-"))
}

/// A page of this origin can read an answer with these headers.
fn is_shown(header: impl Fn(&'static str) -> Option<String>, origin: &str, told: &str) {
    assert_eq!(header("access-control-allow-origin").as_deref(), Some(origin), "{told}");
    assert_eq!(names(header("vary").as_deref()), ["origin"], "{told}");
    assert_eq!(header("access-control-allow-credentials"), None, "{told}");
    let exposed = names(header("access-control-expose-headers").as_deref());
    assert_eq!(exposed, ["mcp-protocol-version", "mcp-session-id", "www-authenticate"], "{told}");
}

#[testkit::test]
async fn http_26_preflights_are_answered_to_pages_that_were_let_in() {
    let program = demo().await;
    let url = program.url.as_deref().unwrap();
    let own = format!("http://{}", authority(url));
    let messages = format!("http://{}/message", authority(url));
    for path in [url, &sse_url(url), &messages, &format!("{messages}?session_id=7")] {
        for origin in [PAGE, OTHER_PAGE, &own] {
            for verb in ["GET", "POST", "DELETE"] {
                let answer = preflight(path, origin, verb, SENT).await;
                let told = format!("{path} {origin} {verb}: {:?}", answer.headers);
                assert!(matches!(answer.status, 200 | 204) && answer.is_empty(), "{told}");
                let header = |name| answer.header(name);
                assert_eq!(header("access-control-allow-origin"), Some(origin), "{told}");
                assert_eq!(
                    names(header("access-control-allow-methods")),
                    ["delete", "get", "post"],
                    "{told}"
                );
                assert_eq!(names(header("access-control-allow-headers")), sorted(SENT), "{told}");
                let age: u64 = header("access-control-max-age").unwrap().parse().unwrap();
                assert!((60..=86_400).contains(&age), "{told}");
                assert_eq!(header("access-control-allow-credentials"), None, "{told}");
                assert_eq!(names(header("vary")), ["origin"], "{told}");
            }
            // What means nothing here is not allowed, whatever stands beside it.
            let wanted = "Content-Type, Cookie, MCP-PARAM-Tenant-Id,mcp-params,x-mcp-method , x-own";
            let answer = preflight(path, origin, "POST", wanted).await;
            let allowed = names(answer.header("access-control-allow-headers"));
            assert_eq!(allowed, ["content-type", "mcp-param-tenant-id"], "{path}");
            for nothing in ["x-own", "", ",,"] {
                let answer = preflight(path, origin, "POST", nothing).await;
                assert_eq!(answer.header("access-control-allow-headers"), None, "{path} {nothing:?}");
                assert_eq!(answer.header("access-control-allow-origin"), Some(origin), "{path}");
            }
        }
        for origin in FOREIGN {
            let answer = preflight(path, origin, "POST", SENT).await;
            assert_eq!((answer.status, is_kept(&answer)), (403, true), "{path} {origin}");
        }
        // No preflight: a method that there is not.
        for headers in [&[][..], &[("Origin", PAGE)], &[("Access-Control-Request-Method", "POST")]] {
            assert_eq!(fetch(path, "OPTIONS", headers, "").await.status, 405, "{path} {headers:?}");
        }
    }
}

#[testkit::test]
async fn http_26_without_the_flag_only_its_own_pages_are_let_in() {
    let program = Program::http(DATELINE, &["demo", "--listen", "127.0.0.1:0"]).await;
    let url = program.url.as_deref().unwrap();
    let own = format!("http://{}", authority(url));
    for origin in FOREIGN.into_iter().chain([PAGE, OTHER_PAGE]) {
        let answer = preflight(url, origin, "POST", SENT).await;
        assert_eq!((answer.status, is_kept(&answer)), (403, true), "{origin}");
        let answer = fetch_modern(url, &discover("d"), &[("Origin", origin)]).await;
        assert_eq!((answer.status, is_kept(&answer)), (403, true), "{origin}");
    }
    let answer = fetch_modern(url, &discover("d"), &[("Origin", &own)]).await;
    is_shown(|name| answer.header(name).map(str::to_owned), &own, "its own page");
}

#[testkit::test]
async fn http_26_a_page_reads_answers_and_refusals_of_modern_requests() {
    let program = demo().await;
    let url = program.url.as_deref().unwrap();
    let mut client = Client::connect(url);
    let page = [("origin", PAGE)];
    let countdown = json!({"name": "countdown", "arguments": {"from": 1, "intervalMs": 1},
        "_meta": {"progressToken": "t"}});
    let modern = |method: &str, mut params: Value| {
        let mut all = meta(MODERN);
        let more = params["_meta"].as_object().cloned().unwrap_or_default();
        all.as_object_mut().unwrap().extend(more);
        params["_meta"] = all;
        request("p", method, params)
    };
    for (asked, status, kind) in [
        (request("d", "server/discover", json!({"_meta": meta(MODERN)})), 200, "application/json"),
        (request("c", "tools/call", echo(meta(MODERN))), 200, "application/json"),
        (modern("tools/call", countdown), 200, "text/event-stream"),
        (request("n", "no/such", json!({"_meta": meta(MODERN)})), 404, "application/json"),
        (request("v", "tools/list", json!({"_meta": meta("1999-01-01")})), 400, "application/json"),
    ] {
        let reply = ask_fitting(&mut client, &asked, &page).await;
        let head = reply.head.as_ref().unwrap();
        assert_eq!((head.status, header(&head.headers, "content-type")), (status, Some(kind)), "{asked}");
        is_shown(|name| header(&head.headers, name).map(str::to_owned), PAGE, &asked.to_string());
        // To a request without an origin nothing is said of pages, but for what a cache has to know.
        let answer = fetch_modern(url, &asked, &[]).await;
        assert_eq!(answer.header("access-control-allow-origin"), None, "{asked}");
        assert_eq!(names(answer.header("vary")), ["origin"], "{asked}");
        for origin in FOREIGN {
            let answer = fetch_modern(url, &asked, &[("Origin", origin)]).await;
            assert_eq!((answer.status, is_kept(&answer)), (403, true), "{asked} {origin}");
        }
    }
    // What HTTP itself refuses.
    for (header, status) in [("Accept", 406), ("Content-Type", 415)] {
        let answer = fetch(url, "POST", &[("Origin", PAGE), (header, "text/html")], "{}").await;
        assert_eq!(answer.status, status);
        is_shown(|name| answer.header(name).map(str::to_owned), PAGE, header);
    }
}

#[testkit::test]
async fn http_26_a_page_has_a_session_in_each_revision_of_them() {
    let program = demo().await;
    let url = program.url.as_deref().unwrap();
    for revision in LEGACY {
        for origin in FOREIGN {
            let answer = fetch(url, "POST", &[("Origin", origin)], &initialize(revision).to_string()).await;
            assert_eq!((answer.status, is_kept(&answer)), (403, true), "{revision} {origin}");
        }
        let mut client = Client::connect(url);
        let opened = ask(&mut client, &initialize(revision), &[("origin", PAGE)]).await;
        let head = opened.head.as_ref().unwrap();
        is_shown(|name| header(&head.headers, name).map(str::to_owned), PAGE, revision);
        // What the page may read of it, since it is exposed.
        client.session = header(&head.headers, "mcp-session-id").map(str::to_owned);
        client.revision = Some(revision);
        let id = id_of(&client);
        let listed = ask(&mut client, &request("l", "tools/list", json!({})), &[("origin", PAGE)]).await;
        assert!(!listed.result()["tools"].as_array().unwrap().is_empty(), "{revision}");
        let head = listed.head.as_ref().unwrap();
        is_shown(|name| header(&head.headers, name).map(str::to_owned), PAGE, revision);
        let stream = client.exchange("GET", &[("origin", PAGE), ("accept", "text/event-stream")], Vec::new());
        let head = client.head(stream).await;
        assert_eq!((head.status, header(&head.headers, "content-type")), (200, Some("text/event-stream")));
        is_shown(|name| header(&head.headers, name).map(str::to_owned), PAGE, revision);
        // A browser that keeps a stream in its cache sends the DELETE twice, and the page is shown the 404.
        assert_eq!(header(&head.headers, "cache-control"), Some("no-store"), "{revision}");
        client.disconnect(stream);
        let named = [("Mcp-Session-Id", id.as_str()), ("MCP-Protocol-Version", revision)];
        let fetch = async |verb: &str, origin: &str| {
            super::fetch(url, verb, &[&named[..], &[("Origin", origin)]].concat(), "").await
        };
        for (verb, origin) in ["GET", "DELETE"].into_iter().flat_map(|verb| FOREIGN.map(|o| (verb, o))) {
            let answer = fetch(verb, origin).await;
            assert_eq!((answer.status, is_kept(&answer)), (403, true), "{revision} {verb} {origin}");
        }
        for status in [200, 404] {
            let answer = fetch("DELETE", PAGE).await;
            assert!(answer.status == status || (status == 200 && answer.status == 204), "{}", answer.status);
            is_shown(|name| answer.header(name).map(str::to_owned), PAGE, "the end of a session");
        }
    }
}

#[testkit::test]
async fn http_26_a_page_has_a_session_of_http_sse() {
    let program = demo().await;
    let url = program.url.as_deref().unwrap();
    for revision in LEGACY {
        let mut client = Client::over(Wire::Sse, url).await;
        let headers = [("Origin", PAGE)];
        let answer = fetch(client.endpoint(), "POST", &headers, &initialize(revision).to_string()).await;
        assert_eq!(answer.status, 202, "{revision}");
        is_shown(|name| answer.header(name).map(str::to_owned), PAGE, revision);
        let opened = client.reply(&json!("i")).await;
        assert_eq!(opened.result()["protocolVersion"], revision);
        for origin in FOREIGN {
            let body = request("l", "tools/list", json!({})).to_string();
            let answer = fetch(client.endpoint(), "POST", &[("Origin", origin)], &body).await;
            assert_eq!((answer.status, is_kept(&answer)), (403, true), "{revision} {origin}");
        }
    }
    // The stream, which an EventSource opens.
    let mut client = Client::connect(&sse_url(url));
    let stream = client.exchange("GET", &[("origin", PAGE), ("accept", "text/event-stream")], Vec::new());
    let head = client.head(stream).await;
    assert_eq!(head.status, 200);
    is_shown(|name| header(&head.headers, name).map(str::to_owned), PAGE, "the stream");
    for origin in FOREIGN {
        let answer = fetch(&sse_url(url), "GET", &[("Origin", origin)], "").await;
        assert_eq!((answer.status, is_kept(&answer)), (403, true), "{origin}");
    }
}

#[testkit::test]
async fn http_26_what_is_no_origin_is_said_at_the_start() {
    for (given, said) in [
        ("*", "name each one"),
        ("null", "of anybody's"),
        ("app.example", "is no origin"),
        ("https://", "is no origin"),
        ("localhost:5173", "is no origin"),
        ("https://app.example/", "which is https://app.example"),
        ("https://app.example:8443/page?x#y", "which is https://app.example:8443"),
        ("https://user@app.example", "which is https://app.example"),
    ] {
        for command in ["demo", "serve"] {
            let run = tokio::process::Command::new(DATELINE)
                .args([command, "--listen", "127.0.0.1:0", "--allow-origin", given])
                .kill_on_drop(true)
                .output();
            let output = super::within(given, run).await.unwrap();
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{given}: {stderr}");
            assert!(stderr.contains("--allow-origin") && stderr.contains(said), "{given}: {stderr}");
        }
    }
    // One that is written otherwise than browsers write it is the same one.
    let given = ["demo", "--listen", "127.0.0.1:0", "--allow-origin", "HTTPS://App.Example:443"];
    let program = Program::http(DATELINE, &given).await;
    let answer = preflight(program.url.as_deref().unwrap(), PAGE, "POST", SENT).await;
    assert_eq!(answer.header("access-control-allow-origin"), Some(PAGE));
}

#[testkit::test]
async fn http_26_the_gateway_lets_pages_in_too_and_the_admin_api_beside_it_shows_them_nothing() {
    let folder = std::env::temp_dir().join(format!("dateline-cors-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (config, socket) = (folder.join("config.json"), folder.join("admin.sock"));
    let servers = json!({"mcpServers": {"demo": {"command": DATELINE, "args": ["demo", "--stdio"]}}});
    std::fs::write(&config, servers.to_string()).unwrap();
    let [config, socket] = [&config, &socket].map(|path| path.to_str().unwrap());
    let program = Program::http(
        DATELINE,
        &[
            "serve",
            "--config",
            config,
            "--listen",
            "127.0.0.1:0",
            "--admin-socket",
            socket,
            "--admin-http",
            "--allow-origin",
            PAGE,
        ],
    )
    .await;
    let url = program.url.as_deref().unwrap();
    let answer = fetch_modern(url, &discover("d"), &[("Origin", PAGE)]).await;
    assert_eq!(answer.status, 200);
    is_shown(|name| answer.header(name).map(str::to_owned), PAGE, "the gateway");
    let answer = preflight(url, PAGE, "POST", SENT).await;
    assert_eq!(answer.header("access-control-allow-origin"), Some(PAGE));
    let admin = [("Origin", PAGE)];
    let answer = fetch(&format!("http://{}/v1/status", authority(url)), "GET", &admin, "").await;
    assert_eq!((answer.status, is_kept(&answer)), (200, true), "{:?}", answer.headers);
    std::fs::remove_dir_all(&folder).unwrap();
}
