use deloop_types::{Call, Usage};
use serde::{Deserialize, Serialize};

use super::spawned_tasks::{SpawnedTasks, TaskGiven};
use super::{CallRecord, History};
use crate::fingerprint::{half, short_hash};
use crate::reading::spawned_task;
use crate::{Ending, Progress};

/// Maximum number of agents stored. The one inactive longest is dropped first.
const AGENTS: usize = 64;
/// Maximum number of places at which subagents are expected. The oldest is dropped first.
const AWAITED: usize = 16;
/// A subagent that isn't seen within this many steps isn't expected any more.
const PATIENCE: u32 = 400;

/// The subagents of a session: who started whom, with which task. A few KiB, whatever their number.
///
/// Hooks and transcripts name a subagent, but not who started it. So a new name belongs to one of the spawns whose
/// subagent hasn't been seen. If they differ, the lowest depth counts: a depth is what is certain, never a guess.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SpawnTree {
    main: MainAgent,
    /// What is known below the main agent, once a subagent has been seen.
    below: Option<Box<Subagents>>,
    tasks: SpawnedTasks,
    /// The place of the session's main agent, if another session started it.
    root: Nesting,
    spawns: u32,
    subagents: u32,
    deepest: u16,
    /// Number of changes, waits and requests so far, of all agents.
    news: u16,
    /// Number of subagents that subagents started since something changed or a person asked for something new, and that
    /// haven't come back.
    #[serde(default)]
    nested: u16,
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

/// The session's main agent. Most sessions have no other, so it has a place of its own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct MainAgent {
    /// Number of its spawns whose subagents haven't been seen yet, and the last of them.
    awaited: u16,
    call: u32,
    step: u32,
    spawns: u16,
    worked: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Subagents {
    agents: Vec<TreeAgent>,
    awaited: Vec<AwaitedAgents>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct TreeAgent {
    /// Hash of its name.
    name: u32,
    nesting: Nesting,
    seen: u32,
    spawns: u16,
    /// Whether it made a call that doesn't start a subagent.
    worked: bool,
}

/// Spawns at one place whose subagents haven't been seen yet.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct AwaitedAgents {
    nesting: Nesting,
    count: u32,
    /// The last of these spawns.
    call: u32,
    step: u32,
}

/// A call that starts a subagent, and its place in the session.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SpawnView {
    /// The place of the new subagent.
    pub nesting: Nesting,
    /// Identifies its task; `None` if it has none.
    pub task: Option<u64>,
    /// How often the task was given to a subagent with nothing changed in between, this time included.
    pub times: u8,
    /// The step at which it was first given.
    pub since: u64,
    /// Number of subagents that did nothing but start others, the one that makes this call included.
    pub idle: u32,
    /// Number of subagents that are remembered.
    pub remembered: u32,
    /// Number of subagents that subagents started since something changed or a person asked for something new, and that
    /// haven't come back, this one included.
    pub nested: u32,
    /// Number of subagents that are remembered and have started others.
    pub spawners: u32,
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

fn name_hash(agent: &str) -> u32 {
    half(short_hash(agent.as_bytes())).max(1)
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
        self.root.below(self.main.spawns > 0 && !self.main.worked)
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
        let Some(name) = agent.map(name_hash) else { return };
        let step = u32::try_from(step).unwrap_or(u32::MAX);
        let agents = self.below.iter_mut().flat_map(|below| &mut below.agents);
        if let Some(known) = agents.into_iter().find(|a| a.name == name) {
            known.seen = step;
            return;
        }
        self.subagents = self.subagents.saturating_add(1);
        let nesting = self.expected(step);
        self.deepest = self.deepest.max(nesting.depth);
        let agents = &mut self.below.get_or_insert_default().agents;
        if agents.len() >= AGENTS {
            let oldest = (0..agents.len()).min_by_key(|i| agents[*i].seen).unwrap_or(0);
            agents.swap_remove(oldest);
        }
        agents.push(TreeAgent { name, nesting, seen: step, ..TreeAgent::default() });
    }

    /// Returns what is certain about the place of a new subagent, and expects one less. If it could belong to several
    /// spawns, the deepest is dropped, so that what remains is never deeper than it is.
    fn expected(&mut self, step: u32) -> Nesting {
        let of_main = self.main.awaited > 0 && step.saturating_sub(self.main.step) <= PATIENCE;
        let by_main = of_main.then(|| self.root.below(false));
        let awaited =
            self.below.as_mut().map(|below| &mut below.awaited).filter(|awaited| !awaited.is_empty());
        let Some(awaited) = awaited else {
            self.main.awaited = self.main.awaited.saturating_sub(1);
            return by_main.unwrap_or(self.root);
        };
        awaited.retain(|a| step.saturating_sub(a.step) <= PATIENCE);
        let places = || awaited.iter().map(|a| a.nesting).chain(by_main);
        let (depth, relays) = (places().map(|n| n.depth).min(), places().map(|n| n.relays).min());
        let nesting = depth.zip(relays).map_or(self.root, |(depth, relays)| Nesting { depth, relays });
        match (0..awaited.len()).max_by_key(|i| awaited[*i].nesting.depth) {
            Some(deepest) => AwaitedAgents::expect_less(awaited, deepest),
            None => self.main.awaited = self.main.awaited.saturating_sub(1),
        }
        awaited.iter_mut().for_each(|a| a.nesting.relays = nesting.relays);
        nesting
    }

    /// Notes a call that doesn't start a subagent.
    pub(crate) fn call_of(&mut self, agent: Option<&str>) {
        let Some(name) = agent.map(name_hash) else {
            self.main.worked = true;
            return;
        };
        let agents = self.below.iter_mut().flat_map(|below| &mut below.agents);
        agents.into_iter().filter(|a| a.name == name).for_each(|known| known.worked = true);
    }

    /// Returns the place of a subagent that an agent starts, and expects it.
    fn started_by(&mut self, agent: Option<&str>, calls: u64, record: &CallRecord) -> Nesting {
        let (call, step) = (half(record.signature), record.step);
        let Some(name) = agent.map(name_hash) else {
            let main = &mut self.main;
            main.spawns = main.spawns.saturating_add(1);
            main.worked |= calls > u64::from(main.spawns);
            (main.awaited, main.call, main.step) = (main.awaited.saturating_add(1), call, step);
            return self.root.below(!self.main.worked);
        };
        let below = self.below.get_or_insert_default();
        let Some(spawner) = below.agents.iter_mut().find(|a| a.name == name) else {
            return self.root.below(false);
        };
        spawner.spawns = spawner.spawns.saturating_add(1);
        // Calls from before the first spawn of the session are in the history alone.
        spawner.worked |= calls > u64::from(spawner.spawns);
        let nesting = spawner.nesting.below(!spawner.worked);
        AwaitedAgents::expect(&mut below.awaited, nesting, call, step);
        nesting
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
        let nesting = self.started_by(agent, history.calls(), record);
        self.spawns = self.spawns.saturating_add(1);
        self.nested = self.nested.saturating_add(u16::from(nesting.depth > 1));
        // The same words from another agent may mean other work: "run the tests", say.
        let by = agent.map_or(0, |agent| u64::from(name_hash(agent)));
        let task = spawned_task(call).map(|task| task ^ by);
        let short = |n: u32| u16::try_from(n).unwrap_or(u16::MAX);
        let (news, subagents, spawns) = (self.news, short(self.subagents), short(self.spawns));
        let now = TaskGiven { turn: record.turn, news, subagents, spawns };
        let given = task.map(|task| self.tasks.give(task, record, now));
        let (times, since) = given.unwrap_or((1, record.step));
        let agents = || self.below.iter().flat_map(|below| &below.agents).filter(|a| a.nesting.depth > 0);
        let idle = agents().filter(|a| a.spawns > 0 && !a.worked).count();
        let spawners = agents().filter(|a| a.spawns > 0).count();
        let figure = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let (idle, remembered, totals) = (figure(idle), figure(agents().count()), self.totals());
        let (nested, spawners) = (self.nested.into(), figure(spawners));
        SpawnView { nesting, task, times, since: since.into(), idle, remembered, nested, spawners, totals }
    }

    /// Notes the result of a call of an agent.
    pub(crate) fn result(&mut self, agent: Option<&str>, record: &CallRecord, spawns: bool) {
        if spawns {
            self.tasks.came_back(record);
            let call = half(record.signature);
            let failed = record.ending.in_vain() || record.ending == Ending::CalledOff;
            // What comes back before its subagent was seen is a receipt.
            let came_back = failed || !self.is_awaited(call);
            let is_nested = agent.is_some() || self.root.depth > 0;
            self.nested = self.nested.saturating_sub(u16::from(came_back && is_nested));
            if failed {
                self.not_started(call);
            }
        } else if record.progress == Progress::Changed {
            self.moved_on();
        } else if record.waits() && record.answered() {
            self.note_news();
        }
    }

    /// Returns whether the subagent of a spawn hasn't been seen yet.
    fn is_awaited(&self, call: u32) -> bool {
        let mut awaited = self.below.iter().flat_map(|below| &below.awaited);
        awaited.any(|a| a.call == call) || self.main.awaited > 0 && self.main.call == call
    }

    /// Expects one subagent less, because its spawn failed or was refused.
    fn not_started(&mut self, call: u32) {
        let below = self.below.iter_mut().map(|below| &mut below.awaited);
        for awaited in below {
            if let Some(at) = awaited.iter().rposition(|a| a.call == call) {
                return AwaitedAgents::expect_less(awaited, at);
            }
        }
        if self.main.call == call {
            self.main.awaited = self.main.awaited.saturating_sub(1);
        }
    }

    /// Notes that something happened that could make a task worth giving again.
    pub(crate) fn note_news(&mut self) {
        self.news = self.news.wrapping_add(1);
    }

    /// Notes that something changed, or that a person asked for something new.
    pub(crate) fn moved_on(&mut self) {
        self.note_news();
        self.nested = 0;
    }

    /// Adds what a subagent used.
    pub(crate) fn charge(&mut self, usage: &Usage) {
        self.tokens = self.tokens.saturating_add(usage.all_tokens());
        self.usd = (self.usd + usage.dollars().unwrap_or(0.0)).min(f64::MAX);
    }
}

impl AwaitedAgents {
    fn expect(awaited: &mut Vec<Self>, nesting: Nesting, call: u32, step: u32) {
        if let Some(known) = awaited.iter_mut().find(|a| a.nesting == nesting) {
            (known.count, known.call, known.step) = (known.count.saturating_add(1), call, step);
            return;
        }
        if awaited.len() >= AWAITED {
            awaited.remove(0);
        }
        awaited.push(Self { nesting, count: 1, call, step });
    }

    fn expect_less(awaited: &mut Vec<Self>, at: usize) {
        awaited[at].count -= 1;
        if awaited[at].count == 0 {
            awaited.remove(at);
        }
    }
}

impl Nesting {
    /// Returns the place of an agent that this one starts. A main agent that only starts others coordinates them.
    fn below(self, idle: bool) -> Self {
        let relays = if idle && self.depth > 0 { self.relays.saturating_add(1) } else { 0 };
        Self { depth: self.depth.saturating_add(1), relays }
    }
}
