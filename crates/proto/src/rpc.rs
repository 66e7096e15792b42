//! JSON-RPC messages: how they are read and written, and what can be read of a damaged one.

pub(crate) mod glance;
pub(crate) mod heard;
pub mod wire;
