//! A server behind a pipe: found out by a probe, then spoken to in its own way.
//!
//! <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio#backward-compatibility>

use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use proto::legacy::client::Session;
use proto::modern::client::Calls;
use proto::upstream::{CallKey, Edge};
use proto::wire::{self, Id, Message};
use proto::{CacheHint, Capabilities, Description, Heard, Object, Raw, Rejection};
use spec::{Code, Era, Method, Revision, Revisions, meta};
use tokio::io::AsyncWriteExt as _;
use tokio::process::ChildStdin;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::output::Output;
use super::process::{self, Program};
use super::{Client, Found, Link, Settings, Shared, Slot, Stderr, Waiting};
use crate::line::Line;
use crate::{BACKLOG, TransportError};

const PROBE: u64 = 1;
const INITIALIZE: u64 = 2;
/// How long a server's output is read after it ended.
const AFTERWARDS: Duration = Duration::from_millis(200);

/// Starts a program and finds out what it speaks.
pub(super) async fn start(program: &Program, settings: Settings) -> Result<Client, TransportError> {
    if settings.era == Some(Era::Legacy)
        && let Ok(client) = attempt(program, &settings, false).await
    {
        return Ok(client);
    }
    match attempt(program, &settings, true).await {
        // Some legacy servers end at the first message that is not a handshake.
        Err(TransportError::Closed(_)) => attempt(program, &settings, false).await,
        outcome => outcome,
    }
}

async fn attempt(program: &Program, settings: &Settings, probe: bool) -> Result<Client, TransportError> {
    let gone = CancellationToken::new();
    // Whoever stops waiting for the server ends it.
    let abandoned = gone.clone().drop_guard();
    let (streams, keeper) = process::start(program, &gone, settings)?;
    let (out, queue) = mpsc::channel(BACKLOG);
    tokio::spawn(write(streams.stdin, queue, gone.clone()));
    let mut lines = Output::new(streams.stdout, settings.limits.message);
    let found = tokio::time::timeout(settings.connect, find_out(&mut lines, &out, settings, probe)).await;
    let found = match found {
        Ok(Ok(found)) => found,
        failed => {
            gone.cancel();
            drop(out);
            keeper.ended().await;
            return Err(match failed {
                Ok(Err(TransportError::Closed(_))) => TransportError::Closed(keeper.last_words()),
                Ok(Err(TransportError::Protocol(why))) => {
                    TransportError::Protocol(format!("{why}{}", keeper.said()))
                }
                Ok(Err(error)) => error,
                _ => TransportError::Protocol(format!(
                    "no answer within {} s{}",
                    settings.connect.as_secs(),
                    keeper.said()
                )),
            });
        }
    };
    let link = Link::Pipe { out, keeper: Some(keeper) };
    abandoned.disarm();
    let client = Client::new(found, link, settings.clone(), gone);
    let ended = format!("the server {} ended", program.name);
    tokio::spawn(read(lines, Arc::downgrade(&client.0), client.0.gone.clone(), ended));
    Ok(client)
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

/// Reads what the server sends until it ends, and then ends all that waits for it. `ended` says that it did.
pub(super) async fn read(mut feed: impl Feed, shared: Weak<Shared>, gone: CancellationToken, ended: String) {
    // What a server wrote before it ended counts; something that outlives it may keep its stdout open.
    let over = async {
        gone.cancelled().await;
        tokio::time::sleep(AFTERWARDS).await;
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
            let _ = tokio::time::timeout(Duration::from_millis(200), keeper.ended()).await;
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
    probe: bool,
) -> Result<Found, TransportError> {
    let closed = |_| TransportError::Closed(String::new());
    let mut modern = None;
    let mut probing = probe;
    if probe {
        let revision = Revision::LATEST_MODERN;
        let params = Calls::discover(revision, &settings.introduction);
        out.send(wire::request(&Id::number(PROBE), Method::Discover.wire(), &params))
            .await
            .map_err(closed)?;
        match tokio::time::timeout(settings.probe, hear(feed, settings, Some(PROBE))).await {
            Ok(Ok(Said::Modern(found))) => return Ok(*found),
            Ok(Ok(Said::Other(supported))) => {
                only_legacy(&supported)?;
                probing = false;
            }
            Ok(Ok(Said::Legacy | Said::Initialized(_))) => probing = false,
            Err(_) => {}
            Ok(Err(error)) => return Err(error),
        }
    }
    let params = Session::initialize(Revision::LATEST_LEGACY, &settings.introduction);
    out.send(wire::request(&Id::number(INITIALIZE), Method::Initialize.wire(), &params))
        .await
        .map_err(closed)?;
    loop {
        match hear(feed, settings, (!probing).then_some(INITIALIZE)).await? {
            // A slow server: what it says to the probe counts only where it refuses the handshake.
            Said::Modern(found) => modern = Some(found),
            Said::Other(_) | Said::Legacy => {}
            Said::Initialized(outcome) => {
                return match (Session::open(outcome), modern) {
                    (Ok((session, description, initialized)), _) => {
                        out.send(initialized).await.map_err(closed)?;
                        Ok(Found { edge: Edge::Legacy(session), description })
                    }
                    (Err(_), Some(found)) => Ok(*found),
                    (Err(why), None) => {
                        Err(TransportError::Protocol(format!("the server refuses to be opened: {why}")))
                    }
                };
            }
        }
    }
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
    if let Some(Stderr(told)) = &settings.stderr {
        told(&format!("dateline: a line on stdout is no message: {text}"));
    }
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
