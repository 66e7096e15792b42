//! The limits for the clients of one endpoint, made from the endpoint's options.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::ConnectInfo;
use http::Extensions;

use super::options::Options;
use crate::limits::{Budget, ConnectionSlot, Connections, Count, Owner, Share};

/// Counts what the clients of one endpoint hold. A clone counts together with the original.
#[derive(Clone, Debug)]
pub(crate) struct ClientLimits {
    pub(crate) connections: Arc<Connections>,
    pub(crate) request_bytes: Arc<Budget>,
    pub(crate) response_bytes: Arc<Budget>,
    pub(crate) listens: Arc<Count>,
    pub(crate) sessions: Share,
    shared: Arc<[IpAddr]>,
}

impl ClientLimits {
    /// Makes the limits that the options say.
    pub(crate) fn new(options: &Options) -> ClientLimits {
        let share = |all: usize, what| {
            let each = all.saturating_mul(options.address_share.min(100).into()) / 100;
            Share { all, each: each.max(1), what }
        };
        ClientLimits {
            connections: Connections::new(
                share(options.connections, "connections"),
                options.shared_addresses.clone(),
            ),
            request_bytes: Budget::new(share(options.request_bytes, "bytes of requests")),
            response_bytes: Budget::new(share(
                options.response_bytes,
                "bytes of answers that are not read yet",
            )),
            listens: Count::new(share(options.listens, "open event streams")),
            sessions: share(options.sessions, "sessions"),
            shared: options.shared_addresses.clone().into(),
        }
    }

    /// On whose account a request is. In another program's server only its address is known, if that. The connection's
    /// slot is taken out: a request may outlast the connection, and must not count for it.
    pub(crate) fn owner(&self, of: &mut Extensions) -> Owner {
        if let Some(slot) = of.remove::<Arc<ConnectionSlot>>() {
            return slot.owner();
        }
        match of.get::<ConnectInfo<SocketAddr>>() {
            Some(ConnectInfo(from)) if !self.shared.contains(&from.ip().to_canonical()) => {
                Owner::read(from.ip())
            }
            _ => Owner::Shared,
        }
    }
}
