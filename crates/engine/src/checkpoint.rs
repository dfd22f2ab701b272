use std::collections::BTreeMap;

use deloop_detect::{History, Ledger, WholeSession};
use deloop_policy::{AlertsSent, LadderState, Profile};
use deloop_store::{Store, StoreError};
use deloop_types::{ControllerNotice, Decision, SessionId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Engine;
use crate::memories::Memories;
use crate::session::{Agent, Session};
use crate::tasks::{Task, Tasks};

/// The stored state of one session, as JSON. Restoring it in the middle of a session changes no later decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    version: u32,
    steps: u64,
    ledger: Ledger,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    controller: Option<SessionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended: Option<Box<Decision>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notices: Vec<ControllerNotice>,
    #[serde(default, skip_serializing_if = "WholeSession::is_empty")]
    whole: WholeSession,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ladder: Option<Box<LadderState>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tasks: Vec<TaskCheckpoint>,
    agents: Vec<AgentCheckpoint>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct TaskCheckpoint {
    id: u64,
    seen: u64,
    memories: BTreeMap<String, Value>,
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Checkpoint {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Checkpoint".into()
    }

    /// Describes the outside only: the inside belongs to the release that wrote it.
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "object",
            "description": "The stored state of one session. Store it and send it back as it is: what is inside \
                            belongs to the release of deloop that wrote it.",
            "properties": {
                "version": {"const": Self::VERSION},
                "steps": {"type": "integer", "minimum": 0},
                "ledger": {"type": "object"},
                "agents": {"type": "array", "items": {"type": "object"}}
            },
            "required": ["version", "steps", "ledger", "agents"]
        })
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct AgentCheckpoint {
    name: Option<String>,
    seen: u64,
    history: History,
    memories: BTreeMap<String, Value>,
    ladder: LadderState,
    alerts: AlertsSent,
}

/// Why a checkpoint couldn't be created or restored.
#[derive(Debug)]
#[non_exhaustive]
pub enum RestoreError {
    /// Its version isn't one that this release can read.
    Version(u32),
    /// Another release made its fingerprints, so they can't be compared.
    Fingerprints,
    /// A detector's memory can't be written or read.
    Detector {
        /// The detector.
        name: &'static str,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The store failed.
    Store(StoreError),
}

impl std::fmt::Display for RestoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Version(found) => write!(
                f,
                "the checkpoint has version {found}, but this release reads version {}; start a new session",
                Checkpoint::VERSION
            ),
            Self::Fingerprints => {
                f.write_str("another release made the checkpoint's fingerprints; start a new session")
            }
            Self::Detector { name, source } => write!(f, "{name}: {source}"),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RestoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Version(_) | Self::Fingerprints => None,
            Self::Detector { source, .. } => Some(source),
            Self::Store(error) => Some(error),
        }
    }
}

impl From<StoreError> for RestoreError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Checkpoint {
    /// The version of the format that this release reads and writes.
    pub const VERSION: u32 = 3;

    pub(crate) fn of(session: &Session, profile: &Profile) -> Result<Self, RestoreError> {
        let mut agents = Vec::with_capacity(session.agents.len());
        for agent in &session.agents {
            let memories = stored(&agent.memories, profile)?;
            agents.push(AgentCheckpoint {
                name: agent.name.clone(),
                seen: agent.seen,
                history: agent.history.clone(),
                memories,
                ladder: agent.ladder.clone(),
                alerts: agent.alerts.clone(),
            });
        }
        let task = |task: &Task| -> Result<TaskCheckpoint, RestoreError> {
            let memories = stored(&task.memories, profile)?;
            Ok(TaskCheckpoint { id: task.id, seen: task.seen, memories })
        };
        let tasks = session.tasks.0.iter().map(task).collect::<Result<_, RestoreError>>()?;
        Ok(Self {
            version: Self::VERSION,
            steps: session.steps,
            ledger: session.ledger,
            controller: session.controller.clone(),
            ended: session.ended.clone(),
            notices: session.notices.clone(),
            whole: session.whole.clone(),
            ladder: session.ladder.clone(),
            tasks,
            agents,
        })
    }

    pub(crate) fn into_session(self, profile: &Profile) -> Result<Session, RestoreError> {
        if self.version != Self::VERSION {
            return Err(RestoreError::Version(self.version));
        }
        let mut agents = Vec::with_capacity(self.agents.len());
        for agent in self.agents {
            if !agent.history.is_current() {
                return Err(RestoreError::Fingerprints);
            }
            let AgentCheckpoint { name, seen, history, memories, ladder, alerts } = agent;
            let memories = restored(memories, profile)?;
            agents.push(Agent { name, seen, history, memories, ladder, alerts });
        }
        let Self { steps, ledger, controller, ended, notices, whole, ladder, .. } = self;
        let task = |task: TaskCheckpoint| -> Result<Task, RestoreError> {
            let memories = restored(task.memories, profile)?;
            Ok(Task { id: task.id, seen: task.seen, memories })
        };
        let tasks = Tasks(self.tasks.into_iter().map(task).collect::<Result<_, RestoreError>>()?);
        Ok(Session { steps, ledger, controller, ended, notices, whole, ladder, tasks, agents })
    }
}

/// Returns what detectors remember, as JSON.
fn stored(memories: &Memories, profile: &Profile) -> Result<BTreeMap<String, Value>, RestoreError> {
    let mut stored = BTreeMap::new();
    for (at, watch) in profile.watches.iter().enumerate() {
        let (name, Some(memory)) = (watch.detector.name(), memories.get(at)) else { continue };
        let json = memory.to_json().map_err(|source| RestoreError::Detector { name, source })?;
        stored.insert(name.to_owned(), json);
    }
    Ok(stored)
}

/// Reads what detectors remember. One that the profile didn't have at that time starts fresh.
fn restored(mut stored: BTreeMap<String, Value>, profile: &Profile) -> Result<Memories, RestoreError> {
    let memories = profile.watches.iter().map(|watch| {
        let name = watch.detector.name();
        match stored.remove(name) {
            Some(json) => {
                watch.detector.restore(json).map_err(|source| RestoreError::Detector { name, source })
            }
            None => Ok(watch.detector.fresh()),
        }
    });
    memories.collect()
}

impl Engine {
    /// Returns the state of a session; `None` when there is no such session.
    ///
    /// # Errors
    /// When the store fails, or a custom detector's memory can't be serialized as JSON.
    pub fn checkpoint<S: Store<Session>>(
        &self,
        store: &S,
        session: &SessionId,
    ) -> Result<Option<Checkpoint>, RestoreError> {
        store.look(self, session, |state| Checkpoint::of(state, self.profile()))?.transpose()
    }

    /// Restores a session and replaces any state it has.
    ///
    /// # Errors
    /// When the store fails, or another release or other detectors made the checkpoint and this engine can't read it.
    pub fn restore<S: Store<Session>>(
        &self,
        store: &S,
        session: &SessionId,
        checkpoint: &Checkpoint,
    ) -> Result<(), RestoreError> {
        let readable = || checkpoint.clone().into_session(self.profile());
        readable()?;
        store.forget(session)?;
        // Restored with the time of its last step, so that it becomes idle when it would have.
        let last = checkpoint.ledger.last;
        Ok(store.update(self, session, last, |state| {
            if let Ok(restored) = readable() {
                *state = restored;
            }
        })?)
    }
}
