//! Programs under test.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::mpsc;

use crate::coverage;
use crate::traffic::ScriptedTraffic;

/// How long a test waits for something that must come: much longer than any answer takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A program under test.
pub struct Program {
    /// The process.
    pub child: Child,
    /// The URL at which it serves HTTP.
    pub url: Option<String>,
    /// The lines that it wrote to standard error and that no test has taken yet.
    said: mpsc::UnboundedReceiver<String>,
    pub(crate) traffic: ScriptedTraffic,
    /// Keeps what is known of its port.
    _port: Option<coverage::PortEntry>,
}

impl Program {
    pub(crate) fn new(
        child: Child,
        url: Option<String>,
        mut lines: tokio::io::Lines<BufReader<ChildStderr>>,
        port: Option<coverage::PortEntry>,
    ) -> Program {
        let traffic = ScriptedTraffic::of(&child);
        let (says, said) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                let _ = says.send(line);
            }
        });
        Program { child, url, said, traffic, _port: port }
    }

    /// Waits for the next line on standard error that contains a text.
    pub async fn line(&mut self, text: &str) -> String {
        let waiting = async {
            while let Some(line) = self.said.recv().await {
                if line.contains(text) {
                    return line;
                }
            }
            panic!("the program ended without saying {text:?}");
        };
        let line = tokio::time::timeout(PATIENCE, waiting).await;
        line.unwrap_or_else(|_| panic!("the program does not say {text:?}"))
    }

    /// Starts a program that serves HTTP, and waits until it writes its URL to standard error.
    pub async fn http(command: &str, args: &[&str]) -> Program {
        Program::of(prepared(command, args)).await
    }

    /// Starts a prepared command that serves HTTP, and waits until it writes its URL to standard error.
    pub async fn of(mut command: impl std::borrow::BorrowMut<Command>) -> Program {
        let command: &mut Command = command.borrow_mut();
        let mut child = started(command);
        let mut lines = BufReader::new(child.stderr.take().expect("stderr is piped")).lines();
        let url = tokio::time::timeout(PATIENCE, async {
            while let Some(line) = lines.next_line().await.expect("stderr can be read") {
                if let Some(at) = line.find("http://") {
                    return line[at..].split_whitespace().next().expect("a URL").to_owned();
                }
            }
            panic!("{command:?} ended without serving");
        });
        let url = url.await.expect("it serves in time");
        let port = coverage::remember_port(&url, coverage::between(command));
        Program::new(child, Some(url), lines, Some(port))
    }
}

pub(crate) fn prepared(command: &str, args: &[&str]) -> Command {
    let mut prepared = Command::new(command);
    prepared.args(args).env("HOME", "/dev/null").env_remove("DATELINE_CONFIG").env_remove("XDG_CONFIG_HOME");
    prepared.env_remove("XDG_RUNTIME_DIR").env_remove("XDG_STATE_HOME");
    prepared
}

pub(crate) fn started(command: &mut Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command.spawn().unwrap_or_else(|e| panic!("{command:?} cannot be started: {e}"))
}
