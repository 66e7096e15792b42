//! A request that is complete in itself, the peer that sent it, and its answer.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use bytestring::ByteString;
use spec::{Level, Method, Revision};

use crate::json::{Object, Raw};
use crate::model::capability::ClientCapabilities;
use crate::model::event::EventSink;
use crate::model::input::{InputRequired, InputResponses};
use crate::rpc::wire::Id;

/// What is known of the client that sent a request.
#[derive(Clone, Debug)]
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

/// On whose behalf a client sends requests. State that spans several requests belongs to one principal.
///
/// Two principals are equal where their names are: what is claimed about somebody may change while the state stays
/// theirs. A clone copies nothing.
#[derive(Clone, Debug)]
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
    /// Whether the client asked for progress notifications.
    pub wants_progress: bool,
    /// Takes the progress and the log messages of the request.
    pub events: EventSink,
}

/// The answer to a request that does not fail.
#[derive(Clone, Debug)]
pub enum Answer {
    /// The result.
    Complete(Object),
    /// The service has to ask the client first. The client sends the request again, with its answers.
    InputRequired(InputRequired),
}
