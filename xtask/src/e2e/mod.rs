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

use std::path::PathBuf;
use std::process::ExitCode;

use self::agents::{AGENTS, Agent};
use self::cases::{Case, Verdict};
use self::hooks::{Hooks, RealDeloop, StandIns};
use self::sandbox::Isolation;
use self::setup::Agents;
use self::table::Row;
use crate::tools::{cargo, target_folder};

const HELP: &str = "\
cargo xtask e2e [AGENT…] [--case CASE]… [--stand-in | --deloop FILE]

Runs real agents against a fake model, with deloop's hooks in them, and prints what came of each case.
  --case CASE      only this case, may be repeated
  --stand-in       shell scripts in deloop's place: tests the harness and what we know about the agents
  --deloop FILE    this binary; else the workspace's own, built for release
";

/// What was asked for.
struct Options {
    agents: Vec<&'static dyn Agent>,
    cases: Vec<Case>,
    /// Whether no case was named.
    unnamed: bool,
    stand_in: bool,
    deloop: Option<PathBuf>,
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
    let mut options =
        Options { agents: Vec::new(), cases: Vec::new(), unnamed: false, stand_in: false, deloop: None };
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--stand-in" => options.stand_in = true,
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
    let folder = target_folder().join("e2e");
    let agents = Agents::open(folder.join("agents"))?;
    let outside = sandbox::isolation() == Isolation::None;
    let mut missing = Vec::new();
    for agent in &options.agents {
        if let Some(Err(message)) = agent.package().map(|package| agents.install(&package)) {
            missing.push((agent.name(), message));
        }
    }
    let hooks = hooks(options, outside)?;
    if outside {
        if let Some(status) = sandbox::enter() {
            return Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)));
        }
        println!("no namespaces here: the agents could reach the network, and one case is skipped");
    }
    let mut rows = Vec::new();
    for agent in &options.agents {
        let mut row = Row::new(*agent);
        for case in &options.cases {
            if options.unnamed && case.profile().is_some() && !agent.shows_documents() {
                row.add(*case, Verdict::Skipped("runs only when --case names it".to_owned()));
                continue;
            }
            let absent = missing.iter().find(|(name, _)| *name == agent.name());
            let verdict = match absent {
                Some((_, message)) => Verdict::Failed(message.clone()),
                None => cases::run(*case, *agent, &agents, &*hooks, &folder.join("runs")),
            };
            row.add(*case, verdict);
        }
        rows.push(row);
    }
    println!("\n{}", table::render(&options.cases, &rows));
    if !options.stand_in {
        passed::write(&folder.join("passed.txt"), &rows).map_err(|e| format!("passed.txt: {e}"))?;
    }
    Ok(if rows.iter().any(Row::failed) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Who gets installed; the binary is built while the network is there.
fn hooks(options: &Options, build: bool) -> Result<Box<dyn Hooks>, String> {
    if options.stand_in {
        return Ok(Box::new(StandIns));
    }
    let binary = match &options.deloop {
        Some(binary) => std::path::absolute(binary).map_err(|e| e.to_string())?,
        None => target_folder().join("release").join("deloop"),
    };
    if build && options.deloop.is_none() {
        let built = cargo(&["build", "--release", "--package", "deloop"]).status();
        if !built.is_ok_and(|status| status.success()) {
            return Err("deloop does not build; --stand-in needs no deloop".to_owned());
        }
    }
    if binary.exists() {
        return Ok(Box::new(RealDeloop { binary }));
    }
    Err(format!("{} is not there; build it, or name one with --deloop", binary.display()))
}

/// Returns the names of all cases of all agents, as `e2e::AGENT::CASE`.
pub(crate) fn case_names() -> Vec<String> {
    let mut names = Vec::new();
    for agent in &AGENTS {
        names.extend(Case::ALL.iter().map(|case| format!("e2e::{}::{}", agent.name(), case.name())));
    }
    names
}
