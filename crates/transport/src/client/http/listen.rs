//! Listens over HTTP. A modern listen has a response of its own; a legacy session has one event stream for all changes.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use proto::upstream::Outgoing;
use proto::wire::{Id, Message};
use proto::{CallKey, FromServer, Rejection, header as mirrored};
use spec::Method;
use tokio_util::sync::CancellationToken;

use super::body::{ReadState, read_messages};
use super::endpoint::{Endpoint, HttpAnswer};
use super::request::HttpRequest;
use super::session::may_be_unknown;
use crate::client::connection::Connection;

/// How many subscriptions to resources are requested at once, so that a long list does not use up the server's
/// connections.
const SUBSCRIBED_AT_ONCE: usize = 8;

/// Why the connection ends when a server has forgotten the session.
const UNKNOWN_SESSION: &str = "the server no longer knows the session";

/// Sends the requests that begin a listen, and reads the changes in tasks of their own.
pub(in crate::client) async fn listen(
    connection: &Arc<Connection>,
    endpoint: &Arc<Endpoint>,
    key: CallKey,
    requests: Vec<(CallKey, Outgoing)>,
) -> Result<(), Rejection> {
    if endpoint.cancels_by_closing() {
        for (_, outgoing) in requests {
            post_listen(connection, endpoint, key, outgoing).await?;
        }
        return Ok(());
    }
    if endpoint.claim_stream() {
        let reading = read_session_stream(Arc::downgrade(connection), Arc::clone(endpoint));
        tokio::spawn(until(connection.gone.clone(), reading));
    }
    let subscribing =
        requests.into_iter().map(|(key, outgoing)| subscribe(connection, endpoint, key, outgoing.message));
    stream::iter(subscribing).for_each_concurrent(SUBSCRIBED_AT_ONCE, |subscribing| subscribing).await;
    Ok(())
}

async fn until(gone: CancellationToken, reading: impl Future<Output = ()>) {
    tokio::select! {
        () = reading => {}
        () = gone.cancelled() => {}
    }
}

/// Posts a modern listen, and reads its response in a task.
async fn post_listen(
    connection: &Arc<Connection>,
    endpoint: &Endpoint,
    key: CallKey,
    outgoing: Outgoing,
) -> Result<(), Rejection> {
    let revision = endpoint.revision.as_str();
    let headers = mirrored::of_request(revision, &Method::SubscriptionsListen, &outgoing.params, &[]);
    let posting = endpoint.post(outgoing.message, headers, true);
    let response = posting.await.map_err(|error| Rejection::Internal(error.public_text().into()))?;
    let limits = connection.settings.limits;
    let weak = Arc::downgrade(connection);
    let reader = tokio::spawn(async move {
        let mut state = ReadState::default();
        let reading = read_messages(response, limits, &mut state, |heard| {
            let received = weak.upgrade().map(|connection| connection.receive(heard, Some(key)));
            std::future::ready(received.is_some())
        });
        // However the response ends, the listen ends with it.
        let _ = reading.await;
        if let Some(connection) = weak.upgrade() {
            connection.end_listen(key);
        }
    });
    connection.set_listen_reader(key, reader.abort_handle());
    Ok(())
}

/// Subscribes to a resource at a legacy server, and takes in the answer.
async fn subscribe(connection: &Connection, endpoint: &Endpoint, key: CallKey, message: Bytes) {
    let headers = endpoint.session_headers(endpoint.session_id.as_ref());
    let request = HttpRequest::post(message, headers, true);
    let heard = match endpoint.exchange(request, &connection.settings).await {
        Ok(HttpAnswer { outcome: Some(outcome), .. }) => {
            FromServer::Message(Message::Response { id: Some(Id::number(key)), outcome })
        }
        // The answer comes on the session's stream.
        Ok(HttpAnswer { status, .. }) if status.is_success() => return,
        Ok(HttpAnswer { status, description, .. }) => {
            if may_be_unknown(status, false, None) && endpoint.is_unknown(status, &connection.settings).await
            {
                return connection.end(UNKNOWN_SESSION, "");
            }
            FromServer::Broken { answers: Some(key), why: description }
        }
        Err(error) => FromServer::Broken { answers: Some(key), why: error.to_string() },
    };
    connection.receive(heard, Some(key));
}

/// Reads the event stream of a session until the session ends. A stream that breaks off is continued; the pauses grow
/// while no messages come.
async fn read_session_stream(connection: Weak<Connection>, endpoint: Arc<Endpoint>) {
    let mut state = ReadState::default();
    let mut failures = 0u32;
    while let Some(strong) = connection.upgrade() {
        let limits = strong.settings.limits;
        let response = endpoint.get(state.last_event_id.as_deref()).await;
        if let Ok(response) = &response
            && endpoint.session_id.is_some()
            && may_be_unknown(response.status(), false, None)
            && endpoint.is_unknown(response.status(), &strong.settings).await
        {
            // Whoever connects again reads all lists, and misses no change.
            return strong.end(UNKNOWN_SESSION, "");
        }
        drop(strong);
        state.has_messages = false;
        match response {
            Ok(response) if response.status().is_success() => {
                let reading = read_messages(response, limits, &mut state, |heard| {
                    let connection = connection.upgrade();
                    async move {
                        let Some(connection) = connection else { return false };
                        let replies = connection.receive(heard, None);
                        connection.reply(replies).await;
                        true
                    }
                });
                // However the response ends, the stream is opened again.
                let _ = reading.await;
            }
            // The server no longer has the events after the last one. What comes next is read without them.
            Ok(response) if response.status().is_client_error() && state.last_event_id.take().is_some() => {}
            // The server has no such stream.
            Ok(response) if response.status().is_client_error() => return,
            _ => {}
        }
        failures = if state.has_messages { 0 } else { failures + 1 };
        tokio::time::sleep(state.pause(failures.saturating_sub(1))).await;
    }
}
