#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use serde_json::Value;

use crate::{Action, Finding, Millis, SessionId};

/// Something people or other programs want to know, beside the decisions: at most once per level and episode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[non_exhaustive]
pub struct Event {
    /// What it is about.
    pub event: EventKind,
    /// The session.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub session: SessionId,
    /// The worker or subagent, if one is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The session that started this one, if the steps name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub controller: Option<SessionId>,
    /// The task, if one is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The step's index in its session.
    pub step: u64,
    /// When, if the step says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<i64>"))]
    pub ts: Option<Millis>,
    /// What was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Action>,
    /// The rung of the ladder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<u32>,
    /// Why, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How the run ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// What was found.
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
    /// Dollars of this request, on `cost.attributed`; absent when the price is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Tokens of the session so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// Dollars of the session so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_usd: Option<f64>,
    /// How to update the task, on `task.update`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_update: Option<Value>,
}

/// What an [`Event`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[non_exhaustive]
pub enum EventKind {
    /// A pattern was seen for the first time in its episode.
    #[serde(rename = "loop_detected")]
    LoopDetected,
    /// People should look: something was warned about or ended.
    #[serde(rename = "alert")]
    Alert,
    /// The agent was told.
    #[serde(rename = "nudge")]
    Nudge,
    /// A person was asked.
    #[serde(rename = "ask")]
    Ask,
    /// Calls were refused.
    #[serde(rename = "block")]
    Block,
    /// The run was ended.
    #[serde(rename = "session.terminated")]
    SessionTerminated,
    /// The task was marked as done with partial results.
    #[serde(rename = "task.update")]
    TaskUpdate,
    /// A request to the model was paid for.
    #[serde(rename = "cost.attributed")]
    CostAttributed,
    /// A limit is near or reached.
    #[serde(rename = "budget.warning")]
    BudgetWarning,
}

impl Event {
    /// An event about a step, with nothing else filled in.
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
