//! Child processes. Each is started in a process group of its own, and ended in the way that the specification names.
//!
//! <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio#shutdown>

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop, ProcessGroup};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::guard::GuardedGroup;
use crate::TransportError;
use crate::client::settings::{Settings, Stderr};
use crate::line::{Line, Lines};

/// How long a process may take to end after its standard input is closed, and again after SIGTERM. Both together are
/// less than the second after which impatient launchers kill dateline itself.
const PATIENCE: Duration = Duration::from_millis(400);
/// How many of the last lines on standard error are kept to explain the end of a process.
const LAST_LINES: usize = 8;
/// How many bytes a line on standard error may have; longer ones are skipped.
const STDERR_LINE: usize = 64 * 1024;

const SIGTERM: i32 = 15;
const SIGKILL: i32 = 9;

/// A program that is a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Its name in logs and errors.
    pub name: String,
    /// The command: a path, or a name that is looked up in `PATH`.
    pub command: String,
    /// The arguments of the command.
    pub args: Vec<String>,
    /// Variables that are added to the environment. Of its own environment the client gives a program only what most
    /// programs need, such as `PATH` and `HOME`.
    pub env: HashMap<String, String>,
    /// The working directory. Default: that of this process.
    pub cwd: Option<PathBuf>,
}

/// The variables of the client's own environment that a program gets: those that programs need to run at all. The others
/// may hold secrets.
const INHERITED: &[&str] =
    &["HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"];

/// The standard streams of a process over which messages go.
pub(super) struct Streams {
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
}

/// A process that was started. Clones are handles to the same process.
#[derive(Clone)]
pub(in crate::client) struct Process {
    pid: Option<u32>,
    ended: CancellationToken,
    log: Log,
}

/// How a process ended, where it ended by itself, and the last lines that it wrote to standard error.
type Log = Arc<Mutex<(Option<ExitStatus>, VecDeque<String>)>>;

impl Process {
    pub(in crate::client) fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Waits until the process has ended.
    pub(in crate::client) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Is cancelled when the process has ended.
    pub(super) fn end(&self) -> CancellationToken {
        self.ended.clone()
    }

    /// How the process ended, with its last lines on standard error, as the end of a sentence.
    pub(super) fn end_in_words(&self) -> String {
        let status = self.log.lock().unwrap_or_else(PoisonError::into_inner).0;
        let status = status.map(|status| format!(" ({status})")).unwrap_or_default();
        format!("{status}{}", self.stderr_in_words())
    }

    /// The last lines on standard error, as the end of a sentence; empty where there are none.
    pub(super) fn stderr_in_words(&self) -> String {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let lines: Vec<&str> = log.1.iter().map(String::as_str).collect();
        if lines.is_empty() {
            return String::new();
        }
        format!("; its last words on stderr: {}", lines.join(" | "))
    }
}

/// The error of a program that cannot be started.
pub(super) fn not_started(program: &Program, source: std::io::Error) -> TransportError {
    TransportError::Start { program: program.command.clone(), source }
}

/// Starts a program. Cancelling `stop` ends it.
pub(super) fn start(
    program: &Program,
    stop: &CancellationToken,
    settings: &Settings,
) -> Result<(Streams, Process), TransportError> {
    let failed = |source| not_started(program, source);
    let mut wrapped = CommandWrap::with_new(&program.command, |command| {
        command.args(&program.args).env_clear();
        command.envs(INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.envs(&program.env);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(cwd) = &program.cwd {
            command.current_dir(cwd);
        }
    });
    wrapped.wrap(ProcessGroup::leader()).wrap(KillOnDrop);
    let mut child = wrapped.spawn().map_err(failed)?;
    let missing = || failed(std::io::Error::other("its standard streams are not there"));
    let stdin = child.stdin().take().ok_or_else(missing)?;
    let stdout = child.stdout().take().ok_or_else(missing)?;
    let stderr = child.stderr().take().ok_or_else(missing)?;
    let process = Process { pid: child.id(), ended: CancellationToken::new(), log: Log::default() };
    let guarded = child.id().and_then(|group| settings.guard.as_ref().map(|guard| guard.watch(group)));
    let reader = read_stderr(stderr, program.name.clone(), Arc::clone(&process.log), settings.stderr.clone());
    let reader = tokio::spawn(reader);
    tokio::spawn(supervise(child, stop.clone(), process.clone(), guarded, reader));
    Ok((Streams { stdin, stdout }, process))
}

/// Waits for the end of a process, or ends it when `stop` is cancelled. What it started in its group ends with it.
async fn supervise(
    mut child: Box<dyn ChildWrapper>,
    stop: CancellationToken,
    process: Process,
    guarded: Option<GuardedGroup>,
    reader: JoinHandle<()>,
) {
    let note = |status| process.log.lock().unwrap_or_else(PoisonError::into_inner).0 = status;
    tokio::select! {
        status = child.inner_mut().wait() => note(status.ok()),
        // The task that writes to standard input closes it at the same time.
        () = stop.cancelled() => {
            match tokio::time::timeout(PATIENCE, child.inner_mut().wait()).await {
                Ok(status) => note(status.ok()),
                Err(_) => {
                    let _ = child.signal(SIGTERM);
                    let _ = tokio::time::timeout(PATIENCE, child.inner_mut().wait()).await;
                }
            }
        }
    }
    let _ = child.signal(SIGKILL);
    let _ = child.wait().await;
    drop(guarded);
    // The last lines on standard error are read before anybody hears of the end. A process outside the group may keep
    // standard error open.
    let _ = tokio::time::timeout(PATIENCE, reader).await;
    process.ended.cancel();
}

/// How many characters of a line on standard error are kept: enough to understand it.
const LINE_SHOWN: usize = 500;

/// Reads the lines that a process writes to standard error, and keeps the last ones.
async fn read_stderr(stderr: ChildStderr, name: String, log: Log, receiver: Option<Stderr>) {
    let mut lines = Lines::new(stderr, STDERR_LINE);
    while let Ok(Some(line)) = lines.next().await {
        let Line::Message(line) = line else { continue };
        // Control characters could change what a terminal shows or does.
        let text = String::from_utf8_lossy(&line);
        let text: String = text.chars().filter(|c| !c.is_control()).take(LINE_SHOWN).collect();
        match &receiver {
            Some(Stderr(receive)) => receive(&text),
            None => tracing::info!(server = name, "{text}"),
        }
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        if log.1.len() == LAST_LINES {
            log.1.pop_front();
        }
        log.1.push_back(text);
    }
}
