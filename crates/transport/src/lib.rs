//! The only crate with sockets, pipes and child processes: stdio, Streamable HTTP and HTTP+SSE, accept and
//! connect.
//!
//! It frames bytes, keeps the tables of sessions and calls, and drives the machines of [`proto`]; every rule of
//! the protocol is theirs.

mod accept;
// Programs are started in process groups, which other systems lack.
#[cfg(all(unix, feature = "client"))]
pub mod client;
// Sockets use a part of it, the HTTP server all of it.
#[cfg_attr(not(feature = "http-server"), allow(dead_code))]
mod crowd;
// Some errors are a client's only, and so is reading a pipe to its end.
#[cfg_attr(not(all(unix, feature = "client")), allow(dead_code))]
mod error;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(feature = "http-server")]
pub mod http;
#[cfg_attr(not(all(unix, feature = "client")), allow(dead_code))]
mod line;
// HTTP+SSE gives a pipe its messages.
#[cfg_attr(not(feature = "http-server"), allow(dead_code))]
mod pipe;
mod queue;
mod socket;
// A client reads events, a server writes them.
#[cfg(any(feature = "client", feature = "http-server"))]
#[cfg_attr(not(all(unix, feature = "client", feature = "http-server")), allow(dead_code))]
mod sse;
#[cfg(all(unix, feature = "client"))]
pub mod unix;

pub use error::{TransportError, shown as shown_url};
pub use line::{Line, Lines};
pub use pipe::{serve_pipe, serve_stdio};
pub use socket::serve_tcp;
#[cfg(unix)]
pub use socket::serve_unix_lines;
pub use tokio_util::sync::CancellationToken;

/// Whole events that wait for a slow reader before who makes them waits too.
const BACKLOG: usize = 256;
/// How long a running call may go on once the process is asked to end.
const GRACE: std::time::Duration = std::time::Duration::from_secs(10);
/// How long an answer may take to be sent as one JSON object: a client takes longer silence for a server that hangs.
/// What takes longer gets an event stream, on which its client hears that it is alive, and for which it can come back.
#[cfg(feature = "http-server")]
const PROMPT: std::time::Duration = std::time::Duration::from_millis(500);
/// How long a client may read nothing of what waits for it before its connection is let go.
const STALL: std::time::Duration = std::time::Duration::from_secs(60);
/// Connections that an endpoint has at once where nothing else is said.
const CONNECTIONS: usize = 16_384;
/// Bytes of messages on their way in that an endpoint holds where nothing else is said: sixteen of the longest.
const ARRIVING: usize = 256 << 20;
/// The part of each limit that one address may use up, in percent, where nothing else is said.
const SHARE: u8 = 25;
