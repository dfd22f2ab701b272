//! From findings to loops: an episode is one pattern from its first occurrence to its last finding, and a loop is all
//! the episodes of an agent that overlap.

use deloop_types::{Action, Decision, Finding, Millis, Repeats};

use super::occurrences::{FindingSite, occurrences};
use super::turns::SessionTurns;
use super::{Intervention, small};

/// So many turns without a pattern end its episode; the same as in the rules of intervention.
const GAP: u32 = 8;
/// How many episodes of an agent are kept.
const EPISODES: usize = 4096;
/// How many of the latest episodes a finding may continue.
const OPEN: usize = 16;

/// One agent going in circles.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Loop {
    /// Which agent of the session.
    pub(crate) agent: u16,
    /// The finding that says most about it.
    pub(crate) finding: Finding,
    /// Other detectors that found it.
    pub(crate) also: Vec<String>,
    /// The step at which it begins.
    pub(crate) first_step: u32,
    /// The last step of its last turn.
    pub(crate) last_step: u32,
    /// The turn at which it begins.
    pub(crate) first_turn: u32,
    /// The turn of its last finding.
    pub(crate) last_turn: u32,
    /// The turns in which what was done before is done again, in order. The first time is none of them, and neither is
    /// other work in between.
    pub(crate) repeated: Vec<u32>,
    /// How long the repeated turns took.
    pub(crate) millis: u64,
    /// The line of the file at which it begins; 0 when it has no lines.
    pub(crate) line: u32,
    /// When it begins.
    pub(crate) started: Option<Millis>,
    /// When its last turn was.
    pub(crate) ended: Option<Millis>,
    /// What deloop would have done about it, in order.
    pub(crate) actions: Vec<Intervention>,
}

impl Loop {
    /// Returns the strongest action, with its level.
    pub(crate) fn strongest(&self) -> (Action, u32) {
        self.actions.iter().map(|a| (a.action, a.level)).max().unwrap_or_default()
    }
}

/// The episodes of one agent.
#[derive(Default)]
pub(super) struct Episodes {
    all: Vec<PatternEpisode>,
    /// How many messages a person has written.
    messages: u32,
}

struct PatternEpisode {
    finding: Finding,
    /// 0 if it decided, else its place among the findings of a step, in the profile's order, from 1.
    rank: usize,
    first_step: u32,
    last_step: u32,
    /// How many turns the agent had taken at the last finding.
    agent_turns: u32,
    messages: u32,
    /// The turns in which it occurs, in order.
    turns: Vec<u32>,
    /// The strongest action at one of its findings.
    strongest: (Action, u32),
}

/// One step of an agent at which something was found.
pub(super) struct FindingStep<'a> {
    pub(super) decision: &'a Decision,
    /// What to add to a finding's step: the steps before the session last ended.
    pub(super) base: u64,
    pub(super) step: u32,
    pub(super) agent: u16,
    /// The agent's latest turn.
    pub(super) turn: u32,
    /// How many turns the agent has taken.
    pub(super) agent_turns: u32,
    /// Whether the decision counts as an action.
    pub(super) acted: bool,
}

impl Episodes {
    /// Notes that a person wrote: what follows is a new episode, unless it began before.
    pub(super) fn user_message(&mut self) {
        self.messages += 1;
    }

    /// Adds what was found at one step.
    pub(super) fn add(&mut self, at: &FindingStep<'_>, turns: &SessionTurns) {
        let decides = |f: &&Finding| !f.is_budget() && !f.evidence.advisory;
        let deciding = at.decision.deciding().filter(|_| at.acted);
        for (place, finding) in at.decision.findings.iter().filter(decides).enumerate() {
            let rank = if deciding == Some(finding) { 0 } else { place + 1 };
            let since = small(at.base + finding.since).min(at.step);
            let Some(index) =
                self.continued(finding, since, at).or_else(|| self.start(finding, rank, since, at))
            else {
                continue;
            };
            let episode = &mut self.all[index];
            if finding.count >= episode.finding.count {
                episode.finding.clone_from(finding);
            }
            episode.rank = episode.rank.min(rank);
            episode.first_step = episode.first_step.min(since);
            (episode.last_step, episode.agent_turns) = (at.step, at.agent_turns);
            if at.acted {
                episode.strongest = episode.strongest.max((at.decision.action, at.decision.level));
            }
            let site = FindingSite {
                turns,
                agent: at.agent,
                base: at.base,
                turn: at.turn,
                since: turns.at_step(at.agent, since),
                known: episode.turns.last().copied().unwrap_or(0),
            };
            occurrences(finding, &site).into_iter().for_each(|turn| episode.occurs(turn));
        }
    }

    /// Returns the episode that a finding continues.
    fn continued(&self, finding: &Finding, since: u32, at: &FindingStep<'_>) -> Option<usize> {
        let same = |e: &PatternEpisode| {
            let recent = at.agent_turns - e.agent_turns <= GAP && e.messages == self.messages;
            e.finding.detector == finding.detector
                && e.finding.pattern == finding.pattern
                && (since <= e.last_step || recent)
        };
        let back = self.all.iter().rev().take(OPEN).position(same)?;
        Some(self.all.len() - 1 - back)
    }

    fn start(&mut self, finding: &Finding, rank: usize, since: u32, at: &FindingStep<'_>) -> Option<usize> {
        if self.all.len() >= EPISODES {
            return None;
        }
        self.all.push(PatternEpisode {
            finding: finding.clone(),
            rank,
            first_step: since,
            last_step: at.step,
            agent_turns: at.agent_turns,
            messages: self.messages,
            turns: Vec::new(),
            strongest: (Action::Continue, 0),
        });
        Some(self.all.len() - 1)
    }

    /// Returns the loops: episodes that deloop would have acted on, those that overlap in one. `actions` are the
    /// session's, `steps` is its length.
    pub(super) fn finish(
        self,
        agent: u16,
        turns: &SessionTurns,
        actions: &[Intervention],
        steps: u32,
    ) -> Vec<Loop> {
        let mut episodes = self.all;
        episodes.retain(|e| e.strongest.0 > Action::Continue);
        episodes.sort_by_key(|e| (e.first_step, e.last_step));
        let mut groups: Vec<(u32, Vec<PatternEpisode>)> = Vec::new();
        for episode in episodes {
            match groups.last_mut() {
                Some((end, group)) if episode.first_step <= *end => {
                    *end = (*end).max(episode.last_step);
                    group.push(episode);
                }
                _ => groups.push((episode.last_step, vec![episode])),
            }
        }
        let of_agent: Vec<&Intervention> =
            actions.iter().filter(|a| a.agent == agent && a.about_loop).collect();
        let merged = |(last, group)| merged(group, last, agent, turns, &of_agent, steps);
        groups.into_iter().filter_map(merged).collect()
    }
}

impl PatternEpisode {
    fn occurs(&mut self, turn: u32) {
        if let Err(place) = self.turns.binary_search(&turn)
            && turn > 0
        {
            self.turns.insert(place, turn);
        }
    }

    /// Returns the turns in which it occurs again: not those of its first lap.
    fn repeated<'a>(&'a self, agent: u16, turns: &SessionTurns) -> &'a [u32] {
        if matches!(self.finding.repeats, Repeats::Message | Repeats::Swarm) {
            // What is repeated is inside the turn, or was done by another worker.
            return &self.turns;
        }
        let first = turns.at_step(agent, self.first_step);
        let mut calls = 0;
        let in_first_lap = |turn: &u32| {
            let begun = calls > 0 && calls >= self.finding.period;
            calls += turns.get(*turn).map_or(1, |t| u32::from(t.calls.max(1)));
            *turn <= first || !begun
        };
        let lap = self.turns.iter().take_while({
            let mut in_first_lap = in_first_lap;
            move |turn| in_first_lap(turn)
        });
        &self.turns[lap.count()..]
    }
}

fn merged(
    mut group: Vec<PatternEpisode>,
    last: u32,
    agent: u16,
    turns: &SessionTurns,
    actions: &[&Intervention],
    steps: u32,
) -> Option<Loop> {
    let first_step = group.iter().map(|e| e.first_step).min()?;
    let mut repeated: Vec<u32> = group.iter().flat_map(|e| e.repeated(agent, turns)).copied().collect();
    repeated.sort_unstable();
    repeated.dedup();
    let strength = |e: &PatternEpisode| {
        let length = e.finding.count * u64::from(e.finding.period.max(1));
        (e.strongest, std::cmp::Reverse(e.rank), length)
    };
    // Of equals the one that decided, then the one whose detector stands first in the profile: it says most about the loop.
    let best = (0..group.len()).rev().max_by_key(|i| strength(&group[*i]))?;
    let best = group.swap_remove(best);
    let mut also: Vec<String> = group.into_iter().map(|e| e.finding.detector).collect();
    also.sort();
    also.dedup();
    also.retain(|name| *name != best.finding.detector);
    let (first_turn, last_turn) = (turns.at_step(agent, first_step), turns.at_step(agent, last));
    let start = turns.get(first_turn);
    let inside = |a: &&&Intervention| (first_step..=last).contains(&a.step);
    Some(Loop {
        agent,
        finding: best.finding,
        also,
        first_step,
        // What belongs to the last turn comes before the next: its results, and often what it used.
        last_step: turns.next_step(agent, last).unwrap_or(steps).saturating_sub(1),
        first_turn,
        last_turn,
        millis: repeated.iter().filter_map(|turn| turns.get(*turn)).map(|t| u64::from(t.millis)).sum(),
        repeated,
        line: start.map_or(0, |t| t.line),
        started: start.and_then(|t| t.ts),
        ended: turns.get(last_turn).and_then(|t| t.ts),
        actions: actions.iter().filter(inside).map(|a| (*a).clone()).collect(),
    })
}
