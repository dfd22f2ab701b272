//! Which turns a finding is about: the one at which it was made, and those before it that a detector counted without
//! reporting them yet.

use std::collections::VecDeque;

use deloop_detect::{CallRecord, Ending, ToolKind};
use deloop_types::{CameBack, Finding, Repeats};

use super::turns::SessionTurns;

/// How many calls are remembered; detectors look back no further.
const CALLS: usize = 48;

/// The latest calls of an agent that came back, each with the number of its turn.
#[derive(Debug, Default)]
pub(super) struct RecentCalls(VecDeque<(u32, CallRecord)>);

impl RecentCalls {
    pub(super) fn push(&mut self, turn: u32, record: CallRecord) {
        if self.0.len() == CALLS {
            self.0.pop_front();
        }
        self.0.push_back((turn, record));
    }
}

/// Where a finding was made.
pub(super) struct FindingSite<'a> {
    pub(super) turns: &'a SessionTurns,
    pub(super) recent: &'a RecentCalls,
    pub(super) agent: u16,
    /// The agent's turn.
    pub(super) turn: u32,
    /// The turn at which the pattern began.
    pub(super) since: u32,
    /// The latest turn that is known to be an occurrence; 0 if none is.
    pub(super) known: u32,
    /// The call that came back; `None` if the finding was made at a turn or a call.
    pub(super) record: Option<&'a CallRecord>,
}

/// Returns the numbers of the turns after the known ones in which what was found occurs, newest first.
pub(super) fn occurrences(finding: &Finding, site: &FindingSite<'_>) -> Vec<u32> {
    let count = usize::try_from(finding.count).unwrap_or(usize::MAX);
    let mut turns = vec![site.turn];
    if let Some(record) = site.record {
        let unknown = site.recent.0.iter().rev().take_while(|(turn, _)| *turn > site.known);
        for (turn, other) in unknown {
            if *turn >= site.since && is_occurrence(finding, record, other) && turns.last() != Some(turn) {
                turns.push(*turn);
            }
        }
        turns.truncate(count.max(1));
        return turns;
    }
    // From its first report on, every occurrence is reported.
    if site.known >= site.since {
        return turns;
    }
    // What is found at a call or a turn mostly comes in a row. Where there is more in between than was counted, only
    // its first turn is known. Patterns without a number don't count the first.
    let counted = finding.count * u64::from(finding.period.max(1)) + u64::from(finding.evidence.pattern == 0);
    let row: Vec<u32> = site.turns.between(site.agent, site.since, site.turn).collect();
    if row.len() as u64 <= counted {
        turns = row;
        turns.reverse();
    } else {
        turns.push(site.since);
    }
    turns
}

/// Returns whether `other` is one of the calls that a finding about `record` counts.
fn is_occurrence(finding: &Finding, record: &CallRecord, other: &CallRecord) -> bool {
    let in_vain = other.ending.in_vain();
    match finding.repeats {
        Repeats::Everything => other.progress.nothing_new(),
        Repeats::Failure if finding.outcome == Some(CameBack::SameFailure) => {
            in_vain && other.failure == record.failure
        }
        Repeats::Failure => in_vain,
        Repeats::Commands => in_vain && other.kind == record.kind,
        Repeats::Tests => in_vain && other.tests,
        Repeats::Variants => in_vain && other.tool == record.tool && other.failure == record.failure,
        Repeats::Search => {
            other.ending == Ending::Empty && (other.tool, other.program) == (record.tool, record.program)
        }
        Repeats::Edit => other.kind == ToolKind::Write && other.tool == record.tool,
        _ => other.signature == record.signature,
    }
}
