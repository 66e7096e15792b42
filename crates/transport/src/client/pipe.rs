//! A server behind a pipe: found out by a probe, then spoken to in its own way.
//!
//! <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio#backward-compatibility>

use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use proto::CallKey;
use proto::upstream::Calls;
use proto::upstream::Edge;
use proto::upstream::Session;
use proto::wire::{self, Id, Message};
use proto::{CacheHint, Capabilities, Description, Heard, Object, Raw, Rejection};
use spec::{Code, Era, Method, Revision, Revisions, meta};
use tokio::io::AsyncWriteExt as _;
use tokio::process::ChildStdin;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::output::Output;
use super::process::{self, Program};
use super::{Client, EraHint, Found, Link, Settings, Shared, Slot, Waiting};
use crate::line::Line;
use crate::{BACKLOG, TransportError};

const PROBE: u64 = 1;
const INITIALIZE: u64 = 2;
/// How long a server's output is read after it ended. Something that outlives it may keep its stdout open.
const AFTERWARDS: Duration = Duration::from_millis(200);
/// How long a process may take to end once its output did. Longer than what it says last on stderr is waited for.
const END: Duration = Duration::from_secs(1);

/// How a server is asked what it speaks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// By `server/discover`, and where that was not answered for so long by `initialize` as well.
    Either(Duration),
    /// By `server/discover` alone.
    Discover,
    /// By `initialize` alone.
    Initialize,
}

/// Why a server could not be opened.
pub(super) enum NotOpened {
    Failed(TransportError),
    /// It is modern, and took `initialize` as well, which it may hold to from then on.
    Mixed,
}

impl From<TransportError> for NotOpened {
    fn from(error: TransportError) -> NotOpened {
        NotOpened::Failed(error)
    }
}

impl NotOpened {
    fn told(self) -> TransportError {
        match self {
            NotOpened::Failed(error) => error,
            NotOpened::Mixed => TransportError::Protocol("the server speaks both ways at once".into()),
        }
    }
}

/// Starts a program and finds out what it speaks.
pub(super) async fn start(program: &Program, settings: Settings) -> Result<Client, TransportError> {
    let open = |opening| attempt(program, &settings, opening);
    let opening = match settings.era {
        EraHint::Fixed(Era::Modern) => return open(Opening::Discover).await.map_err(NotOpened::told),
        EraHint::Fixed(Era::Legacy) => return open(Opening::Initialize).await.map_err(NotOpened::told),
        EraHint::Seen(Era::Modern) => Opening::Either(settings.connect / 2),
        EraHint::Seen(Era::Legacy) => match open(Opening::Initialize).await {
            Ok(client) => return Ok(client),
            Err(_) => Opening::Either(settings.probe),
        },
        EraHint::Unknown => Opening::Either(settings.probe),
    };
    match open(opening).await {
        // Some legacy servers end at the first message that is not a handshake.
        Err(NotOpened::Failed(TransportError::Closed(_))) => open(Opening::Initialize).await,
        // It was slow to start. Another process, that never hears `initialize`, speaks its own way.
        Err(NotOpened::Mixed) => {
            settings.say("dateline: it was slow to answer server/discover; it is started again as the modern server it is");
            open(Opening::Discover).await
        }
        outcome => outcome,
    }
    .map_err(NotOpened::told)
}

async fn attempt(program: &Program, settings: &Settings, opening: Opening) -> Result<Client, NotOpened> {
    let gone = CancellationToken::new();
    // Whoever stops waiting for the server ends it.
    let abandoned = gone.clone().drop_guard();
    let (streams, keeper) = process::start(program, &gone, settings)?;
    let (out, queue) = mpsc::channel(BACKLOG);
    tokio::spawn(write(streams.stdin, queue, gone.clone()));
    let mut lines = Output::new(streams.stdout, settings.limits.message);
    let finding = async {
        tokio::select! {
            biased;
            found = find_out(&mut lines, &out, settings, opening) => found,
            () = over(keeper.end()) => Err(TransportError::Closed(String::new()).into()),
        }
    };
    let found = tokio::time::timeout(settings.connect, finding).await;
    let found = match found {
        Ok(Ok(found)) => found,
        failed => {
            gone.cancel();
            drop(out);
            keeper.ended().await;
            let error = match failed {
                Ok(Err(NotOpened::Mixed)) => return Err(NotOpened::Mixed),
                Ok(Err(NotOpened::Failed(TransportError::Closed(_)))) => {
                    TransportError::Closed(keeper.last_words())
                }
                Ok(Err(NotOpened::Failed(TransportError::Protocol(why)))) => {
                    TransportError::Protocol(format!("{why}{}", keeper.said()))
                }
                Ok(Err(NotOpened::Failed(error))) => error,
                _ => {
                    let limit = settings.connect.as_secs();
                    TransportError::Protocol(format!("no answer within {limit} s{}", keeper.said()))
                }
            };
            return Err(error.into());
        }
    };
    let end = keeper.end();
    let link = Link::Pipe { out, keeper: Some(keeper) };
    abandoned.disarm();
    let client = Client::new(found, link, settings.clone(), gone);
    let ended = format!("the server {} ended", program.name);
    tokio::spawn(read(lines, Arc::downgrade(&client.0), client.0.gone.clone(), end, ended));
    Ok(client)
}

/// Waits for an end, and then as long as the output is still read.
async fn over(end: CancellationToken) {
    end.cancelled().await;
    tokio::time::sleep(AFTERWARDS).await;
}

/// Where a server's messages come from.
pub(super) trait Feed: Send {
    /// The next one; `None` at the end. Dropping the future loses nothing.
    fn next(&mut self) -> impl Future<Output = io::Result<Option<Line>>> + Send;

    /// Why it ended, where that is known.
    fn ended(&self) -> Option<String> {
        None
    }

    /// The call that the server refused when it ended, and did not begin.
    fn not_taken(&self) -> Option<CallKey> {
        None
    }
}

/// Writes queued messages, a line each, until nobody sends any more or the server is to go.
async fn write(mut stdin: ChildStdin, mut queue: mpsc::Receiver<Bytes>, gone: CancellationToken) {
    let writing = async {
        while let Some(message) = queue.recv().await {
            let mut line = wire::one_line(message).to_vec();
            line.push(b'\n');
            if stdin.write_all(&line).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = writing => {}
        () = gone.cancelled() => {}
    }
}

/// Reads what the server sends until it ends, and then ends all that waits for it. `gone` has it let go, `end` comes
/// with its own end, and `ended` says that it did.
pub(super) async fn read(
    mut feed: impl Feed,
    shared: Weak<Shared>,
    gone: CancellationToken,
    end: CancellationToken,
    ended: String,
) {
    // What a server wrote before it ended counts.
    let over = async {
        tokio::select! {
            () = over(end) => {}
            () = over(gone.clone()) => {}
        }
    };
    tokio::pin!(over);
    loop {
        let line = tokio::select! {
            biased;
            line = feed.next() => line,
            () = &mut over => break,
        };
        let Some(strong) = shared.upgrade() else { break };
        match line {
            Ok(Some(line)) => {
                for heard in said(line, &strong.settings) {
                    let replies = strong.take_in(heard, None);
                    strong.owe(replies).await;
                }
            }
            Ok(None) | Err(_) => break,
        }
    }
    if let Some(shared) = shared.upgrade() {
        let mut words = feed.ended().unwrap_or_default();
        // A moment for the last words to arrive.
        if let Link::Pipe { keeper: Some(keeper), .. } = &shared.link {
            let _ = tokio::time::timeout(END, keeper.ended()).await;
            words = keeper.last_words();
        }
        let refused = feed.not_taken().and_then(|key| shared.lock().calls.remove(&key));
        shared.end(&ended, &words);
        if let Some(Slot { answer: Waiting::For(waiting), local, .. }) = refused {
            let more = if local { words.as_str() } else { "" };
            let _ = waiting.send(Err(Rejection::Gone(format!("{ended}{more}"))));
        }
    }
    gone.cancel();
}

/// What is in a line; what is none is said where someone looks for it.
fn said(line: Line, settings: &Settings) -> Vec<Heard> {
    match line {
        Line::Message(bytes) => {
            let heard = proto::hear(bytes.clone(), &settings.limits);
            if heard.iter().any(|heard| matches!(heard, Heard::Rubbish)) {
                rubbish(&bytes, settings);
            }
            heard
        }
        Line::TooLong(seen) => {
            let why = format!("it is over the limit of {} bytes", settings.limits.message);
            vec![super::body::over(&seen, why)]
        }
    }
}

/// What a server said to the probe or the handshake.
enum Said {
    Modern(Box<Found>),
    /// It is modern, but speaks other revisions.
    Other(Vec<String>),
    Legacy,
    Initialized(Result<Raw, Raw>),
}

/// Asks a server what it speaks.
pub(super) async fn find_out(
    feed: &mut impl Feed,
    out: &mpsc::Sender<Bytes>,
    settings: &Settings,
    opening: Opening,
) -> Result<Found, NotOpened> {
    let closed = |_| TransportError::Closed(String::new());
    let wait = match opening {
        Opening::Either(wait) => Some(wait),
        // As long as a server may take to be ready at all.
        Opening::Discover => Some(Duration::MAX),
        Opening::Initialize => None,
    };
    // Whether the probe may still be answered.
    let mut probing = false;
    if let Some(wait) = wait {
        let params = Calls::discover(Revision::LATEST_MODERN, &settings.introduction);
        out.send(wire::request(&Id::number(PROBE), Method::Discover.wire(), &params))
            .await
            .map_err(closed)?;
        match tokio::time::timeout(wait, hear(feed, settings, Some(PROBE))).await {
            Ok(Ok(Said::Modern(found))) => return Ok(*found),
            Ok(Ok(Said::Other(supported))) => only_legacy(&supported)?,
            Ok(Ok(Said::Legacy | Said::Initialized(_))) => {}
            Ok(Err(error)) => return Err(error.into()),
            Err(_) => probing = true,
        }
        if opening == Opening::Discover {
            return Err(not_modern().into());
        }
    }
    let params = Session::initialize(Revision::LATEST_LEGACY, &settings.introduction);
    out.send(wire::request(&Id::number(INITIALIZE), Method::Initialize.wire(), &params))
        .await
        .map_err(closed)?;
    let mut modern = None;
    loop {
        match hear(feed, settings, (!probing).then_some(INITIALIZE)).await? {
            Said::Modern(found) => modern = Some(found),
            Said::Other(_) | Said::Legacy => {}
            Said::Initialized(outcome) => {
                return match (Session::open(outcome), modern) {
                    (Ok(_), Some(_)) => Err(NotOpened::Mixed),
                    (Err(_), Some(found)) => Ok(*found),
                    (Ok((session, description, initialized)), None) => {
                        out.send(initialized).await.map_err(closed)?;
                        Ok(Found { edge: Edge::Legacy(session), description })
                    }
                    (Err(why), None) => Err(refused(&why).into()),
                };
            }
        }
    }
}

/// A server that was said to be modern, and is not.
pub(super) fn not_modern() -> TransportError {
    TransportError::Protocol(
        "it does not answer server/discover as a modern server does, and only such a one is looked for"
            .into(),
    )
}

/// A modern server of other revisions may still open sessions.
pub(super) fn only_legacy(supported: &[String]) -> Result<(), TransportError> {
    let legacy = supported.iter().filter_map(|name| Revision::parse(name)).any(|r| r.era() == Era::Legacy);
    if legacy {
        return Ok(());
    }
    Err(TransportError::Protocol(format!(
        "the server speaks {} only, which is not known here",
        supported.join(", ")
    )))
}

/// Reads until the server says something to the point. Banners and other rubbish are skipped. An error that names no
/// request is the answer to the one that waits `alone`.
async fn hear(feed: &mut impl Feed, settings: &Settings, alone: Option<u64>) -> Result<Said, TransportError> {
    loop {
        let line = feed.next().await.map_err(|_| TransportError::Closed(String::new()))?;
        let Some(line) = line else { return Err(TransportError::Closed(String::new())) };
        for heard in said(line, settings) {
            let (id, outcome) = match heard {
                Heard::Message(Message::Response { id: Some(id), outcome }) => (id.as_number(), Ok(outcome)),
                Heard::Message(Message::Response { id: None, outcome }) => (alone, Ok(outcome)),
                Heard::Broken { answers, why } => (answers, Err(why)),
                _ => continue,
            };
            match (id, outcome) {
                (Some(INITIALIZE), Ok(outcome)) => return Ok(Said::Initialized(outcome)),
                (Some(INITIALIZE), Err(why)) => {
                    let why = format!("the server's answer to the handshake cannot be read: {why}");
                    return Err(TransportError::Protocol(why));
                }
                (Some(PROBE), Ok(outcome)) => return Ok(probed(outcome, settings)),
                (Some(PROBE), Err(_)) => return Ok(Said::Legacy),
                _ => {}
            }
        }
    }
}

/// Says what stands on stdout and is no message, where someone looks for it.
fn rubbish(line: &[u8], settings: &Settings) {
    let text: String = String::from_utf8_lossy(line).chars().filter(|c| !c.is_control()).take(200).collect();
    settings.say(&format!("dateline: a line on stdout is no message: {text}"));
}

fn probed(outcome: Result<Raw, Raw>, settings: &Settings) -> Said {
    match discovered(&outcome, settings) {
        Some(Ok(found)) => Said::Modern(Box::new(found)),
        Some(Err(supported)) => Said::Other(supported),
        None => Said::Legacy,
    }
}

/// Reads the answer to `server/discover`: a modern server, a modern server of other revisions, or `None`:
/// anything else, which is a legacy server.
pub(super) fn discovered(
    outcome: &Result<Raw, Raw>,
    settings: &Settings,
) -> Option<Result<Found, Vec<String>>> {
    match outcome {
        Ok(result) => {
            let result = result.object().ok()?;
            let versions: Vec<String> = result.get("supportedVersions")?.read().ok()?;
            Some(match common(&versions) {
                Some(revision) => Ok(modern(revision, &result, settings)),
                None => Err(versions),
            })
        }
        Err(error) => {
            let error = error.object().ok()?;
            let code = Code::parse(error.get("code")?.as_str().parse().ok()?)?;
            let modern_only = code.exists().and(Revisions::LEGACY) == Revisions::NONE;
            let supported =
                || -> Option<Vec<String>> { error.get("data")?.object().ok()?.get("supported")?.read().ok() };
            // One that does not say what it speaks instead is asked the other way.
            supported().filter(|_| modern_only).map(Err)
        }
    }
}

fn common(versions: &[String]) -> Option<Revision> {
    let found = Revision::ALL.into_iter().filter(|r| r.era() == Era::Modern);
    found.into_iter().find(|r| versions.iter().any(|v| v == r.as_str()))
}

fn modern(revision: Revision, result: &Object, settings: &Settings) -> Found {
    let object = |name: &str| result.get(name).and_then(|raw| raw.object().ok()).unwrap_or_default();
    let description = Description {
        identity: object(meta::META)
            .get(meta::SERVER_INFO)
            .and_then(|raw| raw.object().ok())
            .unwrap_or_default(),
        capabilities: Capabilities::read(&object("capabilities")),
        instructions: result.string("instructions").map(|text| text.to_string()),
        hint: CacheHint::default(),
        methods: Vec::new(),
    };
    Found { edge: Edge::Modern(Calls::new(revision, settings.introduction.clone())), description }
}

/// The reason of a rejection, as a transport's error.
pub(super) fn refused(why: &Rejection) -> TransportError {
    TransportError::Protocol(format!("the server refuses to be opened: {why}"))
}
