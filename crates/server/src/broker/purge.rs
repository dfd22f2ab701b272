use deloop_store::{Store, StoreError};
use deloop_types::{Millis, SessionId};

use super::Broker;
use crate::audit::LiftedBy;
use crate::requester::Requester;

/// What a purge deleted.
pub(crate) struct Purged {
    /// Whether there was a session.
    pub(crate) existed: bool,
    /// How many records of the audit log were about it.
    pub(crate) records: u64,
}

impl Broker {
    /// Deletes a session and what the audit log says about it, for good. Returns whether there was anything.
    pub(crate) fn purge(
        &self,
        requester: &Requester,
        session: &SessionId,
        now: Millis,
    ) -> Result<Purged, StoreError> {
        let existed = self.change(&requester.project, now, |view| {
            let was_stopped = view.see(&self.judge.engine, session, |state| state.session.is_stopped())?;
            view.forget(session)?;
            Ok::<_, StoreError>(was_stopped)
        })?;
        if existed == Some(true) {
            self.follow_up.lifted(requester, session, LiftedBy::Purge, now);
        }
        let existed = existed.is_some();
        self.follow_up.forget(requester, session);
        let records = match self.audit_log() {
            Some(log) => log
                .purge(&requester.project, session, &requester.actor, now)
                .map_err(|error| StoreError::encode(error.to_string()))?,
            None => 0,
        };
        Ok(Purged { existed, records })
    }
}
