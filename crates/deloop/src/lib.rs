//! Detect and break loops in AI agents.
//!
//! Describe what your agent does as [`Step`]s, pass each to a [`Guard`], and act on the [`Decision`]:
//!
//! ```
//! use deloop::{Action, Guard, Profile, Step};
//! use serde_json::json;
//!
//! let guard = Guard::new(Profile::named("default")?);
//! let mut actions = Vec::new();
//! for n in 1..=3 {
//!     let id = format!("call-{n}");
//!     guard.observe(&Step::call("session-1", "bash", json!({"command": "make check"})));
//!     let decision = guard.observe(&Step::result("session-1", false, "make: *** No rule"));
//!     actions.push(decision.action);
//! }
//! assert_eq!(actions, [Action::Continue, Action::Continue, Action::Nudge]);
//! # Ok::<(), deloop::ProfileError>(())
//! ```
//!
//! The data flows one way: detectors turn a session's history into [`Finding`]s, and a [`Profile`]'s ladders turn
//! findings into a [`Decision`]. There is no I/O, no async and no clock: Steps carry the time.
//!
//! The crate's default feature `cli` builds the command. To use the library alone:
//!
//! ```toml
//! deloop = { version = "0.1", default-features = false }
//! ```

pub use deloop_detect::{SwarmFingerprint, SwarmState};
pub use deloop_engine::{
    AgentReport, Checkpoint, Engine, Guard, LoopDetectionState, Observed, Options, RestoreError, Session,
    SwarmCheckpoint,
};
pub use deloop_policy::{Ladder, PROFILES, Profile, ProfileError, ReachedRung, Registry, Rules, Rung};
pub use deloop_types::{
    Action, Body, Call, CameBack, Decision, Delivery, Event, EventKind, Finding, Millis, Mode, Origin,
    Outcome, Repeats, Role, Roles, Rollback, SessionId, ShortCall, Step, StepError, ToolResult, Turn, Usage,
    UserText,
};

/// What you need for a detector of your own; `examples/custom_detector.rs` shows one.
pub mod detector {
    pub use deloop_detect::{CallView, Detector, Happening, History, Moment, ResultView};
    pub use deloop_types::Evidence;
}

/// What you need for an [`Engine`] with your own store.
pub mod store {
    pub use deloop_detect::{Swarm, SwarmCall, SwarmCount, SwarmWorker};
    pub use deloop_store::{Codec, Limits, MemoryStore, Store, StoreError};
    #[cfg(feature = "redis")]
    pub use deloop_store::{RedisOptions, RedisSecret, RedisStore, RedisTls};
}
