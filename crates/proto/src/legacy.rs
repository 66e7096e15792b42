//! The legacy edges: a handshake opens a session, and the session stamps each request.

pub mod client;
pub mod server;
