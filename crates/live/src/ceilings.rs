//! What a project uses per day, and what happens when that is too much. The ceilings of a session are a detector's
//! (`over-budget`).

use deloop_detect::{ActiveTime, Fingerprint, LimitShare, UsageAmounts, limited_tokens, short_hash};
use deloop_engine::Session;
use deloop_formats::hooks::{HookAgent, HookCall, HookEvent, HookKind};
use deloop_policy::{summary, user_message};
use deloop_store::{Store, StoreError};
use deloop_types::{
    Action, Body, DecidedBy, Decision, Event, EventKind, Evidence, Finding, Millis, Mode, Outcome, Repeats,
    SessionId, ToolResult, limits,
};
use serde::{Deserialize, Serialize};

use crate::journal::{DecisionOrigin, Journal};
use crate::live::Live;
use crate::planned_steps::PlannedStep;
use crate::session_state::{AgentState, SessionState, fingerprint};

/// The percentages at which people are warned, and at which calls are refused.
const WARNS: u64 = 80;
const REACHED: u64 = 100;
/// The status of a run that was stopped.
const STATUS: &str = "OVER_BUDGET";
/// The detector that judges the same limits per session.
const DETECTOR: &str = "over-budget";

/// What a project used on one day (UTC).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DayUsage {
    /// The project's folder.
    pub project: String,
    /// What its sessions used.
    pub used: UsageAmounts,
    /// How often a person let work continue after a limit was reached.
    pub raises: u32,
}

/// Returns the number of the day (UTC), counted from 1970.
#[must_use]
pub fn day_of(now: Millis) -> i64 {
    now.0.div_euclid(24 * 3_600_000)
}

/// What a session must remember of its project's ceilings.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct CeilingState {
    /// The project.
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    active: ActiveTime,
    /// The day and the raises at the last warning.
    #[serde(skip_serializing_if = "Option::is_none")]
    warned: Option<(i64, u32)>,
    /// Whether a person was asked, or the run was stopped, and nobody has let it continue yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    halted: bool,
    /// The call that a person was asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    asked: Option<Fingerprint>,
}

/// The point at which a ceiling is judged.
pub(crate) struct CeilingPoint<'a> {
    /// The agent, such as `claude-code`.
    pub(crate) program: &'a str,
    pub(crate) session: &'a SessionId,
    /// The subagent, if any.
    pub(crate) subagent: Option<&'a str>,
    /// Whether a call is about to be made, or was. A person's message and the end of a turn aren't judged.
    pub(crate) at_call: bool,
    /// The call that is about to be made.
    pub(crate) call: Option<Fingerprint>,
    /// The action and step of the decision so far.
    pub(crate) action: Action,
    pub(crate) step: u64,
}

impl<'a> CeilingPoint<'a> {
    /// Returns the point of a hook's event.
    pub(crate) fn of(
        agent: &'a dyn HookAgent,
        event: &'a HookEvent,
        session: &'a SessionId,
        decision: &Decision,
    ) -> Self {
        use HookKind::{Batch, Failure, PostCall, PreCall};
        let call = event.calls.first().filter(|_| event.kind == PreCall);
        Self {
            program: agent.name(),
            session,
            subagent: event.subagent.as_deref(),
            at_call: matches!(event.kind, PreCall | PostCall | Failure | Batch),
            call: call.map(fingerprint),
            action: decision.action,
            step: decision.step,
        }
    }
}

impl<S: Store<Session>, J: Journal> Live<'_, S, J> {
    fn day_limits(&self) -> Option<UsageAmounts> {
        let limits = self.engine.profile().ceilings.day();
        (limits != UsageAmounts::default()).then_some(limits)
    }

    /// Adds what these steps use to the project's day. Returns the day's usage, or `None` if the project is unknown or has
    /// no ceilings.
    pub(crate) fn count_usage(
        &self,
        state: &mut SessionState,
        subagent: Option<&str>,
        folder: Option<&str>,
        steps: &[PlannedStep],
    ) -> Result<Option<DayUsage>, StoreError> {
        if self.day_limits().is_none() {
            return Ok(None);
        }
        let mut used = UsageAmounts::default();
        let agent = state.agent(subagent);
        if subagent.is_some() && !std::mem::replace(&mut agent.counted, true) {
            used.subagents = 1;
        }
        for planned in steps.iter().filter(|planned| planned.of_agent) {
            match &planned.step.body {
                Body::Turn(turn) => used.turns += u64::from(agent.begins_turn(turn.id.as_deref())),
                Body::Usage(usage) => {
                    used.tokens = used.tokens.saturating_add(limited_tokens(usage));
                    used.usd += usage.dollars().unwrap_or(0.0);
                }
                _ => {}
            }
        }
        let ceiling = &mut state.ceiling;
        let before = ceiling.active.minutes();
        steps
            .iter()
            .filter(|planned| planned.of_agent)
            .for_each(|planned| ceiling.active.enter(&planned.step));
        used.minutes = ceiling.active.minutes() - before;
        if ceiling.project.is_none() {
            ceiling.project = folder.map(|folder| limits::name((self.context.project_of)(folder)));
        }
        let Some(project) = &ceiling.project else { return Ok(None) };
        self.journal.add_usage(project, day_of(self.context.now), &used).map(Some)
    }

    /// Raises the project's ceilings of today by half if this session was halted by them and they are still reached.
    fn raise_day(&self, ceiling: &mut CeilingState) -> Result<(), StoreError> {
        ceiling.asked = None;
        let halted = std::mem::take(&mut ceiling.halted);
        let (Some(limits), Some(project)) = (self.day_limits(), ceiling.project.as_deref()) else {
            return Ok(());
        };
        if !halted || self.context.run.is_some() {
            return Ok(());
        }
        let day = day_of(self.context.now);
        let usage = self.journal.add_usage(project, day, &UsageAmounts::default())?;
        let closest = usage.used.closest(&limits, usage.raises);
        match closest.is_some_and(|closest| closest.percent() >= REACHED) {
            true => self.journal.raise_day(project, day),
            false => Ok(()),
        }
    }

    /// Notes that a person wrote to the session.
    pub(crate) fn person_wrote(&self, ceiling: &mut CeilingState) -> Result<(), StoreError> {
        self.raise_day(ceiling)
    }

    /// Notes which calls have run. If one of them is the one that a person was asked about, they allowed it.
    pub(crate) fn calls_ran(&self, event: &HookEvent, ceiling: &mut CeilingState) -> Result<(), StoreError> {
        let Some(asked) = ceiling.asked.filter(|_| event.kind != HookKind::PreCall) else { return Ok(()) };
        let refused =
            |result: &ToolResult| matches!(result.outcome, Some(Outcome::Denied | Outcome::Cancelled));
        let ran = |call: &&HookCall| call.result.as_ref().is_some_and(|result| !refused(result));
        match event.calls.iter().filter(ran).any(|call| fingerprint(call) == asked) {
            true => self.raise_day(ceiling),
            false => Ok(()),
        }
    }

    /// Returns the decision about the project's ceilings, if it is stronger than the one so far, with an event if it is new.
    pub(crate) fn judge_day(
        &self,
        ceiling: &mut CeilingState,
        agent: &mut AgentState,
        usage: Option<&DayUsage>,
        point: &CeilingPoint<'_>,
    ) -> Result<Option<(Decision, Option<Event>)>, StoreError> {
        let (Some(usage), Some(limits)) = (usage.filter(|_| point.at_call), self.day_limits()) else {
            return Ok(None);
        };
        let Some(closest) = usage.used.closest(&limits, usage.raises) else { return Ok(None) };
        let percent = closest.percent();
        let options = self.context.options;
        let (level, wanted) = match percent {
            REACHED.. if options.attended => (2, Action::Ask),
            REACHED.. => (2, Action::Stop),
            WARNS.. => (1, Action::Warn),
            _ => return Ok(None),
        };
        let action = match options.mode {
            Mode::Shadow => Action::Continue,
            Mode::Nudge if !options.limits_hold => Action::Warn,
            _ => wanted,
        };
        let told = Some((day_of(self.context.now), usage.raises));
        // People are warned once; each agent is stopped by itself.
        let is_new = told != if level == 1 { ceiling.warned } else { agent.limit_reached };
        // A person is asked about a call, and about every call until one is allowed; a stop stands.
        let is_due =
            if action >= Action::Ask { action == Action::Stop || point.call.is_some() } else { is_new };
        if !is_due || (action > Action::Continue && action <= point.action) {
            return Ok(None);
        }
        let finding = finding(&closest);
        let mut decision = Decision::go_on(point.session.clone(), point.step);
        let id = format!("{}\0{:?}\0{DETECTOR}\0{told:?}\0{level}", point.session, point.subagent);
        decision.id = Some(format!("d{:010x}", short_hash(id.as_bytes()) >> 24));
        (decision.action, decision.level) = (wanted, level);
        decision.message = Some(message(&finding.summary, closest.key, wanted));
        decision.status = (wanted == Action::Stop).then(|| STATUS.to_owned());
        decision.by = Some(DecidedBy::from(&finding));
        decision.findings = vec![finding];
        decision.user_message = user_message(&decision, None);
        let decision = if action == wanted { decision } else { held_back(decision, action) };
        if is_new {
            let origin = DecisionOrigin {
                subagent: point.subagent,
                recent_calls: &crate::recent_calls::json(&agent.recent_calls),
                ..DecisionOrigin::new(point.program, self.context.now, self.context.run)
            };
            self.journal.record(&decision, &origin)?;
        }
        match level {
            1 => ceiling.warned = told,
            _ => agent.limit_reached = told,
        }
        ceiling.halted = action >= Action::Ask;
        ceiling.asked = point.call.filter(|_| action == Action::Ask);
        let mut event = event(&decision, level);
        event.agent = point.subagent.map(str::to_owned);
        event.ts = Some(self.context.now);
        Ok(Some((decision, is_new.then_some(event))))
    }
}

fn finding(closest: &LimitShare) -> Finding {
    let mut finding = Finding::new(DETECTOR, closest.percent()).by_rule(closest.key);
    (finding.score, finding.repeats) = (1.0, Repeats::Budget);
    finding.evidence = Evidence {
        fields: vec![
            ("unit", closest.unit.to_owned()),
            ("used", closest.amount(closest.used)),
            ("limit", closest.amount(closest.limit)),
            ("per", "day".to_owned()),
        ],
        hard: true,
        ..Evidence::default()
    };
    finding.summary = summary(&finding);
    finding
}

fn event(decision: &Decision, level: u32) -> Event {
    let mut event = Event::new(EventKind::BudgetWarning, decision.session.clone(), decision.step);
    (event.action, event.level) = (Some(decision.action), Some(level));
    event.reason.clone_from(&decision.message);
    event.status.clone_from(&decision.status);
    event.finding = decision.main_finding().cloned();
    event
}

impl CeilingState {
    /// Returns whether nothing needs to be stored.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Notes that the call that a person should have been asked about was refused instead.
    pub(crate) fn not_asked(&mut self) {
        self.asked = None;
    }
}

/// Returns whether a decision is about a ceiling.
pub(crate) fn is_about_limit(decision: &Decision) -> bool {
    decision.findings.iter().any(|finding| finding.is_budget() && finding.count >= REACHED)
}

/// Turns a question into a refusal, for an agent whose hook can't ask. A person's message lifts it.
pub(crate) fn refused_at_limit(mut decision: Decision) -> Decision {
    let finding = decision.findings.iter().find(|finding| finding.is_budget());
    let summary = finding.map_or("", |finding| finding.summary.as_str());
    decision.action = Action::Block;
    decision.message = Some(format!(
        "[deloop] Blocked: {summary}. That is a ceiling, so calls are refused until a person writes to you, which raises it by \
         half. Stop here and report where you stand."
    ));
    decision.user_message = user_message(&decision, None);
    decision
}

fn message(summary: &str, key: &str, action: Action) -> String {
    match action {
        Action::Ask => format!(
            "[deloop] {summary}. That is the project's ceiling for today. Continue? If you allow this call, the ceiling \
             is raised by half for today."
        ),
        Action::Stop => format!(
            "[deloop] Stopped: {summary}. That is the project's ceiling for today (UTC). A message from you raises it by \
             half; `ceilings.day_{key}` in your deloop.toml changes it."
        ),
        _ => format!("[deloop] {summary}. At 100 %, deloop asks before the next call, or stops the run."),
    }
}

/// Turns a decision into what the mode allows, and keeps the original.
fn held_back(decision: Decision, action: Action) -> Decision {
    let mut held = decision.clone();
    (held.action, held.status) = (action, None);
    match action {
        Action::Continue => (held.message, held.user_message, held.level) = (None, None, 0),
        _ => {
            let summary = decision.findings.first().map_or("", |finding| finding.summary.as_str());
            let message = format!("[deloop] {summary}. In enforce mode, deloop would have stopped the run.");
            (held.message, held.user_message) = (Some(message.clone()), Some(message));
        }
    }
    held.would = Some(Box::new(decision));
    held
}
