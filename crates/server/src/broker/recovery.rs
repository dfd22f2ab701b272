//! What a process that was killed decided and didn't record. With a database, its steps are in the log, so the next process
//! decides about them again, and finds out what is missing in the audit log. In Redis, a session that was stopped has the
//! events of that until they are announced.

use deloop_store::StoreError;
use deloop_types::{Action, Millis, Step};

use super::follow_up::FollowUp;
use super::judge::JudgedStep;
use super::{Broker, SentStep};
use crate::audit::DecisionIdentity;
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

impl Broker {
    /// Records what a process that was killed decided and didn't record, and raises its alerts. Call it once, before the
    /// first request.
    pub(crate) fn recover(&mut self, now: Millis) {
        let replayed = std::mem::take(&mut self.replayed);
        if replayed.is_empty() {
            return;
        }
        if !self.off {
            self.follow_up.recover(&replayed);
        }
        // If this fails, the steps are still in the log.
        if let Err(error) = self.write_back(now) {
            (self.tell)(ServerNotice::Failed(error.to_string()));
        }
    }

    /// Notes that new stops were announced, so that no other server does.
    pub(super) fn announced(
        &self,
        requester: &Requester,
        decided: &[JudgedStep],
        now: Millis,
    ) -> Result<(), StoreError> {
        let is_new = |d: &&JudgedStep| d.decision.action == Action::Stop && !d.standing;
        if !decided.iter().any(|decided| is_new(&decided)) {
            return Ok(());
        }
        self.change(&requester.project, now, |view| {
            for JudgedStep { decision, .. } in decided.iter().filter(is_new) {
                // It may have been reset in between.
                if view.see(&self.judge.engine, &decision.session, |_| ())?.is_some() {
                    view.change(&self.judge.engine, &decision.session, |state| state.extras.announced())?;
                }
            }
            Ok(())
        })
    }
}

impl FollowUp {
    /// Records the decisions that the audit log doesn't have, and tells those who must know of them.
    pub(super) fn recover(&self, replayed: &[ReplayedStep]) {
        let Some(audit) = &self.audit else { return };
        let mut entries = Vec::new();
        for replayed in replayed {
            let ReplayedStep { project, step, judged, now } = replayed;
            let sender = Requester::without_key(project.clone(), SENDER);
            let json = serde_json::to_vec(step).unwrap_or_default();
            let sent = SentStep::new(step.clone(), &json);
            let entry = audit.entries(&sender, &[sent], std::slice::from_ref(judged), *now);
            entries.extend(entry.into_iter().map(|entry| (entry, replayed)));
        }
        let Some(since) = entries.iter().map(|(entry, _)| entry.ts).min() else { return };
        let recorded = match audit.log().recorded_since(since) {
            Ok(recorded) => recorded,
            Err(error) => return (self.tell)(ServerNotice::Failed(error.to_string())),
        };
        entries.retain(|(entry, _)| !recorded.contains(&DecisionIdentity::of_entry(entry)));
        // As after a step: the alert comes first, and its key makes it one alert.
        for (_, ReplayedStep { project, step, judged, now }) in &entries {
            self.announce(project, step, judged, *now);
        }
        let entries: Vec<_> = entries.into_iter().map(|(entry, _)| entry).collect();
        audit.append(&entries);
    }
}
