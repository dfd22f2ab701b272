//! What is written down about running sessions: for the people who look later, and for the session's next event.

mod null;
#[cfg(feature = "sqlite")]
mod sqlite;

use deloop_store::StoreError;
use deloop_types::{Decision, Millis};

pub use null::NullJournal;
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteJournal;

/// Keeps decisions, what came of them, what people said about them, and the delivery state of each session.
pub trait Journal {
    /// Runs `work` so that everything written in it, to the journal and to the store it shares, is kept or none of it.
    ///
    /// # Errors
    /// What `work` returns, or when the journal can't be written.
    fn atomically<R>(&self, work: impl FnOnce() -> Result<R, StoreError>) -> Result<R, StoreError>;

    /// Counts a call of an agent's hook.
    ///
    /// # Errors
    /// When the journal can't be written; so for all methods below.
    fn called(&self, agent: &str, now: Millis) -> Result<(), StoreError>;

    /// Notes which agent a session belongs to and where its transcript is.
    fn note_source(&self, source: &SessionSource, now: Millis) -> Result<(), StoreError>;

    /// Returns the delivery state of a session, as [`Journal::set_session_state`] was given it.
    fn session_state(&self, session: &str, now: Millis) -> Result<Option<String>, StoreError>;

    /// Keeps the delivery state of a session.
    fn set_session_state(&self, session: &str, now: Millis, state: &str) -> Result<(), StoreError>;

    /// Records a decision. A plain `continue` isn't recorded, and a stop that still stands isn't recorded twice.
    fn record(&self, decision: &Decision, origin: &DecisionOrigin<'_>) -> Result<(), StoreError>;

    /// Notes that a decision was carried out at this event of the agent.
    fn delivered(&self, id: &str, event: &str) -> Result<(), StoreError>;

    /// Notes what the agent did after a decision was carried out.
    fn came_of(&self, id: &str, outcome: &str) -> Result<(), StoreError>;

    /// Returns until when a session is paused, if it is.
    fn paused(&self, session: &str, now: Millis) -> Result<Option<Millis>, StoreError>;

    /// Returns the patterns of a session that a person called honest work.
    fn pardons(&self, session: &str) -> Result<Vec<Pardon>, StoreError>;

    /// Notes that the session has acted on its pardons.
    fn pardons_known(&self, session: &str) -> Result<(), StoreError>;

    /// Returns the patterns of calls that are ignored.
    fn allowed(&self) -> Result<Vec<String>, StoreError>;
}

/// A decision as it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedDecision {
    /// Its name.
    pub id: String,
    /// The session.
    pub session: String,
    /// Which program: `claude-code`.
    pub agent: String,
    /// Which subagent of the session, if it was one.
    pub subagent: Option<String>,
    /// The step's index in the session.
    pub step: u64,
    /// When.
    pub ts: Millis,
    /// What was done.
    pub action: String,
    /// What would have been done if the mode or a pause had let it.
    pub would: Option<String>,
    /// The rung of the ladder.
    pub level: u64,
    /// Which detector decided it.
    pub detector: Option<String>,
    /// What was found, in words for people.
    pub summary: Option<String>,
    /// The message.
    pub message: Option<String>,
    /// How the run ended, on a stop.
    pub status: Option<String>,
    /// At which event of the agent it was carried out; `None` while it was not.
    pub delivered: Option<String>,
    /// A person said that it was wrong.
    pub wrong: bool,
    /// The rung's name.
    pub rung: Option<String>,
    /// All findings, as JSON.
    pub findings: Option<String>,
    /// The calls that led to it, in short forms, as JSON.
    pub recent_calls: Option<String>,
    /// The `deloop run` that it was decided in.
    pub run: Option<String>,
    /// Why nothing was done: `paused`.
    pub held: Option<String>,
    /// What the agent did next: a [`NudgeOutcome`](crate::NudgeOutcome); `None` while that isn't known yet.
    pub outcome: Option<String>,
}

/// Where and how something was decided.
#[derive(Debug, Clone, Copy)]
pub struct DecisionOrigin<'a> {
    /// Which program.
    pub agent: &'a str,
    /// Which subagent of the session.
    pub subagent: Option<&'a str>,
    /// When.
    pub now: Millis,
    /// The `deloop run` it is part of.
    pub run: Option<&'a str>,
    /// Why nothing is done about it.
    pub held: Option<&'a str>,
    /// The calls that led to it, as JSON.
    pub recent_calls: &'a str,
}

/// Selects decisions; all of them by default.
#[derive(Debug, Clone, Default)]
pub struct DecisionFilter<'a> {
    /// Of sessions whose names begin so.
    pub session: Option<&'a str>,
    /// Of this program.
    pub agent: Option<&'a str>,
    /// Of this `deloop run`.
    pub run: Option<&'a str>,
    /// Not before then.
    pub since: Option<Millis>,
}

/// Which agent a session belongs to. It is kept when the session has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionSource {
    /// The session.
    pub session: String,
    /// Which program: `claude-code`.
    pub agent: String,
    /// The file that the program writes the session to.
    pub transcript: Option<String>,
    /// The `deloop run` that started it.
    pub run: Option<String>,
}

/// A pattern of a session that a person called honest work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pardon {
    /// What found it.
    pub detector: String,
    /// Tells it from other patterns of the same detector.
    pub pattern: u64,
    /// The session has acted on it.
    pub known: bool,
}

/// How often a program's hook was called, and when last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookCalls {
    /// Which program.
    pub agent: String,
    /// When last.
    pub last: Millis,
    /// How often.
    pub calls: u64,
}
