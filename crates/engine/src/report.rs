//! Reads the state of sessions and swarms without changing it.

use deloop_detect::{SpawnTotals, Swarm, SwarmState};
use deloop_policy::ReachedRung;
use deloop_store::{Store, StoreError};
use deloop_types::{Decision, SessionId, Step};
use serde_json::Value;

use crate::session::{Agent, Session};
use crate::{Engine, LoopDetectionState, Observed};

/// The field of a Decision that holds the answer to a `state` step, for the session.
pub const LOOP_DETECTION_STATE: &str = "loop_detection_state";
/// The field of a Decision that holds the answer to a `state` step, for the swarm.
pub const SWARM_STATE: &str = "swarm_state";

/// The state of one agent of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentReport {
    /// The agent; `None` for the session's main agent.
    pub agent: Option<String>,
    /// The tool of its last call.
    pub last_tool: Option<String>,
    /// The rungs that it has reached.
    pub reached: Vec<ReachedRung>,
    /// The current stop, if the run or the session was stopped.
    pub stop: Option<Decision>,
    /// The subagents of the session, on its main agent; `None` if none was started.
    pub subagents: Option<SpawnTotals>,
    /// What the detectors of repeated calls know; `None` if the profile uses none.
    pub loop_detection_state: Option<LoopDetectionState>,
}

impl Engine {
    /// Returns the state of each agent of a session, the main agent first; empty when there is no such session.
    ///
    /// # Errors
    /// When the store fails.
    pub fn report<S: Store<Session>>(
        &self,
        store: &S,
        session: &SessionId,
    ) -> Result<Vec<AgentReport>, StoreError> {
        let look = |state: &Session| -> Vec<AgentReport> {
            state.agents.iter().map(|agent| self.report_of(state, agent)).collect()
        };
        let mut reports = store.look(self, session, look)?.unwrap_or_default();
        reports.sort_by(|a, b| a.agent.cmp(&b.agent));
        Ok(reports)
    }

    fn report_of(&self, session: &Session, agent: &Agent) -> AgentReport {
        let profile = self.profile();
        let is_main = agent.name.is_none();
        let mut reached = agent.ladder.reached(profile);
        if is_main {
            reached.extend(session.ladder.iter().flat_map(|ladder| ladder.reached(profile)));
        }
        reached.extend(profile.watches.iter().enumerate().filter_map(|(at, watch)| {
            let streak =
                watch.detector.streak(agent.memories.get(at)?).filter(|streak| streak.count >= streak.at)?;
            ReachedRung::at_count(watch, streak.count)
        }));
        let last = agent.history.recent().back(0);
        AgentReport {
            agent: agent.name.clone(),
            last_tool: last.map(|record| agent.history.tool(record).to_owned()),
            reached,
            stop: session.stop_of(agent.name.as_deref()).cloned(),
            subagents: session.whole.tree.as_ref().filter(|_| is_main).map(|tree| tree.totals()),
            loop_detection_state: LoopDetectionState::of(Some(agent), profile),
        }
    }

    /// Returns what the detectors of repeated calls know of an agent; `None` when there is no such session or agent, or
    /// when the profile uses neither `repeated-call` nor `repeated-target`.
    ///
    /// # Errors
    /// When the store fails.
    pub fn loop_detection_state<S: Store<Session>>(
        &self,
        store: &S,
        session: &SessionId,
        agent: Option<&str>,
    ) -> Result<Option<LoopDetectionState>, StoreError> {
        let look = |state: &Session| {
            let agent = state.agents.iter().find(|a| a.name.as_deref() == agent);
            LoopDetectionState::of(agent, self.profile())
        };
        let state = store.look(self, session, look)?;
        Ok(state.unwrap_or_else(|| LoopDetectionState::of(None, self.profile())))
    }

    /// Returns what a swarm remembers of its calls; `None` when it remembers none.
    ///
    /// # Errors
    /// When the store fails.
    pub fn swarm_state<S: Store<Session>>(
        &self,
        store: &S,
        swarm: &str,
    ) -> Result<Option<SwarmState>, StoreError> {
        let look = |swarm: &Swarm| (!swarm.is_empty()).then(|| swarm.state());
        Ok(store.look_swarm(swarm, look)?.flatten())
    }

    /// Answers a `state` step: `continue`, with the states as fields of their own.
    pub(crate) fn state<S: Store<Session>>(&self, store: &S, step: &Step) -> Result<Observed, StoreError> {
        let next = store.look(self, &step.session, Session::steps)?.unwrap_or(0);
        let mut decision = Decision::go_on(step.session.clone(), next);
        let state = self.loop_detection_state(store, &step.session, step.agent.as_deref())?;
        let state = serde_json::to_value(state).unwrap_or(Value::Null);
        decision.extra.insert(LOOP_DETECTION_STATE.to_owned(), state);
        if let Some(swarm) = &step.swarm {
            let state = serde_json::to_value(self.swarm_state(store, swarm)?).unwrap_or(Value::Null);
            decision.extra.insert(SWARM_STATE.to_owned(), state);
        }
        Ok(Observed::elsewhere(decision))
    }
}
