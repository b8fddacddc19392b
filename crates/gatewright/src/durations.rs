//! Durations sorted into buckets, for the metric of planning times. One writer, the spine.

use std::time::Duration;

use gatewright_proxy::Histogram;

/// Upper bounds in seconds: a changed route takes well under a millisecond, a first load of everything some seconds.
const BOUNDS: [f64; 14] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0,
];

/// Counted durations.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Durations {
    counts: [u64; BOUNDS.len() + 1],
    sum: f64,
}

impl Durations {
    pub(crate) fn count(&mut self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let bucket = BOUNDS.partition_point(|bound| *bound < seconds);
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += 1;
        }
        self.sum += seconds;
    }

    /// The sum of all.
    pub(crate) fn total(&self) -> Duration {
        Duration::from_secs_f64(self.sum)
    }

    /// The buckets as they are exported: each counts everything up to its bound.
    pub(crate) fn histogram(&self) -> Histogram {
        let mut so_far = 0;
        let bounds = BOUNDS.iter().copied().chain([f64::INFINITY]);
        let buckets = bounds.zip(self.counts).map(|(bound, count)| {
            so_far += count;
            (bound, so_far)
        });
        Histogram {
            buckets: buckets.collect(),
            sum: self.sum,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Durations;

    #[test]
    fn a_bucket_counts_everything_up_to_its_bound() {
        let mut durations = Durations::default();
        durations.count(Duration::from_micros(50));
        durations.count(Duration::from_millis(2));
        durations.count(Duration::from_mins(1));
        let histogram = durations.histogram();
        let at = |bound: f64| histogram.buckets.iter().find(|(known, _)| *known >= bound).unwrap().1;
        assert_eq!(
            [at(0.000_05), at(0.001), at(0.002_5), at(10.0), at(f64::INFINITY)],
            [1, 1, 2, 2, 3]
        );
    }
}
