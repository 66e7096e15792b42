//! What passes as it is, to the byte.

use serde_json::{Value, json};
use testkit::{Arrival, Client, LATEST_LEGACY, MODERN, modern_headers};

use super::{SIDES, peers, scripted, scripts};

/// Sends a request whose params are JSON texts: members, and members of `_meta`. Gives the text of the response,
/// which may hold more than the test's own JSON reader takes.
pub(super) async fn raw(client: &mut Client, method: &str, name: &str, members: &str, meta: &str) -> String {
    let id = client.id();
    let (mut meta, mut headers) = (vec![meta.to_owned()], Vec::new());
    if client.revision.is_none() {
        let params = client.modern_params(json!({"name": name}));
        let keys = params["_meta"].to_string();
        meta.push(keys[1..keys.len() - 1].to_owned());
        headers = modern_headers(method, &params);
    }
    let meta = meta.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(",");
    let params = format!(r#"{{{members}"_meta":{{{meta}}}}}"#);
    let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
    let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
    client.send_text(&text, &headers).await;
    let answers = format!(r#""id":{id},"#);
    let arrival = client.wait("the response", |arrival| match arrival {
        Arrival::Message(_, _, text) | Arrival::Rubbish(_, text) => text.contains(&answers),
        _ => false,
    });
    match arrival.await {
        Arrival::Message(_, _, text) | Arrival::Rubbish(_, text) => text,
        other => panic!("no text: {other:?}"),
    }
}

/// Members of params with forms of numbers and of white space that a reader might change.
pub(super) const MEMBERS: &str = concat!(
    r#""arguments":{ "f" : 1.0,"huge":1e400,"big":9007199254740993,"zero":-0.0,"text":"\u00e9\/","#,
    r#""z":1,"a":[ ],"n":null},"vendor":{"x":1.0,"b":[9007199254740993]}"#
);

#[testkit::test]
async fn msg_08_params_reach_an_upstream_to_the_byte() {
    let servers =
        [("old", scripted(&["--tools", "old"])), ("new", scripted(&["--tools", "new", "--era", "modern"]))];
    for mut peer in peers(&servers, json!({})).await {
        // Unknown fields are to pass, and numbers that a test cannot read.
        peer.client.unjudged = true;
        for tool in SIDES {
            let members = format!(r#""name":"{tool}",{MEMBERS},"#);
            let vendor = r#""vendor.example/trace":{"id":9007199254740993,"f":1.0}"#;
            let text = raw(&mut peer.client, "tools/call", tool, &members, vendor).await;
            let response: Value = serde_json::from_str(&text).unwrap();
            let line = response["result"]["content"][0]["text"].as_str().unwrap_or(&text);
            for wanted in [MEMBERS, vendor] {
                assert!(line.contains(wanted), "{} to {tool}: {line}", peer.label);
            }
        }
    }
}

#[testkit::test]
async fn msg_08_a_result_reaches_a_client_to_the_byte_where_its_revision_has_it() {
    let blocks = r#"[{"type":"text","text":"caf\u00e9\/","vendor":1.0},{"type":"hologram","depth":1e400}]"#;
    let vendor = r#""vendor":{ "big":9007199254740993,"f":1.0}"#;
    let structured = r#""structuredContent":{"n":1e400,"f":1.0}"#;
    let meta = r#""vendor.example/k":1.0"#;
    for mut peer in peers(&scripts(), json!({})).await {
        // Unknown fields are to pass.
        peer.client.unjudged = true;
        for side in SIDES {
            let kind = if side == "new" { r#""resultType":"complete","# } else { "" };
            let result = format!(r#"{{{kind}"content":{blocks},{structured},{vendor},"_meta":{{{meta}}}}}"#);
            let tool = format!("{side}_raw");
            let members = format!(r#""name":"{tool}","arguments":{},"#, json!({"result": result}));
            let text = raw(&mut peer.client, "tools/call", &tool, &members, "").await;
            let label = format!("{} from {side}: {text}", peer.label);
            // A kind of block that no client knows would cost it the whole result: it is shown as the text that it is.
            let hologram = r#"{"type":"text","text":"{\"type\":\"hologram\",\"depth\":1e400}"}"#;
            for wanted in [vendor, meta, r#""text":"caf\u00e9\/","vendor":1.0"#, hologram] {
                assert!(text.contains(wanted), "{label}");
            }
            let has = !["2024-11-05", "2025-03-26"].contains(&peer.revision);
            assert_eq!(text.contains(structured), has, "{label}");
            assert_eq!(text.contains("resultType"), peer.revision == MODERN, "{label}");
        }
    }
}

#[testkit::test]
async fn msg_08_a_tool_s_definition_reaches_a_client_to_the_byte_where_its_revision_has_it() {
    let schema = r#""inputSchema":{"type":"object", "properties":{"n":{"type":"number","maximum":1e400,"multipleOf":1.0}}}"#;
    let vendor = r#""x-vendor":{ "big":9007199254740993,"f":1.0}"#;
    let execution = r#""execution":{"taskSupport":"optional","vendor":1.0}"#;
    let meta = r#""_meta":{"vendor.example/k":1e400}"#;
    let definition = |name: &str| format!(r#"{{"name":"{name}",{schema},{execution},{vendor},{meta}}}"#);
    let servers = [
        ("old", scripted(&["--tools", "", "--definition", &definition("from-old")])),
        ("new", scripted(&["--tools", "", "--definition", &definition("from-new"), "--era", "modern"])),
    ];
    for mut peer in peers(&servers, json!({})).await {
        let text = raw(&mut peer.client, "tools/list", "", "", "").await;
        let label = format!("{}: {text}", peer.label);
        for wanted in [schema, vendor] {
            assert_eq!(text.matches(wanted).count(), 2, "{label}");
        }
        assert_eq!(text.contains(execution), peer.revision == LATEST_LEGACY, "{label}");
        assert_eq!(text.contains(meta), !["2024-11-05", "2025-03-26"].contains(&peer.revision), "{label}");
        if peer.revision == LATEST_LEGACY {
            assert!(
                text.contains(&definition("from-old")) && text.contains(&definition("from-new")),
                "{label}"
            );
        }
    }
}

const RELATED: &str = r#""io.modelcontextprotocol/related-task":{"taskId":"t"}"#;
const FREE: &str = r#""vendor.example/key":{ "n":1.0},"traceparent":"00-\u0061""#;

/// The names of the members of a `_meta` that its protocol reserves, without their common beginning.
fn reserved(meta: &Value) -> Vec<&str> {
    let keys = meta.as_object().into_iter().flatten().map(|(key, _)| key.as_str());
    let mut keys: Vec<&str> = keys.filter_map(|key| key.strip_prefix("io.modelcontextprotocol/")).collect();
    keys.sort_unstable();
    keys
}

#[testkit::test]
async fn msg_05_each_hop_has_its_own_reserved_keys_and_the_others_pass_both_ways() {
    let own = r#""io.modelcontextprotocol/serverInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/logLevel":"debug","io.modelcontextprotocol/subscriptionId":7"#;
    let mut servers = scripts().to_vec();
    servers.push(("mid", scripted(&["--name", "mid", "--revision", "2025-06-18"])));
    for mut peer in peers(&servers, json!({})).await {
        for side in ["old", "mid", "new"] {
            let label = format!("{} to {side}", peer.label);
            let members = format!(r#""name":"{side}_line","arguments":{{}},"#);
            let given = format!(r#""progressToken":"p",{RELATED},{FREE}"#);
            let text = raw(&mut peer.client, "tools/call", &format!("{side}_line"), &members, &given).await;
            let response: Value = serde_json::from_str(&text).unwrap();
            let line = response["result"]["content"][0]["text"].as_str().unwrap_or(&text);
            assert!(line.contains(FREE), "{label}: {line}");
            let got: Value = serde_json::from_str(line).unwrap();
            let meta = &got["params"]["_meta"];
            let due: &[&str] = match side {
                "old" => &["related-task"],
                "mid" => &[],
                _ => &["clientCapabilities", "clientInfo", "protocolVersion"],
            };
            // Without a session a level is a request's; a session has one from its beginning.
            let mut found = reserved(meta);
            found.retain(|key| *key != "logLevel");
            assert_eq!(found, due, "{label}: {line}");
            assert!(meta["progressToken"].is_u64(), "{label}: a token of this hop: {line}");

            let kind = if side == "new" { r#""resultType":"complete","# } else { "" };
            let result = format!(r#"{{{kind}"content":[],"_meta":{{{own},{RELATED},{FREE}}}}}"#);
            let tool = format!("{side}_raw");
            let members = format!(r#""name":"{tool}","arguments":{},"#, json!({"result": result}));
            let text = raw(&mut peer.client, "tools/call", &tool, &members, "").await;
            assert!(text.contains(FREE), "{label}: {text}");
            let response: Value = serde_json::from_str(&text).unwrap();
            let meta = &response["result"]["_meta"];
            let due: &[&str] = match peer.revision {
                MODERN => &["serverInfo"],
                LATEST_LEGACY => &["related-task"],
                _ => &[],
            };
            assert_eq!(reserved(meta), due, "{label}: {text}");
            assert_ne!(
                meta["io.modelcontextprotocol/serverInfo"]["name"], "x",
                "{label}: the gateway answers"
            );
        }
    }
}
