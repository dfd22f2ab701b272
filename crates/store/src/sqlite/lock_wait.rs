//! How long a process waits for others that hold a lock of the database.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// How long it waits, at most, while nothing is written: whoever holds the lock hangs.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);
/// How long it waits, at most, while others write: it is one of many, and its turn comes.
const LONGEST: Duration = Duration::from_secs(10);
/// How long it waits before it tries again for the first time.
pub(super) const PAUSE: Duration = Duration::from_millis(2);
/// How long it waits once it has tried often. Short, because everyone else overtakes a process that asks rarely.
const LONGEST_PAUSE: Duration = Duration::from_millis(16);

/// The waits of a connection. A lock that it waited for in vain isn't waited for again soon, so that an event with several
/// transactions doesn't wait for each of them.
#[derive(Debug)]
pub(super) struct LockWait {
    /// The log of the database, which grows with every change.
    log: PathBuf,
    begun: Option<Instant>,
    /// When the log last changed, and how it was then.
    changed: Option<(Instant, LogState)>,
    gave_up: Option<Instant>,
}

/// The size of a log and when it was written.
type LogState = Option<(u64, SystemTime)>;

impl LockWait {
    /// Returns the waits of a connection to a database with this log.
    pub(super) fn new(log: &Path) -> Self {
        Self { log: log.to_owned(), begun: None, changed: None, gave_up: None }
    }

    /// Sleeps before this attempt, from 0, to get a lock. Returns `false` to give up.
    pub(super) fn sleep(&mut self, attempt: i32) -> bool {
        let log =
            std::fs::metadata(&self.log).ok().and_then(|about| Some((about.len(), about.modified().ok()?)));
        self.next(attempt, Instant::now(), log).map(std::thread::sleep).is_some()
    }

    fn next(&mut self, attempt: i32, now: Instant, log: LogState) -> Option<Duration> {
        if self.gave_up.is_some_and(|at| now.duration_since(at) < PATIENCE) {
            return None;
        }
        if attempt == 0 {
            (self.begun, self.changed) = (None, None);
        }
        let begun = *self.begun.get_or_insert(now);
        if self.changed.is_none_or(|(_, before)| before != log) {
            self.changed = Some((now, log));
        }
        let changed = self.changed.map_or(now, |(at, _)| at);
        let waits = now.duration_since(changed) < PATIENCE && now.duration_since(begun) < LONGEST;
        self.gave_up = (!waits).then_some(now);
        waits.then(|| pause(attempt))
    }
}

/// Returns how long to sleep before this attempt, from 0. Processes sleep for different times, so that they don't all come
/// back at once.
fn pause(attempt: i32) -> Duration {
    let own = Duration::from_micros(u64::from(std::process::id() % 1024));
    (PAUSE * (1 + attempt.unsigned_abs().min(16)) + own).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits() -> (LockWait, impl Fn(u32) -> Instant) {
        let start = Instant::now();
        (LockWait::new(Path::new("")), move |part| start + PATIENCE * part / 10)
    }

    #[test]
    fn a_lock_that_was_waited_for_in_vain_is_not_waited_for_again_soon() {
        let (mut wait, after) = waits();
        let mut next = |attempt, part| wait.next(attempt, after(part), None);
        assert!(next(0, 0).is_some() && next(1, 9).is_some());
        assert_eq!(next(2, 10), None);
        assert_eq!(next(0, 11), None, "the next transaction of the same event");
        assert!(next(0, 21).is_some(), "a process that stays tries again");
        assert!(next(1, 30).is_some(), "and waits as long as at first");
        assert_eq!(next(2, 31), None);
    }

    /// Hundreds of hooks at once need longer than a held lock is waited for.
    #[test]
    fn while_others_write_it_is_waited_for_longer() {
        let (mut wait, after) = waits();
        let log = |size| Some((size, SystemTime::UNIX_EPOCH));
        for part in 0..50 {
            let attempt = i32::try_from(part).unwrap();
            assert!(wait.next(attempt, after(part), log(u64::from(part / 9))).is_some(), "{part}");
        }
        assert_eq!(wait.next(50, after(50), log(50)), None, "but not for ever");
    }
}
