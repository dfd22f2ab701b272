//! Puts the replayed sessions together in a report.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use deloop_policy::{Price, Prices};
use deloop_types::Millis;

use crate::redaction::{Redaction, harmless};
use crate::replay::{
    Loop, NO_MODEL, Replay, ReplayedFile, ReplayedFiles, RequestUsage, Spend, count_once, prices_of, spend_of,
};
use crate::scan::args::Level;
use crate::scan::report::{ActionRow, LoopRow, ScanReport, ScanTotals, SessionPlace, SessionRow};
use crate::sessions::{Problem, SessionInput, home_relative};

/// The longest description of a loop, in characters.
const PATTERN: usize = 160;
/// How many problems a report lists.
const PROBLEMS: usize = 1000;

/// What a report depends on beside what was read.
pub(crate) struct ReportContext<'a> {
    pub(crate) inputs: &'a [SessionInput],
    pub(crate) prices: &'a Prices,
    pub(crate) redaction: &'a Redaction,
    pub(crate) cutoff: Option<Millis>,
    /// Files that were not opened because they are older than `cutoff`.
    pub(crate) older: u64,
    pub(crate) min_level: Option<Level>,
    pub(crate) profile: String,
    pub(crate) examples: bool,
}

impl ScanReport {
    /// Puts together what the first of the engines found. Call [`settle`] first.
    pub(crate) fn new(read: &ReplayedFiles, skipped: u64, context: &ReportContext<'_>) -> Self {
        let mut totals = ScanTotals { unread_files: read.unread, ..ScanTotals::default() };
        let (mut loops, mut sessions) = (Vec::new(), Vec::new());
        let mut unpriced: BTreeMap<String, u64> = BTreeMap::new();
        let (mut counted, mut looping) = (SessionCount::default(), SessionCount::default());
        for (number, file) in read.files.iter().enumerate().filter(|(_, f)| !f.sessions.is_empty()) {
            totals.files += 1;
            totals.bytes += file.bytes;
            for part in SessionPart::of(number, file, context) {
                let (row, found) = part.rows(0);
                counted.add(&part);
                if !found.is_empty() {
                    looping.add(&part);
                }
                part.add_unpriced(&mut unpriced);
                totals.turns += row.turns;
                totals.repeated_turns += row.repeated_turns;
                totals.minutes += row.minutes;
                totals.spend.merge(&row.spend);
                totals.loop_spend.merge(&row.loop_spend);
                loops.extend(found);
                sessions.push(row);
            }
        }
        totals.loops = loops.len() as u64;
        let mut unpriced: Vec<(String, u64)> = unpriced.into_iter().collect();
        unpriced.sort_by_key(|(_, tokens)| std::cmp::Reverse(*tokens));
        totals.unpriced_models = unpriced.into_iter().map(|(model, _)| model).collect();
        totals.sessions = counted.number();
        totals.sessions_with_loops = looping.number();
        loops.sort_by(LoopRow::costlier);
        sessions.sort_by(|a, b| b.at.cmp(&a.at).then_with(|| a.file.cmp(&b.file)));
        Self {
            version: 2,
            profile: context.profile.clone(),
            since: context.cutoff.map(|t| t.to_string()),
            older: context.older + skipped,
            examples: context.examples,
            prices: context.prices.date().to_owned(),
            totals,
            loops,
            sessions,
            problems: presentable(&read.problems, context.redaction),
        }
    }
}

/// Returns problems as they are printed: masked, sorted, each once, and not too many.
fn presentable(problems: &[Problem], redaction: &Redaction) -> Vec<Problem> {
    let shown = |p: &Problem| Problem {
        path: harmless(&p.path),
        problem: redaction.line(&p.problem, 300),
        lost: p.lost,
    };
    let mut problems: Vec<Problem> = problems.iter().map(shown).collect();
    problems.sort();
    problems.dedup();
    problems.truncate(PROBLEMS);
    problems
}

/// Counts sessions. Files that hold only the work of subagents belong to the session of the same name.
#[derive(Default)]
struct SessionCount {
    whole: u64,
    names: BTreeSet<(&'static str, String)>,
    parts: BTreeSet<(&'static str, String)>,
}

impl SessionCount {
    fn add(&mut self, part: &SessionPart<'_>) {
        let name = (part.file.format, part.replay.session.clone());
        if part.replay.has_main_agent() {
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

/// Drops sessions that ended before the cutoff, and leaves each request and each loop once, whoever repeats them: resumed
/// and forked sessions carry along what came before. Returns how many sessions were dropped.
pub(crate) fn settle(files: &mut [ReplayedFile], cutoff: Option<Millis>) -> u64 {
    let old = |s: &Replay| cutoff.is_some_and(|cutoff| s.last.is_some_and(|last| last < cutoff));
    let mut dropped = 0;
    for file in files.iter_mut() {
        dropped += file.sessions.iter().filter(|s| old(s)).count() as u64;
        file.sessions.retain(|s| !old(s));
    }
    let mut order: Vec<(usize, &mut Replay)> = Vec::new();
    for file in files.iter_mut() {
        order.extend(file.sessions.iter_mut().map(|session| (file.input, session)));
    }
    // The files come in the order of their paths, and the sort keeps it among equals.
    order.sort_by_key(|(_, s)| s.first.map_or(i64::MAX, |t| t.0));
    // Two sessions of one file are no copies of each other: of each loop, one file has it.
    let mut best: HashMap<(usize, i64, String, u64), (usize, usize)> = HashMap::new();
    for (file, session) in &order {
        let verdicts = session.verdicts.iter().enumerate();
        for (engine, one) in verdicts.flat_map(|(n, v)| v.loops.iter().map(move |one| (n, one))) {
            let Some(key) = same_loop(engine, one) else { continue };
            let kept = best.entry(key).or_insert((one.repeated.len(), *file));
            if one.repeated.len() > kept.0 {
                *kept = (one.repeated.len(), *file);
            }
        }
    }
    for (file, session) in &mut order {
        for (engine, verdict) in session.verdicts.iter_mut().enumerate() {
            let kept = |one: &Loop| same_loop(engine, one).and_then(|key| best.get(&key));
            verdict.loops.retain(|one| kept(one).is_none_or(|kept| kept.1 == *file));
        }
    }
    let (mut usage, mut repeated): (Vec<&mut Vec<RequestUsage>>, Vec<Vec<u32>>) = (Vec::new(), Vec::new());
    for (_, session) in order {
        let loops = session.verdicts.iter().flat_map(|v| &v.loops);
        repeated.push(union(loops.map(|l| l.repeated.as_slice())));
        usage.push(&mut session.usage);
    }
    count_once(&mut usage, &|list, used| repeated[list].binary_search(&used.turn).is_ok());
    dropped
}

/// Loops that begin in the same millisecond with the same pattern are one.
fn same_loop(engine: usize, one: &Loop) -> Option<(usize, i64, String, u64)> {
    Some((engine, one.started?.0, one.finding.detector.clone(), one.finding.pattern.0))
}

/// Returns every number that is in one of the lists, once and in order.
fn union<'a>(lists: impl Iterator<Item = &'a [u32]>) -> Vec<u32> {
    let mut all: Vec<u32> = lists.flatten().copied().collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// One session of one file, on its way into a report.
pub(crate) struct SessionPart<'a> {
    place: SessionPlace,
    file: &'a ReplayedFile,
    replay: &'a Replay,
    prices: Vec<Option<Price>>,
    context: &'a ReportContext<'a>,
}

impl<'a> SessionPart<'a> {
    /// Returns the sessions of the file with this number.
    pub(crate) fn of(
        number: usize,
        file: &'a ReplayedFile,
        context: &'a ReportContext<'a>,
    ) -> impl Iterator<Item = SessionPart<'a>> {
        let prices = prices_of(&file.models, context.prices);
        file.sessions.iter().enumerate().map(move |(session, replay)| SessionPart {
            place: SessionPlace { file: number, session },
            file,
            replay,
            prices: prices.clone(),
            context,
        })
    }

    /// Returns the rows of the session and of the loops that one of the engines found.
    pub(crate) fn rows(&self, engine: usize) -> (SessionRow, Vec<LoopRow>) {
        let Some(verdict) = self.replay.verdicts.get(engine) else { return (self.session_row(), Vec::new()) };
        let wanted = |one: &Loop| {
            let (action, rung) = one.strongest();
            self.context.min_level.is_none_or(|level| level.reached(action, rung))
        };
        let loops: Vec<(usize, &Loop)> =
            verdict.loops.iter().enumerate().filter(|(_, one)| wanted(one)).collect();
        let mut row = self.session_row();
        let repeated = union(loops.iter().map(|(_, l)| l.repeated.as_slice()));
        row.loops = loops.len() as u64;
        row.repeated_turns = repeated.len() as u64;
        // Loops of one agent have no turn in common, and a turn has one agent.
        row.minutes = minutes(loops.iter().map(|(_, l)| l.millis).sum());
        row.loop_spend = self.spend(|turn| repeated.binary_search(&turn).is_ok());
        row.actions = verdict.actions.iter().map(ActionRow::new).collect();
        let rows = loops.into_iter().map(|(index, one)| self.loop_row(index, one, &row)).collect();
        (row, rows)
    }

    fn session_row(&self) -> SessionRow {
        let replay = self.replay;
        let line = |text: &str| self.context.redaction.line(text, 200);
        SessionRow {
            session: line(&replay.session),
            file: harmless(&home_relative(self.context.inputs[self.file.input].path())),
            format: self.file.format.to_owned(),
            model: self.model(|_| true).map(line),
            project: self.file.project.as_deref().map(line),
            started: replay.first.map(|t| t.to_string()),
            ended: replay.last.map(|t| t.to_string()),
            steps: replay.steps,
            turns: replay.turns,
            calls: replay.calls,
            loops: 0,
            repeated_turns: 0,
            minutes: 0.0,
            spend: self.spend(|_| true),
            loop_spend: Spend::default(),
            actions: Vec::new(),
            place: self.place,
            at: replay.last,
        }
    }

    fn loop_row(&self, index: usize, one: &Loop, row: &SessionRow) -> LoopRow {
        let (action, level) = one.strongest();
        let repeats = |turn: u32| one.repeated.binary_search(&turn).is_ok();
        let first = one.actions.first().map_or(u32::MAX, |a| a.turn);
        let line = |text: &str| self.context.redaction.line(text, 200);
        let agent = self.replay.agents.get(usize::from(one.agent)).and_then(Option::as_deref);
        LoopRow {
            session: row.session.clone(),
            file: row.file.clone(),
            format: row.format.clone(),
            agent: agent.map(line),
            model: self.model(repeats).map(line).or_else(|| row.model.clone()),
            project: row.project.clone(),
            started: one.started.map(|t| t.to_string()),
            ended: one.ended.map(|t| t.to_string()),
            pattern: pattern(one, self.context.redaction),
            detector: one.finding.detector.clone(),
            also: one.also.clone(),
            tool: one.finding.tool.as_deref().map(line),
            count: one.finding.count,
            period: one.finding.period,
            step: one.first_step,
            last_step: one.last_step,
            first_turn: one.first_turn,
            last_turn: one.last_turn,
            of_turns: row.turns,
            repeated: one.repeated.clone(),
            line: one.line,
            action,
            level,
            actions: one.actions.iter().map(ActionRow::new).collect(),
            minutes: minutes(one.millis),
            spend: self.spend(repeats),
            spend_after: self.spend(|turn| repeats(turn) && turn > first),
            place: (self.place, index),
        }
    }

    /// Adds up what was used in these turns.
    fn spend(&self, wanted: impl Fn(u32) -> bool) -> Spend {
        spend_of(self.replay.usage.iter().filter(|u| wanted(u.turn)), &self.prices)
    }

    /// Adds the tokens of the models that have no price.
    fn add_unpriced(&self, models: &mut BTreeMap<String, u64>) {
        for used in self.replay.usage.iter().filter(|used| used.usd.is_nan() && used.tokens() > 0) {
            let model = usize::from(used.model);
            if let (Some(name), Some(None)) = (self.file.models.get(model), self.prices.get(model)) {
                *models.entry(self.context.redaction.line(name, 200)).or_default() += used.tokens();
            }
        }
    }

    /// Returns the model with the most tokens in these turns.
    fn model(&self, wanted: impl Fn(u32) -> bool) -> Option<&str> {
        let mut tokens: BTreeMap<u16, u64> = BTreeMap::new();
        for used in self.replay.usage.iter().filter(|u| u.model != NO_MODEL && wanted(u.turn)) {
            *tokens.entry(used.model).or_default() += used.tokens() + 1;
        }
        let most = tokens.into_iter().max_by_key(|(model, tokens)| (*tokens, u16::MAX - model))?;
        self.file.models.get(usize::from(most.0)).map(String::as_str)
    }
}

/// Returns what repeats and how often: "`cargo test` failed the same way 14 times".
fn pattern(one: &Loop, redaction: &Redaction) -> String {
    let finding = &one.finding;
    if redaction.redact {
        let tool = finding.tool.as_deref().unwrap_or_default();
        let what = if tool.is_empty() { "turns" } else { tool };
        return redaction.line(&format!("{what}: {} {} times", finding.detector, finding.count), PATTERN);
    }
    redaction.line(&finding.summary, PATTERN)
}

#[expect(clippy::cast_precision_loss, reason = "minutes of a session")]
fn minutes(millis: u64) -> f64 {
    millis as f64 / 60_000.0
}
