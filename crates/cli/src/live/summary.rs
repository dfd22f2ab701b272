//! `deloop log --summary`: sums over decisions.

use std::collections::BTreeMap;
use std::io::Write;

use deloop_live::RecordedDecision;
use serde::Serialize;

use crate::exit::Failure;
use deloop_live::TURNS;

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
}

/// What agents did after they were told.
#[derive(Debug, Default, Serialize)]
struct Nudges {
    delivered: u64,
    left: u64,
    continued: u64,
    ended: u64,
    unknown: u64,
    /// It is too early to tell.
    open: u64,
}

impl Summary {
    pub(super) fn of(rows: &[RecordedDecision]) -> Self {
        let mut summary = Self { decisions: rows.len() as u64, ..Self::default() };
        let sessions: std::collections::HashSet<&str> = rows.iter().map(|r| r.session.as_str()).collect();
        summary.sessions = sessions.len();
        for row in rows {
            summary.wrong += u64::from(row.wrong);
            let why = match (&row.held, row.action.as_str(), &row.delivered) {
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
                let sum = match row.outcome.as_deref() {
                    Some("left") => &mut summary.nudges.left,
                    Some("continued") => &mut summary.nudges.continued,
                    Some("ended") => &mut summary.nudges.ended,
                    Some(_) => &mut summary.nudges.unknown,
                    None => &mut summary.nudges.open,
                };
                *sum += 1;
            }
        }
        summary
    }

    pub(super) fn print(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let many = |count, what| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        writeln!(out, "{} in {}", many(self.decisions, "decision"), many(self.sessions as u64, "session"))?;
        let Nudges { delivered, left, continued, ended, unknown, open } = self.nudges;
        if delivered > 0 {
            write!(out, "{delivered} nudges delivered: {left} left the loop within {TURNS} turns")?;
            let others = [
                (continued, "continued it"),
                (ended, "ended their turn"),
                (unknown, "unknown"),
                (open, "too early to tell"),
            ];
            for (count, what) in others.into_iter().filter(|(count, _)| *count > 0) {
                write!(out, ", {count} {what}")?;
            }
            writeln!(out)?;
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
        Ok(())
    }
}
