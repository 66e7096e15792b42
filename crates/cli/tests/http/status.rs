//! The status of every error.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use testkit::{Client, LATEST_LEGACY, LEGACY, MODERN, Wire};

use super::{discover, fetch, fetch_modern, id_of, is_mismatch, session, url};
use crate::era::{LOG_LEVEL, VERSION, meta, request};
use crate::modern;

#[testkit::test]
async fn http_22_an_unknown_or_removed_method_is_404_with_32601() {
    let server = modern(Wire::Http).await;
    let url = url(&server);
    let uri = json!({"uri": "demo://welcome"});
    for (method, params) in [
        ("initialize", json!({"protocolVersion": LATEST_LEGACY, "capabilities": {}})),
        ("initialize", json!({})),
        ("ping", json!({})),
        ("logging/setLevel", json!({"level": "info"})),
        ("resources/subscribe", uri.clone()),
        ("resources/unsubscribe", uri),
        ("no/method", json!({})),
        ("Tools/List", json!({})),
        ("", json!({})),
        ("notifications/cancelled", json!({"requestId": 1})),
        ("roots/list", json!({})),
        ("sampling/createMessage", json!({})),
        ("elicitation/create", json!({})),
    ] {
        let asked = request(format!("{method} {params}"), method, server.modern_params(params));
        let mut headers = vec![("Accept", "application/json, text/event-stream")];
        if method.is_empty() {
            // There is no header for a method without a name: it is the header then that does not fit.
            is_mismatch(&fetch_modern(url, &asked, &headers).await, &asked, "no name");
            continue;
        }
        for accept in ["application/json, text/event-stream", "application/json", "text/event-stream"] {
            headers[0].1 = accept;
            let answer = fetch_modern(url, &asked, &headers).await;
            assert_eq!(
                (answer.status, answer.error()),
                (404, (-32601, Some(asked["id"].clone()))),
                "{asked}"
            );
        }
    }
    for (method, params) in [
        ("tools/call", json!({"arguments": {}})),
        ("tools/call", json!({"name": 7})),
        ("tools/call", json!({"name": "none"})),
        ("tools/call", json!({"name": "echo", "arguments": []})),
        ("tools/list", json!({"cursor": "never issued"})),
        ("prompts/get", json!({"name": "none"})),
        ("resources/read", json!({})),
        ("completion/complete", json!({})),
        ("subscriptions/listen", json!({})),
    ] {
        let asked = request(format!("{method} {params}"), method, server.modern_params(params));
        let answer = fetch_modern(url, &asked, &[("Accept", "application/json, text/event-stream")]).await;
        assert_eq!((answer.status, answer.error().0), (200, -32602), "{asked}");
    }
}

/// A modern request, headers that replace those that fit it, the code of its error, and the status of that.
type Fault = (Value, Vec<(&'static str, &'static str)>, i64, u16);

/// A fault of every kind that a modern request can have.
fn faults(client: &Client) -> Vec<Fault> {
    let asked = |id: &str, method: &str, params: Value| request(id, method, client.modern_params(params));
    let call = |id: &str, params: Value| asked(id, "tools/call", params);
    let cap = json!({"name": "test_missing_capability"});
    let level = json!({"name": "echo", "_meta": {LOG_LEVEL: "loud"}});
    let token = json!({"name": "echo", "_meta": {"progressToken": {}}});
    let state = json!({"name": "test_elicitation", "arguments": {"message": "?"}, "requestState": "made up"});
    vec![
        (call("header", json!({"name": "echo"})), vec![("mcp-name", "add")], -32020, 400),
        (call("capability", cap), vec![], -32021, 400),
        (request("version", "tools/list", json!({"_meta": meta("2031-01-01")})), vec![], -32022, 400),
        (request("meta", "tools/list", json!({"_meta": {VERSION: MODERN}})), vec![], -32602, 400),
        (asked("method", "no/method", json!({})), vec![], -32601, 404),
        (asked("removed", "ping", json!({})), vec![], -32601, 404),
        (call("tool", json!({"name": "none"})), vec![], -32602, 200),
        (call("arguments", json!({"name": "echo", "arguments": 7})), vec![], -32602, 200),
        (call("level", level), vec![], -32602, 200),
        (call("token", token), vec![], -32602, 200),
        (call("state", state), vec![], -32602, 200),
        (asked("resource", "resources/read", json!({"uri": "demo://none"})), vec![], -32602, 200),
        (asked("prompt", "prompts/get", json!({"name": "none"})), vec![], -32602, 200),
        (asked("cursor", "tools/list", json!({"cursor": "x"})), vec![], -32602, 200),
        (asked("listen", "subscriptions/listen", json!({"notifications": 7})), vec![], -32602, 200),
    ]
}

#[testkit::test]
async fn http_23_every_error_is_json_rpc_with_the_status_that_is_assigned() {
    let server = modern(Wire::Http).await;
    let url = url(&server);
    for (asked, headers, code, status) in faults(&server) {
        for accept in ["application/json, text/event-stream", "application/json", "*/*"] {
            let answer = fetch_modern(url, &asked, &[&headers[..], &[("accept", accept)]].concat()).await;
            let given = (answer.status, answer.error());
            assert_eq!(given, (status, (code, Some(asked["id"].clone()))), "{asked} {accept}");
        }
    }
    // What is no request has no id, and a body all the same.
    let cut = "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"tools/list\"";
    let headers = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/list")];
    for (text, code) in [
        (cut, -32700),
        ("", -32700),
        ("\u{feff}nonsense", -32700),
        ("[]", -32600),
        ("7", -32600),
        ("{\"jsonrpc\": \"2.0\"}", -32600),
        ("{\"jsonrpc\": \"2.0\", \"id\": null, \"method\": \"tools/list\"}", -32600),
    ] {
        let answer = fetch(url, "POST", &headers, text).await;
        assert_eq!((answer.status, answer.error()), (400, (code, None)), "{text}");
    }
    // So it is with what HTTP itself refuses.
    let asked = discover("d").to_string();
    let large = format!("{asked}{}", " ".repeat(16 << 20));
    for (verb, header, body, status) in [
        ("POST", ("Origin", "http://evil.example"), &asked, 403),
        ("GET", ("Accept", "text/event-stream"), &String::new(), 405),
        ("DELETE", ("Accept", "*/*"), &String::new(), 405),
        ("PUT", ("Accept", "*/*"), &asked, 405),
        ("PATCH", ("Accept", "*/*"), &asked, 405),
        ("OPTIONS", ("Accept", "*/*"), &String::new(), 405),
        ("POST", ("Accept", "text/html"), &asked, 406),
        ("POST", ("Accept", "*/*"), &large, 413),
        ("POST", ("Content-Type", "text/plain"), &asked, 415),
    ] {
        let fitting = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "server/discover"), header];
        let answer = fetch(url, verb, &fitting, body).await;
        assert_eq!(answer.status, status, "{verb} {header:?}");
        answer.error();
        assert_eq!(answer.header("allow").is_some(), status == 405, "{verb} {header:?}");
    }
}

#[testkit::test]
async fn http_23_a_status_is_decided_before_a_stream_begins() {
    let server = modern(Wire::Http).await;
    for (asked, headers, code, status) in faults(&server) {
        let headers = [&headers[..], &[("accept", "text/event-stream")]].concat();
        let answer = fetch_modern(url(&server), &asked, &headers).await;
        assert_eq!(answer.status, status, "{asked}");
        assert!(answer.body.contains(&format!("\"code\":{code}")), "{asked}: {}", answer.body);
    }
}

#[testkit::test]
async fn a_legacy_peer_is_refused_in_json_rpc_of_its_own_era() {
    let server = modern(Wire::Http).await;
    let url = url(&server);
    for revision in LEGACY {
        let live = id_of(&session(&server, revision, json!({})).await);
        let list = request("l", "tools/list", json!({})).to_string();
        let (id, gone) = (("Mcp-Session-Id", live.as_str()), ("Mcp-Session-Id", "gone"));
        let mut met = BTreeMap::new();
        for (headers, body, status) in [
            (vec![id], "{", 400),
            (vec![], list.as_str(), 400),
            (vec![id, ("Origin", "http://evil.example")], &list, 403),
            (vec![gone], &list, 404),
            (vec![id, ("Accept", "text/html")], &list, 406),
            (vec![id, ("Content-Type", "text/plain")], &list, 415),
        ] {
            let answer = fetch(url, "POST", &headers, body).await;
            assert_eq!(answer.status, status, "{revision} {headers:?}");
            met.insert(status, answer.error().0);
        }
        assert!(met.values().all(|code| (-32700..=-32600).contains(code)), "{revision}: {met:?}");
    }
}
