//! The edges towards clients: machines that take inputs and give [`Output`]s.

mod call;
mod era;
mod frame;
pub mod http;
mod output;
mod pipe;
mod session;
pub mod stream;

pub use call::{Call, Ending, Opening};
pub use frame::Frame;
pub use output::{Output, Served, refuse, unreadable};
pub use pipe::Pipe;
pub use session::Session;
