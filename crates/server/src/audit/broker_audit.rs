use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use deloop_types::{Decision, Millis, SessionId};

use super::entry::AuditEntry;
use super::log::AuditLog;
use super::turn_histories::TurnHistories;
use super::turn_history::TurnForm;
use crate::broker::SentStep;
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

    /// Returns the entry for the decision about a step, if it is to be recorded. `standing` is a stop that applied
    /// before.
    pub(crate) fn entry(
        &self,
        requester: &Requester,
        sent: &SentStep<'_>,
        decision: &Decision,
        standing: bool,
        now: Millis,
    ) -> Option<AuditEntry> {
        let step = &sent.step;
        self.turns().push(&requester.project, step, sent.json);
        if standing {
            return None;
        }
        let entry = AuditEntry::of_decision(now, &requester.project, &requester.actor, step, decision)?;
        let turns = || self.turns().of(&requester.project, &step.session);
        Some(match entry.is_stop().then(turns).flatten() {
            Some(turns) => entry.with_turns(turns),
            None => entry,
        })
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
