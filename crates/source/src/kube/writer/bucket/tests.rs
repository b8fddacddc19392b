use std::time::Duration;

use tokio::time::Instant;

use super::Bucket;

#[test]
fn a_burst_is_followed_by_the_steady_rate() {
    let start = Instant::now();
    let mut bucket = Bucket::new(10.0, 3);
    for _ in 0..3 {
        assert!(bucket.take(start).is_ok());
    }
    let wait = bucket.take(start).unwrap_err();
    assert!(
        wait > Duration::from_millis(90) && wait < Duration::from_millis(110),
        "{wait:?}"
    );
    assert!(bucket.take(start + Duration::from_millis(101)).is_ok());
    let later = start + Duration::from_mins(1);
    assert_eq!((0..10).filter(|_| bucket.take(later).is_ok()).count(), 3);
}
