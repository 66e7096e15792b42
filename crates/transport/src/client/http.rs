//! Servers of Streamable HTTP.
//!
//! <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http>

mod body;
mod call;
mod endpoint;
mod listen;
mod open;
mod pool;
mod request;
mod route;
mod session;

pub(super) use body::{cause, is_events};
pub(super) use call::{call, send};
pub(super) use endpoint::{ACCEPT, Endpoint};
pub(super) use listen::listen;
pub(super) use open::{ConnectError, connect};
pub(super) use pool::Response;
pub use request::Remote;
pub(super) use request::{HttpClient, HttpRequest};
pub(super) use session::may_be_unknown;
