//! `deloop compare`: the same sessions judged by two sets of rules, so that people can tune on their own history.

use std::io::Write;
use std::path::PathBuf;

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use deloop_engine::{Engine, Options};
use deloop_policy::Profile;
use deloop_types::Action;
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::RuleArgs;
use crate::config;
use crate::exit::{self, Failure};
use crate::print;
use crate::scan::args::CompareArgs;
use crate::scan::numbers::{cost, dollars, plural};
use crate::scan::problem::Problem;
use crate::scan::report::{Frame, LoopRow, parts};
use crate::scan::spend::Spend;
use crate::scan::table::{Screen, id};
use crate::scan::veil::Veil;
use crate::scan::{cutoff, find, gather, judge, tell};

/// How many differences are shown if nothing else is said.
const ROWS: usize = 20;

/// The same sessions under two sets of rules.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "Comparison")]
pub(crate) struct Comparison {
    /// The version of this shape; a new one only when a field changes its meaning or goes.
    version: u32,
    /// The one side.
    a: Side,
    /// The other side.
    b: Side,
    /// Sessions, or parts of them, that were read.
    sessions: u64,
    /// Loops that both found.
    both: u64,
    /// Loops that only the one found.
    only_a: u64,
    /// Loops that only the other found.
    only_b: u64,
    /// Of those that both found: the one stepped in at an earlier turn.
    earlier_a: u64,
    /// Of those that both found: the other stepped in at an earlier turn.
    earlier_b: u64,
    /// Every loop that either found; those that only one found first, the costliest of them first.
    loops: Vec<Pair>,
    /// Files that could not be read, or not as a whole.
    problems: Vec<Problem>,
}

/// What one set of rules came to.
#[derive(Debug, Serialize, JsonSchema)]
struct Side {
    /// The profile or configuration, as it was named.
    name: String,
    /// Loops that it found.
    loops: u64,
    /// Sessions with loops.
    sessions: u64,
    /// Turns inside its loops.
    turns: u64,
    /// What was used inside its loops.
    spend: Spend,
    /// What of that was used after it would first have stepped in.
    spend_after: Spend,
}

/// One loop as both sides see it.
#[derive(Debug, Serialize, JsonSchema)]
struct Pair {
    /// The session's id.
    session: String,
    /// The file it is in.
    file: String,
    /// The format of the file.
    format: String,
    /// The worker or subagent, if it is not the session's own agent.
    agent: Option<String>,
    /// What repeats and how often, in words.
    pattern: String,
    /// The turn at which it begins, from 1.
    turn: u32,
    /// What was used inside it.
    spend: Spend,
    /// What the one side would have done; nothing if it did not find it.
    a: Option<View>,
    /// What the other side would have done.
    b: Option<View>,
}

/// What one side makes of a loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
struct View {
    /// The detector that says most about it.
    detector: String,
    /// The turn at which it would first have stepped in.
    first_turn: u32,
    /// What it would have done then.
    first_action: Action,
    /// The strongest thing that it would have done.
    action: Action,
    /// The turn of that.
    turn: u32,
}

/// `deloop compare`
pub(crate) fn run(args: &CompareArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let (_, prices) = judge(config::load(&RuleArgs::default())?)?;
    let engines = [side(&args.a)?, side(&args.b)?];
    let cutoff = cutoff(&args.source)?;
    let mut found = find::find(&args.source, cutoff);
    if args.source.paths.is_empty() && found.inputs.is_empty() {
        print::tell("deloop: no sessions were found; these are the examples that come with deloop");
        found.inputs = find::examples();
    }
    let mut pool = gather(&mut found, &engines);
    let missing = found.missing || pool.missing;
    let veil = Veil::new(args.redact);
    let frame = Frame {
        inputs: &found.inputs,
        prices: &prices,
        veil: &veil,
        cutoff,
        min_level: args.min_level,
        profile: String::new(),
        examples: false,
    };
    let mut all = Comparison::new([&args.a, &args.b]);
    for part in parts(&mut pool.files, &frame) {
        let row = part.row(&frame);
        all.add(part.loops(0, &row, &frame), part.loops(1, &row, &frame));
    }
    all.loops.sort_by(Pair::order);
    all.problems = pool.problems;
    if args.json {
        if let Some(top) = args.top.filter(|top| *top > 0) {
            all.loops.truncate(top);
        }
        serde_json::to_writer_pretty(&mut *out, &all)?;
        out.write_all(b"\n")?;
    } else {
        all.print(args.top, Screen::here(), out)?;
    }
    out.flush()?;
    tell(&all.problems);
    Ok(if missing { exit::COULD_NOT_RUN } else { exit::OK })
}

/// The engine of a profile that comes with deloop, or of a configuration file.
fn side(name: &str) -> Result<Engine, Failure> {
    let file = [".toml", ".yaml", ".yml"].iter().any(|ending| name.ends_with(ending));
    let profile = if file {
        config::load(&RuleArgs { config: Some(PathBuf::from(name)), ..RuleArgs::default() })?.profile
    } else {
        Profile::named(name).map_err(|e| {
            Failure::new(format!("{e}; a configuration is a path that ends in .toml or .yaml"))
        })?
    };
    Ok(Engine::new(profile, Options::default()))
}

impl Comparison {
    fn new(names: [&String; 2]) -> Self {
        let side = |name: &String| Side {
            name: name.clone(),
            loops: 0,
            sessions: 0,
            turns: 0,
            spend: Spend::default(),
            spend_after: Spend::default(),
        };
        Self {
            version: 1,
            a: side(names[0]),
            b: side(names[1]),
            sessions: 0,
            both: 0,
            only_a: 0,
            only_b: 0,
            earlier_a: 0,
            earlier_b: 0,
            loops: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Takes in the loops that each side found in one session. Loops of one agent that overlap are the same.
    fn add(&mut self, a: Vec<LoopRow>, mut b: Vec<LoopRow>) {
        self.sessions += 1;
        self.a.add(&a);
        self.b.add(&b);
        for one in a {
            let overlaps = |other: &LoopRow| {
                other.agent == one.agent && one.step <= other.last_step && other.step <= one.last_step
            };
            let other = b.iter().position(overlaps).map(|index| b.remove(index));
            match &other {
                None => self.only_a += 1,
                Some(other) => {
                    self.both += 1;
                    let (a, b) = (first(&one), first(other));
                    self.earlier_a += u64::from(a < b);
                    self.earlier_b += u64::from(b < a);
                }
            }
            self.loops.push(Pair::new(&one, View::of(&one), other.as_ref().and_then(View::of)));
        }
        for other in b {
            self.only_b += 1;
            self.loops.push(Pair::new(&other, None, View::of(&other)));
        }
    }

    fn print(&self, top: Option<usize>, screen: Screen, out: &mut dyn Write) -> Result<(), Failure> {
        let mut sums = Table::new();
        sums.load_style(presets::NOTHING);
        let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
        let row = |name: &str, of: &dyn Fn(&Side) -> String| {
            vec![Cell::new(name), right(of(&self.a)), right(of(&self.b))]
        };
        sums.add_row(row("", &|s| s.name.clone()));
        sums.add_row(row("loops", &|s| s.loops.to_string()));
        sums.add_row(row("sessions with loops", &|s| s.sessions.to_string()));
        sums.add_row(row("turns inside loops", &|s| s.turns.to_string()));
        sums.add_row(row("spent inside loops", &|s| cost(&s.spend)));
        sums.add_row(row("after it steps in", &|s| dollars(s.spend_after.usd)));
        writeln!(out, "{}\n", sums.trim_fmt())?;
        let different: Vec<&Pair> = self.loops.iter().filter(|p| p.a != p.b).collect();
        let rows = match top {
            Some(0) => different.len(),
            Some(top) => top.min(different.len()),
            None => ROWS.min(different.len()),
        };
        if rows > 0 {
            writeln!(out, "{}\n", self.table(&different[..rows], screen))?;
        }
        if different.len() > rows {
            let more = plural((different.len() - rows) as u64, "more difference");
            writeln!(out, "… and {more} (`--top 0` shows all)\n")?;
        }
        let (a, b) = (&self.a.name, &self.b.name);
        writeln!(
            out,
            "{}: both found {}, only {a} {}, only {b} {}.",
            screen.paint("1", &plural(self.sessions, "session")),
            plural(self.both, "loop"),
            self.only_a,
            self.only_b
        )?;
        if self.both > 0 {
            writeln!(
                out,
                "Of those that both found, {a} steps in earlier {}, {b} {}.",
                times(self.earlier_a),
                times(self.earlier_b)
            )?;
        }
        Ok(())
    }

    fn table(&self, pairs: &[&Pair], screen: Screen) -> Table {
        let mut table = Table::new();
        table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(screen.width).force_no_tty();
        table.set_header(["SESSION", "LOOP", self.a.name.as_str(), self.b.name.as_str(), "COST"]);
        let view = |view: &Option<View>| view.as_ref().map_or_else(|| "–".to_owned(), View::text);
        for pair in pairs {
            let agent = pair.agent.as_deref().map_or_else(String::new, |a| format!(" / {a}"));
            table.add_row([
                Cell::new(format!("{}{agent}\n{}", id(&pair.session), pair.format)),
                Cell::new(format!("{}\nfrom turn {}", pair.pattern, pair.turn)),
                Cell::new(view(&pair.a)),
                Cell::new(view(&pair.b)),
                Cell::new(cost(&pair.spend)).set_alignment(CellAlignment::Right),
            ]);
        }
        table
    }
}

fn times(number: u64) -> String {
    match number {
        0 => "never".to_owned(),
        1 => "once".to_owned(),
        _ => format!("{number} times"),
    }
}

/// The turn at which a side would first have stepped in.
fn first(one: &LoopRow) -> u32 {
    one.decisions.first().map_or(u32::MAX, |d| d.turn)
}

impl Side {
    fn add(&mut self, loops: &[LoopRow]) {
        self.loops += loops.len() as u64;
        self.sessions += u64::from(!loops.is_empty());
        for one in loops {
            self.turns += u64::from(one.turns);
            self.spend.merge(&one.spend);
            self.spend_after.merge(&one.spend_after);
        }
    }
}

impl View {
    fn of(one: &LoopRow) -> Option<Self> {
        let first = one.decisions.first()?;
        let strongest = one.decisions.iter().find(|d| (d.action, d.level) == (one.action, one.level))?;
        Some(Self {
            detector: one.detector.clone(),
            first_turn: first.turn,
            first_action: first.action,
            action: strongest.action,
            turn: strongest.turn,
        })
    }

    fn text(&self) -> String {
        let mut text = format!("{} at turn {}", self.first_action, self.first_turn);
        if self.turn != self.first_turn {
            text.push_str(&format!(", {} at {}", self.action, self.turn));
        }
        format!("{text}\n{}", self.detector)
    }
}

impl Pair {
    fn new(one: &LoopRow, a: Option<View>, b: Option<View>) -> Self {
        Self {
            session: one.session.clone(),
            file: one.file.clone(),
            format: one.format.clone(),
            agent: one.agent.clone(),
            pattern: one.pattern.clone(),
            turn: one.turn,
            spend: one.spend,
            a,
            b,
        }
    }

    /// Those that only one side found first, then the costlier, then by where they are.
    fn order(a: &Self, b: &Self) -> std::cmp::Ordering {
        let both = |p: &Self| p.a.is_some() && p.b.is_some();
        both(a)
            .cmp(&both(b))
            .then_with(|| b.spend.usd.total_cmp(&a.spend.usd))
            .then_with(|| b.spend.tokens().cmp(&a.spend.tokens()))
            .then_with(|| (&a.file, &a.session, a.turn).cmp(&(&b.file, &b.session, b.turn)))
    }
}
