//! The steps of one session as they are shown: what `deloop show` prints and the report's timelines are made of.
//!
//! A second reading of the file: the replay keeps too little of a step to show it, so that a scan needs little memory.

use std::collections::{HashMap, VecDeque};

use deloop_detect::{Fingerprint, ToolKind, mask, normalise, short_hash};
use deloop_engine::{Engine, Session};
use deloop_store::{Limits, MemoryStore};
use deloop_types::{Action, Body, Decision, Millis, Origin, Outcome, Step, ToolResult, Turn};
use indicatif::ProgressBar;
use serde_json::Value;

use super::left_out::LeftOut;
use super::{Selection, small};
use crate::redaction::Redaction;
use crate::sessions::{ReadError, SessionInput, read};

/// How many calls a transcript holds at most; later ones are left out.
const CELLS: usize = 200_000;
/// How many calls of an agent may wait for their results.
const OPEN: usize = 1024;

/// What is shown of a session.
#[derive(Default)]
pub(crate) struct SessionTranscript {
    /// Every call, and every turn without one, in order.
    pub(crate) cells: Vec<CallCell>,
    /// The selected steps, and what was left out between them.
    pub(crate) entries: Vec<TranscriptEntry>,
    /// The tools that cells refer to.
    pub(crate) tools: Vec<String>,
}

/// One call, or one turn without a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallCell {
    pub(crate) step: u32,
    /// The turn it belongs to.
    pub(crate) turn: u32,
    /// Cells with the same number, other than 0, do the same.
    pub(crate) group: u32,
    pub(crate) outcome: Option<Outcome>,
    /// Which of the transcript's tools; `u16::MAX` for a turn without a call.
    pub(crate) tool: u16,
    pub(super) exact: u64,
    pub(super) near: u64,
    pub(super) agent: u16,
}

/// One step, or what was left out before the next.
pub(crate) enum TranscriptEntry {
    Step(StepView),
    LeftOut(LeftOut),
}

/// One step.
pub(crate) struct StepView {
    pub(crate) step: u32,
    /// The turn that it is or belongs to; 0 before the agent's first.
    pub(crate) turn: u32,
    pub(crate) ts: Option<Millis>,
    pub(crate) agent: Option<String>,
    pub(crate) kind: StepKind,
    /// Of a result: what it is evidence of.
    pub(crate) evidence: Option<&'static str>,
    /// What deloop would have done.
    pub(crate) action: Option<ActionView>,
    /// Whether its turn repeats.
    pub(crate) repeats: bool,
}

/// What happened in a step.
pub(crate) enum StepKind {
    /// The agent's turn.
    Turn { text: String, calls: Vec<ShownCall> },
    /// A call came back. `again` says whether the same call came back the same more than once.
    Result { outcome: Option<Outcome>, text: String, again: bool, exact: u64 },
    /// A message to the agent.
    User { text: String, human: bool },
    /// The agent's context was cut.
    Compact,
    /// Something that is only shown because deloop would have acted on it: what a request used, or a part of a message.
    Other,
}

/// One call of a turn.
pub(crate) struct ShownCall {
    pub(crate) tool: String,
    pub(crate) args: String,
    /// As in [`CallCell::group`].
    pub(crate) group: u32,
    pub(super) cell: usize,
}

/// What deloop would have done at a step.
pub(crate) struct ActionView {
    /// The agent's turn.
    pub(crate) turn: u32,
    pub(crate) action: Action,
    pub(crate) level: u32,
    pub(crate) message: Option<String>,
}

/// How much of a session is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TranscriptSize {
    /// Steps at most; later ones are left out.
    pub(crate) steps: usize,
    /// Characters of each text at most.
    pub(crate) room: usize,
}

/// Reads a session again and returns the selected steps.
pub(crate) fn transcript(
    input: &SessionInput,
    session: &str,
    engine: &Engine,
    selection: &Selection,
    redaction: &Redaction,
    size: TranscriptSize,
) -> Result<SessionTranscript, ReadError> {
    let mut builder = TranscriptBuilder {
        engine,
        selection,
        redaction,
        size,
        store: MemoryStore::new(Limits { idle: u64::MAX, ..Limits::default() }),
        transcript: SessionTranscript::default(),
        left_out: LeftOut::default(),
        tools: HashMap::new(),
        agents: HashMap::new(),
        steps: 0,
        turns: 0,
    };
    read(input, &ProgressBar::hidden(), &mut |item, _| {
        if item.step.session.as_str() == session {
            builder.step(&item.step);
        }
    })?;
    builder.close_gap();
    let mut transcript = builder.transcript;
    transcript.group(selection);
    Ok(transcript)
}

struct TranscriptBuilder<'a> {
    engine: &'a Engine,
    selection: &'a Selection,
    redaction: &'a Redaction,
    size: TranscriptSize,
    store: MemoryStore<Session>,
    transcript: SessionTranscript,
    left_out: LeftOut,
    tools: HashMap<String, (u16, ToolKind)>,
    agents: HashMap<Option<String>, AgentCalls>,
    steps: u64,
    turns: u64,
}

/// What must be known of an agent to show its steps.
#[derive(Default)]
struct AgentCalls {
    number: u16,
    turn: u32,
    /// Calls that wait for their result: id, cell and turn.
    open: VecDeque<(Option<String>, usize, u32)>,
}

impl TranscriptBuilder<'_> {
    fn step(&mut self, step: &Step) {
        let at = small(self.steps);
        self.steps += 1;
        let observed = self.engine.observe(&self.store, step).ok();
        let evidence = observed.as_ref().and_then(|o| o.judged.as_ref()).map(deloop_policy::evidence);
        if !self.agents.contains_key(&step.agent) {
            let number = u16::try_from(self.agents.len()).unwrap_or(u16::MAX);
            self.agents.insert(step.agent.clone(), AgentCalls { number, ..AgentCalls::default() });
        }
        let Some(mut agent) = self.agents.remove(&step.agent) else { return };
        let (turn, kind) = self.kind(&step.body, at, &mut agent);
        let latest = agent.turn;
        self.agents.insert(step.agent.clone(), agent);
        let acted = self.selection.acts_at(at);
        let Some(kind) = kind.or_else(|| acted.then_some(StepKind::Other)) else { return };
        self.close_gap();
        self.transcript.entries.push(TranscriptEntry::Step(StepView {
            step: at,
            turn,
            ts: step.ts,
            agent: step.agent.as_deref().map(|a| self.redaction.line(a, 60)),
            kind,
            evidence,
            action: observed.filter(|_| acted).map(|o| self.action(o.decision, latest)),
            repeats: self.selection.repeats(turn),
        }));
    }

    fn action(&self, decision: Decision, turn: u32) -> ActionView {
        let message = decision.message.filter(|_| !self.redaction.redact);
        ActionView {
            turn,
            action: decision.action,
            level: decision.level,
            message: message.map(|m| self.redaction.text(&m, self.size.room)),
        }
    }

    /// Returns the turn that a step belongs to, and what is shown of it if anything is.
    fn kind(&mut self, body: &Body, at: u32, agent: &mut AgentCalls) -> (u32, Option<StepKind>) {
        let full = self.transcript.entries.len() >= self.size.steps;
        match body {
            Body::Turn(turn) => {
                self.turns += 1;
                agent.turn = small(self.turns);
                let shown = !full && self.selection.shows(at, agent.turn);
                (agent.turn, self.turn(turn, at, agent, shown))
            }
            Body::Result(result) => self.result(result, at, agent, full),
            Body::User(user) => {
                let human = user.origin == Origin::Human;
                if full || !self.selection.shows(at, 0) {
                    self.left_out.user_message();
                    return (agent.turn, None);
                }
                let text = self.redaction.text(user.text.trim(), self.size.room);
                (agent.turn, Some(StepKind::User { text, human }))
            }
            Body::Compact => {
                let shown = !full && self.selection.shows(at, agent.turn);
                (agent.turn, shown.then_some(StepKind::Compact))
            }
            _ => (agent.turn, None),
        }
    }

    fn turn(&mut self, turn: &Turn, at: u32, agent: &mut AgentCalls, shown: bool) -> Option<StepKind> {
        let (redaction, room) = (self.redaction, self.size.room);
        let number = agent.turn;
        let cell = |tool, exact, near, agent| CallCell {
            step: at,
            turn: number,
            group: 0,
            outcome: None,
            tool,
            exact,
            near,
            agent,
        };
        if turn.calls.is_empty() {
            let print = short_hash(turn.text.trim().as_bytes());
            if self.transcript.cells.len() < CELLS {
                self.transcript.cells.push(cell(u16::MAX, print, print, agent.number));
            }
            if !shown {
                self.left_out.message();
            }
        }
        let mut calls = Vec::new();
        for call in &turn.calls {
            let (tool, kind) = self.tool(&call.tool);
            if !shown {
                self.left_out.call(kind);
            }
            if self.transcript.cells.len() >= CELLS {
                continue;
            }
            let near = short_hash(format!("{}\0{}", call.tool, normalise(&call.args)).as_bytes());
            let exact = Fingerprint::of_call(&call.tool, &call.args).short();
            self.transcript.cells.push(cell(tool, exact, near, agent.number));
            let cell = self.transcript.cells.len() - 1;
            if agent.open.len() >= OPEN {
                agent.open.pop_front();
            }
            agent.open.push_back((call.id.clone(), cell, number));
            if shown {
                let args = if redaction.redact {
                    String::new()
                } else {
                    redaction.text(&args_text(&call.args), room)
                };
                calls.push(ShownCall { tool: redaction.line(&call.tool, 80), args, group: 0, cell });
            }
        }
        shown.then(|| StepKind::Turn { text: redaction.text(turn.text.trim(), room), calls })
    }

    fn result(
        &mut self,
        result: &ToolResult,
        at: u32,
        agent: &mut AgentCalls,
        full: bool,
    ) -> (u32, Option<StepKind>) {
        let open = match &result.id {
            Some(id) => agent.open.iter().rposition(|(known, ..)| known.as_ref() == Some(id)),
            None => (!agent.open.is_empty()).then_some(0),
        };
        let open = open.and_then(|open| agent.open.remove(open));
        let turn = open.as_ref().map_or(agent.turn, |open| open.2);
        let outcome = result.ended();
        let cell = open.and_then(|(_, cell, _)| self.transcript.cells.get_mut(cell));
        let call = cell.map(|cell| {
            cell.outcome = outcome;
            *cell
        });
        // A result is shown with its call.
        let with = call.map_or(at, |call| call.step);
        if full || !(self.selection.shows(with, turn) || self.selection.acts_at(at)) {
            return (turn, None);
        }
        let text = output_text(&result.output);
        let exact = call.map_or(0, |call| call.exact ^ short_hash(mask(&text).as_bytes()) | 1);
        let redaction = self.redaction;
        let text = if redaction.redact { String::new() } else { redaction.text(text.trim(), self.size.room) };
        (turn, Some(StepKind::Result { outcome, text, again: false, exact }))
    }

    /// Returns the number of a tool, and its kind.
    fn tool(&mut self, name: &str) -> (u16, ToolKind) {
        if let Some(known) = self.tools.get(name) {
            return *known;
        }
        let number = u16::try_from(self.tools.len()).unwrap_or(u16::MAX);
        let tool = (number, self.engine.profile().tools.kind(name));
        if number < u16::MAX {
            self.transcript.tools.push(self.redaction.line(name, 80));
            self.tools.insert(name.to_owned(), tool);
        }
        tool
    }

    /// Enters what was left out since the last step that is shown.
    fn close_gap(&mut self) {
        let left_out = std::mem::take(&mut self.left_out);
        if !left_out.is_empty() {
            self.transcript.entries.push(TranscriptEntry::LeftOut(left_out));
        }
    }
}

impl SessionTranscript {
    /// Returns the steps that are shown.
    pub(crate) fn steps(&self) -> impl Iterator<Item = &StepView> {
        self.entries.iter().filter_map(|entry| match entry {
            TranscriptEntry::Step(step) => Some(step),
            TranscriptEntry::LeftOut(_) => None,
        })
    }
}

/// Returns arguments as text: a single one is itself, several are JSON.
fn args_text(args: &Value) -> String {
    match args {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Object(map) if map.is_empty() => String::new(),
        Value::Object(map) if map.len() == 1 => map.values().next().map_or_else(String::new, args_text),
        other => other.to_string(),
    }
}

fn output_text(output: &Value) -> String {
    match output {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
