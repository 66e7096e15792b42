//! Which era a message belongs to, on one endpoint that serves both.
//!
//! Beside the obligations these are the faults of the field's *eras and handshakes* that concern a server.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use testkit::matrix::REVISIONS;
use testkit::{
    Arrival, Between, Client, LATEST_LEGACY, LEGACY, LEGACY_WIRES, MODERN, Reply, WIRES, Wire, covers,
    header, modern_headers,
};

use crate::{DATELINE, legacy, modern};

/// The `_meta` key that makes a request modern.
pub(crate) const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The `_meta` key of what the client can do.
pub(crate) const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The `_meta` key of the least level that is logged.
pub(crate) const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The `_meta` key of who answers.
pub(crate) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// Every revision, in the order in which it is offered.
pub(crate) const OFFERED: [&str; 5] = [MODERN, LEGACY[3], LEGACY[2], LEGACY[1], LEGACY[0]];

/// A request.
pub(crate) fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

/// A `_meta` that names this version, and no capabilities.
pub(crate) fn meta(version: impl Into<Value>) -> Value {
    json!({VERSION: version.into(), CAPABILITIES: {}})
}

/// The params of an echo, with this `_meta`.
pub(crate) fn echo(meta: Value) -> Value {
    json!({"name": "echo", "arguments": {"message": "hi"}, "_meta": meta})
}

/// The headers that fit a request.
pub(crate) fn fitting(request: &Value) -> Vec<(&'static str, String)> {
    modern_headers(request["method"].as_str().unwrap(), &request["params"])
}

/// Headers as they are passed on.
pub(crate) fn lent<'a>(headers: &'a [(&'a str, String)]) -> Vec<(&'a str, &'a str)> {
    headers.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

/// Sends a request and waits for its response.
pub(crate) async fn ask(client: &mut Client, request: &Value, headers: &[(&str, &str)]) -> Reply {
    client.send(request, headers).await;
    client.reply(&request["id"]).await
}

/// Sends a request with the headers that fit it, and these, and waits for its response.
pub(crate) async fn ask_fitting(client: &mut Client, request: &Value, more: &[(&str, &str)]) -> Reply {
    let fitting = fitting(request);
    let headers = [&lent(&fitting)[..], more].concat();
    ask(client, request, &headers).await
}

/// Another client of the server that this one started.
pub(crate) fn beside(client: &Client) -> Client {
    Client::connect(client.program.as_ref().unwrap().url.as_deref().unwrap())
}

/// The status of an HTTP response; over stdio there is none.
pub(crate) fn status(wire: Wire, status: u16) -> Option<u16> {
    (wire == Wire::Http).then_some(status)
}

/// A modern answer says what it is and who gave it; a legacy one does neither.
fn is_modern(reply: &Reply) -> bool {
    let result = reply.result();
    let marks = [!result["resultType"].is_null(), !result["_meta"][SERVER_INFO].is_null()];
    assert!(marks == [true; 2] || marks == [false; 2], "half of an era: {result}");
    marks[0]
}

/// A live session of the server that another client started.
async fn session(beside_of: &Client, revision: &'static str, capabilities: Value) -> Client {
    let mut client = beside(beside_of);
    client.handshake(revision, capabilities).await;
    assert!(client.session.is_some(), "{revision}");
    client
}

/// What a session answers to a request with the modern key in it, whatever the key says: what it always answers.
async fn owns_the_key(session: &mut Client, headers: &[(&str, &str)], told: &str) {
    for (at, version) in [json!(MODERN), json!("2031-01-01"), json!(7), Value::Null].into_iter().enumerate() {
        let asked = request(format!("{told} {at}"), "tools/call", echo(meta(version)));
        let reply = ask(session, &asked, headers).await;
        assert_eq!(reply.said(), "hi", "{told}");
        assert!(!is_modern(&reply), "{told}: {}", reply.message);
        let asked = request(format!("{told} d{at}"), "server/discover", json!({"_meta": meta(MODERN)}));
        let reply = ask(session, &asked, headers).await;
        assert_eq!(reply.code(), -32601, "{told}: a session has no server/discover");
        // Capabilities in the key do not add to those of the session, which are none.
        let able = json!({VERSION: MODERN, CAPABILITIES: {"sampling": {}}});
        let params = json!({"name": "test_sampling", "arguments": {"prompt": "?"}, "_meta": able});
        let reply = ask(session, &request(format!("{told} s{at}"), "tools/call", params), headers).await;
        assert_eq!(reply.code(), -32600, "{told}: {}", reply.message);
        assert!(reply.before.is_empty(), "{told}: nothing is asked: {:?}", reply.before);
    }
}

#[testkit::test]
async fn era_01_the_body_decides_but_a_live_session_owns_the_key() {
    let server = modern(Wire::Http).await;
    let mut ended = session(&server, LATEST_LEGACY, json!({})).await;
    let over = ended.exchange("DELETE", &[], Vec::new());
    assert!(ended.whole(over).await.0.status < 300);
    let mut ids = vec![String::new(), "never given".to_owned(), ended.session.clone().unwrap()];
    let mut sessions = Vec::new();
    for revision in LEGACY {
        let session = session(&server, revision, json!({})).await;
        ids.push(session.session.clone().unwrap());
        sessions.push((revision, session));
    }
    // A version in the body, and the header that says so: modern, whatever a session id says.
    let mut client = beside(&server);
    for (at, id) in ids.iter().enumerate() {
        let asked = request(format!("m{at}"), "tools/call", echo(meta(MODERN)));
        let reply = ask_fitting(&mut client, &asked, &[("mcp-session-id", id)]).await;
        assert_eq!((reply.said(), reply.status()), ("hi", Some(200)), "{id}");
        assert!(is_modern(&reply), "{id}: {}", reply.message);
        let asked = request(format!("f{at}"), "tools/call", echo(meta("2031-01-01")));
        let reply = ask_fitting(&mut client, &asked, &[("mcp-session-id", id)]).await;
        assert_eq!((reply.code(), reply.status()), (-32022, Some(400)), "{id}");
    }
    // With the session's own header, or none, the key is the peer's own data.
    for (revision, session) in &mut sessions {
        owns_the_key(session, &[], &format!("{revision}, its header")).await;
        owns_the_key(session, &[("mcp-protocol-version", "")], &format!("{revision}, no header")).await;
        // The header of another revision leads out of the session: there the body is modern, and they differ.
        let other = if *revision == LEGACY[0] { LEGACY[1] } else { LEGACY[0] };
        let asked = request("o", "tools/call", echo(meta(MODERN)));
        let reply = ask(session, &asked, &[("mcp-protocol-version", other)]).await;
        assert_eq!((reply.code(), reply.status()), (-32020, Some(400)), "{revision}");
    }
    for revision in LEGACY {
        let mut client = modern(Wire::Stdio).await;
        assert!(is_modern(&ask(&mut client, &request("m", "tools/call", echo(meta(MODERN))), &[]).await));
        client.handshake(revision, json!({})).await;
        owns_the_key(&mut client, &[], &format!("{revision}, its pipe")).await;
        // HTTP+SSE is of sessions alone.
        let (mut client, _) = legacy(Wire::Sse, revision, json!({})).await;
        owns_the_key(&mut client, &[], &format!("{revision}, its stream")).await;
    }
}

#[testkit::test]
async fn era_02_initialize_selects_legacy_for_the_session_or_the_rest_of_the_pipe() {
    for wire in WIRES {
        for revision in LEGACY {
            let mut client = modern(wire).await;
            // One with a version in its `_meta` is a modern request of a method that is gone: it selects nothing.
            let params = json!({
                "protocolVersion": revision,
                "capabilities": {},
                "clientInfo": {"name": "testkit", "version": "1"},
                "_meta": meta(MODERN),
            });
            let reply = ask_fitting(&mut client, &request("m", "initialize", params.clone()), &[]).await;
            assert_eq!((reply.code(), reply.status()), (-32601, status(wire, 404)), "{wire:?} {revision}");
            // One that is refused selects nothing either.
            let refused = ask(&mut client, &request("r", "initialize", json!({})), &[]).await;
            assert_eq!(refused.code(), -32602, "{wire:?} {revision}");
            let minted = refused.head.as_ref().and_then(|head| header(&head.headers, "mcp-session-id"));
            assert_eq!(minted, None, "{wire:?} {revision}");
            assert!(is_modern(&client.call("echo", json!({"message": "hi"})).await), "{wire:?} {revision}");
            // A modern call that runs meanwhile ends in its own form.
            let slow = json!({"name": "slow_compute", "arguments": {"seconds": 0.2}});
            let running = client.begin("tools/call", slow).await;
            // Other keys in `_meta` mark no era.
            let mut params = params;
            params["_meta"] = json!({"progressToken": 1, CAPABILITIES: {}, "example.org/key": MODERN});
            let opened = ask(&mut client, &request("i", "initialize", params), &[]).await;
            assert_eq!(opened.result()["protocolVersion"], revision, "{wire:?}");
            assert!(!is_modern(&opened), "{wire:?} {revision}");
            if let Some(head) = &opened.head {
                client.session = Some(header(&head.headers, "mcp-session-id").unwrap().to_owned());
            }
            client.revision = Some(revision);
            client.notify("notifications/initialized", json!({})).await;
            let inside = client.call("echo", json!({"message": "hi"})).await;
            assert!(!is_modern(&inside), "{wire:?} {revision}: {}", inside.message);
            assert!(is_modern(&client.reply(&running).await), "{wire:?} {revision}");
            assert!(!is_modern(&client.request("tools/list", json!({})).await), "{wire:?} {revision}");
            if wire == Wire::Http {
                // Only the session: who does not name it is as before.
                let mut other = beside(&client);
                assert!(is_modern(&other.call("echo", json!({"message": "hi"})).await), "{revision}");
                let reply = ask(&mut other, &request("n", "tools/list", json!({})), &[]).await;
                assert_eq!((reply.code(), reply.status()), (-32602, Some(400)), "{revision}");
            }
        }
    }
}

/// Whether an error tells how to come in, in either era.
fn names_both_ways(reply: &Reply) -> bool {
    let told = reply.error()["message"].as_str().unwrap();
    [VERSION, CAPABILITIES, "initialize"].iter().chain(&OFFERED).all(|word| told.contains(word))
}

#[testkit::test]
async fn era_03_what_belongs_to_no_era_is_told_both_ways_in() {
    for wire in WIRES {
        // What belongs to no era is of no revision either.
        covers(&REVISIONS, wire, Between::Nothing);
        let mut client = modern(wire).await;
        let methods = [
            "tools/list",
            "tools/call",
            "server/discover",
            "subscriptions/listen",
            "logging/setLevel",
            "no/method",
        ];
        for (at, method) in methods.into_iter().enumerate() {
            let mut unmarked = request(format!("{method} bare"), method, json!({}));
            unmarked.as_object_mut().unwrap().remove("params");
            let requests = [
                unmarked,
                request(at, method, json!({})),
                request(format!("{method} meta"), method, json!({"_meta": {CAPABILITIES: {}}})),
                // The key counts in `_meta` and nowhere else.
                request(
                    format!("{method} astray"),
                    method,
                    json!({VERSION: MODERN, "arguments": {VERSION: MODERN}}),
                ),
            ];
            for asked in requests {
                // Neither a version header nor a method header makes an era of it.
                let version = [("mcp-protocol-version", MODERN), ("mcp-method", method)];
                for headers in [&[][..], &version, &[("mcp-protocol-version", LATEST_LEGACY)]] {
                    let reply = ask(&mut client, &asked, headers).await;
                    assert_eq!(reply.code(), -32602, "{wire:?} {asked}");
                    assert_eq!(reply.status(), status(wire, 400), "{wire:?} {asked}");
                    assert!(names_both_ways(&reply), "{wire:?}: {}", reply.message);
                }
            }
        }
        // A ping is answered, in the form that every revision of its era has.
        let reply = ask(&mut client, &json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}), &[]).await;
        assert_eq!(reply.message, json!({"jsonrpc": "2.0", "id": "p", "result": {}}), "{wire:?}");
        assert_eq!(reply.status(), status(wire, 200), "{wire:?}");
        // A notification is not.
        for method in
            ["notifications/initialized", "notifications/cancelled", "notifications/none", "tools/list"]
        {
            for params in [json!({}), json!({"_meta": {}}), json!({"requestId": 99, "_meta": meta(MODERN)})] {
                let exchange = client.notify(method, params).await;
                if wire == Wire::Http {
                    let (head, messages) = client.whole(exchange).await;
                    assert_eq!((head.status, messages), (202, vec![]), "{method}");
                }
            }
        }
        assert!(is_modern(&client.call("echo", json!({"message": "hi"})).await), "{wire:?}");
        // Nothing of this closed a way in.
        client.handshake(LATEST_LEGACY, json!({})).await;
        assert!(!is_modern(&client.call("echo", json!({"message": "hi"})).await), "{wire:?}");
        let rest = client.leftovers();
        let said = |a: &&Arrival| matches!(a, Arrival::Message(..) | Arrival::Rubbish(..));
        assert_eq!(rest.iter().find(said).map(|a| format!("{a:?}")), None, "{wire:?}: nothing else was said");
    }
}

#[testkit::test]
async fn era_02_era_03_an_event_stream_is_a_session_once_initialize_opened_it_and_nothing_before() {
    let told = |reply: &Reply| {
        let told = reply.error()["message"].as_str().unwrap().to_owned();
        assert!(["initialize"].iter().chain(&LEGACY).all(|word| told.contains(word)), "{told}");
        // There is one way in.
        assert!(!told.contains(MODERN) && !told.contains(VERSION), "{told}");
    };
    let server = modern(Wire::Http).await;
    let url = server.program.as_ref().unwrap().url.clone().unwrap();
    // What belongs to no era is of no revision either.
    covers(&LEGACY, Wire::Sse, Between::Nothing);
    for revision in LEGACY {
        let mut client = Client::over(Wire::Sse, &url).await;
        for method in
            ["tools/list", "server/discover", "subscriptions/listen", "logging/setLevel", "no/method"]
        {
            for params in [json!({}), json!({"_meta": {CAPABILITIES: {}}}), json!({"_meta": meta(MODERN)})] {
                let id = format!("{method} {params}");
                let reply = ask(&mut client, &request(id, method, params), &[]).await;
                assert_eq!(reply.code(), -32602, "{revision}: {}", reply.message);
                told(&reply);
            }
        }
        let reply = ask(&mut client, &json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}), &[]).await;
        assert_eq!(reply.message, json!({"jsonrpc": "2.0", "id": "p", "result": {}}), "{revision}");
        for method in ["notifications/initialized", "notifications/none", "tools/list"] {
            client.notify(method, json!({})).await;
        }
        // One that is refused opens nothing.
        let refused = ask(&mut client, &request("r", "initialize", json!({})), &[]).await;
        assert_eq!(refused.code(), -32602, "{revision}");
        told(&ask(&mut client, &request("still", "tools/list", json!({})), &[]).await);
        let opened = client.handshake(revision, json!({})).await;
        assert_eq!(opened.result()["protocolVersion"], revision);
        assert!(opened.before.is_empty(), "{revision}: no notification was answered: {:?}", opened.before);
        assert!(!is_modern(&opened), "{revision}");
        assert!(!is_modern(&client.call("echo", json!({"message": "hi"})).await), "{revision}");
        // Only this stream: another one is as before.
        let mut other = Client::over(Wire::Sse, &url).await;
        told(&ask(&mut other, &request("n", "tools/list", json!({})), &[]).await);
    }
}

/// What one launch answers to a client of no era, of the modern one and of each handshake revision: all that was said,
/// and whether each era is served.
async fn launched(wire: Wire, args: &[&str]) -> (Vec<(Option<u16>, String)>, (bool, bool)) {
    let (mut said, mut eras) = (Vec::new(), (false, false));
    let mut first = Client::start(wire, DATELINE, args).await;
    let bare = ask(&mut first, &request("b", "tools/list", json!({})), &[]).await;
    said.push((bare.status(), bare.text));
    let discover = request("d", "server/discover", json!({"_meta": meta(MODERN)}));
    let discovered = ask_fitting(&mut first, &discover, &[]).await;
    eras.0 = discovered.message.get("result").is_some();
    said.push((discovered.status(), discovered.text));
    for revision in LEGACY {
        // A pipe is one session: the next one is another launch of the same configuration.
        let mut client = match &first.program.as_ref().unwrap().url {
            Some(url) => Client::over(wire, url).await,
            None => Client::start(wire, DATELINE, args).await,
        };
        let opened = client.initialize(revision, json!({})).await;
        eras.1 |= opened.message.get("result").is_some();
        said.push((opened.status(), opened.text));
    }
    (said, eras)
}

#[testkit::test]
async fn era_04_a_configuration_serves_the_same_eras_at_every_launch() {
    for wire in LEGACY_WIRES {
        let is_sse = wire == Wire::Sse;
        for (args, eras) in [
            (&["demo"][..], (!is_sse, true)),
            (&["demo", "--era", "modern"], (true, false)),
            (&["demo", "--era", "legacy"], (false, true)),
        ] {
            if is_sse && !eras.1 {
                // There is no such transport where no session is served.
                let server = Client::start(Wire::Http, DATELINE, args).await;
                let url = testkit::sse_url(server.program.as_ref().unwrap().url.as_deref().unwrap());
                let answer = testkit::http(&url, "GET", &[("accept", "text/event-stream")], Vec::new()).await;
                assert_eq!(answer.unwrap().status(), 404, "{args:?}");
                continue;
            }
            let mut launches = Vec::new();
            for _ in 0..3 {
                let (said, served) = launched(wire, args).await;
                assert_eq!(served, eras, "{wire:?} {args:?}: modern, legacy");
                launches.push(said);
            }
            assert!(launches.windows(2).all(|two| two[0] == two[1]), "{wire:?} {args:?}: {launches:#?}");
        }
    }
}

/// What a client's model says.
pub(crate) fn sampled(text: &str) -> Value {
    json!({"role": "assistant", "content": {"type": "text", "text": text}, "model": "m"})
}

#[testkit::test]
async fn era_05_a_server_set_to_modern_only_says_so_and_has_no_sessions() {
    let info = json!({"name": "testkit", "version": "1"});
    for wire in WIRES {
        let mut client = Client::start(wire, DATELINE, &["demo", "--era", "modern"]).await;
        for revision in LEGACY.into_iter().chain([MODERN, "1999-01-01"]) {
            let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": info});
            let reply = ask(&mut client, &request(revision, "initialize", params), &[]).await;
            assert_eq!((reply.code(), reply.status()), (-32602, status(wire, 400)), "{wire:?} {revision}");
            let told = reply.error()["message"].as_str().unwrap();
            assert!(told.contains(MODERN) && told.contains(VERSION), "{wire:?} {revision}: {told}");
            assert!(!LEGACY.iter().any(|other| told.contains(other)), "{wire:?} {revision}: {told}");
            let minted = reply.head.as_ref().and_then(|head| header(&head.headers, "mcp-session-id"));
            assert_eq!(minted, None, "{wire:?} {revision}");
        }
        // What belongs to a session is of no era here.
        for method in ["ping", "tools/list", "logging/setLevel"] {
            let reply = ask(&mut client, &request(method, method, json!({})), &[]).await;
            assert_eq!((reply.code(), reply.status()), (-32602, status(wire, 400)), "{wire:?} {method}");
        }
        let discovered = client.request("server/discover", json!({})).await;
        assert_eq!(discovered.result()["supportedVersions"], json!([MODERN]), "{wire:?}");
        let legacy = request("l", "server/discover", json!({"_meta": meta(LATEST_LEGACY)}));
        let reply = ask_fitting(&mut client, &legacy, &[]).await;
        assert_eq!(
            (reply.code(), &reply.error()["data"]["supported"]),
            (-32022, &json!([MODERN])),
            "{wire:?}"
        );
        // Where there are headers, those of sessions count for nothing.
        let given = [("mcp-session-id", "any"), ("last-event-id", "7")];
        let reply = ask_fitting(&mut client, &request("e", "tools/call", echo(meta(MODERN))), &given).await;
        assert_eq!((reply.said(), reply.status()), ("hi", status(wire, 200)), "{wire:?}");
        assert!(is_modern(&reply), "{wire:?}");
        if wire != Wire::Http {
            continue;
        }
        for verb in ["GET", "DELETE"] {
            for more in [
                &[][..],
                &given,
                &[("mcp-protocol-version", MODERN)],
                &[("mcp-session-id", "any"), ("mcp-protocol-version", LATEST_LEGACY)],
            ] {
                let headers = [&[("accept", "text/event-stream"), ("content-type", "")], more].concat();
                let exchange = client.exchange(verb, &headers, Vec::new());
                let head = client.head(exchange).await;
                assert_eq!(
                    (head.status, header(&head.headers, "allow")),
                    (405, Some("POST")),
                    "{verb} {more:?}"
                );
            }
        }
        // Nor is there the transport of the first revision.
        let at = testkit::sse_url(client.program.as_ref().unwrap().url.as_deref().unwrap());
        let sse = testkit::http(&at, "GET", &[("accept", "text/event-stream")], Vec::new());
        assert_eq!(sse.await.unwrap().status(), 404);
    }
}

#[testkit::test]
async fn era_06_a_modern_request_sees_nothing_of_a_session_on_the_same_endpoint() {
    let server = modern(Wire::Http).await;
    for revision in LEGACY {
        let mut old =
            session(&server, revision, json!({"sampling": {}, "roots": {}, "elicitation": {}})).await;
        old.request("logging/setLevel", json!({"level": "debug"})).await.result();
        old.request("resources/subscribe", json!({"uri": "test://watched-resource"})).await.result();
        let stream = old.exchange("GET", &[], Vec::new());
        assert_eq!(old.head(stream).await.status, 200, "{revision}");
        let sampling = json!({"name": "test_sampling", "arguments": {"prompt": "old"}});
        let asking = old.begin("tools/call", sampling.clone()).await;
        let question = old.next("sampling/createMessage").await;

        let mut new = beside(&server);
        new.session = old.session.clone();
        // Its version.
        let discovered = new.request("server/discover", json!({})).await;
        assert!(is_modern(&discovered), "{revision}");
        // Its capabilities.
        let refused = new.call("test_missing_capability", json!({})).await;
        assert_eq!((refused.code(), refused.status()), (-32021, Some(400)), "{revision}");
        // Its log level.
        let logged = new.call("test_logging_tool", json!({})).await;
        assert_eq!((logged.said(), logged.before.len()), ("logged", 0), "{revision}: {:?}", logged.before);
        // Its subscriptions.
        let listen = json!({"notifications": {"toolsListChanged": true}});
        new.begin("subscriptions/listen", listen).await;
        new.next("notifications/subscriptions/acknowledged").await;
        new.call("touch_resource", json!({"uri": "test://watched-resource"})).await.result();
        let updated = old.next("notifications/resources/updated").await;
        assert_eq!(updated["params"]["uri"], "test://watched-resource", "{revision}");
        new.call("test_trigger_tool_change", json!({})).await.result();
        new.next("notifications/tools/list_changed").await;
        // Its pending questions: the same call asks anew, and an answer to one is none to the other.
        new.capabilities = json!({"sampling": {}});
        let interim = new.request("tools/call", sampling.clone()).await;
        assert_eq!(interim.result()["resultType"], "input_required", "{revision}");
        let mut retry = sampling;
        retry["requestState"] = interim.result()["requestState"].clone();
        retry["inputResponses"] = json!({"sampling": sampled("new")});
        let done = new.request("tools/call", retry).await;
        assert_eq!((done.said(), is_modern(&done)), ("LLM response: new", true), "{revision}");
        let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": sampled("old")});
        let accepted = old.send(&answer, &[]).await;
        assert_eq!(old.whole(accepted).await.0.status, 202, "{revision}");
        let done = old.reply(&asking).await;
        assert_eq!((done.said(), is_modern(&done)), ("LLM response: old", false), "{revision}");
        let stray = new.leftovers().into_iter().find(|a| matches!(a, Arrival::Message(..)));
        assert!(stray.is_none(), "{revision}: {stray:?}");
        new.session = None;
    }
}

#[testkit::test]
async fn era_07_every_revision_served_is_named_the_modern_ones_first() {
    for wire in WIRES {
        for (args, served) in [(&["demo"][..], &OFFERED[..]), (&["demo", "--era", "modern"], &OFFERED[..1])] {
            let mut client = Client::start(wire, DATELINE, args).await;
            let discovered = client.request("server/discover", json!({})).await;
            assert_eq!(discovered.result()["supportedVersions"], json!(served), "{wire:?} {args:?}");
            // A handshake revision has no requests that stand alone, whether it is served or not.
            for requested in LEGACY.into_iter().chain(["2031-01-01"]) {
                for method in ["server/discover", "tools/list"] {
                    let asked =
                        request(format!("{requested} {method}"), method, json!({"_meta": meta(requested)}));
                    let reply = ask_fitting(&mut client, &asked, &[]).await;
                    assert_eq!(reply.code(), -32022, "{wire:?} {requested}");
                    assert_eq!(reply.status(), status(wire, 400), "{wire:?} {requested}");
                    let data = json!({"supported": served, "requested": requested});
                    assert_eq!(reply.error()["data"], data, "{wire:?} {args:?}");
                }
            }
        }
    }
}

#[testkit::test]
async fn era_08_of_several_faults_the_first_in_order_is_named() {
    let mut client = modern(Wire::Http).await;
    let unserved = "2031-01-01";
    let incomplete = json!({VERSION: unserved});
    let wrong_level = json!({VERSION: MODERN, CAPABILITIES: {}, LOG_LEVEL: "loud"});
    // Each request has the fault that its code is for and every one that comes later in the order.
    let cases = [
        (incomplete, "1999-01-01", "wrong", "no/method", -32602, 400),
        (meta(unserved), "1999-01-01", "wrong", "no/method", -32020, 400),
        (meta(unserved), unserved, "wrong", "no/method", -32022, 400),
        (meta(MODERN), MODERN, "wrong", "no/method", -32020, 400),
        (wrong_level.clone(), MODERN, "no/method", "no/method", -32601, 404),
        (wrong_level, MODERN, "tools/list", "tools/list", -32602, 200),
    ];
    for (at, (meta, version, named, method, code, status)) in cases.into_iter().enumerate() {
        let asked = request(at, method, json!({"_meta": meta}));
        let reply =
            ask(&mut client, &asked, &[("mcp-protocol-version", version), ("mcp-method", named)]).await;
        assert_eq!((reply.code(), reply.status()), (code, Some(status)), "case {at}: {}", reply.message);
        if code == -32020 {
            // Which header it is tells which of the two places in the order.
            let told = reply.error()["message"].as_str().unwrap().to_ascii_lowercase();
            let header = if at == 1 { "mcp-protocol-version" } else { "mcp-method" };
            assert!(told.contains(header), "case {at}: {told}");
        }
    }
    // Text that is no JSON comes before all of it; and a missing field before a missing header.
    let headers = [("mcp-protocol-version", "1999-01-01"), ("mcp-method", "wrong")];
    let cut = request("cut", "no/method", json!({"_meta": {VERSION: unserved}})).to_string();
    let exchange = client.send_text(&cut[..cut.len() - 1], &headers).await;
    let (head, messages) = client.whole(exchange).await;
    assert_eq!((head.status, &messages[0]["error"]["code"]), (400, &json!(-32700)));
    for (at, (meta, code)) in
        [(json!({VERSION: MODERN}), -32602), (meta(MODERN), -32020)].into_iter().enumerate()
    {
        let reply =
            ask(&mut client, &request(format!("h{at}"), "tools/list", json!({"_meta": meta})), &[]).await;
        assert_eq!((reply.code(), reply.status()), (code, Some(400)), "{}", reply.message);
    }
}

#[testkit::test]
async fn initialize_needs_no_header_of_a_later_era() {
    let server = modern(Wire::Http).await;
    for revision in LEGACY {
        let params = json!({
            "protocolVersion": revision,
            "capabilities": {},
            "clientInfo": {"name": "old", "version": "1"},
        });
        let own = ("mcp-protocol-version", revision);
        let foreign = [("mcp-protocol-version", MODERN), ("mcp-method", "tools/list"), ("mcp-name", "x")];
        for headers in [&[][..], &[own], &foreign] {
            let reply = ask(&mut beside(&server), &request(0, "initialize", params.clone()), headers).await;
            assert_eq!(reply.result()["protocolVersion"], revision, "{headers:?}");
            assert_eq!(reply.status(), Some(200), "{headers:?}");
        }
    }
}

#[testkit::test]
async fn a_version_from_the_future_is_not_taken_for_a_known_one() {
    for wire in WIRES {
        let mut client = modern(wire).await;
        let asked = request("f", "tools/list", json!({"_meta": meta("2031-01-01")}));
        let reply = ask_fitting(&mut client, &asked, &[]).await;
        assert_eq!(reply.code(), -32022, "{wire:?}");
        let data = reply.error()["data"].as_object().unwrap();
        assert_eq!(data.keys().collect::<Vec<_>>(), ["supported", "requested"], "{wire:?}");
        assert!(data["supported"].as_array().unwrap().contains(&json!(MODERN)), "{wire:?}");
        let opened = client.handshake("2031-01-01", json!({})).await;
        assert_eq!(opened.result()["protocolVersion"], LATEST_LEGACY, "{wire:?}");
    }
}

/// Every key in a value, at any depth.
fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| keys(value, found)),
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            found.insert(key.clone());
            keys(value, found);
        }),
        _ => {}
    }
}

/// One request of every kind, with the code of the error that is due, 0 for a result.
fn everything() -> Vec<(&'static str, Value, i64)> {
    let call = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    vec![
        ("ping", json!({}), 0),
        ("logging/setLevel", json!({"level": "debug"}), 0),
        ("tools/list", json!({}), 0),
        ("tools/call", call("add", json!({"a": 1, "b": 2})), 0),
        ("tools/call", call("test_multiple_content_types", json!({})), 0),
        ("tools/call", call("test_error_handling", json!({})), 0),
        ("tools/call", call("test_tool_with_logging", json!({})), 0),
        ("tools/call", json!({"name": "test_tool_with_progress", "_meta": {"progressToken": 1}}), 0),
        ("resources/list", json!({}), 0),
        ("resources/templates/list", json!({}), 0),
        ("resources/read", json!({"uri": "demo://welcome"}), 0),
        ("resources/subscribe", json!({"uri": "demo://welcome"}), 0),
        ("resources/unsubscribe", json!({"uri": "demo://welcome"}), 0),
        ("prompts/list", json!({}), 0),
        ("prompts/get", call("haiku", json!({"topic": "rain"})), 0),
        ("completion/complete", haiku_topic(), 0),
        ("tools/call", call("test_missing_capability", json!({})), -32600),
        ("tools/call", call("none", json!({})), -32602),
        ("resources/read", json!({"uri": "demo://none"}), -32002),
        ("logging/setLevel", json!({"level": "loud"}), -32602),
        ("server/discover", json!({"_meta": meta(MODERN)}), -32601),
        ("subscriptions/listen", json!({"notifications": {}}), -32601),
        ("no/method", json!({}), -32601),
    ]
}

/// Params of a completion.
pub(crate) fn haiku_topic() -> Value {
    json!({"ref": {"type": "ref/prompt", "name": "haiku"}, "argument": {"name": "topic", "value": "r"}})
}

#[testkit::test]
async fn nothing_of_the_modern_era_reaches_a_legacy_client() {
    for wire in LEGACY_WIRES {
        for revision in LEGACY {
            let (mut client, opened) = legacy(wire, revision, json!({})).await;
            let mut heard = vec![opened.message];
            for (method, params, code) in everything() {
                let reply = client.request(method, params).await;
                let given = reply.message["error"]["code"].as_i64().unwrap_or_default();
                assert_eq!(given, code, "{wire:?} {revision} {method}: {}", reply.message);
                assert_eq!(reply.status(), status(wire, 200), "{wire:?} {revision} {method}");
                heard.extend(reply.before);
                heard.push(reply.message);
            }
            let mut found = BTreeSet::new();
            heard.iter().for_each(|message| keys(message, &mut found));
            let modern = |key: &&String| {
                ["resultType", "ttlMs", "cacheScope", "supportedVersions", "inputRequests", "requestState"]
                    .contains(&key.as_str())
                    || key.starts_with("io.modelcontextprotocol/")
            };
            assert_eq!(found.iter().find(modern), None, "{wire:?} {revision}");
        }
    }
}

#[testkit::test]
async fn each_revision_gets_the_fields_that_it_has() {
    const TOOL: [&[&str]; 5] = [
        &["name", "description", "inputSchema"],
        &["name", "description", "inputSchema", "annotations"],
        &["name", "description", "inputSchema", "annotations", "title", "outputSchema", "_meta"],
        &["name", "description", "inputSchema", "annotations", "title", "outputSchema", "_meta", "icons"],
        &["name", "description", "inputSchema", "annotations", "title", "outputSchema", "_meta", "icons"],
    ];
    fn sorted<'a>(keys: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
        keys.into_iter().collect::<BTreeSet<_>>().into_iter().collect()
    }
    fn members(value: &Value) -> Vec<&str> {
        sorted(value.as_object().unwrap().keys().map(String::as_str))
    }
    for wire in WIRES {
        let mut names = Vec::new();
        for (at, tool) in TOOL.into_iter().enumerate() {
            let mut client = modern(wire).await;
            if let Some(revision) = LEGACY.get(at) {
                let opened = client.handshake(revision, json!({})).await;
                let info = &opened.result()["serverInfo"];
                let (titled, completes) = (at >= 2, at >= 1);
                assert_eq!(info.get("title").is_some(), titled, "{wire:?} {revision}: {info}");
                let capabilities = &opened.result()["capabilities"];
                assert_eq!(capabilities.get("completions").is_some(), completes, "{wire:?} {revision}");
            }
            let listed = client.request("tools/list", json!({})).await;
            let tools = listed.result()["tools"].as_array().unwrap();
            let add = tools.iter().find(|tool| tool["name"] == "add").unwrap();
            assert_eq!(members(add), sorted(tool.iter().copied()), "{wire:?} {:?}", LEGACY.get(at));
            names.push(tools.iter().map(|tool| tool["name"].clone()).collect::<Vec<_>>());
            let sum = client.call("add", json!({"a": 40, "b": 2})).await;
            let structured = sum.result().get("structuredContent").is_some();
            assert_eq!(structured, at >= 2, "{wire:?} {:?}", LEGACY.get(at));
        }
        // And no era hides a tool from another.
        assert!(names.windows(2).all(|two| two[0] == two[1]), "{wire:?}: {names:?}");
    }
}

#[testkit::test]
async fn a_method_that_is_gone_is_unknown_to_a_modern_peer_on_a_pipe_too() {
    let mut client = modern(Wire::Stdio).await;
    for (method, params) in [
        ("initialize", json!({"protocolVersion": MODERN, "capabilities": {}})),
        ("ping", json!({})),
        ("logging/setLevel", json!({"level": "info"})),
        ("resources/subscribe", json!({"uri": "demo://welcome"})),
        ("resources/unsubscribe", json!({"uri": "demo://welcome"})),
    ] {
        assert_eq!(client.request(method, params).await.code(), -32601, "{method}");
    }
}
