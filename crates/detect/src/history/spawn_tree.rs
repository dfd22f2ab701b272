use deloop_types::{Call, Usage};
use serde::{Deserialize, Serialize};

use super::spawned_tasks::{SpawnedTasks, TaskGiven};
use super::{CallRecord, History};
use crate::fingerprint::{half, short_hash};
use crate::reading::spawned_task;
use crate::{Ending, Progress};

/// Maximum number of agents stored. The one inactive longest is dropped first.
const AGENTS: usize = 64;
/// Maximum number of spawns whose subagent hasn't been seen yet. The oldest is dropped first.
const AWAITED: usize = 64;
/// A subagent that isn't seen within this many steps isn't expected any more.
const PATIENCE: u64 = 400;

/// The subagents of a session: who started whom, with which task. A few KiB, whatever their number.
///
/// Hooks and transcripts name a subagent, but not who started it. So a new name belongs to one of the spawns whose
/// subagent hasn't been seen. If they differ, the lowest depth counts: a depth is what is certain, never a guess.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SpawnTree {
    agents: Vec<TreeAgent>,
    awaited: Vec<AwaitedAgent>,
    tasks: SpawnedTasks,
    /// The place of the session's main agent, if another session started it.
    root: Nesting,
    spawns: u32,
    subagents: u32,
    deepest: u16,
    /// Number of changes, waits and requests so far, of all agents.
    news: u32,
    tokens: u64,
    usd: f64,
}

/// Where an agent stands among those that started each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nesting {
    /// Number of agents above it.
    pub depth: u16,
    /// Number of subagents directly above it, in a row, that did nothing but start one.
    pub relays: u16,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct TreeAgent {
    /// Hash of its name; 0 for the main agent.
    name: u32,
    nesting: Nesting,
    spawns: u32,
    /// Whether it made a call that doesn't start a subagent.
    worked: bool,
    seen: u64,
}

/// A spawn whose subagent hasn't been seen yet.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct AwaitedAgent {
    nesting: Nesting,
    call: u64,
    step: u64,
}

/// A call that starts a subagent, and its place in the session.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SpawnView {
    /// The place of the new subagent.
    pub nesting: Nesting,
    /// Identifies its task; `None` if it has none.
    pub task: Option<u64>,
    /// How often the task was given to a subagent with nothing changed in between, this time included.
    pub times: u32,
    /// The step at which it was first given.
    pub since: u64,
    /// Number of subagents that did nothing but start others, the one that makes this call included.
    pub idle: u32,
    /// Number of subagents that are remembered.
    pub remembered: u32,
    /// All subagents so far.
    pub totals: SpawnTotals,
}

/// The subagents of a session in figures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct SpawnTotals {
    /// Number of calls that started a subagent.
    pub spawns: u32,
    /// Number of subagents seen at work.
    pub subagents: u32,
    /// Number of agents above the deepest one, as far as it is certain.
    pub deepest: u16,
    /// Tokens that subagents used, those from the cache included.
    pub tokens: u64,
    /// Dollars that subagents cost, as reported by the steps.
    pub usd: f64,
}

fn name_hash(agent: Option<&str>) -> u32 {
    agent.map_or(0, |name| half(short_hash(name.as_bytes())).max(1))
}

impl SpawnTree {
    /// Returns the figures.
    #[must_use]
    pub fn totals(&self) -> SpawnTotals {
        let Self { spawns, subagents, deepest, tokens, usd, .. } = *self;
        SpawnTotals { spawns, subagents, deepest, tokens, usd }
    }

    /// Returns the place of a session that this session's main agent starts.
    #[must_use]
    pub fn started_session(&self) -> Nesting {
        let main = self.agents.iter().find(|agent| agent.name == 0);
        main.map_or_else(|| self.root.below(false), |main| main.nesting.below(!main.worked))
    }

    /// Sets the place of the main agent, if another session started it.
    pub(crate) fn set_root(&mut self, root: Nesting) {
        if root.depth > self.root.depth {
            self.root = root;
            self.deepest = self.deepest.max(root.depth);
        }
    }

    /// Notes a step of an agent. A new name is the subagent of a spawn.
    pub(crate) fn step_of(&mut self, agent: Option<&str>, step: u64) {
        let name = name_hash(agent);
        if let Some(known) = self.agents.iter_mut().find(|a| a.name == name) {
            known.seen = step;
            return;
        }
        let nesting = match agent {
            None => self.root,
            Some(_) => {
                self.subagents = self.subagents.saturating_add(1);
                self.expected(step)
            }
        };
        self.deepest = self.deepest.max(nesting.depth);
        if self.agents.len() >= AGENTS {
            let oldest = (0..self.agents.len()).min_by_key(|i| self.agents[*i].seen).unwrap_or(0);
            self.agents.swap_remove(oldest);
        }
        self.agents.push(TreeAgent { name, nesting, seen: step, ..TreeAgent::default() });
    }

    /// Returns what is certain about the place of a new subagent, and expects one less. The deepest of the expected is
    /// dropped, so that what remains is never deeper than it is.
    fn expected(&mut self, step: u64) -> Nesting {
        self.awaited.retain(|a| step.saturating_sub(a.step) <= PATIENCE);
        let depths = || self.awaited.iter().map(|a| a.nesting.depth);
        let relays = || self.awaited.iter().map(|a| a.nesting.relays);
        let (Some(depth), Some(relay)) = (depths().min(), relays().min()) else { return self.root };
        let last = self.awaited.len() - 1;
        let deepest = (0..=last).max_by_key(|i| self.awaited[*i].nesting.depth).unwrap_or(last);
        let most = (0..=last).max_by_key(|i| self.awaited[*i].nesting.relays).unwrap_or(last);
        self.awaited[most].nesting.relays = self.awaited[deepest].nesting.relays;
        self.awaited.remove(deepest);
        Nesting { depth, relays: relay }
    }

    /// Notes a call that doesn't start a subagent.
    pub(crate) fn call_of(&mut self, agent: Option<&str>) {
        let name = name_hash(agent);
        if let Some(known) = self.agents.iter_mut().find(|a| a.name == name) {
            known.worked = true;
        }
    }

    /// Enters a call that starts a subagent. It is already in the agent's history.
    pub(crate) fn spawn(
        &mut self,
        agent: Option<&str>,
        history: &History,
        call: &Call,
        record: &CallRecord,
        step: u64,
    ) -> SpawnView {
        self.step_of(agent, step);
        let name = name_hash(agent);
        let mut nesting = self.root.below(false);
        if let Some(spawner) = self.agents.iter_mut().find(|a| a.name == name) {
            spawner.spawns += 1;
            // Calls from before the first spawn of the session are in the history alone.
            spawner.worked |= history.calls() > u64::from(spawner.spawns);
            nesting = spawner.nesting.below(!spawner.worked);
        }
        self.spawns = self.spawns.saturating_add(1);
        if self.awaited.len() >= AWAITED {
            self.awaited.remove(0);
        }
        self.awaited.push(AwaitedAgent { nesting, call: record.signature, step });
        // The same words from another agent may mean other work: "run the tests", say.
        let task = spawned_task(call).map(|task| task ^ u64::from(name).rotate_left(32));
        let turn = u64::from(name) << 32 | u64::from(record.turn);
        let (news, subagents, spawns) = (self.news, self.subagents, self.spawns);
        let now = TaskGiven { step, turn, news, subagents, spawns };
        let (times, since) = task.map_or((1, step), |task| self.tasks.give(task, record.signature, now));
        let below = self.agents.iter().filter(|a| a.nesting.depth > 0);
        let idle = below.clone().filter(|a| a.spawns > 0 && !a.worked).count();
        let figure = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let (idle, remembered) = (figure(idle), figure(below.count()));
        SpawnView { nesting, task, times, since, idle, remembered, totals: self.totals() }
    }

    /// Notes the result of a call of any agent.
    pub(crate) fn result(&mut self, record: &CallRecord, spawns: bool) {
        if spawns {
            self.tasks.came_back(record);
            if record.ending.in_vain() || record.ending == Ending::CalledOff {
                let awaited = self.awaited.iter().rposition(|a| a.call == record.signature);
                awaited.map(|at| self.awaited.remove(at));
            }
        } else if record.progress == Progress::Changed || record.waits() && record.answered() {
            self.note_news();
        }
    }

    /// Notes that something happened that could make a task worth giving again.
    pub(crate) fn note_news(&mut self) {
        self.news = self.news.wrapping_add(1);
    }

    /// Adds what a subagent used.
    pub(crate) fn charge(&mut self, usage: &Usage) {
        self.tokens = self.tokens.saturating_add(usage.all_tokens());
        self.usd = (self.usd + usage.cost_usd.unwrap_or(0.0)).clamp(f64::MIN, f64::MAX);
    }
}

impl Nesting {
    /// Returns the place of an agent that this one starts. A main agent that only starts others coordinates them.
    fn below(self, idle: bool) -> Self {
        let relays = if idle && self.depth > 0 { self.relays.saturating_add(1) } else { 0 };
        Self { depth: self.depth.saturating_add(1), relays }
    }
}
