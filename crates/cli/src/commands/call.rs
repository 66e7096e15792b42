//! `dateline call`.

use std::io::IsTerminal as _;

use proto::{Answer, Event, EventQueue, Object, Raw, Request, Service as _, list_all};
use serde_json::{Map, Value};
use spec::Method;
use transport::client::Client;

use crate::connect::{CLEAR_LINE, connect, server_error, value, while_waiting};
use crate::escape;
use crate::exit::{Failure, suggestion};
use crate::options::ConfigOptions;
use crate::terminal::{self, print};

#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  dateline call http://127.0.0.1:4400/mcp add a=40 b=2\n  dateline call echo message=hi -- npx -y @modelcontextprotocol/server-everything"
)]
pub(crate) struct Args {
    /// A server (its URL or configured name), a tool, and arguments as key=value or as one JSON object.
    ///
    /// A value is read as a string if the tool's schema says so, else as JSON if it is valid JSON, else as a string. With
    /// `-- COMMAND`, TARGET is left out.
    #[arg(value_name = "TARGET TOOL [ARGS]", required = true)]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) configured: ConfigOptions,
    /// A command that starts the server, after `--`.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// `dateline call`.
pub(crate) async fn run(args: Args, as_json: bool) -> Result<(), Failure> {
    let mut words = args.words.into_iter();
    let target = if args.command.is_empty() { words.next() } else { None };
    let tool = words.next().ok_or_else(|| {
        Failure::Usage("name the tool to call: dateline call TARGET TOOL key=value …".into())
    })?;
    let client = connect(target.as_deref(), &args.command, &args.configured).await?;
    let called = call_tool(&client, &tool, words.collect(), as_json).await;
    client.close().await;
    called
}

async fn call_tool(client: &Client, tool: &str, words: Vec<String>, as_json: bool) -> Result<(), Failure> {
    // The definition says how to read the arguments, and which of them HTTP mirrors in headers.
    let tools =
        while_waiting("its tools", list_all(Method::ToolsList, client)).await.map_err(server_error)?;
    let definition =
        tools.iter().filter_map(|raw| raw.object().ok()).find(|o| o.string("name").as_deref() == Some(tool));
    let schema = definition.as_ref().and_then(|o| o.get("inputSchema")).map(value).unwrap_or_default();
    let arguments = arguments(&words, &schema)?;
    let params = Object::new().with("name", tool).with("arguments", Raw::of(&arguments));
    let mut events = EventQueue::new(256);
    let mut request = Request::own(Method::ToolsCall, params);
    request.wants_progress = std::io::stderr().is_terminal();
    request.events = events.sink(0);
    let calling = async {
        let mut called = client.call(request);
        loop {
            tokio::select! {
                biased;
                (_, event) = events.next() => if let Event::Progress(params) = event {
                    terminal::show(format!("{CLEAR_LINE}{}\n", progress(&params)).into_bytes());
                },
                answer = &mut called => return answer,
            }
        }
    };
    let answer = while_waiting(&format!("the answer of {tool}"), calling).await;
    let answer = answer.map_err(|rejection| {
        let names: Vec<_> = tools.iter().filter_map(|raw| raw.object().ok()?.string("name")).collect();
        // A server may have tools that it does not list, so the call is made first.
        let meant = if definition.is_none() {
            suggestion(tool, names.iter().map(|name| &**name))
        } else {
            String::new()
        };
        Failure::ServerError(format!("{rejection}{meant}"))
    });
    match answer? {
        Answer::Complete(result) => show(&result, as_json),
        Answer::InputRequired(interim) => {
            let asked: Vec<_> = interim.questions.iter().map(|(_, ask)| ask.question.wire()).collect();
            Err(Failure::ServerError(format!(
                "the tool asks the user for input ({}), which `dateline call` cannot give",
                asked.join(", ")
            )))
        }
    }
}

fn progress(params: &Object) -> String {
    let number = |name: &str| params.get(name).map(|raw| raw.as_str().to_owned());
    let total = number("total").map(|total| format!("/{total}")).unwrap_or_default();
    let message = params.string("message").map(|m| format!(" {}", escape::line(&m))).unwrap_or_default();
    format!("… {}{total}{message}", number("progress").unwrap_or_default())
}

/// Reads arguments: one JSON object, or words of the form `key=value`.
///
/// A value is a string when the schema says so, else JSON when it is valid JSON, else a string.
///
/// # Errors
/// When a word has another form, or a value begins like an array, object or string of JSON and is not valid.
fn arguments(words: &[String], schema: &Value) -> Result<Value, Failure> {
    if let [word] = words
        && word.trim_start().starts_with('{')
    {
        return serde_json::from_str(word).map_err(|e| {
            Failure::Usage(format!("the arguments are not a valid JSON object: {}", json_mistake(&e)))
        });
    }
    let mut arguments = Map::new();
    for word in words {
        let (key, text) = word.split_once('=').ok_or_else(|| {
            Failure::Usage(format!(
                "{word:?} is not an argument: write key=value, or all arguments as one JSON object"
            ))
        })?;
        if arguments.contains_key(key) {
            return Err(Failure::Usage(format!(
                "{key:?} is given twice; for several values write {key}=[…]"
            )));
        }
        let value = argument(text, &schema["properties"][key]["type"]).map_err(|why| {
            Failure::Usage(format!("the value of {key:?} begins like JSON, but {why}; to pass it as a string, put it in quotes: {key}='\"…\"'"))
        })?;
        arguments.insert(key.to_owned(), value);
    }
    Ok(Value::Object(arguments))
}

/// Reads a value by the types that its schema allows.
fn argument(text: &str, types: &Value) -> Result<Value, String> {
    let one = std::slice::from_ref(types);
    let types: Vec<&str> =
        types.as_array().map_or(one, Vec::as_slice).iter().filter_map(Value::as_str).collect();
    if types.contains(&"string") && types.iter().all(|of| matches!(*of, "string" | "null")) {
        return Ok(if types.len() > 1 && text == "null" { Value::Null } else { Value::from(text) });
    }
    match serde_json::from_str(text) {
        Ok(value) => Ok(value),
        Err(error) if text.trim_start().starts_with(['[', '{', '"']) => Err(json_mistake(&error)),
        Err(_) => Ok(Value::from(text)),
    }
}

/// What is wrong with a text that should be JSON, as the end of a sentence.
fn json_mistake(error: &serde_json::Error) -> String {
    use serde_json::error::Category;
    match error.classify() {
        Category::Eof => "it ends too early".to_owned(),
        _ => format!("it has a mistake at character {}", error.column()),
    }
}

/// Prints a tool's result.
fn show(result: &Object, as_json: bool) -> Result<(), Failure> {
    let failed = result.get("isError").is_some_and(Raw::is_true);
    if as_json {
        print(&escape::json(&value(&Raw::from(result.clone()))))?;
        return if failed { Err(Failure::ServerError("the tool reported an error".into())) } else { Ok(()) };
    }
    let text = match result.get("structuredContent").map(value) {
        Some(Value::Object(members)) if members.len() == 1 => match members.into_iter().next() {
            Some((_, Value::String(text))) => escape::text(&text),
            Some((_, one)) => escape::json_text(&one.to_string()),
            None => String::new(),
        },
        Some(structured) => escape::json(&structured),
        None => {
            let blocks = result.get("content").and_then(|raw| raw.array().ok()).unwrap_or_default();
            blocks.iter().map(block).collect::<Vec<_>>().join("\n")
        }
    };
    match failed {
        true if text.trim().is_empty() => {
            Err(Failure::ServerError("the tool reported an error without a message".into()))
        }
        true => Err(Failure::ToolError(text)),
        false => print(&(text.trim_end_matches('\n').to_owned() + "\n")),
    }
}

/// A block of content for people.
fn block(raw: &Raw) -> String {
    let object = raw.object().unwrap_or_default();
    let line =
        |object: &Object, name: &str| object.string(name).map(|s| escape::line(&s)).unwrap_or_default();
    let text = |object: &Object| object.string("text").map(|s| escape::text(&s));
    match line(&object, "type").as_str() {
        "text" => text(&object).unwrap_or_default(),
        "resource_link" => format!("[resource {}]", line(&object, "uri")),
        "resource" => {
            let resource = object.get("resource").and_then(|raw| raw.object().ok()).unwrap_or_default();
            let uri = line(&resource, "uri");
            match text(&resource) {
                Some(text) => format!("[resource {uri}]\n{text}"),
                None => format!("[resource {uri}]"),
            }
        }
        kind => {
            let size = object.string("data").map_or(0, |data| data.len());
            format!("[{kind} {}, {size} characters of base64]", line(&object, "mimeType"))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_read_as_the_schema_wants_them() {
        let words = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        let schema = json!({"properties": {"zip": {"type": "string"}}});
        let read = arguments(&words(&["a=40", "b=x=y", "zip=01234", "l=[1]", "t=true"]), &schema).unwrap();
        assert_eq!(read, json!({"a": 40, "b": "x=y", "zip": "01234", "l": [1], "t": true}));
        assert_eq!(arguments(&words(&[r#"{"a": 1}"#]), &schema).unwrap(), json!({"a": 1}));
        assert!(arguments(&words(&["oops"]), &schema).is_err());
    }

    #[test]
    fn a_value_that_ends_too_early_or_comes_twice_is_a_mistake() {
        let words = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        let schema = json!({"properties": {"s": {"type": "string"}, "n": {"type": ["string", "null"]}}});
        for (typed, told) in [
            (&["a=[1,"][..], "it ends too early"),
            (&["a={\"b\" 1}"], "it has a mistake at character 6"),
            (&["a=\"x"], "ends too early"),
            (&["a=1", "a=2"], "given twice"),
            (&["{\"a\":"], "it ends too early"),
        ] {
            let why = arguments(&words(typed), &schema).unwrap_err().message().unwrap();
            assert!(
                why.contains(told) && !why.contains("EOF") && !why.contains(" line "),
                "{typed:?}: {why}"
            );
        }
        let read = arguments(&words(&["s=[1,", "n=42", "t=12:30", "u=a b"]), &schema).unwrap();
        assert_eq!(read, json!({"s": "[1,", "n": "42", "t": "12:30", "u": "a b"}));
        assert_eq!(arguments(&words(&["n=null"]), &schema).unwrap(), json!({"n": null}));
    }
}
