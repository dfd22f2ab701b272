//! One session told step by step: what `deloop show` prints and the report's timelines are made of.
//!
//! A second reading of the file: the first keeps too little of a step to show it, so that a scan needs little memory.

use std::collections::HashMap;

use deloop_detect::Fingerprint;
use deloop_detect::{mask, normalise, short_hash};
use deloop_engine::{Engine, Session};
use deloop_store::{Limits, MemoryStore};
use deloop_types::{Action, Body, Millis, Origin, Outcome, Step};
use indicatif::ProgressBar;
use serde_json::Value;

use crate::scan::find::Input;
use crate::scan::read::{Unread, read};
use crate::scan::report::LoopRow;
use crate::scan::veil::Veil;
use crate::scan::watch::small;

/// How many cells a story has at most; what comes later is left out.
const CELLS: usize = 200_000;

/// What is told of a session.
#[derive(Default)]
pub(crate) struct Story {
    /// Every call, and every turn without one, in their order.
    pub(crate) cells: Vec<Cell>,
    /// The steps that were asked for.
    pub(crate) scenes: Vec<Scene>,
    /// The tools that cells refer to.
    pub(crate) tools: Vec<String>,
}

/// One call, or one turn without a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) step: u32,
    /// Cells with the same number, other than 0, do the same.
    pub(crate) group: u32,
    pub(crate) outcome: Option<Outcome>,
    /// Which of the story's tools; `u16::MAX` for a turn without a call.
    pub(crate) tool: u16,
    exact: u64,
    near: u64,
    agent: u16,
}

/// One step.
pub(crate) struct Scene {
    pub(crate) step: u32,
    /// The ordinal of the turn that it is or belongs to, from 1; 0 before the first.
    pub(crate) turn: u32,
    pub(crate) ts: Option<Millis>,
    pub(crate) agent: Option<String>,
    pub(crate) kind: Kind,
    /// Of a result: what it is evidence of.
    pub(crate) evidence: Option<&'static str>,
    /// What deloop would have done.
    pub(crate) told: Option<Telling>,
}

/// What happened in a step.
pub(crate) enum Kind {
    /// The model spoke.
    Turn { text: String, calls: Vec<CallScene> },
    /// A call came back.
    Result { outcome: Option<Outcome>, text: String, repeats: bool, exact: u64 },
    /// A message to the agent.
    User { text: String, human: bool },
    /// The agent's context was cut.
    Compact,
}

/// One call of a turn.
pub(crate) struct CallScene {
    pub(crate) tool: String,
    pub(crate) args: String,
    /// As in [`Cell::group`].
    pub(crate) group: u32,
    cell: usize,
}

/// A decision.
pub(crate) struct Telling {
    pub(crate) action: Action,
    pub(crate) level: u32,
    pub(crate) message: Option<String>,
}

/// What to tell of a session.
pub(crate) struct Ask<'a> {
    /// The session's id as it stands in the file.
    pub(crate) session: &'a str,
    /// Its loops.
    pub(crate) loops: &'a [&'a LoopRow],
    /// Which steps are to be told in full.
    pub(crate) wanted: &'a dyn Fn(u32) -> bool,
    /// How many characters of a text are told.
    pub(crate) room: usize,
    pub(crate) veil: &'a Veil,
}

/// Reads the input again and tells the session.
pub(crate) fn story(input: &Input, engine: &Engine, ask: &Ask<'_>) -> Result<Story, Unread> {
    let mut teller = Teller {
        ask,
        engine,
        store: MemoryStore::new(Limits { idle: u64::MAX, ..Limits::default() }),
        story: Story::default(),
        step: 0,
        agents: Vec::new(),
    };
    read(input, &ProgressBar::hidden(), &mut |item, _| {
        if ask.veil.line(item.step.session.as_str(), 200) == ask.session {
            teller.step(&item.step);
        }
    })?;
    let mut story = teller.story;
    story.group(ask.loops);
    Ok(story)
}

struct Teller<'a> {
    ask: &'a Ask<'a>,
    engine: &'a Engine,
    store: MemoryStore<Session>,
    story: Story,
    step: u64,
    agents: Vec<Telltale>,
}

/// What must be known of an agent to tell its steps.
#[derive(Default)]
struct Telltale {
    name: Option<String>,
    turns: u32,
    /// Calls that wait for their result: id and cell.
    open: Vec<(Option<String>, usize)>,
    /// What came back to which call, hashed, and how often.
    results: HashMap<u64, u32>,
    last: Option<(Action, u32)>,
}

impl Teller<'_> {
    fn step(&mut self, step: &Step) {
        let at = small(self.step);
        self.step += 1;
        let seen = self.engine.observe(&self.store, step).ok();
        let evidence = seen.as_ref().and_then(|seen| seen.judged.as_ref()).map(deloop_policy::evidence);
        let decision = seen.map(|seen| seen.decision).unwrap_or_default();
        let index = self.agents.iter().position(|a| a.name == step.agent).unwrap_or_else(|| {
            self.agents.push(Telltale { name: step.agent.clone(), ..Telltale::default() });
            self.agents.len() - 1
        });
        let wanted = (self.ask.wanted)(at);
        let Some(kind) = self.kind(&step.body, at, index, wanted) else { return };
        let agent = &mut self.agents[index];
        if !wanted {
            return;
        }
        // A rung that is reported at every step, and a stop that stands, are told once.
        let now = (decision.action, decision.level);
        let news =
            decision.action > Action::Continue && agent.last != Some(now) && !decision.findings.is_empty();
        if !decision.findings.is_empty() {
            agent.last = Some(now);
        }
        let veil = self.ask.veil;
        let message = decision.message.filter(|_| !veil.redact);
        let told = news.then(|| Telling {
            action: decision.action,
            level: decision.level,
            message: message.map(|m| veil.text(&m, self.ask.room)),
        });
        self.story.scenes.push(Scene {
            step: at,
            turn: agent.turns,
            ts: step.ts,
            agent: step.agent.as_deref().map(|a| veil.line(a, 60)),
            kind,
            evidence,
            told,
        });
    }

    fn kind(&mut self, body: &Body, at: u32, index: usize, wanted: bool) -> Option<Kind> {
        let (veil, room) = (self.ask.veil, self.ask.room);
        let agent = &mut self.agents[index];
        let number = u16::try_from(index).unwrap_or(u16::MAX);
        Some(match body {
            Body::Turn(turn) => {
                agent.turns += 1;
                let cell = |tool, exact, near| Cell {
                    step: at,
                    group: 0,
                    outcome: None,
                    tool,
                    exact,
                    near,
                    agent: number,
                };
                if turn.calls.is_empty() && self.story.cells.len() < CELLS {
                    let print = short_hash(turn.text.trim().as_bytes());
                    self.story.cells.push(cell(u16::MAX, print, print));
                }
                let mut calls = Vec::new();
                for call in turn.calls.iter().take(CELLS - self.story.cells.len().min(CELLS)) {
                    let near = short_hash(format!("{}\0{}", call.tool, normalise(&call.args)).as_bytes());
                    let tool = self.story.tool(&call.tool, veil);
                    let exact = Fingerprint::of_call(&call.tool, &call.args).short();
                    self.story.cells.push(cell(tool, exact, near));
                    let cell = self.story.cells.len() - 1;
                    agent.open.push((call.id.clone(), cell));
                    if wanted {
                        let args =
                            if veil.redact { String::new() } else { veil.text(&args_text(&call.args), room) };
                        calls.push(CallScene { tool: veil.line(&call.tool, 80), args, group: 0, cell });
                    }
                }
                Kind::Turn { text: veil.text(turn.text.trim(), room), calls }
            }
            Body::Result(result) => {
                let open = match &result.id {
                    Some(id) => agent.open.iter().rposition(|(known, _)| known.as_ref() == Some(id)),
                    None => (!agent.open.is_empty()).then_some(0),
                };
                let cell = open.map(|open| agent.open.remove(open).1);
                let outcome = result.ended();
                let text = output_text(&result.output);
                let mut exact = 0;
                if let Some(cell) = cell.and_then(|cell| self.story.cells.get_mut(cell)) {
                    cell.outcome = outcome;
                    exact = cell.exact ^ short_hash(mask(&text).as_bytes()) | 1;
                }
                let times = agent.results.entry(exact).or_default();
                *times += 1;
                let text = if veil.redact { String::new() } else { veil.text(text.trim(), room) };
                Kind::Result { outcome, text, repeats: exact != 0 && *times > 1, exact }
            }
            Body::User(user) => {
                Kind::User { text: veil.text(user.text.trim(), room), human: user.origin == Origin::Human }
            }
            Body::Compact => Kind::Compact,
            _ => return None,
        })
    }
}

impl Story {
    fn tool(&mut self, name: &str, veil: &Veil) -> u16 {
        let name = veil.line(name, 80);
        let known = self.tools.iter().position(|t| *t == name).unwrap_or_else(|| {
            self.tools.push(name);
            self.tools.len() - 1
        });
        u16::try_from(known).unwrap_or(u16::MAX)
    }

    /// Gives calls that do the same the same number. Exactly the same counts everywhere; nearly the same only inside
    /// a loop, where a detector has said that it is.
    fn group(&mut self, loops: &[&LoopRow]) {
        let inside = |step: u32| loops.iter().any(|l| (l.step..=l.last_step).contains(&step));
        let mut exact: HashMap<(u16, u64), u32> = HashMap::new();
        let mut near: HashMap<(u16, u64), u32> = HashMap::new();
        for cell in &self.cells {
            *exact.entry((cell.agent, cell.exact)).or_default() += 1;
            if inside(cell.step) {
                *near.entry((cell.agent, cell.near)).or_default() += 1;
            }
        }
        let mut numbers: HashMap<(u16, u64), u32> = HashMap::new();
        for cell in &mut self.cells {
            let is_near = inside(cell.step) && near[&(cell.agent, cell.near)] > 1;
            let is_exact = exact[&(cell.agent, cell.exact)] > 1;
            if is_near || is_exact {
                // Near ones share a number with each other, whatever their exact forms.
                let key = (cell.agent, if is_near { cell.near } else { cell.exact });
                let known = numbers.get(&key).or_else(|| numbers.get(&(cell.agent, cell.exact))).copied();
                let number = known.unwrap_or_else(|| small(numbers.len() as u64) + 1);
                numbers.insert(key, number);
                numbers.insert((cell.agent, cell.exact), number);
                cell.group = number;
            }
        }
        let mut results: HashMap<u64, u32> = HashMap::new();
        for scene in &self.scenes {
            if let Kind::Result { exact, .. } = &scene.kind {
                *results.entry(*exact).or_default() += 1;
            }
        }
        for scene in &mut self.scenes {
            match &mut scene.kind {
                Kind::Turn { calls, .. } => {
                    for call in calls {
                        call.group = self.cells.get(call.cell).map_or(0, |c| c.group);
                    }
                }
                Kind::Result { repeats, exact, .. } => *repeats |= *exact != 0 && results[exact] > 1,
                Kind::User { .. } | Kind::Compact => {}
            }
        }
    }
}

/// Arguments as text: a single one is itself, several are JSON.
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
