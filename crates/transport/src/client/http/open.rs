//! Finds out which era a server of Streamable HTTP has, and opens the connection.
//!
//! <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#backward-compatibility>

use std::sync::Arc;

use proto::upstream::Session;
use spec::{Era, header as name};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::endpoint::{ACCEPT, Endpoint, LegacySession, headers_of, version_of};
use super::request::{HttpClient, HttpRequest};
use crate::TransportError;
use crate::client::connection::Connection;
use crate::client::negotiation::{
    DISCOVER_ID, Discovered, INITIALIZE_ID, Negotiated, not_modern, refused, speaks_legacy,
};
use crate::client::outbox::{self, outbox};
use crate::client::settings::{EraHint, Settings};

/// Why no connection could be opened.
pub(in crate::client) struct ConnectError {
    pub(in crate::client) error: TransportError,
    /// Whether the server may take POST at its URL. One that does not may speak HTTP+SSE.
    pub(in crate::client) takes_post: bool,
}

impl From<TransportError> for ConnectError {
    fn from(error: TransportError) -> ConnectError {
        ConnectError { error, takes_post: true }
    }
}

/// A connection that is ready, the messages that it queues, and where its requests go.
type Opened = (Arc<Connection>, mpsc::UnboundedReceiver<outbox::Queued>, Arc<Endpoint>);

/// Opens a connection to a server.
pub(in crate::client) async fn connect(
    http: Arc<HttpClient>,
    settings: Settings,
) -> Result<Opened, ConnectError> {
    let mut endpoint = Endpoint::new(http);
    let negotiated = tokio::time::timeout(settings.connect, negotiate(&mut endpoint, &settings))
        .await
        .map_err(|_| TransportError::Timeout(settings.connect))??;
    let (outbox, queued) = outbox();
    let connection = Connection::new(negotiated, true, settings, outbox, CancellationToken::new());
    Ok((Arc::new(connection), queued, Arc::new(endpoint)))
}

/// Asks in the era that the settings name, or in both.
async fn negotiate(endpoint: &mut Endpoint, settings: &Settings) -> Result<Negotiated, ConnectError> {
    match settings.era {
        EraHint::Fixed(Era::Legacy) => {
            let opened = open(endpoint, settings).await?;
            return Ok(endpoint.use_session(opened));
        }
        EraHint::Fixed(Era::Modern) => {
            return match discover(endpoint, settings).await? {
                Discovered::Modern(negotiated) => Ok(*negotiated),
                Discovered::OtherRevisions(_) | Discovered::NotModern => Err(not_modern().into()),
            };
        }
        EraHint::Seen(Era::Legacy) => {
            let opening = tokio::time::timeout(settings.connect / 2, open(endpoint, settings));
            if let Ok(Ok(opened)) = opening.await {
                return Ok(endpoint.use_session(opened));
            }
        }
        EraHint::Seen(Era::Modern) | EraHint::Unknown => {}
    }
    let was_silent = match probe(endpoint, settings).await? {
        Probed::Answered(Discovered::Modern(negotiated)) => return Ok(*negotiated),
        Probed::Opened(opened) => return Ok(endpoint.use_session(*opened)),
        Probed::Answered(Discovered::OtherRevisions(supported)) => {
            speaks_legacy(&supported)?;
            false
        }
        Probed::Answered(Discovered::NotModern) => false,
        Probed::Silent => true,
    };
    match open(endpoint, settings).await {
        Ok(opened) => Ok(endpoint.use_session(opened)),
        // The server was slow to start, so it is asked again.
        Err(_) if was_silent => match discover(endpoint, settings).await? {
            Discovered::Modern(negotiated) => Ok(*negotiated),
            Discovered::OtherRevisions(_) | Discovered::NotModern => {
                let opened = open(endpoint, settings).await?;
                Ok(endpoint.use_session(opened))
            }
        },
        Err(error) => Err(error),
    }
}

/// What came of asking a server in the modern era first.
enum Probed {
    Answered(Discovered),
    /// The server did not answer in time, and opened a session.
    Opened(Box<LegacySession>),
    /// The server answered nothing.
    Silent,
}

/// Sends `server/discover`, and `initialize` as well where the server is silent for too long. The answer to the first
/// counts for as long again: a server that works on one request at a time comes to the second only after it.
async fn probe(endpoint: &Endpoint, settings: &Settings) -> Result<Probed, ConnectError> {
    let discovering = discover(endpoint, settings);
    tokio::pin!(discovering);
    if let Ok(discovered) = tokio::time::timeout(settings.probe, &mut discovering).await {
        return Ok(Probed::Answered(discovered?));
    }
    let opening = open(endpoint, settings);
    tokio::pin!(opening);
    tokio::select! {
        opened = &mut opening => match opened {
            Ok(opened) => match tokio::time::timeout(settings.probe, &mut discovering).await {
                // The server was slow to start, answers both, and is modern.
                Ok(Ok(modern @ Discovered::Modern(_))) => {
                    endpoint.delete_session(opened.id.as_ref()).await;
                    Ok(Probed::Answered(modern))
                }
                _ => Ok(Probed::Opened(Box::new(opened))),
            },
            Err(_) => Ok(Probed::Answered(discovering.await?)),
        },
        discovered = &mut discovering => Ok(Probed::Answered(discovered?)),
        () = tokio::time::sleep(settings.probe) => Ok(Probed::Silent),
    }
}

/// Asks a server whether it is modern.
async fn discover(endpoint: &Endpoint, settings: &Settings) -> Result<Discovered, TransportError> {
    let answer = endpoint.discover(DISCOVER_ID, settings).await?;
    let read = |outcome: &_| Discovered::read(outcome, settings);
    Ok(answer.outcome.as_ref().map_or(Discovered::NotModern, read))
}

/// Opens a session.
async fn open(endpoint: &Endpoint, settings: &Settings) -> Result<LegacySession, ConnectError> {
    let answer = endpoint.initialize(INITIALIZE_ID, settings).await?;
    let failed = |error| ConnectError { error, takes_post: !answer.status.is_client_error() };
    let Some(outcome) = answer.outcome else {
        let why = format!("{} does not speak the protocol: {}", endpoint.shown(), answer.description);
        return Err(failed(TransportError::Protocol(why)));
    };
    let (session, description, initialized) = Session::open(outcome).map_err(|why| failed(refused(&why)))?;
    let id = answer.headers.get(name::SESSION_ID).cloned();
    let headers = headers_of(id.as_ref(), version_of(&session).as_ref());
    let sending = endpoint.http.send(HttpRequest::post(initialized, headers, true));
    let response =
        tokio::time::timeout(ACCEPT, sending).await.map_err(|_| TransportError::Timeout(ACCEPT))??;
    if !response.status().is_success() {
        let (shown, status) = (endpoint.shown(), response.status());
        let why = format!("{shown} answers {status} to the end of its handshake");
        return Err(TransportError::Protocol(why).into());
    }
    Ok(LegacySession { session, description, id })
}
