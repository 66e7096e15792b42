//! Who is let in, and what is only taken in: origins, hosts, notifications, responses.

use serde_json::{Value, json};
use testkit::{LEGACY, MODERN, Program, Wire};

use super::{authority, discover, fetch, fetch_modern, id_of, initialize, post, session, url};
use crate::era::{ask, request, sampled};
use crate::{DATELINE, modern};

#[testkit::test]
async fn http_01_a_foreign_origin_or_host_is_403_on_every_route() {
    let server = modern(Wire::Http).await;
    let (url, here) = (url(&server), authority(url(&server)));
    let port = here.rsplit(':').next().unwrap();
    let own = format!("http://{here}");
    let rebound = format!("evil.example:{port}");
    let (prefixed, other) = (format!("http://{here}.evil.example"), format!("http://user@{here}"));
    let foreign = [
        "http://evil.example",
        "https://evil.example:443",
        "null",
        "http://127.0.0.1:1",
        "http://127.0.0.1",
        "file://",
        "chrome-extension://abcdefgh",
        &prefixed,
        &other,
    ];
    for verb in ["POST", "GET", "DELETE", "PUT", "OPTIONS", "HEAD"] {
        for origin in foreign {
            let answer = fetch(url, verb, &[("Origin", origin)], &discover("o").to_string()).await;
            assert_eq!(answer.status, 403, "{verb} {origin}");
            if verb != "HEAD" {
                assert_eq!(answer.error().1, None, "{verb} {origin}: nothing was read that has an id");
            }
        }
        let twice = fetch(url, verb, &[("Origin", &own), ("Origin", "http://evil.example")], "").await;
        assert_eq!(twice.status, 403, "{verb}");
        for host in ["evil.example", &rebound, "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1"]
        {
            let page = format!("http://{host}");
            for headers in [&[("Host", host)][..], &[("Host", host), ("Origin", &page)]] {
                assert_eq!(fetch(url, verb, headers, "").await.status, 403, "{verb} {headers:?}");
            }
        }
    }
    // Its own origin, and none at all, under each name of this machine.
    let names = ["127.0.0.1", "localhost", "LocalHost", "[::1]"].map(|name| format!("{name}:{port}"));
    for host in &names {
        let page = format!("http://{host}");
        for headers in [&[("Host", host.as_str())][..], &[("Host", host.as_str()), ("Origin", &page)]] {
            assert_eq!(fetch_modern(url, &discover("d"), headers).await.status, 200, "{headers:?}");
        }
    }
    for revision in LEGACY {
        let evil = ("Origin", "http://evil.example");
        let answer = fetch(url, "POST", &[evil], &initialize(revision).to_string()).await;
        assert_eq!((answer.status, answer.header("mcp-session-id")), (403, None), "{revision}");
        let mut live = session(&server, revision, json!({})).await;
        let (id, list) = (id_of(&live), request("l", "tools/list", json!({})).to_string());
        for (verb, body) in [("POST", list.as_str()), ("GET", ""), ("DELETE", "")] {
            let answer = fetch(url, verb, &[evil, ("Mcp-Session-Id", &id)], body).await;
            assert_eq!((answer.status, answer.error().1), (403, None), "{revision} {verb}");
        }
        // And the session is as it was.
        let reply = ask(&mut live, &request("l", "tools/list", json!({})), &[("origin", &own)]).await;
        assert_eq!(reply.status(), Some(200), "{revision}");
    }
}

#[testkit::test]
async fn http_01_where_other_machines_may_call_foreign_pages_may_not() {
    let args = ["demo", "--listen", "0.0.0.0:0", "--allow-remote", "--allow-host", "Gateway.Example"];
    let program = Program::http(DATELINE, &args).await;
    let url = program.url.as_deref().unwrap();
    let port = authority(url).rsplit(':').next().unwrap();
    let (machine, name) = (format!("192.0.2.7:{port}"), format!("gateway.example:{port}"));
    for host in [&machine, &name] {
        let answer = fetch_modern(url, &discover("d"), &[("Host", host)]).await;
        assert_eq!(answer.status, 200, "{host}: {}", answer.body);
        for origin in ["http://evil.example", "null", "http://127.0.0.1"] {
            let answer = fetch_modern(url, &discover("d"), &[("Host", host), ("Origin", origin)]).await;
            assert_eq!((answer.status, answer.error().1), (403, None), "{host} {origin}");
        }
    }
    // No page is served here: a name that is asked for and is the page's own too may have been pointed here.
    let rebound = format!("http://evil.example:{port}");
    let headers = [("Host", rebound.strip_prefix("http://").unwrap()), ("Origin", &rebound)];
    assert_eq!(fetch_modern(url, &discover("d"), &headers).await.status, 403, "a rebound name");
}

#[testkit::test]
async fn http_03_notifications_and_responses_are_202_without_a_body_or_an_error() {
    let server = modern(Wire::Http).await;
    let url = url(&server);
    let notification = |method: &str| json!({"jsonrpc": "2.0", "method": method, "params": {}});
    let response = |id: &Value| json!({"jsonrpc": "2.0", "id": id, "result": sampled("late")});
    for method in ["notifications/cancelled", "notifications/none", "tools/call"] {
        // Header rules are for requests.
        let wrong = [("MCP-Protocol-Version", "1999-01-01"), ("Mcp-Method", "wrong"), ("Mcp-Name", "wrong")];
        for headers in [&[][..], &[("MCP-Protocol-Version", MODERN)], &wrong] {
            let answer = post(url, headers, &notification(method)).await;
            assert_eq!(
                (answer.status, answer.is_empty()),
                (202, true),
                "{method} {headers:?}: {}",
                answer.body
            );
        }
    }
    for revision in LEGACY {
        let mut live = session(&server, revision, json!({"sampling": {}})).await;
        let id = id_of(&live);
        let in_session = [("Mcp-Session-Id", id.as_str()), ("MCP-Protocol-Version", revision)];
        for method in ["notifications/initialized", "notifications/roots/list_changed", "notifications/none"]
        {
            let answer = post(url, &in_session, &notification(method)).await;
            assert_eq!((answer.status, answer.is_empty()), (202, true), "{revision} {method}");
        }
        // A response that is waited for, one that nobody waits for, and an error.
        let asking =
            live.begin("tools/call", json!({"name": "test_sampling", "arguments": {"prompt": "?"}})).await;
        let question = live.next("sampling/createMessage").await;
        let refused = json!({"jsonrpc": "2.0", "id": 99, "error": {"code": -1, "message": "no"}});
        for answered in [response(&question["id"]), response(&json!("nobody")), refused] {
            let answer = post(url, &in_session, &answered).await;
            assert_eq!((answer.status, answer.is_empty()), (202, true), "{revision} {answered}");
        }
        assert_eq!(live.reply(&asking).await.said(), "LLM response: late", "{revision}");
        // What is not accepted has the status of an error.
        let gone = [("Mcp-Session-Id", "gone"), ("MCP-Protocol-Version", revision)];
        for message in [notification("notifications/initialized"), response(&json!(1))] {
            let answer = post(url, &gone, &message).await;
            assert_eq!((answer.status, answer.error().1), (404, None), "{revision} {message}");
        }
        let malformed = json!({"jsonrpc": "1.0", "method": "notifications/initialized"});
        assert_eq!(post(url, &in_session, &malformed).await.status, 400, "{revision}");
    }
    assert_eq!(post(url, &[], &response(&json!(1))).await.status, 400, "a response without a session");
    for malformed in [
        json!({"jsonrpc": "1.0", "method": "notifications/cancelled"}),
        json!({"jsonrpc": "2.0", "method": 7}),
        json!({"jsonrpc": "2.0", "method": "m", "result": {}}),
    ] {
        assert_eq!(post(url, &[], &malformed).await.status, 400, "{malformed}");
    }
}

#[testkit::test]
async fn http_03_what_a_session_does_not_take_in_is_not_202() {
    let server = modern(Wire::Http).await;
    let url = url(&server);
    for revision in LEGACY {
        let mut live = session(&server, revision, json!({"sampling": {}})).await;
        let id = id_of(&live);
        let running =
            live.begin("tools/call", json!({"name": "test_sampling", "arguments": {"prompt": "?"}})).await;
        let question = live.next("sampling/createMessage").await;
        let other = if revision == LEGACY[0] { LEGACY[1] } else { LEGACY[0] };
        let cancel =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": running}});
        let result = json!({"jsonrpc": "2.0", "id": question["id"], "result": sampled("x")});
        for version in [other, "1999-01-01"] {
            for message in [&cancel, &result] {
                let headers = [("Mcp-Session-Id", id.as_str()), ("MCP-Protocol-Version", version)];
                let answer = post(url, &headers, message).await;
                assert_eq!(answer.status, 400, "{revision}, header {version}: {message}: {}", answer.body);
            }
        }
        post(url, &[("Mcp-Session-Id", &id)], &result).await;
        assert_eq!(
            live.reply(&running).await.said(),
            "LLM response: x",
            "{revision}: nothing had any effect"
        );
    }
}
