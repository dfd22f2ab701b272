//! `deloop compare`: judges the same sessions by two sets of rules, so you can tune on your own history.

use std::io::Write;
use std::path::PathBuf;

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use deloop_engine::{Engine, Options};
use deloop_policy::Profile;

use crate::args::RuleArgs;
use crate::config;
use crate::embedding;
use crate::exit::{self, Failure};
use crate::print;
use crate::redaction::Redaction;
use crate::scan::args::CompareArgs;
use crate::scan::assemble::{ReportContext, SessionPart, settle};
use crate::scan::comparison::{Comparison, LoopPair, LoopView, Side};
use crate::scan::numbers::{cost, dollars, duration, plural};
use crate::scan::table::{Screen, id, no_sessions};
use crate::scan::{cutoff, judge, replay};
use crate::sessions::{examples, find, nothing_read, print_problems};

/// Number of differences shown by default.
const ROWS: usize = 20;

/// `deloop compare`
pub(crate) fn run(args: &CompareArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let (_, prices) = judge(&config::load(&RuleArgs::default())?)?;
    let engines = [side(&args.a)?, side(&args.b)?];
    let cutoff = cutoff(&args.source)?;
    let mut found = find(&args.source, cutoff);
    if args.source.paths.is_empty() && found.inputs.is_empty() {
        print::tell("deloop: no sessions found; comparing deloop's example sessions");
        found.inputs = examples();
    }
    let mut read = replay(&mut found, &engines);
    let is_failure = read.nothing_read && !args.source.paths.is_empty();
    let older = found.older + settle(&mut read.files, cutoff);
    let redaction = Redaction::new(args.redact);
    let context = ReportContext {
        inputs: &found.inputs,
        prices: &prices,
        redaction: &redaction,
        cutoff,
        older,
        min_level: args.min_level,
        profile: String::new(),
        examples: false,
    };
    let mut all = Comparison::new([&args.a, &args.b]);
    for (number, file) in read.files.iter().enumerate() {
        SessionPart::of(number, file, &context).for_each(|part| all.add(part.rows(0), part.rows(1)));
    }
    all.loops.sort_by(LoopPair::order);
    all.problems = read.problems;
    if args.json {
        if let Some(top) = args.top.filter(|top| *top > 0) {
            all.loops.truncate(top);
        }
        serde_json::to_writer_pretty(&mut *out, &all)?;
        out.write_all(b"\n")?;
    } else if all.sessions == 0 && !is_failure {
        let since = cutoff.map(|t| t.to_string());
        writeln!(out, "{}", no_sessions(since.as_deref(), older))?;
    } else if !is_failure {
        all.print(args.top, Screen::here(), out)?;
    }
    out.flush()?;
    print_problems(&all.problems);
    if is_failure {
        return Err(nothing_read(read.unread));
    }
    Ok(if found.missing || read.missing { exit::COULD_NOT_RUN } else { exit::OK })
}

/// Returns the engine of a built-in profile or of a configuration file.
fn side(name: &str) -> Result<Engine, Failure> {
    let file = [".toml", ".yaml", ".yml"].iter().any(|ending| name.ends_with(ending));
    if file {
        let config = config::load(&RuleArgs { config: Some(PathBuf::from(name)), ..RuleArgs::default() })?;
        return embedding::offline(Engine::new(config.profile.clone(), Options::default()), &config);
    }
    let profile = Profile::named(name).map_err(|e| {
        Failure::new(format!("{e}; to name a configuration file, use a path that ends in .toml or .yaml"))
    })?;
    Ok(Engine::new(profile, Options::default()))
}

impl Comparison {
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
        sums.add_row(row("repeated turns", &|s| s.repeated_turns.to_string()));
        sums.add_row(row("their cost", &|s| cost(&s.spend)));
        sums.add_row(row("their time", &|s| duration(s.minutes)));
        sums.add_row(row("cost after the first action", &|s| dollars(s.spend_after.usd)));
        writeln!(out, "{}\n", sums.trim_fmt())?;
        let different: Vec<&LoopPair> = self.loops.iter().filter(|p| p.a != p.b).collect();
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
            "{}: both found {}, only {a} found {}, only {b} found {}.",
            screen.paint("1", &plural(self.sessions, "session")),
            plural(self.both, "loop"),
            self.only_a,
            self.only_b
        )?;
        if self.both > 0 {
            writeln!(
                out,
                "Of the loops that both found, {a} steps in earlier in {}, {b} in {}.",
                self.earlier_a, self.earlier_b
            )?;
        }
        Ok(())
    }

    fn table(&self, pairs: &[&LoopPair], screen: Screen) -> Table {
        let mut table = Table::new();
        table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(screen.width).force_no_tty();
        table.set_header(["SESSION", "LOOP", self.a.name.as_str(), self.b.name.as_str(), "COST"]);
        let view = |view: &Option<LoopView>| view.as_ref().map_or_else(|| "–".to_owned(), LoopView::text);
        for pair in pairs {
            let agent = pair.agent.as_deref().map_or_else(String::new, |a| format!(" / {a}"));
            table.add_row([
                Cell::new(format!("{}{agent}\n{}", id(&pair.session), pair.format)),
                Cell::new(format!("{}\nfrom turn {}", pair.pattern, pair.first_turn)),
                Cell::new(view(&pair.a)),
                Cell::new(view(&pair.b)),
                Cell::new(cost(&pair.spend)).set_alignment(CellAlignment::Right),
            ]);
        }
        table
    }
}
