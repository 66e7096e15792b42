//! What all requests to one endpoint share.

use std::sync::Arc;

use proto::downstream::Served;
use tokio_util::sync::CancellationToken;

use super::crowd::Crowd;
use super::options::Options;
use super::sessions::Sessions;

/// What all requests to one endpoint share.
pub(crate) struct Endpoint {
    pub(crate) served: Arc<Served>,
    pub(crate) options: Options,
    pub(crate) crowd: Crowd,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) shutdown: CancellationToken,
}
