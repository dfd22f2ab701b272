//! What a process that was killed decided and didn't record. Its steps are in the log, so the next process decides about
//! them again, and finds out what is missing in the audit log.

use std::sync::Arc;

use deloop_types::{Millis, Step};

use super::follow_up::FollowUp;
use super::judge::JudgedStep;
use crate::audit::RecordedDecision;
use crate::project::Project;
use crate::requester::Requester;
use crate::shared::ServerNotice;

/// Who sent a step isn't in the log of steps.
const SENDER: &str = "unknown, recovered at start";

/// A step that was decided about again at the start.
pub(crate) struct ReplayedStep {
    pub(crate) project: Project,
    pub(crate) step: Step,
    pub(crate) judged: JudgedStep,
    /// When it arrived.
    pub(crate) now: Millis,
}

impl FollowUp {
    /// Records the decisions that the audit log doesn't have, and tells those who must know of them.
    pub(super) fn recover(&self, replayed: &[ReplayedStep]) {
        let Some(audit) = &self.audit else { return };
        let mut entries = Vec::new();
        for replayed in replayed {
            let ReplayedStep { project, step, judged, now } = replayed;
            let sender = Requester { project: project.clone(), actor: Arc::from(SENDER), allowance: None };
            let entry = audit.entry(&sender, step, &judged.decision, judged.standing, *now);
            entries.extend(entry.map(|entry| (entry, replayed)));
        }
        let Some(since) = entries.iter().map(|(entry, _)| entry.ts).min() else { return };
        let recorded = match audit.log().recorded_since(since) {
            Ok(recorded) => recorded,
            Err(error) => return (self.tell)(ServerNotice::Failed(error.to_string())),
        };
        entries.retain(|(entry, _)| !recorded.contains(&RecordedDecision::of_entry(entry)));
        // As after a step: the alert comes first, and its key makes it one alert.
        for (_, ReplayedStep { project, step, judged, now }) in &entries {
            self.announce(project, step, judged, *now);
        }
        let entries: Vec<_> = entries.into_iter().map(|(entry, _)| entry).collect();
        audit.append(&entries);
    }
}
