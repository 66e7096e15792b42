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
}

impl Description {
    /// Returns the identity that a server sent; an empty object where it sent no object.
    pub fn identity(sent: Option<&Raw>) -> Raw {
        sent.filter(|raw| raw.object().is_ok()).cloned().unwrap_or(Raw::literal("{}"))
    }
}

/// A method that an extension adds.
///
/// <https://modelcontextprotocol.io/specification/2026-07-28/basic/index#extension-negotiation>
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExtensionMethod {
    /// The name that messages carry.
    pub wire: &'static str,
    /// The identifier of the extension.
    pub extension: &'static str,
    /// Only clients that declare the extension may use it.
    pub for_declared: bool,
}

/// How long a client may keep a result, and whether others may share it.
///
/// <https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching>
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CacheHint {
    /// How long a client may keep the result.
    pub ttl: Duration,
    /// Whether the result is the same for every client, so that a shared cache may keep it.
    pub public: bool,
}
