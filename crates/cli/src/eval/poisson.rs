//! The exact confidence interval of a count of rare events.

/// Returns the 95 % interval of the mean of which `count` events are a sample (Garwood's).
pub(crate) fn interval(count: u64) -> (f64, f64) {
    let low = if count == 0 { 0.0 } else { mean_at(count - 1, 0.975) };
    (low, mean_at(count, 0.025))
}

/// The mean at which at most `count` events have this probability.
fn mean_at(count: u64, probability: f64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts of alarms")]
    let (mut low, mut high) = (0.0, 2.0 * count as f64 + 20.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if at_most(count, middle) > probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// The probability of at most `count` events when `mean` are expected.
fn at_most(count: u64, mean: f64) -> f64 {
    let mut log_term = -mean;
    let mut sum = log_term.exp();
    for n in 1..=count {
        #[expect(clippy::cast_precision_loss, reason = "counts of alarms")]
        let n = n as f64;
        log_term += (mean / n).ln();
        sum += log_term.exp();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::interval;

    /// The figures of any table of exact Poisson limits.
    #[test]
    fn it_agrees_with_the_tables() {
        for (count, low, high) in
            [(0, 0.0, 3.689), (1, 0.0253, 5.572), (5, 1.623, 11.668), (100, 81.364, 121.627)]
        {
            let (l, h) = interval(count);
            assert!((l - low).abs() < 1e-3 && (h - high).abs() < 1e-3, "{count}: {l} to {h}");
        }
        let (low, high) = interval(5000);
        assert!(4860.0 < low && high < 5142.0, "{low} to {high}");
    }
}
