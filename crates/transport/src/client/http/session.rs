//! Whether a server still knows the session, and how a session ends. A server that was started again knows no session
//! of before, and servers say so in many ways.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use proto::upstream::Session;
use proto::wire::Id;
use proto::{CallKey, Raw, Rejection};
use spec::header as name;

use super::endpoint::{ACCEPT, Endpoint, HttpAnswer};
use super::request::HttpRequest;
use crate::TransportError;
use crate::client::negotiation::Discovered;
use crate::client::settings::Settings;

/// How long a server may take to end a session. Whoever closes the connection waits for it, and nothing depends on it.
const DELETE: Duration = Duration::from_secs(2);

/// The ids of the requests that check a session. They differ from those of calls.
const PING_ID: CallKey = 3;
const INITIALIZE_ID: CallKey = 4;

/// Whether a response may mean that the server does not know the session. Where the response holds an answer to the
/// request, its error text counts; otherwise the status does.
pub(in crate::client) fn may_be_unknown(status: StatusCode, is_answered: bool, error: Option<&Raw>) -> bool {
    // Other statuses have a meaning of their own, such as who may ask, the method, the size or the rate.
    let may_mean_it = matches!(status.as_u16(), 400 | 404 | 409 | 410 | 412 | 421 | 422);
    let text = error.map(Rejection::passed).map(|error| error.to_string().to_ascii_lowercase());
    let names_session = text.is_some_and(|text| text.contains("session") || text.contains("initializ"));
    names_session || (may_mean_it && !is_answered)
}

/// The error of a server that no longer knows the session.
pub(super) fn unknown_session() -> TransportError {
    TransportError::Closed(": it no longer knows the session".into())
}

impl Endpoint {
    /// Checks whether the server no longer knows the client, after a response that may mean so. It is only sure where
    /// the server refuses what it has to answer and then opens a new session. Where it is not sure, the session counts
    /// as known, so that a bad call does not make the client connect again and again. One check runs at a time.
    pub(super) async fn is_unknown(&self, status: StatusCode, settings: &Settings) -> bool {
        let _one = self.checking.lock().await;
        let checking = async {
            if self.cancels_by_closing() {
                return self.is_still_modern(settings).await == Some(false);
            }
            if self.answers_ping(self.session_id.as_ref(), settings).await != Some(false) {
                return false;
            }
            let Ok(HttpAnswer { headers, outcome: Some(outcome), .. }) =
                self.initialize(INITIALIZE_ID, settings).await
            else {
                return false;
            };
            let Ok((_, _, initialized)) = Session::open(outcome) else { return false };
            let session_id = headers.get(name::SESSION_ID);
            let headers = self.session_headers(session_id);
            let _ = self.http.send(HttpRequest::post(initialized, headers, true)).await;
            let works = self.answers_ping(session_id, settings).await;
            self.delete_session(session_id).await;
            // Some servers answer no ping at all; of those, 404 means that the session has ended.
            works == Some(true) || status == StatusCode::NOT_FOUND
        };
        tokio::time::timeout(settings.connect, checking).await.unwrap_or(false)
    }

    /// Whether the server answers in a session; `None` where that is not certain.
    async fn answers_ping(&self, session_id: Option<&HeaderValue>, settings: &Settings) -> Option<bool> {
        let headers = self.session_headers(session_id);
        let request = HttpRequest::post(Session::ping(&Id::number(PING_ID)), headers, true);
        let HttpAnswer { status, has_id, outcome, .. } = self.exchange(request, settings).await.ok()?;
        match outcome {
            Some(Ok(_)) => Some(true),
            Some(Err(error)) => Some(!may_be_unknown(status, has_id, Some(&error))),
            None if status.is_client_error() => Some(!may_be_unknown(status, false, None)),
            None => None,
        }
    }

    /// Whether the server still answers as a modern one; `None` where that is not certain.
    async fn is_still_modern(&self, settings: &Settings) -> Option<bool> {
        let HttpAnswer { status, outcome, .. } = self.discover(PING_ID, settings).await.ok()?;
        match outcome {
            Some(outcome) => Some(matches!(Discovered::read(&outcome, settings), Discovered::Modern(_))),
            None => status.is_client_error().then_some(false),
        }
    }

    /// Posts a message that has no answer.
    pub(super) async fn notify(&self, message: Bytes, settings: &Settings) -> Result<(), TransportError> {
        let posting = self.post(message, http::HeaderMap::new(), true);
        let response =
            tokio::time::timeout(ACCEPT, posting).await.map_err(|_| TransportError::Timeout(ACCEPT))??;
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        if may_be_unknown(status, false, None) && self.is_unknown(status, settings).await {
            return Err(unknown_session());
        }
        Err(TransportError::Protocol(format!("{} answered {status}", self.shown())))
    }

    /// Ends the session, where there is one.
    pub(in crate::client) async fn close(&self) {
        self.delete_session(self.session_id.as_ref()).await;
    }

    /// Ends a session.
    pub(super) async fn delete_session(&self, session_id: Option<&HeaderValue>) {
        if session_id.is_some() {
            let request = HttpRequest::delete(self.session_headers(session_id));
            let _ = tokio::time::timeout(DELETE, self.http.send(request)).await;
        }
    }
}
