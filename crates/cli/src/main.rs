//! The program `dateline`.

mod admin;
mod args;
mod commands;
mod config;
mod config_commands;
mod configured_gateway;
mod connect;
mod escape;
mod exit;
mod file_watch;
mod keys;
mod listeners;
mod options;
mod permissions;
mod signals;
mod socket;
mod terminal;

use std::io::IsTerminal as _;

use clap::Parser as _;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::format::debug_fn;

use args::{Cli, Command, LogFormat};
use commands::{
    add, call, check_config, demo, import, key, list, logs, remove, restart, revisions, serve, status, stdio,
};
use exit::Failure;
use terminal::{FlushAtExit, LogWriter};

/// Unlike the system's allocator, it gives memory back to the system after a peak.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> std::process::ExitCode {
    let _flush = FlushAtExit::with_panic_hook();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error).into(),
    };
    match run(cli) {
        Ok(()) => exit::DONE.into(),
        Err(failure) => {
            if let Some(message) = failure.message() {
                terminal::say(&format!("dateline: {message}"));
            }
            failure.code().into()
        }
    }
}

/// Prints what is wrong with the command line; or the help or version, which it asked for. Returns the exit code.
fn usage(error: &clap::Error) -> u8 {
    if !error.use_stderr() {
        // When nobody reads the help any more, that is not an error.
        let _ = error.print();
        return exit::DONE;
    }
    let text = error.render();
    let text = if std::io::stderr().is_terminal() { text.ansi().to_string() } else { text.to_string() };
    terminal::say(text.trim_end_matches('\n'));
    exit::USAGE
}

/// Logs to standard error. The program never waits for it.
fn log(filter: EnvFilter, format: LogFormat) {
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_target(false);
    match format {
        LogFormat::Text => {
            let fields = debug_fn(|writer, field, value| {
                let value = escape::line(&format!("{value:?}"));
                match field.name() {
                    "message" => write!(writer, "{value}"),
                    name => write!(writer, "{name}={value}"),
                }
            });
            let logs = logs.with_ansi(std::io::stderr().is_terminal());
            logs.fmt_fields(fields.delimited(" ")).with_writer(|| LogWriter { json: false }).init();
        }
        LogFormat::Json => logs.json().with_writer(|| LogWriter { json: true }).init(),
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    if matches!(cli.command, Command::Guard) {
        transport::client::watch_over();
        return Ok(());
    }
    let filter = EnvFilter::try_new(&cli.log_level)
        .map_err(|e| Failure::Usage(format!("--log-level {:?} is not valid: {e}; write error, warn, info, debug, trace, or a filter such as gateway=debug", cli.log_level)))?;
    log(filter, cli.log_format);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::Other(format!("the runtime cannot start: {e}")))?;
    let outcome = runtime.block_on(async {
        match cli.command {
            Command::Serve(args) => serve::run(args).await,
            Command::Stdio(args) => stdio::run(args).await,
            Command::List(args) => list::run(args, cli.json).await,
            Command::Call(args) => call::run(args, cli.json).await,
            Command::Demo(args) => demo::run(args).await,
            Command::Status(args) => status::run(args, cli.json).await,
            Command::Logs(args) => logs::run(args, cli.json).await,
            Command::Restart(args) => restart::run(args, cli.json).await,
            Command::CheckConfig(args) => check_config::run(args, cli.json),
            Command::Import(args) => import::run(args, cli.json).await,
            Command::Add(args) => add::run(args).await,
            Command::Remove(args) => remove::run(args).await,
            Command::Key => key::run(),
            Command::Revisions(args) => revisions::run(&args, cli.json),
            Command::Guard => Ok(()),
        }
    });
    // A read of standard input cannot be interrupted, and nothing else is left to wait for.
    runtime.shutdown_background();
    outcome
}
