//! What the commands that change or check the configuration share.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::admin::client;
use crate::config::{self, Entry};
use crate::exit::Failure;
use crate::options::{AdminOptions, ConfigOptions};
use crate::words;

/// How often a running dateline is asked whether it serves a change, and how long after each other: it reads the file only
/// when that has settled.
const ASKED: (usize, Duration) = (20, Duration::from_millis(100));

/// The configuration file to change.
pub(crate) fn own(configured: &ConfigOptions) -> Result<PathBuf, Failure> {
    let place = config::place(configured).map(|(path, _)| path);
    place.ok_or_else(|| Failure::Usage("$HOME is not set; name a file with --config".into()))
}

/// Says whether the running dateline serves a change: that a server was added, or removed.
pub(crate) async fn served(admin: &AdminOptions, path: &Path, name: &str, added: bool) -> String {
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

/// Why a new entry could not be served here and now, and what is in doubt about it.
pub(crate) fn lacks(name: &str, entry: &Entry) -> Vec<String> {
    let text = config::text_of(&[(name.to_owned(), entry.clone())]);
    match config::read(&text, &|name| std::env::var(name).ok()) {
        Ok(read) => match read.broken.first() {
            Some(broken) => vec![format!("it cannot be used yet: {}", broken.wrong.what)],
            None => read.options.servers.iter().flat_map(config::doubts).collect(),
        },
        Err(why) => vec![why],
    }
}

pub(crate) fn servers_of(count: usize) -> String {
    if count == 1 { "1 server".to_owned() } else { format!("{count} servers") }
}
