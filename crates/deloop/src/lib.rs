//! Notices when an AI agent is stuck in a loop, and says what to do about it.
//!
//! ```
//! use deloop::{Action, Guard, Profile, Step};
//! use serde_json::json;
//!
//! let guard = Guard::new(Profile::named("doom-loop")?);
//! let mut last = Action::Continue;
//! for _ in 0..6 {
//!     let decision = guard.observe(&Step::call("s1", "bash", json!({"command": "ls /nowhere"})));
//!     last = decision.action;
//! }
//! assert_eq!(last, Action::Block);
//! # Ok::<(), deloop::ProfileError>(())
//! ```
//!
//! The data flows one way: a [`Step`] goes in, detectors turn a history of steps into [`Finding`]s, and a
//! [`Profile`]'s ladders turn findings into a [`Decision`]. No I/O, no async, no clock: time is data that a Step
//! carries.

mod checkpoint;
mod engine;
mod guard;
mod session;

pub use checkpoint::{Checkpoint, RestoreError};
pub use deloop_detect::{
    AnyDetector, CallRecord, CallView, DETECTORS, Detector, Fingerprint, Happening, History, Ledger, Moment,
    ResultView, ToolKind, ToolRule, Tools, VOCABULARY, clean, is_invisible, mask, normalise, quote, redact,
    short_call, short_hash, telling_argument,
};
pub use deloop_policy::{
    AGENT_VARIABLES, AgentBlock, CONFIG_KEYS, DocumentError, Fail, Ladder, MemoryBlock, PROFILES, Price,
    Profile, ProfileError, Registry, Rules, Rung, config_schema, evidence, merge, profile_text, unknown_key,
};
#[cfg(feature = "sqlite")]
pub use deloop_store::{
    Bounds, Circumstances, DecisionFilter, DecisionRow, HookCalls, Pardon, SourceRow, SqliteStore,
};
pub use deloop_store::{Codec, Limits, MemoryStore, Store, StoreError};
pub use deloop_types::*;
pub use engine::{Engine, Observed, Options};
pub use guard::{Guard, SwarmCheckpoint};
pub use session::Session;
