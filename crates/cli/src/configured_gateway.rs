//! The gateway over the configured servers. It reads the configuration again when that changes.

use std::path::Path;
use std::sync::Arc;

use dateline::CancellationToken;
use gateway::{Gateway, Options, ServerOptions, Target};
use transport::client::{Guard, Settings};

use crate::config::{self, Config};
use crate::escape;
use crate::exit::Failure;
use crate::file_watch::FileWatch;
use crate::keys::Keyring;
use crate::options::ConfigOptions;
use crate::permissions;
use crate::terminal::say;

/// Starts a gateway over the configured servers, or over the demo when there is no configuration. `remembers_names` says
/// that it keeps the names of tools for the next start, since it serves many clients.
pub(crate) fn gateway(
    configured: &ConfigOptions,
    config: Option<&Config>,
    remembers_names: bool,
    keys: Keyring,
) -> Result<Gateway, Failure> {
    config.into_iter().for_each(print_problems);
    let options = match config {
        Some(config) => config.options.clone(),
        None => {
            let demo = demo::server(None, |demo| demo.keys(keys.clone()))
                .map_err(|e| Failure::Other(e.to_string()))?;
            let demo = ServerOptions::new("demo", Target::Local(Arc::new(demo)));
            let source = config::locate(configured).map(|(path, _)| config::absolute(&path));
            Options { servers: vec![demo], source, ..Options::default() }
        }
    };
    let mut settings = Settings::new("dateline", env!("CARGO_PKG_VERSION"));
    settings.guard = std::env::current_exe().ok().and_then(|me| Guard::start(&me, &["guard"]).ok());
    if settings.guard.is_none() {
        tracing::warn!(
            "no guard could be started: if dateline is killed, servers that ignore the end of their input keep running"
        );
    }
    let names = if remembers_names { config::state_file("names.json") } else { None };
    Ok(Gateway::start(options, settings, names, keys))
}

/// Prints what is wrong with a configuration.
fn print_problems(config: &Config) {
    let permissions = permissions::config_warning(&config.path);
    for what in config.problems().iter().chain(&permissions) {
        say(&format!("dateline: warning: {}", escape::line(what)));
    }
}

/// Reads the configuration again on SIGHUP and when its file changes. A file of which nothing can be used is reported and
/// changes nothing; nor does a file that is removed.
pub(crate) fn follow(
    configured: &ConfigOptions,
    config: Option<Config>,
    gateway: &Gateway,
    shutdown: &CancellationToken,
) {
    let Some((path, _)) = config::locate(configured) else { return };
    let (gateway, shutdown) = (gateway.clone(), shutdown.clone());
    tokio::spawn(async move {
        let Some(mut changes) = FileWatch::of(&path, "the configuration") else { return };
        let mut last = config;
        let mut there = last.is_some();
        // It is read once in any case: it may have changed before it was watched.
        loop {
            reload(&path, &gateway, &mut last, &mut there);
            if !changes.next(&shutdown).await {
                return;
            }
        }
    });
}

/// Reads the configuration, and serves it if it differs from the last one.
fn reload(path: &Path, gateway: &Gateway, last: &mut Option<Config>, there: &mut bool) {
    let was_there = std::mem::replace(there, path.exists());
    if !*there {
        if was_there {
            say(&format!("dateline: {} was removed; what it last contained is still served", path.display()));
        }
        return;
    }
    let config = match config::load_file(path) {
        Ok(config) if last.as_ref() == Some(&config) => return,
        Ok(config) => config,
        Err(why) => {
            say(&format!(
                "dateline: the changed configuration is not used, and the last one still is: {}",
                escape::line(&why)
            ));
            return;
        }
    };
    print_problems(&config);
    let applied = gateway.apply(config.options.clone());
    *last = Some(config);
    if applied.started.is_empty() && applied.stopped.is_empty() {
        return;
    }
    let names = |names: &[String]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    say(&format!(
        "dateline: {} was read: started {}, stopped {}, {} unchanged",
        path.display(),
        escape::line(&names(&applied.started)),
        escape::line(&names(&applied.stopped)),
        applied.kept
    ));
}
