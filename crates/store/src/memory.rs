use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use deloop_detect::{FailureNote, KnownFailures, Swarm, SwarmCall, SwarmCount, SwarmWorker};
use deloop_types::{Millis, SessionId};

use crate::{Codec, Store, StoreError};

const SHARDS: usize = 16;

/// Limits of a [`MemoryStore`].
///
/// A session takes up to about 6.5 KiB. A swarm of up to 20 workers takes up to about 14 KiB, and a larger one about
/// 0.4 KiB more per worker, up to 1,000 of them. With small swarms, the defaults add up to 80 MiB. Raise `sessions` if you
/// run more agents than that at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of sessions. The least recently used are dropped first. Default: 10,000.
    pub sessions: usize,
    /// Idle time in milliseconds, measured by the steps' own times. A session starts over if its next step comes later
    /// than that. Default: 7 days.
    pub idle: u64,
    /// Maximum number of swarms. The least recently used are dropped first. Default: 1,000.
    pub swarms: usize,
    /// Maximum number of projects whose failures are remembered, at most 8 KiB each. The least recently used are dropped
    /// first. Default: 500.
    pub projects: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { sessions: 10_000, idle: 7 * 24 * 3_600_000, swarms: 1_000, projects: 500 }
    }
}

/// Stores everything in this process.
pub struct MemoryStore<T> {
    shards: Vec<Mutex<LruMap<Arc<SessionId>, Slot<T>>>>,
    swarms: Mutex<LruMap<Arc<str>, Swarm>>,
    projects: Mutex<LruMap<Arc<str>, KnownFailures>>,
    limits: Limits,
    hasher: std::hash::RandomState,
}

struct Slot<T> {
    state: T,
    ts: Option<Millis>,
}

/// A map that tracks which entry was used least recently. Keys are cloned, so they should be cheap to clone.
struct LruMap<K, V> {
    /// Boxed, because a hash table has many empty slots.
    entries: HashMap<K, (u64, Box<V>)>,
    /// The keys, ordered by last use.
    used: BTreeMap<u64, K>,
    clock: u64,
}

impl<K: Clone + Eq + Hash, V> LruMap<K, V> {
    fn new() -> Self {
        Self { entries: HashMap::new(), used: BTreeMap::new(), clock: 0 }
    }

    /// Returns an entry and marks it as used.
    fn get<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let (used, value) = self.entries.get_mut(key)?;
        if let Some(key) = self.used.remove(used) {
            self.clock += 1;
            *used = self.clock;
            self.used.insert(self.clock, key);
        }
        Some(value)
    }

    /// Adds an entry and drops the least recently used ones beyond `most`.
    fn insert(&mut self, key: K, value: V, most: usize) {
        self.remove(&key);
        while self.entries.len() >= most.max(1) {
            let Some((_, oldest)) = self.used.pop_first() else { break };
            self.entries.remove(&oldest);
        }
        self.clock += 1;
        self.used.insert(self.clock, key.clone());
        self.entries.insert(key, (self.clock, Box::new(value)));
    }

    fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        if let Some((used, _)) = self.entries.remove(key) {
            self.used.remove(&used);
        }
    }
}

impl<T> MemoryStore<T> {
    /// Creates an empty store.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            shards: std::iter::repeat_with(|| Mutex::new(LruMap::new())).take(SHARDS).collect(),
            swarms: Mutex::new(LruMap::new()),
            projects: Mutex::new(LruMap::new()),
            limits,
            hasher: std::hash::RandomState::new(),
        }
    }

    fn shard(&self, session: &SessionId) -> MutexGuard<'_, LruMap<Arc<SessionId>, Slot<T>>> {
        #[expect(clippy::cast_possible_truncation, reason = "any part of the hash will do")]
        let index = self.hasher.hash_one(session) as usize % SHARDS;
        lock(&self.shards[index])
    }

    /// Stores a session and replaces any state it has. `ts` is the time of its last step.
    pub fn put(&self, session: &SessionId, ts: Option<Millis>, state: T) {
        let most = self.limits.sessions.div_ceil(SHARDS);
        self.shard(session).insert(Arc::new(session.clone()), Slot { state, ts }, most);
    }

    /// Stores a swarm and replaces any state it has.
    pub fn put_swarm(&self, name: &str, swarm: Swarm) {
        lock(&self.swarms).insert(name.into(), swarm, self.limits.swarms);
    }

    fn change_swarm<R>(&self, name: &str, change: impl FnOnce(&mut Swarm) -> R) -> R {
        let mut swarms = lock(&self.swarms);
        if let Some(swarm) = swarms.get(name) {
            return change(swarm);
        }
        let mut fresh = Swarm::default();
        let done = change(&mut fresh);
        swarms.insert(name.into(), fresh, self.limits.swarms);
        done
    }
}

/// Locks even after a panic in a change, which leaves one state partly changed and the others intact.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> Default for MemoryStore<T> {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl<T: Send> Store<T> for MemoryStore<T> {
    fn update<R>(
        &self,
        codec: &dyn Codec<T>,
        session: &SessionId,
        ts: Option<Millis>,
        change: impl Fn(&mut T) -> R,
    ) -> Result<R, StoreError> {
        let mut shard = self.shard(session);
        if let Some(slot) = shard.get(session) {
            let idle = slot.ts.zip(ts).is_some_and(|(before, now)| now.since(before) > self.limits.idle);
            if !idle {
                slot.ts = slot.ts.max(ts);
                return Ok(change(&mut slot.state));
            }
        }
        let mut slot = Slot { state: codec.fresh(), ts };
        let done = change(&mut slot.state);
        shard.insert(Arc::new(session.clone()), slot, self.limits.sessions.div_ceil(SHARDS));
        Ok(done)
    }

    fn look<R>(
        &self,
        _codec: &dyn Codec<T>,
        session: &SessionId,
        see: impl FnOnce(&T) -> R,
    ) -> Result<Option<R>, StoreError> {
        Ok(self.shard(session).entries.get(session).map(|(_, slot)| see(&slot.state)))
    }

    fn tally(
        &self,
        swarm: &str,
        worker: SwarmWorker<'_>,
        calls: &[SwarmCall<'_>],
    ) -> Result<Vec<SwarmCount>, StoreError> {
        Ok(self.change_swarm(swarm, |swarm| swarm.tally(worker, calls)))
    }

    fn tally_in_vain(&self, swarm: &str, worker: SwarmWorker<'_>, signature: u64) -> Result<(), StoreError> {
        self.change_swarm(swarm, |swarm| swarm.push_in_vain(signature, worker));
        Ok(())
    }

    fn look_swarm<R>(&self, swarm: &str, see: impl FnOnce(&Swarm) -> R) -> Result<Option<R>, StoreError> {
        Ok(lock(&self.swarms).entries.get(swarm).map(|(_, swarm)| see(swarm)))
    }

    fn failures(&self, project: &str) -> Result<KnownFailures, StoreError> {
        Ok(lock(&self.projects).get(project).cloned().unwrap_or_default())
    }

    fn note_failure(&self, project: &str, note: &FailureNote) -> Result<(), StoreError> {
        let mut projects = lock(&self.projects);
        match projects.get(project) {
            Some(known) => known.enter(note),
            None => {
                let mut fresh = KnownFailures::default();
                fresh.enter(note);
                projects.insert(project.into(), fresh, self.limits.projects);
            }
        }
        Ok(())
    }

    fn forget_project(&self, project: &str) -> Result<(), StoreError> {
        lock(&self.projects).remove(project);
        Ok(())
    }

    fn projects(&self) -> Result<Vec<String>, StoreError> {
        Ok(lock(&self.projects).entries.keys().map(ToString::to_string).collect())
    }

    fn forget(&self, session: &SessionId) -> Result<(), StoreError> {
        self.shard(session).remove(session);
        Ok(())
    }

    fn forget_swarm(&self, swarm: &str) -> Result<(), StoreError> {
        lock(&self.swarms).remove(swarm);
        Ok(())
    }

    fn sessions(&self) -> Result<Vec<SessionId>, StoreError> {
        let mut sessions = Vec::new();
        for shard in &self.shards {
            sessions.extend(lock(shard).entries.keys().map(|session| SessionId::clone(session)));
        }
        Ok(sessions)
    }

    fn swarms(&self) -> Result<Vec<String>, StoreError> {
        Ok(lock(&self.swarms).entries.keys().map(ToString::to_string).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{Numbers, check, worker};
    use deloop_types::ShortCall;

    #[test]
    fn keeps_the_contract() {
        check(&MemoryStore::<Vec<u64>>::default());
    }

    #[test]
    fn the_longest_unused_go_first() {
        let store = MemoryStore::<Vec<u64>>::new(Limits { sessions: SHARDS * 10, ..Limits::default() });
        for n in 0..10_000 {
            store.update(&Numbers, &format!("s{n}").into(), None, |s| s.push(n)).unwrap();
        }
        assert!(store.sessions().unwrap().len() <= SHARDS * 10);
        assert_eq!(store.look(&Numbers, &"s9999".into(), Vec::len).unwrap(), Some(1));
        assert_eq!(store.look(&Numbers, &"s0".into(), Vec::len).unwrap(), None);
    }

    #[test]
    fn idle_sessions_start_anew() {
        let store = MemoryStore::<Vec<u64>>::new(Limits { idle: 1000, ..Limits::default() });
        let push =
            |ts| store.update(&Numbers, &"a".into(), Some(Millis(ts)), |s| (s.push(1), s.len()).1).unwrap();
        assert_eq!((push(0), push(900), push(1800), push(5000), push(4000)), (1, 2, 3, 1, 2));
    }

    #[test]
    fn a_far_future_step_leaves_other_sessions_alone() {
        let store = MemoryStore::<Vec<u64>>::default();
        let push = |session: &str, ts: i64| {
            store.update(&Numbers, &session.into(), Some(Millis(ts)), |s| (s.push(1), s.len()).1).unwrap()
        };
        for n in 0..100 {
            push(&format!("s{n}"), 1000);
        }
        for n in 0..50_000 {
            push(&format!("f{}", n % 100), i64::MAX);
        }
        assert!((0..100).all(|n| push(&format!("s{n}"), 2000) == 2));
    }

    #[test]
    fn the_longest_unused_swarm_goes_first() {
        let store = MemoryStore::<Vec<u64>>::new(Limits { swarms: 3, ..Limits::default() });
        let push = |s: &mut Swarm| s.push(1, worker("a"), ShortCall::default).calls;
        let calls = |swarm: &str| store.change_swarm(swarm, push);
        assert_eq!(["a", "b", "c", "a", "d", "a", "b"].map(calls), [1, 1, 1, 2, 1, 3, 1]);
    }

    /// Lookup, update and eviction take less than linear time: eight times as many entries cost about the same.
    #[test]
    fn the_cost_of_a_call_does_not_grow_with_the_number_of_swarms() {
        let cost = |swarms: usize| {
            let store = MemoryStore::<Vec<u64>>::new(Limits { swarms, ..Limits::default() });
            let names: Vec<String> = (0..2 * swarms).map(|n| n.to_string()).collect();
            let call = |name: &String| store.change_swarm(name, |_| ());
            names.iter().for_each(call);
            deloop_testing::least_cpu_time(7, || names.iter().take(1000).for_each(call))
        };
        let (few, many) = (cost(1000), cost(8000));
        assert!(many < few * 4, "{few:?} among 1,000 swarms, {many:?} among 8,000");
    }
}
