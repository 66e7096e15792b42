//! A request that is complete in itself, the peer that sent it, and its answer.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use bytestring::ByteString;
use http::request::Parts;
use serde::{Deserialize, Serialize};
use spec::{Level, Method, Revision};

use crate::json::{Object, Raw};
use crate::model::capability::ClientCapabilities;
use crate::model::event::EventSink;
use crate::model::input::{InputRequired, InputResponses};
use crate::rpc::wire::Id;

/// What is known of the client that sent a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "SavedPeer", into = "SavedPeer")]
#[non_exhaustive]
pub struct Peer {
    /// The revision that it speaks.
    pub revision: Revision,
    /// What it declares that it can do.
    pub capabilities: Arc<ClientCapabilities>,
    /// What it says about itself. Nobody verifies it.
    pub client: Option<Raw>,
    /// The least severe level of the log messages that it wants. Without a level it wants none.
    pub log_level: Option<Level>,
    /// On whose behalf it sends requests.
    pub principal: Principal,
}

impl Peer {
    /// Makes a peer of a revision that can be asked nothing, says nothing about itself, and wants no log messages.
    pub fn new(revision: Revision, principal: Principal) -> Peer {
        Peer { revision, capabilities: Arc::default(), client: None, log_level: None, principal }
    }
}

/// What is written of a [`Peer`].
#[derive(Serialize, Deserialize)]
struct SavedPeer {
    #[serde(with = "crate::saved::revision")]
    revision: Revision,
    declared: Object,
    client: Option<Raw>,
    #[serde(with = "crate::saved::level")]
    log_level: Option<Level>,
    principal: Principal,
}

impl From<Peer> for SavedPeer {
    fn from(peer: Peer) -> SavedPeer {
        let Peer { revision, capabilities, client, log_level, principal } = peer;
        SavedPeer { revision, declared: capabilities.sent().clone(), client, log_level, principal }
    }
}

impl From<SavedPeer> for Peer {
    fn from(saved: SavedPeer) -> Peer {
        let SavedPeer { revision, declared, client, log_level, principal } = saved;
        let capabilities = Arc::new(ClientCapabilities::read(declared, revision));
        Peer { revision, capabilities, client, log_level, principal }
    }
}

/// On whose behalf a client sends requests. State that spans several requests belongs to one principal.
///
/// Two principals are equal where their names are: what is claimed about somebody may change while the state stays
/// theirs. A clone copies nothing.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Principal {
    id: ByteString,
    claims: Option<Arc<Object>>,
}

/// The beginning of the id of somebody who was authenticated. No other principal has such an id.
const NAMED: &str = "named:";

impl Principal {
    /// Returns the principal of a pipe: the user of this machine.
    pub const fn local() -> Principal {
        Principal { id: ByteString::from_static("local"), claims: None }
    }

    /// Returns the principal of an HTTP endpoint without authorization: all its clients share it.
    pub const fn anonymous() -> Principal {
        Principal { id: ByteString::from_static("anonymous"), claims: None }
    }

    /// Names somebody who was authenticated, by a name that nobody else has here.
    pub fn named(name: &str) -> Principal {
        Principal { id: format!("{NAMED}{name}").into(), claims: None }
    }

    /// Sets what was said about the principal when it was authenticated, such as the claims of a token; by default
    /// nothing.
    #[must_use]
    pub fn with_claims(mut self, claims: Object) -> Principal {
        self.claims = Some(Arc::new(claims));
        self
    }

    /// Returns the name that [`Principal::named`] was given; `None` for a principal that was not authenticated.
    pub fn name(&self) -> Option<&str> {
        self.id.strip_prefix(NAMED)
    }

    /// Returns what was said about the principal under this name.
    pub fn claim(&self, name: &str) -> Option<&Raw> {
        self.claims.as_ref()?.get(name)
    }

    /// Returns all that was said about the principal; `None` where nothing was.
    pub fn claims(&self) -> Option<&Object> {
        self.claims.as_deref()
    }

    /// Returns a text that differs for every principal.
    pub fn as_str(&self) -> &str {
        &self.id
    }
}

impl PartialEq for Principal {
    fn eq(&self, other: &Principal) -> bool {
        self.id == other.id
    }
}

impl Eq for Principal {}

impl Hash for Principal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

/// A request that is complete in itself. A clone shares its parts with the request, so that a request can be sent again
/// without a copy.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request {
    /// The id that the client gave it. It is for people and logs only: several clients may use the same id.
    pub id: Id,
    /// The method.
    pub method: Method,
    /// Its params without progress token, without the `_meta` keys of modern requests, and without answers.
    pub params: Arc<Object>,
    /// The answers to questions that an earlier round asked.
    pub answers: Option<Arc<InputResponses>>,
    /// The client that sent it.
    pub peer: Arc<Peer>,
    /// The head of the HTTP request that carried it; none on a pipe. Its extensions hold what layers of the HTTP server left
    /// there.
    pub head: Option<Arc<Parts>>,
    /// Whether the client asked for progress notifications.
    pub wants_progress: bool,
    /// Takes the progress and the log messages of the request.
    pub events: EventSink,
}

impl Request {
    /// Makes a request without answers and without an HTTP head, under the id 0. It wants neither progress nor log messages.
    pub fn new(method: Method, params: Object, peer: Arc<Peer>) -> Request {
        Request {
            id: Id::number(0),
            method,
            params: Arc::new(params),
            answers: None,
            peer,
            head: None,
            wants_progress: false,
            events: EventSink::discard(),
        }
    }
}

/// The answer to a request that does not fail.
#[derive(Clone, Debug)]
pub enum Answer {
    /// The result.
    Complete(Object),
    /// The service has to ask the client first. The client sends the request again, with its answers.
    InputRequired(InputRequired),
}
