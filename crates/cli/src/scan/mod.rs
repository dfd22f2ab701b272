//! `deloop scan`: finds the loops in the sessions people already have.
//!
//! Find the files, read them all at once, judge every step, put together what was found, print it.

pub(crate) mod args;
pub(crate) mod compare;
mod csv;
mod encoding;
mod episode;
pub(crate) mod find;
mod html;
mod numbers;
mod opencode;
pub(crate) mod places;
pub(crate) mod pool;
mod prices;
pub(crate) mod problem;
pub(crate) mod read;
pub(crate) mod report;
pub(crate) mod sessions;
mod show;
pub(crate) mod since;
mod spend;
mod story;
pub(crate) mod table;
mod unpack;
pub(crate) mod veil;
mod walk;
mod watch;
mod words;

pub(crate) use show::run as show;

use std::io::Write;

use deloop_engine::{Engine, Options};
use deloop_types::Millis;

use crate::config::{self, Config};
use crate::exit::{self, Failure};
use crate::print;
use args::{ScanArgs, SourceArgs};
use find::Found;
use pool::{Pool, read_all};
use prices::Prices;
use problem::{Problem, shown};
use report::{Frame, Report};
use table::Screen;
use veil::{Veil, harmless};

/// How many problems are told of on standard error; `--json` has them all.
const PROBLEMS: usize = 10;

/// `deloop scan`
pub(crate) fn run(args: &ScanArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let config = config::load(&args.judge.rules())?;
    let (engine, prices) = judge(config)?;
    let profile = engine.profile().name.clone();
    let engines = [engine];
    let cutoff = cutoff(&args.source)?;
    let mut found = find::find(&args.source, cutoff);
    if args.html.is_some() {
        found.keep_stdin()?;
    }
    let mut pool = gather(&mut found, &engines);
    let machine = args.json || args.csv;
    let examples = args.source.paths.is_empty() && !machine && is_empty(&pool);
    if examples {
        no_sessions(&found, cutoff, out)?;
        found.inputs = find::examples();
        pool = read_all(&found.inputs, &engines);
    }
    let veil = Veil::new(args.redact);
    let missing = found.missing || pool.missing;
    let none = is_empty(&pool);
    let frame = Frame {
        inputs: &found.inputs,
        prices: &prices,
        veil: &veil,
        cutoff: cutoff.filter(|_| !examples),
        min_level: args.min_level,
        profile,
        examples,
    };
    let mut report = Report::new(pool, &frame);
    let failed =
        args.fail_on.is_some_and(|level| report.loops.iter().any(|l| level.reached(l.action, l.level)));
    if let Some(path) = &args.html {
        html::write(path, &report, &found.inputs, &engines[0], &veil)?;
    }
    if machine && let Some(top) = args.top.filter(|top| *top > 0) {
        report.loops.truncate(top);
    }
    if args.json {
        serde_json::to_writer_pretty(&mut *out, &report)?;
        out.write_all(b"\n")?;
    } else if args.csv {
        csv::print(&report.loops, out)?;
    } else if none {
        writeln!(out, "No sessions were found.")?;
    } else {
        table::print(&report, args.top, Screen::here(), out)?;
    }
    if let Some(path) = args.html.as_ref().filter(|_| !machine) {
        writeln!(out, "The report is in {}.", harmless(&shown(path)))?;
    }
    out.flush()?;
    tell(&report.problems);
    Ok(match (missing, failed && !examples) {
        (true, _) => exit::COULD_NOT_RUN,
        (false, true) => exit::FOUND,
        (false, false) => exit::OK,
    })
}

/// What judges the sessions, and what their tokens cost. The runs are over: all is done that the profile asks for,
/// and nobody is there to be asked.
fn judge(config: Config) -> Result<(Engine, Prices), Failure> {
    let prices = config.prices()?;
    let prices = Prices::new(prices).map_err(|e| Failure::new(format!("prices.toml: {e}")))?;
    Ok((Engine::new(config.profile, Options::default()), prices))
}

fn cutoff(args: &SourceArgs) -> Result<Option<Millis>, Failure> {
    args.since.as_deref().map(|text| since::since(text, since::now())).transpose().map_err(Failure::new)
}

/// Reads what was found.
fn gather(found: &mut Found, engines: &[Engine]) -> Pool {
    // The order of the paths decides which of two copies is the original.
    found.inputs.sort_by(|a, b| a.path().cmp(b.path()));
    let mut pool = read_all(&found.inputs, engines);
    pool.problems.append(&mut found.problems);
    pool
}

fn is_empty(pool: &Pool) -> bool {
    pool.files.iter().all(|f| f.sessions.is_empty())
}

fn no_sessions(found: &Found, cutoff: Option<Millis>, out: &mut dyn Write) -> Result<(), Failure> {
    let when = cutoff.map_or_else(String::new, |t| format!(" since {}", numbers::minute(&t.to_string())));
    writeln!(out, "No sessions{when} were found. These folders were looked into:\n")?;
    for (format, folder) in &found.looked {
        writeln!(out, "  {format:<16} {}", shown(folder))?;
    }
    writeln!(out, "\n`deloop scan PATH` reads sessions that are elsewhere.")?;
    writeln!(out, "Meanwhile, this is what it finds in the example sessions that come with deloop:\n")?;
    Ok(())
}

/// Tells of problems on standard error.
pub(crate) fn tell(problems: &[Problem]) {
    for Problem { path, problem, .. } in problems.iter().take(PROBLEMS) {
        print::tell(format_args!("deloop: {path}: {problem}"));
    }
    if let Some(more) = problems.len().checked_sub(PROBLEMS).filter(|more| *more > 0) {
        print::tell(format_args!("deloop: … and {more} more (`--json` lists them all)"));
    }
}
