//! The gates: what a peer may send, what a peer is shown, and how the messages of servers are corrected.

pub mod admit;
mod form;
pub mod project;
pub mod repair;
