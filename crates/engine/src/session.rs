use deloop_detect::{History, Ledger, Memory};
use deloop_policy::{AlertsSent, LadderState};
use deloop_types::{Decision, SessionId};

/// Maximum number of agents stored per session. The one inactive longest is dropped first.
pub(crate) const AGENTS: usize = 64;

/// The state of one session.
#[derive(Default)]
pub struct Session {
    /// Number of steps so far, which is also the index of the next one.
    pub(crate) steps: u64,
    /// Usage so far.
    pub(crate) ledger: Ledger,
    /// The session that started it.
    pub(crate) controller: Option<SessionId>,
    /// The stop that ended it, if any.
    pub(crate) ended: Option<Box<Decision>>,
    /// Its agents. The main agent has no name.
    pub(crate) agents: Vec<Agent>,
}

/// The state of one agent of a session.
pub(crate) struct Agent {
    pub(crate) name: Option<String>,
    /// The step of its last activity.
    pub(crate) seen: u64,
    pub(crate) history: History,
    /// One memory per detector of the profile, in the same order.
    pub(crate) memories: Vec<Memory>,
    pub(crate) ladder: LadderState,
    pub(crate) alerts: AlertsSent,
}

impl Session {
    /// Returns the number of steps so far.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Returns the usage of the session so far.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Returns the session that started it, if its steps name one.
    #[must_use]
    pub fn controller(&self) -> Option<&SessionId> {
        self.controller.as_ref()
    }

    /// Returns the index of an agent; a new one is created with `fresh`.
    pub(crate) fn agent(&mut self, name: Option<&str>, fresh: impl FnOnce() -> Agent) -> usize {
        if let Some(index) = self.agents.iter().position(|a| a.name.as_deref() == name) {
            return index;
        }
        if self.agents.len() >= AGENTS {
            let oldest = (0..self.agents.len()).min_by_key(|i| self.agents[*i].seen).unwrap_or(0);
            self.agents.swap_remove(oldest);
        }
        // Most sessions have one agent, so room for more is allocated only when needed.
        if self.agents.is_empty() {
            self.agents.reserve_exact(1);
        }
        self.agents.push(fresh());
        self.agents.len() - 1
    }
}
