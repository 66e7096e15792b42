//! The protocol between bytes and services: messages, the four edges, the two gates, the service trait.
//!
//! Inside, everything is modern: a [`Request`] is complete in itself, an [`Answer`] is complete or asks for
//! input. An era exists only at an edge: [`legacy`] keeps a session and stamps each request with it, [`modern`]
//! reads the same things from `_meta`. [`admit`] decides what a peer may send, [`project`] what it is shown, and
//! [`sound`] puts right what an upstream sent.
//!
//! Nothing here does IO, reads a clock, draws randomness or needs a runtime: edges are machines that take
//! inputs and give [`edge::Output`]s, and a transport drives them.

pub mod admit;
pub mod capability;
pub mod edge;
mod form;
mod glance;
pub mod header;
mod heard;
pub mod legacy;
mod level;
pub mod modern;
mod ours;
pub mod project;
mod raw;
mod rejection;
mod service;
pub mod sound;
pub mod stream;
pub mod template;
pub mod upstream;
mod wanted;
mod watch;
pub mod wire;

pub use capability::{Capabilities, ClientCapabilities};
pub use glance::Glance;
pub use heard::{Heard, hear};
pub use level::Level;
pub use ours::{list_all, walk};
pub use raw::{Object, ParseError, Raw};
pub use rejection::{Rejection, Rendered};
pub use service::{
    Answer, Answers, Ask, BoxFuture, BoxStream, CacheHint, Change, Description, Event, EventSink,
    ExtensionMethod, Filter, Interim, Listening, Mirror, Peer, Principal, Request, Service,
};
pub use template::Template;
pub use wanted::Wanted;
pub use watch::Watchers;
