use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use deloop_types::{Millis, SessionId};

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
        let entry = |(sent, decided): (&SentStep<'_>, &JudgedStep)| {
            if sent.is_refused() {
                return None;
            }
            turns.push(project, &sent.step, sent.json);
            if decided.standing {
                return None;
            }
            let entry = AuditEntry::of_decision(now, project, actor, &sent.step, &decided.decision)?;
            match entry.is_stop().then(|| turns.of(project, &sent.step.session)).flatten() {
                Some(turns) => Some(entry.with_turns(turns)),
                None => Some(entry),
            }
        };
        steps.iter().zip(decided).filter_map(entry).collect()
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
