//! A call over HTTP: its request is posted, and its response is read to the answer. A response that breaks off is
//! continued where the revision allows it.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use proto::upstream::Outgoing;
use proto::wire::{Id, Message};
use proto::{CallKey, FromServer, Rejection, Request, header as mirrored};
use spec::{Disconnect, Method};
use tokio::sync::oneshot;

use super::body::{ReadState, describe, read_messages};
use super::endpoint::Endpoint;
use super::pool::Response;
use super::session::{may_be_unknown, unknown_session};
use crate::TransportError;
use crate::client::call::Outcome;
use crate::client::connection::Connection;

/// How many attempts in a row to continue a response may bring nothing before the call fails.
const RESUMPTIONS: u32 = 5;

/// A request as it is posted.
struct Post {
    key: CallKey,
    message: Bytes,
    headers: HeaderMap,
    is_repeatable: bool,
}

/// Sends a message that has no answer, or whose answer nobody waits for.
pub(in crate::client) async fn send(
    connection: &Connection,
    endpoint: &Endpoint,
    message: Bytes,
) -> Result<(), Rejection> {
    endpoint.notify(message, &connection.settings).await.map_err(|error| match error {
        // The server takes no messages any more, and the call that follows this one was not sent.
        TransportError::Closed(_) | TransportError::Unreachable { .. } => {
            connection.end(error.public_text(), &format!(": {error}"));
            Rejection::Gone(error.public_text().into())
        }
        error => {
            tracing::warn!(%error, "a message could not be sent to a server");
            Rejection::Internal(error.public_text().into())
        }
    })
}

/// Sends a call and waits for its outcome.
pub(in crate::client) async fn call(
    connection: &Arc<Connection>,
    endpoint: &Arc<Endpoint>,
    key: CallKey,
    request: &Request,
    outgoing: Outgoing,
    mut outcome: oneshot::Receiver<Outcome>,
) -> Result<Outcome, Rejection> {
    let name = outgoing.params.string("name").filter(|_| request.method == Method::ToolsCall);
    let tool = name.and_then(|name| connection.tool(&name));
    let is_repeatable = match request.method {
        Method::ToolsCall => tool.as_ref().is_some_and(|tool| tool.is_repeatable),
        // Nothing is known of what an extension's method does.
        Method::Extension(_) => false,
        _ => true,
    };
    let is_modern = endpoint.cancels_by_closing();
    let headers = if is_modern {
        let header_params = tool.as_ref().map(|tool| &*tool.header_params).unwrap_or_default();
        let revision = endpoint.revision.as_str();
        mirrored::of_request(revision, &request.method, &outgoing.params, header_params)
    } else {
        HeaderMap::new()
    };
    let post = Post { key, message: outgoing.message, headers, is_repeatable };
    let outcome = if is_modern {
        tokio::select! {
            biased;
            outcome = &mut outcome => outcome,
            () = read(connection, endpoint, post) => outcome.await,
        }
    } else {
        // The response is read on while the call is parked and nobody waits for it.
        let (of, at) = (Arc::clone(connection), Arc::clone(endpoint));
        let reader = tokio::spawn(async move { read(&of, &at, post).await });
        connection.set_call_reader(key, reader.abort_handle());
        outcome.await
    };
    outcome.map_err(|_| connection.ended())
}

/// Posts a request and takes in whatever comes back.
async fn read(connection: &Connection, endpoint: &Endpoint, post: Post) {
    let key = post.key;
    let failure = match endpoint.post(post.message, post.headers, post.is_repeatable).await {
        // The server did not take the call, and will take no other one.
        Err(error @ (TransportError::Closed(_) | TransportError::Unreachable { .. })) => {
            return not_begun(connection, key, &error);
        }
        Err(error) => {
            tracing::warn!(%error, "a call got no answer of a server");
            error.public_text().to_owned()
        }
        Ok(response) => match follow(connection, endpoint, key, response).await {
            Ok(Followed::Answered) => return,
            Ok(Followed::UnknownSession) => return not_begun(connection, key, &unknown_session()),
            Err(why) => why,
        },
    };
    connection.fail(key, Rejection::Internal(failure));
}

/// Ends the connection after a call with which the server did not begin.
fn not_begun(connection: &Connection, key: CallKey, error: &TransportError) {
    connection.end_before(Some(key), error.public_text(), &format!(": {error}"));
}

/// How reading the response of a call ended.
enum Followed {
    /// The call has its answer, or nobody waits for it.
    Answered,
    /// The server does not know the session, and did nothing.
    UnknownSession,
}

/// Reads the response of a call, and continues it where it breaks off before the answer.
///
/// # Errors
/// In words, where no answer comes.
async fn follow(
    connection: &Connection,
    endpoint: &Endpoint,
    key: CallKey,
    response: Response,
) -> Result<Followed, String> {
    let settings = &connection.settings;
    let (status, content_type) = (response.status(), response.headers().get(header::CONTENT_TYPE).cloned());
    let mut state = ReadState::default();
    let mut response = Ok(response);
    let mut failures = 0u32;
    loop {
        let before = state.last_event_id.clone();
        let Part { unknown, foreign_id, failure } = match response {
            Ok(response) => read_part(connection, key, status, response, &mut state).await,
            Err(why) => Part { failure: Some(why), ..Part::default() },
        };
        if let Some(error) = unknown {
            if endpoint.is_unknown(status, settings).await {
                return Ok(Followed::UnknownSession);
            }
            connection.receive(error, Some(key));
        }
        if !connection.is_unanswered(key) {
            return Ok(Followed::Answered);
        }
        if may_be_unknown(status, false, None) && endpoint.is_unknown(status, settings).await {
            return Ok(Followed::UnknownSession);
        }
        failures = if state.last_event_id == before { failures + 1 } else { 0 };
        let continues = endpoint.revision.rules().disconnect == Disconnect::Continues;
        if !continues || state.last_event_id.is_none() || failures > RESUMPTIONS {
            return Err(match (foreign_id, failure) {
                (Some(id), _) => {
                    format!("the server answered under the id {}, which is not this call's", id.as_str())
                }
                (None, Some(failure)) => failure,
                (None, None) => no_answer(status, content_type.as_ref(), &state),
            });
        }
        tokio::time::sleep(state.pause(failures.saturating_sub(1))).await;
        response = match endpoint.get(state.last_event_id.as_deref()).await {
            Ok(response) if response.status().is_success() => Ok(response),
            Ok(response) => {
                return Err(format!("the server does not go on with its answer: {}", response.status()));
            }
            Err(error) => Err(error.to_string()),
        };
    }
}

/// What one of the HTTP responses of a call held beside messages that were taken in.
#[derive(Default)]
struct Part {
    /// An error that may mean that the server does not know the session. Only where it does, the call takes it in.
    unknown: Option<FromServer>,
    /// The id of a response to another request.
    foreign_id: Option<Id>,
    /// Why the response broke off.
    failure: Option<String>,
}

/// Reads one HTTP response and takes in its messages.
async fn read_part(
    connection: &Connection,
    key: CallKey,
    status: StatusCode,
    response: Response,
    state: &mut ReadState,
) -> Part {
    let mut part = Part::default();
    let reading = read_messages(response, connection.settings.limits, state, |heard| {
        let mut is_unknown = false;
        if let FromServer::Message(Message::Response { id, outcome }) = &heard {
            let is_own = id.as_ref().and_then(Id::as_number) == Some(key);
            if !is_own {
                part.foreign_id = id.clone().or(part.foreign_id.take());
            }
            let error = outcome.as_ref().err();
            is_unknown = error.is_some() && may_be_unknown(status, is_own, error);
        }
        let replies = if is_unknown {
            part.unknown = Some(heard);
            Vec::new()
        } else {
            connection.receive(heard, Some(key))
        };
        async move {
            connection.reply(replies).await;
            !is_unknown
        }
    });
    let failure = reading.await.err();
    Part { failure, ..part }
}

/// Why a response that ended holds no answer.
fn no_answer(status: StatusCode, content_type: Option<&HeaderValue>, state: &ReadState) -> String {
    match &state.unreadable {
        Some(why) => format!("the server's answer cannot be read: {why}"),
        None if status.is_success() && state.has_messages => {
            "the server closed the stream without an answer".to_owned()
        }
        None => {
            format!("the server gave no answer of the protocol: {}", describe(status, content_type, state))
        }
    }
}
