//! What all requests to one endpoint share.

use std::sync::Arc;

use proto::downstream::Served;
use tokio_util::sync::CancellationToken;

use super::client_limits::ClientLimits;
use super::options::{Options, Paths};
use super::request_guard::RequestGuard;
use super::sessions::Sessions;

/// An endpoint of Streamable HTTP: what all requests to it share.
pub struct Endpoint {
    pub(crate) served: Arc<Served>,
    pub(crate) options: Options,
    pub(crate) limits: ClientLimits,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) guard: Arc<RequestGuard>,
    pub(crate) shutdown: CancellationToken,
    /// Where Streamable HTTP is served: its path with and without a slash at the end, since people type both.
    pub(crate) paths: Vec<String>,
    /// Where HTTP+SSE is served, if it is.
    pub(crate) sse: Option<String>,
}

impl Endpoint {
    /// Makes an endpoint. When `shutdown` is cancelled, its listens end in good order.
    pub fn new(
        paths: &Paths,
        served: Arc<Served>,
        options: Options,
        shutdown: CancellationToken,
    ) -> Arc<Endpoint> {
        Arc::new(Endpoint {
            served,
            limits: ClientLimits::new(&options),
            sessions: Sessions::new(options.replay_bytes),
            guard: RequestGuard::new(options.clone()),
            options,
            shutdown,
            paths: either(&paths.endpoint),
            sse: paths.sse.clone(),
        })
    }
}

/// A path with and without a slash at its end.
pub(crate) fn either(path: &str) -> Vec<String> {
    let bare = path.trim_end_matches('/');
    if bare.is_empty() { vec!["/".to_owned()] } else { vec![bare.to_owned(), format!("{bare}/")] }
}
