//! States in memory, and which of them the database doesn't have yet.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use deloop_store::{StateChange, StoreError, StoredState};
use deloop_types::Millis;
use xxhash_rust::xxh3::xxh3_64;

use super::local::lock;

/// How many parts states are kept in. Each has a lock of its own, so that requests about different sessions seldom wait for
/// each other.
const PARTS: usize = 32;
/// How many states a part keeps in memory. After a write to the database, the least recently used are dropped.
const IN_MEMORY: usize = 10_000 / PARTS;

/// Sessions or swarms in memory, by name.
pub(super) struct StateCache<T> {
    parts: Box<[Mutex<CachePart<T>>; PARTS]>,
    /// How many states the database doesn't have as they are.
    changed: AtomicUsize,
    /// The number of [cuts](Self::cut) so far.
    cuts: AtomicU64,
    /// Whether what had changed at the last cut is being written.
    is_writing: AtomicBool,
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
    /// After which cut it changed, if the database doesn't have it as it is.
    changed: Option<u64>,
    /// As it was at the last cut, if it was to be written then and has changed since.
    at_cut: Option<StateAtCut<T>>,
    used: u64,
}

/// A state that is to be written, but isn't the newest any more.
enum StateAtCut<T> {
    /// The next state is made from it, so it was turned into text.
    Changed(Option<StoredState>),
    Deleted(Option<T>, Millis),
}

impl<T> CachedState<T> {
    /// Creates one as the database has it.
    pub(super) fn stored(state: Option<T>, updated: Millis, stored: bool) -> Self {
        Self { state, updated, stored, changed: None, at_cut: None, used: 0 }
    }

    /// Returns whether neither memory nor the database has a state of it.
    fn is_unknown(&self) -> bool {
        self.state.is_none() && !self.stored && self.changed.is_none()
    }

    /// Returns whether it was to be written at this cut and hasn't changed since.
    fn is_due(&self, cut: u64) -> bool {
        self.changed.is_some_and(|changed| changed < cut)
    }

    /// Returns it as it is to be written, unless it wasn't changed at this cut.
    fn to_write(
        &self,
        cut: u64,
        freeze: &impl Fn(&T) -> Result<String, StoreError>,
    ) -> Option<Result<Option<StoredState>, StoreError>> {
        if self.is_due(cut) {
            return Some(frozen(self.state.as_ref(), self.updated, freeze));
        }
        self.at_cut.as_ref().map(|at_cut| match at_cut {
            StateAtCut::Changed(state) => Ok(state.clone()),
            StateAtCut::Deleted(state, updated) => frozen(state.as_ref(), *updated, freeze),
        })
    }

    /// Marks it as changed after this cut. Returns whether it wasn't changed before.
    fn touch(&mut self, cut: u64, now: Millis) -> bool {
        // A clock that was wrong for a while must not make a session look idle when it is right again.
        self.updated = self.updated.max(now);
        self.changed.replace(cut).is_none()
    }
}

fn frozen<T>(
    state: Option<&T>,
    updated: Millis,
    freeze: &impl Fn(&T) -> Result<String, StoreError>,
) -> Result<Option<StoredState>, StoreError> {
    let text = state.map(freeze).transpose()?;
    Ok(text.map(|text| StoredState { updated, text }))
}

impl<T> Default for StateCache<T> {
    fn default() -> Self {
        let part = || Mutex::new(CachePart { states: HashMap::new(), clock: 0 });
        Self {
            parts: Box::new(std::array::from_fn(|_| part())),
            changed: AtomicUsize::new(0),
            cuts: AtomicU64::new(0),
            is_writing: AtomicBool::new(false),
        }
    }
}

/// Returns the part that a name belongs to.
fn part_of(name: &str) -> usize {
    usize::try_from(xxh3_64(name.as_bytes()) % PARTS as u64).unwrap_or(0)
}

impl<T> StateCache<T> {
    /// Runs `work` on a state, which is loaded if it isn't in memory. `work` must not change it; see [`Self::change`].
    pub(super) fn with<R>(
        &self,
        name: &str,
        load: impl FnOnce() -> Result<CachedState<T>, StoreError>,
        work: impl FnOnce(&mut CachedState<T>) -> R,
    ) -> Result<R, StoreError> {
        let part = &mut *lock(&self.parts[part_of(name)]);
        part.clock += 1;
        let entry = match part.states.get_mut(name) {
            Some(entry) => entry,
            None => part.states.entry(name.to_owned()).or_insert(load()?),
        };
        entry.used = part.clock;
        Ok(work(entry))
    }

    /// Runs `change` on a state, in the turn of its steps. `freeze` returns a state as the database has it.
    pub(super) fn change<R>(
        &self,
        name: &str,
        now: Millis,
        load: impl FnOnce() -> Result<CachedState<T>, StoreError>,
        freeze: impl Fn(&T) -> Result<String, StoreError>,
        change: impl FnOnce(&mut CachedState<T>) -> R,
    ) -> Result<R, StoreError> {
        let (cut, is_writing) = (self.cuts.load(Ordering::Relaxed), self.is_writing.load(Ordering::Relaxed));
        self.with(name, load, |entry| {
            if is_writing && entry.is_due(cut) {
                entry.at_cut =
                    Some(StateAtCut::Changed(frozen(entry.state.as_ref(), entry.updated, &freeze)?));
            }
            let done = change(entry);
            self.changed.fetch_add(usize::from(entry.touch(cut, now)), Ordering::Relaxed);
            Ok(done)
        })?
    }

    /// Deletes a state, in the turn of its steps. Whether the database has it doesn't matter: deleting what isn't there
    /// changes nothing.
    pub(super) fn delete(&self, name: &str, now: Millis) -> Result<(), StoreError> {
        let (cut, is_writing) = (self.cuts.load(Ordering::Relaxed), self.is_writing.load(Ordering::Relaxed));
        self.with(
            name,
            || Ok(CachedState::stored(None, now, true)),
            |entry| {
                let state = entry.state.take();
                if is_writing && entry.is_due(cut) {
                    entry.at_cut = Some(StateAtCut::Deleted(state, entry.updated));
                }
                self.changed.fetch_add(usize::from(entry.touch(cut, now)), Ordering::Relaxed);
            },
        )
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

    /// Starts a write to the database, in the turn of all: what has changed is to be written as it is now. From then on,
    /// states may change again.
    pub(super) fn cut(&self) {
        self.cuts.fetch_add(1, Ordering::Relaxed);
        self.is_writing.store(true, Ordering::Relaxed);
    }

    /// Returns the states that had changed at the last cut, as they were then, in the order of their names: neighbours in
    /// the database are written together.
    pub(super) fn changes(
        &self,
        freeze: impl Fn(&T) -> Result<String, StoreError>,
    ) -> Result<Vec<StateChange>, StoreError> {
        let (mut changes, cut) = (Vec::new(), self.cuts.load(Ordering::Relaxed));
        for part in self.parts.iter() {
            let is_wanted = |entry: &CachedState<T>| entry.is_due(cut) || entry.at_cut.is_some();
            let names: Vec<String> = {
                let states = &lock(part).states;
                states.iter().filter(|(_, entry)| is_wanted(entry)).map(|(name, _)| name.clone()).collect()
            };
            // A step of this part waits for one state, not for all of them.
            for name in names {
                let state = lock(part).states.get(&name).and_then(|entry| entry.to_write(cut, &freeze));
                if let Some(state) = state {
                    changes.push(StateChange { name, state: state? });
                }
            }
        }
        changes.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(changes)
    }

    /// Notes whether the database has the changes before the last cut. If so, drops states that aren't used if there are many.
    pub(super) fn end_write(&self, is_written: bool) {
        let cut = self.cuts.load(Ordering::Relaxed);
        for part in self.parts.iter() {
            let states = &mut lock(part).states;
            for entry in states.values_mut() {
                let at_cut = entry.at_cut.take();
                if !is_written {
                    continue;
                }
                if entry.is_due(cut) {
                    entry.stored = entry.state.is_some();
                    entry.changed = None;
                    self.changed.fetch_sub(1, Ordering::Relaxed);
                }
                entry.stored = match at_cut {
                    None => entry.stored,
                    Some(StateAtCut::Changed(written)) => written.is_some(),
                    Some(StateAtCut::Deleted(written, _)) => written.is_some(),
                };
            }
            forget_unused(states);
        }
        self.is_writing.store(false, Ordering::Relaxed);
    }

    /// Drops what changed since the last write to the database.
    pub(super) fn undo(&self) {
        self.parts.iter().for_each(|part| lock(part).states.retain(|_, entry| entry.changed.is_none()));
        self.changed.store(0, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.parts.iter().map(|part| lock(part).states.len()).sum()
    }
}

/// Drops the least recently used quarter of the states if there are too many, except those that the database doesn't have.
fn forget_unused<T>(states: &mut HashMap<String, CachedState<T>>) {
    if states.len() <= IN_MEMORY {
        return;
    }
    let mut used: Vec<u64> = states.values().map(|entry| entry.used).collect();
    let at = used.len() - IN_MEMORY * 3 / 4;
    let (_, oldest, _) = used.select_nth_unstable(at);
    let oldest = *oldest;
    states.retain(|_, entry| entry.used >= oldest || entry.changed.is_some());
}
