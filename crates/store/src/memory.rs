use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::{Mutex, MutexGuard, PoisonError};

use deloop_detect::Swarm;
use deloop_types::{Millis, SessionId};

use crate::{Codec, Store, StoreError};

const SHARDS: usize = 16;

/// How much a store keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// At most so many sessions; the longest unused go first.
    pub sessions: usize,
    /// A session that had no step for so many milliseconds of the steps' own time is dropped.
    pub idle: u64,
    /// At most so many swarms.
    pub swarms: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { sessions: 1_000_000, idle: 7 * 24 * 3_600_000, swarms: 10_000 }
    }
}

/// Keeps everything in this process.
pub struct MemoryStore<T> {
    shards: Vec<Mutex<Shard<T>>>,
    swarms: Mutex<HashMap<String, (u64, Swarm)>>,
    limits: Limits,
    hasher: std::hash::RandomState,
}

struct Shard<T> {
    sessions: HashMap<SessionId, Slot<T>>,
    tick: u64,
    latest: Option<Millis>,
}

struct Slot<T> {
    state: T,
    touched: u64,
    ts: Option<Millis>,
}

impl<T> MemoryStore<T> {
    /// An empty store.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let shard = || Mutex::new(Shard { sessions: HashMap::new(), tick: 0, latest: None });
        Self {
            shards: std::iter::repeat_with(shard).take(SHARDS).collect(),
            swarms: Mutex::new(HashMap::new()),
            limits,
            hasher: std::hash::RandomState::new(),
        }
    }

    fn shard(&self, session: &SessionId) -> MutexGuard<'_, Shard<T>> {
        #[expect(clippy::cast_possible_truncation, reason = "any part of the hash will do")]
        let index = self.hasher.hash_one(session) as usize % SHARDS;
        // A panic in a change leaves the state as far as it got; other sessions go on.
        self.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Default for MemoryStore<T> {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl<T> Shard<T> {
    fn make_room(&mut self, limits: &Limits) {
        let most = limits.sessions.div_ceil(SHARDS).max(1);
        if let Some(latest) = self.latest
            && self.tick.is_multiple_of(1024)
        {
            self.sessions.retain(|_, slot| slot.ts.is_none_or(|ts| latest.since(ts) <= limits.idle));
        }
        if self.sessions.len() < most {
            return;
        }
        // A tenth at a time, so that a full store does not sort for every new session.
        let mut touched: Vec<u64> = self.sessions.values().map(|slot| slot.touched).collect();
        touched.sort_unstable();
        let line = touched[touched.len() / 10];
        self.sessions.retain(|_, slot| slot.touched > line);
    }
}

impl<T: Send> Store<T> for MemoryStore<T> {
    fn update<R>(
        &self,
        codec: &dyn Codec<T>,
        session: &SessionId,
        ts: Option<Millis>,
        change: impl FnOnce(&mut T) -> R,
    ) -> Result<R, StoreError> {
        let mut shard = self.shard(session);
        shard.tick += 1;
        let tick = shard.tick;
        shard.latest = shard.latest.max(ts);
        if let Some(slot) = shard.sessions.get_mut(session) {
            let idle = slot.ts.zip(ts).is_some_and(|(before, now)| now.since(before) > self.limits.idle);
            if !idle {
                slot.touched = tick;
                slot.ts = slot.ts.max(ts);
                return Ok(change(&mut slot.state));
            }
            shard.sessions.remove(session);
        }
        shard.make_room(&self.limits);
        let mut slot = Slot { state: codec.fresh(), touched: tick, ts };
        let done = change(&mut slot.state);
        shard.sessions.insert(session.clone(), slot);
        Ok(done)
    }

    fn look<R>(
        &self,
        _codec: &dyn Codec<T>,
        session: &SessionId,
        see: impl FnOnce(&T) -> R,
    ) -> Result<Option<R>, StoreError> {
        Ok(self.shard(session).sessions.get(session).map(|slot| see(&slot.state)))
    }

    fn swarm<R>(&self, swarm: &str, change: impl FnOnce(&mut Swarm) -> R) -> Result<R, StoreError> {
        let mut swarms = self.swarms.lock().unwrap_or_else(PoisonError::into_inner);
        if !swarms.contains_key(swarm) && swarms.len() >= self.limits.swarms.max(1) {
            let oldest = swarms.iter().min_by_key(|(_, (touched, _))| *touched).map(|(name, _)| name.clone());
            oldest.and_then(|name| swarms.remove(&name));
        }
        let tick = swarms.values().map(|(touched, _)| *touched).max().unwrap_or(0) + 1;
        let entry = swarms.entry(swarm.to_owned()).or_default();
        entry.0 = tick;
        Ok(change(&mut entry.1))
    }

    fn forget(&self, session: &SessionId) -> Result<(), StoreError> {
        self.shard(session).sessions.remove(session);
        Ok(())
    }

    fn forget_swarm(&self, swarm: &str) -> Result<(), StoreError> {
        self.swarms.lock().unwrap_or_else(PoisonError::into_inner).remove(swarm);
        Ok(())
    }

    fn sessions(&self) -> Result<Vec<SessionId>, StoreError> {
        let shards = self.shards.iter().map(|s| s.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(shards.flat_map(|s| s.sessions.keys().cloned().collect::<Vec<_>>()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{Numbers, check};

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
}
