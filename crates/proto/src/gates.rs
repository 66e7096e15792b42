//! The gates: what a peer may send, what it is shown, and what of a server is put right.

pub mod admit;
mod form;
pub mod project;
pub mod sound;
