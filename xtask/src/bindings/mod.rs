//! The Python and Node packages, tested by themselves and inside the frameworks.

mod node;
mod parts;
mod python;
pub(crate) mod setup;
mod table;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::tools::target_folder;
use parts::{Plan, Run};

const HELP: &str = "\
cargo xtask bindings [--profile NAME] [--update] [PART…]   test the packages as they are handed out
cargo xtask bindings --quick [PART…]                       test what `cargo build` has built, in two frameworks
cargo xtask bindings setup [--quick]                       install what these runs need
cargo xtask bindings --list [--quick]                      list the parts

The full run builds the Python and Node packages with a cargo profile [default: dist], installs them from files, and tests
them by themselves and in each framework. Then it compares the table in docs/frameworks with what was measured; --update
writes it.

The quick run builds nothing but the workspace with the dev profile, which the tests need too. It tests the packages by
themselves, in openai-agents (Python) and in ai-6 (Node).

A PART is one of --list, or `python`, `node` or `table`. Without one, all parts run. A run installs nothing: a part whose
packages aren't there isn't run and is listed.

Exit code 0: all passed; 1: a part failed; 2: none failed, but something isn't installed.
";

/// The folder below the target folder that has what was installed, built and measured.
const FOLDER: &str = "bindings";

pub fn run(arguments: impl Iterator<Item = String>) -> ExitCode {
    let mut plan = Plan { quick: false, profile: "dist".to_owned(), update: false, wanted: Vec::new() };
    let (mut setup, mut list) = (false, false);
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "setup" => setup = true,
            "--list" => list = true,
            "--quick" => plan.quick = true,
            "--update" => plan.update = true,
            "--profile" => plan.profile = arguments.next().unwrap_or_default(),
            "--help" => {
                print!("{HELP}");
                return ExitCode::SUCCESS;
            }
            name if plan.knows(name) => plan.wanted.push(argument),
            _ => {
                print!("{HELP}");
                eprintln!("\nthere is no `{argument}`; --list prints the parts");
                return ExitCode::FAILURE;
            }
        }
    }
    if setup {
        return setup::run(plan.quick);
    }
    if list {
        println!("{}", plan.parts().join("\n"));
        return ExitCode::SUCCESS;
    }
    Run::new(plan).all()
}

/// Returns the root of the repository.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the folder with the installations, where the test runners look for them.
fn installations() -> PathBuf {
    target_folder().join(FOLDER)
}
