//! How long to wait before something is tried again.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};

/// The first pause without jitter: a server that only restarts is back soon.
const FIRST: Duration = Duration::from_millis(500);
/// The longest pause without jitter. Jitter adds at most as much again, so that the longest pause is a minute.
const LONGEST: Duration = Duration::from_secs(30);
/// What ran for so long begins with the first pause again.
pub(crate) const STEADY: Duration = Duration::from_secs(60);

/// Pauses that grow up to a minute. Each has random jitter, so that what broke at one time is not tried at one time. They
/// never end: nothing is given up for good.
#[derive(Debug)]
pub(crate) struct Backoff(ExponentialBackoff);

impl Default for Backoff {
    fn default() -> Backoff {
        let backoff =
            ExponentialBuilder::new().with_min_delay(FIRST).with_max_delay(LONGEST).with_factor(2.0);
        Backoff(backoff.with_jitter().without_max_times().build())
    }
}

impl Backoff {
    pub(crate) fn next(&mut self) -> Duration {
        self.0.next().unwrap_or(LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_minute_and_never_end() {
        let mut backoff = Backoff::default();
        let all: Vec<Duration> = (0..1000).map(|_| backoff.next()).collect();
        assert!(all[0] >= FIRST && all[0] <= 2 * FIRST, "{:?}", all[0]);
        assert!(all.iter().all(|pause| *pause <= Duration::from_secs(60)));
        assert!(all[100..].iter().all(|pause| *pause >= LONGEST));
        let different: std::collections::HashSet<_> = all[100..].iter().collect();
        assert!(different.len() > 100, "there is chance in them");
    }
}
