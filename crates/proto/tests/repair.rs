//! The gate for messages of servers, judged by the referee: whatever a server sends, every client gets valid messages.

use proto::downstream::stream::Stream;
use proto::project::{self, ResultMeta};
use proto::{Event, Level, Object, Raw, repair};
use serde_json::{Value, json};
use spec::{Direction, Method, MethodRow, Revision};
use testkit::referee::judge;

use crate::referee::for_all;
use crate::values::{Tape, of_type};
use crate::{object, parsed};

/// Checks that each revision that has the method is shown a valid result.
fn shown(result: &Object, row: &MethodRow) -> Result<Vec<(Revision, Value)>, String> {
    let identity = Raw::from(object(&json!({"name": "t", "version": "1"})));
    let added = ResultMeta { identity: &identity, depends_on_answers: false, subscription: None };
    let show = |revision: Revision| {
        let shown = project::result(result.clone(), row, revision.rules(), added);
        let shown = serde_json::to_value(shown).unwrap();
        let message = json!({"jsonrpc": "2.0", "id": 1, "result": shown});
        judge(revision, Direction::ToClient, &message, Some(row.wire))
            .map_err(|why| format!("{revision} does not accept {message}\n{why}"))?;
        Ok((revision, shown))
    };
    Revision::ALL.into_iter().filter(|r| row.method.exists(*r)).map(show).collect()
}

/// One entry of a list, let in, as the newest revisions of both eras see it; `Err` where it is left out.
fn entry(method: Method, sent: &Value) -> Result<(Value, Vec<String>), String> {
    let row = method.row();
    let mut raw = Raw::of(sent);
    let lost = repair::entry(&mut raw, repair::entries(row).unwrap())?;
    let list = row.lists.unwrap();
    let result = Object::new().with(list, Raw::list(&[raw.clone()]));
    shown(&result, row).unwrap();
    Ok((serde_json::from_str(raw.as_str()).unwrap(), lost))
}

fn mended(method: Method, sent: Value, wanted: Value) {
    let (got, lost) = entry(method, &sent).unwrap_or_else(|why| panic!("{sent}: {why}"));
    assert_eq!((got, &lost[..]), (wanted, &[][..]), "{sent}");
}

fn left_out(method: Method, sent: Value, why: &str) {
    match entry(method, &sent) {
        Err(said) => assert!(said.contains(why), "{sent}: {said}"),
        Ok((got, _)) => panic!("{sent} became {got}"),
    }
}

#[test]
fn what_a_tool_leaves_out_or_says_in_another_way_is_put_right() {
    let due = json!({"name": "t", "inputSchema": {"type": "object"}});
    for schema in [
        json!({}),
        json!(null),
        json!([]),
        json!(true),
        json!({"type": null}),
        json!({"type": ["object", "null"]}),
    ] {
        mended(Method::ToolsList, json!({"name": "t", "inputSchema": schema}), due.clone());
    }
    mended(Method::ToolsList, json!({"name": "t"}), due.clone());
    let null = json!({"name": "t", "title": null, "description": null, "annotations": null, "outputSchema": null,
        "icons": null, "_meta": null, "execution": null, "inputSchema": {"type": "object"}});
    mended(Method::ToolsList, null, due.clone());
    let schema = |schema: Value| json!({"name": "t", "inputSchema": schema});
    mended(
        Method::ToolsList,
        schema(json!({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]})),
        schema(json!({"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]})),
    );
    mended(
        Method::ToolsList,
        schema(json!({"type": "object", "properties": {"a": true, "b": false, "c": null}, "required": null})),
        schema(json!({"type": "object", "properties": {"a": {}, "b": {"not": {}}, "c": {}}})),
    );
    mended(
        Method::ToolsList,
        schema(json!({"type": "object", "properties": []})),
        schema(json!({"type": "object", "properties": {}})),
    );
    // Values that rows do not describe stay as they are, also null.
    let free = json!({"name": "t", "_meta": {"own": null}, "inputSchema": {"type": "object", "properties":
        {"a": {"default": null, "enum": [null, 1]}}, "examples": [null], "default": null}});
    mended(Method::ToolsList, free.clone(), free);
    let hints = json!({"name": "t", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": "true", "title": 7}});
    mended(
        Method::ToolsList,
        hints,
        json!({"name": "t", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true, "title": "7"}}),
    );
}

#[test]
fn an_entry_that_means_nothing_is_left_out_and_says_why() {
    let schema = json!({"type": "object"});
    left_out(Method::ToolsList, json!({"inputSchema": schema}), "name is missing");
    left_out(Method::ToolsList, json!({"name": null, "inputSchema": schema}), "name is missing");
    left_out(Method::ToolsList, json!({"name": 7, "inputSchema": schema}), "name is no text");
    left_out(
        Method::ToolsList,
        json!({"name": "t", "inputSchema": {"type": "string"}}),
        "inputSchema is a schema of the type \"string\"",
    );
    left_out(Method::ToolsList, json!({"name": "t", "inputSchema": "{}"}), "inputSchema is no JSON Schema");
    left_out(Method::ToolsList, json!("t"), "is no object");
    left_out(Method::PromptsList, json!({"description": "no name"}), "name is missing");
    left_out(Method::ResourcesList, json!({"name": "n"}), "uri is missing");
    left_out(Method::ResourcesList, json!({"name": "n", "uri": "not absolute"}), "uri is \"not absolute\"");
    left_out(Method::ResourcesList, json!({"uri": "x:1"}), "name is missing");
    left_out(Method::ResourcesTemplatesList, json!({"name": "n"}), "uriTemplate is missing");
}

#[test]
fn a_member_that_means_nothing_costs_itself_and_is_named() {
    let tool = json!({"name": "t", "title": {}, "inputSchema": {"type": "object", "properties": {"a": 7, "b": {}}}, "icons": [{"src": "https://example.org/i"}, {"mimeType": "image/png"}]});
    let (got, lost) = entry(Method::ToolsList, &tool).unwrap();
    let due = json!({"name": "t", "inputSchema": {"type": "object", "properties": {"b": {}}}, "icons": [{"src": "https://example.org/i"}]});
    assert_eq!(got, due);
    assert_eq!(
        lost,
        ["title is no text", "inputSchema.properties.a is no JSON Schema", "icons[1].src is missing"]
    );
    let prompt = json!({"name": "p", "arguments": {"topic": {}}});
    let (got, lost) = entry(Method::PromptsList, &prompt).unwrap();
    assert_eq!((got, &*lost[0]), (json!({"name": "p"}), "arguments is no array"));
    let prompt =
        json!({"name": "p", "arguments": [null, {"description": "?"}, {"name": "a", "required": null}]});
    let (got, lost) = entry(Method::PromptsList, &prompt).unwrap();
    assert_eq!(
        (got, &*lost[0]),
        (json!({"name": "p", "arguments": [{"name": "a"}]}), "arguments[1].name is missing")
    );
}

fn result(method: Method, sent: &Value) -> Result<(Value, Vec<String>), String> {
    let mut result = object(sent);
    let lost = repair::result(&mut result, method.row())?;
    shown(&result, method.row()).unwrap();
    Ok((serde_json::to_value(result).unwrap(), lost))
}

#[test]
fn a_result_is_put_right_and_what_no_client_could_read_in_it_is_shown_as_text() {
    let text = |text: &str| json!({"type": "text", "text": text});
    for (sent, due) in [
        (
            json!({"content": [text("a")], "structuredContent": {"a": null}, "isError": null, "_meta": null}),
            json!({"content": [text("a")], "structuredContent": {"a": null}}),
        ),
        (json!({"content": null}), json!({"content": []})),
        (json!({}), json!({"content": []})),
        (json!({"content": "a"}), json!({"content": [text("a")]})),
        (json!({"content": text("a")}), json!({"content": [text("a")]})),
        (
            json!({"content": [null, "a", {"text": "b"}, {"type": "text", "text": 7, "annotations": null}]}),
            json!({"content": [text("a"), text("b"), text("7")]}),
        ),
        (
            json!({"content": [{"type": "text", "text": {"a": 1}}], "isError": "True"}),
            json!({"content": [text("{\"a\":1}")], "isError": true}),
        ),
        (
            json!({"content": [{"type": "resource", "resource": {"uri": "x:1", "text": "t", "blob": null}}]}),
            json!({"content": [{"type": "resource", "resource": {"uri": "x:1", "text": "t"}}]}),
        ),
    ] {
        assert_eq!(result(Method::ToolsCall, &sent), Ok((due, Vec::new())), "{sent}");
    }
    for (block, why) in [
        (json!({"type": "text"}), "content[0] is no block of the kind \"text\": text is missing"),
        (
            json!({"type": "image", "data": null, "mimeType": "image/png"}),
            "content[0] is no block of the kind \"image\": data is missing",
        ),
        (
            json!({"type": "hologram", "depth": 3}),
            "content[0] is of the kind \"hologram\", which no client knows",
        ),
        (
            json!({"type": "resource", "resource": {"uri": "x:1"}}),
            "content[0] is no block of the kind \"resource\": resource.text or blob is missing",
        ),
        (json!([1]), "content[0] is no block of content"),
    ] {
        let (got, lost) = result(Method::ToolsCall, &json!({"content": [block]})).unwrap();
        assert_eq!(got["content"], json!([text(&block.to_string())]));
        assert_eq!(lost, [why]);
    }
    let several = json!({"messages": [{"role": "user", "content": [text("a"), text("b")]}]});
    let (got, _) = result(Method::PromptsGet, &several).unwrap();
    assert_eq!(
        got["messages"],
        json!([{"role": "user", "content": text("a")}, {"role": "user", "content": text("b")}])
    );
    let values: Vec<String> = (0..150).map(|n| n.to_string()).collect();
    let (got, lost) =
        result(Method::CompletionComplete, &json!({"completion": {"values": values, "total": null}}))
            .unwrap();
    assert_eq!((got["completion"]["values"].as_array().unwrap().len(), lost.len()), (100, 1));
}

#[test]
fn a_result_that_means_nothing_says_why() {
    for (method, sent, why) in [
        (Method::ToolsCall, json!({"content": 7}), "content"),
        (Method::PromptsGet, json!({"messages": null}), "messages is missing"),
        (
            Method::PromptsGet,
            json!({"messages": [{"role": "system", "content": {"type": "text", "text": "a"}}]}),
            "messages[0].role is none of user, assistant",
        ),
        (
            Method::ResourcesRead,
            json!({"contents": [{"uri": "x:1", "mimeType": "text/plain"}]}),
            "contents[0].text or blob is missing",
        ),
        (Method::ResourcesRead, json!({}), "contents is missing"),
        (Method::CompletionComplete, json!({"completion": {}}), "completion.values is missing"),
    ] {
        match result(method, &sent) {
            Err(said) => assert!(said.contains(why), "{sent}: {said}"),
            // A value in the place of a block is one.
            Ok((got, lost)) => assert!(lost[0].contains(why), "{sent} became {got}"),
        }
    }
}

/// Changes some part of a value into a wrong one.
fn mangled(tape: &mut Tape, value: &mut Value, depth: u8) {
    let odd = [
        json!(null),
        json!(7),
        json!("x"),
        json!([]),
        json!({}),
        json!(true),
        json!([null]),
        json!(1.5),
        json!("system"),
    ];
    match value {
        Value::Object(members) if depth > 0 => {
            let names: Vec<String> = members.keys().cloned().collect();
            for name in names {
                match tape.of(8) {
                    1 => members[&name] = odd[tape.of(odd.len())].clone(),
                    2 => drop(members.shift_remove(&name)),
                    _ => mangled(tape, &mut members[&name], depth - 1),
                }
            }
        }
        Value::Array(elements) if depth > 0 => {
            for element in elements {
                match tape.of(8) {
                    1 => *element = odd[tape.of(odd.len())].clone(),
                    _ => mangled(tape, element, depth - 1),
                }
            }
        }
        _ => {}
    }
}

#[test]
fn whatever_is_sent_is_let_in_valid_for_every_revision_or_not_at_all() {
    let methods = [
        Method::ToolsCall,
        Method::ToolsList,
        Method::PromptsGet,
        Method::PromptsList,
        Method::ResourcesRead,
        Method::ResourcesList,
        Method::ResourcesTemplatesList,
        Method::CompletionComplete,
    ];
    for row in methods.iter().map(Method::row) {
        let places = of_type(row.result.name);
        for_all(192, |tape| {
            let mut made = tape.object(row.result, &places);
            mangled(tape, &mut made, 6);
            let mut result = object(&made);
            match repair::result(&mut result, row) {
                Err(_) => Ok(()),
                Ok(_) => shown(&result, row).map(drop).map_err(|why| format!("{made}\n{why}")),
            }
        });
    }
}

#[test]
fn what_needs_no_change_is_let_in_to_the_byte() {
    let text = r#"{"content":[ {"type" : "text","text":"a\u0041", "vendor":[ null ]} ],"structuredContent":{ "a":null },"vendor":null,"_meta":{ "k":null }}"#;
    let mut result = Raw::parse(text.into(), 64).unwrap().object().unwrap();
    assert!(repair::result(&mut result, Method::ToolsCall.row()).unwrap().is_empty());
    assert_eq!(Raw::from(result).as_str(), text);
    let text = r#"{"name" : "t", "inputSchema":{ "type":"object","properties":{ "a":{ "default":null } } }}"#;
    let mut tool = Raw::parse(text.into(), 64).unwrap();
    repair::entry(&mut tool, repair::entries(Method::ToolsList.row()).unwrap()).unwrap();
    assert_eq!(tool.as_str(), text);
}

#[test]
fn what_travels_beside_an_answer_is_put_right_too_or_not_told() {
    let progress = |params: Value| Event::Progress(object(&params));
    let log = |params: Value| Event::Log(Level::Error, object(&params));
    for revision in Revision::ALL {
        let mut stream = Stream::new(revision.rules(), Some(Raw::of("token")), Some(Level::Debug));
        let mut told = |event: Event| {
            let message = parsed(&stream.event(event)?);
            judge(revision, Direction::ToClient, &message, None).unwrap();
            Some(message["params"].clone())
        };
        let due = json!({"progressToken": "token", "progress": 1});
        assert_eq!(told(progress(json!({"progress": 1, "total": null, "message": null}))), Some(due));
        let due = json!({"progressToken": "token", "progress": 2});
        assert_eq!(told(progress(json!({"progress": 2, "total": "many"}))), Some(due));
        assert_eq!(told(progress(json!({"progress": "x"}))), None);
        let due = json!({"level": "error", "data": null});
        assert_eq!(told(log(json!({"level": "error", "logger": null}))), Some(due.clone()));
        assert_eq!(told(log(json!({"level": "error", "logger": {}, "data": null}))), Some(due));
    }
}
