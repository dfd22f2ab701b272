//! The benchmark of `deloop scan`; it lives with the command, in crates/deloop/benches/scan.

use std::process::{Command, ExitCode};

pub fn run(arguments: impl Iterator<Item = String>) -> ExitCode {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut bench = Command::new(cargo);
    bench.args(["bench", "--package", "deloop", "--bench", "scan", "--"]).args(arguments);
    if bench.status().is_ok_and(|status| status.success()) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
