//! The modern edges: every request is complete in itself.

pub mod client;
pub mod server;
