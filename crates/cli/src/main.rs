//! The program `dateline`.

mod admin;
mod args;
mod changes;
mod client;
mod config;
mod configure;
mod exit;
mod keys;
mod revisions;
mod serve;
mod socket;

use std::io::IsTerminal as _;

use clap::Parser as _;
use tracing_subscriber::EnvFilter;

use args::{Cli, Command, LogFormat};
use exit::Failure;

/// It gives the memory of a peak back, which the system's allocator keeps.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> std::process::ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { exit::USAGE } else { exit::DONE }.into();
        }
    };
    match run(cli) {
        Ok(()) => exit::DONE.into(),
        Err(failure) => {
            // Much of it may be what a server said.
            eprintln!("dateline: {}", client::plain(&failure.to_string()));
            failure.code().into()
        }
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    if matches!(cli.command, Command::Guard) {
        transport::client::watch_over();
        return Ok(());
    }
    let filter = EnvFilter::try_new(&cli.log_level)
        .map_err(|e| Failure::Usage(format!("--log-level {:?} is none: {e}", cli.log_level)))?;
    let logs =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    match cli.log_format {
        LogFormat::Text => logs.with_ansi(std::io::stderr().is_terminal()).init(),
        LogFormat::Json => logs.json().init(),
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::Other(format!("the runtime cannot start: {e}")))?;
    let outcome = runtime.block_on(async {
        match cli.command {
            Command::Serve(args) => serve::serve(args).await,
            Command::Stdio(args) => serve::stdio(args).await,
            Command::List(args) => client::list(args, cli.json).await,
            Command::Call(args) => client::call(args, cli.json).await,
            Command::Demo(args) => serve::demo(args).await,
            Command::Status(args) => admin::show_status(args, cli.json).await,
            Command::Logs(args) => admin::show_logs(args, cli.json).await,
            Command::CheckConfig { file } => configure::check(file, cli.json),
            Command::Import(args) => configure::import(&args, cli.json),
            Command::Add(args) => configure::add(args),
            Command::Remove { name, configured } => configure::remove(&name, &configured),
            Command::Key => keys::print(),
            Command::Revisions(args) => revisions::show(&args, cli.json),
            Command::Guard => Ok(()),
        }
    });
    // Reading standard input cannot be interrupted; nothing that matters is left to wait for.
    runtime.shutdown_background();
    outcome
}
