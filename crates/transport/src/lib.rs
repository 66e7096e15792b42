//! The only crate with sockets, pipes and child processes: stdio, Streamable HTTP and HTTP+SSE, accept and
//! connect.
//!
//! It frames bytes, keeps the tables of sessions and calls, and runs the state machines of [`proto`], which hold every
//! rule of the protocol.

mod accept;
// Programs are started in process groups, which other systems lack.
#[cfg(all(unix, feature = "client"))]
pub mod client;
// Sockets use a part of it, the HTTP server all of it.
#[cfg_attr(not(feature = "http-server"), allow(dead_code))]
mod limits;
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

/// How many events wait for a slow reader. Then whoever makes them waits too.
const BACKLOG: usize = 256;
/// How long a running call may go on after the process was asked to end.
const GRACE: std::time::Duration = std::time::Duration::from_secs(10);
/// How long a response may take to be sent as one JSON object. A response that takes longer goes out on an event stream:
/// there the client sees comments while it waits, and can reconnect.
#[cfg(feature = "http-server")]
const JSON_WITHIN: std::time::Duration = std::time::Duration::from_millis(500);
/// How long a client may read nothing, while messages wait for it, before its connection is closed.
const WRITE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);
/// How many connections an endpoint may have by default.
const CONNECTIONS: usize = 16_384;
/// How many bytes of unfinished messages an endpoint may hold by default: sixteen of the longest.
const REQUEST_BYTES: usize = 256 << 20;
/// How much of each limit one address may use by default, in percent.
const ADDRESS_SHARE: u8 = 25;
