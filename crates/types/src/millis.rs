use serde::{Deserialize, Serialize};

/// A point in time, in milliseconds since 1970-01-01 UTC. Time comes from Steps;
/// the engine never reads a clock.
///
/// ```
/// use deloop_types::Millis;
/// assert_eq!(Millis::parse("1970-01-01T00:00:01Z"), Some(Millis(1000)));
/// assert_eq!(Millis(1000).to_string(), "1970-01-01T00:00:01Z");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub i64);

impl Millis {
    /// Parses RFC 3339.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        text.parse::<jiff::Timestamp>().ok().map(|t| Self(t.as_millisecond()))
    }

    /// Returns the time since `earlier`, or zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }
}

impl std::fmt::Display for Millis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(time) => time.fmt(f),
            Err(_) => self.0.fmt(f),
        }
    }
}
