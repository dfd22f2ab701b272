//! One file through every variant of the rules at once, step by step as it is read.

use std::collections::HashMap;

use deloop_engine::{Engine, Session};
use deloop_store::{Limits, MemoryStore};
use deloop_types::{Action, Body, Decision, Finding, Step};
use indicatif::ProgressBar;
use serde::Serialize;

use crate::scan::find::Input;
use crate::scan::read::{Unread, read};

/// A decision that was more than `continue`.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Fire {
    /// The agent's turn, from 0.
    pub(crate) turn: u64,
    /// The session's step.
    pub(crate) step: u64,
    pub(crate) action: Action,
    pub(crate) level: u32,
    pub(crate) detector: String,
    pub(crate) summary: String,
    /// Tells one pattern from another of the same detector.
    #[serde(skip)]
    pub(crate) pattern: u64,
}

/// What happened in one session.
#[derive(Debug, Clone, Default)]
pub(crate) struct Replay {
    pub(crate) session: String,
    pub(crate) turns: u64,
    pub(crate) calls: u64,
    pub(crate) model: Option<String>,
    /// By variant.
    pub(crate) fires: Vec<Vec<Fire>>,
}

/// What happened in the sessions of one file.
pub(crate) struct FileReplay {
    pub(crate) format: &'static str,
    pub(crate) project: Option<String>,
    pub(crate) sessions: Vec<Replay>,
    /// What people should know about the file.
    pub(crate) notes: Vec<String>,
}

/// Replays a file. With `whole`, all of it counts as one session, whatever sessions its steps name.
///
/// # Errors
/// When the file cannot be read or is of no known format.
pub(crate) fn replay(
    input: &Input,
    progress: &ProgressBar,
    engines: &[Engine],
    whole: bool,
) -> Result<FileReplay, Unread> {
    let limits = Limits { idle: u64::MAX, ..Limits::default() };
    let mut replayer = Replayer {
        engines,
        stores: engines.iter().map(|_| MemoryStore::new(limits)).collect(),
        whole,
        sessions: Vec::new(),
        index: HashMap::new(),
        last: HashMap::new(),
    };
    let read = read(input, progress, &mut |item, _| replayer.step(&item.step))?;
    Ok(FileReplay {
        format: read.format.name(),
        project: read.report.project,
        sessions: replayer.sessions,
        notes: read.notes,
    })
}

struct Replayer<'a> {
    engines: &'a [Engine],
    stores: Vec<MemoryStore<Session>>,
    whole: bool,
    sessions: Vec<Replay>,
    index: HashMap<String, usize>,
    /// The last action of an agent by variant: a stop stands, and fires once.
    last: HashMap<(String, Option<String>), Vec<Action>>,
}

impl Replayer<'_> {
    fn step(&mut self, step: &Step) {
        let name = if self.whole { "" } else { step.session.as_str() };
        let at = self.index.get(name).copied().unwrap_or_else(|| {
            let fires = vec![Vec::new(); self.engines.len()];
            self.sessions.push(Replay { session: step.session.to_string(), fires, ..Replay::default() });
            self.index.insert(name.to_owned(), self.sessions.len() - 1);
            self.sessions.len() - 1
        });
        let replay = &mut self.sessions[at];
        match &step.body {
            Body::Turn(turn) => {
                replay.turns += 1;
                replay.calls += turn.calls.len() as u64;
            }
            Body::Usage(usage) if replay.model.is_none() => replay.model.clone_from(&usage.model),
            // A file that holds many runs of one session is still one session.
            Body::End => return,
            _ => {}
        }
        for (variant, engine) in self.engines.iter().enumerate() {
            // A memory store does not fail.
            let Ok(seen) = engine.observe(&self.stores[variant], step) else { continue };
            let decision = seen.decision;
            if decision.action == Action::Continue {
                continue;
            }
            let agent = (step.session.to_string(), step.agent.as_deref().map(str::to_owned));
            let last = self.last.entry(agent).or_insert_with(|| vec![Action::Continue; self.engines.len()]);
            let before = std::mem::replace(&mut last[variant], decision.action);
            if before != Action::Stop || decision.action != Action::Stop {
                replay.fires[variant].push(Fire::new(&decision, replay.turns.saturating_sub(1)));
            }
        }
    }
}

impl Fire {
    fn new(decision: &Decision, turn: u64) -> Self {
        let finding = deciding(decision);
        Self {
            turn,
            step: decision.step,
            action: decision.action,
            level: decision.level,
            detector: finding.map_or_else(String::new, |f| f.detector.clone()),
            summary: finding.map_or_else(String::new, |f| f.summary.clone()),
            pattern: finding.map_or(0, pattern),
        }
    }

    /// Whether it takes a decision out of the agent's hands.
    pub(crate) fn hard(&self) -> bool {
        self.action >= Action::Ask
    }
}

/// The finding that a decision rests on: the one that its message quotes, else the first.
fn deciding(decision: &Decision) -> Option<&Finding> {
    let message = decision.message.as_deref().unwrap_or_default();
    let quoted = |f: &&Finding| !f.summary.is_empty() && message.contains(&f.summary);
    decision.findings.iter().find(quoted).or_else(|| decision.findings.first())
}

fn pattern(finding: &Finding) -> u64 {
    finding.evidence.pattern
}
