//! The record of running sessions, for people who look later and for the session's next event.

mod null;
#[cfg(feature = "sqlite")]
mod sqlite;

use deloop_detect::UsageAmounts;
use deloop_store::StoreError;
use deloop_types::{Decision, Millis};

use crate::DayUsage;
pub use null::NullJournal;
#[cfg(feature = "sqlite")]
pub use sqlite::{PurgeOutcome, RunActivity, STALLED, SqliteJournal, WatchedSession};

/// Stores decisions, their outcomes, people's feedback on them, and the delivery state of each session.
pub trait Journal {
    /// Runs `work` atomically: either everything it writes to the journal and its store is kept, or nothing.
    ///
    /// # Errors
    /// The error of `work`, or an error when the journal can't be written.
    fn atomically<R>(&self, work: impl FnOnce() -> Result<R, StoreError>) -> Result<R, StoreError>;

    /// Counts a call of an agent's hook.
    ///
    /// # Errors
    /// When the journal can't be written. The same applies to all methods below.
    fn called(&self, agent: &str, now: Millis) -> Result<(), StoreError>;

    /// Records which agent a session belongs to and where its transcript is.
    fn note_source(&self, source: &SessionSource, now: Millis) -> Result<(), StoreError>;

    /// Returns the delivery state of a session, as last passed to [`Journal::set_session_state`].
    fn session_state(&self, session: &str, now: Millis) -> Result<Option<String>, StoreError>;

    /// Stores the delivery state of a session.
    fn set_session_state(&self, session: &str, now: Millis, state: &str) -> Result<(), StoreError>;

    /// Keeps a delivery state that can't be read, before another takes its place.
    fn keep_unreadable(&self, _session: &str, _state: &str, _error: &StoreError) -> Result<(), StoreError> {
        Ok(())
    }

    /// Records a decision. A plain `continue` isn't recorded, and a stop that still applies isn't recorded twice.
    fn record(&self, decision: &Decision, origin: &DecisionOrigin<'_>) -> Result<(), StoreError>;

    /// Records that a decision was carried out at this event of the agent.
    fn delivered(&self, id: &str, event: &str) -> Result<(), StoreError>;

    /// Records what the agent did after a decision was carried out.
    fn came_of(&self, id: &str, outcome: &str) -> Result<(), StoreError>;

    /// Returns when the session's pause ends, if it is paused.
    fn paused(&self, session: &str, now: Millis) -> Result<Option<Millis>, StoreError>;

    /// Returns the patterns of a session that a person marked as legitimate.
    fn pardons(&self, session: &str) -> Result<Vec<Pardon>, StoreError>;

    /// Records that the session has applied its pardons.
    fn pardons_known(&self, session: &str) -> Result<(), StoreError>;

    /// Returns the patterns of ignored calls.
    fn allowed(&self) -> Result<Vec<String>, StoreError>;

    /// Adds to what a project used on a day. Returns the day's total.
    fn add_usage(&self, project: &str, day: i64, used: &UsageAmounts) -> Result<DayUsage, StoreError>;

    /// Records that a person let a project's work continue on a day, after it had reached a limit.
    fn raise_day(&self, project: &str, day: i64) -> Result<(), StoreError>;
}

/// A recorded decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedDecision {
    /// The decision's id.
    pub id: String,
    /// The session.
    pub session: String,
    /// The agent, such as `claude-code`.
    pub agent: String,
    /// The subagent, if any.
    pub subagent: Option<String>,
    /// The step's index in the session.
    pub step: u64,
    /// The time.
    pub ts: Millis,
    /// The action taken.
    pub action: String,
    /// The action that the mode or a pause held back.
    pub would: Option<String>,
    /// The rung of the ladder.
    pub level: u64,
    /// The detector behind the decision.
    pub detector: Option<String>,
    /// A summary of the finding, for people.
    pub summary: Option<String>,
    /// The message.
    pub message: Option<String>,
    /// The status of the run, on a stop.
    pub status: Option<String>,
    /// The agent's event at which it was carried out; `None` if it wasn't.
    pub delivered: Option<String>,
    /// Whether a person marked it as wrong.
    pub wrong: bool,
    /// The rung's name.
    pub rung: Option<String>,
    /// All findings, as JSON.
    pub findings: Option<String>,
    /// The calls that led to it, shortened, as JSON.
    pub recent_calls: Option<String>,
    /// The `deloop run` that it belongs to.
    pub run: Option<String>,
    /// Why it wasn't carried out: `paused` or `holdout`.
    pub held: Option<String>,
    /// What the agent did next: a [`NudgeOutcome`](crate::NudgeOutcome); `None` while unknown.
    pub outcome: Option<String>,
    /// The step that its episode began at, if it is about an episode of a loop.
    pub episode: Option<u64>,
    /// The side of the holdout that its episode is on: `message` or `holdout`; `None` without a holdout.
    pub side: Option<String>,
}

/// The origin of a decision.
#[derive(Debug, Clone, Copy)]
pub struct DecisionOrigin<'a> {
    /// The agent.
    pub agent: &'a str,
    /// The subagent, if any.
    pub subagent: Option<&'a str>,
    /// The time.
    pub now: Millis,
    /// The `deloop run` that it belongs to.
    pub run: Option<&'a str>,
    /// Why it isn't carried out.
    pub held: Option<&'a str>,
    /// The calls that led to it, as JSON.
    pub recent_calls: &'a str,
    /// The step that its episode began at, if it is about an episode of a loop.
    pub episode: Option<u64>,
    /// The side of the holdout that its episode is on.
    pub side: Option<&'static str>,
}

impl<'a> DecisionOrigin<'a> {
    /// Creates the origin of a decision about an agent's main session; set the other fields as needed.
    #[must_use]
    pub fn new(agent: &'a str, now: Millis, run: Option<&'a str>) -> Self {
        Self { agent, subagent: None, now, run, held: None, recent_calls: "[]", episode: None, side: None }
    }
}

/// Filters decisions; matches all by default.
#[derive(Debug, Clone, Default)]
pub struct DecisionFilter<'a> {
    /// Sessions whose names start with this prefix.
    pub session: Option<&'a str>,
    /// This agent.
    pub agent: Option<&'a str>,
    /// This `deloop run`.
    pub run: Option<&'a str>,
    /// At or after this time.
    pub since: Option<Millis>,
}

/// The agent of a session and its transcript. Kept after the session has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionSource {
    /// The session.
    pub session: String,
    /// The agent, such as `claude-code`.
    pub agent: String,
    /// The transcript: the file that the agent writes the session to.
    pub transcript: Option<String>,
    /// The `deloop run` that started it.
    pub run: Option<String>,
    /// The folder that the agent works in.
    pub project: Option<String>,
}

/// An attempt of a `deloop run`. A run that is retried has several, each with an id of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunAttempt {
    /// The attempt's id.
    pub run: String,
    /// The id of the first attempt.
    pub first: String,
    /// The attempt's number, from 1.
    pub attempt: u64,
    /// The session that was stopped before it.
    pub after: Option<String>,
    /// The message about the attempt before it, for its agent.
    pub handoff: Option<String>,
}

/// A pattern of a session that a person marked as legitimate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pardon {
    /// The detector that found it.
    pub detector: String,
    /// Identifies the pattern among those of the same detector.
    pub pattern: u64,
    /// Whether the session has applied it.
    pub known: bool,
}

/// The number of calls of an agent's hook, and the time of the last one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookCalls {
    /// The agent.
    pub agent: String,
    /// The time of the last call.
    pub last: Millis,
    /// The number of calls.
    pub calls: u64,
}
