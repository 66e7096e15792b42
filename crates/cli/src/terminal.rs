//! Writes to standard output and standard error.
//!
//! The program never waits for standard error: a thread writes it from a bounded queue. Lines for which there is no room
//! are lost and counted. When the reader of standard output goes away, the program ends without an error.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::escape;
use crate::exit::Failure;

/// How many bytes may wait for standard error: some thousand lines, enough for the start of many servers, and little memory
/// when nobody reads them.
const MAX_QUEUED: usize = 1 << 20;
/// The bytes that each line counts in addition, so that the number of empty lines is bounded too.
const LINE_OVERHEAD: usize = 64;
/// How long the program waits at its end until standard error is read.
const FLUSH_TIME: Duration = Duration::from_millis(500);
/// The pause before the next attempt to write to a full standard error that is non-blocking.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// Prints to standard output.
///
/// # Errors
/// When its reader went away, or it cannot be written.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::OutputClosed,
        _ => Failure::Other(format!("standard output cannot be written: {error}")),
    })
}

/// Writes a line to standard error.
pub(crate) fn say(text: &str) {
    show(format!("{text}\n").into_bytes());
}

/// Writes bytes to standard error without a line end.
pub(crate) fn show(bytes: Vec<u8>) {
    STDERR.push(bytes);
}

/// Writes logs to standard error; each write is a line. It escapes JSON. The fields of text logs are escaped already.
pub(crate) struct LogWriter {
    /// Whether lines are JSON.
    pub(crate) json: bool,
}

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        show(match self.json {
            true => escape::json_text(&String::from_utf8_lossy(line)).into_bytes(),
            false => line.to_vec(),
        });
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Waits when it is dropped, at the end of the program, until the last lines are written.
pub(crate) struct FlushAtExit;

impl FlushAtExit {
    /// Panics are written by the same thread: by default, the thread that panics writes and waits.
    pub(crate) fn with_panic_hook() -> FlushAtExit {
        std::panic::set_hook(Box::new(|panic| say(&escape::text(&format!("dateline: {panic}")))));
        FlushAtExit
    }
}

impl Drop for FlushAtExit {
    fn drop(&mut self) {
        STDERR.flush();
    }
}

static STDERR: LazyLock<&'static Stderr> = LazyLock::new(|| {
    let stderr: &Stderr = Box::leak(Box::default());
    // If no thread can be started, the lines are lost, but nothing waits.
    let _ = std::thread::Builder::new().name("stderr".into()).spawn(|| stderr.write(write_all));
    stderr
});

/// Standard error, with the lines that wait for it.
#[derive(Default)]
struct Stderr {
    waiting: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    lines: VecDeque<QueuedLine>,
    weight: usize,
    /// How many lines were lost since that was last reported.
    lost: u64,
    writing: bool,
}

struct QueuedLine {
    bytes: Vec<u8>,
    /// How many lines are lost when this one is: more than one for a report of lost lines.
    lines: u64,
}

impl QueuedLine {
    fn weight(&self) -> usize {
        self.bytes.len() + LINE_OVERHEAD
    }

    fn about_lost(lost: u64) -> QueuedLine {
        let lines = if lost == 1 { "1 line was".to_owned() } else { format!("{lost} lines were") };
        let bytes = format!("dateline: {lines} lost here, since nobody read standard error\n").into_bytes();
        QueuedLine { bytes, lines: lost }
    }
}

impl Stderr {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, bytes: Vec<u8>) {
        let mut waiting = self.lock();
        let line = QueuedLine { bytes, lines: 1 };
        if waiting.weight + line.weight() > MAX_QUEUED {
            waiting.lost += 1;
            return;
        }
        let lost = std::mem::take(&mut waiting.lost);
        for line in (lost > 0).then(|| QueuedLine::about_lost(lost)).into_iter().chain([line]) {
            waiting.weight += line.weight();
            waiting.lines.push_back(line);
        }
        self.changed.notify_all();
    }

    /// Writes lines for ever.
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
                // This is reported with the next line, since another attempt would fail as well.
                waiting.lost += line.lines;
            } else if waiting.lines.is_empty() && waiting.lost > 0 {
                let lost = QueuedLine::about_lost(std::mem::take(&mut waiting.lost));
                waiting.weight += lost.weight();
                waiting.lines.push_back(lost);
            }
            self.changed.notify_all();
        }
    }

    /// Waits until all is written, at most [`FLUSH_TIME`].
    fn flush(&self) {
        let waiting = self.lock();
        let busy = |waiting: &mut Queue| waiting.writing || !waiting.lines.is_empty();
        let _ = self.changed.wait_timeout_while(waiting, FLUSH_TIME, busy);
    }
}

fn write_all(mut bytes: &[u8]) -> io::Result<()> {
    let mut stderr = io::stderr().lock();
    while !bytes.is_empty() {
        match stderr.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(RETRY_PAUSE),
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
        assert!(stderr.lock().weight <= MAX_QUEUED);
        // It does not hold up the end either.
        stderr.flush();
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
        stderr.flush();
        assert_eq!(writes.recv().unwrap(), b"said again\n");
    }
}
