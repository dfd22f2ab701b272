use serde::{Deserialize, Serialize};

use crate::{Ring, SwarmCount};

/// Number of recent calls that a swarm remembers. Older ones no longer count.
pub(crate) const WINDOW: usize = 200;

/// The recent calls of a whole swarm, across all workers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Swarm {
    calls: Ring<(u64, u64)>,
    /// Calls that failed or found nothing.
    #[serde(default)]
    in_vain: Ring<(u64, u64)>,
}

impl Swarm {
    /// Adds a call: its target and its worker.
    pub fn push(&mut self, target: u64, worker: u64) -> SwarmCount {
        self.calls.push((target, worker), WINDOW);
        count(&self.calls, target)
    }

    /// Adds a call that failed or found nothing.
    pub fn push_in_vain(&mut self, call: u64, worker: u64) {
        self.in_vain.push((call, worker), WINDOW);
    }

    /// Returns how often the swarm made this call without success.
    #[must_use]
    pub fn in_vain(&self, call: u64) -> SwarmCount {
        count(&self.in_vain, call)
    }
}

fn count(calls: &Ring<(u64, u64)>, about: u64) -> SwarmCount {
    let mut workers: Vec<u64> = Vec::new();
    let mut calls_made = 0;
    for (_, worker) in calls.iter().filter(|(a, _)| *a == about) {
        calls_made += 1;
        if !workers.contains(worker) {
            workers.push(*worker);
        }
    }
    SwarmCount { calls: calls_made, workers: workers.len() as u64, ..SwarmCount::default() }
}
