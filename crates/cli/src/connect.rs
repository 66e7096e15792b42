//! Connects to a server for one command: by its URL, its name in the configuration, or a command.

use std::io::IsTerminal as _;
use std::time::Duration;

use gateway::Target;
use proto::{Raw, Rejection};
use serde_json::Value;
use transport::TransportError;
use transport::client::{Client, Program, Remote, Settings};

use crate::config;
use crate::exit::{Failure, meant};
use crate::options::ConfigOptions;
use crate::terminal;
use crate::words;

/// How long a wait may take on a terminal before the program says what it waits for.
const SILENT: Duration = Duration::from_secs(1);

/// Goes to the beginning of the terminal's line, and clears it.
pub(crate) const FRESH: &str = "\r\x1b[K";

pub(crate) async fn connect(
    target: Option<&str>,
    command: &[String],
    configured: &ConfigOptions,
) -> Result<Client, Failure> {
    let settings = Settings::new("dateline", env!("CARGO_PKG_VERSION"));
    let target = match (target, command) {
        (_, [program, args @ ..]) => {
            let (command, args) = (program.clone(), args.to_vec());
            Target::Program(Program { name: command.clone(), command, args, ..Program::default() })
        }
        (Some(url), _) if url.contains("://") => Target::Remote(Remote::new(url)),
        (Some(name), _) => configured_target(name, configured)?,
        (None, _) => {
            return Err(Failure::Usage("name a server: a URL, a configured name, or -- COMMAND ARGS".into()));
        }
    };
    let connected = match &target {
        Target::Program(program) => {
            waiting(&format!("{} to answer", program.command), Client::start(program, settings)).await
        }
        Target::Remote(remote) => {
            let shown = transport::shown_url(&remote.url);
            waiting(&format!("{shown} to answer"), Box::pin(Client::connect(remote, settings))).await
        }
        Target::Local(_) | Target::Unusable(_) => return Err(Failure::Usage("name a server".into())),
    };
    connected.map_err(|error| unreachable(&error, &target))
}

/// The target of a configured server.
fn configured_target(name: &str, configured: &ConfigOptions) -> Result<Target, Failure> {
    let config = config::load(configured)?;
    let servers = config.as_ref().map(|config| &config.options.servers[..]).unwrap_or_default();
    match servers.iter().find(|server| server.name == name).map(|server| &server.target) {
        Some(Target::Unusable(_)) => {
            let of = |config: &config::Config| config.complaint(name);
            Err(Failure::Usage(config.as_ref().and_then(of).unwrap_or_default()))
        }
        Some(target) => Ok(target.clone()),
        None => {
            let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
            let known = if names.is_empty() { "none".into() } else { names.join(", ") };
            let url = config::meant_url(name);
            let meant = if url.is_empty() { meant(name, names) } else { url };
            Err(Failure::Usage(format!(
                "{name:?} is neither a URL nor the name of a configured server{meant} (configured: {known})"
            )))
        }
    }
}

fn unreachable(error: &TransportError, target: &Target) -> Failure {
    let pathless = match target {
        Target::Remote(remote) => config::without_path(&remote.url),
        _ => None,
    };
    match (error, pathless) {
        (TransportError::Url { .. }, _) => Failure::Usage(error.to_string()),
        (TransportError::Protocol(_), Some(meant)) => Failure::Reach(format!("{error} (is {meant} meant?)")),
        _ => Failure::Reach(error.to_string()),
    }
}

/// Waits for something. On a terminal, says what for when that takes longer than [`SILENT`].
pub(crate) async fn waiting<T>(what: &str, work: impl Future<Output = T>) -> T {
    if !std::io::stderr().is_terminal() {
        return work.await;
    }
    tokio::pin!(work);
    tokio::select! {
        done = &mut work => return done,
        () = tokio::time::sleep(SILENT) => {}
    }
    // On one line, so that it can be taken back.
    let what: String = words::line(what).chars().take(60).collect();
    terminal::show(format!("{FRESH}… waiting for {what}").into_bytes());
    let done = work.await;
    terminal::show(FRESH.into());
    done
}

pub(crate) fn answered(rejection: Rejection) -> Failure {
    Failure::Answer(rejection.to_string())
}

pub(crate) fn value(raw: &Raw) -> Value {
    raw.read().unwrap_or_else(|_| Value::from(raw.as_str()))
}
