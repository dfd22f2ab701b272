use deloop_types::{Body, Decision, Event, EventKind, Finding, Millis, Step};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::calendar::UtcDay;
use super::loop_waste::LoopWaste;
use super::micros::micros;

/// How many agents of a session are remembered. The one inactive longest is dropped first.
const AGENTS: usize = 8;
/// How many models of an agent are remembered as counted.
const COUNTED: usize = 8;
/// An agent that reports no usage within this many turns counts as one whose model is unknown.
const TURNS: u8 = 8;

/// What is remembered of a session to attribute its spend and loops.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SessionMoney {
    agents: Vec<AgentMoney>,
}

/// What is remembered of one agent of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct AgentMoney {
    name: Option<String>,
    /// The model of its latest request.
    model: Option<String>,
    waste: LoopWaste,
    /// The step of its latest finding. A finding that began before it belongs to the same loop.
    looped_at: Option<u64>,
    /// Its turns so far, up to [`TURNS`].
    turns: u8,
    /// Hashes of the weeks and models that the session was counted for.
    counted: Vec<u64>,
}

/// What one step adds to the totals of an agent and a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SessionTally {
    pub(crate) agent: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) requests: i64,
    pub(crate) tokens: i64,
    /// In millionths of a dollar.
    pub(crate) cost: i64,
    /// Requests to models without a price.
    pub(crate) unpriced: i64,
    /// The cost of requests of this session that a loop made useless, in millionths of a dollar.
    pub(crate) waste: i64,
    pub(crate) loops: i64,
    pub(crate) terminated: i64,
    /// 1 when the session is counted for this agent and model in this week for the first time.
    pub(crate) sessions: i64,
}

impl SessionTally {
    /// Returns whether it adds anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.requests + self.waste + self.loops + self.terminated + self.sessions == 0
    }
}

impl SessionMoney {
    pub(crate) fn is_empty(&self) -> bool {
        self.agents.is_empty()
    }

    /// Returns whether a step may add something, so that [`SessionMoney::observe`] must see it.
    pub(crate) fn concerns(step: &Step, decision: &Decision, events: &[Event]) -> bool {
        match step.body {
            Body::End | Body::SwarmEnd | Body::State => false,
            Body::Usage(_) | Body::Turn(_) => true,
            _ => is_terminated(events) || looping(decision).is_some(),
        }
    }

    /// Enters a step and what was decided about it.
    pub(crate) fn observe(
        &mut self,
        step: &Step,
        decision: &Decision,
        events: &[Event],
        now: Millis,
    ) -> SessionTally {
        let agent = self.agent(step.agent.as_deref());
        let mut tally = SessionTally { agent: step.agent.clone(), ..SessionTally::default() };
        if matches!(step.body, Body::Turn(_)) {
            agent.waste.turn(decision.step);
            agent.turns = agent.turns.saturating_add(1).min(TURNS);
            if looping(decision).is_none() {
                agent.waste.loop_left();
            }
        }
        let mut wasted = 0;
        if let Body::Usage(usage) = &step.body {
            agent.model.clone_from(&usage.model);
            tally.requests = 1;
            tally.tokens = i64::try_from(usage.all_tokens()).unwrap_or(i64::MAX);
            tally.cost = usage.dollars().map_or(0, micros);
            tally.unpriced = i64::from(usage.dollars().is_none());
            wasted = agent.waste.usage(u64::try_from(tally.cost).unwrap_or(0));
        }
        if let Some(finding) = looping(decision) {
            wasted += agent.waste.loop_found(finding.since);
            let is_same = agent.looped_at.is_some_and(|at| finding.since <= at);
            tally.loops = i64::from(!is_same);
            agent.looped_at = Some(decision.step);
        }
        tally.waste = i64::try_from(wasted).unwrap_or(i64::MAX);
        tally.terminated = i64::from(is_terminated(events));
        tally.model.clone_from(&agent.model);
        let is_known = tally.requests > 0 || tally.loops > 0;
        if is_known || (agent.model.is_none() && agent.turns >= TURNS) {
            tally.sessions = i64::from(agent.count(now));
        }
        tally
    }

    fn agent(&mut self, name: Option<&str>) -> &mut AgentMoney {
        let known = self.agents.iter().position(|agent| agent.name.as_deref() == name);
        let agent = match known {
            Some(at) => self.agents.remove(at),
            None => AgentMoney { name: name.map(str::to_owned), ..AgentMoney::default() },
        };
        if self.agents.len() >= AGENTS {
            self.agents.remove(0);
        }
        self.agents.push(agent);
        let last = self.agents.len() - 1;
        &mut self.agents[last]
    }
}

impl AgentMoney {
    /// Returns whether the session isn't counted yet for the current model in this week.
    fn count(&mut self, now: Millis) -> bool {
        let week = UtcDay::of(now).monday().date();
        let hash = xxh3_64(format!("{week} {}", self.model.as_deref().unwrap_or_default()).as_bytes());
        if self.counted.contains(&hash) {
            return false;
        }
        if self.counted.len() >= COUNTED {
            self.counted.remove(0);
        }
        self.counted.push(hash);
        true
    }
}

/// Returns the finding that says that the agent is in a loop. Budgets aren't loops, and what is only listed doesn't count.
fn looping(decision: &Decision) -> Option<&Finding> {
    let is_loop = |finding: &&Finding| !finding.is_budget() && !finding.evidence.advisory;
    decision.deciding().filter(is_loop).or_else(|| decision.findings.iter().find(is_loop))
}

fn is_terminated(events: &[Event]) -> bool {
    events.iter().any(|event| {
        event.event == EventKind::SessionTerminated && !event.finding.as_ref().is_some_and(Finding::is_budget)
    })
}
