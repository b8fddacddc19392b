//! Medians and spreads of a handful of measurements.

/// The median; of an even number of values, the mean of the middle two. Zero of none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = sorted.get(sorted.len() / 2).copied();
    let lower = sorted.get(sorted.len().saturating_sub(1) / 2).copied();
    match (lower, upper) {
        (Some(lower), Some(upper)) => f64::midpoint(lower, upper),
        _ => 0.0,
    }
}

/// The least and the greatest value; zeros of none.
pub fn spread(values: &[f64]) -> (f64, f64) {
    let least = values.iter().copied().reduce(f64::min).unwrap_or_default();
    let greatest = values.iter().copied().reduce(f64::max).unwrap_or_default();
    (least, greatest)
}

/// The quotients of values measured in the same rounds.
pub fn ratios(left: &[f64], right: &[f64]) -> Vec<f64> {
    left.iter().zip(right).map(|(left, right)| left / right).collect()
}

/// A count as a number to calculate with. Counts here stay far below the 2^53 up to which this is exact.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of requests, bytes and routes stay below 2^53"
)]
pub fn number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::{median, ratios, spread};

    #[test]
    fn the_median_ignores_one_outlier() {
        assert_eq!(median(&[3.0, 100.0, 1.0]).to_bits(), 3.0_f64.to_bits());
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]).to_bits(), 2.5_f64.to_bits());
        assert_eq!(median(&[]).to_bits(), 0.0_f64.to_bits());
    }

    #[test]
    fn ratios_pair_values_of_the_same_round() {
        assert_eq!(ratios(&[6.0, 3.0], &[2.0, 3.0]), [3.0, 1.0]);
        assert_eq!(spread(&[2.0, 1.0, 3.0]), (1.0, 3.0));
    }
}
