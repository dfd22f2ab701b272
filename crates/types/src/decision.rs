use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Action, Finding, Millis, Role, SessionId};

/// What to do after a step. One per step, `continue` included.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// The session the step belongs to.
    #[schemars(with = "String")]
    pub session: SessionId,
    /// The index of the step in its session, from 0.
    pub step: u64,
    /// A stable name for this decision, when it is more than `continue`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What to do.
    pub action: Action,
    /// The rung of the ladder; 0 for `continue`.
    pub level: u32,
    /// The rung's name, where the profile gives it one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rung: Option<String>,
    /// What to tell: the agent for a nudge or a block, people otherwise.
    pub message: Option<String>,
    /// In whose name the message is put into the conversation.
    pub role: Option<Role>,
    /// The ids of the calls to ask about or to refuse; `#N` is the N-th call of a turn without ids.
    pub calls: Vec<String>,
    /// How the run ended, on `stop`.
    pub status: Option<String>,
    /// Everything that was found at this step.
    pub findings: Vec<Finding>,
    /// The decision as it was before the mode capped it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub would: Option<Box<Decision>>,
    /// How to update the task, where the profile asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_update: Option<TaskUpdate>,
}

impl Decision {
    /// Do nothing about this step.
    #[must_use]
    pub fn go_on(session: SessionId, step: u64) -> Self {
        Self { session, step, ..Self::default() }
    }
}

/// The task is over, with partial results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskUpdate {
    /// Always `completed`.
    pub status: String,
    /// Why and how.
    pub metadata: TaskMetadata,
}

/// What a [`TaskUpdate`] says about the task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskMetadata {
    /// One sentence for people.
    pub summary: String,
    /// The results are partial.
    pub partial: bool,
    /// A loop was the reason.
    pub loop_detected: bool,
    /// The loop.
    pub loop_details: LoopDetails,
}

/// The loop that ended a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoopDetails {
    /// Similar actions in a row.
    pub run_length: u64,
    /// The action the run is measured against, normalised.
    pub last_action: String,
    /// The last five actions.
    pub buffer_snapshot: Vec<Snapshot>,
}

/// One action kept as evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// The tool.
    pub tool_name: String,
    /// Its normalised arguments.
    pub normalized_args: String,
    /// When, if known.
    #[schemars(with = "Option<i64>")]
    pub timestamp: Option<Millis>,
    /// The step's index in its session.
    pub step_index: u64,
}
