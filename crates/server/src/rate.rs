//! Limits to how often a client may ask.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock as _, MonotonicClock};
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use proto::{Principal, Rejection};

/// A limit to how often each principal may ask for something.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Rate {
    /// Requests a second in the long run.
    pub per_second: NonZeroU32,
    /// Requests at once.
    pub burst: NonZeroU32,
}

impl Rate {
    /// Makes a limit of so many requests a second, and as many at once.
    ///
    /// # Panics
    /// When the number is zero.
    #[allow(clippy::expect_used)]
    pub const fn per_second(times: u32) -> Rate {
        let times = NonZeroU32::new(times).expect("a rate is at least one a second");
        Rate { per_second: times, burst: times }
    }

    /// Sets how many requests may come at once; by default as many as a second.
    ///
    /// # Panics
    /// When the number is zero.
    #[must_use]
    #[allow(clippy::expect_used)]
    pub const fn burst(mut self, requests: u32) -> Rate {
        self.burst = NonZeroU32::new(requests).expect("a burst is at least one request");
        self
    }
}

/// At most so many principals are remembered before those that ask no longer are forgotten.
const REMEMBERED: usize = 10_000;

/// Keeps to a rate.
pub(crate) struct Limiter(RateLimiter<Principal, HashMapStateStore<Principal>, MonotonicClock>);

impl Limiter {
    pub(crate) fn new(rate: Rate) -> Limiter {
        let quota = Quota::per_second(rate.per_second).allow_burst(rate.burst);
        Limiter(RateLimiter::new(quota, HashMapStateStore::default(), MonotonicClock))
    }

    /// Whether one more may be asked for now.
    pub(crate) fn check(&self, principal: &Principal) -> Result<(), Rejection> {
        if self.0.len() > REMEMBERED {
            self.0.retain_recent();
        }
        self.0.check_key(principal).map_err(|wait| {
            let wait: Duration = wait.wait_time_from(MonotonicClock.now());
            let wait = wait.as_millis().max(1);
            Rejection::Internal(format!("too many of these requests; try again in {wait} ms"))
        })
    }
}
