//! What a scan found, as `--json` prints it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use deloop_types::{Action, Millis};
use schemars::JsonSchema;
use serde::Serialize;

use crate::scan::args::Level;
use crate::scan::episode::Loop;
use crate::scan::find::Input;
use crate::scan::pool::{Gathered, Pool};
use crate::scan::prices::Prices;
use crate::scan::problem::{Problem, shown};
use crate::scan::spend::{Spend, once_each};
use crate::scan::veil::{Veil, harmless};
use crate::scan::watch::{Followed, Used};
use crate::scan::words::words;

/// Everything that a scan found.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(title = "Scan")]
pub(crate) struct Report {
    /// The version of this shape; a new one only when a field changes its meaning or goes.
    pub(crate) version: u32,
    /// The profile that the sessions were judged by.
    pub(crate) profile: String,
    /// Sessions that ended before this were left out.
    pub(crate) since: Option<String>,
    /// These are the sessions that come with deloop, because none were found.
    pub(crate) examples: bool,
    /// The day on which the list of prices was made.
    pub(crate) prices: String,
    /// Everything together.
    pub(crate) totals: Totals,
    /// The loops, the costliest first.
    pub(crate) loops: Vec<LoopRow>,
    /// Every session that was read, the latest first.
    pub(crate) sessions: Vec<SessionRow>,
    /// Files that could not be read, or not as a whole.
    pub(crate) problems: Vec<Problem>,
}

/// Everything together.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(crate) struct Totals {
    /// Files that were read.
    pub(crate) files: u64,
    /// Plain bytes that were read.
    pub(crate) bytes: u64,
    /// Sessions; a session's subagents may have files of their own.
    pub(crate) sessions: u64,
    /// Sessions with at least one loop.
    pub(crate) sessions_with_loops: u64,
    /// Loops, those that `--top` leaves out included.
    pub(crate) loops: u64,
    /// Turns of all sessions.
    pub(crate) turns: u64,
    /// Turns inside loops.
    pub(crate) loop_turns: u64,
    /// What all sessions used.
    pub(crate) spend: Spend,
    /// What was used inside loops.
    pub(crate) loop_spend: Spend,
}

/// One loop.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct LoopRow {
    /// The session's id.
    pub(crate) session: String,
    /// The file it is in.
    pub(crate) file: String,
    /// The format of the file, which is named after the agent that wrote it.
    pub(crate) format: String,
    /// The worker or subagent, if it is not the session's own agent.
    pub(crate) agent: Option<String>,
    /// The model that was used most inside the loop, or else in the session.
    pub(crate) model: Option<String>,
    /// The folder the session worked in.
    pub(crate) project: Option<String>,
    /// When the loop began.
    pub(crate) started: Option<String>,
    /// When its last turn was.
    pub(crate) ended: Option<String>,
    /// What repeats and how often, in words.
    pub(crate) pattern: String,
    /// The detector that says most about it.
    pub(crate) detector: String,
    /// Other detectors that saw it.
    pub(crate) also: Vec<String>,
    /// The tool concerned, if it is one.
    pub(crate) tool: Option<String>,
    /// How often, the first time included.
    pub(crate) count: u64,
    /// How many calls or turns make up one lap.
    pub(crate) period: u32,
    /// The step at which it begins, from 0.
    pub(crate) step: u32,
    /// Its last step.
    pub(crate) last_step: u32,
    /// The turn at which it begins, from 1.
    pub(crate) turn: u32,
    /// The line of the file at which it begins; 0 when the file has no lines.
    pub(crate) line: u32,
    /// How many turns it took.
    pub(crate) turns: u32,
    /// How many turns its agent took in all.
    pub(crate) of_turns: u32,
    /// The strongest thing that would have been done.
    pub(crate) action: Action,
    /// The rung of the ladder for it.
    pub(crate) level: u32,
    /// What would have been done, step by step; only changes.
    pub(crate) decisions: Vec<DecisionRow>,
    /// What was used inside the loop.
    pub(crate) spend: Spend,
    /// What of it was used after deloop would first have stepped in.
    pub(crate) spend_after: Spend,
    #[serde(skip)]
    #[schemars(skip)]
    pub(crate) input: usize,
}

/// A decision that would have been made.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct DecisionRow {
    /// At which step.
    pub(crate) step: u32,
    /// At which turn, from 1.
    pub(crate) turn: u32,
    /// What.
    pub(crate) action: Action,
    /// On which rung of the ladder.
    pub(crate) level: u32,
}

/// One session.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct SessionRow {
    /// Its id.
    pub(crate) session: String,
    /// The file it is in.
    pub(crate) file: String,
    /// The format of the file, which is named after the agent that wrote it.
    pub(crate) format: String,
    /// The model it used most.
    pub(crate) model: Option<String>,
    /// The folder it worked in.
    pub(crate) project: Option<String>,
    /// Its first step's time.
    pub(crate) started: Option<String>,
    /// Its last step's time.
    pub(crate) ended: Option<String>,
    /// Its steps.
    pub(crate) steps: u64,
    /// Its turns.
    pub(crate) turns: u64,
    /// Its tool calls.
    pub(crate) calls: u64,
    /// Its loops.
    pub(crate) loops: u64,
    /// What it used.
    pub(crate) spend: Spend,
    #[serde(skip)]
    #[schemars(skip)]
    pub(crate) input: usize,
    #[serde(skip)]
    #[schemars(skip)]
    pub(crate) at: Option<Millis>,
}

/// What a report depends on beside what was read.
pub(crate) struct Frame<'a> {
    pub(crate) inputs: &'a [Input],
    pub(crate) prices: &'a Prices,
    pub(crate) veil: &'a Veil,
    pub(crate) cutoff: Option<Millis>,
    pub(crate) min_level: Option<Level>,
    pub(crate) profile: String,
    pub(crate) examples: bool,
}

/// One session of one file.
pub(crate) struct Part<'a> {
    file: &'a Gathered,
    session: &'a Followed,
}

/// Every session of what was read, each request and each loop counted once.
pub(crate) fn parts<'a>(files: &'a mut [Gathered], frame: &Frame<'_>) -> Vec<Part<'a>> {
    settle(files, frame);
    files.iter().flat_map(|file| file.sessions.iter().map(move |session| Part { file, session })).collect()
}

/// Counts sessions. Files that hold only the work of subagents belong to the session of the same name.
#[derive(Default)]
struct Counted {
    whole: u64,
    names: BTreeSet<(&'static str, String)>,
    parts: BTreeSet<(&'static str, String)>,
}

impl Counted {
    fn add(&mut self, part: &Part<'_>) {
        let name = (part.file.format, part.session.session.clone());
        if part.session.whole {
            self.whole += 1;
            self.names.insert(name);
        } else {
            self.parts.insert(name);
        }
    }

    fn number(&self) -> u64 {
        self.whole + self.parts.difference(&self.names).count() as u64
    }
}

/// Leaves each request and each loop of the files once, whoever repeats them: resumed and forked sessions carry what
/// came before along.
fn settle(files: &mut [Gathered], frame: &Frame<'_>) {
    for file in files.iter_mut() {
        let old = |s: &Followed| frame.cutoff.is_some_and(|cutoff| s.last.is_some_and(|last| last < cutoff));
        file.sessions.retain(|s| !old(s));
    }
    let mut order: Vec<(usize, &mut Followed)> = Vec::new();
    for file in files.iter_mut() {
        order.extend(file.sessions.iter_mut().map(|session| (file.input, session)));
    }
    // The files come in the order of their paths, and the sort keeps it among equals.
    order.sort_by_key(|(_, s)| s.first.map_or(i64::MAX, |t| t.0));
    // Two sessions of one file are no copies of each other: of each loop, one file has it.
    let mut best: HashMap<(usize, i64, String, u64), (u32, usize)> = HashMap::new();
    for (file, session) in &order {
        let engines = session.loops.iter().enumerate();
        for (engine, one) in engines.flat_map(|(engine, list)| list.iter().map(move |one| (engine, one))) {
            let Some(key) = same_loop(engine, one) else { continue };
            let kept = best.entry(key).or_insert((one.turns, *file));
            if one.turns > kept.0 {
                *kept = (one.turns, *file);
            }
        }
    }
    for (file, session) in &mut order {
        for (engine, list) in session.loops.iter_mut().enumerate() {
            let kept = |one: &Loop| same_loop(engine, one).and_then(|key| best.get(&key));
            list.retain(|one| kept(one).is_none_or(|kept| kept.1 == *file));
        }
    }
    let mut usage: Vec<&mut Vec<Used>> = order.into_iter().map(|(_, s)| &mut s.usage).collect();
    once_each(&mut usage);
}

/// Loops that begin in the same millisecond with the same pattern are one.
fn same_loop(engine: usize, one: &Loop) -> Option<(usize, i64, String, u64)> {
    Some((engine, one.started?.0, one.finding.detector.clone(), one.finding.evidence.pattern))
}

impl Report {
    /// Puts together what the first of the engines found.
    pub(crate) fn new(mut pool: Pool, frame: &Frame<'_>) -> Self {
        let parts = parts(&mut pool.files, frame);
        let mut totals = Totals::default();
        let mut loops = Vec::new();
        let mut sessions = Vec::new();
        let mut counted = Counted::default();
        let mut looping = Counted::default();
        for part in &parts {
            let mut row = part.row(frame);
            let found = part.loops(0, &row, frame);
            row.loops = found.len() as u64;
            counted.add(part);
            if !found.is_empty() {
                looping.add(part);
            }
            totals.turns += row.turns;
            totals.spend.merge(&row.spend);
            for one in &found {
                totals.loop_turns += u64::from(one.turns);
                totals.loop_spend.merge(&one.spend);
            }
            loops.extend(found);
            sessions.push(row);
        }
        totals.files = pool.files.len() as u64;
        totals.bytes = pool.files.iter().map(|f| f.bytes).sum();
        totals.loops = loops.len() as u64;
        totals.sessions = counted.number();
        totals.sessions_with_loops = looping.number();
        loops.sort_by(LoopRow::costlier);
        sessions.sort_by(|a, b| b.at.cmp(&a.at).then_with(|| a.file.cmp(&b.file)));
        let mut problems = pool.problems;
        for problem in &mut problems {
            problem.path = harmless(&problem.path);
            problem.problem = frame.veil.line(&problem.problem, 300);
        }
        problems.sort();
        problems.dedup();
        Self {
            version: 1,
            profile: frame.profile.clone(),
            since: frame.cutoff.map(|t| t.to_string()),
            examples: frame.examples,
            prices: frame.prices.date.clone(),
            totals,
            loops,
            sessions,
            problems,
        }
    }
}

impl LoopRow {
    /// The costlier first: by dollars, then by turns and tokens, then by where it is.
    fn costlier(a: &Self, b: &Self) -> std::cmp::Ordering {
        let place = |l: &Self| (l.file.clone(), l.session.clone(), l.step);
        b.spend
            .usd
            .total_cmp(&a.spend.usd)
            .then_with(|| (b.turns, b.spend.tokens()).cmp(&(a.turns, a.spend.tokens())))
            .then_with(|| place(a).cmp(&place(b)))
    }
}

impl Part<'_> {
    /// The loops that one of the engines found.
    pub(crate) fn loops(&self, engine: usize, row: &SessionRow, frame: &Frame<'_>) -> Vec<LoopRow> {
        let wanted = |one: &&Loop| {
            let (action, rung) = one.strongest();
            frame.min_level.is_none_or(|level| level.reached(action, rung))
        };
        let all = self.session.loops.get(engine).into_iter().flatten();
        all.filter(wanted).map(|one| self.loop_row(one, row, frame)).collect()
    }

    pub(crate) fn row(&self, frame: &Frame<'_>) -> SessionRow {
        let session = self.session;
        let line = |text: &str| frame.veil.line(text, 200);
        SessionRow {
            session: line(&session.session),
            file: harmless(&shown(frame.inputs[self.file.input].path())),
            format: self.file.format.to_owned(),
            model: self.model(|_| true).map(line),
            project: self.file.project.as_deref().map(line),
            started: session.first.map(|t| t.to_string()),
            ended: session.last.map(|t| t.to_string()),
            steps: session.steps,
            turns: session.turns,
            calls: session.calls,
            loops: 0,
            spend: self.spend(frame.prices, |_| true),
            input: self.file.input,
            at: session.last,
        }
    }

    fn loop_row(&self, one: &Loop, row: &SessionRow, frame: &Frame<'_>) -> LoopRow {
        let (action, level) = one.strongest();
        let inside = |u: &Used| u.agent == one.agent && (one.since..=one.until).contains(&u.step);
        let first = one.decisions.first().map_or(u32::MAX, |d| d.step);
        let line = |text: &str| frame.veil.line(text, 200);
        LoopRow {
            session: row.session.clone(),
            file: row.file.clone(),
            format: row.format.clone(),
            agent: one.agent_name.as_deref().map(line),
            model: self.model(inside).map(line).or_else(|| row.model.clone()),
            project: row.project.clone(),
            started: one.started.map(|t| t.to_string()),
            ended: one.ended.map(|t| t.to_string()),
            pattern: words(one, frame.veil),
            detector: one.finding.detector.clone(),
            also: one.also.clone(),
            tool: one.finding.tool.as_deref().map(line),
            count: one.finding.count,
            period: one.finding.period,
            step: one.since,
            last_step: one.until,
            turn: one.turn,
            line: one.line,
            turns: one.turns,
            of_turns: one.of_turns,
            action,
            level,
            decisions: one
                .decisions
                .iter()
                .map(|d| DecisionRow { step: d.step, turn: d.turn, action: d.action, level: d.level })
                .collect(),
            spend: self.spend(frame.prices, inside),
            spend_after: self.spend(frame.prices, |u| inside(u) && u.step > first),
            input: self.file.input,
        }
    }

    fn spend(&self, prices: &Prices, wanted: impl Fn(&Used) -> bool) -> Spend {
        let mut spend = Spend::default();
        for used in self.session.usage.iter().filter(|u| wanted(u)) {
            spend.add(used, &self.file.models, prices);
        }
        spend
    }

    /// The model with the most tokens.
    fn model(&self, wanted: impl Fn(&Used) -> bool) -> Option<&str> {
        let mut tokens: BTreeMap<u16, u64> = BTreeMap::new();
        for used in self.session.usage.iter().filter(|u| wanted(u)) {
            *tokens.entry(used.model).or_default() += used.tokens() + 1;
        }
        let most =
            tokens.into_iter().filter(|(m, _)| *m != u16::MAX).max_by_key(|(m, n)| (*n, u16::MAX - m))?;
        self.file.models.get(usize::from(most.0)).map(String::as_str)
    }
}
