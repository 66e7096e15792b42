//! No process is left behind, also when dateline itself is killed.
//!
//! A guard is one more process, in a group of its own, that is told the groups that were started. When its input
//! ends, whoever started it is gone, and it ends the groups that are left.

use std::collections::HashSet;
use std::io::{BufRead as _, Write as _};
use std::path::PathBuf;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use process_wrap::std::{ChildWrapper, CommandWrap, ProcessGroup};
use rustix::process::{Pid, Signal, kill_process_group};

/// How long a group may take to end once it was asked to.
const PATIENCE: Duration = Duration::from_millis(500);
/// The first and the longest pause before a guard that ended is replaced.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(10));
/// A guard that ran this long is replaced after the first pause again.
const STEADY: Duration = Duration::from_secs(60);

/// A guard that runs, and is replaced where it ends. Clones are handles to the same one.
#[derive(Clone, Debug)]
pub struct Guard(Arc<Mutex<Post>>);

/// What is known of a guard.
#[derive(Debug)]
struct Post {
    program: PathBuf,
    args: Vec<String>,
    /// Where it is told; none while there is no guard.
    stdin: Option<ChildStdin>,
    /// The groups that it watches over, for the one that comes after it.
    groups: HashSet<u32>,
}

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
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let mut post = Post { program: program.to_owned(), args, stdin: None, groups: HashSet::new() };
        let child = post.fill()?;
        let guard = Guard(Arc::new(Mutex::new(post)));
        let weak = Arc::downgrade(&guard.0);
        std::thread::spawn(move || relieve(&weak, child));
        Ok(guard)
    }

    fn lock(&self) -> MutexGuard<'_, Post> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn watch(&self, group: u32) -> Watched {
        let mut post = self.lock();
        post.groups.insert(group);
        post.tell('+', group);
        drop(post);
        Watched { guard: self.clone(), group }
    }
}

impl Post {
    /// Starts a guard, and tells it the groups that there are.
    fn fill(&mut self) -> std::io::Result<Box<dyn ChildWrapper>> {
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

    fn tell(&mut self, what: char, group: u32) {
        // One that is gone is replaced, and then told all.
        if let Some(stdin) = &mut self.stdin {
            let _ = stdin.write_all(format!("{what}{group}\n").as_bytes());
        }
    }
}

/// Waits for the end of a guard, and replaces it, as long as there is something to guard for.
fn relieve(post: &Weak<Mutex<Post>>, first: Box<dyn ChildWrapper>) {
    let (mut child, mut pause) = (Some(first), PAUSES.0);
    loop {
        let since = Instant::now();
        let ended = child.take().map(|mut child| child.wait());
        if post.strong_count() == 0 {
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
        let Some(post) = post.upgrade() else { return };
        child = post.lock().unwrap_or_else(PoisonError::into_inner).fill().ok();
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut post = self.guard.lock();
        post.groups.remove(&self.group);
        post.tell('-', self.group);
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
