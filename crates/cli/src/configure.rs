//! `dateline check-config`, `import`, `add` and `remove`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use gateway::{ServerOptions, Target};
use serde_json::{Value, json};

use crate::admin::client;
use crate::args::{Add, Admin, Configured, Import, Remove};
use crate::config::{self, Entry};
use crate::exit::Failure;
use crate::terminal::print;
use crate::words;

/// How often, and how long after each other, a running dateline is asked whether it has taken a change: it reads a file
/// once that has settled.
const ASKED: (usize, Duration) = (20, Duration::from_millis(100));

/// `dateline check-config`.
pub(crate) fn check(file: Option<PathBuf>, as_json: bool) -> Result<(), Failure> {
    let configured = Configured { config: file };
    let Some((path, named)) = config::place(&configured) else {
        return Err(Failure::Usage("there is no configuration; name a file".into()));
    };
    if !named && !path.exists() {
        return Err(Failure::Usage(format!(
            "there is no configuration at {}; `dateline add` or `dateline import` makes one",
            path.display()
        )));
    }
    let config = config::from(&path).map_err(Failure::Usage)?;
    let servers = &config.options.servers;
    let verdict = match config.broken.len() {
        0 => Ok(()),
        broken => Err(Failure::Usage(format!(
            "{} in {} cannot be used; the others are served all the same",
            servers_of(broken),
            path.display()
        ))),
    };
    if as_json {
        let warnings: Vec<_> =
            config.warnings.iter().map(|w| json!({"line": w.line, "what": w.what})).collect();
        let broken = config.broken.iter();
        let broken: Vec<_> =
            broken.map(|b| json!({"name": b.name, "line": b.wrong.line, "what": b.wrong.what})).collect();
        let servers: Vec<_> = fine(servers)
            .map(|s| json!({"name": s.name, "target": target(s), "doubts": config::doubts(s)}))
            .collect();
        let shown = json!({"file": path, "servers": servers, "unusable": broken, "warnings": warnings});
        print(&words::json(&shown))?;
        return verdict;
    }
    let count = fine(servers).count();
    let mut shown = match &verdict {
        Ok(()) => format!("{} is fine, with {}\n", path.display(), servers_of(count)),
        Err(_) => format!("{} has {} that can be used\n", path.display(), servers_of(count)),
    };
    for server in fine(servers) {
        shown += &format!("  {}  {}\n", words::line(&server.name), words::line(&target(server)));
        for doubt in config::doubts(server) {
            shown += &format!("    but {}\n", words::line(&doubt));
        }
    }
    for complaint in config.complaints() {
        shown += &format!("warning: {}\n", words::line(&complaint));
    }
    print(&shown)?;
    verdict
}

/// Those that can be used.
fn fine(servers: &[ServerOptions]) -> impl Iterator<Item = &ServerOptions> {
    servers.iter().filter(|server| !matches!(server.target, Target::Unusable(_)))
}

fn servers_of(count: usize) -> String {
    if count == 1 { "1 server".to_owned() } else { format!("{count} servers") }
}

/// Where a server is, in words. Values that may be secret are not shown.
fn target(server: &ServerOptions) -> String {
    match &server.target {
        Target::Program(program) => {
            [std::slice::from_ref(&program.command), &program.args].concat().join(" ")
        }
        Target::Remote(remote) => transport::shown_url(&remote.url),
        Target::Local(_) | Target::Unusable(_) => String::new(),
    }
}

/// `dateline import`.
pub(crate) async fn import(args: Import, as_json: bool) -> Result<(), Failure> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let home = home
        .ok_or_else(|| Failure::Usage("$HOME is not set: where are the clients' configurations?".into()))?;
    let (found, troubles) = config::on_this_machine(&home);
    let path = own(&args.configured)?;
    let there =
        if path.exists() { config::from(&path).map_err(Failure::Usage)?.options.servers } else { Vec::new() };
    let mut taken: Vec<String> = there.into_iter().map(|server| server.name).collect();
    let (mut new, mut shown, mut listed) = (Vec::new(), String::new(), Vec::<Value>::new());
    for server in found {
        let entry = server.entry.and_then(|entry| match () {
            () if taken.contains(&server.name) => Err("there is one of this name already".to_owned()),
            () if is_dateline(&entry) => Err("it is dateline itself".to_owned()),
            () => Ok(entry),
        });
        let notes = entry.as_ref().map(|entry| notes(&server.name, entry)).unwrap_or_default();
        listed.push(json!({
            "name": server.name, "client": server.client, "file": server.path,
            "target": entry.as_ref().map(Entry::place).ok(), "skipped": entry.as_ref().err(), "notes": notes,
        }));
        let name = words::line(&server.name);
        match entry {
            Err(why) => {
                shown += &format!(
                    "  - {name} of {}: left out, since {}\n",
                    server.client,
                    words::line(&because(&why))
                );
            }
            Ok(entry) => {
                let (what, file) = (words::line(&entry.place()), server.path.display());
                shown += &format!("  + {name}  {what}  (from {}, {file})\n", server.client);
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

/// What would keep a new entry from being served here and now, and what is in doubt about it.
fn lacks(name: &str, entry: &Entry) -> Vec<String> {
    let text = config::text_of(&[(name.to_owned(), entry.clone())]);
    match config::read(&text, &|name| std::env::var(name).ok()) {
        Ok(read) => match read.broken.first() {
            Some(broken) => vec![format!("it cannot be used yet: {}", broken.wrong.what)],
            None => read.options.servers.iter().flat_map(config::doubts).collect(),
        },
        Err(why) => vec![why],
    }
}

/// Whether a server is dateline itself, serving others: it would serve itself.
fn is_dateline(entry: &Entry) -> bool {
    let serves = entry.args.first().is_some_and(|arg| matches!(arg.as_str(), "stdio" | "serve"));
    let command = entry.command.as_deref().and_then(|command| command.rsplit('/').next());
    serves && command == Some("dateline")
}

/// `dateline add`.
pub(crate) async fn add(args: Add) -> Result<(), Failure> {
    if args.name.trim().is_empty() {
        return Err(Failure::Usage("a server needs a name".into()));
    }
    let entry = match (args.url, args.command.split_first()) {
        (Some(_), _) if !args.env.is_empty() => {
            return Err(Failure::Usage(
                "--env is for a command; what a URL is sent is said by --header".into(),
            ));
        }
        (Some(url), _) => {
            Entry { url: Some(url), headers: pairs(&args.headers, &['=', ':'])?, ..Entry::default() }
        }
        (None, Some(_)) if !args.headers.is_empty() => {
            return Err(Failure::Usage(
                "--header is for a URL; what a command is given is said by --env".into(),
            ));
        }
        (None, Some((command, rest))) => Entry {
            command: Some(command.clone()),
            args: rest.to_vec(),
            env: pairs(&args.env, &['='])?,
            ..Entry::default()
        },
        (None, None) => {
            return Err(Failure::Usage("say what the server is: a URL, or -- COMMAND ARGS".into()));
        }
    };
    refuse(&args.name, &entry)?;
    let path = own(&args.configured)?;
    let name = args.name;
    let notes: String =
        lacks(&name, &entry).iter().map(|note| format!("  but {}\n", words::line(note))).collect();
    config::add(&path, &[(name.clone(), entry)]).map_err(Failure::Usage)?;
    config::from(&path).map_err(Failure::Usage)?;
    let served = served(&args.admin, &path, &name, true).await;
    print(&format!("{} is now in {}; {served}\n{notes}", words::line(&name), path.display()))
}

/// Pairs of names and values, with the first of some characters between them.
fn pairs(words: &[String], between: &[char]) -> Result<Vec<(String, String)>, Failure> {
    let pair = |word: &String| {
        let (name, value) =
            word.split_once(between).ok_or_else(|| Failure::Usage(format!("{word:?} must be NAME=VALUE")))?;
        Ok((name.trim().to_owned(), value.trim_start().to_owned()))
    };
    words.iter().map(pair).collect()
}

/// Refuses an entry that cannot be used whatever the environment says.
fn refuse(name: &str, entry: &Entry) -> Result<(), Failure> {
    let text = config::text_of(&[(name.to_owned(), entry.clone())]);
    let any = |name: &str| std::env::var(name).ok().or_else(|| Some("x".to_owned()));
    let Some(broken) = config::read(&text, &any).map_err(Failure::Usage)?.broken.into_iter().next() else {
        return Ok(());
    };
    if entry.place().contains("${") {
        return Ok(());
    }
    let command = match &entry.url {
        Some(url) if !url.contains([':', '/', '.']) => {
            format!("; a command stands behind --, as in: dateline add {name} -- {url}")
        }
        _ => String::new(),
    };
    Err(Failure::Usage(format!("{}{command}", broken.wrong.what)))
}

/// `dateline remove`.
pub(crate) async fn remove(args: Remove) -> Result<(), Failure> {
    let path = own(&args.configured)?;
    config::remove(&path, &args.name).map_err(Failure::Usage)?;
    let served = served(&args.admin, &path, &args.name, false).await;
    print(&format!("{} is no longer in {}; {served}\n", words::line(&args.name), path.display()))
}

/// What becomes of a change, by what the running dateline says: whether it has a server, or has it no longer.
async fn served(admin: &Admin, path: &Path, name: &str, added: bool) -> String {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| config::absolute(path));
    let mut other = None;
    for asked in 0..ASKED.0 {
        if asked > 0 {
            tokio::time::sleep(ASKED.1).await;
        }
        let Ok(status) = client::status(admin).await else {
            return match added {
                true => "no dateline is running: `dateline serve` starts one".to_owned(),
                false => "no dateline is running".to_owned(),
            };
        };
        other = match status.config.as_deref() {
            Some(theirs) if real(theirs) == real(path) => None,
            theirs => Some(theirs.map_or("another one".to_owned(), |theirs| theirs.display().to_string())),
        };
        let has = status.servers.iter().any(|server| server.name == name);
        if other.is_some() {
            break;
        }
        if has == added {
            return match added {
                true => "the running dateline has it; `dateline status` shows how it is".to_owned(),
                false => "nor does the running dateline serve it".to_owned(),
            };
        }
    }
    match other {
        Some(other) => format!("the running dateline serves {}", words::line(&other)),
        None => "the running dateline has not taken it over yet; `dateline logs` says more".to_owned(),
    }
}

/// The file that is changed.
fn own(configured: &Configured) -> Result<PathBuf, Failure> {
    let place = config::place(configured).map(|(path, _)| path);
    place.ok_or_else(|| Failure::Usage("$HOME is not set; name a file with --config".into()))
}
