//! Which tasks a session's agents gave to subagents, and how often with nothing changed in between.

use serde::{Deserialize, Serialize};

use crate::CallRecord;
use crate::fingerprint::half;

/// Maximum number of tasks stored. The one given longest ago is dropped first.
const TASKS: usize = 3;

/// The tasks that were given to subagents last, newest last.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct SpawnedTasks(Vec<SpawnedTask>);

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct SpawnedTask {
    task: u32,
    /// The call that gave it last.
    call: u32,
    /// The step at which it was first given.
    since: u32,
    /// Hash of what the subagent last came back with; 0 before.
    output: u32,
    /// The last time it was given.
    given: TaskGiven,
    times: u8,
    /// Whether subagents came back with different results.
    differs: bool,
}

/// The state of the session when a task was given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct TaskGiven {
    /// The turn of the agent that gave it. Parallel copies of a task count once.
    pub(super) turn: u32,
    /// Number of things so far that could make it worth giving again.
    pub(super) news: u16,
    /// Number of subagents seen at work.
    pub(super) subagents: u16,
    /// Number of spawns, this one included.
    pub(super) spawns: u16,
}

impl SpawnedTasks {
    /// Enters a task. Returns how often it was given with nothing changed in between, and the step of the first time.
    pub(super) fn give(&mut self, task: u64, record: &CallRecord, now: TaskGiven) -> (u8, u32) {
        let task = half(task);
        let mut known = match self.0.iter().position(|known| known.task == task) {
            Some(at) => self.0.remove(at),
            None => SpawnedTask { task, since: record.step, ..SpawnedTask::default() },
        };
        let before = std::mem::replace(&mut known.given, now);
        known.call = half(record.signature);
        if known.times == 0 || before.turn != now.turn {
            // What subagents do unseen may be what changed.
            let is_unseen = before.subagents == now.subagents;
            let others = now.spawns > before.spawns.saturating_add(1);
            if before.news != now.news || is_unseen && (known.differs || others) {
                (known.times, known.since, known.output, known.differs) = (0, record.step, 0, false);
            }
            known.times = known.times.saturating_add(1);
        }
        if self.0.len() >= TASKS {
            self.0.remove(0);
        }
        self.0.reserve_exact(1);
        self.0.push(known);
        (known.times, known.since)
    }

    /// Compares the result of a subagent with the one before.
    pub(super) fn came_back(&mut self, record: &CallRecord) {
        let call = half(record.signature);
        let Some(known) = self.0.iter_mut().find(|known| known.call == call) else { return };
        if record.ending.tells() && !record.ending.in_vain() {
            known.differs |= known.output != 0 && known.output != record.output;
            known.output = record.output;
        }
    }
}
