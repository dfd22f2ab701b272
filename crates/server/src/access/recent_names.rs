use std::collections::HashMap;

use deloop_types::Millis;

/// How long a name counts after its last use, in milliseconds.
const RECENT: u64 = 3_600_000;

/// The names that a key used within the last hour, as hashes.
#[derive(Debug, Default)]
pub(super) struct RecentNames {
    used: HashMap<u64, i64>,
    /// Before then, none of them is old enough to be dropped.
    full_until: i64,
}

impl RecentNames {
    /// Notes that a name is used. Returns `false` if it is new, and there are as many already.
    pub(super) fn take(&mut self, name: u64, most: u64, now: Millis) -> bool {
        if let Some(used) = self.used.get_mut(&name) {
            *used = now.0;
            return true;
        }
        if self.used.len() as u64 >= most && !self.make_room(most, now) {
            return false;
        }
        self.used.insert(name, now.0);
        true
    }

    /// Drops old names, if there may be any: a look at all of them per refusal would keep the server busy.
    fn make_room(&mut self, most: u64, now: Millis) -> bool {
        // A clock that was wrong for a while must not keep a name for ever.
        let age = |used: i64| now.0.abs_diff(used);
        if now.0 < self.full_until && age(self.full_until) <= RECENT {
            return false;
        }
        self.used.retain(|_, used| age(*used) < RECENT);
        let oldest = self.used.values().min().copied().unwrap_or(now.0);
        self.full_until = oldest.saturating_add_unsigned(RECENT);
        (self.used.len() as u64) < most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_count_for_an_hour_after_their_last_use() {
        let mut names = RecentNames::default();
        let hour = i64::try_from(RECENT).unwrap();
        assert!(names.take(1, 2, Millis(0)) && names.take(2, 2, Millis(1)));
        assert!(!names.take(3, 2, Millis(2)), "there are two already");
        assert!(names.take(1, 2, Millis(hour - 1)), "one that is known isn't refused");
        assert!(!names.take(3, 2, Millis(hour)));
        assert!(names.take(3, 2, Millis(hour + 1)), "the second is an hour old");
        assert!(!names.take(2, 2, Millis(hour + 1)));
        assert!(names.take(2, 2, Millis(-5 * hour)), "the clock was set back");
        assert_eq!(names.used.len(), 1);
    }
}
