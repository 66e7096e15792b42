//! No process is left behind, also when dateline itself is killed.
//!
//! A guard is one more process, in a group of its own, that is told the groups that were started. When its input
//! ends, whoever started it is gone, and it ends the groups that are left.

use std::collections::HashSet;
use std::io::{BufRead as _, Write as _};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use process_wrap::std::{CommandWrap, ProcessGroup};
use rustix::process::{Pid, Signal, kill_process_group};

/// How long a group may take to end once it was asked to.
const PATIENCE: Duration = Duration::from_millis(500);

/// A guard that runs. Clones are handles to the same one.
#[derive(Clone, Debug)]
pub struct Guard(Arc<Mutex<ChildStdin>>);

/// A group that is watched over until this is dropped.
#[derive(Debug)]
pub(super) struct Watched {
    guard: Guard,
    group: u32,
}

impl Guard {
    /// Starts a guard: a program that calls [`watch_over`] and does nothing else.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(program: &std::path::Path, args: &[&str]) -> std::io::Result<Guard> {
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
        let mut wrapped = CommandWrap::from(command);
        wrapped.wrap(ProcessGroup::leader());
        let mut child = wrapped.spawn()?;
        let stdin = child.stdin().take().ok_or_else(|| std::io::Error::other("the guard has no input"))?;
        // It is waited for so that it does not stay as a zombie, should it be killed.
        std::thread::spawn(move || child.wait());
        Ok(Guard(Arc::new(Mutex::new(stdin))))
    }

    fn tell(&self, what: char, group: u32) {
        let mut stdin = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A guard that is gone guards nothing; all else goes on.
        let _ = stdin.write_all(format!("{what}{group}\n").as_bytes());
    }

    pub(super) fn watch(&self, group: u32) -> Watched {
        self.tell('+', group);
        Watched { guard: self.clone(), group }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.guard.tell('-', self.group);
    }
}

/// What a guard does: reads groups from standard input until it ends, and then ends those that are left.
pub fn watch_over() {
    let mut groups = HashSet::new();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let group: Option<i32> = line.get(1..).and_then(|group| group.parse().ok());
        match (line.as_bytes().first(), group) {
            (Some(b'+'), Some(group)) => drop(groups.insert(group)),
            (Some(b'-'), Some(group)) => drop(groups.remove(&group)),
            _ => {}
        }
    }
    let signal = |signal| {
        for group in groups.iter().filter_map(|group| Pid::from_raw(*group)) {
            // One that has ended by itself is what is wanted.
            let _ = kill_process_group(group, signal);
        }
    };
    // Their input has just ended too: a moment to go by themselves.
    if !groups.is_empty() {
        std::thread::sleep(PATIENCE);
        signal(Signal::TERM);
        std::thread::sleep(PATIENCE);
        signal(Signal::KILL);
    }
}
