//! The headers of a modern request: required, compared, decoded.

use serde_json::{Value, json};
use testkit::{LATEST_LEGACY, MODERN, Wire};

use super::{fetch, fetch_modern, is_mismatch, named, url};
use crate::era::{CAPABILITIES, VERSION, echo, fitting, haiku_topic, meta, request};
use crate::modern;

#[testkit::test]
async fn http_18_version_method_and_name_are_required_and_values_keep_their_case() {
    let server = modern(Wire::Http).await;
    let url = url(&server);
    let mut requests: Vec<(Value, Option<&str>)> = named().map(|(asked, name)| (asked, Some(name))).to_vec();
    for (method, params) in [
        ("server/discover", json!({})),
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("completion/complete", haiku_topic()),
        ("subscriptions/listen", json!({"notifications": {}})),
    ] {
        requests.push((request(method, method, server.modern_params(params)), None));
    }
    for (asked, name) in &requests {
        let method = asked["method"].as_str().unwrap();
        let mut faults = vec![
            ("mcp-protocol-version", String::new()),
            ("mcp-protocol-version", LATEST_LEGACY.to_owned()),
            ("mcp-protocol-version", "2026-07-28, 2026-07-28".to_owned()),
            ("mcp-method", String::new()),
            ("mcp-method", method.to_uppercase()),
            ("mcp-method", "ping".to_owned()),
        ];
        if let Some(name) = name {
            faults.extend(
                ["", "other", &name.to_uppercase(), &format!("{name}/")].map(|n| ("mcp-name", n.to_owned())),
            );
        }
        for (header, value) in &faults {
            is_mismatch(
                &fetch_modern(url, asked, &[(header, value)]).await,
                asked,
                &format!("{header} {value:?}"),
            );
        }
        // Said twice is not said.
        let twice = fetch_modern(url, asked, &[("mcp-method", method), ("mcp-method", "wrong")]).await;
        is_mismatch(&twice, asked, "two methods");
        let twice =
            fetch_modern(url, asked, &[("mcp-protocol-version", MODERN), ("Mcp-Protocol-Version", "x")])
                .await;
        is_mismatch(&twice, asked, "two versions");
        if method == "subscriptions/listen" {
            continue;
        }
        // Names fold case, and space around a value is none of it.
        for spell in [str::to_uppercase, |name: &str| name.replace("mcp", "mCp").replace('n', "N")] {
            let given = fitting(asked).into_iter().map(|(name, value)| (spell(name), format!("  {value} ")));
            let given: Vec<_> = given.collect();
            let given: Vec<_> = given.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            let answer = fetch(url, "POST", &given, &asked.to_string()).await;
            assert_eq!(answer.status, 200, "{given:?}: {}", answer.body);
        }
    }
    // The methods of tasks are known only where the extension is: with all headers they are unknown methods.
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let asked = request(method, method, json!({"taskId": "t", "_meta": meta(MODERN)}));
        let answer = fetch_modern(url, &asked, &[("Mcp-Name", "t")]).await;
        assert_eq!((answer.status, answer.error().0), (404, -32601), "{method}");
    }
}

/// Text in the form that a header can carry.
fn sentinel(base64: &str) -> String {
    format!("=?base64?{base64}?=")
}

fn region(id: &str, region: &str) -> Value {
    let arguments = json!({"region": region, "query": "q"});
    request(id, "tools/call", json!({"name": "query_region", "arguments": arguments, "_meta": meta(MODERN)}))
}

#[testkit::test]
async fn http_20_the_base64_form_is_decoded_before_comparing_and_a_broken_one_refused() {
    let server = modern(Wire::Http).await;
    let url = url(&server);
    let encoded = ["ZWNobw==", "aGFpa3U=", "ZGVtbzovL3dlbGNvbWU="];
    for ((asked, name), encoded) in named().iter().zip(encoded) {
        let answer = fetch_modern(url, asked, &[("Mcp-Name", &sentinel(encoded))]).await;
        assert_eq!(answer.status, 200, "{name}: {}", answer.body);
        for wrong in [
            sentinel("b3RoZXI="),                    // another name
            sentinel("RUNITw=="),                    // in another case
            sentinel(encoded.trim_end_matches('=')), // without its padding
            sentinel(&encoded[1..]),                 // not base64 of anything
            sentinel("!!!!"),                        // no base64
            sentinel("/////w=="),                    // no UTF-8
            format!("=?BASE64?{encoded}?="),         // the marks are as they are
            format!("=?base64?{encoded}"),
            format!("{encoded}?="),
            encoded.to_owned(),
        ] {
            is_mismatch(&fetch_modern(url, asked, &[("Mcp-Name", &wrong)]).await, asked, &wrong);
        }
    }
    // A name that no header can carry otherwise is found to be unknown, and not to differ.
    let params = json!({"name": "größe", "arguments": {}, "_meta": meta(MODERN)});
    let asked = request("g", "tools/call", params);
    let answer = fetch_modern(url, &asked, &[("Mcp-Name", &sentinel("Z3LDtsOfZQ=="))]).await;
    assert_eq!((answer.status, answer.error().0), (200, -32602), "{}", answer.body);
    is_mismatch(&fetch_modern(url, &asked, &[("Mcp-Name", "größe")]).await, &asked, "bytes beyond ASCII");
    // So it is with parameters. The text that looks like the form is sent in the form.
    for (at, (value, encoded)) in [
        ("Zürich", "WsO8cmljaA=="),
        (" padded ", "IHBhZGRlZCA="),
        ("line1\nline2", "bGluZTEKbGluZTI="),
        ("=?base64?literal?=", "PT9iYXNlNjQ/bGl0ZXJhbD89"),
        ("us-west1", "dXMtd2VzdDE="),
    ]
    .into_iter()
    .enumerate()
    {
        let asked = region(&format!("z{at}"), value);
        let answer = fetch_modern(url, &asked, &[("Mcp-Param-Region", &sentinel(encoded))]).await;
        assert_eq!(answer.status, 200, "{value:?}: {}", answer.body);
        assert_eq!(answer.json()["result"]["content"][0]["text"], format!("{value}: q"), "{value:?}");
        for wrong in [sentinel("ZWNobw=="), sentinel("!!!!"), sentinel("/////w==")] {
            is_mismatch(&fetch_modern(url, &asked, &[("Mcp-Param-Region", &wrong)]).await, &asked, value);
        }
    }
    let literal = region("literal", "=?base64?literal?=");
    is_mismatch(
        &fetch_modern(url, &literal, &[("Mcp-Param-Region", "=?base64?literal?=")]).await,
        &literal,
        "literal",
    );
}

#[testkit::test]
async fn http_20_only_names_and_parameters_have_a_base64_form() {
    let server = modern(Wire::Http).await;
    let asked = request("m", "tools/call", echo(meta(MODERN)));
    for (header, encoded) in
        [("Mcp-Method", "dG9vbHMvY2FsbA=="), ("MCP-Protocol-Version", "MjAyNi0wNy0yOA==")]
    {
        is_mismatch(
            &fetch_modern(url(&server), &asked, &[(header, &sentinel(encoded))]).await,
            &asked,
            header,
        );
    }
}

#[testkit::test]
async fn http_21_a_header_fault_is_32020_with_400_and_a_missing_meta_field_is_not() {
    let server = modern(Wire::Http).await;
    let url = url(&server);
    let call = request("c", "tools/call", echo(meta(MODERN)));
    let region = region("r", "eu");
    for (asked, header, values) in [
        (&call, "MCP-Protocol-Version", &["", LATEST_LEGACY, "2031-01-01", "\u{e9}"][..]),
        (&call, "Mcp-Method", &["", "tools/list", "TOOLS/CALL", "\u{e9}"]),
        (&call, "Mcp-Name", &["", "add", "ECHO", "=?base64?!?=", "\u{e9}"]),
        (&region, "Mcp-Param-Region", &["", "us", "EU", "=?base64?!?=", "\u{e9}"]),
    ] {
        let right = ("Mcp-Param-Region", if std::ptr::eq(asked, &region) { "eu" } else { "" });
        for value in values {
            let more = if header == right.0 { ("x-none", "") } else { right };
            let answer = fetch_modern(url, asked, &[(header, value), more]).await;
            is_mismatch(&answer, asked, &format!("{header}: {value:?}"));
            let told = answer.json()["error"]["message"].as_str().unwrap().to_ascii_lowercase();
            assert!(told.contains(&header.to_ascii_lowercase()), "{header}: {value:?}: {told}");
        }
        assert_eq!(fetch_modern(url, asked, &[right]).await.status, 200, "{header}");
    }
    for (at, lacking) in
        [json!({VERSION: MODERN}), json!({CAPABILITIES: {}}), json!({})].into_iter().enumerate()
    {
        let asked = request(at, "tools/call", echo(lacking));
        // Whatever the headers say.
        for headers in
            [&[][..], &[("Mcp-Method", "")], &[("Mcp-Name", "wrong"), ("MCP-Protocol-Version", "")]]
        {
            let answer = fetch_modern(url, &asked, headers).await;
            assert_eq!((answer.status, answer.error().0), (400, -32602), "{asked} {headers:?}");
        }
    }
}
