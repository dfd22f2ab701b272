use deloop_types::Millis;

const DAY: i64 = 24 * 3_600_000;

/// A day in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct UtcDay(i64);

impl UtcDay {
    pub(crate) fn of(time: Millis) -> Self {
        Self(time.0.div_euclid(DAY))
    }

    /// Reads a date such as `2026-11-15`.
    pub(crate) fn parse(date: &str) -> Option<Self> {
        let day = (date.len() == 10).then(|| Millis::parse(&format!("{date}T00:00:00Z")))?;
        day.map(Self::of)
    }

    /// Returns the date as `2026-11-15`.
    pub(crate) fn date(self) -> String {
        self.start().to_string().chars().take(10).collect()
    }

    /// Returns the first moment of the day.
    pub(crate) fn start(self) -> Millis {
        Millis(self.0.saturating_mul(DAY))
    }

    /// Returns the day this many days later.
    pub(crate) fn plus(self, days: i64) -> Self {
        Self(self.0.saturating_add(days))
    }

    /// Returns the Monday that starts the day's week. Day 0 of the count was a Thursday.
    pub(crate) fn monday(self) -> Self {
        Self(self.0 - (self.0 + 3).rem_euclid(7))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_weeks_are_those_of_utc() {
        let day = |time: &str| UtcDay::of(Millis::parse(time).unwrap());
        assert_eq!(day("2026-11-15T23:59:59.999Z").date(), "2026-11-15");
        assert_eq!(day("2026-11-16T00:30:00+02:00").date(), "2026-11-15");
        assert_eq!(day("2026-11-15T12:00:00Z").monday().date(), "2026-11-09");
        assert_eq!(day("2026-11-16T00:00:00Z").monday().date(), "2026-11-16");
        assert_eq!(UtcDay::parse("2026-11-15"), Some(day("2026-11-15T07:00:00Z")));
        assert_eq!(UtcDay::parse("2026-12-31").map(|day| day.plus(1).date()), Some("2027-01-01".to_owned()));
        for wrong in ["", "2026-11-31", "15.11.2026", "2026-11-15T00", "yesterday!"] {
            assert_eq!(UtcDay::parse(wrong), None, "{wrong}");
        }
    }
}
