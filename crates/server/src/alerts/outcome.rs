use std::time::Duration;

/// How often an alert is tried again grows from one second to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// What came of sending an alert. The texts are for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlertOutcome {
    /// The sink has it. Says what it answered.
    Accepted(String),
    /// It may work later.
    Retry {
        /// What went wrong.
        why: String,
        /// How long the sink asks to wait, at most an hour.
        wait: Option<Duration>,
    },
    /// It won't work: the same request would be refused again.
    Refused(String),
}

/// Returns how long to wait after this many failed attempts: 1 s, 2 s, 4 s … 10 min. `random` shortens it by up to
/// half, so that servers that failed together don't try together.
pub(super) fn pause(attempts: u32, random: u32) -> Duration {
    let whole = Duration::from_secs(1 << attempts.saturating_sub(1).min(10)).min(LONGEST_PAUSE);
    let fraction = f64::from(random) / f64::from(u32::MAX);
    whole.mul_f64(1.0 - fraction / 2.0)
}

#[cfg(test)]
mod tests {
    use super::pause;

    #[test]
    fn pauses_double_up_to_ten_minutes() {
        let seconds: Vec<u64> = (1..=12).map(|attempts| pause(attempts, 0).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]);
        assert_eq!(pause(1, u32::MAX).as_millis(), 500);
        assert_eq!(pause(u32::MAX, u32::MAX).as_secs(), 300);
        assert!(pause(3, u32::MAX / 2) < pause(3, 0));
    }
}
