//! The steps of one event, in order, before anyone has decided about them. They are known before the first decision is, so
//! a server gets them in one request.

use deloop_engine::Session;
use deloop_store::Store;
use deloop_types::{Mode, Step};

use crate::Live;
use crate::embedding::AwaitedEmbedding;
use crate::journal::Journal;
use crate::remote::{RemoteAnswer, RemoteDecisions};
use crate::session_state::AgentState;

/// Who gets a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// Whoever decides: the server, or else the engine.
    Decider,
    /// The server alone, because the step is about a decision of its own.
    Server,
    /// The engine alone, for the same reason.
    Engine,
    /// Both, because a person intervened.
    Both,
}

/// A step that waits for its decision.
pub(crate) struct PlannedStep {
    pub(crate) step: Step,
    pub(crate) audience: Audience,
    /// Whether the agent made it. Otherwise it only informs.
    pub(crate) of_agent: bool,
    pub(crate) awaited: Option<AwaitedEmbedding>,
}

/// The steps of one event.
#[derive(Default)]
pub(crate) struct PlannedSteps {
    pub(crate) steps: Vec<PlannedStep>,
    /// The mode of the server that last decided.
    pub(crate) server_mode: Option<Mode>,
}

impl PlannedSteps {
    /// Starts with what the server must still be told about an agent.
    pub(crate) fn new(agent: &mut AgentState, server_mode: Option<Mode>) -> Self {
        let unsent = agent.server.as_mut().map(|server| std::mem::take(&mut server.unsent));
        let informs = |step| PlannedStep { step, audience: Audience::Server, of_agent: false, awaited: None };
        Self { steps: unsent.unwrap_or_default().into_iter().map(informs).collect(), server_mode }
    }

    /// Adds a step that only informs.
    pub(crate) fn inform<S: Store<Session>, J: Journal>(
        &mut self,
        live: &Live<'_, S, J>,
        agent: &AgentState,
        mut step: Step,
        audience: Audience,
    ) {
        step.agent = agent.name().map(str::to_owned);
        let step = live.complete(step);
        self.steps.push(PlannedStep { step, audience, of_agent: false, awaited: None });
    }

    /// Adds a step of the agent.
    pub(crate) fn add<S: Store<Session>, J: Journal>(&mut self, live: &Live<'_, S, J>, step: Step) {
        self.steps.push(live.planned(step));
    }

    /// Returns whether the agent made none of the steps.
    pub(crate) fn is_idle(&self) -> bool {
        !self.steps.iter().any(|planned| planned.of_agent)
    }

    /// Returns whether anyone must decide: some steps only inform the engine.
    pub(crate) fn need_decisions(&self) -> bool {
        self.steps.iter().any(|planned| planned.audience != Audience::Engine)
    }

    /// Asks for the decisions, in the order of the steps. `None` means that the engine decides.
    pub(crate) fn ask(&self, remote: &dyn RemoteDecisions) -> Option<RemoteAnswer> {
        let sent = self.steps.iter().filter(|planned| planned.audience != Audience::Engine);
        let sent: Vec<&Step> = sent.map(|planned| &planned.step).collect();
        if sent.is_empty() {
            return None;
        }
        let mut answer = remote.decide(&sent).filter(|answer| answer.decisions.len() == sent.len())?;
        for (decision, step) in answer.decisions.iter_mut().zip(sent) {
            decision.session = step.session.clone();
        }
        Some(answer)
    }
}
