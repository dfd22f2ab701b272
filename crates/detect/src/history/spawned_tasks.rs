//! Which tasks a session's agents gave to subagents, and how often with nothing changed in between.

use serde::{Deserialize, Serialize};

use crate::CallRecord;

/// Maximum number of tasks stored. The one given longest ago is dropped first.
const TASKS: usize = 16;

/// The tasks that were given to subagents.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct SpawnedTasks(Vec<SpawnedTask>);

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct SpawnedTask {
    task: u64,
    /// The call that gave it last.
    call: u64,
    times: u32,
    since: u64,
    /// The last time it was given.
    given: TaskGiven,
    /// Hash of what the subagent last came back with; 0 before.
    output: u32,
    /// Whether subagents came back with different results.
    differs: bool,
}

/// The state of the session when a task was given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct TaskGiven {
    pub(super) step: u64,
    /// Identifies the agent and its turn. Parallel copies of a task count once.
    pub(super) turn: u64,
    /// Number of things so far that could make it worth giving again.
    pub(super) news: u32,
    /// Number of subagents seen at work.
    pub(super) subagents: u32,
    /// Number of spawns, this one included.
    pub(super) spawns: u32,
}

impl SpawnedTasks {
    /// Enters a task. Returns how often it was given with nothing changed in between, and the step of the first time.
    pub(super) fn give(&mut self, task: u64, call: u64, now: TaskGiven) -> (u32, u64) {
        let at = self.0.iter().position(|known| known.task == task).unwrap_or_else(|| {
            if self.0.len() >= TASKS {
                let oldest = (0..self.0.len()).min_by_key(|i| self.0[*i].given.step).unwrap_or(0);
                self.0.swap_remove(oldest);
            }
            self.0.push(SpawnedTask { task, since: now.step, ..SpawnedTask::default() });
            self.0.len() - 1
        });
        let known = &mut self.0[at];
        let before = std::mem::replace(&mut known.given, now);
        known.call = call;
        if known.times > 0 && before.turn == now.turn {
            return (known.times, known.since);
        }
        // What subagents do unseen may be what changed.
        let is_unseen = before.subagents == now.subagents;
        let others = now.spawns > before.spawns + 1;
        if before.news != now.news || is_unseen && (known.differs || others) {
            (known.times, known.since, known.output, known.differs) = (0, now.step, 0, false);
        }
        known.times += 1;
        (known.times, known.since)
    }

    /// Compares the result of a subagent with the one before.
    pub(super) fn came_back(&mut self, record: &CallRecord) {
        let Some(known) = self.0.iter_mut().find(|known| known.call == record.signature) else { return };
        if record.ending.tells() && !record.ending.in_vain() {
            known.differs |= known.output != 0 && known.output != record.output;
            known.output = record.output;
        }
    }
}
