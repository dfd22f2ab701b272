//! `cargo xtask e2e`: the real agents against a fake model, with deloop's hooks in them. See docs/e2e.md.

mod agents;
mod cases;
mod documents;
mod healthy;
mod hooks;
mod model;
mod passed;
mod persistence;
mod person;
mod place;
mod recovery;
mod retry;
mod sandbox;
mod seen;
mod server;
mod server_visit;
mod setup;
mod stall;
mod stand_in;
mod table;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use self::agents::{AGENTS, Agent};
use self::cases::{Case, Verdict};
use self::hooks::{Hooks, RealDeloop, StandIns};
use self::sandbox::Isolation;
use self::setup::Agents;
use self::table::Row;
use crate::tools::{build_deloop, debug_deloop, target_folder};

const HELP: &str = "\
cargo xtask e2e [AGENT…] [--case CASE]… [--stand-in | --deloop FILE] [--keep]

Runs real agents against a fake model, with deloop's hooks in them, and prints what came of each case.
  --case CASE      only this case, may be repeated
  --stand-in       shell scripts in deloop's place: tests the harness and what we know about the agents
  --deloop FILE    this binary; else the one that is built from this tree, for debugging
  --keep           keep the folder of every run, not only of those that failed
";

/// How many cases run at the same time.
const AT_A_TIME: usize = 4;

/// What was asked for.
struct Options {
    agents: Vec<&'static dyn Agent>,
    cases: Vec<Case>,
    /// Whether no case was named.
    unnamed: bool,
    stand_in: bool,
    deloop: Option<PathBuf>,
    keep: bool,
}

/// Does what the arguments after `e2e` say.
pub(crate) fn run(arguments: impl Iterator<Item = String>) -> ExitCode {
    match parse(arguments).and_then(|options| perform(&options)) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        agents: Vec::new(),
        cases: Vec::new(),
        unnamed: false,
        stand_in: false,
        deloop: None,
        keep: false,
    };
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--stand-in" => options.stand_in = true,
            "--keep" => options.keep = true,
            "--deloop" => options.deloop = Some(arguments.next().ok_or("--deloop needs a file")?.into()),
            "--case" => {
                let name = arguments.next().unwrap_or_default();
                let case = Case::ALL.into_iter().find(|case| case.name() == name);
                options.cases.push(
                    case.ok_or(format!("no case {name:?}; there are {}", names(&Case::ALL.map(Case::name))))?,
                );
            }
            name if !name.starts_with('-') => {
                let agent = AGENTS.into_iter().find(|agent| agent.name() == name);
                let known = AGENTS.map(|agent| agent.name());
                options.agents.push(agent.ok_or(format!("no agent {name:?}; there are {}", names(&known)))?);
            }
            _ => return Err(HELP.to_owned()),
        }
    }
    if options.agents.is_empty() {
        options.agents = AGENTS.to_vec();
    }
    if options.cases.is_empty() {
        options.cases = Case::ALL.to_vec();
        options.unnamed = true;
    }
    Ok(options)
}

fn names(names: &[&str]) -> String {
    names.join(", ")
}

fn perform(options: &Options) -> Result<ExitCode, String> {
    let agents = Agents::open(agents_folder());
    let missing: Vec<&str> =
        options.agents.iter().map(|agent| agent.name()).filter(|name| !is_installed(name)).collect();
    if !missing.is_empty() {
        return Err(format!("not installed: {}; cargo xtask setup --all", missing.join(", ")));
    }
    let outside = sandbox::isolation() == Isolation::None;
    let hooks = hooks(options, outside)?;
    if outside {
        if let Some(status) = sandbox::enter() {
            return Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)));
        }
        println!("no namespaces here: the agents could reach the network, and one case is skipped");
    }
    let rows = run_cases(options, &agents, &*hooks, &target_folder().join("e2e/runs"));
    println!("\n{}", table::render(&options.cases, &rows));
    if !options.stand_in {
        passed::write(&crate::documents::cases_file(), &rows).map_err(|e| format!("passed.txt: {e}"))?;
    }
    Ok(if rows.iter().any(Row::failed) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Runs the cases of all agents, several at a time, because an agent waits more than it computes.
fn run_cases(options: &Options, agents: &Agents, hooks: &dyn Hooks, runs: &Path) -> Vec<Row> {
    let of_agent = |agent: &&'static dyn Agent| {
        let agent = *agent;
        options.cases.iter().map(move |case| (agent, *case))
    };
    let mut pairs: Vec<(&dyn Agent, Case)> = options.agents.iter().flat_map(of_agent).collect();
    // What only waits comes first, so that nothing waits for it at the end.
    pairs.sort_by_key(|(_, case)| !case.waits());
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let work = || {
        while let Some((agent, case)) = pairs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let verdict = if options.unnamed && case.profile().is_some() && !agent.shows_documents() {
                Verdict::Skipped("runs only when --case names it".to_owned())
            } else {
                cases::run(*case, *agent, agents, hooks, runs)
            };
            if !options.keep && !matches!(verdict, Verdict::Failed(_)) {
                let _ = std::fs::remove_dir_all(runs.join(agent.name()).join(case.name()));
            }
            table::say(*agent, *case, &verdict);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((agent.name(), *case, verdict));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(work);
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(_, case, _)| options.cases.iter().position(|each| each == case));
    let mut rows: Vec<Row> = options.agents.iter().map(|agent| Row::new(*agent)).collect();
    for (agent, case, verdict) in done {
        if let Some(row) = rows.iter_mut().find(|row| row.agent() == agent) {
            row.add(case, verdict);
        }
    }
    rows
}

/// Returns what gets installed into the agents; the binary is built while the network is there.
fn hooks(options: &Options, build: bool) -> Result<Box<dyn Hooks>, String> {
    if options.stand_in {
        return Ok(Box::new(StandIns));
    }
    let binary = match &options.deloop {
        Some(binary) => std::path::absolute(binary).map_err(|e| e.to_string())?,
        None if build => build_deloop().ok_or("deloop does not build; --stand-in needs no deloop")?,
        None => debug_deloop(),
    };
    if binary.exists() {
        return Ok(Box::new(RealDeloop { binary }));
    }
    Err(format!("{} is not there; build it, or name one with --deloop", binary.display()))
}

fn agents_folder() -> PathBuf {
    target_folder().join("e2e/agents")
}

/// Whether the agent of this name, and the Node that agents run on, are installed. An agent without a package always is.
pub(crate) fn is_installed(name: &str) -> bool {
    let agents = Agents::open(agents_folder());
    let agent = AGENTS.into_iter().find(|agent| agent.name() == name);
    agents.has_node() && agent.is_some_and(|agent| agent.package().is_none_or(|package| agents.has(&package)))
}

/// Installs the agent of this name, and the Node that agents run on, under the target folder.
///
/// # Errors
/// When npm fails three times, or brings another version.
pub(crate) fn install(name: &str) -> Result<(), String> {
    let agents = Agents::open(agents_folder());
    let agent = AGENTS.into_iter().find(|agent| agent.name() == name).ok_or(format!("no agent {name:?}"))?;
    agents.install_node()?;
    agent.package().map_or(Ok(()), |package| agents.install(&package))
}

/// Whether this machine lets agents be kept apart from it.
pub(crate) fn has_namespaces() -> bool {
    sandbox::available()
}

/// Returns the names of all cases of all agents, as `e2e::AGENT::CASE`.
pub(crate) fn case_names() -> Vec<String> {
    let mut names = Vec::new();
    for agent in &AGENTS {
        names.extend(Case::ALL.iter().map(|case| format!("e2e::{}::{}", agent.name(), case.name())));
    }
    names
}
