//! HTTP requests: what is done with each, and what is refused.

mod accept;
mod event_id;
pub mod http_sse;
mod place;
mod refusal;
mod request;
mod session;
mod stream;
mod streams;

pub use accept::{Accept, CallResponse};
pub use event_id::{EventId, StreamId};
pub use place::{Form, Next, Place, Room};
pub use refusal::Refusal;
pub use request::{Head, Payload, Posted, delete, get, head, no_session, post, session_id};
pub use session::{HttpSession, Reply, Use};
pub use streams::Replay;
