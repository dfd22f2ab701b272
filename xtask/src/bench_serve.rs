//! The benchmark of `deloop serve`; it lives with the command, in crates/deloop/benches/load.

use std::process::ExitCode;

use crate::tools::cargo;

pub fn run(arguments: impl Iterator<Item = String>) -> ExitCode {
    let mut bench = cargo(&["bench", "--profile", "dist", "--package", "deloop", "--bench", "load", "--"]);
    let passed = bench.args(arguments).status().is_ok_and(|status| status.success());
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
