//! Writes messages to a program's standard input, one to a line.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use proto::wire;
use tokio::net::unix::pipe::Sender;
use tokio::process::ChildStdin;
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

/// How many bytes may wait for a program that does not read, before callers wait as well. It is the length of a few
/// long messages, or of thousands of short ones.
const ROOM: usize = 4 << 20;
/// What a message counts for beside its own bytes: about what the queue needs for it.
const COST: usize = 64;
/// How many messages go to the system in one write. Each is two of the 1024 parts that Linux takes at most.
const AT_ONCE: usize = 64;

/// A program's standard input. Clones are handles to the same one.
#[derive(Clone)]
pub(in crate::client) struct Input(Arc<Inner>);

struct Inner {
    queue: Mutex<Queue>,
    /// The bytes for which the queue has room. It is closed when nothing more is written.
    room: Semaphore,
    /// Wakes the task that writes what waits.
    filled: Notify,
}

struct Queue {
    /// The pipe to the program, until it is closed.
    pipe: Option<Arc<Sender>>,
    /// Messages that wait, each with the room that it takes.
    messages: VecDeque<(Bytes, usize)>,
    /// How many bytes of the first one, with its line end, are written.
    begun: usize,
}

/// The program's standard input is closed.
#[derive(Debug)]
pub(in crate::client) struct Closed;

impl Input {
    /// Takes the standard input of a program that was started.
    ///
    /// # Errors
    /// When the system does not let it be written without waiting.
    pub(super) fn new(stdin: ChildStdin) -> io::Result<Input> {
        let pipe = Arc::new(Sender::from_owned_fd(stdin.into_owned_fd()?)?);
        let queue = Queue { pipe: Some(pipe), messages: VecDeque::new(), begun: 0 };
        Ok(Input(Arc::new(Inner {
            queue: Mutex::new(queue),
            room: Semaphore::new(ROOM),
            filled: Notify::new(),
        })))
    }

    /// Writes a message, or queues it; waits while the queue is full. `at_once` says that no other message is to be
    /// expected soon: it is written by the caller where nothing waits. Other messages are written by a task, as many as
    /// there are with one call of the system.
    ///
    /// # Errors
    /// When the standard input is closed. Nothing of the message was written then.
    pub(in crate::client) async fn send(&self, message: Bytes, at_once: bool) -> Result<(), Closed> {
        let message = wire::one_line(message);
        let room = (message.len() + COST).min(ROOM);
        let permit = self.0.room.acquire_many(room as u32).await.map_err(|_| Closed)?;
        let mut queue = self.0.queue();
        if queue.pipe.is_none() {
            return Err(Closed);
        }
        // It is free again when the message is written.
        permit.forget();
        let was_empty = queue.messages.is_empty();
        queue.messages.push_back((message, room));
        if was_empty && at_once {
            self.0.write(&mut queue);
        }
        if was_empty && !queue.messages.is_empty() {
            self.0.filled.notify_one();
        }
        Ok(())
    }

    /// Writes the messages that wait, until `gone` is cancelled, and closes the standard input.
    pub(super) async fn write_queued(self, gone: CancellationToken) {
        let writing = async {
            loop {
                self.0.filled.notified().await;
                // Callers that are ready run first, so that one write takes their messages as well.
                tokio::task::yield_now().await;
                while let Some(full) = self.0.write_all() {
                    if full.writable().await.is_err() {
                        return;
                    }
                }
            }
        };
        tokio::select! {
            () = writing => {}
            () = gone.cancelled() => {}
        }
        self.0.close(&mut self.0.queue());
    }
}

impl Inner {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what waits; gives the pipe where it is full before all is written.
    fn write_all(&self) -> Option<Arc<Sender>> {
        let mut queue = self.queue();
        self.write(&mut queue);
        queue.pipe.clone().filter(|_| !queue.messages.is_empty())
    }

    /// Writes what waits until the pipe is full. A pipe that nobody reads is closed.
    fn write(&self, queue: &mut Queue) {
        match queue.write() {
            Ok(room) => self.room.add_permits(room),
            Err(_) => self.close(queue),
        }
    }

    fn close(&self, queue: &mut Queue) {
        queue.pipe = None;
        queue.messages.clear();
        self.room.close();
    }
}

impl Queue {
    /// Writes messages until the pipe is full; gives the room that those took which are written.
    fn write(&mut self) -> io::Result<usize> {
        let mut room = 0;
        while let Some(pipe) = self.pipe.as_ref().filter(|_| !self.messages.is_empty()) {
            match pipe.try_write_vectored(&self.parts()) {
                Ok(written) => room += self.remove(written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(room)
    }

    /// The first messages with their line ends, without what is written of them.
    fn parts(&self) -> Vec<IoSlice<'_>> {
        let mut parts = Vec::with_capacity(2 * AT_ONCE.min(self.messages.len()));
        let mut begun = self.begun;
        for (message, _) in self.messages.iter().take(AT_ONCE) {
            parts.push(IoSlice::new(&message[begun.min(message.len())..]));
            parts.push(IoSlice::new(b"\n"));
            begun = 0;
        }
        parts
    }

    /// Removes bytes that were written; gives the room of the messages that are written to their end.
    fn remove(&mut self, written: usize) -> usize {
        let (mut left, mut freed) = (self.begun + written, 0);
        while let Some((message, room)) = self.messages.front() {
            let length = message.len() + 1;
            if left < length {
                break;
            }
            left -= length;
            freed += room;
            self.messages.pop_front();
        }
        self.begun = left;
        freed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use std::process::Stdio;
    use tokio::io::AsyncReadExt as _;
    use tokio::process::{ChildStdout, Command};

    /// A program that writes what it reads.
    fn cat() -> (Input, ChildStdout, CancellationToken) {
        let mut command = Command::new("cat");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = Input::new(child.stdin.take().unwrap()).unwrap();
        let gone = CancellationToken::new();
        tokio::spawn(input.clone().write_queued(gone.clone()));
        (input, child.stdout.take().unwrap(), gone)
    }

    #[tokio::test]
    async fn messages_come_in_their_order_and_whole_whoever_writes_them() {
        let (input, mut output, gone) = cat();
        let mut due = Vec::new();
        let texts = (0..400).map(|at| format!("{at} {}", "x".repeat(at * 37 % 5000)));
        let mut sent = Vec::new();
        for (at, text) in texts.enumerate() {
            due.extend([text.as_bytes(), b"\n"].concat());
            sent.push((Bytes::from(text), at % 3 == 0));
        }
        let sending = async {
            for (message, at_once) in sent {
                input.send(message, at_once).await.unwrap();
            }
            while input.0.room.available_permits() < ROOM {
                tokio::task::yield_now().await;
            }
            gone.cancel();
        };
        let mut read = Vec::new();
        let (_, ended) = tokio::join!(sending, output.read_to_end(&mut read));
        ended.unwrap();
        assert!(read == due, "{} of {} bytes", read.len(), due.len());
        assert!(input.send(Bytes::from_static(b"{}"), true).await.is_err(), "it is closed");
    }

    #[tokio::test]
    async fn callers_wait_for_a_program_that_does_not_read_and_hear_when_it_ends() {
        let mut command = Command::new("sleep");
        let mut child = command.arg("60").stdin(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let input = Input::new(child.stdin.take().unwrap()).unwrap();
        let gone = CancellationToken::new();
        let writing = tokio::spawn(input.clone().write_queued(gone.clone()));
        let long = Bytes::from(vec![b'x'; 2 * ROOM]);
        input.send(long, true).await.unwrap();
        let waiting = input.send(Bytes::from_static(b"{}"), true);
        tokio::pin!(waiting);
        assert!((&mut waiting).now_or_never().is_none(), "a message of any length is taken alone");
        gone.cancel();
        assert!(waiting.await.is_err());
        writing.await.unwrap();
    }
}
