use std::time::Duration;

use super::Backoff;

#[test]
fn waits_grow_to_the_cap_and_start_again_after_a_success() {
    let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30));
    for whole in [1, 2, 4, 8, 16, 30, 30, 30] {
        let wait = backoff.next();
        let whole = Duration::from_secs(whole);
        assert!(wait >= whole / 2 && wait <= whole, "{wait:?} for {whole:?}");
    }
    backoff.reset();
    assert!(backoff.next() <= Duration::from_secs(1));
}

#[test]
fn a_thousand_failures_do_not_overflow() {
    let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_mins(5));
    let last = (0..1000).map(|_| backoff.next()).last();
    assert!(last.is_some_and(|wait| wait <= Duration::from_mins(5)));
}
