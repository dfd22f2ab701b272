//! Whose turn it is to decide about steps.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, Thread};

use deloop_types::SessionId;
use xxhash_rust::xxh3::xxh3_64;

use super::local::lock_soon;

/// How many locks there are for all sessions. Requests that are decided about together hold several, so there are many.
const LOCKS: usize = 1_024;

/// The steps of a session are logged in the order in which they are decided about, so that they lead to the same state when
/// they are replayed. Steps of different sessions may be decided about at the same time.
///
/// Turns are given in the order in which they were asked for. Whoever has many steps asks for one turn after the other, and
/// those who asked in between come first.
#[derive(Default)]
pub(super) struct StepTurns {
    state: Mutex<TurnState>,
}

#[derive(Default)]
struct TurnState {
    held: LockSet,
    waiting: VecDeque<Arc<WaitingTurn>>,
}

struct WaitingTurn {
    wanted: LockSet,
    is_given: AtomicBool,
    thread: Thread,
}

/// The turn of some sessions, or of all.
pub(super) struct StepTurn<'a> {
    turns: &'a StepTurns,
    held: LockSet,
}

impl StepTurns {
    /// Waits until no other request decides about steps of these sessions.
    pub(super) fn of<'s>(&self, sessions: impl Iterator<Item = &'s SessionId>) -> StepTurn<'_> {
        let mut wanted = LockSet::default();
        sessions.for_each(|session| wanted.insert(lock_of(session.as_str())));
        self.wait(wanted)
    }

    /// Waits until no other request decides about steps.
    pub(super) fn all(&self) -> StepTurn<'_> {
        self.wait(LockSet::ALL)
    }

    fn wait(&self, wanted: LockSet) -> StepTurn<'_> {
        let mut state = lock_soon(&self.state);
        let is_first = state.waiting.iter().all(|earlier| !earlier.wanted.overlaps(&wanted));
        if is_first && !state.held.overlaps(&wanted) {
            state.held.add(&wanted);
        } else {
            let waiting = WaitingTurn { wanted, is_given: AtomicBool::new(false), thread: thread::current() };
            let waiting = Arc::new(waiting);
            state.waiting.push_back(Arc::clone(&waiting));
            drop(state);
            while !waiting.is_given.load(Ordering::Acquire) {
                thread::park();
            }
        }
        StepTurn { turns: self, held: wanted }
    }

    /// Returns how many turns were asked for and aren't given yet.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        lock_soon(&self.state).waiting.len()
    }
}

impl TurnState {
    /// Gives turns to those who wait for nobody any more.
    fn give(&mut self) {
        let mut blocked = self.held;
        let held = &mut self.held;
        self.waiting.retain(|waiting| {
            let is_free = !blocked.overlaps(&waiting.wanted);
            blocked.add(&waiting.wanted);
            if is_free {
                held.add(&waiting.wanted);
                waiting.is_given.store(true, Ordering::Release);
                waiting.thread.unpark();
            }
            !is_free
        });
    }
}

impl Drop for StepTurn<'_> {
    fn drop(&mut self) {
        let mut state = lock_soon(&self.turns.state);
        state.held.remove(&self.held);
        if !state.waiting.is_empty() {
            state.give();
        }
    }
}

/// Some of the locks.
#[derive(Debug, Clone, Copy, Default)]
struct LockSet([u64; LOCKS / 64]);

impl LockSet {
    const ALL: Self = Self([u64::MAX; LOCKS / 64]);

    fn insert(&mut self, lock: usize) {
        self.0[lock / 64] |= 1 << (lock % 64);
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(one, other)| one & other != 0)
    }

    fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(one, other)| *one |= other);
    }

    fn remove(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(one, other)| *one &= !other);
    }
}

fn lock_of(session: &str) -> usize {
    usize::try_from(xxh3_64(session.as_bytes()) % LOCKS as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;
    use crate::wait::wait_for;

    /// Takes turns of all on a thread of its own and says so, with this name.
    fn take_all(turns: &StepTurns, times: usize, name: &'static str, told: &Sender<&'static str>) {
        for _ in 0..times {
            let turn = turns.all();
            told.send(name).unwrap();
            drop(turn);
        }
    }

    #[test]
    fn a_turn_goes_to_whoever_asked_first() {
        let (turns, (told, order)) = (StepTurns::default(), channel());
        thread::scope(|scope| {
            let first = turns.all();
            let (mine, others) = (told.clone(), told);
            scope.spawn(|| take_all(&turns, 1, "other", &{ others }));
            wait_for("the other asks", || turns.waiting() == 1);
            drop(first);
            // This thread never sleeps in between, and comes second all the same.
            take_all(&turns, 1, "again", &mine);
        });
        assert_eq!(order.iter().take(2).collect::<Vec<_>>(), ["other", "again"]);
    }

    #[test]
    fn sessions_wait_for_themselves_and_for_all() {
        let turns = StepTurns::default();
        let [a, b]: [SessionId; 2] = ["a".into(), "b".into()];
        assert_ne!(lock_of("a"), lock_of("b"));
        thread::scope(|scope| {
            let first = turns.of([&a].into_iter());
            let all = scope.spawn(|| drop(turns.all()));
            wait_for("the turn of all waits", || turns.waiting() == 1);
            let second = scope.spawn(|| drop(turns.of([&b].into_iter())));
            wait_for("one that asked later waits behind it", || turns.waiting() == 2);
            drop(first);
            all.join().unwrap();
            second.join().unwrap();
            let (_one, _other) = (turns.of([&a].into_iter()), turns.of([&b].into_iter()));
        });
        assert_eq!(turns.waiting(), 0);
    }
}
