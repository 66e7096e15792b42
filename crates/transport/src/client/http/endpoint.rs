//! The endpoint of a server: where its requests go, and the headers that they carry.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use proto::upstream::{Calls, Edge, Session};
use proto::wire::{self, Id, Message};
use proto::{CallKey, Description, FromServer, Raw, header as mirrored};
use spec::{Disconnect, Method, Revision, VersionHeader, header as name};

use super::body::{ReadState, describe, read_messages};
use super::pool::Response;
use super::request::{HttpClient, HttpRequest};
use crate::TransportError;
use crate::client::negotiation::Negotiated;
use crate::client::settings::Settings;
use crate::error::shown;

/// How long a server may take to accept a message that has no answer.
pub(in crate::client) const ACCEPT: Duration = Duration::from_secs(30);

/// Where requests go, and the session that they belong to.
pub(in crate::client) struct Endpoint {
    pub(super) http: Arc<HttpClient>,
    /// The id of the session, where the server gave one.
    pub(super) session_id: Option<HeaderValue>,
    /// The value of the version header, once a session of a revision that has the header is open.
    version: Option<HeaderValue>,
    pub(super) revision: Revision,
    /// Whether the session's own event stream is being read.
    has_stream: AtomicBool,
    /// Held while the client finds out whether the server still knows the session.
    pub(super) checking: tokio::sync::Mutex<()>,
}

/// A session that was opened.
pub(super) struct LegacySession {
    pub(super) session: Session,
    pub(super) description: Description,
    pub(super) id: Option<HeaderValue>,
}

/// A response whose body was read.
pub(super) struct HttpAnswer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    /// The response of the protocol; `None` where the body holds none.
    pub(super) outcome: Option<Result<Raw, Raw>>,
    /// Whether that response has an id.
    pub(super) has_id: bool,
    /// The response in words.
    pub(super) description: String,
}

/// The value of the version header in a session; `None` where its revision has no such header.
pub(super) fn version_of(session: &Session) -> Option<HeaderValue> {
    let absent = session.revision().rules().version_header == VersionHeader::Absent;
    (!absent).then(|| HeaderValue::from_static(session.revision().as_str()))
}

/// The headers that all requests have, with those of a session.
pub(super) fn headers_of(session_id: Option<&HeaderValue>, version: Option<&HeaderValue>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    let both = [(name::SESSION_ID, session_id), (name::PROTOCOL_VERSION, version)];
    for (name, value) in both.into_iter().filter_map(|(name, value)| Some((name, value?.clone()))) {
        headers.insert(name, value);
    }
    headers
}

impl Endpoint {
    /// An endpoint without a session.
    pub(super) fn new(http: Arc<HttpClient>) -> Endpoint {
        Endpoint {
            http,
            session_id: None,
            version: None,
            revision: Revision::LATEST_MODERN,
            has_stream: AtomicBool::new(false),
            checking: tokio::sync::Mutex::default(),
        }
    }

    /// Has all further requests belong to a session.
    pub(super) fn use_session(&mut self, opened: LegacySession) -> Negotiated {
        self.session_id = opened.id;
        self.revision = opened.session.revision();
        self.version = version_of(&opened.session);
        Negotiated { edge: Edge::Legacy(opened.session), description: opened.description }
    }

    /// Whether a server cancels a request when the client closes its response.
    pub(super) fn cancels_by_closing(&self) -> bool {
        self.revision.rules().disconnect == Disconnect::Cancels
    }

    /// Claims the session's own event stream; `false` where it is being read already.
    pub(super) fn claim_stream(&self) -> bool {
        !self.has_stream.swap(true, Ordering::Relaxed)
    }

    /// The URL as it may stand in a log.
    pub(super) fn shown(&self) -> String {
        shown(self.http.url().as_str())
    }

    /// The headers of a request outside any session.
    pub(super) fn sessionless_headers(&self) -> HeaderMap {
        headers_of(None, None)
    }

    /// The headers of a request in a session.
    pub(super) fn session_headers(&self, session_id: Option<&HeaderValue>) -> HeaderMap {
        headers_of(session_id, self.version.as_ref())
    }

    /// Opens the session's event stream, or continues a stream after an event.
    pub(super) async fn get(&self, last_event_id: Option<&str>) -> Result<Response, TransportError> {
        let mut headers = self.session_headers(self.session_id.as_ref());
        if let Some(id) = last_event_id.and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.insert(name::LAST_EVENT_ID, id);
        }
        self.http.send(HttpRequest::event_stream(headers)).await
    }

    /// Posts a message in the session.
    pub(super) async fn post(
        &self,
        message: Bytes,
        headers: HeaderMap,
        is_repeatable: bool,
    ) -> Result<Response, TransportError> {
        let mut all = self.session_headers(self.session_id.as_ref());
        all.extend(headers);
        self.authorized(self.http.send(HttpRequest::post(message, all, is_repeatable)).await?)
    }

    fn authorized(&self, response: Response) -> Result<Response, TransportError> {
        if response.status() == StatusCode::UNAUTHORIZED {
            return Err(TransportError::Protocol(format!("{} wants to know owner asks (401)", self.shown())));
        }
        Ok(response)
    }

    /// Sends a request and reads its response up to the response of the protocol.
    pub(super) async fn exchange(
        &self,
        request: HttpRequest,
        settings: &Settings,
    ) -> Result<HttpAnswer, TransportError> {
        let response = self.authorized(self.http.send(request).await?)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let (mut outcome, mut has_id) = (None, false);
        let mut state = ReadState::default();
        let reading = read_messages(response, settings.limits, &mut state, |heard| {
            if let FromServer::Message(Message::Response { id, outcome: found }) = heard {
                has_id = id.is_some();
                outcome = Some(found);
            }
            std::future::ready(outcome.is_none())
        });
        let failure = reading.await.err();
        let mut description = describe(status, headers.get(header::CONTENT_TYPE), &state);
        if let Some(why) = state.unreadable.or(failure) {
            description.push_str(&format!(" ({why})"));
        }
        Ok(HttpAnswer { status, headers, outcome, has_id, description })
    }

    /// Sends `server/discover`.
    pub(super) async fn discover(
        &self,
        id: CallKey,
        settings: &Settings,
    ) -> Result<HttpAnswer, TransportError> {
        let params = Calls::discover(self.revision, &settings.introduction);
        let mut headers = mirrored::of_request(self.revision.as_str(), &Method::Discover, &params, &[]);
        headers.extend(self.sessionless_headers());
        let message = wire::request(&Id::number(id), Method::Discover.wire(), &params);
        self.exchange(HttpRequest::post(message, headers, true), settings).await
    }

    /// Sends `initialize`.
    pub(super) async fn initialize(
        &self,
        id: CallKey,
        settings: &Settings,
    ) -> Result<HttpAnswer, TransportError> {
        let params = Session::initialize(Revision::LATEST_LEGACY, &settings.introduction);
        let message = wire::request(&Id::number(id), Method::Initialize.wire(), &params);
        self.exchange(HttpRequest::post(message, self.sessionless_headers(), true), settings).await
    }
}
