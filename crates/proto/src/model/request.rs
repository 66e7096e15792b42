//! A request that is complete in itself, the peer that sent it, and its answer.

use std::sync::Arc;

use bytestring::ByteString;
use serde::{Deserialize, Serialize};
use spec::{Method, Revision};

use crate::json::{Object, Raw};
use crate::model::capability::ClientCapabilities;
use crate::model::event::EventSink;
use crate::model::input::{InputRequired, InputResponses};
use crate::model::level::Level;
use crate::rpc::wire::Id;

/// What is known of the client that sent a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "SavedPeer", into = "SavedPeer")]
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

/// What is written of a [`Peer`].
#[derive(Serialize, Deserialize)]
struct SavedPeer {
    #[serde(with = "crate::saved::revision")]
    revision: Revision,
    declared: Object,
    client: Option<Raw>,
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
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Principal(ByteString);

impl Principal {
    /// Returns the principal of a pipe: the user of this machine.
    pub const fn local() -> Principal {
        Principal(ByteString::from_static("local"))
    }

    /// Returns the principal of an HTTP endpoint without authorization: all its clients share it.
    pub const fn anonymous() -> Principal {
        Principal(ByteString::from_static("anonymous"))
    }

    /// Names somebody who was authenticated, by a name that nobody else has here.
    pub fn named(name: &str) -> Principal {
        Principal(format!("named:{name}").into())
    }

    /// Returns a text that differs for every principal.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A request that is complete in itself.
#[derive(Clone, Debug)]
pub struct Request {
    /// The id that the client gave it. It is for people and logs only: several clients may use the same id.
    pub id: Id,
    /// The method.
    pub method: Method,
    /// Its params without progress token, without the `_meta` keys of modern requests, and without answers.
    pub params: Object,
    /// The answers to questions that an earlier round asked.
    pub answers: Option<InputResponses>,
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
