//! `deloop scan`: finds the loops in the sessions people already have.
//!
//! Find the files, replay them all at once, put together what was found, print it.

pub(crate) mod args;
mod assemble;
pub(crate) mod compare;
mod comparison;
pub(crate) mod csv;
mod html;
pub(crate) mod numbers;
pub(crate) mod report;
mod show;
pub(crate) mod table;

pub(crate) use comparison::Comparison;
pub(crate) use show::run as show;

use std::io::Write;

use deloop_engine::{Engine, Options};
use deloop_policy::Prices;
use deloop_types::Millis;

use crate::config::{self, Config};
use crate::exit::{self, Failure};
use crate::redaction::{Redaction, harmless};
use crate::replay::{ReplayScope, ReplayedFiles, replay_all};
use crate::scan::numbers::plural;
use crate::sessions::since::{now, since};
use crate::sessions::{
    FoundInputs, SessionInput, SourceArgs, examples, find, home_relative, nothing_read, print_problems,
};
use args::ScanArgs;
use assemble::{ReportContext, settle};
use report::ScanReport;
use table::Screen;

/// `deloop scan`
pub(crate) fn run(args: &ScanArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let config = config::load(&args.judge.rules())?;
    let (engine, prices) = judge(&config)?;
    let profile = engine.profile().name.clone();
    let engines = [engine];
    let cutoff = cutoff(&args.source)?;
    let mut found = find(&args.source, cutoff);
    if args.html.is_some() {
        found.keep_stdin()?;
    }
    let mut read = replay(&mut found, &engines);
    let mut older = settle(&mut read.files, cutoff);
    let machine = args.json || args.csv;
    let none = is_empty(&read) && found.older + older == 0;
    let show_examples = args.source.paths.is_empty() && !machine && none;
    if show_examples {
        print_searched(&found, read.unread, out)?;
        print_problems(&read.problems);
        found.inputs = examples();
        read = replay_loops(&found.inputs, &engines);
        older = settle(&mut read.files, None);
    }
    let redaction = Redaction::new(args.redact);
    let context = ReportContext {
        inputs: &found.inputs,
        prices: &prices,
        redaction: &redaction,
        cutoff: cutoff.filter(|_| !show_examples),
        older: found.older,
        min_level: args.min_level,
        profile,
        examples: show_examples,
    };
    let mut report = ScanReport::new(&read, older, &context);
    let failed =
        args.fail_on.is_some_and(|level| report.loops.iter().any(|l| level.reached(l.action, l.level)));
    if read.nothing_read && !args.source.paths.is_empty() {
        if machine {
            print_report(args, &report, out)?;
            out.flush()?;
        }
        print_problems(&report.problems);
        return Err(nothing_read(read.unread));
    }
    if let Some(path) = &args.html {
        html::write(path, &report, &read, &found.inputs, &engines[0], &redaction)?;
    }
    if machine && let Some(top) = args.top.filter(|top| *top > 0) {
        report.loops.truncate(top);
    }
    print_report(args, &report, out)?;
    out.flush()?;
    print_problems(&report.problems);
    Ok(match (found.missing || read.missing, failed && !show_examples) {
        (true, _) => exit::COULD_NOT_RUN,
        (false, true) => exit::FOUND,
        (false, false) => exit::OK,
    })
}

fn print_report(args: &ScanArgs, report: &ScanReport, out: &mut dyn Write) -> Result<(), Failure> {
    if args.json {
        serde_json::to_writer_pretty(&mut *out, report)?;
        out.write_all(b"\n")?;
        return Ok(());
    }
    if args.csv {
        return csv::print(&report.loops, out);
    }
    table::print(report, args.top, Screen::here(), out)?;
    if let Some(path) = &args.html {
        writeln!(out, "Wrote the report to {}.", harmless(&home_relative(path)))?;
    }
    Ok(())
}

/// Returns what judges the sessions, and what their tokens cost. The runs are over: deloop does all that the profile asks
/// for, and there is nobody to ask.
fn judge(config: &Config) -> Result<(Engine, Prices), Failure> {
    let prices = crate::prices::in_use(config.prices()?);
    let engine = Engine::new(config.profile.clone(), Options::default());
    Ok((crate::embedding::offline(engine, config)?, prices))
}

fn cutoff(args: &SourceArgs) -> Result<Option<Millis>, Failure> {
    args.since.as_deref().map(|text| since(text, now())).transpose().map_err(Failure::new)
}

/// Replays what was found.
fn replay(found: &mut FoundInputs, engines: &[Engine]) -> ReplayedFiles {
    // The order of the paths decides which of two copies is the original.
    found.inputs.sort_by(|a, b| a.path().cmp(b.path()));
    let mut read = replay_loops(&found.inputs, engines);
    read.problems.append(&mut found.problems);
    read
}

fn replay_loops(inputs: &[SessionInput], engines: &[Engine]) -> ReplayedFiles {
    replay_all(inputs, engines, &|_| ReplayScope::Loops)
}

fn is_empty(read: &ReplayedFiles) -> bool {
    read.files.iter().all(|f| f.sessions.is_empty())
}

fn print_searched(found: &FoundInputs, unread: u64, out: &mut dyn Write) -> Result<(), Failure> {
    if found.searched.is_empty() {
        writeln!(
            out,
            "No sessions found: there is no home folder to search. Set HOME, or run `deloop scan PATH`.\n"
        )?;
        writeln!(out, "Here is what deloop finds in its example sessions:\n")?;
        return Ok(());
    }
    writeln!(out, "No sessions found. deloop searched these folders:\n")?;
    for (format, folder) in &found.searched {
        writeln!(out, "  {format:<16} {}", home_relative(folder))?;
    }
    if unread > 0 {
        writeln!(out, "\n{} there couldn't be read.", plural(unread, "file"))?;
    }
    writeln!(out, "\nTo read sessions from somewhere else, run `deloop scan PATH`.")?;
    writeln!(out, "Here is what deloop finds in its example sessions:\n")?;
    Ok(())
}
