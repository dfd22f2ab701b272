//! `cargo xtask check`: everything that must hold before a change is merged, cheapest first, and a table of what came of it.

mod changes;
mod dependencies;
mod disk;
mod parts;
mod table;
mod tests;
mod unsafe_code;

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

use self::parts::{PARTS, Part, Work};
use self::table::{Line, Verdict};
use crate::documents;
use crate::output::{Show, end_of_output, output_file, run_and_keep};
use crate::setup::{self, Requirement};
use crate::tools::xtask;

const HELP: &str = "\
cargo xtask check [--all]

Runs everything that must pass before a change is merged, and ends with a table: part, seconds, result, what was skipped.
Under CI, it also runs the parts of `--all` whose files have changed since the last commit that passed `--all`, and
anything that `cargo xtask setup` could have installed must be there.
  --all     all parts; if they pass on a clean tree, writes .ci/last-full-check.txt
";

/// How much of what a failed part printed is repeated at the end, in lines.
const REPEATED_LINES: usize = 80;
/// The folder below the target folder that has what was recorded.
const FOLDER: &str = "check";

/// Which parts are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Short,
    /// The short check, and those parts of the full one whose files have changed since it last passed.
    Changed,
    All,
}

impl Scope {
    /// Returns the scope of a check without options here.
    pub(crate) fn of_environment() -> Self {
        if is_ci() { Self::Changed } else { Self::Short }
    }
}

/// Whether CI runs this: nobody is there who could run setup, so what setup installs must be there.
pub(crate) fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| !["", "0", "false"].contains(&value.as_str()))
}

/// Returns what the parts of a check, and the tests, need.
pub(crate) fn requirements(scope: Scope) -> Vec<Requirement> {
    let mut all: Vec<Requirement> = Vec::new();
    let plan = plan(scope);
    let of_parts = plan.parts.iter().flat_map(|(part, _)| part.needs);
    for requirement in Requirement::all_of_tests().iter().chain(of_parts) {
        if !all.contains(requirement) {
            all.push(*requirement);
        }
    }
    all
}

/// Does what the arguments after `check` say.
pub(crate) fn run(arguments: impl Iterator<Item = String>) -> ExitCode {
    let arguments: Vec<String> = arguments.collect();
    let scope = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => Scope::of_environment(),
        ["--all"] => Scope::All,
        _ => {
            print!("{HELP}");
            return ExitCode::from(if arguments == ["--help"] { 0 } else { 2 });
        }
    };
    offer_setup(scope);
    disk::say_free();
    forget_records();
    let clean = changes::clean_commit();
    let plan = plan(scope);
    for (part, why) in plan.parts.iter().filter(|(_, why)| !why.is_empty()) {
        println!("── also {}: {why}", part.name);
    }
    let start = now();
    let mut lines: Vec<Line> = Vec::new();
    for (part, _) in &plan.parts {
        let is_built = !lines.iter().any(|line| line.name == "build" && line.verdict == Verdict::Failed);
        lines.push(perform(part, is_built));
    }
    for line in lines.iter().filter(|line| line.verdict == Verdict::Failed) {
        print!("{}", end_of_output(line.name, &output_file(FOLDER, line.name), REPEATED_LINES));
    }
    print!("\n{}", table::render(&lines, &plan.left_out));
    println!("{:.0} s; {}", start.elapsed().as_secs_f32(), disk::used());
    let passed = lines.iter().all(|line| line.is_good(is_ci()));
    if scope == Scope::All {
        println!("{}", changes::record(clean, lines.iter().all(|line| line.is_good(true))));
    }
    println!("{}", table::totals(&lines));
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The parts that run, with why if that isn't self-evident, and those that don't, with why not.
#[derive(Default)]
struct Plan {
    parts: Vec<(&'static Part, String)>,
    left_out: Vec<(&'static str, String)>,
}

fn plan(scope: Scope) -> Plan {
    let changed = (scope == Scope::Changed).then(changes::since_full_check);
    let mut plan = Plan::default();
    for part in PARTS {
        let why = match (part.files.is_empty(), &changed) {
            (true, _) => Ok(String::new()),
            (false, None) if scope == Scope::All => Ok(String::new()),
            (false, None) => Err("cargo xtask check --all".to_owned()),
            (false, Some(changed)) => changed.reason(part.files),
        };
        match why {
            Ok(why) => plan.parts.push((part, why)),
            Err(why) => plan.left_out.push((part.name, why)),
        }
    }
    plan
}

/// Says what is missing, and installs it if a person at a terminal wants it.
fn offer_setup(scope: Scope) {
    let missing: Vec<Requirement> =
        requirements(scope).into_iter().filter(|requirement| !requirement.is_there()).collect();
    for requirement in &missing {
        println!("── {}", setup::reason(*requirement));
    }
    let installable = missing.iter().any(Requirement::can_be_installed);
    if !installable || is_ci() || !std::io::stdin().is_terminal() {
        return;
    }
    let all: &[&str] = if scope == Scope::All { &["--all"] } else { &[] };
    print!("Run `cargo xtask setup` now? What is missing is skipped otherwise. [y/N] ");
    let _ = std::io::stdout().flush();
    let mut answer = String::new();
    if std::io::stdin().read_line(&mut answer).is_ok() && answer.trim().eq_ignore_ascii_case("y") {
        let _ = xtask(&[&["setup"], all].concat()).status();
    }
}

/// Runs a part, if what it needs is there, and says how long it took.
fn perform(part: &Part, is_built: bool) -> Line {
    let missing: Vec<Requirement> =
        part.needs.iter().copied().filter(|requirement| !requirement.is_there()).collect();
    if !missing.is_empty() {
        let why: Vec<String> = missing.iter().map(|requirement| setup::reason(*requirement)).collect();
        println!("── {}: not run, {}", part.name, why.join("; "));
        let excusable = missing.iter().any(|requirement| !requirement.can_be_installed());
        return Line {
            name: part.name,
            seconds: 0.0,
            verdict: Verdict::NotRun { excusable },
            note: why.join("; "),
        };
    }
    if part.is_built && !is_built {
        let verdict = Verdict::NotRun { excusable: false };
        return Line { name: part.name, seconds: 0.0, verdict, note: "the build failed".to_owned() };
    }
    let start = now();
    let (verdict, note) = match part.work {
        Work::Command(command) => (of_code(shown(part.name, &mut command())), String::new()),
        Work::Xtask(arguments) => (of_xtask(shown(part.name, &mut xtask(arguments))), String::new()),
        Work::Function(work) => work(part.name),
    };
    let seconds = start.elapsed().as_secs_f32();
    println!("── {}: {verdict} in {seconds:.0} s", part.name);
    Line { name: part.name, seconds, verdict, note }
}

/// Runs a command, shows its output as it comes, and keeps it to repeat its end if the part fails. Returns its exit code.
fn shown(name: &str, command: &mut Command) -> Option<i32> {
    println!("── {name}: {}", command_line(command));
    run_and_keep(command, &output_file(FOLDER, name), Show::AsItComes).ok().flatten()
}

/// Returns a command as a person would type it.
fn command_line(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

fn of_code(code: Option<i32>) -> Verdict {
    if code == Some(0) { Verdict::Passed } else { Verdict::Failed }
}

/// Our own chores end with 2 if something is missing.
fn of_xtask(code: Option<i32>) -> Verdict {
    if code == Some(2) { Verdict::NotRun { excusable: false } } else { of_code(code) }
}

/// Deletes what an earlier check recorded: only what runs now counts.
fn forget_records() {
    let _ = output_file(FOLDER, "any").parent().map(std::fs::remove_dir_all);
    for file in [documents::tests_file(), documents::examples_file(), documents::cases_file()] {
        let _ = std::fs::remove_file(file);
    }
}

#[expect(clippy::disallowed_methods, reason = "a chore may look at the clock")]
fn now() -> Instant {
    Instant::now()
}
