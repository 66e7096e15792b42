//! Who sends a request.

use std::fmt::Debug;

use http::request::Parts;
use http::{HeaderValue, StatusCode};
use proto::downstream::http::Refusal;
use proto::{BoxFuture, Principal};

/// Says on whose behalf an HTTP request comes.
///
/// The endpoint asks for every request, after its checks of `Host` and `Origin` and before the body is read. Whatever
/// spans requests belongs to one principal: another one's session is answered like one that does not exist.
///
/// <https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization>
pub trait Authenticate: Debug + Send + Sync + 'static {
    /// Reads the head of a request, and gives the principal or the challenge that the client is answered with. What it
    /// puts into the extensions of the head, such as the claims of a token, a handler can take.
    fn authenticate<'a>(&'a self, head: &'a mut Parts) -> BoxFuture<'a, Result<Principal, Challenge>>;
}

/// Takes every request as one of [`Principal::anonymous`]: the endpoint is open.
#[derive(Clone, Copy, Debug, Default)]
pub struct Anonymous;

impl Authenticate for Anonymous {
    fn authenticate<'a>(&'a self, _: &'a mut Parts) -> BoxFuture<'a, Result<Principal, Challenge>> {
        Box::pin(std::future::ready(Ok(Principal::anonymous())))
    }
}

/// The answer to a request that does not say, or may not say, on whose behalf it comes.
#[derive(Debug)]
pub struct Challenge(Refusal);

impl Challenge {
    /// A response with this status, the value of its `WWW-Authenticate` header, and the reason for people.
    pub fn new(status: StatusCode, www_authenticate: HeaderValue, why: &str) -> Challenge {
        Challenge(Refusal::new(status, why).challenge(www_authenticate))
    }
}

impl From<Challenge> for Refusal {
    fn from(challenge: Challenge) -> Refusal {
        challenge.0
    }
}
