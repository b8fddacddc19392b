//! How long to wait between the attempts that a rule asks for, and how much of a body is remembered for them.

use std::{
    future::poll_fn,
    task::Poll,
    time::{Duration, Instant},
};

use super::{Downstream, Watched};
use crate::worker::Deadline;

/// Most bytes of a body that are remembered; larger ones are sent once only.
pub(super) const MOST_KEPT: usize = 128 * 1024;
/// The wait doubles this often at most.
const MOST_DOUBLINGS: u32 = 4;
/// No wait grows beyond this by itself.
const LONGEST: Duration = Duration::from_secs(30);

/// The wait before the next attempt, after so many that the rule asked for: never less than the rule says, longer each
/// time, and spread so that clients who failed together do not come back together.
pub(super) fn wait(least: Duration, retries: u32) -> Duration {
    let longer = least.saturating_mul(1 << retries.min(MOST_DOUBLINGS));
    longer
        .saturating_add(longer.mul_f64(fastrand::f64() / 4.0))
        .min(LONGEST.max(least))
}

/// How a pause ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paused {
    /// The time is over.
    Over,
    /// Nobody waits for the answer any more.
    ClientGone,
}

/// Waits until a moment, or until the client goes away.
pub(super) async fn pause<D: Downstream>(client: &mut D, deadline: &Deadline, until: Instant) -> Paused {
    deadline.set_at(until);
    let mut is_half_closed = false;
    poll_fn(|context| {
        if !is_half_closed {
            match client.poll_watch(context) {
                Poll::Ready(Watched::Gone) => return Poll::Ready(Paused::ClientGone),
                Poll::Ready(Watched::HalfClosed) => is_half_closed = true,
                Poll::Pending => {}
            }
        }
        if deadline.poll(context).is_ready() && Instant::now() >= until {
            return Poll::Ready(Paused::Over);
        }
        Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::wait;

    #[test]
    fn a_wait_is_never_shorter_than_asked_and_does_not_grow_without_end() {
        let least = Duration::from_millis(100);
        for retries in 0..40 {
            let doubled = least * (1 << retries.min(4));
            for _ in 0..100 {
                let wait = wait(least, retries);
                assert!(wait >= doubled && wait <= doubled + doubled / 4, "{retries}: {wait:?}");
            }
        }
        assert_eq!(wait(Duration::ZERO, 3), Duration::ZERO);
        assert_eq!(wait(Duration::from_secs(40), 3), Duration::from_secs(40));
    }
}
