//! `dateline add`.

use crate::config::{self, ServerEntry};
use crate::config_commands::{config_path, doubts_about, running_state};
use crate::escape;
use crate::exit::Failure;
use crate::options::{AdminOptions, ConfigOptions};
use crate::terminal::print;

#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  dateline add time -- uvx mcp-server-time\n  dateline add remote https://example.com/mcp --header 'Authorization: Bearer ${TOKEN}'"
)]
pub(crate) struct Args {
    /// The server's name.
    pub(crate) name: String,
    /// The server's URL, when it is a remote server.
    #[arg(required_unless_present = "command")]
    pub(crate) url: Option<String>,
    /// An environment variable of the command; can be repeated.
    #[arg(long = "env", value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// A header of every request to the URL, NAME=VALUE or 'NAME: VALUE'; can be repeated.
    #[arg(long = "header", value_name = "NAME=VALUE")]
    pub(crate) headers: Vec<String>,
    #[command(flatten)]
    pub(crate) configured: ConfigOptions,
    #[command(flatten)]
    pub(crate) admin: AdminOptions,
    /// The command that starts the server, after `--`.
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "url")]
    pub(crate) command: Vec<String>,
}

/// `dateline add`.
pub(crate) async fn run(args: Args) -> Result<(), Failure> {
    if args.name.trim().is_empty() {
        return Err(Failure::Usage("a server needs a name".into()));
    }
    let entry = match (args.url, args.command.split_first()) {
        (Some(_), _) if !args.env.is_empty() => {
            return Err(Failure::Usage("--env sets variables of a command; for a URL, use --header".into()));
        }
        (Some(url), _) => ServerEntry {
            url: Some(url),
            headers: pairs(&args.headers, &['=', ':'])?,
            ..ServerEntry::default()
        },
        (None, Some(_)) if !args.headers.is_empty() => {
            return Err(Failure::Usage("--header sets headers for a URL; for a command, use --env".into()));
        }
        (None, Some((command, rest))) => ServerEntry {
            command: Some(command.clone()),
            args: rest.to_vec(),
            env: pairs(&args.env, &['='])?,
            ..ServerEntry::default()
        },
        (None, None) => {
            return Err(Failure::Usage("say what the server is: a URL, or -- COMMAND ARGS".into()));
        }
    };
    refuse(&args.name, &entry)?;
    let path = config_path(&args.configured)?;
    let name = args.name;
    let notes: String = doubts_about(&name, &entry)
        .iter()
        .map(|note| format!("  warning: {}\n", escape::line(note)))
        .collect();
    config::add(&path, &[(name.clone(), entry)]).map_err(Failure::Usage)?;
    config::load_file(&path).map_err(Failure::Usage)?;
    let state = running_state(&args.admin, &path, &name, true).await;
    print(&format!("{} was added to {}; {state}\n{notes}", escape::line(&name), path.display()))
}

/// Reads pairs of a name and a value. The first of some characters is between them.
fn pairs(words: &[String], between: &[char]) -> Result<Vec<(String, String)>, Failure> {
    let pair = |word: &String| {
        let (name, value) =
            word.split_once(between).ok_or_else(|| Failure::Usage(format!("{word:?} must be NAME=VALUE")))?;
        Ok((name.trim().to_owned(), value.trim_start().to_owned()))
    };
    words.iter().map(pair).collect()
}

/// Refuses an entry that cannot be used in any environment.
fn refuse(name: &str, entry: &ServerEntry) -> Result<(), Failure> {
    let text = config::text_of(&[(name.to_owned(), entry.clone())]);
    let any = |name: &str| std::env::var(name).ok().or_else(|| Some("x".to_owned()));
    let Some(unusable) = config::read(&text, &any).map_err(Failure::Usage)?.unusable.into_iter().next()
    else {
        return Ok(());
    };
    if entry.shown_target().contains("${") {
        return Ok(());
    }
    let command = match &entry.url {
        Some(url) if !url.contains([':', '/', '.']) => {
            format!("; to add a command, write: dateline add {name} -- {url}")
        }
        _ => String::new(),
    };
    Err(Failure::Usage(format!("{}{command}", unusable.problem.what)))
}
