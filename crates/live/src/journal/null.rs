use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use deloop_detect::UsageAmounts;
use deloop_store::StoreError;
use deloop_types::{Decision, Millis};

use crate::DayUsage;

use super::{DecisionOrigin, Journal, Pardon, SessionSource};

/// Number of sessions whose delivery state is kept.
const SESSIONS: usize = 1024;

/// Records nothing. Delivery state is kept in memory, so that messages still reach their agents.
#[derive(Debug, Default)]
pub struct NullJournal {
    states: Mutex<HashMap<String, (Millis, String)>>,
}

impl NullJournal {
    fn states(&self) -> std::sync::MutexGuard<'_, HashMap<String, (Millis, String)>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Journal for NullJournal {
    fn atomically<R>(&self, work: impl FnOnce() -> Result<R, StoreError>) -> Result<R, StoreError> {
        work()
    }

    fn called(&self, _: &str, _: Millis) -> Result<(), StoreError> {
        Ok(())
    }

    fn note_source(&self, _: &SessionSource, _: Millis) -> Result<(), StoreError> {
        Ok(())
    }

    fn session_state(&self, session: &str, _: Millis) -> Result<Option<String>, StoreError> {
        Ok(self.states().get(session).map(|(_, state)| state.clone()))
    }

    fn set_session_state(&self, session: &str, now: Millis, state: &str) -> Result<(), StoreError> {
        let mut states = self.states();
        if states.len() >= SESSIONS && !states.contains_key(session) {
            let oldest = states.iter().min_by_key(|(_, (at, _))| *at).map(|(name, _)| name.clone());
            oldest.and_then(|name| states.remove(&name));
        }
        states.insert(session.to_owned(), (now, state.to_owned()));
        Ok(())
    }

    fn record(&self, _: &Decision, _: &DecisionOrigin<'_>) -> Result<(), StoreError> {
        Ok(())
    }

    fn delivered(&self, _: &str, _: &str) -> Result<(), StoreError> {
        Ok(())
    }

    fn came_of(&self, _: &str, _: &str) -> Result<(), StoreError> {
        Ok(())
    }

    fn paused(&self, _: &str, _: Millis) -> Result<Option<Millis>, StoreError> {
        Ok(None)
    }

    fn pardons(&self, _: &str) -> Result<Vec<Pardon>, StoreError> {
        Ok(Vec::new())
    }

    fn pardons_known(&self, _: &str) -> Result<(), StoreError> {
        Ok(())
    }

    fn allowed(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    fn add_usage(&self, project: &str, _: i64, used: &UsageAmounts) -> Result<DayUsage, StoreError> {
        Ok(DayUsage { project: project.to_owned(), used: *used, raises: 0 })
    }

    fn raise_day(&self, _: &str, _: i64) -> Result<(), StoreError> {
        Ok(())
    }
}
