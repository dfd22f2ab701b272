//! Whose turn it is to decide about steps.

use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use deloop_types::SessionId;

use super::local::lock;
use super::state_cache::{PARTS, part_of};

/// The steps of a session are logged in the order in which they are decided about, so that they lead to the same state when
/// they are replayed. Steps of different sessions may be decided about at the same time.
#[derive(Default)]
pub(super) struct StepTurns {
    all: RwLock<()>,
    parts: Box<[Mutex<()>; PARTS]>,
}

/// The turn of some sessions, or of all.
pub(super) enum StepTurn<'a> {
    Some { _parts: Vec<MutexGuard<'a, ()>>, _all: RwLockReadGuard<'a, ()> },
    All { _all: RwLockWriteGuard<'a, ()> },
}

impl StepTurns {
    /// Waits until no other request decides about steps of these sessions.
    pub(super) fn of<'s>(&self, sessions: impl Iterator<Item = &'s SessionId>) -> StepTurn<'_> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        let mut wanted = [false; PARTS];
        sessions.for_each(|session| wanted[part_of(session.as_str())] = true);
        // Always in the same order, or two requests could wait for each other.
        let parts = self.parts.iter().zip(wanted).filter(|(_, wanted)| *wanted).map(|(part, _)| lock(part));
        StepTurn::Some { _parts: parts.collect(), _all: all }
    }

    /// Waits until no other request decides about steps.
    pub(super) fn all(&self) -> StepTurn<'_> {
        StepTurn::All { _all: self.all.write().unwrap_or_else(PoisonError::into_inner) }
    }
}
