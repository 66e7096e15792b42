//! How long to wait before something is tried again.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};

/// The first pause, without its jitter.
const FIRST: Duration = Duration::from_millis(500);
/// The longest; with its jitter, which is at most as much again, it is a minute.
const LONGEST: Duration = Duration::from_secs(30);

/// Pauses that grow up to a minute, each with some chance in it, so that what broke together is not tried together. They
/// never end: nothing is given up for good.
#[derive(Debug)]
pub(crate) struct Pauses(ExponentialBackoff);

impl Default for Pauses {
    fn default() -> Pauses {
        let pauses = ExponentialBuilder::new().with_min_delay(FIRST).with_max_delay(LONGEST).with_factor(2.0);
        Pauses(pauses.with_jitter().without_max_times().build())
    }
}

impl Pauses {
    pub(crate) fn next(&mut self) -> Duration {
        self.0.next().unwrap_or(LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_minute_and_never_end() {
        let mut pauses = Pauses::default();
        let all: Vec<Duration> = (0..1000).map(|_| pauses.next()).collect();
        assert!(all[0] >= FIRST && all[0] <= 2 * FIRST, "{:?}", all[0]);
        assert!(all.iter().all(|pause| *pause <= Duration::from_secs(60)));
        assert!(all[100..].iter().all(|pause| *pause >= LONGEST));
        let different: std::collections::HashSet<_> = all[100..].iter().collect();
        assert!(different.len() > 100, "there is chance in them");
    }
}
