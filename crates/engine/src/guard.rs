use std::collections::BTreeMap;

use deloop_detect::{Swarm, SwarmState};
use deloop_policy::Profile;
use deloop_store::{Limits, MemoryStore, Store};
use deloop_types::{Decision, Millis, SessionId, Step};
use serde::{Deserialize, Serialize};

use crate::{Checkpoint, EmbedFn, Engine, LoopDetectionState, Observed, Options, RestoreError, Session};

/// Watches any number of sessions in this process and returns a decision after each step.
///
/// Share it between threads by reference or in an `Arc`. Sessions are identified by id, and idle ones are dropped.
///
/// ```
/// use deloop_engine::Guard;
/// use deloop_policy::Profile;
/// use deloop_types::{Action, Step};
/// let guard = Guard::new(Profile::named("turn-hash")?);
/// assert_eq!(guard.observe(&Step::text("s1", "Let me look.")).action, Action::Continue);
/// assert_eq!(guard.observe(&Step::text("s1", "Let me look.")).action, Action::Nudge);
/// # Ok::<(), deloop_policy::ProfileError>(())
/// ```
pub struct Guard {
    engine: Engine,
    store: MemoryStore<Session>,
}

/// The state of a swarm and all its sessions, as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SwarmCheckpoint {
    /// The state of the swarm.
    pub swarm: Swarm,
    /// The state of its sessions.
    pub sessions: BTreeMap<String, Checkpoint>,
}

impl Guard {
    /// Creates a guard for this profile, in mode `enforce`, for an unattended run.
    #[must_use]
    pub fn new(profile: Profile) -> Self {
        Self::with(profile, Options::default(), Limits::default())
    }

    /// Creates a guard with these options and limits.
    #[must_use]
    pub fn with(profile: Profile, options: Options, limits: Limits) -> Self {
        Self { engine: Engine::new(profile, options), store: MemoryStore::new(limits) }
    }

    /// Computes the embeddings of turns that come without one; see [`Engine::with_embeddings`].
    ///
    /// ```
    /// use std::sync::Arc;
    /// use deloop_engine::Guard;
    /// use deloop_policy::{Profile, Registry, profile_text};
    /// use deloop_types::{Action, Step};
    /// let text = profile_text("turn-similarity")?.replace("window = 5", "window = 5\nby = \"embeddings\"");
    /// let guard = Guard::new(Profile::from_toml(&text, &Registry::default())?)
    ///     .with_embeddings(Arc::new(|text: &str| Some(vec![text.len() as f32, 1.0])));
    /// for words in ["analyze prices", "examine costs", "study the charts"] {
    ///     assert_eq!(guard.observe(&Step::text("s1", words)).action, Action::Continue);
    /// }
    /// assert_eq!(guard.observe(&Step::text("s1", "inspect markets")).action, Action::Warn);
    /// # Ok::<(), deloop_policy::ProfileError>(())
    /// ```
    #[must_use]
    pub fn with_embeddings(mut self, embed: EmbedFn) -> Self {
        self.engine = self.engine.with_embeddings(embed);
        self
    }

    /// Gives steps without a time that of this clock; see [`Engine::with_clock`].
    #[must_use]
    pub fn with_clock(mut self, clock: fn() -> Millis) -> Self {
        self.engine = self.engine.with_clock(clock);
        self
    }

    /// Adds a step to its session and returns what to do.
    pub fn observe(&self, step: &Step) -> Decision {
        self.observe_all(step).decision
    }

    /// Does the same as [`Guard::observe`] and also returns the events.
    ///
    /// ```
    /// use deloop_engine::Guard;
    /// use deloop_policy::Profile;
    /// use deloop_types::{EventKind, Step};
    /// let guard = Guard::new(Profile::named("turn-hash")?);
    /// guard.observe(&Step::text("s1", "Again."));
    /// let seen = guard.observe_all(&Step::text("s1", "Again."));
    /// assert_eq!(seen.events[0].event, EventKind::LoopDetected);
    /// # Ok::<(), deloop_policy::ProfileError>(())
    /// ```
    pub fn observe_all(&self, step: &Step) -> Observed {
        self.engine.observe(&self.store, step).unwrap_or_else(|_| {
            // The memory store doesn't fail. If it ever did, the agent would continue.
            Observed::elsewhere(Decision::go_on(step.session.clone(), 0))
        })
    }

    /// Deletes the state of a session. The profile and its thresholds stay.
    ///
    /// ```
    /// # use deloop_engine::Guard;
    /// # use deloop_policy::Profile;
    /// # use deloop_types::{Action, Step};
    /// # let guard = Guard::new(Profile::named("turn-hash")?);
    /// guard.observe(&Step::text("s1", "Again."));
    /// guard.reset(&"s1".into());
    /// assert_eq!(guard.observe(&Step::text("s1", "Again.")).action, Action::Continue);
    /// # Ok::<(), deloop_policy::ProfileError>(())
    /// ```
    pub fn reset(&self, session: &SessionId) {
        // The memory store doesn't fail.
        let _ = self.store.forget(session);
    }

    /// Deletes the state of a swarm.
    pub fn reset_swarm(&self, swarm: &str) {
        let _ = self.store.forget_swarm(swarm);
    }

    /// Returns what the detectors of repeated calls know of an agent of a session, `None` being the main agent. Before
    /// its first step, that is the default state. Returns `None` when the profile uses neither `repeated-call` nor
    /// `repeated-target`. [`Guard::reset`] clears the state; the thresholds belong to the profile and stay.
    ///
    /// ```
    /// # use deloop_engine::Guard;
    /// # use deloop_policy::Profile;
    /// # use deloop_types::{Millis, Step};
    /// let guard = Guard::new(Profile::named("doom-loop")?);
    /// for second in 1..=3 {
    ///     let call = Step::call("s1", "bash", serde_json::json!({"command": "make"}));
    ///     guard.observe(&call.at(Millis(second * 1000)));
    /// }
    /// let state = guard.loop_detection_state(&"s1".into(), None).unwrap();
    /// assert_eq!(
    ///     serde_json::to_value(&state)?,
    ///     serde_json::json!({"doomLoopDetected": true, "lastTool": "bash", "consecutiveCount": 3, "threshold": 3,
    ///         "fuzzyThreshold": 4, "lastWarningTime": 3000}),
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn loop_detection_state(
        &self,
        session: &SessionId,
        agent: Option<&str>,
    ) -> Option<LoopDetectionState> {
        // The memory store doesn't fail.
        self.engine.loop_detection_state(&self.store, session, agent).ok().flatten()
    }

    /// Returns how often a swarm made each of its recent calls, and which workers did; `None` when it made none.
    ///
    /// ```
    /// # use deloop_engine::Guard;
    /// # use deloop_policy::Profile;
    /// # use deloop_types::Step;
    /// # let guard = Guard::new(Profile::named("doom-loop")?);
    /// for worker in ["w1", "w2"] {
    ///     guard.observe(&Step::call(worker, "read", serde_json::json!({"path": "plan.md"})).in_swarm("docs"));
    /// }
    /// let state = guard.swarm_state("docs").unwrap();
    /// assert_eq!(state.fingerprints[0].call, "read(plan.md)");
    /// assert_eq!(state.fingerprints[0].workers, ["w1", "w2"]);
    /// # Ok::<(), deloop_policy::ProfileError>(())
    /// ```
    #[must_use]
    pub fn swarm_state(&self, swarm: &str) -> Option<SwarmState> {
        self.engine.swarm_state(&self.store, swarm).ok().flatten()
    }

    /// Returns the state of a session; `None` when there is no such session.
    ///
    /// # Errors
    /// When a custom detector's memory can't be serialized as JSON.
    ///
    /// ```
    /// # use deloop_engine::Guard;
    /// # use deloop_policy::Profile;
    /// # use deloop_types::{Action, Step};
    /// # let guard = Guard::new(Profile::named("turn-hash")?);
    /// guard.observe(&Step::text("s1", "Again."));
    /// let json = serde_json::to_string(&guard.checkpoint(&"s1".into())?)?;
    ///
    /// let other = Guard::new(Profile::named("turn-hash")?);
    /// other.restore(&"s1".into(), serde_json::from_str(&json)?)?;
    /// assert_eq!(other.observe(&Step::text("s1", "Again.")).action, Action::Nudge);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn checkpoint(&self, session: &SessionId) -> Result<Option<Checkpoint>, RestoreError> {
        self.engine.checkpoint(&self.store, session)
    }

    /// Restores a session and replaces any state it has.
    ///
    /// # Errors
    /// When another release or other detectors made the checkpoint and this guard can't read it.
    pub fn restore(&self, session: &SessionId, checkpoint: Checkpoint) -> Result<(), RestoreError> {
        let restored = checkpoint.into_session(self.engine.profile())?;
        // Restored with the time of its last step, so that it becomes idle when it would have.
        let last = restored.ledger().last;
        self.store.put(session, last, restored);
        Ok(())
    }

    /// Returns the state of a swarm and of the sessions for which `member` returns true.
    ///
    /// # Errors
    /// The same as for [`Guard::checkpoint`].
    pub fn checkpoint_swarm(
        &self,
        swarm: &str,
        member: impl Fn(&SessionId) -> bool,
    ) -> Result<SwarmCheckpoint, RestoreError> {
        let mut sessions = BTreeMap::new();
        for session in self.store.sessions()?.iter().filter(|s| member(s)) {
            if let Some(checkpoint) = self.checkpoint(session)? {
                sessions.insert(session.to_string(), checkpoint);
            }
        }
        let swarm = self.store.look_swarm(swarm, Swarm::clone)?.unwrap_or_default();
        Ok(SwarmCheckpoint { swarm, sessions })
    }

    /// Restores a swarm and its sessions.
    ///
    /// # Errors
    /// The same as for [`Guard::restore`].
    pub fn restore_swarm(&self, swarm: &str, checkpoint: SwarmCheckpoint) -> Result<(), RestoreError> {
        for (session, state) in checkpoint.sessions {
            self.restore(&session.into(), state)?;
        }
        self.store.put_swarm(swarm, checkpoint.swarm);
        Ok(())
    }

    /// Returns the stored sessions, in no particular order.
    #[must_use]
    pub fn sessions(&self) -> Vec<SessionId> {
        self.store.sessions().unwrap_or_default()
    }

    /// Returns the names of the stored swarms, in no particular order.
    #[must_use]
    pub fn swarms(&self) -> Vec<String> {
        self.store.swarms().unwrap_or_default()
    }
}
