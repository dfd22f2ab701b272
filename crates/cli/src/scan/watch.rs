//! Judges the steps of one file as they are read, and keeps only what a report needs of them.

use std::collections::HashMap;

use deloop_detect::short_hash;
use deloop_engine::{Engine, Session};
use deloop_formats::Item;
use deloop_store::{Limits, MemoryStore};
use deloop_types::{Body, Millis, Origin, SessionId, Usage};

use crate::scan::episode::{Episodes, Loop};

/// Follows every session of one file with each of the engines.
pub(crate) struct Watch<'a> {
    engines: &'a [Engine],
    stores: Vec<MemoryStore<Session>>,
    sessions: HashMap<SessionId, Follow>,
    /// The models that were named; usage refers to them by number.
    models: Vec<String>,
}

/// All that a report needs of one session.
pub(crate) struct Followed {
    pub(crate) session: String,
    pub(crate) first: Option<Millis>,
    pub(crate) last: Option<Millis>,
    pub(crate) steps: u64,
    pub(crate) turns: u64,
    pub(crate) calls: u64,
    /// It is not only the work of subagents, which may have files of their own.
    pub(crate) whole: bool,
    pub(crate) usage: Vec<Used>,
    /// The loops, by engine.
    pub(crate) loops: Vec<Vec<Loop>>,
}

/// What one request used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Used {
    /// The step it was told at.
    pub(crate) step: u32,
    /// Which of the session's agents.
    pub(crate) agent: u16,
    /// Which of the file's models; `u16::MAX` without one.
    pub(crate) model: u16,
    pub(crate) input: u32,
    pub(crate) output: u32,
    pub(crate) cache_read: u32,
    pub(crate) cache_write: u32,
    /// The agent's own figure; not a number where it gives none.
    pub(crate) usd: f64,
    /// Names the request over all files; 0 without a name.
    pub(crate) key: u64,
}

#[derive(Default)]
struct Follow {
    /// Steps before the session was last forgotten.
    base: u64,
    steps: u64,
    calls: u64,
    turns: u64,
    first: Option<Millis>,
    last: Option<Millis>,
    agents: Vec<Agent>,
    usage: Vec<Used>,
}

/// One agent of a session.
pub(crate) struct Agent {
    pub(crate) name: Option<String>,
    pub(crate) turns: Vec<TurnMark>,
    /// By engine.
    episodes: Vec<Episodes>,
}

/// Where and when a turn was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TurnMark {
    pub(crate) step: u32,
    pub(crate) line: u32,
    pub(crate) ts: Option<Millis>,
}

/// A number that is kept small; the largest stands for all that are larger.
pub(crate) fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl<'a> Watch<'a> {
    pub(crate) fn new(engines: &'a [Engine]) -> Self {
        // A session of a file is judged as a whole, however long it rested in between.
        let limits = Limits { idle: u64::MAX, ..Limits::default() };
        let stores = engines.iter().map(|_| MemoryStore::new(limits)).collect();
        Self { engines, stores, sessions: HashMap::new(), models: Vec::new() }
    }

    /// Takes in one step.
    pub(crate) fn step(&mut self, item: &Item, line: u64) {
        let step = &item.step;
        if !self.sessions.contains_key(&step.session) {
            self.sessions.insert(step.session.clone(), Follow::default());
        }
        let Some(follow) = self.sessions.get_mut(&step.session) else { return };
        let at = follow.base + follow.steps;
        follow.steps += 1;
        if let Some(ts) = step.ts {
            follow.first = Some(follow.first.map_or(ts, |first| first.min(ts)));
            follow.last = Some(follow.last.map_or(ts, |last| last.max(ts)));
        }
        let index = follow.agent(step.agent.as_deref(), self.engines.len());
        let agent = &mut follow.agents[index];
        match &step.body {
            Body::Turn(turn) => {
                follow.turns += 1;
                follow.calls += turn.calls.len() as u64;
                agent.turns.push(TurnMark { step: small(at), line: small(line), ts: step.ts });
            }
            Body::User(user) if user.origin == Origin::Human => {
                agent.episodes.iter_mut().for_each(Episodes::human);
            }
            Body::Usage(usage) => {
                let model = self.models.iter().position(|m| Some(m) == usage.model.as_ref());
                let model = model.or_else(|| {
                    let name = usage.model.clone()?;
                    self.models.push(name);
                    Some(self.models.len() - 1)
                });
                let model = model.and_then(|m| u16::try_from(m).ok()).unwrap_or(u16::MAX);
                follow.usage.push(Used::new(usage, small(at), index, model, item.key));
            }
            _ => {}
        }
        let agent = &mut follow.agents[index];
        let turn = small(agent.turns.len() as u64);
        for (number, engine) in self.engines.iter().enumerate() {
            // A memory store does not fail.
            let Ok(seen) = engine.observe(&self.stores[number], step) else { continue };
            let decision = &seen.decision;
            if decision.findings.is_empty() {
                continue;
            }
            agent.episodes[number].found(decision, follow.base, small(at), turn);
        }
        if step.body == Body::End {
            follow.base += follow.steps;
            follow.steps = 0;
        }
    }

    /// The file is over: its sessions in the order of their names, and the models they used.
    pub(crate) fn finish(self) -> (Vec<Followed>, Vec<String>) {
        let engines = self.engines.len();
        let mut all: Vec<Followed> =
            self.sessions.into_iter().map(|(id, follow)| follow.finish(&id, engines)).collect();
        all.sort_by(|a, b| a.session.cmp(&b.session));
        (all, self.models)
    }
}

impl Follow {
    fn agent(&mut self, name: Option<&str>, engines: usize) -> usize {
        self.agents.iter().position(|a| a.name.as_deref() == name).unwrap_or_else(|| {
            self.agents.push(Agent {
                name: name.map(str::to_owned),
                turns: Vec::new(),
                episodes: std::iter::repeat_with(Episodes::default).take(engines).collect(),
            });
            self.agents.len() - 1
        })
    }

    fn finish(mut self, id: &SessionId, engines: usize) -> Followed {
        let steps = self.base + self.steps;
        let mut loops: Vec<Vec<Loop>> = vec![Vec::new(); engines];
        for (index, agent) in self.agents.iter_mut().enumerate() {
            let episodes = std::mem::take(&mut agent.episodes);
            for (engine, episodes) in episodes.into_iter().enumerate() {
                loops[engine].extend(episodes.finish(agent, index, small(steps)));
            }
        }
        for list in &mut loops {
            list.sort_by_key(|l| (l.since, l.agent));
        }
        Followed {
            session: id.to_string(),
            first: self.first,
            last: self.last,
            steps,
            turns: self.turns,
            calls: self.calls,
            whole: self.agents.iter().any(|a| a.name.is_none()),
            usage: spread(self.usage, &self.agents),
            loops,
        }
    }
}

/// Some agents tell what they used only now and then, or once at the end: such a figure is spread evenly over the
/// turns since the one before it.
fn spread(usage: Vec<Used>, agents: &[Agent]) -> Vec<Used> {
    let rarely = |index: usize, agent: &Agent| {
        2 * usage.iter().filter(|u| usize::from(u.agent) == index).count() <= agent.turns.len()
    };
    let rarely: Vec<bool> = agents.iter().enumerate().map(|(index, agent)| rarely(index, agent)).collect();
    let mut before = vec![0_u32; agents.len()];
    let mut out = Vec::with_capacity(usage.len());
    for used in usage {
        let index = usize::from(used.agent);
        let (Some(agent), Some(before)) = (agents.get(index), before.get_mut(index)) else {
            out.push(used);
            continue;
        };
        let turns = &agent.turns[agent.turns.partition_point(|t| t.step < *before)..];
        let turns = &turns[..turns.partition_point(|t| t.step <= used.step)];
        *before = used.step;
        let Ok(parts) = u32::try_from(turns.len()) else { continue };
        if parts < 2 || !rarely[index] {
            out.push(used);
            continue;
        }
        for (part, turn) in (0..parts).zip(turns) {
            // What does not divide evenly goes to the first parts, so that the sum stays the same.
            let share = |whole: u32| whole / parts + u32::from(part < whole % parts);
            out.push(Used {
                step: turn.step,
                input: share(used.input),
                output: share(used.output),
                cache_read: share(used.cache_read),
                cache_write: share(used.cache_write),
                usd: used.usd / f64::from(parts),
                key: if used.key == 0 { 0 } else { short_hash(format!("{} {part}", used.key).as_bytes()) },
                ..used
            });
        }
    }
    out
}

impl Agent {}

impl Used {
    fn new(usage: &Usage, step: u32, agent: usize, model: u16, key: Option<u64>) -> Self {
        Self {
            step,
            agent: u16::try_from(agent).unwrap_or(u16::MAX),
            model,
            input: small(usage.input_tokens),
            output: small(usage.output_tokens),
            cache_read: small(usage.cache_read_tokens),
            cache_write: small(usage.cache_write_tokens),
            usd: usage.cost_usd.unwrap_or(f64::NAN),
            key: key.unwrap_or(0),
        }
    }

    /// All tokens.
    pub(crate) fn tokens(&self) -> u64 {
        [self.input, self.output, self.cache_read, self.cache_write].into_iter().map(u64::from).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_for_many_turns_is_spread_over_them() {
        let turn = |step| TurnMark { step, line: 0, ts: None };
        let turns = [0, 2, 4, 6].map(turn).to_vec();
        let agent = Agent { name: None, turns, episodes: Vec::new() };
        let used = |step, input, key| Used {
            step,
            agent: 0,
            model: 0,
            input,
            output: 0,
            cache_read: 0,
            cache_write: 0,
            usd: 1.0,
            key,
        };
        let whole = spread(vec![used(9, 10, 0)], std::slice::from_ref(&agent));
        assert_eq!(
            whole.iter().map(|u| (u.step, u.input)).collect::<Vec<_>>(),
            [(0, 3), (2, 3), (4, 2), (6, 2)]
        );
        assert!((whole.iter().map(|u| u.usd).sum::<f64>() - 1.0).abs() < 1e-9);
        let each = vec![used(1, 5, 1), used(3, 5, 2), used(5, 5, 3), used(7, 5, 4)];
        assert_eq!(spread(each.clone(), std::slice::from_ref(&agent)), each, "one a turn stays as it is");
        let most = vec![used(3, 5, 2), used(5, 5, 3), used(7, 5, 4)];
        assert_eq!(spread(most.clone(), &[agent]), most, "a turn without a figure takes none from the next");
    }
}
