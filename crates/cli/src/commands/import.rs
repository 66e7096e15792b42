//! `dateline import`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::config::{self, Entry, Found};
use crate::configure::{lacks, own, served, servers_of};
use crate::exit::Failure;
use crate::options::{AdminOptions, ConfigOptions};
use crate::terminal::print;
use crate::words;

#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  dateline import\n  dateline import --apply\n  dateline import --project ~/shop --apply"
)]
pub(crate) struct Args {
    /// Add the servers that are shown with a +.
    #[arg(long)]
    pub(crate) apply: bool,
    /// Take the servers of this project of Claude Code too; can be repeated. A server that is a program runs in the
    /// project's folder.
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
    let home = home
        .ok_or_else(|| Failure::Usage("$HOME is not set: where are the clients' configurations?".into()))?;
    let (found, troubles) = config::on_this_machine(&home);
    known_projects(&args.projects, &found)?;
    let path = own(&args.configured)?;
    let there =
        if path.exists() { config::from(&path).map_err(Failure::Usage)?.options.servers } else { Vec::new() };
    let mut taken: Vec<String> = there.into_iter().map(|server| server.name).collect();
    let (mut new, mut shown, mut listed) = (Vec::new(), String::new(), Vec::<Value>::new());
    for server in found {
        let entry = server.entry.and_then(|entry| match () {
            () if taken.contains(&server.name) => Err("there is one of this name already".to_owned()),
            () if is_dateline(&entry) => Err("it is dateline itself".to_owned()),
            () if !is_wanted(server.project.as_deref(), &args.projects) => {
                Err("it is for that project only; `--project FOLDER` takes it".to_owned())
            }
            () => Ok(entry),
        });
        let notes = entry.as_ref().map(|entry| notes(&server.name, entry)).unwrap_or_default();
        listed.push(json!({
            "name": server.name, "client": server.client, "file": server.path, "project": server.project,
            "target": entry.as_ref().map(Entry::place).ok(), "skipped": entry.as_ref().err(), "notes": notes,
        }));
        let name = words::line(&server.name);
        let project =
            |project: &PathBuf| format!(" (project {})", words::line(&project.display().to_string()));
        let of = format!("{}{}", server.client, server.project.as_ref().map(project).unwrap_or_default());
        match entry {
            Err(why) => {
                shown += &format!("  - {name} of {of}: left out, since {}\n", words::line(&because(&why)));
            }
            Ok(entry) => {
                let (what, file) = (words::line(&entry.place()), server.path.display());
                shown += &format!("  + {name}  {what}  (from {of}, {file})\n");
                notes.iter().for_each(|note| shown += &format!("      {}\n", words::line(note)));
                taken.push(server.name.clone());
                new.push((server.name, entry));
            }
        }
    }
    if args.apply && !new.is_empty() {
        config::add(&path, &new).map_err(Failure::Usage)?;
    }
    if as_json {
        let shown = json!({"config": path, "applied": args.apply, "servers": listed, "troubles": troubles});
        return print(&words::json(&shown));
    }
    for trouble in troubles {
        shown += &format!("  ! {}\n", words::line(&trouble));
    }
    let verdict = match (new.len(), args.apply) {
        (0, _) => "nothing new was found\n".to_owned(),
        (n, true) => {
            let served = served(&args.admin, &path, &new[0].0, true).await;
            format!("added {} to {}; {served}\n", servers_of(n), path.display())
        }
        (n, false) => {
            let would = servers_of(n);
            format!("{would} would be added to {}; `dateline import --apply` does it\n", path.display())
        }
    };
    print(&(shown + &verdict))
}

/// Refuses a project of which no client has servers.
fn known_projects(wanted: &[PathBuf], found: &[Found]) -> Result<(), Failure> {
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

/// A reason that says of the entry what it has or is, as the end of a sentence.
fn because(why: &str) -> String {
    if why.starts_with('"') { format!("its {why}") } else { why.to_owned() }
}

/// What a server's owner should know of it before it is served: what is missing here, and what was not taken over.
fn notes(name: &str, entry: &Entry) -> Vec<String> {
    let mut notes = Vec::new();
    if !entry.elsewhere.is_empty() {
        notes.push(format!("not taken over, since dateline has no equal: {}", entry.elsewhere.join(", ")));
    }
    notes.extend(lacks(name, entry));
    notes
}

/// Whether a server is dateline itself, serving others: it would serve itself.
fn is_dateline(entry: &Entry) -> bool {
    let serves = entry.args.first().is_some_and(|arg| matches!(arg.as_str(), "stdio" | "serve"));
    let command = entry.command.as_deref().and_then(|command| command.rsplit('/').next());
    serves && command == Some("dateline")
}
