//! The engine behind a server that is written once and serves every revision.
//!
//! [`Server`] holds tools, resources and prompts and is a [`proto::Service`]: it knows no era and no transport.
//! What spans requests (request state, cursors) is sealed by [`seal`] and kept by the client.

mod bounds;
mod complete;
mod content;
mod context;
mod engine;
mod error;
mod extension;
mod form;
mod handler;
mod list;
mod prompt;
mod rate;
mod resource;
mod schema;
pub mod seal;
mod shelf;
mod template;
mod tool;
mod unique;

pub use complete::Typed;
pub use content::{Content, ResourceContents, ToolResult};
pub use context::{Cx, Elicited, Sampled, Together};
pub use engine::{Builder, Server};
pub use error::{Error, Result};
pub use extension::{Extension, Part};
pub use form::{Form, Visit};
pub use handler::{Args, FromCall, Handler, Json, Reply};
pub use list::page;
pub use prompt::{Messages, Prompt};
pub use rate::Rate;
pub use resource::{Contents, Resource, ResourceTemplate, Vars};
pub use schema::Validator;
pub use template::Template;
pub use tool::Tool;
