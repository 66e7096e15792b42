//! What the clients of one endpoint together may hold, from the endpoint's options.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::ConnectInfo;
use http::Extensions;

use super::options::Options;
use crate::crowd::{Budget, Connections, Count, Seat, Share, Who};

/// What the clients of one endpoint together hold. Cloning it shares it.
#[derive(Clone, Debug)]
pub(crate) struct Crowd {
    pub(crate) connections: Arc<Connections>,
    pub(crate) arriving: Arc<Budget>,
    pub(crate) leaving: Arc<Budget>,
    pub(crate) listens: Arc<Count>,
    pub(crate) sessions: Share,
    shared: Arc<[IpAddr]>,
}

impl Crowd {
    /// Nobody yet.
    pub(crate) fn new(options: &Options) -> Crowd {
        let share = |all: usize, what| {
            let each = all.saturating_mul(options.share.min(100).into()) / 100;
            Share { all, each: each.max(1), what }
        };
        Crowd {
            connections: Connections::new(share(options.connections, "connections"), options.shared.clone()),
            arriving: Budget::new(share(options.arriving, "bytes of requests")),
            leaving: Budget::new(share(options.leaving, "bytes of answers that are not read yet")),
            listens: Count::new(share(options.listens, "open event streams")),
            sessions: share(options.sessions, "sessions"),
            shared: options.shared.clone().into(),
        }
    }

    /// On whose account a request is. In another program's server only its address is known, if that.
    pub(crate) fn who(&self, of: &Extensions) -> Who {
        if let Some(seat) = of.get::<Arc<Seat>>() {
            return seat.who();
        }
        match of.get::<ConnectInfo<SocketAddr>>() {
            Some(ConnectInfo(from)) if !self.shared.contains(&from.ip().to_canonical()) => {
                Who::read(from.ip())
            }
            _ => Who::Many,
        }
    }
}
