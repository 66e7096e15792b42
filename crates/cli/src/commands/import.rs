//! `dateline import`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::config::{self, ClientServer, ServerEntry};
use crate::config_commands::{config_path, count_servers, doubts_about, running_state};
use crate::escape;
use crate::exit::Failure;
use crate::options::{AdminOptions, ConfigOptions};
use crate::terminal::print;

#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  dateline import\n  dateline import --apply\n  dateline import --project ~/shop --apply"
)]
pub(crate) struct Args {
    /// Add the servers that are shown with a +.
    #[arg(long)]
    pub(crate) apply: bool,
    /// Import the servers of this project of Claude Code too; can be repeated.
    ///
    /// Their programs run in the project's folder.
    #[arg(long = "project", value_name = "FOLDER")]
    pub(crate) projects: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) configured: ConfigOptions,
    #[command(flatten)]
    pub(crate) admin: AdminOptions,
}

/// `dateline import`.
pub(crate) async fn run(args: Args, as_json: bool) -> Result<(), Failure> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let home = home.ok_or_else(|| {
        Failure::Usage("$HOME is not set, so the configurations of clients cannot be found; set it".into())
    })?;
    let (found, unreadable) = config::servers_of_clients(&home);
    known_projects(&args.projects, &found)?;
    let path = config_path(&args.configured)?;
    let there = if path.exists() {
        config::load_file(&path).map_err(Failure::Usage)?.options.servers
    } else {
        Vec::new()
    };
    let mut taken: Vec<String> = there.into_iter().map(|server| server.name).collect();
    let (mut new, mut shown, mut listed) = (Vec::new(), String::new(), Vec::<Value>::new());
    for server in found {
        let entry = server.entry.and_then(|entry| match () {
            () if taken.contains(&server.name) => Err("there is a server with this name already".to_owned()),
            () if is_dateline(&entry) => Err("it is dateline itself".to_owned()),
            () if !is_wanted(server.project.as_deref(), &args.projects) => {
                Err("it is for that project only; `--project FOLDER` imports it".to_owned())
            }
            () => Ok(entry),
        });
        let notes = entry.as_ref().map(|entry| notes(&server.name, entry)).unwrap_or_default();
        listed.push(json!({
            "name": server.name, "client": server.client, "file": server.path, "project": server.project,
            "target": entry.as_ref().map(ServerEntry::shown_target).ok(), "skipped": entry.as_ref().err(), "notes": notes,
        }));
        let name = escape::line(&server.name);
        let project =
            |project: &PathBuf| format!(" (project {})", escape::line(&project.display().to_string()));
        let of = format!("{}{}", server.client, server.project.as_ref().map(project).unwrap_or_default());
        match entry {
            Err(why) => {
                shown += &format!("  - {name} from {of}: not imported: {}\n", escape::line(&reason(&why)));
            }
            Ok(entry) => {
                let (what, file) = (escape::line(&entry.shown_target()), server.path.display());
                shown += &format!("  + {name}  {what}  (from {of}, {file})\n");
                notes.iter().for_each(|note| shown += &format!("      {}\n", escape::line(note)));
                taken.push(server.name.clone());
                new.push((server.name, entry));
            }
        }
    }
    if args.apply && !new.is_empty() {
        config::add(&path, &new).map_err(Failure::Usage)?;
    }
    if as_json {
        let shown = json!({"config": path, "applied": args.apply, "servers": listed, "troubles": unreadable});
        return print(&escape::json(&shown));
    }
    for trouble in unreadable {
        shown += &format!("  ! {}\n", escape::line(&trouble));
    }
    let verdict = match (new.len(), args.apply) {
        (0, _) => "no new servers were found\n".to_owned(),
        (n, true) => {
            let state = running_state(&args.admin, &path, &new[0].0, true).await;
            format!("added {} to {}; {state}\n", count_servers(n), path.display())
        }
        (n, false) => {
            let would = count_servers(n);
            format!(
                "{would} would be added to {}; to add, run the same command with --apply\n",
                path.display()
            )
        }
    };
    print(&(shown + &verdict))
}

/// Refuses a project of which no client has servers.
fn known_projects(wanted: &[PathBuf], found: &[ClientServer]) -> Result<(), Failure> {
    let known: BTreeSet<&Path> = found.iter().filter_map(|server| server.project.as_deref()).collect();
    let Some(unknown) = wanted.iter().find(|folder| !known.iter().any(|known| is_same(known, folder))) else {
        return Ok(());
    };
    let known: Vec<String> = known.iter().map(|folder| folder.display().to_string()).collect();
    let known = if known.is_empty() { "no project".to_owned() } else { known.join(", ") };
    Err(Failure::Usage(format!(
        "Claude Code has no servers for the project {}; it has some for {known}",
        unknown.display()
    )))
}

/// Whether a server is taken: one that is for all projects, or for one that is asked for.
fn is_wanted(project: Option<&Path>, wanted: &[PathBuf]) -> bool {
    project.is_none_or(|project| wanted.iter().any(|folder| is_same(project, folder)))
}

/// Whether two paths lead to the same folder.
fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| config::absolute(path));
    real(one) == real(other)
}

/// A reason as the end of a sentence: one that begins with a key becomes one about the entry.
fn reason(why: &str) -> String {
    if why.starts_with('"') { format!("its {why}") } else { why.to_owned() }
}

/// What to know about a server before it is served: what is not imported, and what this machine lacks for it.
fn notes(name: &str, entry: &ServerEntry) -> Vec<String> {
    let mut notes = Vec::new();
    if !entry.ignored_keys.is_empty() {
        notes
            .push(format!("not imported, since dateline does not use it: {}", entry.ignored_keys.join(", ")));
    }
    notes.extend(doubts_about(name, entry));
    notes
}

/// Whether a server is dateline itself: it would serve itself.
fn is_dateline(entry: &ServerEntry) -> bool {
    let serves = entry.args.first().is_some_and(|arg| matches!(arg.as_str(), "stdio" | "serve"));
    let command = entry.command.as_deref().and_then(|command| command.rsplit('/').next());
    serves && command == Some("dateline")
}
