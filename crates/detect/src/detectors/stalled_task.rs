use deloop_types::{Evidence, Finding, Repeats};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::test_progress::{LastTestRun, TestRun};
use crate::fingerprint::half;
use crate::reading::{ItemState, PatternOf, Touch, plan_items};
use crate::{CallView, Detector, Happening, Moment, short_call, short_hash};

/// Finds tasks with many calls and neither completion nor test progress.
pub(crate) struct StalledTask;

/// Parameters of [`StalledTask`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct StalledTaskParams {
    /// Number of calls of one task that make a finding.
    at: u64,
}

impl Default for StalledTaskParams {
    fn default() -> Self {
        Self { at: 11 }
    }
}

/// The current task and its calls since the last progress.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct StalledTaskMemory {
    /// Identifies the task; 0 without one.
    task: u32,
    count: u64,
    since: u64,
    /// Number of items that were done in the last list.
    done: usize,
    last_run: LastTestRun,
}

impl Detector for StalledTask {
    type Params = StalledTaskParams;
    type Memory = StalledTaskMemory;

    fn name(&self) -> &'static str {
        "stalled-task"
    }

    #[cfg(feature = "schema")]
    fn schema(&self) -> serde_json::Value {
        schemars::schema_for!(StalledTaskParams).to_value()
    }

    fn page(&self) -> &'static str {
        include_str!("stalled-task.md")
    }

    fn look(&self, params: &Self::Params, moment: &Moment<'_>, memory: &mut Self::Memory) -> Option<Finding> {
        if matches!(memory.last_run.read(moment), Some(TestRun::Passed | TestRun::FewerFailures)) {
            memory.count = 0;
        }
        let Happening::Call(call) = &moment.event else { return None };
        if let Some(task) = moment.task {
            memory.work_on(half(short_hash(task.as_bytes())));
        }
        if memory.state_set(call, moment) || memory.task == 0 {
            return None;
        }
        if memory.count == 0 {
            memory.since = moment.step;
        }
        memory.count += 1;
        (memory.count >= params.at).then(|| {
            let mut found = Finding::new(self.name(), memory.count).by_rule("at");
            found.period = 1;
            found.score = 1.0;
            found.since = memory.since;
            found.tool = Some(call.call.tool.clone());
            found.repeats = Repeats::Task;
            found.calls = vec![short_call(&call.call.tool, &call.call.args)];
            found.pattern = u64::from(memory.task).into();
            found.evidence = Evidence { at: call.record.ordinal.into(), ..Evidence::default() };
            found
        })
    }
}

impl StalledTaskMemory {
    fn work_on(&mut self, task: u32) {
        if self.task != task {
            (self.task, self.count) = (task, 0);
        }
    }

    /// Reads the states that a task tool's call sets. Returns whether the call started or completed a task.
    fn state_set(&mut self, call: &CallView<'_>, moment: &Moment<'_>) -> bool {
        let vocabulary = moment.tools.vocabulary();
        if !vocabulary.is_a(PatternOf::TaskTool, &call.call.tool) {
            return false;
        }
        let items = plan_items(call.call, vocabulary);
        let done = items.iter().filter(|i| i.state == ItemState::Done).count();
        let started = items.iter().find(|i| i.state == ItemState::Started).map(|i| i.task);
        let single = items.first().is_some_and(|i| i.touch.how == Touch::Item);
        let completed = done > if single { 0 } else { std::mem::replace(&mut self.done, done) };
        if completed {
            self.count = 0;
        }
        if moment.task.is_some() {
            return completed;
        }
        // A list shows all tasks, so none of them in progress means that the agent works on none.
        let over = !single || items.iter().any(|i| i.task == self.task && i.state == ItemState::Done);
        match started {
            Some(task) if task != self.task => self.work_on(task),
            Some(_) => return completed,
            None if over => self.work_on(0),
            None => return completed,
        }
        true
    }
}
