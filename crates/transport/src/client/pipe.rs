//! Servers that send all messages on one stream: over standard streams and over HTTP+SSE. The client finds out which
//! era the server has, and then reads its messages until the stream ends.
//!
//! <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio#backward-compatibility>

use std::io;
use std::sync::Weak;
use std::time::Duration;

use bytes::Bytes;
use proto::upstream::{Calls, Edge, Session};
use proto::wire::{self, Id, Message};
use proto::{CallKey, FromServer, Outline, Raw, Rejection};
use spec::{Method, Revision};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::connection::Connection;
use super::negotiation::{
    DISCOVER_ID, Discovered, INITIALIZE_ID, Negotiated, not_modern, refused, speaks_legacy,
};
use super::settings::Settings;
use super::stdio::{Input, Process};
use crate::TransportError;
use crate::line::Line;

/// How long the messages of a server are read after it ended. Something that it started may keep its standard output
/// open for longer.
const AFTER_END: Duration = Duration::from_millis(200);

/// The way to a server that reads all messages from one stream.
#[derive(Clone)]
pub(super) struct Pipe {
    pub(super) messages: Messages,
    /// The server's process, where the client started it.
    pub(super) process: Option<Process>,
}

/// Takes the messages to a server. Clones lead to the same server.
#[derive(Clone)]
pub(super) enum Messages {
    /// They are written to a program's standard input.
    Written(Input),
    /// They are posted one after the other.
    Posted(mpsc::Sender<Bytes>),
}

impl Messages {
    /// Takes a message, and waits while the queue is full. `at_once` says that no other message is to be expected soon.
    ///
    /// # Errors
    /// When the connection has ended. Nothing of the message was sent then.
    async fn send(&self, message: Bytes, at_once: bool) -> Result<(), TransportError> {
        let sent = match self {
            Messages::Written(input) => input.send(message, at_once).await.is_ok(),
            Messages::Posted(queue) => queue.send(message).await.is_ok(),
        };
        if sent { Ok(()) } else { Err(TransportError::Closed(String::new())) }
    }
}

impl Pipe {
    /// Sends a message, or queues it; waits while the queue is full. `at_once` says that no other message is to be
    /// expected soon.
    ///
    /// # Errors
    /// When the connection has ended. Nothing of the message was sent then.
    pub(super) async fn send(
        &self,
        connection: &Connection,
        message: Bytes,
        at_once: bool,
    ) -> Result<(), Rejection> {
        self.messages.send(message, at_once).await.map_err(|_| connection.not_sent())
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.process.as_ref().and_then(Process::pid)
    }

    /// Waits until the process has ended, where there is one.
    pub(super) async fn ended(&self) {
        if let Some(process) = &self.process {
            process.ended().await;
        }
    }
}

/// Where a server's messages come from.
pub(super) trait MessageSource: Send {
    /// The next message; `None` at the end. Dropping the future loses nothing.
    fn next(&mut self) -> impl Future<Output = io::Result<Option<Line>>> + Send;

    /// Why the messages ended, as the end of a sentence; empty where that is not known.
    fn why_ended(&mut self) -> impl Future<Output = String> + Send;

    /// The call with whose message the server ended the connection, where it did not begin with that call.
    fn refused_call(&self) -> Option<CallKey>;
}

/// How the client finds out which era a server has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// By `server/discover`, and by `initialize` as well where that is not answered within this time.
    Either(Duration),
    /// By `server/discover` alone.
    Discover,
    /// By `initialize` alone.
    Initialize,
}

/// Why a connection could not be opened.
pub(super) enum OpenError {
    Failed(TransportError),
    /// The server is modern and has accepted `initialize` as well, so that it may have a session from now on.
    BothEras,
}

impl From<TransportError> for OpenError {
    fn from(error: TransportError) -> OpenError {
        OpenError::Failed(error)
    }
}

/// A response of the server to the messages that open a connection.
enum Reply {
    Discovered(Discovered),
    Initialized(Result<Raw, Raw>),
}

/// Finds out which era a server has, and opens the connection.
pub(super) async fn negotiate(
    source: &mut impl MessageSource,
    messages: &Messages,
    settings: &Settings,
    opening: Opening,
) -> Result<Negotiated, OpenError> {
    let wait = match opening {
        Opening::Either(wait) => Some(wait),
        // The time for all of the connecting is the limit.
        Opening::Discover => Some(Duration::MAX),
        Opening::Initialize => None,
    };
    let mut discover_is_open = false;
    if let Some(wait) = wait {
        let params = Calls::discover(Revision::LATEST_MODERN, &settings.introduction);
        let discover = wire::request(&Id::number(DISCOVER_ID), Method::Discover.wire(), &params);
        messages.send(discover, true).await?;
        match tokio::time::timeout(wait, reply(source, settings, Some(DISCOVER_ID))).await {
            Ok(Ok(Reply::Discovered(Discovered::Modern(negotiated)))) => return Ok(*negotiated),
            Ok(Ok(Reply::Discovered(Discovered::OtherRevisions(supported)))) => speaks_legacy(&supported)?,
            Ok(Ok(Reply::Discovered(Discovered::NotModern) | Reply::Initialized(_))) => {}
            Ok(Err(error)) => return Err(error.into()),
            Err(_) => discover_is_open = true,
        }
        if opening == Opening::Discover {
            return Err(not_modern().into());
        }
    }
    let params = Session::initialize(Revision::LATEST_LEGACY, &settings.introduction);
    let initialize = wire::request(&Id::number(INITIALIZE_ID), Method::Initialize.wire(), &params);
    messages.send(initialize, true).await?;
    let mut modern = None;
    loop {
        match reply(source, settings, (!discover_is_open).then_some(INITIALIZE_ID)).await? {
            Reply::Discovered(Discovered::Modern(negotiated)) => modern = Some(negotiated),
            Reply::Discovered(_) => {}
            Reply::Initialized(outcome) => {
                return match (Session::open(outcome), modern) {
                    (Ok(_), Some(_)) => Err(OpenError::BothEras),
                    (Err(_), Some(negotiated)) => Ok(*negotiated),
                    (Ok((session, description, initialized)), None) => {
                        messages.send(initialized, true).await?;
                        Ok(Negotiated { edge: Edge::Legacy(session), description })
                    }
                    (Err(why), None) => Err(refused(&why).into()),
                };
            }
        }
    }
}

/// Reads until the server responds; skips what is no response. An error without an id is the response to the request
/// that is the `only` one without a response.
async fn reply(
    source: &mut impl MessageSource,
    settings: &Settings,
    only: Option<CallKey>,
) -> Result<Reply, TransportError> {
    loop {
        let line = source.next().await.map_err(|_| TransportError::Closed(String::new()))?;
        let Some(line) = line else { return Err(TransportError::Closed(String::new())) };
        for heard in messages_in(line, settings) {
            let (id, outcome) = match heard {
                FromServer::Message(Message::Response { id: Some(id), outcome }) => {
                    (id.as_number(), Ok(outcome))
                }
                FromServer::Message(Message::Response { id: None, outcome }) => (only, Ok(outcome)),
                FromServer::Broken { answers, why } => (answers, Err(why)),
                _ => continue,
            };
            match (id, outcome) {
                (Some(INITIALIZE_ID), Ok(outcome)) => return Ok(Reply::Initialized(outcome)),
                (Some(INITIALIZE_ID), Err(why)) => {
                    let why = format!("the server's answer to the handshake cannot be read: {why}");
                    return Err(TransportError::Protocol(why));
                }
                (Some(DISCOVER_ID), Ok(outcome)) => {
                    return Ok(Reply::Discovered(Discovered::read(&outcome, settings)));
                }
                (Some(DISCOVER_ID), Err(_)) => return Ok(Reply::Discovered(Discovered::NotModern)),
                _ => {}
            }
        }
    }
}

/// Reads the messages of a server until they end, and then ends the connection. `stop` lets the server go, `end` comes
/// with the server's own end, and `ended` is the sentence that says that it ended.
pub(super) async fn read(
    mut source: impl MessageSource,
    connection: Weak<Connection>,
    stop: CancellationToken,
    end: CancellationToken,
    ended: String,
) {
    // What the server wrote before its end is read as well.
    let over = async {
        tokio::select! {
            () = after(end) => {}
            () = after(stop.clone()) => {}
        }
    };
    tokio::pin!(over);
    loop {
        let line = tokio::select! {
            biased;
            line = source.next() => line,
            () = &mut over => break,
        };
        let Some(connection) = connection.upgrade() else { break };
        match line {
            Ok(Some(line)) => {
                for heard in messages_in(line, &connection.settings) {
                    let replies = connection.receive(heard, None);
                    connection.reply(replies).await;
                }
            }
            Ok(None) | Err(_) => break,
        }
    }
    if let Some(connection) = connection.upgrade() {
        let why = source.why_ended().await;
        connection.end_before(source.refused_call(), &ended, &why);
    }
    stop.cancel();
}

/// Waits for an end, and then for as long as messages are still read.
pub(super) async fn after(end: CancellationToken) {
    end.cancelled().await;
    tokio::time::sleep(AFTER_END).await;
}

/// The messages in a line. A line that holds none is reported among the lines of the server's standard error.
fn messages_in(line: Line, settings: &Settings) -> Vec<FromServer> {
    match line {
        Line::Message(bytes) => {
            let heard = proto::read_from_server(bytes.clone(), &settings.limits);
            if heard.iter().any(|heard| matches!(heard, FromServer::Rubbish)) {
                let text = String::from_utf8_lossy(&bytes);
                let text: String = text.chars().filter(|c| !c.is_control()).take(SHOWN).collect();
                settings.warn(&format!("dateline: a line on stdout is no message: {text}"));
            }
            heard
        }
        Line::TooLong(outline) => vec![too_long(&outline, &settings.limits)],
    }
}

/// How many characters of a line that is no message are reported: enough to recognize it.
const SHOWN: usize = 200;

/// What is known of a message over the limit.
pub(super) fn too_long(outline: &Outline, limits: &wire::Limits) -> FromServer {
    let why = format!("it is over the limit of {} bytes", limits.message);
    FromServer::Broken { answers: outline.answers(), why }
}
