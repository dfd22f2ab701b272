//! `deloop log --summary`: sums over decisions.

use std::collections::BTreeMap;
use std::io::Write;

use deloop_live::RecordedDecision;
use serde::Serialize;

use super::holdout::HoldoutReport;
use crate::exit::Failure;

/// Sums over decisions.
#[derive(Debug, Default, Serialize)]
pub(super) struct Summary {
    decisions: u64,
    sessions: usize,
    /// What was done and reached the agent, by action.
    delivered: BTreeMap<String, u64>,
    /// What was decided and not done, by why.
    not_done: BTreeMap<&'static str, u64>,
    nudges: Nudges,
    wrong: u64,
    /// The comparison with episodes in which deloop stayed silent; null without a holdout.
    holdout: Option<HoldoutReport>,
    /// Why there is no comparison.
    no_holdout: Option<&'static str>,
}

/// The messages that agents got about loops.
#[derive(Debug, Default, Serialize)]
struct Nudges {
    delivered: u64,
}

/// Why there is no rate of success without a holdout.
const NO_HOLDOUT: &str = "Whether messages help: not known, because about half of all agents leave a loop without one, and \
                          there is no holdout to compare with (`holdout = 0.1` in deloop.toml starts one)";

impl Summary {
    pub(super) fn of(rows: &[RecordedDecision]) -> Self {
        let mut summary = Self { decisions: rows.len() as u64, ..Self::default() };
        let sessions: std::collections::HashSet<&str> = rows.iter().map(|r| r.session.as_str()).collect();
        summary.sessions = sessions.len();
        for row in rows {
            summary.wrong += u64::from(row.wrong);
            let why = match (&row.held, row.action.as_str(), &row.delivered) {
                (Some(why), ..) if why == "holdout" => Some("held out"),
                (Some(_), ..) => Some("paused"),
                (None, "continue", _) => Some("shadow"),
                (None, _, None) => Some("not delivered"),
                _ => None,
            };
            if let Some(why) = why {
                *summary.not_done.entry(why).or_default() += 1;
                continue;
            }
            *summary.delivered.entry(row.action.clone()).or_default() += 1;
            // The hand-off of a retried run has no loop that the agent could leave.
            if row.action == "nudge" && row.detector.is_some() {
                summary.nudges.delivered += 1;
            }
        }
        summary.holdout = HoldoutReport::of(rows);
        summary.no_holdout = summary.holdout.is_none().then_some(NO_HOLDOUT);
        summary
    }

    pub(super) fn print(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let many = |count, what| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        writeln!(out, "{} in {}", many(self.decisions, "decision"), many(self.sessions as u64, "session"))?;
        let Nudges { delivered } = self.nudges;
        if delivered > 0 {
            writeln!(out, "{} delivered", many(delivered, "nudge"))?;
        }
        for (action, count) in self.delivered.iter().filter(|(action, _)| *action != "nudge") {
            writeln!(out, "{count} × {action} delivered")?;
        }
        for (why, count) in &self.not_done {
            writeln!(out, "{count} not carried out ({why})")?;
        }
        if self.wrong > 0 {
            writeln!(out, "{} marked as wrong", self.wrong)?;
        }
        match &self.holdout {
            Some(holdout) => holdout.print(out)?,
            None if delivered > 0 => writeln!(out, "{NO_HOLDOUT}")?,
            None => {}
        }
        Ok(())
    }
}
