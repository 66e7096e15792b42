//! How an endpoint is configured.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use proto::downstream::http::Replay;

use super::authenticate::{Anonymous, Authenticate};
use crate::crowd::shared_by_default;
use crate::{ARRIVING, CONNECTIONS, SHARE, STALL};

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
    /// Hosts that the `Host` header may name, without port, beside `localhost` and the loopback addresses, and beside
    /// the address that [`Options::listening_on`] knows of; `None` admits all. This keeps pages of other sites out that
    /// have their name point here.
    pub hosts: Option<Vec<String>>,
    /// Whether any IP address will do as a `Host`: no page can have one point here. For an endpoint that listens on all
    /// addresses, of which it does not know all.
    pub addresses: bool,
    /// Origins whose pages may call beside the endpoint's own, each as [`crate::http::origin`] reads it.
    pub origins: Vec<String>,
    /// Who sends a request.
    pub authenticate: Arc<dyn Authenticate>,
    /// How long a client may take to send a body.
    pub body_timeout: Duration,
    /// How often a quiet stream carries a comment.
    pub keep_alive: Duration,
    /// How many connections may be open; no more than three quarters of the files that the process may open. Where
    /// there is no room, the one goes that has waited for its client for the longest.
    pub connections: usize,
    /// Bytes of requests that may be in memory: what has arrived of unfinished bodies, and what calls under way keep.
    pub arriving: usize,
    /// Bytes of answers that may wait to be read by clients. Where more wait, the connection goes that has had some
    /// for the longest.
    pub leaving: usize,
    /// How many event streams may be open that have no end: listens, and streams of sessions.
    pub listens: usize,
    /// The part of each limit that one address may use up, in percent.
    pub share: u8,
    /// Addresses that stand for many clients, such as a proxy's: no share holds for them.
    pub shared: Vec<IpAddr>,
    /// How long a client may read nothing of what waits for it before its connection is closed.
    pub stall: Duration,
    /// How many sessions may be open. Where one more is opened, the longest unused goes.
    pub sessions: usize,
    /// How long a session may be unused.
    pub session_idle: Duration,
    /// How many streams of its own a session may have open.
    pub streams: usize,
    /// How much a session keeps for a client that comes back.
    pub replay: Replay,
    /// How many bytes all sessions together keep for clients that come back. The longest unused forgets first.
    pub kept: usize,
    /// After which time a client is told to come back whose connection breaks off.
    pub retry: Duration,
}

impl Default for Options {
    /// Loopback only, everybody without authentication, 30 s for a body, a comment every 15 s, 16 384 connections, 256 MiB of
    /// requests and of answers, 10 000 event streams, a quarter of each for an address other than this machine's, a minute for a reader, 10 000
    /// sessions, an hour of idleness, 32 streams, 64 MiB kept, a second until a client comes back.
    fn default() -> Options {
        Options {
            hosts: Some(Vec::new()),
            addresses: false,
            origins: Vec::new(),
            authenticate: Arc::new(Anonymous),
            body_timeout: Duration::from_secs(30),
            keep_alive: Duration::from_secs(15),
            connections: CONNECTIONS,
            arriving: ARRIVING,
            leaving: ARRIVING,
            listens: 10_000,
            share: SHARE,
            shared: shared_by_default(),
            stall: STALL,
            sessions: 10_000,
            session_idle: Duration::from_secs(3600),
            streams: 32,
            replay: Replay::default(),
            kept: 64 << 20,
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
    /// Sets whether any IP address will do as a `Host`; by default it does where the endpoint listens on all addresses.
    addresses: bool;
    /// Sets the origins whose pages may call beside the endpoint's own, each as [`crate::http::origin`] reads it. By default
    /// there are none.
    origins: Vec<String>;
    /// Sets how long a client may take to send a body; 30 seconds by default.
    body_timeout: Duration;
    /// Sets how often a quiet stream carries a comment; every 15 seconds by default.
    keep_alive: Duration;
    /// Sets how many connections may be open; 16 384 by default.
    connections: usize;
    /// Sets how many bytes of requests may be in memory; 256 MiB by default.
    arriving: usize;
    /// Sets how many bytes of answers may wait to be read by clients; 256 MiB by default.
    leaving: usize;
    /// Sets how many event streams may be open that have no end; 10 000 by default.
    listens: usize;
    /// Sets the part of each limit that one address may use up, in percent; 25 by default.
    share: u8;
    /// Sets the addresses that stand for many clients; by default those of this machine.
    shared: Vec<IpAddr>;
    /// Sets how long a client may read nothing of what waits for it before its connection is closed; 60 seconds by default.
    stall: Duration;
    /// Sets how many sessions may be open; 10 000 by default.
    sessions: usize;
    /// Sets how long a session may be unused; an hour by default.
    session_idle: Duration;
    /// Sets how many streams of its own a session may have open; 32 by default.
    streams: usize;
    /// Sets how much a session keeps for a client that comes back; 1000 messages and 1 MiB by default.
    replay: Replay;
    /// Sets how many bytes all sessions together keep for clients that come back; 64 MiB by default.
    kept: usize;
    /// Sets after which time a client is told to come back whose connection breaks off; a second by default.
    retry: Duration;
}

impl Options {
    /// Sets who says on whose behalf a request comes; by default every request is anonymous.
    #[must_use]
    pub fn authenticate(mut self, authenticate: impl Authenticate) -> Options {
        self.authenticate = Arc::new(authenticate);
        self
    }

    /// As they hold for an endpoint that listens on an address: it is served under that, and where it is all of them,
    /// under any.
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
