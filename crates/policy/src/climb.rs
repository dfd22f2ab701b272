//! Which rung of its ladder a finding reaches.

use deloop_types::{Action, Decision, Mode};

use crate::decide::{DecisionContext, DetectorHit};
use crate::ladder_state::{CycleAt, Episode};
use crate::{Ladder, LadderState, Profile, Rules, Rung, RungUnit, Watch};

/// The ladders that a step can climb.
#[derive(Debug)]
pub struct Ladders<'a> {
    /// The agent's own.
    pub agent: &'a mut LadderState,
    /// Those of the whole session, for detectors that look at all of its agents.
    pub session: &'a mut LadderState,
}

impl Ladders<'_> {
    /// Returns the current stop, if the agent's run or the whole session was stopped.
    pub(crate) fn stopped(&self) -> Option<&Decision> {
        self.session.stopped().or_else(|| self.agent.stopped())
    }

    /// Returns the summary of the finding that led to the current stop.
    pub(crate) fn stopped_for(&self) -> Option<&str> {
        let by = if self.session.stopped().is_some() { &*self.session } else { &*self.agent };
        by.stopped_for.as_deref()
    }

    pub(crate) fn of(&mut self, watch: &Watch) -> &mut LadderState {
        if watch.detector.whole_session() { self.session } else { self.agent }
    }
}

/// A rung that a finding reaches.
pub(crate) struct Candidate<'a> {
    pub(crate) found: usize,
    pub(crate) level: u32,
    pub(crate) action: Action,
    pub(crate) rung: &'a Rung,
    /// Set if it is given again because the agent ignores it.
    pub(crate) reminder: Option<Reminder>,
    /// The step that its episode began at, if the profile counts episodes and it isn't about a limit.
    pub(crate) episode: Option<u64>,
}

/// A message that is given again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Reminder {
    /// Its number among the messages of the episode.
    pub(crate) warning: u32,
    /// What the session has cost since the first of them, in dollars.
    pub(crate) usd: f64,
}

/// Returns the rung that a finding reaches, and notes it in the ladders.
pub(crate) fn climb<'a>(
    profile: &'a Profile,
    index: usize,
    found: &DetectorHit,
    ladders: &mut Ladders<'_>,
    context: &DecisionContext<'_>,
) -> Option<Candidate<'a>> {
    let watch: &Watch = &profile.watches[found.watch];
    let number = number(found);
    let finding = &found.finding;
    let evidence = &finding.evidence;
    let ladder = ladders.of(watch);
    let count = match watch.ladder.by {
        RungUnit::Count => finding.count,
        RungUnit::Severity => evidence.severity,
        RungUnit::Occurrence => {
            let period = u64::from(finding.period);
            let at = CycleAt { call: evidence.at, period, turn: context.turns, step: context.step };
            ladder.occurrence(number, finding.pattern.0, at, watch.ladder.forget)?
        }
    };
    let reached = match profile.rules {
        Rules::Counter => watch.ladder.reach(count).map(Reached::of_rung)?,
        Rules::Episodes if finding.is_budget() => {
            let (level, rung) = watch.ladder.reach(count)?;
            // A person is asked about a call, and about every call until one is allowed.
            let asks =
                context.attended && rung.action >= Action::Ask && context.mode_for(true) == Mode::Enforce;
            let known = level <= ladder.limit_episode(number, finding.pattern.0).rung;
            if (known && !asks) || (asks && found.call.is_none()) || !fits(rung.action, found) {
                return None;
            }
            Reached::of_rung((level, rung))
        }
        Rules::Episodes if watch.ladder.by == RungUnit::Severity => {
            by_severity(watch, found, ladder, context)?
        }
        Rules::Episodes => by_count(watch, found, ladder, context)?,
    };
    if !ladder.take(number, watch.ladder.limit) {
        return None;
    }
    let Reached { level, rung, episode, reminder } = reached;
    let action = match rung.action {
        Action::Stop if context.attended && evidence.rounds => Action::Warn,
        Action::Block | Action::Stop if context.attended && profile.rules == Rules::Episodes => Action::Ask,
        action => action,
    };
    let candidate = Candidate { found: index, level, action, rung, reminder, episode };
    (action > Action::Continue).then_some(candidate)
}

/// The rung of a ladder that is reached.
struct Reached<'a> {
    level: u32,
    rung: &'a Rung,
    episode: Option<u64>,
    reminder: Option<Reminder>,
}

impl<'a> Reached<'a> {
    fn of_rung((level, rung): (u32, &'a Rung)) -> Self {
        Self { level, rung, episode: None, reminder: None }
    }
}

/// Returns the next rung of a finding's episode, if its count reaches it and the agent had a turn since the last one.
fn by_count<'a>(
    watch: &'a Watch,
    found: &DetectorHit,
    ladder: &mut LadderState,
    context: &DecisionContext<'_>,
) -> Option<Reached<'a>> {
    let finding = &found.finding;
    let (evidence, count, number) = (&finding.evidence, finding.count, number(found));
    let told = ladder.told(context.turns, context.step);
    let episode = ladder.episode(number, finding.pattern.0, finding.since, context.turns);
    let next = if episode.lost { episode.rung.max(1) - 1 } else { episode.rung };
    episode.rounds |= evidence.rounds;
    if let Some(rung) = last_nudge(&watch.ladder, episode, found, context) {
        return (!told).then(|| remind(rung, episode, count, context));
    }
    let ends = evidence.rounds && context.mode == Mode::Enforce && !context.attended;
    let rung = rung_at(&watch.ladder.rungs, next as usize, ends && episode.watch != number)?;
    // A round may end without a turn.
    let another_round = evidence.rounds && context.step > episode.step;
    let had_a_turn = episode.rung == 0 || context.turns >= episode.turn + rung.after.max(1) || another_round;
    // One message per turn is enough, whatever its other calls show.
    let enough = told && rung.action == Action::Nudge && !another_round;
    if count < rung.at || !had_a_turn || enough || !fits(rung.action, found) {
        return None;
    }
    episode.climb(next + 1, rung.action, count, context);
    Some(Reached { level: next + 1, rung, episode: Some(episode.began), reminder: None })
}

/// Returns the last rung that messages the agent, if its message is due again: nothing stronger may follow, by the mode or because
/// the evidence isn't hard, all messages were given, and the count has doubled since the last one.
fn last_nudge<'a>(
    ladder: &'a Ladder,
    episode: &Episode,
    found: &DetectorHit,
    context: &DecisionContext<'_>,
) -> Option<(u32, &'a Rung)> {
    let nudges = ladder.rungs.iter().take_while(|rung| rung.action == Action::Nudge).count();
    let evidence = &found.finding.evidence;
    let due = (context.mode == Mode::Nudge || !evidence.hard)
        && !ladder.reminder.is_empty()
        && episode.rung as usize >= nudges
        && !episode.lost
        && !evidence.pending
        && episode.count > 0
        && found.finding.count >= episode.count.saturating_mul(2);
    let last = ladder.rungs.get(nudges.checked_sub(1)?)?;
    due.then_some((u32::try_from(nudges).unwrap_or(u32::MAX), last))
}

/// Messages the agent once more, and notes that in the episode.
fn remind<'a>(
    (level, rung): (u32, &'a Rung),
    episode: &mut Episode,
    count: u64,
    context: &DecisionContext<'_>,
) -> Reached<'a> {
    episode.remind(count, context);
    let reminder = Reminder { warning: episode.messages, usd: context.usd - episode.usd };
    Reached { level, rung, episode: Some(episode.began), reminder: Some(reminder) }
}

/// Returns the number of a hit's detector in the state of the ladders.
pub(crate) fn number(found: &DetectorHit) -> u16 {
    u16::try_from(found.watch).unwrap_or(u16::MAX)
}

/// Returns the rung with this index. A shared episode may have climbed a longer ladder than this one, whose stop then
/// still applies if it `ends` the run.
fn rung_at(rungs: &[Rung], index: usize, ends: bool) -> Option<&Rung> {
    rungs.get(index).or_else(|| rungs.last().filter(|last| ends && last.action == Action::Stop))
}

/// Returns the rung that a finding's severity reaches. A message is given once; a refusal applies to every call that
/// reaches its rung. Within a turn no further rung is reached.
fn by_severity<'a>(
    watch: &'a Watch,
    found: &DetectorHit,
    ladder: &mut LadderState,
    context: &DecisionContext<'_>,
) -> Option<Reached<'a>> {
    let evidence = &found.finding.evidence;
    let (number, count) = (number(found), found.finding.count);
    // Several agents take turns in a session, so its steps stand for turns.
    let turn = if watch.detector.whole_session() { context.step } else { context.turns };
    let (reached, _) = watch.ladder.reach(evidence.severity)?;
    let told = ladder.told(turn, context.step);
    let episode = ladder.own_episode(number, found.finding.pattern.0, turn);
    let given = if episode.lost { episode.rung.saturating_sub(1) } else { episode.rung };
    let level = if episode.turn == turn && given > 0 { reached.min(given) } else { reached };
    let rung = watch.ladder.rungs.get((level - 1) as usize)?;
    // A run that may not be stopped is reported once.
    let once = rung.action < Action::Ask || rung.action == Action::Stop && context.mode != Mode::Enforce;
    if once && (level <= given || told) {
        let rung = last_nudge(&watch.ladder, episode, found, context).filter(|_| !told)?;
        return Some(remind(rung, episode, count, context));
    }
    if !fits(rung.action, found) {
        return None;
    }
    let turns = DecisionContext { turns: turn, ..*context };
    episode.climb(level.max(given), rung.action, count, &turns);
    Some(Reached { level, rung, episode: Some(episode.began), reminder: None })
}

/// Returns whether a finding justifies this action. Refusing needs a call to refuse and strong evidence; messages wait
/// until the outcome is known.
pub(crate) fn fits(action: Action, found: &DetectorHit) -> bool {
    let evidence = &found.finding.evidence;
    match action {
        Action::Continue | Action::Warn | Action::Nudge => !evidence.pending,
        Action::Ask | Action::Block => evidence.hard && found.call.is_some(),
        Action::Stop => evidence.hard,
    }
}
