//! The one trait that a server's handlers and an upstream implement, and what passes through it.

use std::sync::Arc;
use std::time::Duration;

use crate::header::HeaderParam;
use crate::json::Object;
use crate::model::boxed::BoxFuture;
use crate::model::capability::Capabilities;
use crate::model::listen::{Filter, Listening};
use crate::model::rejection::Rejection;
use crate::model::request::{Answer, Peer, Request};

/// Whatever answers requests: a server's handlers, an upstream, a gateway over many.
///
/// It knows no era. Dropping a future that it returned cancels the work.
pub trait Service: Send + Sync + 'static {
    /// Who this is and what it can do, as of now.
    fn describe(&self) -> Arc<Description>;

    /// InputResponses a request.
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Answer, Rejection>>;

    /// Starts to watch for changes. What cannot be watched is left out of the filter that comes back.
    fn listen(&self, filter: Filter, peer: Arc<Peer>) -> BoxFuture<'_, Result<Listening, Rejection>>;

    /// The answers to an [`InputRequired`](crate::InputRequired) of this request will not come: its client cancelled, or is gone. What waits
    /// for them may stop waiting.
    fn abandon(&self, request: Request);

    /// The parameters of a tool that HTTP mirrors in headers; empty for a tool that has none or is unknown.
    fn header_params(&self, tool: &str) -> Arc<[HeaderParam]>;
}

/// What a service says of itself.
#[derive(Clone, Debug)]
pub struct Description {
    /// Its `Implementation` object: name, version, and what else it says.
    pub identity: Object,
    /// What it can do.
    pub capabilities: Capabilities,
    /// How a model should use it.
    pub instructions: Option<String>,
    /// How long `server/discover` holds.
    pub hint: CacheHint,
    /// Methods of extensions that the core's tables do not have.
    pub methods: Vec<ExtensionMethod>,
}

/// A method that an extension adds.
///
/// <https://modelcontextprotocol.io/specification/2026-07-28/basic/index#extension-negotiation>
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExtensionMethod {
    /// The method's name on the wire.
    pub wire: &'static str,
    /// The extension's identifier.
    pub extension: &'static str,
    /// Only clients that declare the extension may use it.
    pub for_declared: bool,
}

/// How long a result may be kept, and for whom.
///
/// <https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching>
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CacheHint {
    /// How long it is fresh.
    pub ttl: Duration,
    /// Whether it is the same for every caller.
    pub public: bool,
}
