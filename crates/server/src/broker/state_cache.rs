//! States in memory, and which of them the database doesn't have yet.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use deloop_store::{StateChange, StoreError, StoredState};
use deloop_types::Millis;
use xxhash_rust::xxh3::xxh3_64;

use super::local::lock;

/// How many parts states are kept in. Each has a lock of its own, so that requests about different sessions seldom wait for
/// each other.
pub(super) const PARTS: usize = 32;
/// How many states a part keeps in memory. After a write to the database, the least recently used are dropped.
const IN_MEMORY: usize = 10_000 / PARTS;

/// Sessions or swarms in memory, by name.
pub(super) struct StateCache<T> {
    parts: Box<[Mutex<CachePart<T>>; PARTS]>,
    /// How many states the database doesn't have as they are.
    changed: AtomicUsize,
}

struct CachePart<T> {
    states: HashMap<String, CachedState<T>>,
    clock: u64,
}

/// A state in memory. `None` is one that doesn't exist, which the database may not know yet.
pub(super) struct CachedState<T> {
    pub(super) state: Option<T>,
    pub(super) updated: Millis,
    /// Whether the database has a state of it.
    stored: bool,
    changed: bool,
    used: u64,
}

impl<T> CachedState<T> {
    /// Creates one as the database has it.
    pub(super) fn stored(state: Option<T>, updated: Millis, stored: bool) -> Self {
        Self { state, updated, stored, changed: false, used: 0 }
    }

    /// Deletes the state. Returns whether it wasn't marked as changed.
    pub(super) fn delete(&mut self, now: Millis) -> ((), usize) {
        self.state = None;
        ((), self.touch(now))
    }

    /// Marks it as changed. Returns whether it wasn't.
    pub(super) fn touch(&mut self, now: Millis) -> usize {
        // A clock that was wrong for a while must not make a session look idle when it is right again.
        self.updated = self.updated.max(now);
        usize::from(!std::mem::replace(&mut self.changed, true))
    }

    /// Returns whether neither memory nor the database has a state of it.
    fn is_unknown(&self) -> bool {
        self.state.is_none() && !self.stored && !self.changed
    }
}

impl<T> Default for StateCache<T> {
    fn default() -> Self {
        let part = || Mutex::new(CachePart { states: HashMap::new(), clock: 0 });
        Self { parts: Box::new(std::array::from_fn(|_| part())), changed: AtomicUsize::new(0) }
    }
}

/// Returns the part that a name belongs to.
pub(super) fn part_of(name: &str) -> usize {
    usize::try_from(xxh3_64(name.as_bytes()) % PARTS as u64).unwrap_or(0)
}

impl<T> StateCache<T> {
    /// Runs `work` on a state, which is loaded if it isn't in memory. `work` also returns how many states it marked as changed.
    pub(super) fn with<R>(
        &self,
        name: &str,
        load: impl FnOnce() -> Result<CachedState<T>, StoreError>,
        work: impl FnOnce(&mut CachedState<T>) -> (R, usize),
    ) -> Result<R, StoreError> {
        let part = &mut *lock(&self.parts[part_of(name)]);
        part.clock += 1;
        let entry = match part.states.get_mut(name) {
            Some(entry) => entry,
            None => part.states.entry(name.to_owned()).or_insert(load()?),
        };
        entry.used = part.clock;
        let (done, changed) = work(entry);
        self.changed.fetch_add(changed, Ordering::Relaxed);
        Ok(done)
    }

    /// Drops what memory has of a state that doesn't exist, so that asking for unknown names doesn't fill it.
    pub(super) fn drop_unknown(&self, name: &str) {
        let part = &mut *lock(&self.parts[part_of(name)]);
        if part.states.get(name).is_some_and(CachedState::is_unknown) {
            part.states.remove(name);
        }
    }

    /// Returns how many states the database doesn't have as they are.
    pub(super) fn changed(&self) -> usize {
        self.changed.load(Ordering::Relaxed)
    }

    /// Returns how many states the database doesn't have yet, and how many it has that are deleted.
    pub(super) fn unsaved(&self) -> (u64, u64) {
        let (mut new, mut gone) = (0, 0);
        for part in self.parts.iter() {
            for entry in lock(part).states.values() {
                new += u64::from(entry.state.is_some() && !entry.stored);
                gone += u64::from(entry.state.is_none() && entry.stored);
            }
        }
        (new, gone)
    }

    /// Returns the changed states as text. Nobody may change one until [`Self::written`].
    pub(super) fn changes(
        &self,
        freeze: impl Fn(&T) -> Result<String, StoreError>,
    ) -> Result<Vec<StateChange>, StoreError> {
        let mut changes = Vec::new();
        for part in self.parts.iter() {
            for (name, entry) in lock(part).states.iter().filter(|(_, entry)| entry.changed) {
                let text = entry.state.as_ref().map(&freeze).transpose()?;
                let state = text.map(|text| StoredState { updated: entry.updated, text });
                changes.push(StateChange { name: name.clone(), state });
            }
        }
        Ok(changes)
    }

    /// Notes that the database has all changes, and drops states that aren't used if there are many.
    pub(super) fn written(&self) {
        for part in self.parts.iter() {
            let states = &mut lock(part).states;
            for entry in states.values_mut() {
                (entry.stored, entry.changed) = (entry.state.is_some(), false);
            }
            forget_unused(states);
        }
        self.changed.store(0, Ordering::Relaxed);
    }

    /// Drops what changed since the last write to the database.
    pub(super) fn undo(&self) {
        self.parts.iter().for_each(|part| lock(part).states.retain(|_, entry| !entry.changed));
        self.changed.store(0, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.parts.iter().map(|part| lock(part).states.len()).sum()
    }
}

/// Drops the least recently used quarter of the states if there are too many.
fn forget_unused<T>(states: &mut HashMap<String, CachedState<T>>) {
    if states.len() <= IN_MEMORY {
        return;
    }
    let mut used: Vec<u64> = states.values().map(|entry| entry.used).collect();
    let at = used.len() - IN_MEMORY * 3 / 4;
    let (_, oldest, _) = used.select_nth_unstable(at);
    let oldest = *oldest;
    states.retain(|_, entry| entry.used >= oldest);
}
