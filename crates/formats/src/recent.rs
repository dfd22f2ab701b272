//! Remembers recent ids without growing with the input.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// Minimum number of latest entries kept; at most twice as many are.
const KEPT: usize = 1 << 16;

/// A map that drops its oldest entries.
#[derive(Debug)]
pub(crate) struct RecentMap<K, V> {
    new: HashMap<K, V>,
    old: HashMap<K, V>,
}

impl<K, V> Default for RecentMap<K, V> {
    fn default() -> Self {
        Self { new: HashMap::new(), old: HashMap::new() }
    }
}

impl<K: Hash + Eq, V> RecentMap<K, V> {
    /// Adds or replaces an entry; returns whether its key is new.
    pub(crate) fn insert(&mut self, key: K, value: V) -> bool {
        if self.new.len() >= KEPT {
            self.old = std::mem::take(&mut self.new);
        }
        let in_old = self.old.remove(&key).is_some();
        self.new.insert(key, value).is_none() && !in_old
    }

    /// Returns the value of a key.
    pub(crate) fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.new.get(key).or_else(|| self.old.get(key))
    }

    /// Removes an entry and returns it.
    pub(crate) fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.new.remove(key).or_else(|| self.old.remove(key))
    }

    /// Keeps the entries whose keys satisfy `keep`; returns whether any was dropped.
    pub(crate) fn retain(&mut self, keep: impl Fn(&K) -> bool) -> bool {
        let before = self.len();
        self.new.retain(|key, _| keep(key));
        self.old.retain(|key, _| keep(key));
        self.len() < before
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        self.new.len() + self.old.len()
    }
}

/// A set that drops its oldest members.
pub(crate) type RecentSet<K> = RecentMap<K, ()>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_kept_and_the_oldest_forgotten() {
        let mut recent = RecentSet::default();
        let last = 5 * KEPT;
        for id in 0..last {
            assert!(recent.insert(id, ()));
            assert!(recent.len() <= 2 * KEPT);
        }
        assert!((last - KEPT..last).all(|id| recent.get(&id).is_some()));
        assert!(recent.get(&0).is_none() && recent.insert(0, ()));
    }

    #[test]
    fn an_entry_is_there_once() {
        let mut recent = RecentMap::default();
        assert!(recent.insert("a", 1) && !recent.insert("a", 2));
        assert_eq!((recent.get("a"), recent.len()), (Some(&2), 1));
        assert!(recent.insert("b", 3) && recent.retain(|key| *key == "b") && !recent.retain(|_| true));
        assert_eq!((recent.remove("b"), recent.len()), (Some(3), 0));
    }
}
