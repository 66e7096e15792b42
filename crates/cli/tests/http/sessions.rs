//! Session ids: given, required, ended, and absent in the modern era.

use std::collections::BTreeSet;

use serde_json::json;
use testkit::{Arrival, LATEST_LEGACY, LEGACY, MODERN, Wire};

use super::{
    discover, fetch, fetch_modern, id_of, initialize, is_cancelled, post, session, url, with_progress,
};
use crate::era::{ask, beside, echo, meta, request};
use crate::{long_countdown, modern};

#[testkit::test]
async fn http_07_a_session_id_is_visible_ascii_and_has_128_random_bits() {
    let server = modern(Wire::Http).await;
    let mut ids = BTreeSet::new();
    let mut seen: Vec<BTreeSet<u8>> = Vec::new();
    for at in 0..400 {
        let revision = LEGACY[at % LEGACY.len()];
        let answer = fetch(url(&server), "POST", &[], &initialize(revision).to_string()).await;
        assert_eq!(answer.status, 200, "{revision}");
        let id = answer.header("mcp-session-id").unwrap_or_else(|| panic!("{revision}: no id"));
        assert!(id.bytes().all(|b| (0x21..=0x7e).contains(&b)), "{revision}: {id:?}");
        seen.resize(seen.len().max(id.len()), BTreeSet::new());
        id.bytes().zip(&mut seen).for_each(|(byte, at)| {
            at.insert(byte);
        });
        assert!(ids.insert(id.to_owned()), "{id} was given twice");
    }
    // What the places of the id hold, as bits: a counter or a clock would leave most of them unchanged.
    #[allow(clippy::cast_precision_loss)]
    let bits: f64 = seen.iter().map(|bytes| (bytes.len() as f64).log2()).sum();
    assert!(bits >= 128.0, "{bits} bits");
}

#[testkit::test]
async fn http_08_a_request_without_the_id_after_initialize_is_400() {
    let server = modern(Wire::Http).await;
    for revision in LEGACY {
        let mut live = session(&server, revision, json!({})).await;
        for (method, params) in [
            ("tools/list", json!({})),
            ("tools/call", json!({"name": "echo", "arguments": {"message": "hi"}})),
            ("logging/setLevel", json!({"level": "info"})),
        ] {
            for version in [revision, ""] {
                let headers = [("mcp-session-id", ""), ("mcp-protocol-version", version)];
                let asked = request(format!("{method} {version}"), method, params.clone());
                let reply = ask(&mut live, &asked, &headers).await;
                assert_eq!(
                    (reply.status(), reply.code()),
                    (Some(400), -32602),
                    "{revision} {method} {version:?}"
                );
            }
        }
        assert_eq!(
            live.call("echo", json!({"message": "hi"})).await.said(),
            "hi",
            "{revision}: with it all is well"
        );
    }
}

/// Whatever names a session that is not there is told so.
async fn is_gone(url: &str, revision: &str, id: &str) {
    let headers = [("Mcp-Session-Id", id), ("MCP-Protocol-Version", revision)];
    let only = &headers[..1];
    for headers in [&headers[..], only] {
        let asked = request("gone", "tools/list", json!({}));
        let answer = post(url, headers, &asked).await;
        let (code, of) = answer.error();
        assert_eq!((answer.status, of), (404, Some(json!("gone"))), "{revision} {id}");
        assert!(!(-32099..=-32020).contains(&code), "{revision} {id}: {code} is of another era");
        for message in [
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"jsonrpc": "2.0", "id": 1, "result": {}}),
        ] {
            let answer = post(url, headers, &message).await;
            assert_eq!((answer.status, answer.error().1), (404, None), "{revision} {id} {message}");
        }
        for verb in ["GET", "DELETE"] {
            let answer = fetch(url, verb, headers, "").await;
            assert_eq!((answer.status, answer.error().1), (404, None), "{revision} {id} {verb}");
        }
    }
}

#[testkit::test]
async fn http_09_an_id_that_was_ended_or_never_given_is_404() {
    let server = modern(Wire::Http).await;
    for revision in LEGACY {
        let ended = id_of(&session(&server, revision, json!({})).await);
        let answer = fetch(url(&server), "DELETE", &[("Mcp-Session-Id", &ended)], "").await;
        assert!(answer.status < 300, "{revision}: {}", answer.status);
        for id in [ended.as_str(), "0", "00000000000000000000000000000000", "!\"~ {}"] {
            is_gone(url(&server), revision, id).await;
        }
    }
}

#[testkit::test]
async fn http_10_delete_ends_the_session_with_all_that_runs_in_it() {
    let mut server = modern(Wire::Http).await;
    for revision in LEGACY {
        let mut live = session(&server, revision, json!({})).await;
        let mut other = session(&server, revision, json!({})).await;
        let stream = live.exchange("GET", &[], Vec::new());
        assert_eq!(live.head(stream).await.status, 200, "{revision}");
        let running = json!(format!("ended with {revision}").replace(' ', "-"));
        let call = live.begin_as(running.clone(), "tools/call", long_countdown()).await;
        live.next("notifications/progress").await;
        let deleted = live.exchange("DELETE", &[], Vec::new());
        let (head, _) = live.whole(deleted).await;
        assert!([200, 204].contains(&head.status), "{revision}: {}", head.status);
        live.wait("the end of the GET", |a| matches!(a, Arrival::End(of) if *of == stream)).await;
        live.wait("the end of the call", |a| matches!(a, Arrival::End(of) if *of == call)).await;
        let rest = live.leftovers();
        let answered =
            rest.iter().any(|a| matches!(a, Arrival::Message(_, m, _) if m.get("id") == Some(&running)));
        assert!(!answered, "{revision}: {rest:?}");
        is_cancelled(&mut server, &running).await;
        is_gone(url(&server), revision, &id_of(&live)).await;
        assert_eq!(
            other.call("echo", json!({"message": "hi"})).await.said(),
            "hi",
            "{revision}: another one lives"
        );
    }
    // Where no session is named there is none to end.
    let answer = fetch(url(&server), "DELETE", &[], "").await;
    assert_eq!((answer.status, answer.error().1), (405, None));
}

#[testkit::test]
async fn http_11_a_version_that_is_not_the_session_s_is_400_and_changes_nothing() {
    let mut server = modern(Wire::Http).await;
    for revision in LEGACY {
        let mut live = session(&server, revision, json!({})).await;
        let id = id_of(&live);
        let stream = live.exchange("GET", &[], Vec::new());
        assert_eq!(live.head(stream).await.status, 200, "{revision}");
        let others = LEGACY.into_iter().filter(|other| *other != revision);
        let wrong = [MODERN, "2024-10-07", "2031-01-01", "banana", "2025-11-25, 2025-06-18", "null", "1"];
        for version in others.chain(wrong) {
            let told = format!("{version:?} in a session of {revision}");
            let headers = [("Mcp-Session-Id", id.as_str()), ("MCP-Protocol-Version", version)];
            for asked in [request("r", "tools/call", long_countdown()), request("r", "ping", json!({}))] {
                let answer = post(url(&server), &headers, &asked).await;
                let (code, of) = answer.error();
                assert_eq!((answer.status, of), (400, Some(json!("r"))), "{told}: {}", answer.body);
                assert!(!(-32099..=-32020).contains(&code), "{told}: {code} is of another era");
            }
            for message in [
                json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
                json!({"jsonrpc": "2.0", "id": 1, "result": {}}),
                json!([{"jsonrpc": "2.0", "id": 1, "method": "ping"}]),
            ] {
                let answer = post(url(&server), &headers, &message).await;
                if version == MODERN && message.get("method").is_some() {
                    // In that era no session is looked at, and a notification is not answered.
                    assert_eq!(answer.status, 202, "{told}: {message}");
                    continue;
                }
                let id = answer.error().1.filter(|id| !id.is_null());
                assert_eq!((answer.status, id), (400, None), "{told}: {message}");
            }
            for verb in ["GET", "DELETE"] {
                let answer = fetch(url(&server), verb, &headers, "").await;
                assert_eq!((answer.status, answer.error().1), (400, None), "{told}: {verb}");
            }
        }
        assert_eq!(live.call("echo", json!({"message": "hi"})).await.said(), "hi", "{revision}");
        let ended = live.leftovers().iter().any(|a| matches!(a, Arrival::End(of) if *of == stream));
        assert!(!ended, "{revision}: its stream is open");
    }
    // A call that had begun would be running still, and be cancelled with its session: nothing was begun.
    assert_eq!(server.call("cancelled_calls", json!({})).await.said(), "");
}

#[testkit::test]
async fn http_12_without_a_version_the_session_s_holds_and_without_a_session_2025_03_26() {
    let server = modern(Wire::Http).await;
    let mut lists = BTreeSet::new();
    for revision in LEGACY {
        let mut live = session(&server, revision, json!({})).await;
        let mut texts = Vec::new();
        for version in [revision, ""] {
            let asked = request("l", "tools/list", json!({}));
            let reply = ask(&mut live, &asked, &[("mcp-protocol-version", version)]).await;
            texts.push(reply.result().to_string());
        }
        assert_eq!(texts[0], texts[1], "{revision}");
        lists.insert(texts.remove(0));
        // The one revision that takes it.
        let batch = json!([{"jsonrpc": "2.0", "id": 1, "method": "ping"}]);
        let exchange = live.send(&batch, &[("mcp-protocol-version", "")]).await;
        let due = if revision == "2025-03-26" { 200 } else { 400 };
        assert_eq!(live.head(exchange).await.status, due, "{revision}");
    }
    assert!(lists.len() > 1, "the revisions cannot be told apart by what they list");
    // What cannot be read is refused in the form of a revision: only later ones have no id at all.
    for (version, id) in [("", Some(json!(null))), ("2025-03-26", Some(json!(null))), (LATEST_LEGACY, None)] {
        let answer = fetch(url(&server), "POST", &[("MCP-Protocol-Version", version)], "{").await;
        assert_eq!((answer.status, answer.error()), (400, (-32700, id)), "{version:?}");
    }
}

#[testkit::test]
async fn http_17_a_modern_request_gets_no_session_id() {
    let server = modern(Wire::Http).await;
    let url = url(&server);
    let live = id_of(&session(&server, LATEST_LEGACY, json!({})).await);
    for sent in ["", "made-up", &live] {
        let session = ("Mcp-Session-Id", sent);
        let progress = server.modern_params(with_progress());
        for asked in [
            discover("d"),
            request("e", "tools/call", echo(meta(MODERN))),
            request("p", "tools/call", progress),
            request("n", "no/method", json!({"_meta": meta(MODERN)})),
            request("v", "tools/list", json!({"_meta": meta("2031-01-01")})),
            request(
                "i",
                "initialize",
                json!({"protocolVersion": MODERN, "capabilities": {}, "_meta": meta(MODERN)}),
            ),
        ] {
            for wrong in [("X-Nothing", "wrong"), ("Mcp-Method", "wrong"), ("Accept", "text/html")] {
                let answer = fetch_modern(url, &asked, &[session, wrong]).await;
                assert_eq!(answer.header("mcp-session-id"), None, "{sent:?} {wrong:?} {asked}");
            }
        }
        let mut client = beside(&server);
        client.session = Some(sent.to_owned()).filter(|id| !id.is_empty());
        let listen = json!({"notifications": {"toolsListChanged": true}});
        let listen = client.begin_as(json!("l"), "subscriptions/listen", listen).await;
        assert!(!client.head(listen).await.headers.contains_key("mcp-session-id"), "{sent:?}");
    }
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert_eq!(post(url, &[], &cancelled).await.header("mcp-session-id"), None);
}
