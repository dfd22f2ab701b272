//! `deloop show`: one session around its loops.

use std::io::Write;

use deloop_engine::Engine;
use deloop_types::{Action, Outcome};

use crate::config;
use crate::exit::{self, Failure};
use crate::scan::args::ShowArgs;
use crate::scan::find::{self, Found, Input, Source};
use crate::scan::numbers::{cost, count, minute, plural};
use crate::scan::pool::read_all;
use crate::scan::read::Unread;
use crate::scan::report::{Frame, LoopRow, Report, SessionRow};
use crate::scan::story::{Ask, CallScene, Kind, Scene, story};
use crate::scan::table::{Screen, shortened};
use crate::scan::veil::Veil;
use crate::scan::{cutoff, judge, tell};

/// Steps shown before and after a loop.
const AROUND: u32 = 4;
/// Steps shown of a long loop: at its beginning and at its end.
const FIRST: u32 = 12;
const LAST: u32 = 8;
/// Characters of a text.
const ROOM: usize = 600;
/// Lines of a text.
const LINES: usize = 4;

/// `deloop show`
pub(crate) fn run(args: &ShowArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let (engine, prices) = judge(config::load(&args.judge.rules())?)?;
    let profile = engine.profile().name.clone();
    let engines = [engine];
    let veil = Veil::new(args.redact);
    let cutoff = cutoff(&args.source)?;
    let (inputs, report) = {
        let mut found = candidates(args, cutoff);
        found.keep_stdin()?;
        let make = |inputs: &[Input]| {
            let frame = Frame {
                inputs,
                prices: &prices,
                veil: &veil,
                cutoff,
                min_level: None,
                profile: profile.clone(),
                examples: false,
            };
            Report::new(read_all(inputs, &engines), &frame)
        };
        // A session's file is mostly named after it: then the others need not be read.
        let (likely, others): (Vec<Input>, Vec<Input>) =
            found.inputs.into_iter().partition(|i| names(i, &args.session));
        let report = make(&likely);
        if matching(&report, &args.session, &likely).is_empty() {
            let report = make(&others);
            (others, report)
        } else {
            (likely, report)
        }
    };
    let rows = matching(&report, &args.session, &inputs);
    let Some(first) = rows.first() else {
        tell(&report.problems);
        return Err(Failure::new(format!(
            "there is no session `{}`; `deloop scan` lists those with loops, and a path names any other",
            veil.line(&args.session, 100)
        )));
    };
    let other = rows.iter().find(|r| (&r.session, &r.format) != (&first.session, &first.format));
    if let Some(other) = other
        && first.session != args.session
        && !is_file(&inputs[first.input], &args.session)
    {
        return Err(Failure::new(format!(
            "`{}` is the beginning of more than one session: {}, {}",
            args.session, first.session, other.session
        )));
    }
    let screen = Screen::here();
    let same: Vec<&SessionRow> =
        rows.iter().filter(|r| (&r.session, &r.format) == (&first.session, &first.format)).copied().collect();
    let mut shower = Shower { args, engine: &engines[0], veil: &veil, screen, out };
    for row in same.iter().filter(|r| r.loops > 0 || same.len() == 1 || args.all) {
        let loops: Vec<&LoopRow> =
            report.loops.iter().filter(|l| l.session == row.session && l.input == row.input).collect();
        shower.session(row, loops, &inputs[row.input])?;
    }
    out.flush()?;
    tell(&report.problems);
    Ok(exit::OK)
}

fn candidates(args: &ShowArgs, cutoff: Option<deloop_types::Millis>) -> Found {
    let mut source = args.source.clone();
    let path = std::path::Path::new(&args.session);
    if source.paths.is_empty() && (path.is_file() || args.session == "-") {
        source.paths.push(path.to_owned());
    }
    let named = !source.paths.is_empty();
    let mut found = find::find(&source, cutoff);
    if !named {
        found.inputs.extend(find::examples());
    }
    found.inputs.sort_by(|a, b| a.path().cmp(b.path()));
    found
}

fn names(input: &Input, session: &str) -> bool {
    matches!(input.source, Source::Bundled(..))
        || is_file(input, session)
        || input.path().to_string_lossy().contains(session)
}

fn is_file(input: &Input, session: &str) -> bool {
    matches!(&input.source, Source::File(path) if path.as_os_str() == session)
        || (session == "-" && matches!(input.source, Source::Kept(_)))
}

/// The sessions that are meant: those of the file, or with the id, or whose id begins so. Those with loops first.
fn matching<'a>(report: &'a Report, session: &str, inputs: &[Input]) -> Vec<&'a SessionRow> {
    let all = || report.sessions.iter();
    let mut rows: Vec<&SessionRow> = all().filter(|r| is_file(&inputs[r.input], session)).collect();
    if rows.is_empty() {
        rows = all().filter(|r| r.session == session).collect();
    }
    if rows.is_empty() {
        rows = all().filter(|r| r.session.starts_with(session)).collect();
    }
    rows.sort_by_key(|r| std::cmp::Reverse(r.loops));
    rows
}

struct Shower<'a> {
    args: &'a ShowArgs,
    engine: &'a Engine,
    veil: &'a Veil,
    screen: Screen,
    out: &'a mut dyn Write,
}

impl Shower<'_> {
    fn session(&mut self, row: &SessionRow, mut loops: Vec<&LoopRow>, input: &Input) -> Result<(), Failure> {
        loops.sort_by_key(|l| l.step);
        self.header(row)?;
        let near = |step: u32| {
            loops
                .iter()
                .any(|l| (l.step.saturating_sub(AROUND)..=l.last_step.saturating_add(AROUND)).contains(&step))
        };
        let middle = |step: u32| {
            loops.iter().any(|l| {
                l.last_step - l.step > FIRST + LAST + 2
                    && (l.step + FIRST..l.last_step - LAST).contains(&step)
            })
        };
        let all = self.args.all;
        let wanted = |step: u32| all || (near(step) && !middle(step)) || (loops.is_empty() && step < 40);
        let ask = Ask { session: &row.session, loops: &loops, wanted: &wanted, room: ROOM, veil: self.veil };
        let story = story(input, self.engine, &ask).map_err(|e| match e {
            Unread::NoSession => Failure::new("the session is gone"),
            Unread::Failed(error) => Failure::from(error),
        })?;
        let mut last = None;
        let mut next = loops.iter().peekable();
        for scene in &story.scenes {
            while let Some(one) = next.next_if(|l| l.step <= scene.step) {
                self.loop_head(one, &loops)?;
            }
            let skipped = last.map_or(scene.step, |last: u32| scene.step - last - 1);
            if skipped > 0 && (last.is_some() || !all) && story_gap(last, scene.step, &wanted) {
                let what = plural(skipped.into(), "step");
                writeln!(
                    self.out,
                    "{}",
                    self.screen.paint("2", &format!("     … {what} left out (`--all` shows them)"))
                )?;
            }
            last = Some(scene.step);
            let inside = loops.iter().any(|l| (l.step..=l.last_step).contains(&scene.step));
            self.scene(scene, inside)?;
        }
        if loops.is_empty() {
            writeln!(self.out, "\nNo loop was found in this session.")?;
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
        writeln!(self.out, "{}\n", row.file)?;
        Ok(())
    }

    fn loop_head(&mut self, one: &LoopRow, loops: &[&LoopRow]) -> Result<(), Failure> {
        let number = loops.iter().position(|l| l.step == one.step && l.agent == one.agent).unwrap_or(0) + 1;
        let title =
            if loops.len() > 1 { format!("Loop {number} of {}", loops.len()) } else { "Loop".to_owned() };
        let agent = one.agent.as_deref().map_or_else(String::new, |a| format!(" ({a})"));
        writeln!(
            self.out,
            "\n{}",
            self.screen.paint("1;33", &format!("── {title}{agent}: {}", one.pattern))
        )?;
        let spent = format!(
            "   from turn {} of {}: {}, {} tokens, {}; found by {}",
            one.turn,
            one.of_turns,
            plural(one.turns.into(), "turn"),
            count(one.spend.tokens()),
            cost(&one.spend),
            std::iter::once(one.detector.as_str())
                .chain(one.also.iter().map(String::as_str))
                .collect::<Vec<_>>()
                .join(", "),
        );
        writeln!(self.out, "{spent}\n")?;
        Ok(())
    }

    fn scene(&mut self, scene: &Scene, inside: bool) -> Result<(), Failure> {
        let agent = scene.agent.as_deref().map_or_else(String::new, |a| format!("[{}] ", shortened(a, 16)));
        match &scene.kind {
            Kind::Turn { text, calls } => {
                let repeats = inside && calls.iter().any(|c| c.group > 0);
                let time = scene.ts.map(|ts| ts.to_string().get(11..16).unwrap_or_default().to_owned());
                let mut head = format!("turn {:<4} {}", scene.turn, time.unwrap_or_default());
                if !text.is_empty() || calls.is_empty() {
                    self.lines(&format!("{head:<16}{agent}"), text, repeats, "")?;
                    head = String::new();
                }
                for call in calls {
                    let repeats = inside && call.group > 0;
                    self.lines(
                        &format!("{head:<16}{agent}"),
                        &called(call),
                        repeats,
                        if repeats { "33" } else { "36" },
                    )?;
                    head = String::new();
                }
            }
            Kind::Result { outcome, text, repeats, .. } => {
                let word = match outcome {
                    Some(Outcome::Error) => "failed: ",
                    Some(Outcome::Denied) => "denied: ",
                    Some(Outcome::Cancelled) => "cancelled: ",
                    Some(Outcome::Timeout) => "timed out: ",
                    Some(Outcome::Running) => "still runs: ",
                    Some(Outcome::Invalid) => "invalid: ",
                    _ => "",
                };
                self.lines("              ← ", &format!("{word}{text}"), inside && *repeats, "2")?;
                if let Some(evidence) = scene.evidence.filter(|_| self.args.evidence) {
                    writeln!(
                        self.out,
                        "   {}",
                        self.screen.paint("34", &format!("              = {evidence}"))
                    )?;
                }
            }
            Kind::User { text, human } => {
                self.lines(if *human { "user            " } else { "harness         " }, text, false, "1")?;
            }
            Kind::Compact => self.lines("                ", "the context was cut", false, "2")?,
        }
        if let Some(told) = &scene.told {
            let colour = if told.action >= Action::Ask { "31" } else { "35" };
            let head = format!("              ▲ deloop: {} (level {})", told.action, told.level);
            writeln!(self.out, "   {}", self.screen.paint(colour, &head))?;
            for line in told.message.iter().flat_map(|m| m.lines()) {
                for part in wrapped(line, usize::from(self.screen.width).saturating_sub(22).max(20)) {
                    writeln!(
                        self.out,
                        "   {}",
                        self.screen.paint(colour, &format!("                {part}"))
                    )?;
                }
            }
        }
        Ok(())
    }

    /// Prints a text with a head before its first line, and a mark when it repeats what was there before.
    fn lines(&mut self, head: &str, text: &str, repeats: bool, colour: &str) -> Result<(), Failure> {
        let mark = if repeats { self.screen.paint("33", "⟲") } else { " ".to_owned() };
        let width = usize::from(self.screen.width).saturating_sub(head.chars().count() + 4).max(20);
        let mut lines = text.lines().filter(|l| !l.trim().is_empty());
        let first = lines.next().unwrap_or(if self.veil.redact { "(left out)" } else { "(nothing)" });
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

/// Whether steps that were not wanted lie between the last shown one and this.
fn story_gap(last: Option<u32>, step: u32, wanted: &dyn Fn(u32) -> bool) -> bool {
    (last.map_or(0, |l| l + 1)..step).any(|between| !wanted(between))
}

fn called(call: &CallScene) -> String {
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
