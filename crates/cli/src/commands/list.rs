//! `dateline list`.

use proto::{Object, Raw, Service as _, list_all};
use serde_json::{Map, Value};
use spec::Method;
use transport::client::Client;

use crate::connect::{connect, server_error, value, while_waiting};
use crate::escape;
use crate::exit::Failure;
use crate::options::ConfigOptions;
use crate::terminal::print;

#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  dateline list http://127.0.0.1:4400/mcp\n  dateline list time\n  dateline list -- uvx mcp-server-time"
)]
pub(crate) struct Args {
    /// A URL, or the name of a configured server.
    #[arg(value_name = "TARGET", required_unless_present = "command")]
    pub(crate) target: Option<String>,
    #[command(flatten)]
    pub(crate) configured: ConfigOptions,
    /// A command that starts the server, after `--`.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// `dateline list`.
pub(crate) async fn run(args: Args, as_json: bool) -> Result<(), Failure> {
    let client = connect(args.target.as_deref(), &args.command, &args.configured).await?;
    let listed = lists(&client, as_json).await;
    client.close().await;
    listed
}

async fn lists(client: &Client, as_json: bool) -> Result<(), Failure> {
    let description = client.describe();
    let mut found = Map::new();
    found.insert("server".into(), value(&description.identity));
    found.insert("revision".into(), client.revision().as_str().into());
    let mut text = String::new();
    let name = |o: &Object, key: &str| o.string(key).map(|s| escape::line(&s)).unwrap_or_default();
    let identity = description.identity.object().unwrap_or_default();
    let named = [name(&identity, "name"), name(&identity, "version")].join(" ");
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
        let entries =
            while_waiting(&format!("its answer to {}", method.wire()), asking).await.map_err(server_error)?;
        text += &table(heading, by, &entries);
        found.insert(row.lists.unwrap_or_default().into(), entries.iter().map(value).collect());
    }
    print(&if as_json { escape::json(&Value::Object(found)) } else { text })
}

/// A list for people: a line each, with the first sentence of the description.
fn table(heading: &str, by: &str, entries: &[Raw]) -> String {
    if entries.is_empty() {
        return String::new();
    }
    let objects: Vec<Object> = entries.iter().filter_map(|entry| entry.object().ok()).collect();
    let text = |o: &Object, key: &str| o.string(key).map(|s| escape::line(&s)).unwrap_or_default();
    let first = |o: &Object, key: &str| {
        let text = o.string(key).unwrap_or_default();
        let first: String = text.trim().lines().next().unwrap_or_default().chars().take(100).collect();
        escape::line(&first)
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
