//! The output of the hook, and the lines of tool-events.jsonl.

use deloop_policy::TaskUpdate;
use deloop_types::{Action, Decision};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::exit::Failure;

/// The detector whose run the hook reports.
pub(super) const COUNTER: &str = "similar-call";

/// The output: the current level of escalation.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "Output of deloop hook behavioral")]
pub(crate) struct Output {
    /// The level, 0 to 3.
    pub(super) level: u32,
    /// The action: continue, replan, explore or force-done.
    pub(super) action: String,
    /// The message for the agent.
    pub(super) message: Option<String>,
    /// Whether the action is similar to the first one of its run.
    pub(super) similar: bool,
    /// Number of similar actions in a row, including this one.
    pub(super) run_length: u64,
    /// Similarity of the arguments to those of the run's first action, 0 to 1; absent for the first action of a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) score: Option<f64>,
    /// The arguments for TaskUpdate, at level 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) task_update: Option<TaskUpdate>,
    /// Findings of the other detectors. They don't change the level.
    pub(super) findings: Vec<ListedFinding>,
    /// Loops of this tool that learnings.md records, newest last; empty after the first action of a task. Data for people:
    /// don't pass it to an agent as an instruction.
    pub(super) known_patterns: Vec<String>,
}

/// A finding that doesn't change the level.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ListedFinding {
    /// The detector.
    detector: String,
    /// Number of occurrences.
    count: u64,
    /// A summary for people.
    summary: String,
}

/// What the hook answered about an action, until the action's result arrives.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Answered {
    level: u32,
    action: String,
    similar: bool,
    run_length: u64,
    score: Option<f64>,
}

impl Output {
    /// Describes a decision about an action. `first` is whether it is the first action of the task.
    pub(super) fn of(decision: Decision, first: bool) -> Self {
        let task_update = TaskUpdate::in_decision(&decision);
        let findings = listed(&decision);
        let counted = decision.findings.iter().find(|f| f.detector == COUNTER);
        Self {
            level: decision.level,
            similar: counted.is_some_and(|f| f.count > 1),
            run_length: counted.map_or(1, |f| f.count),
            score: counted.filter(|_| !first).map(|f| f.score),
            action: match decision.action {
                Action::Continue => "continue".to_owned(),
                action => decision.rung.unwrap_or_else(|| action.to_string()),
            },
            message: decision.message,
            task_update,
            findings,
            known_patterns: Vec::new(),
        }
    }

    /// Describes an action that was answered before, with what its result led to.
    pub(super) fn again(answered: Answered, decision: &Decision) -> Self {
        let Answered { level, action, similar, run_length, score } = answered;
        Self { level, action, similar, run_length, score, findings: listed(decision), ..Self::default() }
    }

    /// Returns what is kept until the action's result arrives.
    pub(super) fn answered(&self) -> Answered {
        Answered {
            level: self.level,
            action: self.action.clone(),
            similar: self.similar,
            run_length: self.run_length,
            score: self.score,
        }
    }
}

fn listed(decision: &Decision) -> Vec<ListedFinding> {
    let others = decision.findings.iter().filter(|f| f.detector != COUNTER);
    let one = |f: &deloop_types::Finding| ListedFinding {
        detector: f.detector.clone(),
        count: f.count,
        summary: f.summary.clone(),
    };
    others.map(one).collect()
}

/// One line of tool-events.jsonl.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "Line of tool-events.jsonl")]
pub(crate) struct ToolEvent {
    /// Always `loop-detection`.
    event: &'static str,
    /// The time, in RFC 3339.
    timestamp: String,
    /// The task.
    task_id: String,
    /// The tool.
    tool_name: String,
    /// The level, 0 to 3.
    level: u32,
    /// The action: continue, replan, explore or force-done.
    action: String,
    /// Number of similar actions in a row.
    run_length: u64,
}

impl ToolEvent {
    /// Returns the line about an action.
    pub(super) fn line(output: &Output, task: &str, tool: &str) -> Result<Vec<u8>, Failure> {
        let event = Self {
            event: "loop-detection",
            timestamp: jiff::Timestamp::now().to_string(),
            task_id: task.to_owned(),
            tool_name: tool.to_owned(),
            level: output.level,
            action: output.action.clone(),
            run_length: output.run_length,
        };
        let mut line = serde_json::to_vec(&event)?;
        line.push(b'\n');
        Ok(line)
    }
}
