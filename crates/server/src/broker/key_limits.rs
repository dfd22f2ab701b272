//! Steps beyond what the key of their sender may use: they are answered, and cost nothing that lasts.

use std::collections::HashMap;

use deloop_store::StoreError;
use deloop_types::{Body, Decision, Millis, SessionId, Step};

use super::SentStep;
use super::judge::{Judge, JudgedStep};
use super::view::ProjectView;
use crate::access::Allowance;
use crate::project::Project;
use crate::requester::Requester;

/// The field of a Decision that says which limit its step was beyond.
const FIELD: &str = "limit";

/// A limit of a key that a step was beyond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyLimit {
    /// Its session or agent is new, and there were too many new ones. It wasn't stored.
    NewAgents,
    /// Its swarm is one too many. It was judged without it.
    Swarms,
}

impl KeyLimit {
    pub(crate) const ALL: [Self; 2] = [Self::NewAgents, Self::Swarms];

    /// Returns its name in the configuration.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NewAgents => "new_agents_per_minute",
            Self::Swarms => "swarms_per_hour",
        }
    }

    /// Returns what the sender is told.
    fn message(self, allowance: &Allowance) -> String {
        let (limits, name) = (allowance.limits(), self.name());
        match self {
            Self::NewAgents => format!(
                "this key may start {} sessions and subagents per minute (`{name}` under `[serve.limits]`); this step \
                 was neither judged nor stored",
                limits.new_agents_per_minute
            ),
            Self::Swarms => format!(
                "this key may use {} swarms within an hour (`{name}` under `[serve.limits]`); this step was judged \
                 without its swarm",
                limits.swarms_per_hour
            ),
        }
    }
}

impl SentStep<'_> {
    /// Returns whether it is neither judged nor stored.
    pub(crate) fn is_refused(&self) -> bool {
        self.limit == Some(KeyLimit::NewAgents)
    }
}

/// Takes the steps out of swarms that their key may not use.
pub(super) fn limit_swarms(requester: &Requester, steps: &mut [SentStep<'_>], now: Millis) {
    let Requester { project, allowance: Some(allowance), .. } = requester else { return };
    for sent in steps {
        let is_beyond =
            |swarm: &String| sent.step.body != Body::SwarmEnd && !allowance.take_swarm(project, swarm, now);
        if sent.step.swarm.as_ref().is_some_and(is_beyond) {
            sent.step.swarm = None;
            sent.limit = Some(KeyLimit::Swarms);
        }
    }
}

/// Marks the steps of sessions and agents that their key may not start. The sessions are loaded.
pub(super) fn limit_new_agents(
    judge: &Judge,
    view: &ProjectView<'_>,
    allowance: Option<&Allowance>,
    steps: &mut [SentStep<'_>],
    now: Millis,
) -> Result<(), StoreError> {
    let Some(allowance) = allowance else { return Ok(()) };
    let mut refused: HashMap<(SessionId, Option<String>), bool> = HashMap::new();
    for sent in steps {
        let Step { session, agent, body, .. } = &sent.step;
        // These start nothing.
        if matches!(body, Body::State | Body::End | Body::SwarmEnd)
            || view.has_agent(&judge.engine, session, agent.as_deref())?
        {
            continue;
        }
        let is_refused = *refused
            .entry((session.clone(), agent.clone()))
            .or_insert_with(|| !allowance.take_new_agent(now));
        if is_refused {
            view.drop_unknown(session);
            sent.limit = Some(KeyLimit::NewAgents);
        }
    }
    Ok(())
}

/// Returns what is answered to a step that is neither judged nor stored.
pub(super) fn refused(step: &Step) -> JudgedStep {
    JudgedStep::of(Decision::go_on(step.session.clone(), 0))
}

/// Says in each decision which limit its step was beyond. Returns what to tell the person who runs the server, at most once
/// per minute and key.
pub(super) fn name_limits(
    requester: &Requester,
    steps: &[SentStep<'_>],
    judged: &mut [JudgedStep],
    now: Millis,
) -> Option<String> {
    let allowance = requester.allowance.as_deref()?;
    let mut reached = None;
    for (sent, judged) in steps.iter().zip(judged) {
        if let Some(limit) = sent.limit {
            reached = Some(limit);
            judged.decision.extra.insert(FIELD.to_owned(), limit.message(allowance).into());
        }
    }
    let limit = reached.filter(|_| allowance.reaches_limit(now))?;
    Some(told(&requester.actor, &requester.project, limit, allowance))
}

fn told(key: &str, project: &Project, limit: KeyLimit, allowance: &Allowance) -> String {
    format!("key {key}, project {project}: {}", limit.message(allowance))
}
