//! Parameters that HTTP mirrors in headers.

use dateline::{Context, Server, Tool};
use serde_json::{Value, json};
use testkit::{Client, MODERN, Reply, Wire, modern_headers};

use super::{House, call};

/// A tool with annotations at several depths.
fn shops() -> Server {
    let schema = json!({
        "type": "object",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "order": {
                "type": "object",
                "properties": {
                    "count": {"type": "integer", "x-mcp-header": "Count"},
                    "to": {"type": "object", "properties": {"gift": {"type": "boolean", "x-mcp-header": "Gift"}}},
                },
            },
            "note": {"type": "string"},
        },
    });
    let shop = |cx: Context| async move { cx.arguments().as_str().to_owned() };
    Server::new("shops", "1")
        .tool(Tool::new("shop", "Buys something.", shop).input_schema(schema))
        .build()
        .unwrap()
}

async fn shop(client: &mut Client, arguments: &str, headers: &[(&str, &str)]) -> Reply {
    let params = client.modern_params(call("shop", json!("HERE")));
    let fitting = modern_headers("tools/call", &params);
    let mut all: Vec<(&str, &str)> = fitting.iter().map(|(name, value)| (*name, value.as_str())).collect();
    all.extend(headers);
    let id = client.id();
    let message = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    // Numbers are sent as they are written.
    client.send_text(&message.to_string().replace("\"HERE\"", arguments), &all).await;
    client.reply(&id).await
}

const REGION: &str = "Mcp-Param-Region";
const COUNT: &str = "Mcp-Param-Count";
const GIFT: &str = "mcp-param-gift";

#[testkit::test]
async fn http_19_parameters_say_in_headers_what_they_say_in_the_body() {
    let house = House::of(&shops()).await;
    let mut client = house.client(Wire::Http, MODERN, json!({})).await;
    let right: [(&str, &[(&str, &str)]); 20] = [
        (r#"{"region":"eu"}"#, &[(REGION, "eu")]),
        (r#"{"region":"eu"}"#, &[("MCP-PARAM-REGION", "=?base64?ZXU=?=")]),
        (r#"{"region":"42.0"}"#, &[(REGION, "42.0")]),
        (r#"{"region":""}"#, &[(REGION, "=?base64??=")]),
        (r#"{"region":"e\u0075"}"#, &[(REGION, "eu")]),
        (r#"{"order":{"count":42}}"#, &[(COUNT, "42")]),
        // One number, however it is written.
        (r#"{"order":{"count":42.0}}"#, &[(COUNT, "42")]),
        (r#"{"order":{"count":42}}"#, &[(COUNT, "42.0")]),
        (r#"{"order":{"count":4.2e1}}"#, &[(COUNT, "42")]),
        (r#"{"order":{"count":-7}}"#, &[(COUNT, "-7")]),
        (r#"{"order":{"count":9007199254740991}}"#, &[(COUNT, "9007199254740991")]),
        (r#"{"order":{"to":{"gift":true}}}"#, &[(GIFT, "true")]),
        (
            r#"{"region":"eu","order":{"count":1,"to":{"gift":false}}}"#,
            &[(REGION, "eu"), (COUNT, "1"), (GIFT, "false")],
        ),
        // Null and absent expect none, at any depth.
        ("{}", &[]),
        (r#"{"region":null}"#, &[]),
        (r#"{"order":null}"#, &[]),
        (r#"{"order":{}}"#, &[]),
        (r#"{"order":{"count":null,"to":{"gift":null}}}"#, &[]),
        (r#"{"order":{"to":null},"note":"region"}"#, &[]),
        // What nothing says must be mirrored may be sent.
        (r#"{"note":"x"}"#, &[("Mcp-Param-Note", "other"), ("Mcp-Param-None", "y")]),
    ];
    for (arguments, headers) in right {
        let reply = shop(&mut client, arguments, headers).await;
        let code = reply.message["error"]["code"].as_i64();
        assert_eq!((reply.status(), code), (Some(200), None), "{arguments} {headers:?}: {}", reply.message);
    }
    let wrong: [(&str, &[(&str, &str)]); 24] = [
        // In the body, and not in the headers.
        (r#"{"region":"eu"}"#, &[]),
        (r#"{"region":""}"#, &[]),
        (r#"{"order":{"count":42}}"#, &[(REGION, "42")]),
        (r#"{"order":{"count":0}}"#, &[]),
        (r#"{"order":{"to":{"gift":false}}}"#, &[]),
        // Different.
        (r#"{"region":"eu"}"#, &[(REGION, "us")]),
        (r#"{"region":"eu"}"#, &[(REGION, "EU")]),
        (r#"{"region":"eu"}"#, &[(REGION, "eu,us")]),
        (r#"{"order":{"count":42}}"#, &[(COUNT, "43")]),
        (r#"{"order":{"count":42}}"#, &[(COUNT, "42.5")]),
        (r#"{"order":{"count":42}}"#, &[(COUNT, "forty-two")]),
        (r#"{"order":{"to":{"gift":true}}}"#, &[(GIFT, "True")]),
        (r#"{"order":{"to":{"gift":true}}}"#, &[(GIFT, "1")]),
        // Beyond what every peer holds exactly, one digit more is another number.
        (r#"{"order":{"count":9007199254740993}}"#, &[(COUNT, "9007199254740992")]),
        (r#"{"order":{"count":9007199254740993}}"#, &[(COUNT, "9007199254740992.0")]),
        // Text is text: it does not compare as a number.
        (r#"{"region":"42"}"#, &[(REGION, "42.0")]),
        (r#"{"region":"1e2"}"#, &[(REGION, "100")]),
        // Bad characters and forms, and twice.
        (r#"{"region":"größe"}"#, &[(REGION, "gr\u{f6}\u{df}e")]),
        (r#"{"region":"eu"}"#, &[(REGION, "=?base64?ZXU?=")]),
        (r#"{"region":"eu"}"#, &[(REGION, "=?base64?!?=")]),
        (r#"{"region":"eu"}"#, &[(REGION, "eu"), (REGION, "us")]),
        // In the headers, and not in the body.
        ("{}", &[(REGION, "eu")]),
        (r#"{"region":null}"#, &[(REGION, "null")]),
        (r#"{"order":{}}"#, &[(COUNT, "1")]),
    ];
    for (arguments, headers) in wrong {
        let reply = shop(&mut client, arguments, headers).await;
        assert_eq!(
            (reply.status(), reply.code()),
            (Some(400), -32020),
            "{arguments} {headers:?}: {}",
            reply.message
        );
    }
    // What is no value that a header can hold is for the schema to refuse.
    for arguments in [r#"{"region":["eu"]}"#, r#"{"order":{"count":{}}}"#, r#"{"order":[]}"#] {
        let reply = shop(&mut client, arguments, &[]).await;
        assert_eq!(reply.result()["isError"], true, "{arguments}: {}", reply.message);
    }
    // Of a tool that does not exist nothing is known.
    let none = client.call("none", json!({"region": "eu"})).await;
    assert_eq!((none.status(), none.code()), (Some(200), -32602));
}

#[testkit::test]
async fn http_19_is_a_matter_of_modern_http_alone() {
    let house = House::of(&shops()).await;
    let arguments: Value = json!({"region": "eu", "order": {"count": 1}});
    for (wire, revision) in super::everywhere().into_iter().filter(|of| *of != (Wire::Http, MODERN)) {
        let mut client = house.client(wire, revision, json!({})).await;
        let reply = client.call("shop", arguments.clone()).await;
        assert_eq!(serde_json::from_str::<Value>(reply.said()).unwrap(), arguments, "{wire:?} {revision}");
    }
}
