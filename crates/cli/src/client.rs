//! `dateline list` and `dateline call`: a client in the terminal.

use std::io::{IsTerminal as _, Write as _};

use gateway::Target;
use proto::{Answer, Event, EventSink, Object, Raw, Rejection, Request, Service as _, list_all};
use serde_json::{Map, Value, json};
use spec::Method;
use transport::TransportError;
use transport::client::{Client, Program, Remote, Settings};

use crate::args::{Call, Configured, Target as Named};
use crate::config;
use crate::exit::Failure;

/// `dateline list`.
pub(crate) async fn list(args: Named, as_json: bool) -> Result<(), Failure> {
    let client = connect(args.target.as_deref(), &args.command, &args.configured).await?;
    let listed = lists(&client, as_json).await;
    client.close().await;
    listed
}

async fn lists(client: &Client, as_json: bool) -> Result<(), Failure> {
    let description = client.describe();
    let mut found = Map::new();
    found.insert("server".into(), value(&Raw::from(description.identity.clone())));
    found.insert("revision".into(), client.revision().as_str().into());
    let mut text = String::new();
    let name = |o: &Object, key: &str| o.string(key).map(|s| plain(&s)).unwrap_or_default();
    let named = [name(&description.identity, "name"), name(&description.identity, "version")].join(" ");
    let named = if named.trim().is_empty() { "a server without a name" } else { named.trim() };
    text += &format!("{named}, revision {}\n", client.revision());
    let lists = [
        (Method::ToolsList, "Tools", "name"),
        (Method::PromptsList, "Prompts", "name"),
        (Method::ResourcesList, "Resources", "uri"),
        (Method::ResourcesTemplatesList, "Resource templates", "uriTemplate"),
    ];
    for (method, heading, by) in lists {
        let row = method.row();
        if row.needs.is_some_and(|needed| !description.capabilities.has(needed)) {
            continue;
        }
        let entries = list_all(method, client).await.map_err(answered)?;
        text += &table(heading, by, &entries);
        found.insert(row.lists.unwrap_or_default().into(), entries.iter().map(value).collect());
    }
    print(if as_json { json_text(&Value::Object(found)) } else { text })
}

/// A list for people: a line each, with the first sentence of the description.
fn table(heading: &str, by: &str, entries: &[Raw]) -> String {
    if entries.is_empty() {
        return String::new();
    }
    let objects: Vec<Object> = entries.iter().filter_map(|entry| entry.object().ok()).collect();
    let text = |o: &Object, key: &str| o.string(key).map(|s| plain(&s)).unwrap_or_default();
    let width = objects.iter().map(|o| text(o, by).chars().count()).max().unwrap_or(0).min(40);
    let mut lines = format!("\n{heading}\n");
    for object in &objects {
        let about = [text(object, "description"), text(object, "title"), text(object, "name")];
        let about = about.into_iter().find(|t| !t.is_empty()).unwrap_or_default();
        let about: String = about.lines().next().unwrap_or_default().chars().take(100).collect();
        lines += format!("  {:width$}  {about}", text(object, by)).trim_end();
        lines += "\n";
    }
    lines
}

/// `dateline call`.
pub(crate) async fn call(args: Call, as_json: bool) -> Result<(), Failure> {
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
    let tools = list_all(Method::ToolsList, client).await.map_err(answered)?;
    let definition =
        tools.iter().filter_map(|raw| raw.object().ok()).find(|o| o.string("name").as_deref() == Some(tool));
    let schema = definition.as_ref().and_then(|o| o.get("inputSchema")).map(value).unwrap_or_default();
    let arguments = arguments(&words, &schema)?;
    let params = Object::new().with("name", tool).with("arguments", Raw::of(&arguments));
    let (sink, events) = async_channel::bounded(256);
    let mut request = Request::ours(Method::ToolsCall, params);
    request.wants_progress = std::io::stderr().is_terminal();
    request.events = EventSink::new(0, sink);
    let shown = async {
        while let Ok((_, event)) = events.recv().await {
            if let Event::Progress(params) = event {
                eprintln!("{}", progress(&params));
            }
        }
    };
    let (answer, ()) = tokio::join!(client.call(request), shown);
    match answer.map_err(answered)? {
        Answer::Complete(result) => show(&result, as_json),
        Answer::InputRequired(interim) => {
            let asked: Vec<_> = interim.questions.iter().map(|(_, ask)| ask.question.wire()).collect();
            Err(Failure::Answer(format!(
                "the tool asks for input ({}), which a terminal cannot give",
                asked.join(", ")
            )))
        }
    }
}

fn progress(params: &Object) -> String {
    let number = |name: &str| params.get(name).map(|raw| raw.as_str().to_owned());
    let total = number("total").map(|total| format!("/{total}")).unwrap_or_default();
    let message = params.string("message").map(|m| format!(" {}", plain(&m))).unwrap_or_default();
    format!("… {}{total}{message}", number("progress").unwrap_or_default())
}

/// Reads arguments: one JSON object, or `key=value`. A value is text where the schema says string, else JSON
/// where it is JSON, else text.
fn arguments(words: &[String], schema: &Value) -> Result<Value, Failure> {
    if let [word] = words
        && word.trim_start().starts_with('{')
    {
        return serde_json::from_str(word)
            .map_err(|e| Failure::Usage(format!("the arguments are no JSON object: {e}")));
    }
    let mut arguments = Map::new();
    for word in words {
        let (key, text) = word.split_once('=').ok_or_else(|| {
            Failure::Usage(format!(
                "{word:?} is no argument: write key=value, or all arguments as one JSON object"
            ))
        })?;
        let is_text = schema["properties"][key]["type"] == "string";
        let value = if is_text { None } else { serde_json::from_str(text).ok() };
        arguments.insert(key.to_owned(), value.unwrap_or_else(|| Value::from(text)));
    }
    Ok(Value::Object(arguments))
}

/// Prints a tool's result.
fn show(result: &Object, as_json: bool) -> Result<(), Failure> {
    let failed = result.get("isError").is_some_and(Raw::is_true);
    if as_json {
        print(json_text(&value(&Raw::from(result.clone()))))?;
        return if failed { Err(Failure::Answer("the tool reports an error".into())) } else { Ok(()) };
    }
    let text = match result.get("structuredContent").map(value) {
        Some(Value::Object(members)) if members.len() == 1 => match members.into_iter().next() {
            Some((_, Value::String(text))) => plain(&text),
            Some((_, one)) => one.to_string(),
            None => String::new(),
        },
        Some(structured) => json_text(&structured),
        None => {
            let blocks = result.get("content").and_then(|raw| raw.array().ok()).unwrap_or_default();
            blocks.iter().map(block).collect::<Vec<_>>().join("\n")
        }
    };
    if failed { Err(Failure::Answer(text)) } else { print(text.trim_end_matches('\n').to_owned() + "\n") }
}

/// A block of content for people.
fn block(raw: &Raw) -> String {
    let object = raw.object().unwrap_or_default();
    let text = |name: &str| object.string(name).map(|s| plain(&s)).unwrap_or_default();
    match text("type").as_str() {
        "text" => text("text"),
        "resource_link" => format!("[resource {}]", text("uri")),
        "resource" => {
            let resource = object.get("resource").and_then(|raw| raw.object().ok()).unwrap_or_default();
            let uri = resource.string("uri").map(|s| plain(&s)).unwrap_or_default();
            match resource.string("text") {
                Some(text) => format!("[resource {uri}]\n{}", plain(&text)),
                None => format!("[resource {uri}]"),
            }
        }
        kind => format!("[{kind} {}, {} characters of base64]", text("mimeType"), text("data").len()),
    }
}

async fn connect(
    target: Option<&str>,
    command: &[String],
    configured: &Configured,
) -> Result<Client, Failure> {
    let settings = Settings::new("dateline", env!("CARGO_PKG_VERSION"));
    let target = match (target, command) {
        (_, [program, args @ ..]) => {
            let (command, args) = (program.clone(), args.to_vec());
            Target::Program(Program { name: command.clone(), command, args, ..Program::default() })
        }
        (Some(url), _) if url.contains("://") => Target::Remote(Remote::new(url)),
        (Some(name), _) => {
            let servers = config::load(configured)?.map(|config| config.options.servers).unwrap_or_default();
            let known: Vec<_> = servers.iter().map(|s| s.name.clone()).collect();
            let found = servers.into_iter().find(|s| s.name == name).map(|s| s.target);
            found.ok_or_else(|| {
                let known = if known.is_empty() { "none".into() } else { known.join(", ") };
                Failure::Usage(format!(
                    "{name:?} is neither a URL nor the name of a configured server (configured: {known})"
                ))
            })?
        }
        (None, _) => {
            return Err(Failure::Usage("name a server: a URL, a configured name, or -- COMMAND ARGS".into()));
        }
    };
    let connected = match &target {
        Target::Program(program) => Client::start(program, settings).await,
        Target::Remote(remote) => Client::connect(remote, settings).await,
        Target::Local(_) => return Err(Failure::Usage("name a server".into())),
    };
    connected.map_err(unreachable)
}

fn unreachable(error: TransportError) -> Failure {
    match error {
        TransportError::Url { .. } => Failure::Usage(error.to_string()),
        _ => Failure::Reach(error.to_string()),
    }
}

fn answered(rejection: Rejection) -> Failure {
    Failure::Answer(plain(&rejection.to_string()))
}

fn value(raw: &Raw) -> Value {
    raw.read().unwrap_or_else(|_| json!(raw.as_str()))
}

pub(crate) fn json_text(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

/// Text of a server that cannot steer the terminal.
pub(crate) fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

/// Prints; a reader that went away, as `head` does, is no failure.
pub(crate) fn print(text: String) -> Result<(), Failure> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::Other(format!("standard output cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
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
    fn a_server_cannot_steer_the_terminal() {
        assert_eq!(plain("a\x1b[2J\r\nb\tc\u{9b}"), "a[2J\nb\tc");
    }
}
