//! From findings to loops: an episode is one pattern from its onset to its last finding, and a loop is all the
//! episodes of an agent that overlap.

use deloop_types::{Action, Decision, Finding, Millis};

use crate::scan::watch::{Agent, TurnMark, small};

/// So many turns without a pattern end its episode; the same as in the rules of intervention.
const GAP: u32 = 8;
/// How many decisions of a loop are kept.
const DECISIONS: usize = 16;
/// How many episodes of an agent are kept.
const EPISODES: usize = 4096;

/// One agent going in circles.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Loop {
    /// Which agent of the session.
    pub(crate) agent: u16,
    /// Its name, if it has one.
    pub(crate) agent_name: Option<String>,
    /// The finding that says most about it.
    pub(crate) finding: Finding,
    /// Other detectors that saw it.
    pub(crate) also: Vec<String>,
    /// The step at which it begins.
    pub(crate) since: u32,
    /// The last step that belongs to it.
    pub(crate) until: u32,
    /// The ordinal of the turn at which it begins, from 1.
    pub(crate) turn: u32,
    /// The line of the file at which it begins; 0 when it has no lines.
    pub(crate) line: u32,
    /// When it begins.
    pub(crate) started: Option<Millis>,
    /// When its last turn was.
    pub(crate) ended: Option<Millis>,
    /// How many turns it took.
    pub(crate) turns: u32,
    /// How many turns the agent took in all.
    pub(crate) of_turns: u32,
    /// What was decided, from the first decision on; only changes.
    pub(crate) decisions: Vec<Told>,
}

/// A decision that would have been made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) step: u32,
    pub(crate) turn: u32,
    pub(crate) action: Action,
    pub(crate) level: u32,
}

impl Loop {
    /// The strongest thing that would have been done, with its rung.
    pub(crate) fn strongest(&self) -> (Action, u32) {
        self.decisions.iter().map(|d| (d.action, d.level)).max().unwrap_or_default()
    }
}

/// The episodes of one agent.
#[derive(Default)]
pub(crate) struct Episodes {
    all: Vec<Episode>,
    /// How often a person wrote.
    humans: u32,
}

struct Episode {
    finding: Finding,
    /// Its place among all findings of a step, in the profile's order.
    rank: usize,
    since: u32,
    last: u32,
    turn: u32,
    humans: u32,
    decisions: Vec<Told>,
}

impl Episodes {
    /// A person wrote: what comes now is a new episode, unless it began before.
    pub(crate) fn human(&mut self) {
        self.humans += 1;
    }

    /// Takes in what was found at step `at`, the agent's `turn`-th turn.
    pub(crate) fn found(&mut self, decision: &Decision, base: u64, at: u32, turn: u32) {
        let told = Told { step: at, turn, action: decision.action, level: decision.level };
        for (rank, finding) in decision.findings.iter().filter(|f| !f.is_budget()).enumerate() {
            let since = small(base + finding.since).min(at);
            let humans = self.humans;
            let same = |e: &Episode| {
                e.finding.detector == finding.detector
                    && e.finding.evidence.pattern == finding.evidence.pattern
                    && (since <= e.last || (turn - e.turn <= GAP && e.humans == humans))
            };
            // An episode that goes on is among the latest.
            let known = self.all.iter().rev().take(16).position(same).map(|back| self.all.len() - 1 - back);
            let index = match known {
                Some(index) => index,
                None if self.all.len() >= EPISODES => continue,
                None => {
                    self.all.push(Episode {
                        finding: finding.clone(),
                        rank,
                        since,
                        last: at,
                        turn,
                        humans,
                        decisions: Vec::new(),
                    });
                    self.all.len() - 1
                }
            };
            let episode = &mut self.all[index];
            if finding.count >= episode.finding.count {
                episode.finding.clone_from(finding);
            }
            episode.rank = episode.rank.min(rank);
            episode.since = episode.since.min(since);
            (episode.last, episode.turn) = (at, turn);
            let news =
                episode.decisions.last().is_none_or(|d| (d.action, d.level) != (told.action, told.level));
            if told.action > Action::Continue && news && episode.decisions.len() < DECISIONS {
                episode.decisions.push(told);
            }
        }
    }

    /// The loops: episodes that something would have been done about, those that overlap in one.
    pub(crate) fn finish(self, agent: &Agent, index: usize, steps: u32) -> Vec<Loop> {
        let mut episodes = self.all;
        episodes.retain(|e| !e.decisions.is_empty());
        episodes.sort_by_key(|e| (e.since, e.last));
        let mut groups: Vec<(u32, Vec<Episode>)> = Vec::new();
        for episode in episodes {
            match groups.last_mut() {
                Some((end, group)) if episode.since <= *end => {
                    *end = (*end).max(episode.last);
                    group.push(episode);
                }
                _ => groups.push((episode.last, vec![episode])),
            }
        }
        groups.into_iter().filter_map(|(last, group)| merged(group, last, agent, index, steps)).collect()
    }
}

fn merged(mut group: Vec<Episode>, last: u32, agent: &Agent, index: usize, steps: u32) -> Option<Loop> {
    let since = group.iter().map(|e| e.since).min()?;
    let strength = |e: &Episode| {
        let strongest = e.decisions.iter().map(|d| (d.action, d.level)).max();
        let length = e.finding.count * u64::from(e.finding.period.max(1));
        (strongest, std::cmp::Reverse(e.rank), length)
    };
    // Of equals the one whose detector stands first in the profile: it says most about the loop.
    let best = (0..group.len()).rev().max_by_key(|i| strength(&group[*i]))?;
    let best = group.swap_remove(best);
    let mut decisions = best.decisions.clone();
    decisions.extend(group.iter().flat_map(|e| e.decisions.iter().copied()));
    decisions.sort_by_key(|d| (d.step, std::cmp::Reverse(d.action)));
    decisions.dedup_by_key(|d| d.step);
    decisions.dedup_by_key(|d| (d.action, d.level));
    let mut also: Vec<String> = group.into_iter().map(|e| e.finding.detector).collect();
    also.sort();
    also.dedup();
    also.retain(|name| *name != best.finding.detector);
    // The turn that a step belongs to is the last one that is not after it.
    let from = agent.turns.partition_point(|t| t.step <= since).saturating_sub(1);
    let to = agent.turns.partition_point(|t| t.step <= last);
    // What belongs to the last turn comes before the next: its results, and often what it used.
    let until = agent.turns.get(to).map_or(steps, |next: &TurnMark| next.step).saturating_sub(1);
    let start = agent.turns.get(from);
    Some(Loop {
        agent: u16::try_from(index).unwrap_or(u16::MAX),
        agent_name: agent.name.clone(),
        finding: best.finding,
        also,
        since,
        until,
        turn: small(from as u64) + 1,
        line: start.map_or(0, |t| t.line),
        started: start.and_then(|t| t.ts),
        ended: to.checked_sub(1).and_then(|t| agent.turns.get(t)).and_then(|t| t.ts),
        turns: small(to.saturating_sub(from) as u64),
        of_turns: small(agent.turns.len() as u64),
        decisions,
    })
}
