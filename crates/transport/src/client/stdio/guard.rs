//! Ends child processes also when the process that started them is killed.
//!
//! A guard is a further process, in a process group of its own. It reads the process groups that were started from its
//! standard input. When the input ends, the process that started the guard has ended, and the guard ends the groups that
//! are left.

use std::collections::HashSet;
use std::io::{BufRead as _, Write as _};
use std::path::PathBuf;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use process_wrap::std::{ChildWrapper, CommandWrap, ProcessGroup};
use rustix::process::{Pid, Signal, kill_process_group};

/// How long a process group may take to end after its input is closed, and again after SIGTERM.
const PATIENCE: Duration = Duration::from_millis(500);
/// The first and the longest pause before a guard that ended is replaced.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(10));
/// After a guard ran for this long, the pause before the next one is the first one again.
const STEADY: Duration = Duration::from_secs(60);

/// A guard process, which is started again when it ends. Clones are handles to the same guard.
#[derive(Clone, Debug)]
pub struct Guard(Arc<Mutex<GuardState>>);

/// The state of a guard.
#[derive(Debug)]
struct GuardState {
    program: PathBuf,
    args: Vec<String>,
    /// The input of the guard process; `None` while there is no process.
    stdin: Option<ChildStdin>,
    /// The process groups that the guard ends; the next guard process reads all of them.
    groups: HashSet<u32>,
}

/// A process group that the guard ends, until this is dropped.
#[derive(Debug)]
pub(super) struct GuardedGroup {
    guard: Guard,
    group: u32,
}

impl Guard {
    /// Starts a guard process. The program has to call [`watch_over`] and do nothing else.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn start(program: &std::path::Path, args: &[&str]) -> std::io::Result<Guard> {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let mut state = GuardState { program: program.to_owned(), args, stdin: None, groups: HashSet::new() };
        let child = state.start_process()?;
        let guard = Guard(Arc::new(Mutex::new(state)));
        let weak = Arc::downgrade(&guard.0);
        std::thread::spawn(move || restart(&weak, child));
        Ok(guard)
    }

    fn lock(&self) -> MutexGuard<'_, GuardState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the guard end a process group, should this process be killed.
    pub(super) fn watch(&self, group: u32) -> GuardedGroup {
        let mut state = self.lock();
        state.groups.insert(group);
        state.tell('+', group);
        drop(state);
        GuardedGroup { guard: self.clone(), group }
    }
}

impl GuardState {
    /// Starts a guard process, and writes all groups to it.
    fn start_process(&mut self) -> std::io::Result<Box<dyn ChildWrapper>> {
        let mut command = Command::new(&self.program);
        command.args(&self.args).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.current_dir("/");
        let mut wrapped = CommandWrap::from(command);
        wrapped.wrap(ProcessGroup::leader());
        let mut child = wrapped.spawn()?;
        let stdin = child.stdin().take().ok_or_else(|| std::io::Error::other("the guard has no input"))?;
        self.stdin = Some(stdin);
        for group in self.groups.clone() {
            self.tell('+', group);
        }
        Ok(child)
    }

    /// Adds a group at the guard process by `+`, or takes it away by `-`.
    fn tell(&mut self, what: char, group: u32) {
        // Where the process has ended, the next one gets all groups.
        if let Some(stdin) = &mut self.stdin {
            let _ = stdin.write_all(format!("{what}{group}\n").as_bytes());
        }
    }
}

/// Waits for the end of a guard process and starts the next one, until the last handle to the guard is dropped.
fn restart(state: &Weak<Mutex<GuardState>>, first: Box<dyn ChildWrapper>) {
    let (mut child, mut pause) = (Some(first), PAUSES.0);
    loop {
        let since = Instant::now();
        let ended = child.take().map(|mut child| child.wait());
        if state.strong_count() == 0 {
            return;
        }
        let how = match ended {
            Some(Ok(status)) => status.to_string(),
            Some(Err(why)) => why.to_string(),
            None => "it could not be started".to_owned(),
        };
        tracing::warn!("the guard of child processes ended ({how}); another one is started");
        if since.elapsed() > STEADY {
            pause = PAUSES.0;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(PAUSES.1);
        let Some(state) = state.upgrade() else { return };
        child = state.lock().unwrap_or_else(PoisonError::into_inner).start_process().ok();
    }
}

impl Drop for GuardedGroup {
    fn drop(&mut self) {
        let mut state = self.guard.lock();
        state.groups.remove(&self.group);
        state.tell('-', self.group);
    }
}

/// Runs a guard: reads process groups from standard input until it ends, and then ends the groups that are left.
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
            // It fails where the group has ended by itself.
            let _ = kill_process_group(group, signal);
        }
    };
    // The input of the servers has just ended as well: most of them end by themselves.
    if !groups.is_empty() {
        std::thread::sleep(PATIENCE);
        signal(Signal::TERM);
        std::thread::sleep(PATIENCE);
        signal(Signal::KILL);
    }
}
