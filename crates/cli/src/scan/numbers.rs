//! Numbers as people read them.

use crate::replay::Spend;

/// Formats a count: 812, 14.2k, 1.2M.
pub(crate) fn count(number: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let value = number as f64;
    match number {
        0..1_000 => number.to_string(),
        1_000..999_500 => with_unit(value / 1e3, "k"),
        999_500..999_500_000 => with_unit(value / 1e6, "M"),
        _ => with_unit(value / 1e9, "B"),
    }
}

fn with_unit(value: f64, unit: &str) -> String {
    if value < 99.95 { format!("{value:.1}{unit}") } else { format!("{value:.0}{unit}") }
}

/// Formats dollars: $4.12, or <$0.01 for less than a cent.
pub(crate) fn dollars(value: f64) -> String {
    if value > 0.0 && value < 0.005 { "<$0.01".to_owned() } else { format!("${value:.2}") }
}

/// Formats a cost. An unknown price is called unknown, never guessed.
pub(crate) fn cost(spend: &Spend) -> String {
    match (spend.usd > 0.0, spend.unpriced_tokens > 0) {
        (_, false) if spend.tokens() == 0 && spend.usd == 0.0 => "–".to_owned(),
        (true, true) => format!("{} + price unknown", dollars(spend.usd)),
        (false, true) => "price unknown".to_owned(),
        (_, false) => dollars(spend.usd),
    }
}

/// Formats a count of things: "1 loop", "2 loops".
pub(crate) fn plural(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{} {noun}s", count(number)) }
}

/// Formats bytes: 812 B, 14.2 kB, 1.2 GB.
pub(crate) fn bytes(number: u64) -> String {
    let text = count(number).replace('B', "G").replace('k', " k").replace('M', " M").replace('G', " G");
    if text.contains(' ') { format!("{text}B") } else { format!("{text} B") }
}

/// Formats a duration: <1 min, 12 min, 2.5 h.
pub(crate) fn duration(minutes: f64) -> String {
    match minutes {
        m if m <= 0.0 => "–".to_owned(),
        m if m < 1.0 => "<1 min".to_owned(),
        m if m < 90.0 => format!("{m:.0} min"),
        m => format!("{:.1} h", m / 60.0),
    }
}

/// Formats a time to the minute: 2026-03-01 10:00.
pub(crate) fn minute(rfc3339: &str) -> String {
    rfc3339.get(..16).unwrap_or(rfc3339).replace('T', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1.0k"), (14_230, "14.2k"), (214_000, "214k")] {
            assert_eq!(count(number), text);
        }
        assert_eq!((count(1_240_000), count(3_100_000_000)), ("1.2M".to_owned(), "3.1B".to_owned()));
        assert_eq!(
            (bytes(12), bytes(1500), bytes(2_000_000_000)),
            ("12 B".into(), "1.5 kB".into(), "2.0 GB".into())
        );
        assert_eq!(
            (dollars(0.0), dollars(0.001), dollars(4.1)),
            ("$0.00".into(), "<$0.01".into(), "$4.10".into())
        );
        assert_eq!(minute("2026-03-01T10:00:00Z"), "2026-03-01 10:00");
        assert_eq!([0.0, 0.4, 6.2, 150.0].map(duration), ["–", "<1 min", "6 min", "2.5 h"]);
    }

    #[test]
    fn an_unknown_price_is_said() {
        let spend = |usd, unpriced_tokens, input_tokens| Spend {
            usd,
            unpriced_tokens,
            input_tokens,
            ..Spend::default()
        };
        assert_eq!(cost(&spend(0.0, 5, 5)), "price unknown");
        assert_eq!(cost(&spend(1.0, 5, 10)), "$1.00 + price unknown");
        assert_eq!(cost(&spend(1.0, 0, 5)), "$1.00");
        assert_eq!(cost(&spend(0.0, 0, 0)), "–");
    }
}
