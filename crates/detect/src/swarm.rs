use serde::{Deserialize, Serialize};

use crate::{Ring, SwarmCount};

/// How many of its last calls a swarm remembers: what is older no longer counts.
pub(crate) const WINDOW: usize = 200;

/// What a whole swarm did lately, over all its workers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Swarm {
    calls: Ring<(u64, u64)>,
}

impl Swarm {
    /// Enters one call: what it is about and who made it.
    pub fn push(&mut self, target: u64, worker: u64) -> SwarmCount {
        self.calls.push((target, worker), WINDOW);
        let mut workers: Vec<u64> = Vec::new();
        let mut calls = 0;
        for (_, worker) in self.calls.iter().filter(|(t, _)| *t == target) {
            calls += 1;
            if !workers.contains(worker) {
                workers.push(*worker);
            }
        }
        SwarmCount { calls, workers: workers.len() as u64 }
    }
}
