//! The task update of the behavioral profile: the arguments for `TaskUpdate` when deloop ends a task.

use deloop_detect::LoopDetails;
use deloop_types::{Decision, Event, Finding};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The key of [`Decision::extra`](deloop_types::Decision::extra) that holds a [`TaskUpdate`].
pub const TASK_UPDATE: &str = "task_update";

/// Ends a task with partial results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct TaskUpdate {
    /// The task, if the step names one.
    #[serde(rename = "taskId", default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// Always `completed`.
    pub status: String,
    /// Details.
    pub metadata: TaskMetadata,
}

/// The details of a [`TaskUpdate`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TaskMetadata {
    /// A one-sentence summary.
    pub summary: String,
    /// Whether the results are partial; always true.
    pub partial: bool,
    /// Whether a loop ended the task; always true.
    pub loop_detected: bool,
    /// Details of the loop.
    pub loop_details: LoopDetails,
}

impl TaskUpdate {
    /// Returns the update that a decision carries.
    #[must_use]
    pub fn in_decision(decision: &Decision) -> Option<Self> {
        serde_json::from_value(decision.extra.get(TASK_UPDATE)?.clone()).ok()
    }

    /// Returns the update for a finding, if its detector provides the details.
    pub(crate) fn of(finding: &Finding) -> Option<Value> {
        let loop_details = serde_json::from_value(finding.evidence.details.clone()?).ok()?;
        let summary = format!(
            "Task partially completed. Loop detected after {} similar actions. {}.",
            finding.count, finding.summary
        );
        let metadata = TaskMetadata { summary, partial: true, loop_detected: true, loop_details };
        serde_json::to_value(Self { task_id: None, status: "completed".to_owned(), metadata }).ok()
    }
}

/// Names the task in the updates that a decision and its events carry.
pub fn name_task(task: &str, decision: &mut Decision, events: &mut [Event]) {
    let updates = events.iter_mut().filter_map(|event| event.task_update.as_mut());
    for update in decision.extra.get_mut(TASK_UPDATE).into_iter().chain(updates) {
        update["taskId"] = task.into();
    }
}
