use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// A ring buffer: pushing to a full ring drops the oldest entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ring<T>(VecDeque<T>);

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T> From<Vec<T>> for Ring<T> {
    fn from(items: Vec<T>) -> Self {
        Self(items.into())
    }
}

impl<T> Ring<T> {
    /// Adds an entry and keeps no more than `most`.
    pub fn push(&mut self, item: T, most: usize) {
        let most = most.max(1);
        while self.0.len() >= most {
            self.0.pop_front();
        }
        if self.0.len() == self.0.capacity() {
            // Grows by doubling, but never beyond the limit: rings make up most of a session's memory.
            self.0.reserve_exact(self.0.len().clamp(4, 64).min(most - self.0.len()));
        }
        self.0.push_back(item);
    }

    /// Removes and returns the oldest entry.
    pub fn pop(&mut self) -> Option<T> {
        self.0.pop_front()
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the entry pushed `back` pushes before the newest; 0 is the newest.
    #[must_use]
    pub fn back(&self, back: usize) -> Option<&T> {
        self.0.len().checked_sub(back + 1).and_then(|i| self.0.get(i))
    }

    /// Returns a mutable reference; see [`Ring::back`].
    pub fn back_mut(&mut self, back: usize) -> Option<&mut T> {
        self.0.len().checked_sub(back + 1).and_then(|i| self.0.get_mut(i))
    }

    /// Returns the entry at this index, oldest first.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&T> {
        self.0.get(index)
    }

    /// Returns a mutable reference; see [`Ring::get`].
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        self.0.get_mut(index)
    }

    /// Drops the entries for which `keep` returns false.
    pub fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        self.0.retain(keep);
    }

    /// Iterates from the oldest entry; reverse it for newest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator + Clone {
        self.0.iter()
    }

    /// Iterates mutably from the oldest entry.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut T> {
        self.0.iter_mut()
    }

    /// Drops all entries.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::Ring;

    #[test]
    fn keeps_the_newest_and_no_room_for_more() {
        for most in [1, 3, 20, 48] {
            let mut ring = Ring::default();
            for number in 0..200_usize {
                ring.push(number, most);
            }
            assert!(ring.iter().copied().eq(200 - most..200));
            assert_eq!(ring.0.capacity(), most);
        }
    }
}
