//! HTTP requests: what is done with each, and what is refused.

mod accept;
pub mod http_sse;
mod refusal;
mod request;
mod session;
mod streams;

pub use accept::Accept;
pub use refusal::Refusal;
pub use request::{Head, Payload, Posted, delete, get, head, no_session, post, session_id};
pub use session::{HttpSession, Reply, Use};
pub use streams::{EventId, Form, Next, Place, Replay, Room, StreamId};
