//! What happened so far, kept whole: nothing is hashed, masked or forgotten.

use std::collections::HashMap;

use deloop_types::{Body, Call, Outcome, Step, ToolResult};
use serde_json::Value;

/// A call that was made, and its result.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) call: Call,
    /// The arguments as text, keys in order.
    pub(super) args: String,
    pub(super) step: u64,
    /// The agent's turn, from 0.
    pub(super) turn: u64,
    pub(super) result: Option<Answer>,
}

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) outcome: Option<Outcome>,
    pub(super) output: Value,
    pub(super) step: u64,
}

impl Answer {
    pub(super) fn text(&self) -> String {
        self.output.as_str().map_or_else(|| self.output.to_string(), str::to_owned)
    }
}

impl Made {
    /// Whether it is the same call, whatever describes or limits it.
    pub(super) fn is_same_call(&self, other: &Self) -> bool {
        self.call.tool == other.call.tool && self.essence() == other.essence()
    }

    fn essence(&self) -> Value {
        let mut args = self.call.args.clone();
        if let Value::Object(args) = &mut args {
            let beside =
                ["description", "justification", "timeout", "permission", "yield_time_ms", "max_output"];
            args.retain(|name, _| !beside.iter().any(|word| name.contains(word)));
        }
        args
    }

    /// How it ended, where the agent says so.
    pub(super) fn declared(&self) -> Option<Outcome> {
        self.result.as_ref().and_then(|r| r.outcome)
    }

    /// Whether it failed or was refused, or may have: not every agent says so.
    pub(super) fn may_have_failed(&self) -> bool {
        self.result.is_some()
            && matches!(self.declared(), None | Some(Outcome::Error | Outcome::Timeout | Outcome::Denied))
    }
}

/// What one agent of a session did.
#[derive(Debug, Default)]
pub(super) struct Agent {
    pub(super) calls: Vec<Made>,
    /// The text of each turn, and whether it had calls.
    pub(super) turns: Vec<(String, bool)>,
    /// The message that streams now.
    pub(super) streams: String,
}

/// Which step it is, whose, and which call it is about: those of a turn, or the one that was answered.
#[derive(Debug)]
pub(super) struct Now {
    pub(super) step: u64,
    agent: (String, Option<String>),
    pub(super) about: Vec<usize>,
}

/// Everything so far.
#[derive(Debug, Default)]
pub(super) struct Seen {
    steps: HashMap<String, u64>,
    agents: HashMap<(String, Option<String>), Agent>,
}

impl Seen {
    pub(super) fn agent(&self, now: &Now) -> &Agent {
        &self.agents[&now.agent]
    }

    /// Enters a step.
    pub(super) fn enter(&mut self, step: &Step) -> Now {
        let session = step.session.to_string();
        let steps = self.steps.entry(session.clone()).or_default();
        let index = *steps;
        *steps += 1;
        let key = (session, step.agent.clone());
        let agent = self.agents.entry(key.clone()).or_default();
        let about = match &step.body {
            Body::Turn(turn) => {
                agent.streams.clear();
                agent.turns.push((turn.text.clone(), !turn.calls.is_empty()));
                let first = agent.calls.len();
                let number = agent.turns.len() as u64 - 1;
                agent.calls.extend(turn.calls.iter().map(|call| Made {
                    call: call.clone(),
                    args: call.args.to_string(),
                    step: index,
                    turn: number,
                    result: None,
                }));
                (first..agent.calls.len()).collect()
            }
            Body::Result(result) => agent.answer(index, result).into_iter().collect(),
            Body::Chunk(text) => {
                agent.streams += text;
                Vec::new()
            }
            _ => Vec::new(),
        };
        if step.body == Body::End {
            self.steps.remove(&key.0);
            self.agents.retain(|(session, _), _| *session != key.0);
            self.agents.entry(key.clone()).or_default();
        }
        Now { step: index, agent: key, about }
    }
}

impl Agent {
    /// The latest call with the result's id; without an id the oldest unanswered one of the latest turn that has any.
    fn answer(&mut self, step: u64, result: &ToolResult) -> Option<usize> {
        let at = match &result.id {
            Some(id) => self.calls.iter().rposition(|c| c.call.id.as_ref() == Some(id))?,
            None => {
                let turn = self.calls.iter().rev().find(|c| c.result.is_none())?.turn;
                self.calls.iter().position(|c| c.turn == turn && c.result.is_none())?
            }
        };
        let known = self.calls[at].result.as_ref();
        if known.is_some_and(|r| r.outcome != Some(Outcome::Running)) {
            return None;
        }
        self.calls[at].result = Some(Answer { outcome: result.ended(), output: result.output.clone(), step });
        Some(at)
    }
}
