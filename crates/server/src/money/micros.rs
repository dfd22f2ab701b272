//! Dollars as whole millionths, so that sums don't depend on their order.

/// The most that one request is counted with, in millionths of a dollar: ten thousand dollars.
const MOST: f64 = 1e10;

/// Returns an amount in millionths of a dollar. What isn't an amount of money counts as nothing.
#[expect(clippy::cast_possible_truncation, reason = "it is bounded")]
pub(crate) fn micros(usd: f64) -> i64 {
    if usd.is_nan() { 0 } else { (usd * 1e6).round().clamp(0.0, MOST) as i64 }
}

/// Returns an amount in dollars.
#[expect(clippy::cast_precision_loss, reason = "exact up to nine billion dollars")]
pub(crate) fn usd(micros: i64) -> f64 {
    micros as f64 / 1e6
}

/// Writes an amount for people: three digits below ten dollars, else two.
pub(crate) fn dollars(micros: i64) -> String {
    let usd = usd(micros);
    if usd < 10.0 { format!("${usd:.3}") } else { format!("${usd:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_bounded() {
        assert_eq!(micros(0.054), 54_000);
        assert_eq!(micros(-1.0), 0);
        assert_eq!(micros(f64::NAN), 0);
        assert_eq!(micros(f64::INFINITY), 10_000_000_000);
        assert_eq!((dollars(162_000), dollars(12_345_678)), ("$0.162".to_owned(), "$12.35".to_owned()));
    }
}
