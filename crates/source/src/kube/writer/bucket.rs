//! A token bucket: bounded over time, generous after a pause.

use std::time::Duration;

use tokio::time::Instant;

#[derive(Debug)]
pub(super) struct Bucket {
    rate: f64,
    burst: f64,
    tokens: f64,
    filled: Instant,
}

impl Bucket {
    pub(super) fn new(rate: f64, burst: u32) -> Self {
        Self {
            rate: rate.max(0.1),
            burst: f64::from(burst.max(1)),
            tokens: f64::from(burst.max(1)),
            filled: Instant::now(),
        }
    }

    /// Takes a token, or says how long to wait for one.
    pub(super) fn take(&mut self, now: Instant) -> Result<(), Duration> {
        let passed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.filled = now;
        self.tokens = passed.mul_add(self.rate, self.tokens).min(self.burst);
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            Ok(())
        } else {
            Err(Duration::from_secs_f64((1.0 - self.tokens) / self.rate))
        }
    }
}

#[cfg(test)]
mod tests;
