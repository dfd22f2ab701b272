use deloop_detect::{ToolTally, short_hash};
use deloop_types::{Action, Decision, Finding, Mode, Role, Roles, SessionId};

use crate::{
    LadderState, Profile, Rules, Rung, RungUnit, StopEnds, TASK_UPDATE, TaskUpdate, Watch, render, summary,
    user_message,
};

/// A finding of one detector at a step.
#[derive(Debug, Clone)]
pub struct DetectorHit {
    /// The index of the detector in the profile.
    pub watch: usize,
    /// The finding.
    pub finding: Finding,
    /// The call it was found at, by id or as `#N`; `None` when it was found at something else.
    pub call: Option<String>,
}

/// The context of a decision.
#[derive(Debug, Clone, Copy)]
pub struct DecisionContext<'a> {
    /// The session.
    pub session: &'a SessionId,
    /// The step's index in the session.
    pub step: u64,
    /// Number of the agent's turns so far.
    pub turns: u64,
    /// The agent's tools.
    pub tools: &'a [ToolTally],
    /// The upper limit on what deloop does.
    pub mode: Mode,
    /// Whether a person is there to answer questions.
    pub attended: bool,
    /// Where the caller can put a message for the agent.
    pub roles: Roles,
    /// Whether the step is a result, to which a message can be appended.
    pub at_result: bool,
}

struct Candidate<'a> {
    found: usize,
    level: u32,
    action: Action,
    rung: &'a Rung,
}

/// A decision and its effect on stored state.
#[derive(Debug, Clone, PartialEq)]
pub struct Decided {
    /// The decision.
    pub decision: Decision,
    /// Whether to delete the agent's stored state.
    pub clear: bool,
    /// Whether the decision is a stop that ends the session.
    pub ends_session: bool,
    /// The index of the detector whose ladder led to it.
    pub by: Option<usize>,
}

/// Decides about one step from its findings and the ladders. The strongest rung wins, then the detector that comes
/// first in the profile. All findings are listed.
#[must_use]
pub fn decide(
    profile: &Profile,
    mut found: Vec<DetectorHit>,
    ladder: &mut LadderState,
    context: &DecisionContext<'_>,
) -> Decided {
    for one in &mut found {
        one.finding.summary = summary(&one.finding);
        one.finding.evidence.advisory = profile.watches[one.watch].ladder.rungs.is_empty();
    }
    let done = |decision: Decision, clear| {
        let decision = with_user_message(capped(decision, context.mode));
        let ends_session = decision.action == Action::Stop && profile.stop_ends == StopEnds::Session;
        Decided { decision, clear, ends_session, by: None }
    };
    let mut decision = Decision::go_on(context.session.clone(), context.step);
    if let Some(stopped) = ladder.stopped() {
        decision = stopped.clone();
        decision.step = context.step;
        decision.findings = found.into_iter().map(|f| f.finding).collect();
        return done(decision, false);
    }
    if found.is_empty() {
        return done(decision, false);
    }
    let candidates: Vec<Candidate<'_>> = found
        .iter()
        .enumerate()
        .filter_map(|(index, one)| climb(profile, index, one, ladder, context))
        .collect();
    let strongest = candidates.iter().max_by_key(|c| {
        let first = std::cmp::Reverse((found[c.found].watch, c.found));
        (c.action, c.level, first)
    });
    let by = strongest.map(|best| found[best.found].watch);
    let mut clear = false;
    if let Some(best) = strongest {
        let one = &found[best.found];
        let watch = &profile.watches[one.watch];
        let variant = one.finding.evidence.variant.and_then(|v| best.rung.variants.get(v));
        let message = variant.unwrap_or(&best.rung.message);
        decision.action = best.action;
        decision.level = best.level;
        decision.rung.clone_from(&best.rung.name);
        decision.message =
            (!message.is_empty()).then(|| render(message, &one.finding, &watch.params, context.tools));
        if best.action == Action::Ask && best.rung.action != Action::Ask && one.call.is_some() {
            decision.message = Some(question(&one.finding));
        }
        decision.role = (best.action == Action::Nudge).then(|| role(best.rung.role, context));
        decision.status = best.rung.status.clone().filter(|_| best.action == Action::Stop);
        decision.id = Some(decision_id(context.session, context.step));
        clear = best.rung.clear && best.action == Action::Stop;
        if matches!(best.action, Action::Block | Action::Ask) {
            // Parallel calls that would all fail again are refused together.
            let climbed = |n: usize| candidates.iter().any(|c| c.found == n && c.action == best.action);
            let too = |f: &DetectorHit| f.finding.count >= best.rung.at && fits(best.action, f);
            let refused = found.iter().enumerate().filter(|(n, f)| climbed(*n) || too(f));
            decision.calls = refused.filter_map(|(_, f)| f.call.clone()).collect();
            decision.calls.dedup();
        }
        if let Some(update) = TaskUpdate::of(&one.finding).filter(|_| best.rung.task_update) {
            decision.extra.insert(TASK_UPDATE.to_owned(), update);
        }
        if best.action == Action::Stop && profile.stop_ends == StopEnds::Run && context.mode == Mode::Enforce
        {
            ladder.stopped = Some(Box::new(with_user_message(decision.clone())));
        }
    }
    if profile.rules == Rules::Episodes && context.mode == Mode::Nudge && decision.action > Action::Nudge {
        decision = held_back(decision, &found);
    }
    decision.findings = listed(found);
    Decided { by, ..done(decision, clear) }
}

/// Returns the question to ask in place of a refusal. The rung's own text would claim that it has happened.
fn question(finding: &Finding) -> String {
    format!("[deloop] {}, and two warnings didn't help. Run this call once more?", finding.summary)
}

/// Turns a decision that mode nudge doesn't allow into a warning. The agent doesn't get the text, which would claim a
/// refusal or a stop; people learn what the mode held back.
fn held_back(decision: Decision, found: &[DetectorHit]) -> Decision {
    let what = match decision.action {
        Action::Stop => "stopped the run",
        _ => "blocked this call",
    };
    let decides = found.iter().find(|f| !f.finding.evidence.advisory).or(found.first());
    let summary = decides.map_or("it repeats itself", |f| f.finding.summary.as_str());
    let message = format!(
        "[deloop] {summary}, and two warnings didn't help. In enforce mode, deloop would have {what}."
    );
    let mut held = decision.clone();
    held.would = Some(Box::new(decision));
    held.action = Action::Warn;
    held.message = Some(message);
    (held.role, held.status) = (None, None);
    held.calls.clear();
    held.extra.clear();
    held
}

/// Picks where the message goes: the profile's preference, if the caller can put it there.
fn role(wanted: Role, context: &DecisionContext<'_>) -> Role {
    let able = |role: &Role| context.roles.contains(*role);
    let by_step = if context.at_result { [Role::Tool, Role::User] } else { [Role::User, Role::Tool] };
    let others = by_step.into_iter().chain([Role::System, Role::Developer]);
    std::iter::once(wanted).chain(others).find(able).unwrap_or(wanted)
}

fn with_user_message(mut decision: Decision) -> Decision {
    decision.user_message = user_message(&decision);
    decision
}

fn climb<'a>(
    profile: &'a Profile,
    index: usize,
    found: &DetectorHit,
    ladder: &mut LadderState,
    context: &DecisionContext<'_>,
) -> Option<Candidate<'a>> {
    let watch: &Watch = &profile.watches[found.watch];
    let number = u16::try_from(found.watch).unwrap_or(u16::MAX);
    let finding = &found.finding;
    let evidence = &finding.evidence;
    let count = match watch.ladder.by {
        RungUnit::Count => finding.count,
        RungUnit::Occurrence => {
            let period = u64::from(finding.period);
            ladder.occurrence(number, evidence.pattern, evidence.at, period, watch.ladder.forget)?
        }
    };
    let (level, rung) = match profile.rules {
        Rules::Counter => watch.ladder.reach(count)?,
        Rules::Episodes => {
            let told = ladder.told(context.turns, context.step);
            let episode = ladder.episode(number, evidence.pattern, finding.since, context.turns);
            let next = if episode.lost { episode.rung.max(1) - 1 } else { episode.rung };
            let rung = watch.ladder.rungs.get(next as usize)?;
            let had_a_turn = episode.rung == 0 || context.turns >= episode.turn + rung.after.max(1);
            // One message per turn is enough, whatever its other calls show.
            let enough = told && rung.action == Action::Nudge;
            if count < rung.at || !had_a_turn || enough || !fits(rung.action, found) {
                return None;
            }
            episode.rung = next + 1;
            episode.turn = context.turns;
            episode.step = context.step;
            episode.lost = false;
            (next + 1, rung)
        }
    };
    if !ladder.take(number, watch.ladder.limit) {
        return None;
    }
    let action = match rung.action {
        Action::Block | Action::Stop if context.attended && profile.rules == Rules::Episodes => Action::Ask,
        action => action,
    };
    (action > Action::Continue).then_some(Candidate { found: index, level, action, rung })
}

/// Returns whether a finding justifies this action. Refusing needs a call to refuse and strong evidence; messages wait
/// until the outcome is known.
fn fits(action: Action, found: &DetectorHit) -> bool {
    let evidence = &found.finding.evidence;
    match action {
        Action::Continue | Action::Warn | Action::Nudge => !evidence.pending,
        Action::Ask | Action::Block => evidence.hard && found.call.is_some(),
        Action::Stop => evidence.hard,
    }
}

/// Keeps one finding per detector and pattern: the one with the highest count. Findings that decide nothing come last.
fn listed(found: Vec<DetectorHit>) -> Vec<Finding> {
    let mut list: Vec<DetectorHit> = Vec::with_capacity(found.len());
    for one in found {
        let same = |f: &&mut DetectorHit| {
            f.watch == one.watch && f.finding.evidence.pattern == one.finding.evidence.pattern
        };
        match list.iter_mut().find(same) {
            Some(known) if known.finding.count <= one.finding.count => known.finding = one.finding,
            Some(_) => {}
            None => list.push(one),
        }
    }
    list.sort_by_key(|f| (f.finding.evidence.advisory, f.watch));
    list.into_iter().map(|f| f.finding).collect()
}

/// Returns a stable id: the same session and step give the same one.
/// Returns the id of the decision about a step.
#[must_use]
pub fn decision_id(session: &SessionId, step: u64) -> String {
    let hash = short_hash(format!("{session}\0{step}").as_bytes());
    format!("d{:010x}", hash >> 24)
}

/// Caps a decision at what the mode allows and keeps the original.
fn capped(decision: Decision, mode: Mode) -> Decision {
    let cap = mode.cap();
    if decision.action <= cap {
        return decision;
    }
    let mut done = decision.clone();
    done.would = Some(Box::new(with_user_message(decision)));
    done.action = cap;
    done.calls.clear();
    done.status = None;
    done.extra.clear();
    if cap == Action::Continue {
        done.level = 0;
        done.rung = None;
        done.message = None;
        done.role = None;
    } else {
        done.role = Some(Role::User);
    }
    done
}
