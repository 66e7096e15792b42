//! Functions for the commands that change or check the configuration.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::admin::client;
use crate::config::{self, ServerEntry};
use crate::escape;
use crate::exit::Failure;
use crate::options::{AdminOptions, ConfigOptions};

/// How often the running dateline is asked whether it serves a change, and the pause in between. It reads a changed file
/// after 200 ms.
const POLLS: (usize, Duration) = (20, Duration::from_millis(100));

/// The path of the configuration to change.
pub(crate) fn config_path(configured: &ConfigOptions) -> Result<PathBuf, Failure> {
    let place = config::locate(configured).map(|(path, _)| path);
    place.ok_or_else(|| Failure::Usage("$HOME is not set; name a file with --config".into()))
}

/// Says whether the running dateline serves a change: a server that was added, or removed.
pub(crate) async fn running_state(admin: &AdminOptions, path: &Path, name: &str, added: bool) -> String {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| config::absolute(path));
    let mut other = None;
    for poll in 0..POLLS.0 {
        if poll > 0 {
            tokio::time::sleep(POLLS.1).await;
        }
        let Ok(status) = client::status(admin).await else {
            return match added {
                true => "no dateline is running; start one with `dateline serve`".to_owned(),
                false => "no dateline is running".to_owned(),
            };
        };
        other = match status.config.as_deref() {
            Some(theirs) if real(theirs) == real(path) => None,
            theirs => Some(theirs.map_or("none".to_owned(), |theirs| theirs.display().to_string())),
        };
        let has = status.servers.iter().any(|server| server.name == name);
        if other.is_some() {
            break;
        }
        if has == added {
            return match added {
                true => "the running dateline serves it; `dateline status` shows its state".to_owned(),
                false => "the running dateline does not serve it either".to_owned(),
            };
        }
    }
    match other {
        Some(other) => format!("the running dateline has another configuration: {}", escape::line(&other)),
        None => "the running dateline has not read the change yet; `dateline logs` says more".to_owned(),
    }
}

/// Why a new entry could not be served on this machine at this moment, and what may be wrong with it.
pub(crate) fn doubts_about(name: &str, entry: &ServerEntry) -> Vec<String> {
    let text = config::text_of(&[(name.to_owned(), entry.clone())]);
    match config::read(&text, &|name| std::env::var(name).ok()) {
        Ok(parsed) => match parsed.unusable.first() {
            Some(unusable) => vec![format!("it cannot be used yet: {}", unusable.problem.what)],
            None => parsed.options.servers.iter().flat_map(config::doubts).collect(),
        },
        Err(why) => vec![why],
    }
}

/// A number of servers, in words.
pub(crate) fn count_servers(count: usize) -> String {
    if count == 1 { "1 server".to_owned() } else { format!("{count} servers") }
}
