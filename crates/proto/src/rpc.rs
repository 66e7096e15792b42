//! JSON-RPC messages: how they are read and written, and what can be read of a damaged one.

pub(crate) mod from_server;
pub(crate) mod outline;
pub mod wire;
