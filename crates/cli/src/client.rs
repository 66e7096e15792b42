//! `dateline list` and `dateline call`: a client in the terminal.

use std::io::IsTerminal as _;
use std::time::Duration;

use gateway::Target;
use proto::{Answer, Event, EventSink, Object, Raw, Rejection, Request, Service as _, list_all};
use serde_json::{Map, Value, json};
use spec::Method;
use transport::TransportError;
use transport::client::{Client, Program, Remote, Settings};

use crate::args::{Call, Configured, Target as Named};
use crate::config;
use crate::exit::{Failure, meant};
use crate::terminal::{self, print};
use crate::words;

/// How long something may take before it is said what is waited for.
const SILENT: Duration = Duration::from_secs(1);
/// Where a line of a terminal begins, and all that stands on it is gone.
const FRESH: &str = "\r\x1b[K";

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
    let name = |o: &Object, key: &str| o.string(key).map(|s| words::line(&s)).unwrap_or_default();
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
        let asking = list_all(method, client);
        let entries = waiting(&format!("its answer to {}", method.wire()), asking).await.map_err(answered)?;
        text += &table(heading, by, &entries);
        found.insert(row.lists.unwrap_or_default().into(), entries.iter().map(value).collect());
    }
    print(&if as_json { words::json(&Value::Object(found)) } else { text })
}

/// A list for people: a line each, with the first sentence of the description.
fn table(heading: &str, by: &str, entries: &[Raw]) -> String {
    if entries.is_empty() {
        return String::new();
    }
    let objects: Vec<Object> = entries.iter().filter_map(|entry| entry.object().ok()).collect();
    let text = |o: &Object, key: &str| o.string(key).map(|s| words::line(&s)).unwrap_or_default();
    let first = |o: &Object, key: &str| {
        let text = o.string(key).unwrap_or_default();
        let first: String = text.trim().lines().next().unwrap_or_default().chars().take(100).collect();
        words::line(&first)
    };
    let width = objects.iter().map(|o| text(o, by).chars().count()).max().unwrap_or(0).min(40);
    let mut lines = format!("\n{heading}\n");
    for object in &objects {
        let about = [first(object, "description"), first(object, "title"), first(object, "name")];
        let about = about.into_iter().find(|t| !t.is_empty()).unwrap_or_default();
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
    let tools = waiting("its tools", list_all(Method::ToolsList, client)).await.map_err(answered)?;
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
                terminal::show(format!("{FRESH}{}\n", progress(&params)).into_bytes());
            }
        }
    };
    let calling = async { tokio::join!(client.call(request), shown).0 };
    let answer = waiting(&format!("the answer of {tool}"), calling).await;
    let answer = answer.map_err(|rejection| {
        let names: Vec<_> = tools.iter().filter_map(|raw| raw.object().ok()?.string("name")).collect();
        // One that is not listed may be there all the same; where it is not, a near one is named.
        let meant =
            if definition.is_none() { meant(tool, names.iter().map(|name| &**name)) } else { String::new() };
        Failure::Answer(format!("{rejection}{meant}"))
    });
    match answer? {
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
    let message = params.string("message").map(|m| format!(" {}", words::line(&m))).unwrap_or_default();
    format!("… {}{total}{message}", number("progress").unwrap_or_default())
}

/// Reads arguments: one JSON object, or `key=value`. A value is text where the schema says so, else JSON where it is
/// JSON, else text; one that begins as an array or object of JSON and is none is a mistake.
fn arguments(words: &[String], schema: &Value) -> Result<Value, Failure> {
    if let [word] = words
        && word.trim_start().starts_with('{')
    {
        return serde_json::from_str(word)
            .map_err(|e| Failure::Usage(format!("the arguments are no JSON object: {}", broken(&e))));
    }
    let mut arguments = Map::new();
    for word in words {
        let (key, text) = word.split_once('=').ok_or_else(|| {
            Failure::Usage(format!(
                "{word:?} is no argument: write key=value, or all arguments as one JSON object"
            ))
        })?;
        if arguments.contains_key(key) {
            return Err(Failure::Usage(format!(
                "{key:?} is given twice; for several values write {key}=[…]"
            )));
        }
        let value = argument(text, &schema["properties"][key]["type"]).map_err(|why| {
            Failure::Usage(format!("the value of {key:?} begins as JSON and is none: {why}; for a text write it in quotes, {key}='\"…\"'"))
        })?;
        arguments.insert(key.to_owned(), value);
    }
    Ok(Value::Object(arguments))
}

/// Reads a value, as the types of its schema have it.
fn argument(text: &str, types: &Value) -> Result<Value, String> {
    let one = std::slice::from_ref(types);
    let types: Vec<&str> =
        types.as_array().map_or(one, Vec::as_slice).iter().filter_map(Value::as_str).collect();
    if types.contains(&"string") && types.iter().all(|of| matches!(*of, "string" | "null")) {
        return Ok(if types.len() > 1 && text == "null" { Value::Null } else { Value::from(text) });
    }
    match serde_json::from_str(text) {
        Ok(value) => Ok(value),
        Err(error) if text.trim_start().starts_with(['[', '{', '"']) => Err(broken(&error)),
        Err(_) => Ok(Value::from(text)),
    }
}

/// What is wrong with a text that should be JSON.
fn broken(error: &serde_json::Error) -> String {
    use serde_json::error::Category;
    match error.classify() {
        Category::Eof => "it breaks off at its end".to_owned(),
        _ => format!("it goes wrong at character {}", error.column()),
    }
}

/// Prints a tool's result.
fn show(result: &Object, as_json: bool) -> Result<(), Failure> {
    let failed = result.get("isError").is_some_and(Raw::is_true);
    if as_json {
        print(&words::json(&value(&Raw::from(result.clone()))))?;
        return if failed { Err(Failure::Answer("the tool reports an error".into())) } else { Ok(()) };
    }
    let text = match result.get("structuredContent").map(value) {
        Some(Value::Object(members)) if members.len() == 1 => match members.into_iter().next() {
            Some((_, Value::String(text))) => words::text(&text),
            Some((_, one)) => words::json_text(&one.to_string()),
            None => String::new(),
        },
        Some(structured) => words::json(&structured),
        None => {
            let blocks = result.get("content").and_then(|raw| raw.array().ok()).unwrap_or_default();
            blocks.iter().map(block).collect::<Vec<_>>().join("\n")
        }
    };
    match failed {
        true if text.trim().is_empty() => {
            Err(Failure::Answer("the tool reports an error, and not which".into()))
        }
        true => Err(Failure::Tool(text)),
        false => print(&(text.trim_end_matches('\n').to_owned() + "\n")),
    }
}

/// A block of content for people.
fn block(raw: &Raw) -> String {
    let object = raw.object().unwrap_or_default();
    let line = |object: &Object, name: &str| object.string(name).map(|s| words::line(&s)).unwrap_or_default();
    let text = |object: &Object| object.string("text").map(|s| words::text(&s));
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

/// Waits for something, and says on a terminal what for once that takes longer than people like to wonder.
async fn waiting<T>(what: &str, work: impl Future<Output = T>) -> T {
    if !std::io::stderr().is_terminal() {
        return work.await;
    }
    tokio::pin!(work);
    tokio::select! {
        done = &mut work => return done,
        () = tokio::time::sleep(SILENT) => {}
    }
    // On one line, so that it can be taken back.
    let what: String = words::line(what).chars().take(60).collect();
    terminal::show(format!("{FRESH}… waiting for {what}").into_bytes());
    let done = work.await;
    terminal::show(FRESH.into());
    done
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
        (Some(name), _) => configured_target(name, configured)?,
        (None, _) => {
            return Err(Failure::Usage("name a server: a URL, a configured name, or -- COMMAND ARGS".into()));
        }
    };
    let connected = match &target {
        Target::Program(program) => {
            waiting(&format!("{} to answer", program.command), Client::start(program, settings)).await
        }
        Target::Remote(remote) => {
            let shown = transport::shown_url(&remote.url);
            waiting(&format!("{shown} to answer"), Box::pin(Client::connect(remote, settings))).await
        }
        Target::Local(_) | Target::Unusable(_) => return Err(Failure::Usage("name a server".into())),
    };
    connected.map_err(|error| unreachable(&error, &target))
}

/// Where a configured server is.
fn configured_target(name: &str, configured: &Configured) -> Result<Target, Failure> {
    let config = config::load(configured)?;
    let servers = config.as_ref().map(|config| &config.options.servers[..]).unwrap_or_default();
    match servers.iter().find(|server| server.name == name).map(|server| &server.target) {
        Some(Target::Unusable(_)) => {
            let of = |config: &config::Config| config.complaint(name);
            Err(Failure::Usage(config.as_ref().and_then(of).unwrap_or_default()))
        }
        Some(target) => Ok(target.clone()),
        None => {
            let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
            let known = if names.is_empty() { "none".into() } else { names.join(", ") };
            let url = config::meant_url(name);
            let meant = if url.is_empty() { meant(name, names) } else { url };
            Err(Failure::Usage(format!(
                "{name:?} is neither a URL nor the name of a configured server{meant} (configured: {known})"
            )))
        }
    }
}

fn unreachable(error: &TransportError, target: &Target) -> Failure {
    let pathless = match target {
        Target::Remote(remote) => config::without_path(&remote.url),
        _ => None,
    };
    match (error, pathless) {
        (TransportError::Url { .. }, _) => Failure::Usage(error.to_string()),
        (TransportError::Protocol(_), Some(meant)) => Failure::Reach(format!("{error} (is {meant} meant?)")),
        _ => Failure::Reach(error.to_string()),
    }
}

fn answered(rejection: Rejection) -> Failure {
    Failure::Answer(rejection.to_string())
}

fn value(raw: &Raw) -> Value {
    raw.read().unwrap_or_else(|_| json!(raw.as_str()))
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
    fn a_value_that_breaks_off_or_comes_twice_is_a_mistake() {
        let words = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        let schema = json!({"properties": {"s": {"type": "string"}, "n": {"type": ["string", "null"]}}});
        for (typed, told) in [
            (&["a=[1,"][..], "it breaks off at its end"),
            (&["a={\"b\" 1}"], "it goes wrong at character 6"),
            (&["a=\"x"], "breaks off"),
            (&["a=1", "a=2"], "given twice"),
            (&["{\"a\":"], "it breaks off at its end"),
        ] {
            let why = arguments(&words(typed), &schema).unwrap_err().told().unwrap();
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
