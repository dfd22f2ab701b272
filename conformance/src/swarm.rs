//! The tally that the workers of a swarm share.

use std::collections::{HashMap, HashSet};

use crate::step::Worker;

/// A swarm remembers this many of its latest calls.
const REMEMBERED: usize = 200;

/// Every call of every swarm: who made it, and its fingerprint.
#[derive(Default)]
pub(crate) struct Swarms {
    calls: HashMap<String, Vec<(Worker, String)>>,
}

impl Swarms {
    /// Adds a call; says how many remembered calls have its fingerprint, and how many workers made them.
    pub fn add(&mut self, swarm: &str, worker: &Worker, fingerprint: &str) -> (usize, usize) {
        let calls = self.calls.entry(swarm.to_owned()).or_default();
        calls.push((worker.clone(), fingerprint.to_owned()));
        let same: Vec<&Worker> = calls
            .iter()
            .rev()
            .take(REMEMBERED)
            .filter(|(_, other)| other == fingerprint)
            .map(|(worker, _)| worker)
            .collect();
        let workers: HashSet<&Worker> = same.iter().copied().collect();
        (same.len(), workers.len())
    }
}
