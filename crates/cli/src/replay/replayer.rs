//! Replays the steps of one file as they are read, and keeps only what is shown of them.

use std::collections::HashMap;

use deloop_engine::{Engine, Observed, Session};
use deloop_formats::Item;
use deloop_store::{Limits, MemoryStore};
use deloop_types::{Action, Body, Decision, Millis, Origin, SessionId, Step};

use super::loops::{Episodes, FindingStep};
use super::turns::{SessionTurns, TurnMark};
use super::usage::{NO_MODEL, RequestUsage, push_usage, spread};
use super::{Intervention, Replay, Verdict, small};

/// How many agents of a session are told apart; the steps of later ones are counted, but not judged.
const AGENTS: usize = 4096;
/// How many actions of a session are kept, for each engine.
const ACTIONS: usize = 10_000;

/// What to replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplayScope {
    /// Each session, with its loops.
    Loops,
    /// Each session, without putting loops together.
    Actions,
    /// All of the file as one session, whatever sessions its steps name, without putting loops together.
    WholeFile,
}

/// Replays every session of one file with each of the engines.
pub(crate) struct Replayer<'a> {
    engines: &'a [Engine],
    stores: Vec<MemoryStore<Session>>,
    scope: ReplayScope,
    sessions: Vec<SessionReplay>,
    /// Where to find a session and its agents.
    slots: HashMap<SessionId, SessionSlot>,
    /// The session of the last step: mostly the next one's too.
    latest: Option<(SessionId, SessionSlot)>,
    models: HashMap<String, u16>,
    unjudged: u64,
}

#[derive(Default)]
struct SessionSlot {
    /// Which of the replays.
    replay: usize,
    /// Steps before the session last ended.
    base: u64,
    /// Steps since then.
    steps: u64,
    agents: HashMap<String, u16>,
    main: Option<u16>,
}

#[derive(Default)]
struct SessionReplay {
    id: String,
    steps: u64,
    calls: u64,
    first: Option<Millis>,
    last: Option<Millis>,
    turns: SessionTurns,
    agents: Vec<AgentReplay>,
    usage: Vec<RequestUsage>,
    model: Option<String>,
    /// By engine.
    actions: Vec<Vec<Intervention>>,
    /// Actions beyond [`ACTIONS`].
    unlisted: u64,
}

struct AgentReplay {
    name: Option<String>,
    turns: u32,
    /// The number of its latest turn.
    turn: u32,
    last: Option<Millis>,
    /// By engine.
    episodes: Vec<Episodes>,
    /// The latest action, by engine.
    acted: Vec<Action>,
}

impl<'a> Replayer<'a> {
    pub(crate) fn new(engines: &'a [Engine], scope: ReplayScope) -> Self {
        // A session of a file is judged as a whole, however long it rested in between.
        let limits = Limits { idle: u64::MAX, ..Limits::default() };
        let stores = engines.iter().map(|_| MemoryStore::new(limits)).collect();
        Self {
            engines,
            stores,
            scope,
            sessions: Vec::new(),
            slots: HashMap::new(),
            latest: None,
            models: HashMap::new(),
            unjudged: 0,
        }
    }

    /// Enters one step, read from this line.
    pub(crate) fn step(&mut self, item: &Item, line: u64) {
        let step = &item.step;
        let (id, mut slot) = self.slot(&step.session);
        let session = &mut self.sessions[slot.replay];
        let at = small(session.steps);
        session.steps += 1;
        slot.steps += 1;
        let known = slot.agent(step.agent.as_deref(), session, self.engines.len());
        session.count(step, known, at, small(line));
        if let (Body::Usage(usage), Some(agent)) = (&step.body, known) {
            let models = small(self.models.len() as u64);
            let model = usage.model.as_ref().map_or(NO_MODEL, |name| match self.models.get(name) {
                Some(model) => *model,
                None => {
                    let number = u16::try_from(models).unwrap_or(NO_MODEL);
                    if number != NO_MODEL {
                        self.models.insert(name.clone(), number);
                    }
                    number
                }
            });
            let turn = session.agents[usize::from(agent)].turn;
            push_usage(&mut session.usage, RequestUsage::new(usage, turn, agent, model, item.key));
        }
        match known {
            Some(agent) => self.judge(step, &slot, at, agent),
            None => self.unjudged += 1,
        }
        if step.body == Body::End {
            slot.base += slot.steps;
            slot.steps = 0;
        }
        self.latest = Some((id, slot));
    }

    /// Takes out the slot of a session; the caller puts it back as the latest.
    fn slot(&mut self, session: &SessionId) -> (SessionId, SessionSlot) {
        if let Some((id, slot)) = self.latest.take() {
            if id == *session {
                return (id, slot);
            }
            self.slots.insert(id, slot);
        }
        if let Some(known) = self.slots.remove_entry(session) {
            return known;
        }
        if self.scope != ReplayScope::WholeFile || self.sessions.is_empty() {
            let actions = vec![Vec::new(); self.engines.len()];
            self.sessions.push(SessionReplay {
                id: session.to_string(),
                actions,
                ..SessionReplay::default()
            });
        }
        (session.clone(), SessionSlot { replay: self.sessions.len() - 1, ..SessionSlot::default() })
    }

    fn judge(&mut self, step: &Step, slot: &SessionSlot, at: u32, agent: u16) {
        for (number, engine) in self.engines.iter().enumerate() {
            // A memory store does not fail.
            let Ok(observed) = engine.observe(&self.stores[number], step) else { continue };
            let session = &mut self.sessions[slot.replay];
            let loops = self.scope == ReplayScope::Loops;
            if observed.decision.action > Action::Continue || !observed.decision.findings.is_empty() {
                session.decided(number, &observed, slot.base, at, agent, loops);
            }
        }
    }

    /// Returns the sessions in the order of their first steps, the models that their usage refers to, and what people should know.
    pub(crate) fn finish(self) -> (Vec<Replay>, Vec<String>, Vec<String>) {
        let unlisted: u64 = self.sessions.iter().map(|s| s.unlisted).sum();
        let all: Vec<Replay> = self.sessions.into_iter().map(SessionReplay::finish).collect();
        let mut models = vec![String::new(); self.models.len()];
        for (name, number) in self.models {
            models[usize::from(number)] = name;
        }
        let mut notes = Vec::new();
        if self.unjudged > 0 {
            notes.push(format!(
                "has more than {AGENTS} agents; {} steps of the rest were skipped",
                self.unjudged
            ));
        }
        if unlisted > 0 {
            notes.push(format!("only the first {ACTIONS} actions are listed; {unlisted} more are not"));
        }
        (all, models, notes)
    }
}

impl SessionSlot {
    /// Returns the number of an agent; `None` if there are too many.
    fn agent(&mut self, name: Option<&str>, session: &mut SessionReplay, engines: usize) -> Option<u16> {
        let known = name.map_or(self.main, |name| self.agents.get(name).copied());
        if known.is_some() || session.agents.len() >= AGENTS {
            return known;
        }
        let number = u16::try_from(session.agents.len()).ok()?;
        session.agents.push(AgentReplay {
            name: name.map(str::to_owned),
            turns: 0,
            turn: 0,
            last: None,
            episodes: std::iter::repeat_with(Episodes::default).take(engines).collect(),
            acted: vec![Action::Continue; engines],
        });
        match name {
            Some(name) => {
                self.agents.insert(name.to_owned(), number);
            }
            None => self.main = Some(number),
        }
        Some(number)
    }
}

impl SessionReplay {
    /// Counts a step: its time, its turn and its calls.
    fn count(&mut self, step: &Step, known: Option<u16>, at: u32, line: u32) {
        if let Some(ts) = step.ts {
            self.first = Some(self.first.map_or(ts, |first| first.min(ts)));
            self.last = Some(self.last.map_or(ts, |last| last.max(ts)));
        }
        if let Body::Usage(usage) = &step.body
            && self.model.is_none()
        {
            self.model.clone_from(&usage.model);
        }
        let agent = known.map(|number| &mut self.agents[usize::from(number)]);
        if let Body::Turn(turn) = &step.body {
            self.calls += turn.calls.len() as u64;
            let calls = u16::try_from(turn.calls.len()).unwrap_or(u16::MAX);
            let number = known.unwrap_or(u16::MAX);
            let mark = TurnMark { step: at, line, agent: number, calls, ts: step.ts, millis: 0 };
            let number = self.turns.push(mark);
            if let Some(agent) = agent {
                agent.turns += 1;
                agent.turn = number;
                agent.took(step.ts, &mut self.turns);
            }
        } else if let Some(agent) = agent {
            if let Body::User(user) = &step.body {
                agent.last = step.ts.or(agent.last);
                if user.origin == Origin::Human {
                    agent.episodes.iter_mut().for_each(Episodes::user_message);
                }
            } else {
                agent.took(step.ts, &mut self.turns);
            }
        }
    }

    /// Enters a decision that is more than `continue`, or that has findings.
    fn decided(&mut self, engine: usize, observed: &Observed, base: u64, at: u32, number: u16, loops: bool) {
        let decision = &observed.decision;
        let agent = &mut self.agents[usize::from(number)];
        let mut acted = decision.action > Action::Continue;
        if acted {
            let before = std::mem::replace(&mut agent.acted[engine], decision.action);
            acted = (before, decision.action) != (Action::Stop, Action::Stop);
        }
        match self.actions[engine].len() < ACTIONS {
            true if acted => {
                self.actions[engine].push(Intervention::new(decision, at, agent.turn, number));
            }
            listed => self.unlisted += u64::from(acted && !listed),
        }
        if loops && !decision.findings.is_empty() {
            let found = FindingStep {
                decision,
                base,
                step: at,
                agent: number,
                turn: agent.turn,
                agent_turns: agent.turns,
                acted,
            };
            agent.episodes[engine].add(&found, &self.turns);
        }
    }

    fn finish(mut self) -> Replay {
        let mut verdicts: Vec<Verdict> =
            self.actions.into_iter().map(|actions| Verdict { actions, loops: Vec::new() }).collect();
        for (number, agent) in (0_u16..).zip(&mut self.agents) {
            for (episodes, verdict) in std::mem::take(&mut agent.episodes).into_iter().zip(&mut verdicts) {
                let loops = episodes.finish(number, &self.turns, &verdict.actions, small(self.steps));
                verdict.loops.extend(loops);
            }
        }
        for verdict in &mut verdicts {
            verdict.loops.sort_by_key(|l| (l.first_step, l.agent));
        }
        let agent_turns: Vec<u32> = self.agents.iter().map(|a| a.turns).collect();
        Replay {
            session: self.id,
            first: self.first,
            last: self.last,
            steps: self.steps,
            turns: self.turns.count,
            calls: self.calls,
            usage: spread(self.usage, &self.turns, &agent_turns),
            agents: self.agents.into_iter().map(|a| a.name).collect(),
            model: self.model,
            verdicts,
        }
    }
}

impl AgentReplay {
    /// Adds the time since the agent's last step to its latest turn.
    fn took(&mut self, ts: Option<Millis>, turns: &mut SessionTurns) {
        let Some(ts) = ts else { return };
        let since = self.last.map_or(0, |last| ts.0.saturating_sub(last.0).max(0));
        if let Some(turn) = turns.get_mut(self.turn) {
            turn.millis = turn.millis.saturating_add(small(since.unsigned_abs()));
        }
        self.last = Some(self.last.map_or(ts, |last| last.max(ts)));
    }
}

impl Intervention {
    fn new(decision: &Decision, step: u32, turn: u32, agent: u16) -> Self {
        let finding = decision.main_finding();
        Self {
            step,
            turn,
            agent,
            action: decision.action,
            level: decision.level,
            detector: finding.map_or_else(String::new, |f| f.detector.clone()),
            summary: finding.map_or_else(String::new, |f| f.summary.clone()),
            pattern: finding.map_or(0, |f| f.pattern.0),
            about_loop: decision.findings.iter().any(|f| !f.is_budget()),
        }
    }
}
