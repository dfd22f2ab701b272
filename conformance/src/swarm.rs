//! The tally that the workers of a swarm share.

use std::collections::{HashMap, HashSet};

use crate::behavioral::Runs;
use crate::step::Worker;

/// A swarm remembers at least this many of its latest calls.
const AT_LEAST: usize = 200;
/// And so many for each worker that made one of them.
const PER_WORKER: usize = 10;
/// More workers than these do not make it remember more.
const MOST_WORKERS: usize = 1000;

/// The remembered calls of every swarm: who made them, and their fingerprints. And what workers share besides.
#[derive(Default)]
pub(crate) struct Swarms {
    calls: HashMap<String, Vec<(Worker, String)>>,
    pub runs: Runs,
}

impl Swarms {
    /// Adds a call; says how many remembered calls have its fingerprint, and how many workers made them.
    pub fn add(&mut self, swarm: &str, worker: &Worker, fingerprint: &str) -> (usize, usize) {
        let calls = self.calls.entry(swarm.to_owned()).or_default();
        calls.push((worker.clone(), fingerprint.to_owned()));
        while calls.len() > AT_LEAST && calls.len() > PER_WORKER * workers(calls.iter()).min(MOST_WORKERS) {
            calls.remove(0);
        }
        let same: Vec<&(Worker, String)> = calls.iter().filter(|(_, other)| other == fingerprint).collect();
        (same.len(), workers(same.iter().copied()))
    }

    /// Forgets a swarm that has completed.
    pub fn end(&mut self, swarm: &str) {
        self.calls.remove(swarm);
    }
}

/// How many workers made these calls.
fn workers<'a>(calls: impl Iterator<Item = &'a (Worker, String)>) -> usize {
    calls.map(|(worker, _)| worker).collect::<HashSet<_>>().len()
}
