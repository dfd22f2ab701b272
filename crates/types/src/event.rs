#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use serde_json::Value;

use crate::{Action, Finding, Millis, SessionId};

/// A notification for people or other programs, sent at most once per level and episode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[non_exhaustive]
pub struct Event {
    /// The type of event.
    pub event: EventKind,
    /// The session.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub session: SessionId,
    /// The worker or subagent, if the step names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The session that started this one, if the steps name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub controller: Option<SessionId>,
    /// The task, if the step names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The step's index in its session.
    pub step: u64,
    /// The time, if the step has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<i64>"))]
    pub ts: Option<Millis>,
    /// The decision's action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Action>,
    /// The rung of the ladder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<u32>,
    /// The reason, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How the run ended, on `stop`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The findings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<Finding>,
    /// The calls that were refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<String>,
    /// The model, on `cost.attributed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tokens of this request, on `cost.attributed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Cost of this request in dollars, on `cost.attributed`; absent when the price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Tokens of the session so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// Cost of the session so far, in dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_usd: Option<f64>,
    /// The task update, on `task.update`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_update: Option<Value>,
}

/// The type of an [`Event`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[non_exhaustive]
pub enum EventKind {
    /// A pattern was found for the first time in its episode.
    #[serde(rename = "loop_detected")]
    LoopDetected,
    /// Something needs attention: deloop warned about a session or stopped it.
    #[serde(rename = "alert")]
    Alert,
    /// deloop sent the agent a message.
    #[serde(rename = "nudge")]
    Nudge,
    /// deloop asked a person.
    #[serde(rename = "ask")]
    Ask,
    /// deloop refused calls.
    #[serde(rename = "block")]
    Block,
    /// deloop stopped the run.
    #[serde(rename = "session.terminated")]
    SessionTerminated,
    /// The task was marked as completed with partial results.
    #[serde(rename = "task.update")]
    TaskUpdate,
    /// A request to the model was recorded.
    #[serde(rename = "cost.attributed")]
    CostAttributed,
    /// The session is close to a limit or has reached it.
    #[serde(rename = "budget.warning")]
    BudgetWarning,
}

impl Event {
    /// Creates an event about a step; set the other fields as needed.
    #[must_use]
    pub fn new(event: EventKind, session: SessionId, step: u64) -> Self {
        Self {
            event,
            session,
            agent: None,
            controller: None,
            task: None,
            step,
            ts: None,
            action: None,
            level: None,
            reason: None,
            status: None,
            finding: None,
            calls: Vec::new(),
            model: None,
            tokens: None,
            cost_usd: None,
            total_tokens: None,
            total_usd: None,
            task_update: None,
        }
    }
}
