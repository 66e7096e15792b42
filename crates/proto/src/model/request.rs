//! A request that is complete in itself, who asks, and how it ends.

use std::sync::Arc;

use bytestring::ByteString;
use spec::{Method, Revision};

use crate::json::{Object, Raw};
use crate::model::capability::ClientCapabilities;
use crate::model::event::EventSink;
use crate::model::input::{InputRequired, InputResponses};
use crate::model::level::Level;
use crate::rpc::wire::Id;

/// Who asks, as far as this very request says.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The revision it speaks.
    pub revision: Revision,
    /// What it can be asked.
    pub capabilities: Arc<ClientCapabilities>,
    /// Its own words on who it is; not verified.
    pub client: Option<Raw>,
    /// The least severe log message that it wants; none at all without one.
    pub log_level: Option<Level>,
    /// On whose behalf.
    pub principal: Principal,
}

/// On whose behalf a request comes. What spans requests belongs to one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Principal(ByteString);

impl Principal {
    /// The user of this machine, over a pipe.
    pub const fn local() -> Principal {
        Principal(ByteString::from_static("local"))
    }

    /// Whoever reaches an open HTTP endpoint: one, shared by all.
    pub const fn anonymous() -> Principal {
        Principal(ByteString::from_static("anonymous"))
    }

    /// Somebody who was authenticated, by a name that nobody else has here.
    pub fn named(name: &str) -> Principal {
        Principal(format!("named:{name}").into())
    }

    /// As text that is unique among principals.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A request, complete in itself.
#[derive(Clone, Debug)]
pub struct Request {
    /// The id that the peer gave it: for people and logs, unique to nobody.
    pub id: Id,
    /// The method.
    pub method: Method,
    /// Its params, without what belongs to one hop: no progress token, no per-request keys, no answers.
    pub params: Object,
    /// What was answered to questions of an earlier round.
    pub answers: Option<InputResponses>,
    /// Who asks.
    pub peer: Arc<Peer>,
    /// Whether progress was asked for.
    pub wants_progress: bool,
    /// Where progress and log messages go while the request is worked on.
    pub events: EventSink,
}

/// How a request ends that does not fail.
#[derive(Clone, Debug)]
pub enum Answer {
    /// The result.
    Complete(Object),
    /// Something has to be asked first; the request is sent again with the answers.
    InputRequired(InputRequired),
}
