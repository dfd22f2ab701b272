use deloop_types::{Body, Millis, Origin, Step};
use serde::{Deserialize, Serialize};

/// The longest pause between two steps that counts in full, in milliseconds. Of a longer one, this much counts: a
/// machine that sleeps and a permission that nobody answers aren't work, and one pause in 260 is longer.
pub const LONGEST_PAUSE: u64 = 10 * 60_000;

/// The time in which a session did something: the pauses between its steps, without those that ended when a person
/// wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ActiveTime {
    /// The active time so far, in milliseconds.
    pub ms: u64,
    /// The time of the latest step that counts.
    #[cfg_attr(feature = "schema", schemars(with = "Option<i64>"))]
    pub last: Option<Millis>,
}

impl ActiveTime {
    /// Adds the pause before a step. Only steps that happen at a time of their own count: hooks learn of usage with the
    /// next event, which may be a person's message hours later.
    ///
    /// ```
    /// use deloop_detect::ActiveTime;
    /// let mut active = ActiveTime::default();
    /// for (text, by, hour) in [("Fix it.", "human", 9), ("Done.", "", 10), ("Thanks!", "human", 23)] {
    ///     let kind = if by.is_empty() { "turn" } else { "user" };
    ///     let line = format!(r#"{{"type":"{kind}","text":"{text}","origin":"human","ts":"2026-01-01T{hour:02}:00:00Z"}}"#);
    ///     active.enter(&line.parse().unwrap());
    /// }
    /// assert_eq!(active.minutes(), 10.0);
    /// ```
    pub fn enter(&mut self, step: &Step) {
        let waited = match &step.body {
            Body::User(user) => user.origin == Origin::Human,
            Body::Turn(_) | Body::Result(_) | Body::Chunk(_) | Body::Compact => false,
            _ => return,
        };
        let Some(ts) = step.ts else { return };
        if let Some(last) = self.last.filter(|last| *last < ts && !waited) {
            self.ms = self.ms.saturating_add(ts.since(last).min(LONGEST_PAUSE));
        }
        self.last = Some(self.last.map_or(ts, |last| last.max(ts)));
    }

    /// Returns the active time in minutes.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "minutes need no more")]
    pub fn minutes(&self) -> f64 {
        self.ms as f64 / 60_000.0
    }
}
