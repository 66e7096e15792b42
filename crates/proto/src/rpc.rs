//! Messages: the envelopes of JSON-RPC, and what of a peer's bytes can be read.

pub(crate) mod glance;
pub(crate) mod heard;
pub mod wire;
