//! Whether a server still knows us: one that was started again answers in many ways that it does not.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, StatusCode};
use proto::upstream::Calls;
use proto::upstream::Session;
use proto::wire::{self, Id};
use proto::{Raw, Rejection, header as mirrored};
use spec::{Disconnect, Method, Revision, header as name};

use super::Settings;
use super::http::{Asked, Link};
use super::pipe::discovered;
use super::post::Ask;

/// How long a session may take to end. Nothing depends on it, and whoever ends a server waits.
const FAREWELL: Duration = Duration::from_secs(2);

/// The ids of what is asked here, which are those of no call.
const PING: u64 = 3;
const INITIALIZE: u64 = 4;

/// Whether an answer may mean that the server no longer knows us. A status says so where there is no answer of the
/// call itself, an error in its words.
pub(super) fn doubtful(status: StatusCode, answered: bool, error: Option<&Raw>) -> bool {
    // The others say what is wrong: who asks, the method, the size, the pace.
    let says = matches!(status.as_u16(), 400 | 404 | 409 | 410 | 412 | 421 | 422);
    let words = error.map(Rejection::passed).map(|error| error.to_string().to_ascii_lowercase());
    let words = words.is_some_and(|words| words.contains("session") || words.contains("initializ"));
    words || (says && !answered)
}

impl Link {
    /// Whether the server no longer knows us, after an answer that may mean so: it refuses what it has to answer, and
    /// opens a session as if there was none. What is not certain counts as known, so that no bad call opens sessions
    /// for ever. One asks at a time.
    pub(super) async fn is_forgotten(&self, gone_status: bool, settings: &Settings) -> bool {
        let _one = self.asking.lock().await;
        let asking = async {
            if self.revision.rules().disconnect == Disconnect::Cancels {
                return self.discovers(settings).await == Some(false);
            }
            if self.pings(self.session.clone(), settings).await != Some(false) {
                return false;
            }
            let params = Session::initialize(Revision::LATEST_LEGACY, &settings.introduction);
            let initialize = wire::request(&Id::number(INITIALIZE), Method::Initialize.wire(), &params);
            let Ok(Asked { headers, outcome: Some(outcome), .. }) =
                self.ask(Ask::post(initialize, self.accepting(), true), settings).await
            else {
                return false;
            };
            let Ok((_, _, initialized)) = Session::open(outcome) else { return false };
            let session = headers.get(name::SESSION_ID).cloned();
            let of_it = self.of(session.clone());
            let _ = self.http.send(Ask::post(initialized, of_it, true)).await;
            let works = self.pings(session.clone(), settings).await;
            self.leave(session).await;
            // A server that answers no ping at all says by 404 that a session is over.
            works == Some(true) || gone_status
        };
        tokio::time::timeout(settings.connect, asking).await.unwrap_or(false)
    }

    /// Whether a session answers; `None` where nothing can be said.
    async fn pings(&self, session: Option<HeaderValue>, settings: &Settings) -> Option<bool> {
        let ask = Ask::post(Session::ping(&Id::number(PING)), self.of(session), true);
        let Asked { status, own, outcome, .. } = self.ask(ask, settings).await.ok()?;
        match outcome {
            Some(Ok(_)) => Some(true),
            Some(Err(error)) => Some(!doubtful(status, own, Some(&error))),
            None if status.is_client_error() => Some(!doubtful(status, false, None)),
            None => None,
        }
    }

    /// Whether the server still says that it is modern.
    async fn discovers(&self, settings: &Settings) -> Option<bool> {
        let params = Calls::discover(self.revision, &settings.introduction);
        let mut headers = mirrored::of_request(self.revision.as_str(), Method::Discover, &params, &[]);
        headers.extend(self.accepting());
        let probe = wire::request(&Id::number(PING), Method::Discover.wire(), &params);
        let Asked { status, outcome, .. } = self.ask(Ask::post(probe, headers, true), settings).await.ok()?;
        match outcome {
            Some(outcome) => Some(matches!(discovered(&outcome, settings), Some(Ok(_)))),
            None => status.is_client_error().then_some(false),
        }
    }

    /// Ends our session.
    pub(super) async fn close(&self) {
        self.leave(self.session.clone()).await;
    }

    pub(super) async fn leave(&self, session: Option<HeaderValue>) {
        if session.is_some() {
            let headers: HeaderMap = self.of(session);
            let ask =
                Ask { verb: http::Method::DELETE, headers, body: bytes::Bytes::new(), repeatable: true };
            let _ = tokio::time::timeout(FAREWELL, self.http.send(ask)).await;
        }
    }
}
