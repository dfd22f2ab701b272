//! `deloop show`: one session around its loops.

use std::io::Write;
use std::path::Path;

use deloop_engine::Engine;
use deloop_types::{Action, Millis, Outcome};

use crate::config;
use crate::exit::{self, Failure};
use crate::redaction::Redaction;
use crate::replay::{
    ReplayedFiles, Selection, ShownCall, StepKind, StepView, TranscriptEntry, TranscriptSize, transcript,
};
use crate::scan::args::ShowArgs;
use crate::scan::assemble::{ReportContext, settle};
use crate::scan::numbers::{cost, count, minute, plural};
use crate::scan::report::{LoopRow, ScanReport, SessionRow};
use crate::scan::table::{Screen, and_time, place, shortened, spent};
use crate::scan::{cutoff, judge, replay_loops};
use crate::sessions::{
    FoundInputs, InputSource, ReadError, SessionInput, examples, find, nothing_read, print_problems,
};

/// A longer session is cut off.
const SIZE: TranscriptSize = TranscriptSize { steps: 200_000, room: 600 };
/// Lines of a text.
const LINES: usize = 4;

/// `deloop show`
pub(crate) fn run(args: &ShowArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let (engine, prices) = judge(&config::load(&args.judge.rules())?)?;
    let profile = engine.profile().name.clone();
    let engines = [engine];
    let redaction = Redaction::new(args.redact);
    let cutoff = cutoff(&args.source)?;
    let mut found = candidates(args, cutoff);
    found.keep_stdin()?;
    let scan = |inputs: Vec<SessionInput>| {
        let mut read = replay_loops(&inputs, &engines);
        let older = settle(&mut read.files, cutoff);
        let context = ReportContext {
            inputs: &inputs,
            prices: &prices,
            redaction: &redaction,
            cutoff,
            older: found.older,
            min_level: None,
            profile: profile.clone(),
            examples: false,
        };
        let report = ScanReport::new(&read, older, &context);
        Scanned { inputs, read, report }
    };
    // A session's file is mostly named after it: then the others need not be read.
    let (likely, others): (Vec<SessionInput>, Vec<SessionInput>) =
        found.inputs.into_iter().partition(|i| may_hold(i, &args.session));
    let mut scanned = scan(likely);
    scanned.report.problems.extend(found.problems);
    if scanned.matching(&args.session).is_empty() {
        let first = std::mem::replace(&mut scanned, scan(others));
        scanned.report.problems.extend(first.report.problems);
        scanned.read.unread += first.read.unread;
        let is_empty = first.report.sessions.is_empty() && scanned.report.sessions.is_empty();
        scanned.read.nothing_read = is_empty && scanned.read.unread > 0;
    }
    let rows = scanned.chosen(&args.session, &redaction)?;
    let mut printer =
        SessionPrinter { args, engine: &engines[0], redaction: &redaction, screen: Screen::here(), out };
    for row in rows.iter().filter(|r| r.loops > 0 || rows.len() == 1 || args.all) {
        printer.session(row, &scanned)?;
    }
    out.flush()?;
    print_problems(&scanned.report.problems);
    Ok(exit::OK)
}

fn candidates(args: &ShowArgs, cutoff: Option<Millis>) -> FoundInputs {
    let mut source = args.source.clone();
    let path = Path::new(&args.session);
    if source.paths.is_empty() && (path.is_file() || args.session == "-") {
        source.paths.push(path.to_owned());
    }
    let named = !source.paths.is_empty();
    let mut found = find(&source, cutoff);
    if !named {
        found.inputs.extend(examples());
    }
    found.inputs.sort_by(|a, b| a.path().cmp(b.path()));
    found
}

/// Returns whether an input is likely to hold a session, judging by its name.
fn may_hold(input: &SessionInput, session: &str) -> bool {
    matches!(input.source, InputSource::Bundled(..))
        || is_file(input, session)
        || input.path().to_string_lossy().contains(session)
}

fn is_file(input: &SessionInput, session: &str) -> bool {
    matches!(&input.source, InputSource::File(path) if path.as_os_str() == session)
        || (session == "-" && matches!(input.source, InputSource::Kept(_)))
}

/// What was read, and the report of it.
struct Scanned {
    inputs: Vec<SessionInput>,
    read: ReplayedFiles,
    report: ScanReport,
}

impl Scanned {
    fn input(&self, row: &SessionRow) -> &SessionInput {
        &self.inputs[self.read.files[row.place.file].input]
    }

    /// Returns the sessions of the file, or with the id, or whose id begins so. Those with loops come first.
    fn matching(&self, session: &str) -> Vec<&SessionRow> {
        let all = || self.report.sessions.iter();
        let mut rows: Vec<&SessionRow> = all().filter(|r| is_file(self.input(r), session)).collect();
        if rows.is_empty() {
            rows = all().filter(|r| r.session == session).collect();
        }
        if rows.is_empty() {
            rows = all().filter(|r| r.session.starts_with(session)).collect();
        }
        rows.sort_by_key(|r| std::cmp::Reverse(r.loops));
        rows
    }

    /// Returns the parts of the one session that is meant.
    ///
    /// # Errors
    /// When there is no such session, or more than one.
    fn chosen(&self, session: &str, redaction: &Redaction) -> Result<Vec<&SessionRow>, Failure> {
        let mut rows = self.matching(session);
        let Some(first) = rows.first().copied() else {
            print_problems(&self.report.problems);
            if self.read.nothing_read {
                return Err(nothing_read(self.read.unread));
            }
            return Err(Failure::new(format!(
                "no session `{}`; `deloop scan` lists sessions with loops, and you can name any session by its file",
                redaction.line(session, 100)
            )));
        };
        let same = |r: &&SessionRow| (&r.session, &r.format) == (&first.session, &first.format);
        if let Some(other) = rows.iter().find(|r| !same(r))
            && first.session != session
            && !is_file(self.input(first), session)
        {
            return Err(Failure::new(format!(
                "`{}` matches more than one session: {}, {}",
                redaction.line(session, 100),
                first.session,
                other.session
            )));
        }
        rows.retain(|r| same(r));
        Ok(rows)
    }
}

struct SessionPrinter<'a> {
    args: &'a ShowArgs,
    engine: &'a Engine,
    redaction: &'a Redaction,
    screen: Screen,
    out: &'a mut dyn Write,
}

impl SessionPrinter<'_> {
    fn session(&mut self, row: &SessionRow, scanned: &Scanned) -> Result<(), Failure> {
        let mut loops: Vec<&LoopRow> =
            scanned.report.loops.iter().filter(|l| l.place.0 == row.place).collect();
        loops.sort_by_key(|l| l.step);
        self.header(row)?;
        let replay = &scanned.read.files[row.place.file].sessions[row.place.session];
        let found = replay.verdicts.first().map(|v| v.loops.as_slice()).unwrap_or_default();
        let actions = row.actions.iter().map(|a| (a.step, a.turn));
        let selection = Selection::new(found.iter(), actions, self.args.all);
        let input = scanned.input(row);
        let transcript = transcript(input, &replay.session, self.engine, &selection, self.redaction, SIZE)
            .map_err(|e| match e {
                ReadError::UnknownFormat(_) => Failure::new("the session is gone"),
                ReadError::Io(error) => Failure::from(error),
            })?;
        let mut next = loops.iter().enumerate().peekable();
        for entry in &transcript.entries {
            match entry {
                TranscriptEntry::Step(step) => {
                    while let Some((number, one)) = next.next_if(|(_, l)| l.step <= step.step) {
                        self.loop_head(one, number + 1, loops.len())?;
                    }
                    self.step(step)?;
                }
                TranscriptEntry::LeftOut(left_out) => {
                    let text = format!("     … {left_out} not shown (`--all` shows everything)");
                    writeln!(self.out, "{}", self.screen.paint("2", &text))?;
                }
            }
        }
        if loops.is_empty() {
            writeln!(self.out, "\nNo loops in this session.")?;
        }
        Ok(())
    }

    fn header(&mut self, row: &SessionRow) -> Result<(), Failure> {
        let model = row.model.as_deref().map_or_else(String::new, |m| format!(" · {m}"));
        writeln!(self.out, "{} ({}{model})", self.screen.paint("1", &row.session), row.format)?;
        if let Some(project) = &row.project {
            writeln!(self.out, "{project}")?;
        }
        if let (Some(from), Some(to)) = (&row.started, &row.ended) {
            writeln!(self.out, "{} to {}", minute(from), minute(to))?;
        }
        writeln!(
            self.out,
            "{}, {}, {} tokens, {}",
            plural(row.turns, "turn"),
            plural(row.calls, "call"),
            count(row.spend.tokens()),
            cost(&row.spend)
        )?;
        if row.loops > 0 {
            writeln!(
                self.out,
                "{}: {} repeated, {} tokens, {}{}",
                plural(row.loops, "loop"),
                plural(row.repeated_turns, "turn"),
                count(row.loop_spend.tokens()),
                cost(&row.loop_spend),
                and_time(row.minutes)
            )?;
        }
        writeln!(self.out, "{}\n", row.file)?;
        Ok(())
    }

    fn loop_head(&mut self, one: &LoopRow, number: usize, of: usize) -> Result<(), Failure> {
        let title = if of > 1 { format!("Loop {number} of {of}") } else { "Loop".to_owned() };
        let agent = one.agent.as_deref().map_or_else(String::new, |a| format!(" ({a})"));
        let head = format!("── {title}{agent}: {}", one.pattern);
        writeln!(self.out, "\n{}", self.screen.paint("1;33", &head))?;
        writeln!(self.out, "   {}", place(one))?;
        let detectors: Vec<&str> =
            std::iter::once(&one.detector).chain(&one.also).map(String::as_str).collect();
        writeln!(self.out, "   {}; found by {}\n", spent(one), detectors.join(", "))?;
        Ok(())
    }

    fn step(&mut self, step: &StepView) -> Result<(), Failure> {
        let agent = step.agent.as_deref().map_or_else(String::new, |a| format!("[{}] ", shortened(a, 16)));
        match &step.kind {
            StepKind::Turn { text, calls } => self.turn(step, text, calls, &agent)?,
            StepKind::Result { outcome, text, again, .. } => {
                let word = match outcome {
                    Some(Outcome::Error) => "failed: ",
                    Some(Outcome::Denied) => "denied: ",
                    Some(Outcome::Cancelled) => "cancelled: ",
                    Some(Outcome::Timeout) => "timed out: ",
                    Some(Outcome::Running) => "still running: ",
                    Some(Outcome::Invalid) => "invalid: ",
                    _ => "",
                };
                self.lines("              ← ", &format!("{word}{text}"), step.repeats && *again, "2")?;
                if let Some(evidence) = step.evidence.filter(|_| self.args.evidence) {
                    let line = format!("              = {evidence}");
                    writeln!(self.out, "   {}", self.screen.paint("34", &line))?;
                }
            }
            StepKind::User { text, human } => {
                self.lines(if *human { "user            " } else { "harness         " }, text, false, "1")?;
            }
            StepKind::Compact => self.lines("                ", "context compacted", false, "2")?,
            StepKind::Other => {}
        }
        self.action(step)
    }

    fn turn(&mut self, step: &StepView, text: &str, calls: &[ShownCall], agent: &str) -> Result<(), Failure> {
        let time = step.ts.map(|ts| ts.to_string().get(11..16).unwrap_or_default().to_owned());
        let mut head = format!("turn {:<4} {}", step.turn, time.unwrap_or_default());
        let mut marked = step.repeats;
        if !text.is_empty() || calls.is_empty() {
            self.lines(&format!("{head:<16}{agent}"), text, marked, "")?;
            (head, marked) = (String::new(), false);
        }
        for call in calls {
            let repeats = marked || step.repeats && call.group > 0;
            let colour = if repeats { "33" } else { "36" };
            self.lines(&format!("{head:<16}{agent}"), &called(call), repeats, colour)?;
            (head, marked) = (String::new(), false);
        }
        Ok(())
    }

    /// Prints what deloop would have done at a step.
    fn action(&mut self, step: &StepView) -> Result<(), Failure> {
        let Some(action) = &step.action else { return Ok(()) };
        let colour = if action.action >= Action::Ask { "31" } else { "35" };
        let (name, level) = (action.action, action.level);
        let head = format!("              ▲ deloop: {name} (level {level}) at turn {}", action.turn);
        writeln!(self.out, "   {}", self.screen.paint(colour, &head))?;
        let width = usize::from(self.screen.width).saturating_sub(22).max(20);
        for line in action.message.iter().flat_map(|m| m.lines()) {
            for part in wrapped(line, width) {
                let part = format!("                {part}");
                writeln!(self.out, "   {}", self.screen.paint(colour, &part))?;
            }
        }
        Ok(())
    }

    /// Prints a text with a head before its first line, and a mark if it repeats.
    fn lines(&mut self, head: &str, text: &str, repeats: bool, colour: &str) -> Result<(), Failure> {
        let mark = if repeats { self.screen.paint("33", "⟲") } else { " ".to_owned() };
        let width = usize::from(self.screen.width).saturating_sub(head.chars().count() + 4).max(20);
        let mut lines = text.lines().filter(|l| !l.trim().is_empty());
        let first = lines.next().unwrap_or(if self.redaction.redact { "(hidden)" } else { "(empty)" });
        let rest: Vec<&str> = lines.collect();
        let paint = |text: &str| {
            let cut = deloop_detect::clean(text, width);
            if colour.is_empty() { cut } else { self.screen.paint(colour, &cut) }
        };
        writeln!(self.out, " {mark} {head}{}", paint(first))?;
        let blank = " ".repeat(head.chars().count());
        for line in rest.iter().take(LINES - 1) {
            writeln!(self.out, "   {blank}{}", paint(line))?;
        }
        if rest.len() >= LINES {
            let more = plural((rest.len() + 1 - LINES) as u64, "more line");
            writeln!(self.out, "   {blank}{}", self.screen.paint("2", &format!("… {more}")))?;
        }
        Ok(())
    }
}

fn called(call: &ShownCall) -> String {
    if call.args.is_empty() { call.tool.clone() } else { format!("{}  {}", call.tool, call.args) }
}

fn wrapped(line: &str, width: usize) -> Vec<String> {
    let mut parts = vec![String::new()];
    for word in line.split(' ') {
        let last = parts.len() - 1;
        let length = parts[last].chars().count();
        if length > 0 && length + 1 + word.chars().count() > width {
            parts.push(word.to_owned());
        } else {
            if length > 0 {
                parts[last].push(' ');
            }
            parts[last].push_str(word);
        }
    }
    parts
}
