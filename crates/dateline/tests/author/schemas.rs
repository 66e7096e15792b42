//! Tools: their names, schemas and structured results.

use dateline::{BuildError, Context, Json, Server, Tool, ToolResult};
use serde_json::{Value, json};
use testkit::MODERN;

use super::{House, everywhere};

/// Every place of a revision that has structured results.
fn structured() -> Vec<(testkit::Wire, &'static str)> {
    super::with_forms()
}

fn tool(name: &str) -> Tool {
    Tool::new(name, "Gives back what it gets.", |cx: Context| async move {
        ToolResult::raw(cx.arguments().clone())
    })
}

fn build(tool: Tool) -> Result<Server, BuildError> {
    Server::new("schemas", "1").tool(tool).build()
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Sum {
    sum: f64,
    parts: Vec<i64>,
}

fn found<'a>(listed: &'a Value, name: &str) -> &'a Value {
    let tools = listed["tools"].as_array().unwrap();
    tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("no {name} in {listed}"))
}

#[testkit::test]
async fn tool_03_a_structured_result_fits_its_schema_or_is_the_servers_error() {
    let number =
        json!({"type": "object", "properties": {"n": {"type": "integer", "maximum": 3}}, "required": ["n"]});
    let any = json!({"type": "object"});
    let server = Server::new("structured", "1")
        .tool(Tool::new("sum", "Sums up.", || async { Json(Sum { sum: 1.5, parts: vec![1, -2] }) }))
        .tool(tool("n").input_schema(any).output_schema(&number))
        .tool(Tool::new("bare", "Only says it.", || async { "3" }).output_schema(&number))
        .tool(Tool::new("fails", "Fails.", || async { ToolResult::error("no") }).output_schema(&number))
        .build()
        .unwrap();
    let house = House::of(&server).await;
    for (wire, revision) in structured() {
        let what = format!("{wire:?} {revision}");
        let mut client = house.client(wire, revision, json!({})).await;
        let listed = client.request("tools/list", json!({})).await;
        let schema = &found(listed.result(), "sum")["outputSchema"];
        assert_eq!(schema["required"], json!(["sum", "parts"]), "{what}: {schema}");
        assert_eq!(found(listed.result(), "n")["outputSchema"], number, "{what}");
        let reply = client.call("sum", json!({})).await;
        let due = json!({"sum": 1.5, "parts": [1, -2]});
        assert_eq!(reply.result()["structuredContent"], due, "{what}");
        assert_eq!(serde_json::from_str::<Value>(reply.said()).unwrap(), due, "{what}: the same as text");
        for fits in [json!({"n": 3}), json!({"n": -1, "more": [1]}), json!({"n": 2.0})] {
            let reply = client.call("n", fits.clone()).await;
            assert_eq!(reply.result()["structuredContent"], fits, "{what}");
            assert_eq!(serde_json::from_str::<Value>(reply.said()).unwrap(), fits, "{what}");
        }
        for misfit in [json!({}), json!({"n": 4}), json!({"n": "3"}), json!({"n": 1.5}), json!({"n": null})] {
            let reply = client.call("n", misfit.clone()).await;
            assert_eq!(reply.code(), -32603, "{what} {misfit}: {}", reply.message);
        }
        assert_eq!(client.call("bare", json!({})).await.code(), -32603, "{what}");
        // An error of the tool need not fit.
        let reply = client.call("fails", json!({})).await;
        assert_eq!((&reply.result()["isError"], reply.said()), (&json!(true), "no"), "{what}");
        assert!(reply.result().get("structuredContent").is_none(), "{what}");
    }
}

#[testkit::test]
async fn tool_04_what_is_no_object_is_left_out_where_only_objects_are_known_and_kept_as_text() {
    let value = |value: Value| {
        move || {
            let value = value.clone();
            async move { ToolResult::structured(&value) }
        }
    };
    let values = [
        ("list", json!([1, 2]), json!({"type": "array", "items": {"type": "integer"}})),
        ("text", json!("hi"), json!({"type": "string"})),
        ("number", json!(7), json!({"type": "integer"})),
        ("null", json!(null), json!({"type": "null"})),
        ("either", json!([]), json!({"type": ["object", "array"]})),
        ("untyped", json!(true), json!({"enum": [true]})),
    ];
    let mut server = Server::new("values", "1")
        .tool(Tool::new("typed", "Gives a list.", || async { Json(vec![1, 2, 3]) }))
        .tool(
            Tool::new("object", "Gives an object.", value(json!({"a": 1})))
                .output_schema(json!({"type": "object"})),
        )
        .tool(Tool::new("loose", "Has no schema.", value(json!([1]))));
    for (name, it, schema) in &values {
        server = server.tool(Tool::new(name, "Gives it.", value(it.clone())).output_schema(schema));
    }
    let house = House::of(&server.build().unwrap()).await;
    for (wire, revision) in structured() {
        let what = format!("{wire:?} {revision}");
        let mut client = house.client(wire, revision, json!({})).await;
        let listed = client.request("tools/list", json!({})).await;
        let all = revision == MODERN;
        for (name, it, schema) in &values {
            let shown = found(listed.result(), name).get("outputSchema").cloned();
            assert_eq!(shown, all.then(|| schema.clone()), "{what} {name}");
            let reply = client.call(name, json!({})).await;
            let given = reply.result().get("structuredContent").cloned();
            assert_eq!(given, all.then(|| it.clone()), "{what} {name}: {}", reply.message);
            assert_eq!(serde_json::from_str::<Value>(reply.said()).unwrap(), *it, "{what} {name}");
            assert!(reply.result().get("isError").is_none_or(|is| is == false), "{what} {name}");
        }
        assert_eq!(found(listed.result(), "typed").get("outputSchema").is_some(), all, "{what}");
        let reply = client.call("typed", json!({})).await;
        assert_eq!(
            (reply.said(), reply.result().get("structuredContent").is_some()),
            ("[1,2,3]", all),
            "{what}"
        );
        let reply = client.call("loose", json!({})).await;
        assert_eq!((reply.said(), reply.result().get("structuredContent").is_some()), ("[1]", all), "{what}");
        assert_eq!(found(listed.result(), "object")["outputSchema"], json!({"type": "object"}), "{what}");
        let reply = client.call("object", json!({})).await;
        assert_eq!(reply.result()["structuredContent"], json!({"a": 1}), "{what}");
    }
}

#[testkit::test]
async fn tool_05_a_name_that_is_none_is_refused_and_one_that_is_works() {
    let longest = "n".repeat(128);
    let right = ["a", "A-Z_a.z-09", "...", "-", &longest];
    let server = Server::new("names", "1").dynamic().build().unwrap();
    for right in right {
        server.add_tool(tool(right).input_schema(json!({"type": "object"}))).unwrap();
    }
    let longer = "n".repeat(129);
    let wrong = ["", " ", "a b", "a/b", "a:b", "größe", "a\n", "a,b", "a\u{200b}", "~", "a@b", &longer];
    for wrong in wrong {
        let why =
            server.add_tool(tool(wrong).input_schema(json!({"type": "object"}))).unwrap_err().to_string();
        assert!(why.contains("1 to 128 characters"), "{wrong:?}: {why}");
        assert!(build(tool(wrong)).is_err(), "{wrong:?}");
    }
    let house = House::of(&server).await;
    for (wire, revision) in everywhere() {
        let mut client = house.client(wire, revision, json!({})).await;
        let listed = client.request("tools/list", json!({})).await;
        let names: Vec<&str> = listed.result()["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, right, "{wire:?} {revision}");
        for name in right {
            assert_eq!(client.call(name, json!({})).await.said(), "{}", "{wire:?} {revision} {name}");
        }
        assert_eq!(client.call("a b", json!({})).await.code(), -32602, "{wire:?} {revision}");
    }
}

#[testkit::test]
async fn tool_06_an_annotation_that_breaks_its_rules_is_refused() {
    let of = |properties: Value| tool("x").input_schema(json!({"type": "object", "properties": properties}));
    let text = |header: Value| json!({"type": "string", "x-mcp-header": header});
    let server = Server::new("mirrors", "1").dynamic().build().unwrap();
    let wrong = [
        json!({"a": text(json!(""))}),
        json!({"a": text(json!("A B"))}),
        json!({"a": text(json!("A:B"))}),
        json!({"a": text(json!("Größe"))}),
        json!({"a": text(json!("A\r\nB"))}),
        json!({"a": text(json!(5))}),
        json!({"a": text(json!(null))}),
        json!({"a": text(json!("A")), "b": text(json!("A"))}),
        json!({"a": text(json!("A")), "b": {"type": "object", "properties": {"c": text(json!("a"))}}}),
        json!({"a": {"type": "number", "x-mcp-header": "A"}}),
        json!({"a": {"type": "object", "x-mcp-header": "A"}}),
        json!({"a": {"type": "array", "x-mcp-header": "A"}}),
        json!({"a": {"type": ["string", "null"], "x-mcp-header": "A"}}),
        json!({"a": {"x-mcp-header": "A"}}),
        json!({"a": {"type": "array", "items": text(json!("A"))}}),
        json!({"a": {"anyOf": [text(json!("A"))]}}),
        json!({"a": {"type": "object", "additionalProperties": text(json!("A"))}}),
        json!({"a": {"type": "object", "patternProperties": {"x": text(json!("A"))}}}),
        json!({"a": {"if": text(json!("A"))}}),
        json!({"a": {"not": {"properties": {"b": text(json!("A"))}}}}),
    ];
    for wrong in wrong {
        let why = server.add_tool(of(wrong.clone())).unwrap_err().to_string();
        assert!(why.contains("x-mcp-header"), "{wrong}: {why}");
    }
    let defined = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": text(json!("A"))}});
    assert!(
        server.add_tool(tool("x").input_schema(defined)).unwrap_err().to_string().contains("x-mcp-header")
    );
    let deep = json!({"a": {"type": "object", "properties": {"b": {"type": "integer", "x-mcp-header": "B-1"}}}, "c": text(json!("C"))});
    server.add_tool(of(deep)).unwrap();
    let house = House::of(&server).await;
    for wire in testkit::WIRES {
        let mut client = house.client(wire, MODERN, json!({})).await;
        let listed = client.request("tools/list", json!({})).await;
        assert_eq!(listed.result()["tools"].as_array().unwrap().len(), 1, "{wire:?}");
        let shown = &found(listed.result(), "x")["inputSchema"]["properties"];
        assert_eq!(shown["a"]["properties"]["b"]["x-mcp-header"], "B-1", "{wire:?}");
    }
}

/// Schemas that mean one thing in their dialect and another, or nothing, elsewhere: what fits and what does not.
fn dialects() -> Vec<(&'static str, Value, Value, Value)> {
    let draft = |name: &str| json!(format!("http://json-schema.org/{name}/schema#"));
    let pair = json!([{"type": "string"}, {"type": "integer"}]);
    let old = |dialect: Value| {
        json!({
            "$schema": dialect,
            "type": "object",
            // Beside a reference nothing counts here.
            "properties": {"pair": {"items": pair}, "s": {"$ref": "#/definitions/s", "maxLength": 1}},
            "definitions": {"s": {"type": "string"}},
            "dependencies": {"pair": ["s"]},
        })
    };
    let new = json!({
        "type": "object",
        "properties": {"pair": {"prefixItems": pair, "items": false}, "s": {"$ref": "#/$defs/s", "maxLength": 1}},
        "$defs": {"s": {"type": "string"}},
        "dependentRequired": {"pair": ["s"]},
        "unevaluatedProperties": false,
    });
    let mut named = new.clone();
    named["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    let long = json!({"pair": ["a", 1], "s": "long"});
    let short = json!({"pair": ["a", 1], "s": "s"});
    vec![
        ("unnamed", new, short.clone(), long.clone()),
        ("named", named, short, json!({"s": "s", "more": 1})),
        ("draft-07", old(draft("draft-07")), long.clone(), json!({"pair": ["a", 1]})),
        ("draft-06", old(draft("draft-06")), long.clone(), json!({"pair": [1, 1], "s": "s"})),
        ("draft-04", old(draft("draft-04")), long, json!({"pair": ["a", "b"], "s": "s"})),
        (
            "draft-2019-09",
            json!({
                "$schema": "https://json-schema.org/draft/2019-09/schema", "type": "object",
                "properties": {"pair": {"items": pair, "additionalItems": false}},
            }),
            json!({"pair": ["a", 1]}),
            json!({"pair": ["a", 1, 2]}),
        ),
    ]
}

#[testkit::test]
async fn tool_07_a_schema_is_of_2020_12_or_of_the_dialect_that_it_names() {
    let server = dialects().into_iter().fold(Server::new("dialects", "1"), |server, (name, schema, ..)| {
        server.tool(tool(name).input_schema(schema))
    });
    let house = House::of(&server.build().unwrap()).await;
    for (wire, revision) in everywhere() {
        let mut client = house.client(wire, revision, json!({})).await;
        for (name, _, fits, misfit) in dialects() {
            let what = format!("{wire:?} {revision} {name}");
            let reply = client.call(name, fits.clone()).await;
            assert_eq!(
                serde_json::from_str::<Value>(reply.said()).unwrap(),
                fits,
                "{what}: {}",
                reply.message
            );
            let reply = client.call(name, misfit.clone()).await;
            let refused = match revision {
                MODERN | "2025-11-25" => reply.message["result"]["isError"] == true,
                _ => reply.message["error"]["code"] == -32602,
            };
            assert!(refused, "{what} {misfit}: {}", reply.message);
        }
    }
}

/// An object schema with this for a property.
fn within(schema: Value) -> Value {
    json!({"type": "object", "properties": {"p": schema}})
}

#[testkit::test]
async fn tool_07_an_unknown_dialect_what_is_elsewhere_and_what_is_too_large_is_refused_and_nothing_fetched() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let here = format!("http://{}/schema.json", listener.local_addr().unwrap());
    let mut deep = json!({"type": "string"});
    for _ in 0..40 {
        deep = within(deep);
    }
    let many: serde_json::Map<_, _> =
        (0..4000).map(|n| (format!("p{n}"), json!({"type": "string", "maxLength": n}))).collect();
    let wrong = [
        json!({"$schema": "https://example.com/dialect", "type": "object"}),
        json!({"$schema": "https://json-schema.org/draft/2031-01/schema", "type": "object"}),
        json!({"$schema": here, "type": "object"}),
        json!({"$schema": 7, "type": "object"}),
        within(json!({"$schema": "https://example.com/dialect", "$id": "x:/y", "type": "string"})),
        within(json!({"$ref": here})),
        within(json!({"$dynamicRef": here})),
        within(json!({"allOf": [{"$ref": format!("{here}#/$defs/x")}]})),
        within(json!({"$ref": "https://json-schema.example.com/x"})),
        within(json!({"$ref": "file:///etc/hostname"})),
        within(json!({"$ref": "other.json"})),
        within(json!({"$ref": "#/$defs/none"})),
        json!({"$id": here, "type": "object", "properties": {"p": {"$ref": "other.json"}}}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "definitions": {"d": {"$ref": here}},
            "properties": {"p": {"$ref": "#/definitions/d"}}}),
        deep.clone(),
        json!({"type": "object", "properties": many}),
        within(json!({"type": "nonsense"})),
        within(json!({"minimum": "1"})),
        within(json!({"pattern": "("})),
    ];
    let server = Server::new("strict", "1").dynamic().build().unwrap();
    for schema in &wrong {
        let why = server.add_tool(tool("x").input_schema(schema)).err();
        let why = why.unwrap_or_else(|| panic!("let through: {:.300}", schema.to_string())).to_string();
        assert!(why.contains("input"), "{why}");
        let why = build(tool("x").input_schema(json!({"type": "object"})).output_schema(schema)).err();
        assert!(why.is_some_and(|why| why.to_string().contains("output")), "{:.300}", schema.to_string());
    }
    // What has its own place within itself is fetched from nowhere.
    let own = json!({
        "$id": here, "type": "object",
        "properties": {"p": {"$ref": "part.json"}, "q": {"$ref": "#/$defs/part"}},
        "$defs": {"part": {"$id": "part.json", "type": "integer"}},
    });
    server.add_tool(tool("own").input_schema(own)).unwrap();
    let tree = json!({"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#"}}, "n": {"type": "integer"}}});
    server.add_tool(tool("tree").input_schema(tree)).unwrap();
    let house = House::of(&server).await;
    for (wire, revision) in everywhere() {
        let what = format!("{wire:?} {revision}");
        let mut client = house.client(wire, revision, json!({})).await;
        assert_eq!(client.call("own", json!({"p": 1, "q": 2})).await.said(), r#"{"p":1,"q":2}"#, "{what}");
        assert_eq!(
            client.call("tree", json!({"kids": [{"kids": [{"n": 1}]}]})).await.said(),
            r#"{"kids":[{"kids":[{"n":1}]}]}"#,
            "{what}"
        );
        for (tool, misfit) in
            [("own", json!({"p": "1"})), ("tree", json!({"kids": [{"kids": [{"n": "1"}]}]}))]
        {
            let reply = client.call(tool, misfit).await;
            let refused =
                reply.message["result"]["isError"] == true || reply.message["error"]["code"] == -32602;
            assert!(refused, "{what} {tool}: {}", reply.message);
        }
        let listed = client.request("tools/list", json!({})).await;
        assert_eq!(listed.result()["tools"].as_array().unwrap().len(), 2, "{what}: nothing that was refused");
    }
    let fetched = futures_util::FutureExt::now_or_never(listener.accept());
    assert!(fetched.is_none(), "nobody came for it");
}

#[testkit::test]
async fn tool_07_validation_is_bounded() {
    // The same place again and again, which would never end or take forever.
    let mut doubled = json!({"a0": {"type": "object"}});
    for n in 1..40 {
        let below = json!({"$ref": format!("#/$defs/a{}", n - 1)});
        doubled[format!("a{n}")] = json!({"allOf": [below, below]});
    }
    let wrong = [
        json!({"type": "object", "$ref": "#"}),
        json!({"type": "object", "allOf": [{"$ref": "#"}]}),
        json!({"type": "object", "$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"not": {"$ref": "#/$defs/a"}}}}),
        json!({"type": "object", "$ref": "#/$defs/a39", "$defs": doubled}),
    ];
    for schema in wrong {
        assert!(build(tool("x").input_schema(&schema)).is_err(), "let through: {schema:.200}");
    }
    let hungry = json!({"type": "object", "properties": {"s": {"type": "string", "pattern": "^(a+)+$"}}});
    let server = Server::new("bounded", "1").tool(tool("hungry").input_schema(hungry)).build().unwrap();
    let house = House::of(&server).await;
    let text = format!("{}!", "a".repeat(5000));
    for (wire, revision) in everywhere() {
        let mut client = house.client(wire, revision, json!({})).await;
        let reply = client.call("hungry", json!({"s": text})).await;
        let refused = reply.message["result"]["isError"] == true || reply.message["error"]["code"] == -32602;
        assert!(refused, "{wire:?} {revision}: {}", reply.message);
        assert!(!reply.text.contains("aaaa"), "{wire:?} {revision}: what is refused is not repeated");
    }
}
