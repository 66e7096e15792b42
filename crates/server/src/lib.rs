//! The engine behind a server that is written once and serves every revision.
//!
//! [`Server`] holds tools, resources and prompts and is a [`proto::Service`]: it knows no era and no transport.
//! What spans requests (request state, cursors) is sealed by [`seal`] and kept by the client.

mod answer;
mod bounds;
mod build_error;
mod builder;
mod cache;
mod complete;
mod completion;
mod content;
mod contents;
mod context;
mod elicit;
mod error;
mod extension;
mod guard;
mod handler;
mod head;
mod messages;
mod notifier;
mod offer;
mod pages;
mod params;
mod prompt;
mod rate;
mod registry;
mod resource;
mod sampling;
mod schema;
mod server;
mod state;
mod states;
mod tool;
mod unique;
mod variables;

pub use build_error::BuildError;
pub use builder::{Builder, Definitions};
pub use cache::CacheScope;
pub use complete::CompletionArgument;
pub use content::{Content, ResourceContents, ToolResult};
pub use contents::Contents;
pub use context::{Context, ElicitResult, TryJoin};
pub use elicit::{ElicitForm, ElicitUrl};
pub use error::{Error, Result};
pub use extension::Extension;
pub use handler::{Args, FromRequest, Handler, IntoResponse, Json};
pub use head::{Headers, RequestExtension};
pub use messages::Messages;
pub use notifier::Notifier;
pub use prompt::Prompt;
pub use rate::Rate;
pub use resource::{Resource, ResourceTemplate};
pub use sampling::{CreateMessage, CreateMessageResult, Root};
pub use server::Server;
pub use state::State;
pub use tool::Tool;
pub use variables::Variables;
