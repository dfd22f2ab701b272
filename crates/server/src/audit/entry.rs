use std::sync::Arc;

use deloop_types::{Decision, Millis, SessionId, Step};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::turn_history::TurnHistory;
use crate::project::Project;

/// Who decides about steps, in the audit log.
const DECIDER: &str = "deloop";
/// Maximum length of a decision's message in a record, in characters.
const MESSAGE: usize = 400;
/// Maximum length of a name in a record, in characters.
const NAME: usize = 256;

/// The steps that a record is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepRange {
    /// The first step's index in its session.
    pub first: u64,
    /// The last step's index.
    pub last: u64,
}

/// What was decided, in a record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditedDecision {
    /// The decision's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The action that was answered.
    pub action: String,
    /// The action before the mode capped it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub would: Option<String>,
    /// The rung of the ladder.
    pub level: u32,
    /// The detector that led to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detector: Option<String>,
    /// How the run ended, on a stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}

/// What is to be recorded.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AuditEntry {
    /// When it happened, by the server's clock.
    pub ts: Millis,
    /// Who did it.
    pub actor: Arc<str>,
    /// What was done: `decision.stop`, `session.reset`, `swarm.clear`.
    pub action: String,
    /// The project, unless it is about the whole server.
    pub project: Option<Project>,
    /// The session. A purge removes it.
    pub session: Option<SessionId>,
    /// The worker or subagent. A purge removes it.
    pub agent: Option<String>,
    /// The swarm. A purge removes it.
    pub swarm: Option<String>,
    /// The steps it is about.
    pub steps: Option<StepRange>,
    /// What was decided.
    pub decision: Option<AuditedDecision>,
    /// The decision's message, shortened. A purge removes it.
    pub message: Option<String>,
    /// More about it; null if there is nothing. A purge removes it.
    pub detail: Value,
    /// The last turns of the session. A purge removes them.
    pub turns: Option<TurnHistory>,
    /// What the log notes about itself. It is part of the chain and stays.
    pub(super) note: Option<LogNote>,
}

impl AuditEntry {
    /// Creates an entry about what someone did.
    #[must_use]
    pub fn new(ts: Millis, actor: &str, action: &str) -> Self {
        Self {
            ts,
            actor: Arc::from(deloop_detect::clean(actor, NAME)),
            action: deloop_detect::clean(action, NAME),
            project: None,
            session: None,
            agent: None,
            swarm: None,
            steps: None,
            decision: None,
            message: None,
            detail: Value::Null,
            turns: None,
            note: None,
        }
    }

    /// Creates an entry about a decision, sent to `sender`. Returns `None` for a plain `continue`. Leave out a stop that
    /// merely still applies (`Observed::standing`).
    #[must_use]
    pub fn of_decision(
        ts: Millis,
        project: &Project,
        sender: &str,
        step: &Step,
        decision: &Decision,
    ) -> Option<Self> {
        let full = decision.uncapped();
        if full.action == deloop_types::Action::Continue {
            return None;
        }
        let finding = decision.main_finding().or(full.main_finding());
        let first = finding.map_or(decision.step, |finding| finding.since.min(decision.step));
        let would = decision.would.as_ref().map(|would| would.action.to_string());
        let message = decision.message.as_deref().or(full.message.as_deref());
        let summary = finding.map(|finding| short(&finding.summary));
        Some(Self {
            project: Some(project.clone()),
            session: Some(decision.session.clone()),
            agent: step.agent.clone(),
            swarm: step.swarm.clone(),
            steps: Some(StepRange { first, last: decision.step }),
            decision: Some(AuditedDecision {
                id: full.id.clone(),
                action: decision.action.to_string(),
                would,
                level: full.level,
                detector: finding.map(|finding| finding.detector.clone()),
                status: full.status.clone(),
            }),
            message: message.map(short),
            detail: json!({"sender": sender, "summary": summary}),
            ..Self::new(ts, DECIDER, &format!("decision.{}", decision.action))
        })
    }

    /// Sets the project.
    #[must_use]
    pub fn in_project(mut self, project: &Project) -> Self {
        self.project = Some(project.clone());
        self
    }

    /// Sets the session.
    #[must_use]
    pub fn of_session(mut self, session: &SessionId) -> Self {
        self.session = Some(session.clone());
        self
    }

    /// Sets the swarm.
    #[must_use]
    pub fn of_swarm(mut self, swarm: &str) -> Self {
        self.swarm = Some(swarm.to_owned());
        self
    }

    /// Sets the detail. Don't put secrets into it.
    #[must_use]
    pub fn with_detail(mut self, detail: Value) -> Self {
        self.detail = detail;
        self
    }

    /// Adds the last turns of the session.
    #[must_use]
    pub fn with_turns(mut self, turns: TurnHistory) -> Self {
        self.turns = Some(turns);
        self
    }

    /// Returns whether it is about a stop, whose record carries the session's last turns.
    #[must_use]
    pub fn is_stop(&self) -> bool {
        self.decision.as_ref().is_some_and(|decision| decision.action == "stop")
    }

    pub(super) fn with_note(mut self, note: LogNote) -> Self {
        self.note = Some(note);
        self
    }
}

fn short(text: &str) -> String {
    deloop_detect::quote(text, MESSAGE)
}

/// What the log notes about itself. Verification depends on it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LogNote {
    /// The records whose payload was purged, as first and last numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) purged: Vec<(u64, u64)>,
    /// The last record that retention deleted, with all before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) deleted: Option<DeletedUpTo>,
    /// The records that were missing when the log was opened, as first and last number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) missing: Option<(u64, u64)>,
    /// The length of an incomplete last line that was cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cut_bytes: Option<u64>,
    /// The number of entries that couldn't be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lost: Option<u64>,
    /// What else was wrong when the log was opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) damage: Option<String>,
}

/// The last record that retention deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeletedUpTo {
    pub(super) last: u64,
    // Not `hash`: the first `,"hash":"` of a line ends its chained part.
    pub(super) last_hash: String,
}
