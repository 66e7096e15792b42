//! The only crate with sockets, pipes and child processes: stdio, Streamable HTTP and HTTP+SSE, accept and
//! connect.
//!
//! It frames bytes, keeps the tables of sessions and calls, and drives the machines of [`proto`]; every rule of
//! the protocol is theirs.

mod accept;
pub mod client;
mod error;
pub mod http;
mod line;
mod pipe;
mod socket;
mod sse;
pub mod unix;

pub use error::{TransportError, shown as shown_url};
pub use line::{Line, Lines};
pub use pipe::{serve_pipe, serve_stdio};
pub use socket::{serve_tcp, serve_unix_lines};
pub use tokio_util::sync::CancellationToken;

/// Whole events that wait for a slow reader before who makes them waits too.
const BACKLOG: usize = 256;
/// How long a running call may go on once the process is asked to end.
const GRACE: std::time::Duration = std::time::Duration::from_secs(10);
