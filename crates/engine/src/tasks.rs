use deloop_detect::{CompletedTask, Happening, Moment, completed_task, short_hash};

use crate::memories::Memories;

/// Maximum number of tasks stored per session. The one inactive longest is dropped first.
const TASKS: usize = 32;

/// What detectors remember of the tasks of a session, whichever agents work on them.
#[derive(Default)]
pub(crate) struct Tasks(pub(crate) Vec<Task>);

/// What detectors remember of one task.
pub(crate) struct Task {
    /// The hash of its name.
    pub(crate) id: u64,
    /// The step of its last activity.
    pub(crate) seen: u64,
    pub(crate) memories: Memories,
}

impl Tasks {
    /// Returns what is remembered of a task, which is active at this step.
    pub(crate) fn of(&mut self, name: &str, step: u64) -> &mut Memories {
        let id = short_hash(name.as_bytes());
        let index = self.0.iter().position(|task| task.id == id).unwrap_or_else(|| {
            if self.0.len() >= TASKS {
                let oldest = (0..self.0.len()).min_by_key(|i| self.0[*i].seen).unwrap_or(0);
                self.0.swap_remove(oldest);
            }
            self.0.push(Task { id, seen: step, memories: Memories::default() });
            self.0.len() - 1
        });
        let task = &mut self.0[index];
        task.seen = step;
        &mut task.memories
    }

    /// Forgets the task that a call completes, if it does.
    pub(crate) fn completed_at(&mut self, moment: &Moment<'_>) {
        let Happening::Call(call) = &moment.event else { return };
        if self.0.is_empty() {
            return;
        }
        let named = match completed_task(call.call, moment.tools) {
            Some(CompletedTask::Named(name)) => Some(name),
            Some(CompletedTask::Current) => moment.task.map(str::to_owned),
            None => None,
        };
        if let Some(name) = named {
            let id = short_hash(name.as_bytes());
            self.0.retain(|task| task.id != id);
        }
    }
}
