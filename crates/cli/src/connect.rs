//! Connects to the server of `dateline list` or `call`: by its URL, its name in the configuration, or a command.

use std::io::IsTerminal as _;
use std::time::Duration;

use gateway::Target;
use proto::{Raw, Rejection};
use serde_json::Value;
use transport::TransportError;
use transport::client::{Client, Program, Remote, Settings};

use crate::config;
use crate::escape;
use crate::exit::{Failure, suggestion};
use crate::options::ConfigOptions;
use crate::terminal;

/// How long the program waits on a terminal before it says what it waits for.
const QUIET_TIME: Duration = Duration::from_secs(1);

/// Clears the terminal's line.
pub(crate) const CLEAR_LINE: &str = "\r\x1b[K";

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
            while_waiting(&format!("{} to answer", program.command), Client::start(program, settings)).await
        }
        Target::Remote(remote) => {
            let shown = transport::shown_url(&remote.url);
            while_waiting(&format!("{shown} to answer"), Box::pin(Client::connect(remote, settings))).await
        }
        Target::Local(_) | Target::Unusable(_) => return Err(Failure::Usage("name a server".into())),
    };
    connected.map_err(|error| connect_error(&error, &target))
}

/// The target of a configured server.
fn configured_target(name: &str, configured: &ConfigOptions) -> Result<Target, Failure> {
    let config = config::load(configured)?;
    let servers = config.as_ref().map(|config| &config.options.servers[..]).unwrap_or_default();
    match servers.iter().find(|server| server.name == name).map(|server| &server.target) {
        Some(Target::Unusable(_)) => {
            let of = |config: &config::Config| config.why_unusable(name);
            Err(Failure::Usage(config.as_ref().and_then(of).unwrap_or_default()))
        }
        Some(target) => Ok(target.clone()),
        None => {
            let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
            let known = if names.is_empty() { "none".into() } else { names.join(", ") };
            let url = config::suggested_url(name);
            let meant = if url.is_empty() { suggestion(name, names) } else { url };
            Err(Failure::Usage(format!(
                "{name:?} is neither a URL nor the name of a configured server{meant} (configured: {known})"
            )))
        }
    }
}

fn connect_error(error: &TransportError, target: &Target) -> Failure {
    let pathless = match target {
        Target::Remote(remote) => config::suggested_path(&remote.url),
        _ => None,
    };
    match (error, pathless) {
        (TransportError::Url { .. }, _) => Failure::Usage(error.to_string()),
        (TransportError::Protocol(_), Some(meant)) => {
            Failure::Unreachable(format!("{error} (did you mean {meant}?)"))
        }
        _ => Failure::Unreachable(error.to_string()),
    }
}

/// Waits for a future. On a terminal, says what it waits for when that takes longer than [`QUIET_TIME`].
pub(crate) async fn while_waiting<T>(what: &str, work: impl Future<Output = T>) -> T {
    if !std::io::stderr().is_terminal() {
        return work.await;
    }
    tokio::pin!(work);
    tokio::select! {
        done = &mut work => return done,
        () = tokio::time::sleep(QUIET_TIME) => {}
    }
    // Cut to one line of a terminal, so that it can be cleared.
    let what: String = escape::line(what).chars().take(60).collect();
    terminal::show(format!("{CLEAR_LINE}… waiting for {what}").into_bytes());
    let done = work.await;
    terminal::show(CLEAR_LINE.into());
    done
}

pub(crate) fn server_error(rejection: Rejection) -> Failure {
    Failure::ServerError(rejection.to_string())
}

pub(crate) fn value(raw: &Raw) -> Value {
    raw.read().unwrap_or_else(|_| Value::from(raw.as_str()))
}
