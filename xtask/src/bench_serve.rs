//! The benchmark of `deloop serve`; it lives with the server, in crates/server/benches/load.

use std::process::ExitCode;

use crate::tools::{cargo, target_folder};

pub fn run(arguments: impl Iterator<Item = String>) -> ExitCode {
    let mut build = cargo(&["build", "--release", "--package", "deloop"]);
    if !build.status().is_ok_and(|status| status.success()) {
        return ExitCode::FAILURE;
    }
    let binary = target_folder().join("release/deloop");
    let mut bench = cargo(&["bench", "--package", "deloop-server", "--bench", "load", "--"]);
    bench.env("DELOOP_BENCH_BINARY", binary);
    let passed = bench.args(arguments).status().is_ok_and(|status| status.success());
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
