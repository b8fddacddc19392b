//! Waiting longer after each failure, with a cap and some chance.
//!
//! Chance keeps replicas that failed together from coming back together.

use std::time::Duration;

use ahash::RandomState;

/// How long to wait before the next attempt.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    failures: u32,
}

impl Backoff {
    pub(crate) fn new(first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            failures: 0,
        }
    }

    /// The wait after one more failure: twice the last one, between its half and its whole.
    pub(crate) fn next(&mut self) -> Duration {
        let wait = delay(self.first, self.longest, self.failures);
        self.failures = self.failures.saturating_add(1);
        wait
    }

    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }
}

/// The wait after so many failures before this one.
pub(crate) fn delay(first: Duration, longest: Duration, failures: u32) -> Duration {
    let whole = first.saturating_mul(1_u32 << failures.min(20)).min(longest);
    // A fresh random state per call is all the chance that is needed here.
    let chance = RandomState::new().hash_one(failures) % 1024;
    whole / 2 + (whole / 2).mul_f64(f64::from(u16::try_from(chance).unwrap_or(0)) / 1024.0)
}

#[cfg(test)]
mod tests;
