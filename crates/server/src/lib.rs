//! The engine behind a server that is written once and serves every revision.
//!
//! [`Server`] holds tools, resources and prompts and is a [`proto::Service`]: it knows no era and no transport.
//! What spans requests (request state, cursors) is sealed by [`seal`] and kept by the client.

mod answer;
mod bounds;
mod build_error;
mod builder;
mod complete;
mod completion;
mod content;
mod contents;
mod context;
mod error;
mod extension;
mod form;
mod guard;
mod handler;
mod messages;
mod notifier;
mod offer;
mod pages;
mod params;
mod prompt;
mod rate;
mod resource;
mod schema;
mod server;
mod shelf;
mod tool;
mod unique;
mod vars;

pub use build_error::BuildError;
pub use builder::{Builder, Part};
pub use complete::Typed;
pub use content::{Content, ResourceContents, ToolResult};
pub use contents::Contents;
pub use context::{Cx, Elicited, Sampled, Together};
pub use error::{Error, Result};
pub use extension::Extension;
pub use form::{Form, Visit};
pub use handler::{Args, FromCall, Handler, Json, Reply};
pub use messages::Messages;
pub use notifier::Notifier;
pub use prompt::Prompt;
pub use rate::Rate;
pub use resource::{Resource, ResourceTemplate};
pub use server::Server;
pub use tool::Tool;
pub use vars::Vars;
