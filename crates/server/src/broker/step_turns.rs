//! Whose turn it is to decide about steps.

use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use deloop_types::SessionId;
use xxhash_rust::xxh3::xxh3_64;

use super::local::lock;

/// How many locks there are for all sessions. Requests that are decided about together hold several, so there are many.
const LOCKS: usize = 1_024;

/// The steps of a session are logged in the order in which they are decided about, so that they lead to the same state when
/// they are replayed. Steps of different sessions may be decided about at the same time.
pub(super) struct StepTurns {
    all: RwLock<()>,
    sessions: Vec<Mutex<()>>,
}

impl Default for StepTurns {
    fn default() -> Self {
        Self { all: RwLock::default(), sessions: (0..LOCKS).map(|_| Mutex::default()).collect() }
    }
}

/// The turn of some sessions, or of all.
pub(super) enum StepTurn<'a> {
    Some { _sessions: Vec<MutexGuard<'a, ()>>, _all: RwLockReadGuard<'a, ()> },
    All { _all: RwLockWriteGuard<'a, ()> },
}

impl StepTurns {
    /// Waits until no other request decides about steps of these sessions.
    pub(super) fn of<'s>(&self, sessions: impl Iterator<Item = &'s SessionId>) -> StepTurn<'_> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        let mut wanted: Vec<usize> = sessions.map(|session| lock_of(session.as_str())).collect();
        // Always in the same order, or two requests could wait for each other.
        wanted.sort_unstable();
        wanted.dedup();
        let sessions = wanted.into_iter().map(|at| lock(&self.sessions[at])).collect();
        StepTurn::Some { _sessions: sessions, _all: all }
    }

    /// Waits until no other request decides about steps.
    pub(super) fn all(&self) -> StepTurn<'_> {
        StepTurn::All { _all: self.all.write().unwrap_or_else(PoisonError::into_inner) }
    }
}

fn lock_of(session: &str) -> usize {
    usize::try_from(xxh3_64(session.as_bytes()) % LOCKS as u64).unwrap_or(0)
}
