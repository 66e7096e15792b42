//! Child processes: started in a group of their own, ended in the order of the specification.
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

use super::guard::Watched;
use super::{Settings, Stderr};
use crate::TransportError;
use crate::line::{Line, Lines};

/// How long a process may take to end by itself once its input is closed, and again once it was asked to by a
/// signal. Together they stay under the second that impatient launchers give ourselves.
const PATIENCE: Duration = Duration::from_millis(400);
/// How many lines of a process's stderr are kept to explain its end.
const LAST_WORDS: usize = 8;
/// How long a line of stderr may be.
const STDERR_LINE: usize = 64 * 1024;

const SIGTERM: i32 = 15;
const SIGKILL: i32 = 9;

/// A program to be started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// What it is called in logs.
    pub name: String,
    /// The program, by path or as found in `PATH`.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// What is added to its environment.
    pub env: HashMap<String, String>,
    /// Where it runs.
    pub cwd: Option<PathBuf>,
}

/// What of our own environment a program gets: what programs need to run at all. Anything else it is given on
/// purpose, by [`Program::env`].
const PASSED: &[&str] =
    &["HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"];

/// The streams of a process that runs.
pub(super) struct Streams {
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
}

/// Looks after a process until it has ended.
pub(super) struct Keeper {
    pid: Option<u32>,
    ended: CancellationToken,
    last_words: LastWords,
}

/// How a process ended, where it did so by itself, and what it said before.
type LastWords = Arc<Mutex<(Option<ExitStatus>, VecDeque<String>)>>;

impl Keeper {
    pub(super) fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Waits until the process has ended.
    pub(super) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Is cancelled when the process has ended.
    pub(super) fn end(&self) -> CancellationToken {
        self.ended.clone()
    }

    /// What the process said last on stderr, as the end of a sentence.
    pub(super) fn last_words(&self) -> String {
        last_words(&self.last_words)
    }

    /// What the process said on stderr so far, as the end of a sentence about something else than its end.
    pub(super) fn said(&self) -> String {
        let words = self.last_words.lock().unwrap_or_else(PoisonError::into_inner);
        spoken(&words.1)
    }
}

fn spoken(lines: &VecDeque<String>) -> String {
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    if lines.is_empty() {
        String::new()
    } else {
        format!("; its last words on stderr: {}", lines.join(" | "))
    }
}

fn last_words(words: &LastWords) -> String {
    let words = words.lock().unwrap_or_else(PoisonError::into_inner);
    let (status, lines) = &*words;
    let status = status.map(|status| format!(" ({status})")).unwrap_or_default();
    format!("{status}{}", spoken(lines))
}

/// Starts a program. Cancelling `stop` ends it.
pub(super) fn start(
    program: &Program,
    stop: &CancellationToken,
    settings: &Settings,
) -> Result<(Streams, Keeper), TransportError> {
    let failed = |source| TransportError::Start { program: program.command.clone(), source };
    let mut wrapped = CommandWrap::with_new(&program.command, |command| {
        command.args(&program.args).env_clear();
        command.envs(PASSED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
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
    let keeper =
        Keeper { pid: child.id(), ended: CancellationToken::new(), last_words: LastWords::default() };
    let watched = child.id().and_then(|group| settings.guard.as_ref().map(|guard| guard.watch(group)));
    let hearing = tokio::spawn(hear(
        stderr,
        program.name.clone(),
        Arc::clone(&keeper.last_words),
        settings.stderr.clone(),
    ));
    let words = Arc::clone(&keeper.last_words);
    tokio::spawn(keep(child, stop.clone(), keeper.ended.clone(), watched, words, hearing));
    Ok((Streams { stdin, stdout }, keeper))
}

/// Waits for the end of a process, or brings it about. Whatever it started in its group ends with it.
async fn keep(
    mut child: Box<dyn ChildWrapper>,
    stop: CancellationToken,
    ended: CancellationToken,
    watched: Option<Watched>,
    words: LastWords,
    hearing: JoinHandle<()>,
) {
    let note = |status| words.lock().unwrap_or_else(PoisonError::into_inner).0 = status;
    tokio::select! {
        status = child.inner_mut().wait() => note(status.ok()),
        // Whoever cancels also closes the input.
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
    drop(watched);
    // What it said last is read before its end is told. Something outside its group may keep its stderr open.
    let _ = tokio::time::timeout(PATIENCE, hearing).await;
    ended.cancel();
}

/// Logs what a process says on stderr, and keeps the last of it.
async fn hear(stderr: ChildStderr, name: String, last_words: LastWords, told: Option<Stderr>) {
    let mut lines = Lines::new(stderr, STDERR_LINE);
    while let Ok(Some(line)) = lines.next().await {
        let Line::Message(line) = line else { continue };
        // A terminal must not be steered by what a server says.
        let text: String =
            String::from_utf8_lossy(&line).chars().filter(|c| !c.is_control()).take(500).collect();
        match &told {
            Some(Stderr(told)) => told(&text),
            None => tracing::info!(server = name, "{text}"),
        }
        let mut words = last_words.lock().unwrap_or_else(PoisonError::into_inner);
        if words.1.len() == LAST_WORDS {
            words.1.pop_front();
        }
        words.1.push_back(text);
    }
}
