//! `dateline check-config`, `import`, `add` and `remove`.

use std::path::PathBuf;

use gateway::{ServerOptions, Target};
use serde_json::{Value, json};

use crate::args::{Add, Configured, Import};
use crate::config::{self, Entry};
use crate::exit::Failure;

/// `dateline check-config`.
pub(crate) fn check(file: Option<PathBuf>, as_json: bool) -> Result<(), Failure> {
    let configured = Configured { config: file };
    let Some((path, _)) = config::place(&configured) else {
        return Err(Failure::Usage("there is no configuration; name a file".into()));
    };
    let config = config::from(&path).map_err(Failure::Usage)?;
    let servers = &config.options.servers;
    if as_json {
        let warnings: Vec<_> =
            config.warnings.iter().map(|w| json!({"line": w.line, "what": w.what})).collect();
        let servers: Vec<_> = servers.iter().map(|s| json!({"name": s.name, "target": target(s)})).collect();
        let shown = json!({"file": path, "servers": servers, "warnings": warnings});
        say(&(serde_json::to_string_pretty(&shown).unwrap_or_default() + "\n"));
        return Ok(());
    }
    let mut shown = format!("{} is fine, with {} servers\n", path.display(), servers.len());
    for server in servers {
        shown += &format!("  {}  {}\n", server.name, target(server));
    }
    for warning in &config.warnings {
        shown += &format!("warning: {}:{warning}\n", path.display());
    }
    say(&shown);
    Ok(())
}

/// Where a server is, in words. Values that may be secret are not shown.
fn target(server: &ServerOptions) -> String {
    match &server.target {
        Target::Program(program) => {
            [std::slice::from_ref(&program.command), &program.args].concat().join(" ")
        }
        Target::Remote(remote) => remote.url.clone(),
        Target::Local(_) => String::new(),
    }
}

/// `dateline import`.
pub(crate) fn import(args: &Import, as_json: bool) -> Result<(), Failure> {
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
        let what = describe(&server.entry);
        let skipped = if taken.contains(&server.name) {
            Some("there is one of this name already")
        } else if is_dateline(&server.entry) {
            Some("it is dateline itself")
        } else {
            None
        };
        listed.push(json!({
            "name": server.name, "client": server.client, "file": server.path, "target": what, "skipped": skipped,
        }));
        match skipped {
            Some(why) => {
                shown += &format!("  - {} of {}: left out, since {why}\n", server.name, server.client)
            }
            None => {
                shown += &format!(
                    "  + {}  {what}  (from {}, {})\n",
                    server.name,
                    server.client,
                    server.path.display()
                );
                taken.push(server.name.clone());
                new.push((server.name, server.entry));
            }
        }
    }
    if args.apply && !new.is_empty() {
        config::add(&path, &new).map_err(Failure::Usage)?;
    }
    if as_json {
        let shown = json!({"config": path, "applied": args.apply, "servers": listed, "troubles": troubles});
        say(&(serde_json::to_string_pretty(&shown).unwrap_or_default() + "\n"));
        return Ok(());
    }
    for trouble in troubles {
        shown += &format!("  ! {trouble}\n");
    }
    let verdict = match (new.len(), args.apply) {
        (0, _) => "nothing new was found\n".to_owned(),
        (n, true) => format!("added {n} to {}\n", path.display()),
        (n, false) => {
            format!("{n} would be added to {}; `dateline import --apply` adds them\n", path.display())
        }
    };
    say(&(shown + &verdict));
    Ok(())
}

/// Whether a server is dateline itself, serving others: it would serve itself.
fn is_dateline(entry: &Entry) -> bool {
    match entry {
        Entry::Program { command, args, .. } => {
            let serves = args.first().is_some_and(|arg| matches!(arg.as_str(), "stdio" | "serve"));
            serves && command.rsplit('/').next() == Some("dateline")
        }
        Entry::Remote { .. } => false,
    }
}

fn describe(entry: &Entry) -> String {
    match entry {
        Entry::Program { command, args, .. } => [std::slice::from_ref(command), args].concat().join(" "),
        Entry::Remote { url, .. } => url.clone(),
    }
}

/// `dateline add`.
pub(crate) fn add(args: Add) -> Result<(), Failure> {
    let pairs = |words: &[String]| -> Result<Vec<(String, String)>, Failure> {
        let pair = |word: &String| {
            let (name, value) =
                word.split_once('=').ok_or_else(|| Failure::Usage(format!("{word:?} must be NAME=VALUE")))?;
            Ok((name.to_owned(), value.to_owned()))
        };
        words.iter().map(pair).collect()
    };
    let entry = match (args.url, args.command.split_first()) {
        (Some(url), _) => Entry::Remote { url, headers: pairs(&args.headers)? },
        (None, Some((command, rest))) => {
            Entry::Program { command: command.clone(), args: rest.to_vec(), env: pairs(&args.env)? }
        }
        (None, None) => {
            return Err(Failure::Usage("say what the server is: a URL, or -- COMMAND ARGS".into()));
        }
    };
    let path = own(&args.configured)?;
    config::add(&path, &[(args.name.clone(), entry)]).map_err(Failure::Usage)?;
    config::from(&path).map_err(Failure::Usage)?;
    say(&format!("{} is now in {}; a running dateline serves it\n", args.name, path.display()));
    Ok(())
}

/// `dateline remove`.
pub(crate) fn remove(name: &str, configured: &Configured) -> Result<(), Failure> {
    let path = own(configured)?;
    config::remove(&path, name).map_err(Failure::Usage)?;
    say(&format!("{name} is no longer in {}\n", path.display()));
    Ok(())
}

/// The file that is changed.
fn own(configured: &Configured) -> Result<PathBuf, Failure> {
    let place = config::place(configured).map(|(path, _)| path);
    place.ok_or_else(|| Failure::Usage("$HOME is not set; name a file with --config".into()))
}

fn say(text: &str) {
    use std::io::Write as _;
    // A reader that went away has read enough.
    let _ = std::io::stdout().write_all(text.as_bytes());
}
