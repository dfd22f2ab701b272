use deloop_detect::{ToolTally, short_hash};
use deloop_types::{Action, DecidedBy, Decision, Finding, Mode, Role, Roles, Rollback, SessionId};

use serde_json::Value;

use crate::climb::{Candidate, Ladders, Reminder, climb, fits, number};
use crate::{
    Profile, Rules, RungUnit, StopEnds, TASK_UPDATE, TaskUpdate, Watch, render, summary, user_message,
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
    /// Whether a limit that is reached is enforced in mode `nudge`, too.
    pub limits_hold: bool,
    /// Whether the caller can take steps out of the conversation.
    pub rollback: bool,
    /// What the session has cost so far, in dollars.
    pub usd: f64,
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
    /// The step that the episode began at, which identifies it among those of the agent; `None` if the decision isn't
    /// about an episode of a loop.
    pub episode: Option<u64>,
    /// Whether it is about a limit that is nearly or fully used.
    pub of_limit: bool,
}

/// Decides about one step from its findings and the ladders. The strongest rung wins, then the detector that comes
/// first in the profile. All findings are listed.
#[must_use]
pub fn decide(
    profile: &Profile,
    mut found: Vec<DetectorHit>,
    mut ladders: Ladders<'_>,
    context: &DecisionContext<'_>,
) -> Decided {
    found.iter_mut().for_each(|one| describe(profile, one));
    let done = |decision: Decision, words: DecisionTexts<'_>, clear, mode| {
        let decision = capped(decision, words, mode);
        let ends_session = decision.action == Action::Stop && profile.stop_ends == StopEnds::Session;
        Decided { decision, clear, ends_session, by: None, episode: None, of_limit: false }
    };
    let mut decision = Decision::go_on(context.session.clone(), context.step);
    if let Some(stopped) = ladders.stopped() {
        let of_limit = ladders.agent.stopped_by_limit || ladders.session.stopped_by_limit;
        let stopped = still_stopped(stopped, found, of_limit, context);
        return done(stopped, DecisionTexts::about(ladders.stopped_for()), false, context.mode_for(of_limit));
    }
    if found.is_empty() {
        return done(decision, DecisionTexts::default(), false, context.mode);
    }
    let candidates: Vec<Candidate<'_>> = found
        .iter()
        .enumerate()
        .filter_map(|(index, one)| climb(profile, index, one, &mut ladders, context))
        .collect();
    note_first_messages(profile, &candidates, &mut found, context);
    let strongest = strongest(&candidates, &found);
    let by = strongest.map(|best| found[best.found].watch);
    let episode = strongest.and_then(|best| best.episode);
    let of_limit = strongest.is_some_and(|best| found[best.found].finding.is_budget());
    let why = strongest.map(|best| found[best.found].finding.summary.clone());
    let mode = context.mode_for(of_limit);
    let named = strongest.map_or(0, |best| best.found);
    let user = profile.watches[found[named].watch].ladder.user_message.as_str();
    let mut nudge = None;
    let mut clear = false;
    if let Some(best) = strongest {
        let one = &found[best.found];
        let watch = &profile.watches[one.watch];
        if of_limit && profile.rules == Rules::Episodes {
            // Only now: a warning that another decision displaced is due at the next step.
            let limit = ladders.of(watch).limit_episode(number(one), one.finding.pattern.0);
            limit.rung = best.level;
        }
        decision.action = best.action;
        decision.level = best.level;
        decision.rung.clone_from(&best.rung.name);
        let text = |mode| with_first(best, &found, watch, context, mode);
        decision.message = text(Mode::Enforce);
        nudge = (!best.rung.consequence.is_empty()).then(|| text(Mode::Nudge)).flatten();
        match (best.action, best.rung.action) {
            (Action::Ask, wanted) if wanted != Action::Ask && one.call.is_some() => {
                decision.message = Some(question(&one.finding));
            }
            (Action::Warn, Action::Stop) => decision.message = Some(warning(&one.finding)),
            _ => {}
        }
        decision.role = (best.action == Action::Nudge).then(|| role(best.rung.role, context));
        decision.status = best.rung.status.clone().filter(|_| best.action == Action::Stop);
        decision.id = Some(decision_id(context.session, context.step));
        decision.by = Some(DecidedBy::from(&one.finding));
        clear = best.rung.clear && best.action == Action::Stop;
        if matches!(best.action, Action::Block | Action::Ask) {
            decision.calls = refused_calls(profile, best, &candidates, &found);
        }
        decision.rollback = rollback(profile, watch, best, &one.finding, context);
        if let Some(update) = TaskUpdate::of(&one.finding).filter(|_| best.rung.task_update) {
            decision.extra.insert(TASK_UPDATE.to_owned(), update);
        }
        if best.action == Action::Stop && profile.stop_ends == StopEnds::Run && mode == Mode::Enforce {
            let ladder = ladders.of(watch);
            let stopped = with_user_message(decision.clone(), DecisionTexts::about(why.as_deref()));
            ladder.stopped = Some(Box::new(stopped));
            ladder.stopped_by_limit = of_limit;
            ladder.stopped_for.clone_from(&why);
        }
    }
    if profile.rules == Rules::Episodes && mode == Mode::Nudge && decision.action > Action::Nudge {
        decision = held_back(decision, strongest.map(|best| &found[best.found]));
    }
    decision.findings = listed(found);
    if of_limit && profile.rules == Rules::Episodes {
        limits_first(&mut decision.findings);
    }
    let words = DecisionTexts { why: why.as_deref(), user: Some(user), nudge: nudge.as_deref() };
    Decided { by, episode, of_limit, ..done(decision, words, clear, mode) }
}

/// Returns the strongest rung that a finding reaches. Of equally strong ones, the detector that comes first in the profile
/// wins.
fn strongest<'c, 'p>(candidates: &'c [Candidate<'p>], found: &[DetectorHit]) -> Option<&'c Candidate<'p>> {
    candidates.iter().max_by_key(|c| {
        let first = std::cmp::Reverse((found[c.found].watch, c.found));
        (c.action, c.level, first)
    })
}

/// What is said about a decision besides its message.
#[derive(Debug, Clone, Copy, Default)]
struct DecisionTexts<'a> {
    /// The summary of the finding that decided.
    why: Option<&'a str>,
    /// What the profile shows a person; empty if it leaves that to deloop.
    user: Option<&'a str>,
    /// The message in mode nudge, if it is another one.
    nudge: Option<&'a str>,
}

impl<'a> DecisionTexts<'a> {
    fn about(why: Option<&'a str>) -> Self {
        Self { why, ..Self::default() }
    }
}

/// Notes the messages that come before that of a stronger finding.
fn note_first_messages(
    profile: &Profile,
    candidates: &[Candidate<'_>],
    found: &mut [DetectorHit],
    context: &DecisionContext<'_>,
) {
    for candidate in candidates {
        let hit = &found[candidate.found];
        let watch = &profile.watches[hit.watch];
        if watch.ladder.first {
            let text = message(candidate, hit, watch, context, context.mode);
            found[candidate.found].finding.evidence.message = text;
        }
    }
}

/// Returns the message of a decision: that of its rung, after one that comes first.
fn with_first(
    best: &Candidate<'_>,
    found: &[DetectorHit],
    watch: &Watch,
    context: &DecisionContext<'_>,
    mode: Mode,
) -> Option<String> {
    let own = message(best, &found[best.found], watch, context, mode);
    if watch.ladder.first {
        return own;
    }
    // Parallel calls may lead to the same text several times: the last one counts most.
    let first = found.iter().rev().find_map(|hit| hit.finding.evidence.message.as_ref());
    match (first, own) {
        (Some(first), Some(own)) => Some(format!("{first}\n\n{own}")),
        (first, own) => own.or_else(|| first.cloned()),
    }
}

/// Returns the text of a rung's message, or of its reminder.
fn message(
    best: &Candidate<'_>,
    hit: &DetectorHit,
    watch: &Watch,
    context: &DecisionContext<'_>,
    mode: Mode,
) -> Option<String> {
    if let Some(Reminder { warning, usd }) = best.reminder {
        let mut finding = hit.finding.clone();
        let cost = format!(" Since the first one, this session has cost ${usd:.2}.");
        let since = if usd >= 0.005 { cost } else { String::new() };
        finding.evidence.fields.push(("warning", warning.to_string()));
        finding.evidence.fields.push(("since", since));
        return Some(render(&watch.ladder.reminder, &finding, &watch.params, context.tools));
    }
    let variant = hit.finding.evidence.variant.and_then(|v| best.rung.variants.get(v));
    let text = variant.unwrap_or(&best.rung.message);
    let text = if mode == Mode::Nudge { best.rung.without_consequence(text) } else { text.into() };
    (!text.is_empty()).then(|| render(&text, &hit.finding, &watch.params, context.tools))
}

/// Returns the stop of an earlier step for this one, with what was found at it.
fn still_stopped(
    stopped: &Decision,
    found: Vec<DetectorHit>,
    of_limit: bool,
    context: &DecisionContext<'_>,
) -> Decision {
    let mut decision = stopped.clone();
    decision.step = context.step;
    decision.findings = found.into_iter().map(|f| f.finding).collect();
    if of_limit {
        limits_first(&mut decision.findings);
    }
    decision
}

/// Adds what a finding means in words, the threshold of its rule, and whether anything rests on it.
fn describe(profile: &Profile, one: &mut DetectorHit) {
    one.finding.summary = summary(&one.finding);
    let watch = &profile.watches[one.watch];
    if let Some(Value::Number(at)) = watch.params.get(&one.finding.rule) {
        one.finding.threshold.get_or_insert_with(|| at.clone());
    }
    one.finding.evidence.advisory = watch.ladder.rungs.is_empty();
}

impl DecisionContext<'_> {
    /// Returns the mode that applies. A limit is what the user set, not a judgement, so mode `nudge` can enforce it.
    pub(crate) fn mode_for(&self, of_limit: bool) -> Mode {
        match self.mode {
            Mode::Nudge if of_limit && self.limits_hold => Mode::Enforce,
            mode => mode,
        }
    }
}

/// Returns the calls to refuse. Parallel calls that would all fail again are refused together.
fn refused_calls(
    profile: &Profile,
    best: &Candidate<'_>,
    candidates: &[Candidate<'_>],
    found: &[DetectorHit],
) -> Vec<String> {
    let climbed = |n: usize| candidates.iter().any(|c| c.found == n && c.action == best.action);
    let reaches = |f: &DetectorHit| match profile.watches[f.watch].ladder.by {
        RungUnit::Severity => f.finding.evidence.severity >= best.rung.at,
        _ => f.finding.count >= best.rung.at,
    };
    let too = |f: &DetectorHit| reaches(f) && fits(best.action, f);
    let refused = found.iter().enumerate().filter(|(n, f)| climbed(*n) || too(f));
    let mut calls: Vec<String> = refused.filter_map(|(_, f)| f.call.clone()).collect();
    calls.dedup();
    calls
}

const WARNED_TWICE: &str = ", and two warnings didn't help";

/// Describes what the agent was told before. With a ladder of severities, that may have been another agent.
fn after_warnings(finding: &Finding) -> &'static str {
    if finding.evidence.severity == 0 { WARNED_TWICE } else { "" }
}

/// Returns the steps to take out of the conversation at the first rung after two nudges, if the caller can do that. It
/// needs the same evidence as the refusal that it comes with.
fn rollback(
    profile: &Profile,
    watch: &Watch,
    best: &Candidate<'_>,
    finding: &Finding,
    context: &DecisionContext<'_>,
) -> Option<Rollback> {
    let able = context.rollback && context.mode == Mode::Enforce && profile.rules == Rules::Episodes;
    let ignored = watch.ladder.rungs.get(..best.level.saturating_sub(1) as usize)?;
    let refuses = matches!(best.action, Action::Block | Action::Ask);
    if !able || !refuses || ignored.len() < 2 || ignored.iter().any(|rung| rung.action != Action::Nudge) {
        return None;
    }
    let to = context.step.checked_sub(1).filter(|to| *to > finding.since)?;
    let summary = finding.summary.trim_end_matches('.');
    let line = format!(
        "[deloop] {summary}. The turns that repeated it were removed from this conversation. Take a different approach."
    );
    Some(Rollback::new(finding.since, to, line))
}

/// Returns the question to ask in place of a refusal. The rung's own text would claim that it has happened.
fn question(finding: &Finding) -> String {
    if finding.is_budget() {
        return format!(
            "[deloop] {}. That is this session's ceiling. Continue? If you allow this call, the ceiling is raised by half.",
            finding.summary
        );
    }
    format!("[deloop] {}{}. Run this call once more?", finding.summary, after_warnings(finding))
}

/// Returns the warning for the person in place of a stop.
fn warning(finding: &Finding) -> String {
    format!(
        "[deloop] {}, and warnings didn't help. Interrupt the agent if you don't expect this.",
        finding.summary
    )
}

/// Turns a decision that mode nudge doesn't allow into a warning. The agent doesn't get the text, which would claim a
/// refusal or a stop; people learn what the mode held back.
fn held_back(decision: Decision, decides: Option<&DetectorHit>) -> Decision {
    let what = match decision.action {
        Action::Stop => "stopped the run",
        _ => "blocked this call",
    };
    let summary = decides.map_or("it repeats itself", |f| f.finding.summary.as_str());
    let tried = match decides {
        Some(hit) if hit.finding.is_budget() => "",
        Some(hit) => after_warnings(&hit.finding),
        None => WARNED_TWICE,
    };
    let message = format!("[deloop] {summary}{tried}. In enforce mode, deloop would have {what}.");
    let mut held = decision.clone();
    held.would = Some(Box::new(decision));
    held.action = Action::Warn;
    held.message = Some(message);
    (held.role, held.status) = (None, None);
    held.rollback = None;
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

fn with_user_message(mut decision: Decision, words: DecisionTexts<'_>) -> Decision {
    let fixed = words.user.filter(|text| !text.is_empty()).map(str::to_owned);
    decision.user_message = fixed.or_else(|| user_message(&decision, words.why));
    decision
}

/// Puts the findings about limits first, because they led to the decision.
fn limits_first(findings: &mut [Finding]) {
    findings.sort_by_key(|finding| !finding.is_budget());
}

/// Keeps one finding per detector and pattern: the one with the highest count. Findings that decide nothing come last.
fn listed(found: Vec<DetectorHit>) -> Vec<Finding> {
    let mut list: Vec<DetectorHit> = Vec::with_capacity(found.len());
    for one in found {
        let same = |f: &&mut DetectorHit| f.watch == one.watch && f.finding.pattern == one.finding.pattern;
        match list.iter_mut().find(same) {
            Some(known) if known.finding.count <= one.finding.count => known.finding = one.finding,
            Some(_) => {}
            None => list.push(one),
        }
    }
    list.sort_by_key(|f| (f.finding.evidence.advisory, f.watch));
    list.into_iter().map(|f| f.finding).collect()
}

/// Returns the id of the decision about a step: the same session and step give the same one.
#[must_use]
pub fn decision_id(session: &SessionId, step: u64) -> String {
    let hash = short_hash(format!("{session}\0{step}").as_bytes());
    format!("d{:010x}", hash >> 24)
}

/// Caps a decision at what the mode allows, keeps the original, and adds the line for a person.
fn capped(decision: Decision, words: DecisionTexts<'_>, mode: Mode) -> Decision {
    let cap = mode.cap();
    let words = if cap == Action::Continue { DecisionTexts { user: None, ..words } } else { words };
    if decision.action <= cap {
        return with_user_message(in_mode(decision, words, mode), words);
    }
    let mut done = decision.clone();
    done.would = Some(Box::new(with_user_message(decision, words)));
    done.action = cap;
    done.calls.clear();
    done.rollback = None;
    done.status = None;
    done.extra.clear();
    if cap == Action::Continue {
        done.level = 0;
        done.rung = None;
        done.message = None;
        done.role = None;
        done.by = None;
    } else {
        done.role = Some(Role::User);
    }
    with_user_message(in_mode(done, words, mode), words)
}

/// Leaves out what the message announces and the mode doesn't do.
fn in_mode(mut decision: Decision, words: DecisionTexts<'_>, mode: Mode) -> Decision {
    if let Some(nudge) = words.nudge.filter(|_| mode == Mode::Nudge && decision.action == Action::Nudge) {
        decision.message = Some(nudge.to_owned());
    }
    decision
}
