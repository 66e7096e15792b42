//! How an endpoint is configured.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use proto::downstream::http::Replay;

use super::authenticate::{Anonymous, Authenticate};
use crate::limits::shared_by_default;
use crate::{ADDRESS_SHARE, CONNECTIONS, REQUEST_BYTES, WRITE_TIMEOUT};

/// How an endpoint behaves beside the protocol.
///
/// ```
/// # use std::time::Duration;
/// # use transport::http::Options;
/// let options = Options::default().sessions(100).body_timeout(Duration::from_secs(5));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Hosts that the `Host` header may name, without port, in addition to `localhost`, the loopback addresses and the
    /// address of [`Options::listening_on`]; `None` admits all. This refuses pages of other sites whose name was made to
    /// point here (DNS rebinding).
    pub hosts: Option<Vec<String>>,
    /// Whether the `Host` header may be any IP address: no page can make an IP address point here. This is for an endpoint
    /// that listens on all addresses, since it does not know them.
    pub addresses: bool,
    /// Origins whose pages may call beside the endpoint's own, each as [`crate::http::origin`] reads it.
    pub origins: Vec<String>,
    /// Who sends a request.
    pub authenticate: Arc<dyn Authenticate>,
    /// How long a client may take to send a body.
    pub body_timeout: Duration,
    /// How often a quiet stream carries a comment.
    pub keep_alive: Duration,
    /// How many connections may be open; no more than three quarters of the files that the process may open. When
    /// there is no room, the connection is closed that has waited for its client for the longest time.
    pub connections: usize,
    /// How many bytes of requests may be in memory: those of unfinished bodies, and those of requests under way.
    pub request_bytes: usize,
    /// How many bytes of responses may wait for clients to read them. When there are more, the connection is closed
    /// whose response has waited for the longest time.
    pub response_bytes: usize,
    /// How many event streams without an end may be open: listens, and streams of sessions.
    pub listens: usize,
    /// How much of each limit one address may use, in percent.
    pub address_share: u8,
    /// Addresses from which many clients come, such as a proxy's: `address_share` does not apply to them.
    pub shared_addresses: Vec<IpAddr>,
    /// How long a client may read nothing of what waits for it before its connection is closed.
    pub write_timeout: Duration,
    /// How many sessions may be open. When a client opens one more, the session ends that was unused for the longest
    /// time.
    pub sessions: usize,
    /// How long a session may be unused.
    pub session_idle: Duration,
    /// How many streams a session may have open that belong to no call.
    pub streams: usize,
    /// How many messages a session keeps for a client that reconnects.
    pub replay: Replay,
    /// How many bytes all sessions together keep for clients that reconnect. When there are more, the session that was
    /// unused for the longest time loses its messages first.
    pub replay_bytes: usize,
    /// How long a client is told to wait before it reconnects.
    pub retry: Duration,
}

impl Default for Options {
    /// Loopback only, no authentication, 30 s for a body, a comment every 15 s, 16 384 connections, 256 MiB of requests and
    /// 256 MiB of responses, 10 000 event streams, a quarter of each for an address other than this machine's, a minute for a
    /// reader, 10 000 sessions, an hour of idleness, 32 streams, 64 MiB kept, a second until a client reconnects.
    fn default() -> Options {
        Options {
            hosts: Some(Vec::new()),
            addresses: false,
            origins: Vec::new(),
            authenticate: Arc::new(Anonymous),
            body_timeout: Duration::from_secs(30),
            keep_alive: Duration::from_secs(15),
            connections: CONNECTIONS,
            request_bytes: REQUEST_BYTES,
            response_bytes: REQUEST_BYTES,
            listens: 10_000,
            address_share: ADDRESS_SHARE,
            shared_addresses: shared_by_default(),
            write_timeout: WRITE_TIMEOUT,
            sessions: 10_000,
            session_idle: Duration::from_secs(3600),
            streams: 32,
            replay: Replay::default(),
            replay_bytes: 64 << 20,
            retry: Duration::from_secs(1),
        }
    }
}

macro_rules! setters {
    ($($(#[$doc:meta])* $field:ident: $type:ty;)*) => {
        impl Options {$(
            $(#[$doc])*
            #[must_use]
            pub fn $field(mut self, $field: $type) -> Options {
                self.$field = $field;
                self
            }
        )*}
    };
}

setters! {
    /// Sets the hosts that the `Host` header may name, without port; `None` admits all. By default none are added to
    /// `localhost`, the loopback addresses and the address that is listened on.
    hosts: Option<Vec<String>>;
    /// Sets whether the `Host` header may be any IP address; by default it may if the endpoint listens on all addresses.
    addresses: bool;
    /// Sets the origins whose pages may call in addition to the endpoint's own, each as [`crate::http::origin`] reads it.
    /// By default there are none.
    origins: Vec<String>;
    /// Sets how long a client may take to send a body; 30 seconds by default.
    body_timeout: Duration;
    /// Sets how often a quiet stream carries a comment; every 15 seconds by default.
    keep_alive: Duration;
    /// Sets how many connections may be open; 16 384 by default.
    connections: usize;
    /// Sets how many bytes of requests may be in memory; 256 MiB by default.
    request_bytes: usize;
    /// Sets how many bytes of responses may wait for clients to read them; 256 MiB by default.
    response_bytes: usize;
    /// Sets how many event streams without an end may be open; 10 000 by default.
    listens: usize;
    /// Sets how much of each limit one address may use, in percent; 25 by default.
    address_share: u8;
    /// Sets the addresses from which many clients come; by default those of this machine.
    shared_addresses: Vec<IpAddr>;
    /// Sets how long a client may read nothing of what waits for it before its connection is closed; 60 seconds by default.
    write_timeout: Duration;
    /// Sets how many sessions may be open; 10 000 by default.
    sessions: usize;
    /// Sets how long a session may be unused; an hour by default.
    session_idle: Duration;
    /// Sets how many streams a session may have open that belong to no call; 32 by default.
    streams: usize;
    /// Sets how many messages a session keeps for a client that reconnects; 1000 messages and 1 MiB by default.
    replay: Replay;
    /// Sets how many bytes all sessions together keep for clients that reconnect; 64 MiB by default.
    replay_bytes: usize;
    /// Sets how long a client is told to wait before it reconnects; a second by default.
    retry: Duration;
}

impl Options {
    /// Sets who says on whose behalf a request comes; by default every request is anonymous.
    #[must_use]
    pub fn authenticate(mut self, authenticate: impl Authenticate) -> Options {
        self.authenticate = Arc::new(authenticate);
        self
    }

    /// Admits the address that the endpoint listens on as a `Host`; if it listens on all addresses, admits any address.
    #[must_use]
    pub fn listening_on(mut self, address: IpAddr) -> Options {
        if address.is_unspecified() {
            self.addresses = true;
        } else if let Some(hosts) = &mut self.hosts {
            hosts.push(match address {
                IpAddr::V4(address) => address.to_string(),
                IpAddr::V6(address) => format!("[{address}]"),
            });
        }
        self
    }
}

/// Where an endpoint is served.
#[derive(Clone, Debug)]
pub struct Paths {
    /// Streamable HTTP.
    pub endpoint: String,
    /// HTTP+SSE, where it is served: the path of the stream. Messages are posted to `message` beside it.
    pub sse: Option<String>,
}
