use deloop_types::ShortCall;
use serde::{Deserialize, Serialize, Serializer};

use super::packed::{pack, unpack};
use super::swarm_parts::SwarmParts;
use super::swarm_state::{SwarmCall, SwarmFingerprint, SwarmState, SwarmWorker};
use crate::{Ring, SwarmCount};

/// The recent calls of a whole swarm, across all workers.
///
/// A swarm remembers 10 calls for each worker that made one of them, at least 200 and at most 10,000. Calls that failed
/// or found nothing are also kept on their own, by the same rule.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "StoredSwarm")]
pub struct Swarm {
    calls: Ring<(u64, u32)>,
    in_vain: Ring<(u64, u32)>,
    /// The workers that made these calls. A slot without calls is free.
    slots: Vec<WorkerSlot>,
    listed: Vec<ListedCall>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct WorkerSlot {
    id: u64,
    name: Box<str>,
    calls: u32,
    in_vain: u32,
}

/// A fingerprint whose call can be shown. The most-called ones are kept, and of the others the newest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ListedCall {
    about: u64,
    count: u32,
    call: ShortCall,
}

/// A swarm as JSON.
#[derive(Deserialize)]
struct StoredSwarm {
    workers: Vec<(u64, Box<str>)>,
    calls: String,
    in_vain: String,
    listed: Vec<ListedCall>,
}

/// The same, borrowed: a swarm is written after each call.
#[derive(Serialize)]
struct WrittenSwarm<'a> {
    version: u32,
    workers: Vec<(u64, &'a str)>,
    calls: String,
    in_vain: String,
    listed: &'a [ListedCall],
}

impl Swarm {
    /// The version of the stored format. A text without one has the first.
    pub const VERSION: u32 = 1;
    /// Number of recent calls that a small swarm remembers. Older ones no longer count.
    pub const LEAST: usize = 200;
    /// Number of recent calls per worker that a larger swarm remembers.
    pub const PER_WORKER: usize = 10;
    /// Maximum number of workers that the window grows with.
    pub const MOST_WORKERS: usize = 1000;
    /// Number of fingerprints whose calls can be shown.
    pub const LISTED: usize = 32;

    /// Adds the calls of one turn. Returns for each how often the swarm made it, itself included, and how often that
    /// was in vain before.
    pub fn tally(&mut self, worker: SwarmWorker<'_>, calls: &[SwarmCall<'_>]) -> Vec<SwarmCount> {
        let count = |call: &SwarmCall<'_>| {
            let in_vain = self.in_vain(call.signature);
            let made = self.push(call.target, worker, || call.short());
            SwarmCount { in_vain: in_vain.calls, in_vain_workers: in_vain.workers, ..made }
        };
        calls.iter().map(count).collect()
    }

    /// Assembles a swarm from what a store keeps of it. Returns `None` when the calls don't fit the workers.
    #[must_use]
    pub fn from_parts(parts: SwarmParts) -> Option<Self> {
        let slot = |(id, name): (u64, String)| WorkerSlot { id, name: name.into(), ..WorkerSlot::default() };
        let mut slots: Vec<WorkerSlot> = parts.workers.into_iter().map(slot).collect();
        for (_, slot) in &parts.calls {
            slots.get_mut(*slot as usize)?.calls += 1;
        }
        for (_, slot) in &parts.in_vain {
            slots.get_mut(*slot as usize)?.in_vain += 1;
        }
        let made = |about| parts.calls.iter().filter(|(other, _)| *other == about).count();
        let listed = |(about, call)| {
            let count = u32::try_from(made(about)).unwrap_or(u32::MAX);
            ListedCall { about, count, call }
        };
        let listed = parts.listed.into_iter().map(listed).collect();
        Some(Self { calls: parts.calls.into(), in_vain: parts.in_vain.into(), slots, listed })
    }

    /// Adds a call: its target, its worker and, for display, its short form.
    pub fn push(
        &mut self,
        target: u64,
        worker: SwarmWorker<'_>,
        short: impl FnOnce() -> ShortCall,
    ) -> SwarmCount {
        let slot = self.slot(worker);
        self.slots[slot as usize].calls += 1;
        self.calls.push((target, slot), window(self.workers()) + 1);
        while self.calls.len() > Self::LEAST && self.calls.len() > window(self.workers()) {
            let Some((old, slot)) = self.calls.pop() else { break };
            self.slots[slot as usize].calls -= 1;
            self.unlist(old);
        }
        self.free_slots();
        let count = self.count(&self.calls, target);
        self.list(target, count.calls, short);
        count
    }

    /// Adds a call that failed or found nothing.
    pub fn push_in_vain(&mut self, call: u64, worker: SwarmWorker<'_>) {
        let slot = self.slot(worker);
        self.slots[slot as usize].in_vain += 1;
        let workers = |slots: &[WorkerSlot]| slots.iter().filter(|slot| slot.in_vain > 0).count();
        self.in_vain.push((call, slot), window(workers(&self.slots)) + 1);
        while self.in_vain.len() > Self::LEAST && self.in_vain.len() > window(workers(&self.slots)) {
            let Some((_, slot)) = self.in_vain.pop() else { break };
            self.slots[slot as usize].in_vain -= 1;
        }
        self.free_slots();
    }

    /// Returns how often the swarm made this call without success.
    #[must_use]
    pub fn in_vain(&self, call: u64) -> SwarmCount {
        self.count(&self.in_vain, call)
    }

    /// Returns whether it remembers no call.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.in_vain.is_empty()
    }

    /// Returns the counts and workers of the most-called fingerprints, most-called first.
    #[must_use]
    pub fn state(&self) -> SwarmState {
        let fingerprint = |listed: &ListedCall| {
            let mut made: Vec<bool> = vec![false; self.slots.len()];
            for (_, slot) in self.calls.iter().filter(|(about, _)| *about == listed.about) {
                made[*slot as usize] = true;
            }
            let names = self.slots.iter().zip(&made).filter(|(_, made)| **made);
            let workers: Vec<String> =
                names.clone().take(Self::MOST_WORKERS).map(|(slot, _)| slot.name.to_string()).collect();
            SwarmFingerprint {
                fingerprint: format!("{:016x}", listed.about),
                tool: listed.call.tool.clone(),
                call: listed.call.to_string(),
                total_calls: listed.count.into(),
                worker_count: names.count() as u64,
                workers,
            }
        };
        let mut fingerprints: Vec<SwarmFingerprint> = self.listed.iter().rev().map(fingerprint).collect();
        fingerprints.sort_by_key(|one| std::cmp::Reverse(one.total_calls));
        SwarmState {
            calls: self.calls.len() as u64,
            workers: self.workers() as u64,
            window: window(self.workers()) as u64,
            fingerprints,
        }
    }

    fn workers(&self) -> usize {
        self.slots.iter().filter(|slot| slot.calls > 0).count()
    }

    fn count(&self, calls: &Ring<(u64, u32)>, about: u64) -> SwarmCount {
        let mut made: Vec<bool> = vec![false; self.slots.len()];
        let mut counted = SwarmCount::default();
        for (_, slot) in calls.iter().filter(|(other, _)| *other == about) {
            counted.calls += 1;
            counted.workers += u64::from(!std::mem::replace(&mut made[*slot as usize], true));
        }
        counted
    }

    /// Returns the slot of a worker; a new worker gets a free one.
    fn slot(&mut self, worker: SwarmWorker<'_>) -> u32 {
        let id = worker.id();
        let known = |slot: &WorkerSlot| slot.id == id && !slot.is_free();
        let index = self.slots.iter().position(known).unwrap_or_else(|| {
            let fresh = WorkerSlot { id, name: worker.name().into(), ..WorkerSlot::default() };
            if let Some(free) = self.slots.iter().position(WorkerSlot::is_free) {
                self.slots[free] = fresh;
                return free;
            }
            self.slots.push(fresh);
            self.slots.len() - 1
        });
        u32::try_from(index).unwrap_or(u32::MAX)
    }

    fn free_slots(&mut self) {
        while self.slots.last().is_some_and(WorkerSlot::is_free) {
            self.slots.pop();
        }
    }

    /// Notes the short form of a call, unless there are enough that were made more often.
    fn list(&mut self, about: u64, count: u64, short: impl FnOnce() -> ShortCall) {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        if let Some(known) = self.listed.iter().position(|listed| listed.about == about) {
            let ListedCall { call, .. } = self.listed.remove(known);
            self.listed.push(ListedCall { about, count, call });
            return;
        }
        if self.listed.len() >= Self::LISTED {
            let least = (0..self.listed.len()).min_by_key(|n| self.listed[*n].count).unwrap_or(0);
            if self.listed[least].count > count {
                return;
            }
            self.listed.remove(least);
        }
        self.listed.push(ListedCall { about, count, call: short() });
    }

    fn unlist(&mut self, about: u64) {
        if let Some(known) = self.listed.iter().position(|listed| listed.about == about) {
            // Stored counts aren't checked against the calls.
            self.listed[known].count = self.listed[known].count.saturating_sub(1);
            if self.listed[known].count == 0 {
                self.listed.remove(known);
            }
        }
    }
}

impl WorkerSlot {
    fn is_free(&self) -> bool {
        self.calls == 0 && self.in_vain == 0
    }
}

/// Returns how many calls a swarm of so many workers remembers.
fn window(workers: usize) -> usize {
    Swarm::LEAST.max(Swarm::PER_WORKER * workers.min(Swarm::MOST_WORKERS))
}

impl Serialize for Swarm {
    fn serialize<S: Serializer>(&self, ser: S) -> Result<S::Ok, S::Error> {
        let written = WrittenSwarm {
            version: Self::VERSION,
            workers: self.slots.iter().map(|slot| (slot.id, &*slot.name)).collect(),
            calls: pack(self.calls.iter().copied()),
            in_vain: pack(self.in_vain.iter().copied()),
            listed: &self.listed,
        };
        written.serialize(ser)
    }
}

impl TryFrom<StoredSwarm> for Swarm {
    type Error = &'static str;

    fn try_from(stored: StoredSwarm) -> Result<Self, Self::Error> {
        const WRONG: &str = "the calls of a swarm don't fit its workers";
        let slot = |(id, name)| WorkerSlot { id, name, ..WorkerSlot::default() };
        let mut slots: Vec<WorkerSlot> = stored.workers.into_iter().map(slot).collect();
        let calls = unpack(&stored.calls).ok_or(WRONG)?;
        for (_, slot) in &calls {
            slots.get_mut(*slot as usize).ok_or(WRONG)?.calls += 1;
        }
        let in_vain = unpack(&stored.in_vain).ok_or(WRONG)?;
        for (_, slot) in &in_vain {
            slots.get_mut(*slot as usize).ok_or(WRONG)?.in_vain += 1;
        }
        Ok(Self { calls: calls.into(), in_vain: in_vain.into(), slots, listed: stored.listed })
    }
}

#[cfg(test)]
mod tests;
