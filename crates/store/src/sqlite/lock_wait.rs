//! How long a process waits for another process that holds a lock of the database.

use std::time::{Duration, Instant};

/// How long it waits, at most.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);
/// How long it waits before it tries again for the first time.
pub(super) const PAUSE: Duration = Duration::from_millis(2);
/// How long it waits once it has tried often. Short, because everyone else overtakes a process that asks rarely.
const LONGEST_PAUSE: Duration = Duration::from_millis(16);

/// The waits of a connection. A lock that it waited for in vain isn't waited for again soon, so that an event with several
/// transactions doesn't wait for each of them.
#[derive(Default)]
pub(super) struct LockWait {
    begun: Option<Instant>,
    gave_up: Option<Instant>,
}

impl LockWait {
    /// Returns how long to sleep before this attempt, from 0, to get a lock; `None` to give up.
    pub(super) fn next(&mut self, attempt: i32, now: Instant) -> Option<Duration> {
        if self.gave_up.is_some_and(|at| now.duration_since(at) < PATIENCE) {
            return None;
        }
        if attempt == 0 {
            self.begun = None;
        }
        let waits = now.duration_since(*self.begun.get_or_insert(now)) < PATIENCE;
        self.gave_up = (!waits).then_some(now);
        waits.then(|| pause(attempt))
    }
}

/// Returns how long to sleep before this attempt, from 0. Processes sleep for different times, so that they don't all come
/// back at once.
pub(super) fn pause(attempt: i32) -> Duration {
    let own = Duration::from_micros(u64::from(std::process::id() % 1024));
    (PAUSE * (1 + attempt.unsigned_abs().min(16)) + own).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_was_waited_for_in_vain_is_not_waited_for_again_soon() {
        let (mut wait, start) = (LockWait::default(), Instant::now());
        let after = |part: u32| start + PATIENCE * part / 10;
        assert!(wait.next(0, start).is_some() && wait.next(1, after(9)).is_some());
        assert_eq!(wait.next(2, after(10)), None);
        assert_eq!(wait.next(0, after(11)), None, "the next transaction of the same event");
        assert!(wait.next(0, after(21)).is_some(), "a process that stays tries again");
        assert!(wait.next(1, after(30)).is_some(), "and waits as long as at first");
        assert_eq!(wait.next(2, after(31)), None);
    }
}
