//! A gateway merges many MCP servers, of any revision and transport, into one.
//!
//! [`Gateway`] is a [`proto::Service`]. It keeps a catalog of what its upstream servers offer, routes each request to the
//! server that it is for, and passes on the answer. It does not know eras: the edges downstream and upstream translate.

pub mod admin;
mod catalog;
mod gateway;
mod lifecycle;
mod listen;
mod options;
mod replace_file;
mod route;
mod upstream;

pub use catalog::name::{MAX_NAME_LENGTH, is_legal};
pub use gateway::Gateway;
pub use lifecycle::AppliedOptions;
pub use options::{Names, Options, Override, Pattern, Pool, Prefix, ServerOptions, Target};
pub use replace_file::replace_file;
