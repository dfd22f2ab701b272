use deloop_detect::Ledger;
use deloop_engine::{Engine, LoopDetectionState, Session};
use deloop_policy::ReachedRung;
use deloop_store::{Store, StoreError};
use deloop_types::{Decision, SessionId};
use schemars::JsonSchema;
use serde::Serialize;

use crate::openapi::all_required;

/// What is stored of a session.
#[derive(Serialize, JsonSchema)]
#[schemars(transform = all_required)]
pub(crate) struct SessionReport {
    #[schemars(with = "String")]
    session: SessionId,
    steps: u64,
    ledger: Ledger,
    /// The session that started it, if its steps name one.
    #[schemars(with = "Option<String>")]
    controller: Option<SessionId>,
    /// The stop that ended it; null while it goes on.
    ended: Option<Decision>,
    /// What the detectors of repeated calls know of the main agent; null if the profile uses none.
    loop_detection_state: Option<LoopDetectionState>,
    agents: Vec<SessionAgent>,
}

/// What is stored of one agent of a session.
#[derive(Serialize, JsonSchema)]
#[schemars(transform = all_required)]
struct SessionAgent {
    /// The worker or subagent; null for the main agent.
    agent: Option<String>,
    last_tool: Option<String>,
    reached: Vec<ReachedRung>,
    stop: Option<Decision>,
    loop_detection_state: Option<LoopDetectionState>,
}

impl SessionReport {
    /// Returns what is stored of a session, if it is.
    pub(super) fn of<S: Store<Session>>(
        engine: &Engine,
        store: &S,
        session: &SessionId,
    ) -> Result<Option<Self>, StoreError> {
        let look = |state: &Session| {
            (state.steps(), *state.ledger(), state.controller().cloned(), state.ended().cloned())
        };
        let Some((steps, ledger, controller, ended)) = store.look(engine, session, look)? else {
            return Ok(None);
        };
        let agents = engine.report(store, session)?;
        let agents: Vec<SessionAgent> = agents
            .into_iter()
            .map(|report| SessionAgent {
                agent: report.agent,
                last_tool: report.last_tool,
                reached: report.reached,
                stop: report.stop,
                loop_detection_state: report.loop_detection_state,
            })
            .collect();
        let main = agents.iter().find(|agent| agent.agent.is_none());
        let loop_detection_state = main.and_then(|agent| agent.loop_detection_state.clone());
        let session = session.clone();
        Ok(Some(Self { session, steps, ledger, controller, ended, loop_detection_state, agents }))
    }
}
