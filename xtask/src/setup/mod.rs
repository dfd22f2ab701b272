//! `cargo xtask setup`: installs what the check needs and this machine lacks. Nothing else installs anything.

mod debian;
mod requirement;

use std::path::PathBuf;
use std::process::ExitCode;

pub(crate) use self::requirement::{ADVISORY_DATABASE, Machine, Program, Quick, Requirement};
use crate::check::{self, Scope};
use crate::tools::target_folder;

const HELP: &str = "\
cargo xtask setup [--all] [--list]

Installs what `cargo xtask check` needs: Debian packages with apt-get (as root), everything else below target/.
  --all     what `cargo xtask check --all` needs
  --list    only list what is needed and what is missing
Exit code 2: something could not be installed.
";

/// Does what the arguments after `setup` say.
pub(crate) fn run(arguments: impl Iterator<Item = String>) -> ExitCode {
    let (mut scope, mut list) = (Scope::of_environment(), false);
    for argument in arguments {
        match argument.as_str() {
            "--all" => scope = Scope::All,
            "--list" => list = true,
            _ => {
                print!("{HELP}");
                return ExitCode::from(if argument == "--help" { 0 } else { 2 });
            }
        }
    }
    let needed = check::requirements(scope);
    for requirement in &needed {
        let state = if requirement.is_there() { "installed" } else { requirement.remedy() };
        println!("{:<32} {state}", requirement.name());
    }
    if list {
        return ExitCode::SUCCESS;
    }
    let failed = install(&needed);
    for (name, why) in &failed {
        println!("could not be installed: {name}: {why}");
    }
    remember(&failed);
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(2) }
}

/// Installs what is missing and can be installed. Returns what could not be, and why.
fn install(needed: &[Requirement]) -> Vec<(String, String)> {
    let is_missing = |requirement: &&Requirement| requirement.can_be_installed() && !requirement.is_there();
    let programs = needed.iter().filter(is_missing).filter_map(Requirement::packages);
    let packages: Vec<&str> = programs.flatten().copied().collect();
    let mut failed = Vec::new();
    if !packages.is_empty() {
        println!("installing {}", packages.join(", "));
        failed.extend(debian::install(&packages).err().map(|why| (packages.join(", "), why)));
    }
    for requirement in needed.iter().filter(is_missing).filter(|each| each.packages().is_none()) {
        println!("installing {}", requirement.name());
        failed.extend(requirement.install().err().map(|why| (requirement.name(), why)));
    }
    failed
}

/// Returns the file that holds what the last setup could not install.
fn failures_file() -> PathBuf {
    target_folder().join("setup-failures.txt")
}

fn remember(failed: &[(String, String)]) {
    let lines: String = failed.iter().map(|(names, _)| format!("{names}\n")).collect();
    let _ = std::fs::create_dir_all(target_folder());
    let _ = std::fs::write(failures_file(), lines);
}

/// Returns why something that is missing isn't there, and what to do about it.
pub(crate) fn reason(requirement: Requirement) -> String {
    let failures = std::fs::read_to_string(failures_file()).unwrap_or_default();
    let mut packages = requirement.packages().into_iter().flatten();
    let failed = failures
        .lines()
        .flat_map(|line| line.split(", "))
        .any(|name| name == requirement.name() || packages.any(|package| *package == name));
    let name = requirement.name();
    if failed {
        format!("{name} could not be installed")
    } else {
        format!("{name}: {}", requirement.remedy())
    }
}
