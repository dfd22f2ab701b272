//! Decisions made elsewhere, by a server that sees the sessions of many machines.

use deloop_types::{Action, Decision, Mode, Step};
use serde::{Deserialize, Serialize};

/// Number of steps kept for the server. The oldest are dropped first.
const UNSENT: usize = 32;

/// Decides about steps in place of the engine.
pub trait RemoteDecisions {
    /// Returns one decision per step, in order. `None` means that the engine decides about these steps.
    fn decide(&self, steps: &[&Step]) -> Option<RemoteAnswer>;
}

/// The decisions about the steps of one event.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteAnswer {
    /// The decisions.
    pub decisions: Vec<Decision>,
    /// The mode of the server, if it reports one. It applies to later steps that the engine decides about, if it is the
    /// stricter one.
    pub mode: Option<Mode>,
}

/// What is known here about an agent whose steps a server decides about.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ServerState {
    /// The current stop. Events without a step get it, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stop: Option<Box<Decision>>,
    /// What came of the server's decisions, for its next request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) unsent: Vec<Step>,
}

impl ServerState {
    /// Keeps a step for the server.
    pub(crate) fn keep(&mut self, step: Step) {
        self.unsent.push(step);
        let over = self.unsent.len().saturating_sub(UNSENT);
        self.unsent.drain(..over);
    }

    /// Notes the decision about the agent's latest step.
    pub(crate) fn decided(&mut self, decision: &Decision) {
        self.stop = (decision.action == Action::Stop).then(|| Box::new(decision.clone()));
    }
}
