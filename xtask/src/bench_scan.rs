//! The benchmark of `deloop scan`; it lives with the command, in crates/deloop/benches/scan.

use std::process::ExitCode;

use crate::tools::cargo;

pub fn run(arguments: impl Iterator<Item = String>) -> ExitCode {
    let mut bench = cargo(&["bench", "--package", "deloop", "--bench", "scan", "--"]);
    let passed = bench.args(arguments).status().is_ok_and(|status| status.success());
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
