//! The trait that servers, upstreams and the gateway implement.

use std::sync::Arc;
use std::time::Duration;

use crate::header::HeaderParam;
use crate::json::Raw;
use crate::model::boxed::BoxFuture;
use crate::model::capability::Capabilities;
use crate::model::listen::{Filter, Listening};
use crate::model::rejection::Rejection;
use crate::model::request::{Answer, Peer, Request};

/// Something that answers requests: the handlers of a server, an upstream, or a gateway to several upstreams.
///
/// A service does not know eras. To cancel the work that a method began, drop the future that it returned.
pub trait Service: Send + Sync + 'static {
    /// Returns what the service is and what it can do at the moment.
    fn describe(&self) -> Arc<Description>;

    /// Answers a request.
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Answer, Rejection>>;

    /// Starts a subscription. The returned filter lacks what the service cannot watch.
    fn listen(&self, filter: Filter, peer: Arc<Peer>) -> BoxFuture<'_, Result<Listening, Rejection>>;

    /// Tells the service that the answers to an [`InputRequired`](crate::InputRequired) of this request will not come.
    ///
    /// The client cancelled the request, or is gone. The service may stop waiting.
    fn abandon(&self, request: Request);

    /// Returns the parameters of a tool that HTTP requests repeat in headers. An unknown tool has none.
    fn header_params(&self, tool: &str) -> Arc<[HeaderParam]>;
}

/// What a service says about itself.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Description {
    /// Its `Implementation` object: name, version and optional members. Every result repeats its text.
    pub identity: Raw,
    /// What it can do.
    pub capabilities: Capabilities,
    /// Tells a model how to use the service.
    pub instructions: Option<String>,
    /// How long a client may keep the result of `server/discover`.
    pub hint: CacheHint,
    /// The methods of extensions, which the tables of the core do not list.
    pub methods: Vec<ExtensionMethod>,
    /// The service also takes methods that neither the core nor [`Description::methods`] has, and finds out by itself
    /// whether there is one: a gateway knows which extensions its servers declare, but not which methods these add.
    pub takes_unknown_methods: bool,
}

impl Description {
    /// Describes a service by its `Implementation` object and what it can do. It has no instructions and no methods of
    /// extensions, and clients may not keep the description.
    pub fn new(identity: impl Into<Raw>, capabilities: Capabilities) -> Description {
        let (identity, hint) = (identity.into(), CacheHint::default());
        Description {
            identity,
            capabilities,
            instructions: None,
            hint,
            methods: Vec::new(),
            takes_unknown_methods: false,
        }
    }

    /// Returns the identity that a server sent; an empty object where it sent no object.
    pub fn identity(sent: Option<&Raw>) -> Raw {
        sent.filter(|raw| raw.object().is_ok()).cloned().unwrap_or(Raw::literal("{}"))
    }
}

/// A method that an extension adds.
///
/// <https://modelcontextprotocol.io/specification/2026-07-28/basic/index#extension-negotiation>
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExtensionMethod {
    /// The name that messages carry.
    pub wire: Arc<str>,
    /// The identifier of the extension.
    pub extension: Arc<str>,
    /// Only clients that declare the extension may use it.
    pub for_declared: bool,
}

/// How long a client may keep a result, and whether others may share it.
///
/// <https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching>
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct CacheHint {
    /// How long a client may keep the result.
    pub ttl: Duration,
    /// Whether the result is the same for every client, so that a shared cache may keep it.
    pub public: bool,
}

impl CacheHint {
    /// Makes a hint that every client may keep the result for a time. Of zero, it says only that the result is the same for
    /// every client.
    pub const fn public(ttl: Duration) -> CacheHint {
        CacheHint { ttl, public: true }
    }

    /// Makes a hint that the client that asked, and no shared cache, may keep the result for a time.
    pub const fn private(ttl: Duration) -> CacheHint {
        CacheHint { ttl, public: false }
    }
}
