//! Runs a session between an agent's event and its reply.
//!
//! The engine decides. This crate carries out its decisions in a running session: it delivers messages, refuses calls,
//! honors pauses, allowed calls and feedback from people, tracks what the agent does after a
//! nudge, and records which calls led to it. [`Live`] does this with any [`Store`](deloop_store::Store) and a
//! [`Journal`], for hooks ([`Live::hook_event`]) and for programs that send Steps ([`Live::step`]). A server can decide in
//! place of the engine ([`RemoteDecisions`]); everything else stays here.

mod ceilings;
mod controller_notices;
mod embedding;
mod exemptions;
mod handled;
mod handoff;
mod holdout;
mod hook_event;
mod journal;
mod live;
mod outcome_tracking;
mod planned_steps;
mod recent_calls;
mod remote;
mod running_calls;
mod session_state;
mod step;
mod transcript;

pub use ceilings::{DayUsage, day_of};
pub use embedding::{AwaitedEmbedding, EmbeddingSource};
pub use exemptions::{CALL, InvalidPattern, check_pattern};
pub use handled::Handled;
pub use journal::{
    DecisionFilter, DecisionOrigin, HookCalls, Journal, NullJournal, Pardon, RecordedDecision, RunAttempt,
    SessionSource,
};
#[cfg(feature = "sqlite")]
pub use journal::{PurgeOutcome, RunActivity, STALLED, SqliteJournal, WatchedSession};
pub use live::{EventContext, Live};
pub use outcome_tracking::{NudgeOutcome, TURNS};
pub use recent_calls::{RecentCall, repeated};
pub use remote::{RemoteAnswer, RemoteDecisions};
pub use running_calls::RunningCall;
pub use transcript::{OpenTranscript, ReadSeek};
