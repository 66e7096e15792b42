//! The gateway over the configured servers, which follows the configuration as it changes.

use std::path::Path;
use std::sync::Arc;

use dateline::CancellationToken;
use gateway::{Gateway, Options, ServerOptions, Target};
use transport::client::{Guard, Settings};

use crate::changes::Changes;
use crate::config::{self, Config};
use crate::exit::Failure;
use crate::keys::Keyring;
use crate::options::ConfigOptions;
use crate::readers;
use crate::terminal::say;
use crate::words;

/// Starts a gateway over the configured servers, or over the demo until there is a configuration. `long` says that the
/// gateway serves many clients, and remembers the names of tools for the next start.
pub(crate) fn gateway(
    configured: &ConfigOptions,
    config: Option<&Config>,
    long: bool,
    keys: Keyring,
) -> Result<Gateway, Failure> {
    config.into_iter().for_each(complain);
    let options = match config {
        Some(config) => config.options.clone(),
        None => {
            let demo = demo::server(None, |demo| demo.keys(keys.clone()))
                .map_err(|e| Failure::Other(e.to_string()))?;
            let demo = ServerOptions::new("demo", Target::Local(Arc::new(demo)));
            let source = config::place(configured).map(|(path, _)| config::absolute(&path));
            Options { servers: vec![demo], source, ..Options::default() }
        }
    };
    let mut settings = Settings::new("dateline", env!("CARGO_PKG_VERSION"));
    settings.guard = std::env::current_exe().ok().and_then(|me| Guard::start(&me, &["guard"]).ok());
    if settings.guard.is_none() {
        tracing::warn!(
            "no guard could be started: if dateline is killed, servers that ignore the end of their input stay"
        );
    }
    let names = if long { config::state("names.json") } else { None };
    Ok(Gateway::start(options, settings, names, keys))
}

fn complain(config: &Config) {
    let readers = readers::of_configuration(&config.path);
    for what in config.complaints().iter().chain(&readers) {
        say(&format!("dateline: warning: {}", words::line(what)));
    }
}

/// Follows the configuration: reads it again on SIGHUP and when its file changes. A file that cannot be read as a whole
/// changes nothing, and is reported; so does a file that is removed.
pub(crate) fn follow(
    configured: &ConfigOptions,
    config: Option<Config>,
    gateway: &Gateway,
    shutdown: &CancellationToken,
) {
    let Some((path, _)) = config::place(configured) else { return };
    let (gateway, shutdown) = (gateway.clone(), shutdown.clone());
    tokio::spawn(async move {
        let Some(mut changes) = Changes::of(&path, "the configuration") else { return };
        let mut last = config;
        let mut there = last.is_some();
        // It is read once in any case: it may have changed before it was watched.
        loop {
            take(&path, &gateway, &mut last, &mut there);
            if !changes.next(&shutdown).await {
                return;
            }
        }
    });
}

/// Reads the configuration, and serves it if it differs from the last one.
fn take(path: &Path, gateway: &Gateway, last: &mut Option<Config>, there: &mut bool) {
    let was_there = std::mem::replace(there, path.exists());
    if !*there {
        if was_there {
            say(&format!("dateline: {} is gone; what it said last is still served", path.display()));
        }
        return;
    }
    let config = match config::from(path) {
        Ok(config) if last.as_ref() == Some(&config) => return,
        Ok(config) => config,
        Err(why) => {
            say(&format!("dateline: the changed configuration is not used: {}", words::line(&why)));
            return;
        }
    };
    complain(&config);
    let applied = gateway.apply(config.options.clone());
    *last = Some(config);
    if applied.started.is_empty() && applied.stopped.is_empty() {
        return;
    }
    let names = |names: &[String]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    say(&format!(
        "dateline: {} was read: started {}, stopped {}, {} untouched",
        path.display(),
        words::line(&names(&applied.started)),
        words::line(&names(&applied.stopped)),
        applied.kept
    ));
}
