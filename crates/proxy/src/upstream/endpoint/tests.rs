//! When an endpoint rests, and for how long.

use std::time::{Duration, Instant};

use super::{Endpoint, LONGEST_REST, MOST_FAILURES, REST};

fn endpoint() -> Endpoint {
    Endpoint::new("127.0.0.1:1".parse().unwrap(), None)
}

fn left(endpoint: &Endpoint, now: Instant) -> Duration {
    endpoint.rest.get().unwrap().until - now
}

#[test]
fn failures_in_a_row_make_it_rest_and_a_success_in_between_does_not() {
    let endpoint = endpoint();
    for _ in 0..3 {
        for _ in 1..MOST_FAILURES {
            endpoint.answered(true);
        }
        assert!(!endpoint.is_resting());
        endpoint.answered(false);
    }
    for _ in 0..MOST_FAILURES {
        endpoint.answered(true);
    }
    assert!(endpoint.is_resting());
    // What was under way does not end the rest, nor does a connection: that was not what failed.
    endpoint.answered(false);
    endpoint.note_reachable();
    assert!(endpoint.is_resting());
}

#[test]
fn each_failure_after_a_rest_doubles_the_next_up_to_a_limit() {
    let endpoint = endpoint();
    let mut now = Instant::now();
    let mut expected = REST;
    for _ in 0..10 {
        endpoint.note_unreachable(now);
        assert_eq!(left(&endpoint, now), expected);
        // More of the same in this time changes nothing.
        endpoint.note_unreachable(now + Duration::from_millis(1));
        assert_eq!(left(&endpoint, now), expected);
        now += expected;
        expected = (expected * 2).min(LONGEST_REST);
    }
    endpoint.note_reachable();
    assert!(endpoint.rest.get().is_none());
    endpoint.note_unreachable(now);
    assert_eq!(left(&endpoint, now), REST);
}
