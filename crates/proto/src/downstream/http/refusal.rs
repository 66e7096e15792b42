//! HTTP responses to requests that are refused.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use spec::{Revision, Rules};

use crate::downstream::output;
use crate::model::rejection::Rejection;
use crate::rpc::wire::{self, ErrorId, Id, Unreadable};

/// After how many seconds a client may ask again that was refused because a limit is reached: most calls end sooner.
const RETRY_AFTER: &str = "2";

/// The response to an HTTP request that is refused: a status, headers, and a JSON-RPC error in the body.
#[derive(Debug)]
pub struct Refusal {
    status: StatusCode,
    body: Bytes,
    /// The value of the `Allow` header.
    allow: Option<&'static str>,
    /// The client may send the same request again in a moment.
    retry: bool,
    /// The value of the `WWW-Authenticate` header.
    challenge: Option<HeaderValue>,
}

impl Refusal {
    /// Refuses an HTTP request for a reason that concerns no message in it.
    pub fn new(status: StatusCode, why: &str) -> Refusal {
        Refusal::without_id(status, &Rejection::Invalid(why.to_owned()))
    }

    /// Refuses an HTTP request that its client may send again in a moment.
    pub fn for_now(status: StatusCode, why: &str) -> Refusal {
        Refusal { retry: true, ..Refusal::without_id(status, &Rejection::Internal(why.to_owned())) }
    }

    /// Refuses an HTTP request because a limit is reached: the share of the client's address (`own`), or what all
    /// clients together may use.
    pub fn limit(own: bool, why: &str) -> Refusal {
        Refusal::for_now(Refusal::status_of_limit(own), why)
    }

    /// Refuses a JSON-RPC request because a limit is reached, like [`Refusal::limit`].
    pub fn limit_for(id: &Id, own: bool, why: &str) -> Refusal {
        let why = Rejection::Internal(why.to_owned());
        Refusal { status: Refusal::status_of_limit(own), retry: true, ..Refusal::of(id, &why) }
    }

    fn status_of_limit(own: bool) -> StatusCode {
        if own { StatusCode::TOO_MANY_REQUESTS } else { StatusCode::SERVICE_UNAVAILABLE }
    }

    /// Refuses an HTTP method, and names the one that is allowed instead.
    pub fn method(allow: &'static str, why: &str) -> Refusal {
        Refusal { allow: Some(allow), ..Refusal::new(StatusCode::METHOD_NOT_ALLOWED, why) }
    }

    /// Refuses a JSON-RPC request with the status of its rejection.
    pub fn of(id: &Id, rejection: &Rejection) -> Refusal {
        let rules = Revision::LATEST_MODERN.rules();
        let status = StatusCode::from_u16(rejection.render(rules).status).unwrap_or(StatusCode::BAD_REQUEST);
        Refusal { status, ..Refusal::with_body(output::refuse(id, rejection, rules)) }
    }

    /// Refuses a body that holds no message that can be taken.
    pub fn unreadable(error: &Unreadable, rules: &Rules) -> Refusal {
        Refusal::with_body(output::unreadable(error, rules).unwrap_or_default())
    }

    /// Refuses a message by this body, in the form of its session's revision.
    pub(super) fn with_body(body: Bytes) -> Refusal {
        Refusal { status: StatusCode::BAD_REQUEST, body, allow: None, retry: false, challenge: None }
    }

    /// Sets the status.
    #[must_use]
    pub fn status(self, status: StatusCode) -> Refusal {
        Refusal { status, ..self }
    }

    /// Sets the value of the `WWW-Authenticate` header.
    #[must_use]
    pub fn challenge(self, value: HeaderValue) -> Refusal {
        Refusal { challenge: Some(value), ..self }
    }

    fn without_id(status: StatusCode, rejection: &Rejection) -> Refusal {
        let error = rejection.render(Revision::LATEST_MODERN.rules()).error;
        Refusal { status, ..Refusal::with_body(wire::error(ErrorId::Absent, &error)) }
    }

    /// The JSON-RPC error.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// The whole response.
    pub fn response(self) -> Response<Bytes> {
        let mut response = Response::new(self.body);
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(allow) = self.allow {
            headers.insert(header::ALLOW, HeaderValue::from_static(allow));
        }
        if let Some(challenge) = self.challenge {
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        if self.retry {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER));
        }
        if self.status == StatusCode::PAYLOAD_TOO_LARGE {
            // The rest of the body is not read: the next request could not be found behind it.
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}
