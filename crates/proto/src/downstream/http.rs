//! HTTP requests: what is done with each, and what is refused.

mod accept;
mod event_id;
pub mod http_sse;
mod random;
mod refusal;
mod request;
mod session;
mod stream;
mod stream_reader;
mod streams;

pub use accept::{Accept, CallResponse};
pub use event_id::{EventId, StreamId};
pub use refusal::Refusal;
pub use request::{Head, Payload, Posted, delete, get, head, no_session, post, session_id};
pub use session::{HttpSession, Random, Reply, Use};
pub use stream_reader::{Next, ResponseForm, Room, StreamReader};
pub use streams::Replay;
