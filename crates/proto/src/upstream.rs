//! The edges towards servers. They have one face: whatever a server speaks, what is behind the edge is modern.

mod calls;
mod edge;
mod output;
mod session;
mod subscriptions;
#[cfg(test)]
mod tests;

pub use calls::Calls;
pub use edge::Edge;
pub use output::{Introduction, Outgoing, Output, Starting};
pub use session::Session;
