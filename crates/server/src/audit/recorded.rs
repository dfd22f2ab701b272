//! Which decisions a log has.

use std::collections::HashSet;

use deloop_types::Millis;

use super::entry::AuditEntry;
use super::lift::is_lift;
use super::line::{AuditRecord, LineParts};
use super::log::{AuditError, AuditLog};
use super::segments::{self, Segment};

/// Identifies a decision in a log, or a step that lifted a stop.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct DecisionIdentity {
    project: Option<String>,
    session: Option<String>,
    step: Option<u64>,
    ts: String,
}

impl DecisionIdentity {
    /// Returns what identifies the decision of an entry.
    pub(crate) fn of_entry(entry: &AuditEntry) -> Self {
        Self {
            project: entry.project.as_ref().map(ToString::to_string),
            session: entry.session.as_ref().map(ToString::to_string),
            step: entry.steps.map(|steps| steps.last),
            ts: entry.ts.to_string(),
        }
    }

    fn of_record(record: AuditRecord) -> Self {
        let AuditRecord { project, session, steps, ts, .. } = record;
        Self { project, session, step: steps.map(|steps| steps.last), ts }
    }
}

impl AuditLog {
    /// Returns the decisions recorded since then. Reads the newest files, as far back as it must.
    pub(crate) fn recorded_since(&self, since: Millis) -> Result<HashSet<DecisionIdentity>, AuditError> {
        let mut found = HashSet::new();
        let segments = segments::list(&self.folder).map_err(|source| AuditError::io(&self.folder, source))?;
        for segment in segments.iter().rev() {
            let is_older =
                read(segment, since, &mut found).map_err(|source| AuditError::io(&segment.path, source))?;
            if is_older {
                break;
            }
        }
        Ok(found)
    }
}

/// Reads the decisions of a segment. Returns whether it starts before `since`.
fn read(segment: &Segment, since: Millis, found: &mut HashSet<DecisionIdentity>) -> std::io::Result<bool> {
    let (mut lines, mut line, mut first) = (segment.lines()?, Vec::new(), None);
    while lines.next(&mut line)? {
        let Some(record) = LineParts::of(&line).and_then(|parts| parts.record()) else { continue };
        first = first.or(record.time());
        if record.decision.is_some() || is_lift(&record.action) {
            found.insert(DecisionIdentity::of_record(record));
        }
    }
    Ok(first.is_some_and(|first| first < since))
}
