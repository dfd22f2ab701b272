use deloop_detect::{CallRecord, Ending, FailureNote, History, Ledger, WholeSession};
use deloop_policy::{AlertsSent, LadderState};
use deloop_types::{Action, Body, ControllerNotice, Decision, Origin, SessionId, Step};

use crate::memories::Memories;
use crate::tasks::Tasks;

/// Maximum number of undelivered notices per session. The oldest are dropped first.
const NOTICES: usize = 8;

/// Maximum number of agents stored per session. The one inactive longest is dropped first, those that were stopped last.
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
    /// Notices for its main agent about agents that it started.
    pub(crate) notices: Vec<ControllerNotice>,
    /// What it remembers across its agents.
    pub(crate) whole: WholeSession,
    /// The ladders that its agents climb together, once they do.
    pub(crate) ladder: Option<Box<LadderState>>,
    /// What its detectors remember of its tasks.
    pub(crate) tasks: Tasks,
    /// Its agents. The main agent has no name.
    pub(crate) agents: Vec<Agent>,
}

/// The state of one agent of a session.
pub(crate) struct Agent {
    pub(crate) name: Option<String>,
    /// The step of its last activity.
    pub(crate) seen: u64,
    pub(crate) history: History,
    pub(crate) memories: Memories,
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

    /// Returns whether it remembers this agent; the main agent has no name.
    #[must_use]
    pub fn has_agent(&self, name: Option<&str>) -> bool {
        self.agents.iter().any(|agent| agent.name.as_deref() == name)
    }

    /// Returns the stop that ended the session, if one did.
    #[must_use]
    pub fn ended(&self) -> Option<&Decision> {
        self.ended.as_deref()
    }

    /// Returns whether a stop applies to the session or to one of its agents.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stops() > 0
    }

    /// Returns how many stops apply: to the session, to all of its agents together, and to single ones.
    pub(crate) fn stops(&self) -> usize {
        let of_all = self.ladder.as_deref().is_some_and(|ladder| ladder.stopped().is_some());
        let of_agents = self.agents.iter().filter(|agent| agent.ladder.stopped().is_some()).count();
        usize::from(self.ended.is_some()) + usize::from(of_all) + of_agents
    }

    /// Returns the stop that applies to an agent, if its run or the session was stopped.
    #[must_use]
    pub fn stop_of(&self, agent: Option<&str>) -> Option<&Decision> {
        let of_agent = || self.agents.iter().find(|a| a.name.as_deref() == agent)?.ladder.stopped();
        self.ended.as_deref().or_else(|| self.ladder.as_ref()?.stopped()).or_else(of_agent)
    }

    /// Remembers a failure that other agents of the session may meet, if there are any.
    pub(crate) fn note_failure(&mut self, step: &Step, failure: &FailureNote) {
        if step.agent.is_some() || self.agents.len() > 1 {
            self.whole.failures.get_or_insert_default().enter(failure);
        }
    }

    /// Counts a step and what it used. Returns its index.
    pub(crate) fn count(&mut self, step: &Step) -> u64 {
        let index = self.steps;
        // A checkpoint, which a client sent, may have any number.
        self.steps = self.steps.saturating_add(1);
        // An embedding belongs to a step that was counted.
        if !matches!(step.body, Body::Embedding(_)) {
            self.ledger.tick(step);
        }
        if let Body::Usage(usage) = &step.body {
            self.ledger.charge(usage);
        }
        if step.controller.is_some() {
            self.controller.clone_from(&step.controller);
        }
        index
    }

    /// Adds a notice for its main agent.
    pub(crate) fn notify(&mut self, notice: ControllerNotice) {
        if self.notices.len() >= NOTICES {
            self.notices.remove(0);
        }
        self.notices.push(notice);
    }

    /// Takes the notices that go out with the decision about this step.
    pub(crate) fn notices_for(&mut self, step: &Step) -> Vec<ControllerNotice> {
        let is_due =
            step.agent.is_none() && matches!(step.body, Body::Turn(_) | Body::Result(_) | Body::User(_));
        if is_due { std::mem::take(&mut self.notices) } else { Vec::new() }
    }

    /// Ends the current episodes if a person wrote or intervened. A message to the session's main agent applies to
    /// its subagents too. With `keeps_stops`, whatever was stopped stays as it is. Returns whether a stop was lifted.
    pub(crate) fn start_over(&mut self, step: &Step, at: usize, keeps_stops: bool) -> bool {
        match &step.body {
            Body::User(user)
                if user.origin == Origin::Human && self.agents[at].history.is_request(user, step.ts) => {}
            Body::Intervention => {}
            _ => return false,
        }
        let stops = self.stops();
        let keeps = keeps_stops && stops > 0;
        if !keeps {
            if step.body == Body::Intervention {
                self.ended = None;
            }
            self.ledger.raise(self.steps - 1);
        }
        let ends = |ladder: &LadderState| !(keeps && ladder.stopped().is_some());
        let all = step.agent.is_none();
        if all && self.ladder.as_deref().is_some_and(ends) {
            self.ladder = None;
        }
        let concerned = self.agents.iter_mut().enumerate().filter(|(n, _)| all || *n == at);
        concerned.filter(|(_, agent)| ends(&agent.ladder)).for_each(|(_, agent)| agent.ladder.start_over());
        self.stops() < stops
    }

    /// Returns the index of an agent; a new one is created with `fresh`.
    pub(crate) fn agent(&mut self, name: Option<&str>, fresh: impl FnOnce() -> Agent) -> usize {
        if let Some(index) = self.agents.iter().position(|a| a.name.as_deref() == name) {
            return index;
        }
        if self.agents.len() >= AGENTS {
            self.drop_agent();
        }
        self.ledger.subagents += u64::from(name.is_some());
        // Most sessions have one agent, so room for more is allocated only when needed.
        if self.agents.is_empty() {
            self.agents.reserve_exact(1);
        }
        self.agents.push(fresh());
        self.agents.len() - 1
    }

    /// Drops the agent that was inactive longest. One that was stopped goes only if all were, and leaves its stop to the
    /// whole session: new names must not lift a stop.
    fn drop_agent(&mut self) {
        let is_stopped = |index: &usize| self.agents[*index].ladder.stopped().is_some();
        let oldest = (0..self.agents.len()).min_by_key(|index| (is_stopped(index), self.agents[*index].seen));
        let dropped = self.agents.swap_remove(oldest.unwrap_or(0));
        if dropped.ladder.stopped().is_some() {
            self.ladder.get_or_insert_default().take_stop_of(dropped.ladder);
        }
    }
}

/// Notes that a decision warned, asked or stopped because of a limit. When a call that was asked about has run, a person allowed it.
pub(crate) fn note_limit(
    ledger: &mut Ledger,
    decision: &Decision,
    of_limit: bool,
    judged: Option<&CallRecord>,
) {
    let asked = |record: &CallRecord| ledger.reached_at.is_some_and(|at| u64::from(record.step) >= at);
    let ran = |record: &CallRecord| !matches!(record.ending, Ending::Refused | Ending::CalledOff);
    // While a stop stands, a call may run because the agent can't be kept from it.
    if decision.action < Action::Ask && judged.is_some_and(|record| asked(record) && ran(record)) {
        ledger.raise(decision.step);
    } else if of_limit && decision.action >= Action::Ask {
        ledger.reached_at.get_or_insert(decision.step);
    } else if of_limit && decision.action == Action::Warn {
        // Once per session: its agents have ladders of their own.
        ledger.warned = true;
    }
}
