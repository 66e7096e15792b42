//! Writes to standard output and standard error.
//!
//! Neither can stop the program. A thread of its own writes to standard error from a bounded queue; lines that find no room
//! are lost, and counted. When the reader of standard output goes away, the program ends without an error.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::exit::Failure;
use crate::words;

/// How many bytes wait for standard error: some thousand lines, so that none is lost of a start with many servers, and
/// nothing that counts where nobody reads.
const WAITING: usize = 1 << 20;
/// What a line weighs beside its bytes, so that empty ones are bounded too.
const OF_A_LINE: usize = 64;
/// How long the end of the program waits for who reads standard error.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How long a descriptor that somebody made non-blocking is left alone while it is full.
const FULL: Duration = Duration::from_millis(20);

/// Prints to standard output.
///
/// # Errors
/// When nobody reads it any more, or it cannot be written.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::Unread,
        _ => Failure::Other(format!("standard output cannot be written: {error}")),
    })
}

/// Writes a line to standard error.
pub(crate) fn say(text: &str) {
    show(format!("{text}\n").into_bytes());
}

/// Writes bytes to standard error, without an end of line: for a line that is written over later.
pub(crate) fn show(bytes: Vec<u8>) {
    STDERR.push(bytes);
}

/// Where logs go: each write is a line. In JSON what would steer a terminal is an escape; a text's fields are escaped
/// where they are written.
pub(crate) struct Log {
    /// The line is JSON.
    pub(crate) json: bool,
}

impl Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        show(match self.json {
            true => words::json_text(&String::from_utf8_lossy(line)).into_bytes(),
            false => line.to_vec(),
        });
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Dropped at the end of the program: what was said last comes out, where somebody reads it.
pub(crate) struct LastWords;

impl LastWords {
    /// A panic is said as all else is: by itself it would be written where it happens, and wait there.
    pub(crate) fn with_panics() -> LastWords {
        std::panic::set_hook(Box::new(|panic| say(&words::text(&format!("dateline: {panic}")))));
        LastWords
    }
}

impl Drop for LastWords {
    fn drop(&mut self) {
        STDERR.settle();
    }
}

static STDERR: LazyLock<&'static Stderr> = LazyLock::new(|| {
    let stderr: &Stderr = Box::leak(Box::default());
    // Without a thread all is lost, and nothing waits.
    let _ = std::thread::Builder::new().name("stderr".into()).spawn(|| stderr.write(write_all));
    stderr
});

/// What waits for standard error.
#[derive(Default)]
struct Stderr {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    lines: VecDeque<Line>,
    weight: usize,
    /// How many lines found no room, or could not be written, and nobody was told.
    lost: u64,
    writing: bool,
}

struct Line {
    bytes: Vec<u8>,
    /// How many lines are lost with it.
    stands_for: u64,
}

impl Line {
    fn weight(&self) -> usize {
        self.bytes.len() + OF_A_LINE
    }

    fn of_lost(lost: u64) -> Line {
        let lines = if lost == 1 { "1 line was".to_owned() } else { format!("{lost} lines were") };
        let bytes = format!("dateline: {lines} lost here, since nobody read standard error\n").into_bytes();
        Line { bytes, stands_for: lost }
    }
}

impl Stderr {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, bytes: Vec<u8>) {
        let mut waiting = self.lock();
        let line = Line { bytes, stands_for: 1 };
        if waiting.weight + line.weight() > WAITING {
            waiting.lost += 1;
            return;
        }
        let lost = std::mem::take(&mut waiting.lost);
        for line in (lost > 0).then(|| Line::of_lost(lost)).into_iter().chain([line]) {
            waiting.weight += line.weight();
            waiting.lines.push_back(line);
        }
        self.changed.notify_all();
    }

    /// Writes what comes, for ever.
    fn write(&self, write: impl Fn(&[u8]) -> io::Result<()>) {
        let mut waiting = self.lock();
        loop {
            let Some(line) = waiting.lines.pop_front() else {
                waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            waiting.weight -= line.weight();
            waiting.writing = true;
            drop(waiting);
            let written = write(&line.bytes);
            waiting = self.lock();
            waiting.writing = false;
            if written.is_err() {
                // It is told with the next line: one that cannot be written now is not tried again at once.
                waiting.lost += line.stands_for;
            } else if waiting.lines.is_empty() && waiting.lost > 0 {
                let lost = Line::of_lost(std::mem::take(&mut waiting.lost));
                waiting.weight += lost.weight();
                waiting.lines.push_back(lost);
            }
            self.changed.notify_all();
        }
    }

    /// Waits until all is written, for a while.
    fn settle(&self) {
        let waiting = self.lock();
        let busy = |waiting: &mut Waiting| waiting.writing || !waiting.lines.is_empty();
        let _ = self.changed.wait_timeout_while(waiting, LAST_WORDS, busy);
    }
}

fn write_all(mut bytes: &[u8]) -> io::Result<()> {
    let mut stderr = io::stderr().lock();
    while !bytes.is_empty() {
        match stderr.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(FULL),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// How many lines come out of what was written, and how many are said to be lost.
    fn counted(written: &[u8]) -> (u64, u64) {
        let text = String::from_utf8_lossy(written);
        let lost = |line: &str| line.strip_prefix("dateline: ")?.split_once(" line")?.0.parse::<u64>().ok();
        let lost: u64 = text.lines().filter_map(lost).sum();
        (text.lines().filter(|line| line.starts_with("said ")).count() as u64, lost)
    }

    #[test]
    fn who_says_something_waits_for_nobody_and_what_is_lost_is_counted() {
        let stderr: &Stderr = Box::leak(Box::default());
        let (read, reads) = mpsc::channel::<bool>();
        let (written, writes) = mpsc::channel();
        let reads = Mutex::new(reads);
        std::thread::spawn(move || {
            stderr.write(|bytes| {
                // Nobody reads until the test does; then it may be that nothing can be written, as on a full disk.
                let fine = reads.lock().unwrap().recv().unwrap_or(true);
                written.send(if fine { bytes.to_vec() } else { Vec::new() }).unwrap();
                if fine { Ok(()) } else { Err(io::ErrorKind::StorageFull.into()) }
            });
        });
        let said = 100_000;
        for n in 0..said {
            stderr.push(format!("said {n}\n").into_bytes());
        }
        assert!(stderr.lock().weight <= WAITING);
        // It does not hold up the end either.
        stderr.settle();
        for _ in 0..10 {
            read.send(false).unwrap();
            writes.recv().unwrap();
        }
        drop(read);
        let (mut came, mut lost, mut last) = (0, 0, Vec::new());
        while came + lost < said {
            last = writes.recv_timeout(Duration::from_secs(20)).unwrap();
            let (more, less) = counted(&last);
            (came, lost) = (came + more, lost + less);
        }
        assert_eq!(came + lost, said);
        assert!(came > 1000 && lost > 10, "{came} came, {lost} were lost");
        assert!(String::from_utf8_lossy(&last).contains("lines were lost here"));
        // What comes later is written as ever.
        stderr.push(b"said again\n".to_vec());
        stderr.settle();
        assert_eq!(writes.recv().unwrap(), b"said again\n");
    }
}
