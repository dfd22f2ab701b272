use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use deloop_types::{Millis, SessionId};
use serde_json::json;

use super::entry::AuditEntry;
use super::log::AuditLog;
use super::turn_histories::TurnHistories;
use super::turn_history::TurnForm;
use crate::broker::{JudgedStep, SentStep};
use crate::requester::Requester;

/// What a broker records, and the turns it needs for that.
pub(crate) struct BrokerAudit {
    log: Arc<AuditLog>,
    turns: Mutex<TurnHistories>,
}

impl BrokerAudit {
    pub(crate) fn new(log: Arc<AuditLog>, form: TurnForm) -> Self {
        Self { log, turns: Mutex::new(TurnHistories::new(form)) }
    }

    pub(crate) fn log(&self) -> &Arc<AuditLog> {
        &self.log
    }

    /// Returns the entries for the decisions about steps that are to be recorded. A stop that applied before isn't.
    pub(crate) fn entries(
        &self,
        requester: &Requester,
        steps: &[SentStep<'_>],
        decided: &[JudgedStep],
        now: Millis,
    ) -> Vec<AuditEntry> {
        let Requester { project, actor, .. } = requester;
        let mut turns = self.turns();
        let mut entries = Vec::new();
        for (sent, decided) in steps.iter().zip(decided) {
            if sent.is_refused() || decided.is_refused() {
                continue;
            }
            let step = &sent.step;
            turns.push(project, step, sent.json);
            if decided.lifted {
                entries.push(AuditEntry::of_lifting_step(now, requester, step, decided.decision.step));
            }
            if let Some(reported) = decided.reported_usd {
                let detail = json!({"reported_usd": reported, "counted_usd": reported - sent.over_usd});
                let entry = AuditEntry::new(now, actor, "usage.over_limit").in_project(project);
                entries.push(entry.of_session(&step.session).with_detail(detail));
            }
            if decided.standing {
                continue;
            }
            let entry = AuditEntry::of_decision(now, project, actor, step, &decided.decision);
            entries.extend(entry.map(|entry| {
                match entry.is_stop().then(|| turns.of(project, &step.session)).flatten() {
                    Some(turns) => entry.with_turns(turns),
                    None => entry,
                }
            }));
        }
        entries
    }

    /// Writes entries. What can't be written is counted by the log, and the request goes on.
    pub(crate) fn append(&self, entries: &[AuditEntry]) {
        let _ = self.log.append(entries);
    }

    /// Forgets the turns of a session.
    pub(crate) fn forget(&self, requester: &Requester, session: &SessionId) {
        self.turns().forget(&requester.project, session);
    }

    fn turns(&self) -> MutexGuard<'_, TurnHistories> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
