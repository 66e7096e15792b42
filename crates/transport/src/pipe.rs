//! Serves one pipe: standard streams, any pair of byte streams, or whatever else gives messages and takes them.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{AbortHandle, Abortable, Aborted};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use proto::CallKey;
use proto::downstream::Ending;
use proto::downstream::{Output, Pipe, Served};
use proto::wire::{Message, Unreadable};
use proto::{Answer, BoxFuture, BoxStream, Change, EventQueue, Listening, Principal, Rejection, wire};
use spec::Rules;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::time::Instant;
use tokio_stream::StreamMap;
use tokio_util::sync::CancellationToken;

use crate::limits::{Budget, ConnectionSlot};
use crate::line::{Line, Lines};
use crate::queue::{self, queue};
use crate::{BACKLOG, GRACE, WRITE_TIMEOUT};

/// How long calls may go on whose client has ended its input. A client that launches its servers takes a few seconds
/// before it kills one that does not end.
const OWED: Duration = Duration::from_secs(5);
/// How long they may still go on once the process is asked to end, too.
const LAST: Duration = Duration::from_secs(1);

/// Serves standard input and output until the input ends or `shutdown` is cancelled.
///
/// # Errors
/// When reading or writing fails.
pub async fn serve_stdio(served: Arc<Served>, shutdown: CancellationToken) -> io::Result<()> {
    serve_pipe(tokio::io::stdin(), tokio::io::stdout(), served, shutdown).await
}

/// How a piece of work ended.
enum Done {
    Answered(Result<Answer, Rejection>),
    Listening(Result<Listening, Rejection>),
}

type Work = Abortable<BoxFuture<'static, (CallKey, Done)>>;

struct Driver {
    pipe: Pipe,
    served: Arc<Served>,
    work: FuturesUnordered<Work>,
    handles: HashMap<CallKey, AbortHandle>,
    changes: StreamMap<CallKey, BoxStream<Option<Change>>>,
    events: EventQueue,
    out: queue::Sender,
    shutdown: CancellationToken,
    /// The process is asked to end.
    closing: bool,
    /// The client has ended its input.
    over: bool,
    /// Until when what is owed may go on.
    deadline: Option<Instant>,
}

/// Serves a pair of byte streams. All calls of the pipe are polled by this one future: no task is spawned for a
/// message, and dropping the future ends everything.
///
/// When the input ends, what was asked is still answered for some seconds; then the rest is cancelled.
///
/// # Errors
/// When reading or writing fails.
pub async fn serve_pipe(
    reader: impl AsyncRead + Unpin + Send,
    writer: impl AsyncWrite + Unpin,
    served: Arc<Served>,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let lines = LineSource::new(Lines::new(reader, served.limits.message), served.limits);
    // Its one client costs itself only, and may be stopped for as long as it likes.
    joined(lines, writer, None, served, Principal::local(), shutdown).await
}

/// The same for a connection that anybody may have opened: it is closed where its first line is no message.
///
/// A page can make a browser send a request to any port. The lines of its head are no messages, and its body must
/// not be taken for one.
pub(crate) async fn serve_connection(
    reader: impl AsyncRead + Unpin + Send,
    writer: impl AsyncWrite + Unpin,
    served: Arc<Served>,
    principal: Principal,
    shutdown: CancellationToken,
    (slot, arriving): (Arc<ConnectionSlot>, Arc<Budget>),
) -> io::Result<()> {
    let holding = arriving.holding(slot.owner(), slot.evict().clone());
    let lines = Lines::new(reader, served.limits.message).counted(holding);
    let lines = LineSource { opening: Some(slot), ..LineSource::new(lines, served.limits) };
    joined(lines, writer, Some(WRITE_TIMEOUT), served, principal, shutdown).await
}

async fn joined(
    lines: impl Source,
    writer: impl AsyncWrite + Unpin,
    write_timeout: Option<Duration>,
    served: Arc<Served>,
    principal: Principal,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let (out, queue) = queue();
    let stopped = shutdown.clone();
    let served = async {
        tokio::join!(drive(lines, out, served, principal, shutdown), write(writer, queue, write_timeout))
    };
    tokio::select! {
        (read, written) = served => read.and(written),
        // A client that reads nothing does not keep the process.
        () = async { stopped.cancelled().await; tokio::time::sleep(GRACE + LAST).await } => Ok(()),
    }
}

/// Answers the messages of a source into a queue, until the source ends or nobody takes from the queue.
///
/// # Errors
/// When reading fails.
pub(crate) async fn drive(
    source: impl Source,
    out: queue::Sender,
    served: Arc<Served>,
    principal: Principal,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let driver = Driver {
        pipe: Pipe::new(Arc::clone(&served), principal),
        work: FuturesUnordered::new(),
        handles: HashMap::new(),
        changes: StreamMap::new(),
        events: EventQueue::new(BACKLOG),
        served,
        out,
        shutdown,
        closing: false,
        over: false,
        deadline: None,
    };
    driver.run(source).await
}

/// What a source gives.
pub(crate) enum Incoming {
    /// A message, or what should have been one.
    Read(Result<Message, Unreadable>),
    /// A message over the limit.
    TooLong,
}

/// Where messages come from.
pub(crate) trait Source {
    /// The next one; `None` at the end. Dropping the future loses nothing.
    fn next(&mut self) -> impl Future<Output = io::Result<Option<Incoming>>> + Send;

    /// A handshake has settled how the rest of the pipe behaves.
    fn settled(&mut self, _: &'static Rules) {}
}

/// Messages as lines.
struct LineSource<R> {
    lines: Lines<R>,
    limits: wire::Limits,
    /// Nothing but messages may come first; the connection counts as one that works from then on.
    opening: Option<Arc<ConnectionSlot>>,
    over: bool,
}

impl<R: AsyncRead + Unpin> LineSource<R> {
    fn new(lines: Lines<R>, limits: wire::Limits) -> LineSource<R> {
        LineSource { lines, limits, opening: None, over: false }
    }
}

impl<R: AsyncRead + Unpin + Send> Source for LineSource<R> {
    async fn next(&mut self) -> io::Result<Option<Incoming>> {
        if self.over {
            return Ok(None);
        }
        let incoming = match self.lines.next().await? {
            None => return Ok(None),
            Some(Line::TooLong(_)) => Incoming::TooLong,
            Some(Line::Message(bytes)) => Incoming::Read(wire::read(bytes, &self.limits)),
        };
        if let Some(slot) = self.opening.take() {
            slot.works();
            self.over = !matches!(incoming, Incoming::Read(Ok(_)));
        }
        Ok(Some(incoming))
    }
}

/// Writes queued messages, a line each, and flushes when there are no more. Fails if the reader takes
/// nothing for `write_timeout`.
async fn write(
    mut writer: impl AsyncWrite + Unpin,
    mut queue: queue::Receiver,
    write_timeout: Option<Duration>,
) -> io::Result<()> {
    while let Some(first) = queue.recv().await {
        let mut next = Some(first);
        while let Some(message) = next {
            let mut line = Vec::with_capacity(message.len() + 1);
            line.extend_from_slice(&wire::one_line(message));
            line.push(b'\n');
            let mut rest = &line[..];
            while !rest.is_empty() {
                let taken = within(write_timeout, writer.write(rest)).await?;
                if taken == 0 {
                    return Err(io::ErrorKind::WriteZero.into());
                }
                rest = &rest[taken..];
            }
            next = queue.try_recv();
        }
        writer.flush().await?;
    }
    Ok(())
}

async fn within<T>(limit: Option<Duration>, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let Some(limit) = limit else { return work.await };
    tokio::time::timeout(limit, work).await.unwrap_or_else(|_| {
        let why = format!("it read nothing for {} s of what waited for it", limit.as_secs());
        tracing::warn!("a client on a socket is let go: {why}");
        Err(io::Error::new(io::ErrorKind::TimedOut, why))
    })
}

impl Driver {
    async fn run(mut self, mut source: impl Source) -> io::Result<()> {
        loop {
            if self.over || self.closing {
                self.end_listens().await;
            }
            // Who has ended its input answers no question.
            if self.over && self.pipe.owed() == 0 || self.closing && self.pipe.in_flight() == 0 {
                break;
            }
            tokio::select! {
                biased;
                () = self.shutdown.cancelled(), if !self.closing => self.close(),
                (key, event) = self.events.next() => {
                    let outputs = self.pipe.event(key, event);
                    self.apply(outputs).await;
                }
                Some(done) = self.work.next(), if !self.work.is_empty() => self.done(done).await,
                Some((key, change)) = self.changes.next(), if !self.changes.is_empty() => {
                    let outputs = match change {
                        Some(change) => self.pipe.changed(key, &change),
                        None => self.pipe.ended(key, Ending::Over),
                    };
                    self.apply(outputs).await;
                }
                incoming = source.next(), if !self.over => match incoming? {
                    None => {
                        self.over = true;
                        self.deadline = Some(self.deadline.unwrap_or(Instant::now() + OWED));
                    }
                    Some(Incoming::TooLong) => {
                        let output = self.pipe.too_long();
                        self.apply(vec![output]).await;
                    }
                    Some(Incoming::Read(read)) => {
                        let outputs = self.pipe.receive(read);
                        if let Some(rules) = self.pipe.settled() {
                            source.settled(rules);
                        }
                        self.apply(outputs).await;
                    }
                },
                () = until(self.deadline), if self.deadline.is_some() => break,
                () = self.out.closed() => break,
            }
        }
        // What is ready is owed; the rest is cancelled by dropping it.
        while let Some(Some(done)) = self.work.next().now_or_never() {
            self.done(done).await;
        }
        self.end_listens().await;
        let outputs = self.pipe.abandoned();
        self.apply(outputs).await;
        Ok(())
    }

    /// The process is asked to end.
    fn close(&mut self) {
        self.closing = true;
        let most = Instant::now() + if self.over { LAST } else { GRACE };
        self.deadline = Some(self.deadline.map_or(most, |deadline| deadline.min(most)));
    }

    async fn end_listens(&mut self) {
        for key in self.pipe.listens() {
            let outputs = self.pipe.ended(key, Ending::Closing);
            self.apply(outputs).await;
        }
    }

    /// Queues a message for the client. While the queue is full, nothing more is read or worked on. This gives up when
    /// the time is over in which the process must end.
    async fn say(&mut self, message: Bytes) {
        loop {
            tokio::select! {
                biased;
                // It fails when nobody reads any more, which ends the loop.
                _ = self.out.send(message.clone()) => return,
                () = self.shutdown.cancelled(), if !self.closing => self.close(),
                () = until(self.deadline), if self.deadline.is_some() => return,
            }
        }
    }

    async fn done(&mut self, done: Result<(CallKey, Done), Aborted>) {
        let Ok((key, done)) = done else { return };
        // What happened before the answer goes out before it.
        while let Some((key, event)) = self.events.try_next() {
            let outputs = self.pipe.event(key, event);
            self.apply(outputs).await;
        }
        self.handles.remove(&key);
        let outputs = match done {
            Done::Answered(answer) => self.pipe.answered(key, answer),
            Done::Listening(Ok(listening)) => {
                let ended = stream::once(std::future::ready(None));
                self.changes.insert(key, Box::pin(listening.changes.map(Some).chain(ended)));
                self.pipe.listening(key, Ok(listening.honoured))
            }
            Done::Listening(Err(rejection)) => self.pipe.listening(key, Err(rejection)),
        };
        self.apply(outputs).await;
    }

    async fn apply(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Reply(bytes) | Output::Send(_, bytes) | Output::Push(bytes) => self.say(bytes).await,
                Output::Start(key, mut request) => {
                    request.events = self.events.sink(key);
                    let served = Arc::clone(&self.served);
                    self.start(
                        key,
                        Box::pin(async move { (key, Done::Answered(served.service.call(*request).await)) }),
                    );
                }
                Output::Listen(key, filter, peer) => {
                    let served = Arc::clone(&self.served);
                    self.start(
                        key,
                        Box::pin(
                            async move { (key, Done::Listening(served.service.listen(filter, peer).await)) },
                        ),
                    );
                }
                Output::Drop(key) => {
                    self.changes.remove(&key);
                    if let Some(handle) = self.handles.remove(&key) {
                        handle.abort();
                    }
                }
                Output::Abandon(request) => self.served.service.abandon(*request),
                // All calls share the pipe: there is no stream of one to complete or to let go of.
                Output::Finish(_) | Output::Release(_, _) => {}
            }
        }
    }

    fn start(&mut self, key: CallKey, work: BoxFuture<'static, (CallKey, Done)>) {
        let (handle, registration) = AbortHandle::new_pair();
        self.handles.insert(key, handle);
        self.work.push(Abortable::new(work, registration));
    }
}

async fn until(deadline: Option<Instant>) {
    if let Some(deadline) = deadline {
        tokio::time::sleep_until(deadline).await;
    }
}
