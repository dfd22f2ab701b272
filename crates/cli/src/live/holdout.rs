//! Whether messages help: episodes in which the agent got one, compared with those of the holdout.

use std::collections::HashSet;
use std::io::Write;

use deloop_live::{RecordedDecision, TURNS};
use serde::Serialize;

use crate::exit::Failure;

/// Number of episodes on each side below which nothing is concluded.
const ENOUGH: u64 = 20;
/// The quantile of the normal distribution for intervals of 95 %.
const Z: f64 = 1.959_963_984_540_054;

/// The comparison of episodes with and without a message.
#[derive(Debug, Default, Serialize)]
pub(super) struct HoldoutReport {
    /// Number of turns within which an agent must leave the loop.
    within_turns: u32,
    /// Whether both sides have enough episodes. Without that, there are no rates.
    known: bool,
    message: HoldoutFigures,
    holdout: HoldoutFigures,
    /// The rate with a message minus the rate without.
    difference: Option<RateInterval>,
}

/// The episodes on one side.
#[derive(Debug, Default, Serialize)]
struct HoldoutFigures {
    /// Episodes that count: it is known whether the agent left the loop.
    episodes: u64,
    /// Those in which the agent left the loop, or ended its turn, within the turns.
    exits: u64,
    /// Episodes that don't count: a person wrote, or it is too early to tell.
    not_counted: u64,
    rate: Option<RateInterval>,
}

/// A rate, or a difference of rates, with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct RateInterval {
    estimate: f64,
    low: f64,
    high: f64,
}

impl HoldoutReport {
    /// Compares the episodes of these decisions, oldest first. `None` if no episode belongs to a side: there is no holdout.
    pub(super) fn of(rows: &[RecordedDecision]) -> Option<Self> {
        let mut report = Self { within_turns: TURNS, ..Self::default() };
        let mut known = HashSet::new();
        for row in rows {
            let figures = match (row.side.as_deref(), &row.delivered) {
                (Some("holdout"), _) => &mut report.holdout,
                (Some("message"), Some(_)) if row.action == "nudge" => &mut report.message,
                _ => continue,
            };
            // Later messages of an episode go to agents that didn't leave after the first.
            if !known.insert((&row.session, &row.subagent, row.episode)) {
                continue;
            }
            match row.outcome.as_deref() {
                Some("left" | "ended") => {
                    figures.episodes += 1;
                    figures.exits += 1;
                }
                Some("continued") => figures.episodes += 1,
                _ => figures.not_counted += 1,
            }
        }
        if known.is_empty() {
            return None;
        }
        report.known = report.message.episodes.min(report.holdout.episodes) >= ENOUGH;
        if report.known {
            let [message, holdout] = [&report.message, &report.holdout].map(HoldoutFigures::interval);
            report.difference = Some(message.minus(holdout));
            (report.message.rate, report.holdout.rate) = (Some(message), Some(holdout));
        }
        Some(report)
    }

    pub(super) fn print(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let (message, holdout) = (&self.message, &self.holdout);
        let (Some(with), Some(without), Some(difference)) = (message.rate, holdout.rate, self.difference)
        else {
            writeln!(
                out,
                "Whether messages help: not known yet. {} episodes with a message and {} held out count; {ENOUGH} of each are needed",
                message.episodes, holdout.episodes
            )?;
            return Ok(());
        };
        writeln!(out, "Agents that left the loop within {TURNS} turns (95 % intervals):")?;
        for (what, figures, rate) in
            [("with a message", message, with), ("without (held out)", holdout, without)]
        {
            let RateInterval { estimate, low, high } = rate.percent();
            writeln!(
                out,
                "  {what}: {} of {}, {estimate:.0} % ({low:.0} to {high:.0} %)",
                figures.exits, figures.episodes
            )?;
        }
        let RateInterval { estimate, low, high } = difference.percent();
        let unclear = match low <= 0.0 && high >= 0.0 {
            true => "; this includes 0, so it isn't known whether messages help",
            false => "",
        };
        writeln!(out, "  difference: {estimate:+.0} points ({low:+.0} to {high:+.0}){unclear}")?;
        let left_out = message.not_counted + holdout.not_counted;
        if left_out > 0 {
            writeln!(out, "  not counted: {left_out} (a person wrote first, or it is too early to tell)")?;
        }
        Ok(())
    }
}

impl HoldoutFigures {
    /// Returns the rate of exits with its Wilson score interval.
    #[expect(clippy::cast_precision_loss, reason = "counts of episodes")]
    fn interval(&self) -> RateInterval {
        let (n, estimate) = (self.episodes as f64, self.exits as f64 / self.episodes as f64);
        let z2 = Z * Z;
        let centre = (estimate + z2 / (2.0 * n)) / (1.0 + z2 / n);
        let half = Z / (1.0 + z2 / n) * (estimate * (1.0 - estimate) / n + z2 / (4.0 * n * n)).sqrt();
        RateInterval { estimate, low: (centre - half).max(0.0), high: (centre + half).min(1.0) }
    }
}

impl RateInterval {
    /// Returns the difference of two independent rates with an interval made of theirs (Newcombe's hybrid score method).
    fn minus(self, other: Self) -> Self {
        let estimate = self.estimate - other.estimate;
        let below = (self.estimate - self.low).hypot(other.high - other.estimate);
        let above = (self.high - self.estimate).hypot(other.estimate - other.low);
        Self { estimate, low: estimate - below, high: estimate + above }
    }

    fn percent(self) -> Self {
        let Self { estimate, low, high } = self;
        Self { estimate: 100.0 * estimate, low: 100.0 * low, high: 100.0 * high }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Newcombe (1998), Statistics in Medicine 17: 56/70 and 48/80, method 10.
    #[test]
    fn intervals_are_those_of_the_literature() {
        let figures =
            |exits, episodes| HoldoutFigures { episodes, exits, ..HoldoutFigures::default() }.interval();
        let near = |a: f64, b: f64| (a - b).abs() < 0.000_06;
        let one = figures(81, 263);
        assert!(near(one.low, 0.2553) && near(one.high, 0.3662), "{one:?}");
        let difference = figures(56, 70).minus(figures(48, 80));
        assert!(near(difference.low, 0.0524) && near(difference.high, 0.3339), "{difference:?}");
        let none = figures(0, 20);
        assert!(none.low == 0.0 && near(none.high, 0.1611), "{none:?}");
    }
}
