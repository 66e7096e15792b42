//! The protocol between bytes and services: messages, the edges, the gates and the service trait.
//!
//! Every [`Request`] is complete in itself, as in the modern era. An [`Answer`] is complete, or it asks for input. Only
//! the edges know eras: a legacy edge keeps a session and adds what the session knows to each request; a modern edge
//! reads the same facts from `_meta`. The gate [`admit`] decides which messages of a peer are accepted, [`project`]
//! decides what a peer is shown, and [`repair`] corrects what a server sent.
//!
//! This crate does no IO, reads no clock, draws no random numbers and needs no runtime. The edges are state machines:
//! they take inputs and return [`downstream::Output`]s, and a transport carries these out.

mod clipped;
pub mod downstream;
mod gates;
pub mod header;
mod json;
pub mod json_schema;
mod model;
mod rpc;
mod saved;
pub mod template;
pub mod upstream;
mod walk;

pub use clipped::clipped;
pub use gates::{admit, project, repair};
pub use header::HeaderParam;
pub use json::{MemberName, Object, ParseError, Raw};
pub use model::boxed::{BoxFuture, BoxStream};
pub use model::capability::{Capabilities, ClientCapabilities, without_tasks};
pub use model::event::{Event, EventQueue, EventSink};
pub use model::input::{InputRequest, InputRequired, InputResponses};
pub use model::listen::{Change, Filter, Listening};
pub use model::params::required_string;
pub use model::prepared_filter::PreparedFilter;
pub use model::rejection::{Rejection, Rendered};
pub use model::request::{Answer, Peer, Principal, Request};
pub use model::service::{CacheHint, Description, ExtensionMethod, Service};
pub use model::watchers::Watchers;
pub use rpc::from_server::{FromServer, read_from_server};
pub use rpc::outline::Outline;
pub use rpc::wire::{self, CallKey};
pub use spec::Level;
pub use template::Template;
pub use walk::{list_all, walk};
