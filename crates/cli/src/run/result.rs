//! The outcome of a run, for pipelines: standard output belongs to the agent.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use super::attempt::Attempt;
use crate::exit::Failure;
use crate::redaction::Redaction;
use crate::safe_file;

/// The status of an attempt that ignored two nudges.
const IGNORED: &str = "NUDGES_IGNORED";

/// The outcome of `deloop run`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(title = "File of deloop run --json")]
pub(crate) struct RunResult {
    /// The id of the run: that of its first attempt.
    pub(crate) run: String,
    /// What became of it.
    pub(crate) outcome: RunOutcome,
    /// The exit code of `deloop run`.
    pub(crate) exit_code: u8,
    /// Every attempt, in order. Without `--on-stop retry` or `person` there is one.
    pub(crate) attempts: Vec<AttemptResult>,
    /// Why the agent couldn't be started, if that is how the run ended.
    pub(crate) error: Option<String>,
}

/// What became of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunOutcome {
    /// The first attempt ended by itself, with exit code 0.
    Completed,
    /// The last attempt ended by itself, with another exit code, or couldn't be started.
    Failed,
    /// deloop stopped the last attempt.
    Stopped,
    /// deloop ended the last attempt because nothing happened for too long.
    Stalled,
    /// deloop stopped an attempt, and a later one ended by itself, with exit code 0.
    Retried,
    /// deloop stopped the run, and the command of `--then` took over.
    Handled,
    /// deloop stopped the run, and a person takes over.
    HandedOver,
}

/// One attempt of a run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct AttemptResult {
    /// The id of the attempt, as in `deloop log --json`.
    run: String,
    /// The session that was stopped, or else the first that called deloop; null if none did.
    session: Option<String>,
    /// The agent of that session, such as `claude-code`.
    agent: Option<String>,
    /// When the agent was started, in RFC 3339.
    started: String,
    /// When it had ended.
    ended: String,
    /// The agent's own exit code, or 128+N if signal N ended it; null if it couldn't be started.
    exit_code: Option<u8>,
    /// Whether deloop ended it.
    stopped: bool,
    /// The status that the profile gives the stop, such as `LOOP_DETECTED`; `STALLED` if nothing happened for too long;
    /// `NUDGES_IGNORED` if a fresh session took its place.
    status: Option<String>,
    /// The model that `--recover` chose for it; null for the command's own.
    model: Option<String>,
    /// The id of the decision to stop, for `deloop explain`.
    decision: Option<String>,
    /// What repeated, or what was going on when nothing happened any more, in one line.
    summary: Option<String>,
    /// The path of the hand-off file.
    handoff: Option<PathBuf>,
}

impl AttemptResult {
    fn of(attempt: &Attempt) -> Self {
        let stop = attempt.ended_by();
        let redaction = Redaction::new(false);
        Self {
            run: attempt.run.clone(),
            session: attempt.source.as_ref().map(|source| source.session.clone()),
            agent: attempt.source.as_ref().map(|source| source.agent.clone()),
            started: attempt.started.to_string(),
            ended: attempt.ended.to_string(),
            exit_code: attempt.exit_code,
            stopped: stop.is_some(),
            status: match attempt.ignored {
                Some(_) => Some(IGNORED.to_owned()),
                None => stop.and_then(|stop| stop.status.clone()),
            },
            model: attempt.model.clone(),
            decision: stop.map(|stop| stop.id.clone()),
            summary: stop.and_then(|stop| stop.summary.as_deref()).map(|text| redaction.line(text, 300)),
            handoff: attempt.handoff.clone(),
        }
    }
}

impl RunResult {
    /// Creates the result of these attempts.
    pub(super) fn new(
        attempts: &[Attempt],
        outcome: RunOutcome,
        exit_code: u8,
        error: Option<String>,
    ) -> Self {
        Self {
            run: attempts.first().map(|attempt| attempt.run.clone()).unwrap_or_default(),
            outcome,
            exit_code,
            attempts: attempts.iter().map(AttemptResult::of).collect(),
            error,
        }
    }

    /// Returns it as one line of JSON.
    pub(super) fn json(&self) -> Result<Vec<u8>, Failure> {
        let mut text = serde_json::to_vec(self)?;
        text.push(b'\n');
        Ok(text)
    }

    /// Writes it to a file that the user named.
    pub(super) fn write(&self, path: &Path) -> Result<(), Failure> {
        safe_file::replace_named(path, &self.json()?)
            .map_err(|e| Failure::new(format!("{}: {e}", path.display())))
    }
}
