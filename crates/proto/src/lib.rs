//! The protocol between bytes and services: messages, the four edges, the two gates, the service trait.
//!
//! Inside, everything is modern: a [`Request`] is complete in itself, an [`Answer`] is complete or asks for
//! input. An era exists only at an edge: legacy keeps a session and stamps each request with it, modern
//! reads the same things from `_meta`. [`admit`] decides what a peer may send, [`project`] what it is shown, and
//! [`sound`] puts right what an upstream sent.
//!
//! Nothing here does IO, reads a clock, draws randomness or needs a runtime: edges are machines that take
//! inputs and give [`downstream::Output`]s, and a transport drives them.

mod clipped;
pub mod downstream;
mod gates;
pub mod header;
mod json;
pub mod json_schema;
mod model;
mod rpc;
pub mod template;
pub mod upstream;
mod walk;

pub use clipped::clipped;
pub use gates::{admit, project, sound};
pub use header::HeaderParam;
pub use json::{Object, ParseError, Raw};
pub use model::boxed::{BoxFuture, BoxStream};
pub use model::capability::{Capabilities, ClientCapabilities};
pub use model::event::{Event, EventSink};
pub use model::input::{InputRequest, InputRequired, InputResponses};
pub use model::level::Level;
pub use model::listen::{Change, Filter, Listening};
pub use model::params::required_string;
pub use model::rejection::{Rejection, Rendered};
pub use model::request::{Answer, Peer, Principal, Request};
pub use model::service::{CacheHint, Description, ExtensionMethod, Service};
pub use model::wanted::Wanted;
pub use model::watchers::Watchers;
pub use rpc::glance::Glance;
pub use rpc::heard::{Heard, hear};
pub use rpc::wire::{self, CallKey};
pub use template::Template;
pub use walk::{list_all, walk};
