//! How many instructions a step takes: a figure that a busy machine does not change.

use std::process::{Command, ExitCode};

use crate::tools::works;

/// Each kind of step, and at which step of a session it is measured.
const MEASURED: [(&str, u32); 14] = [
    ("call:default", 100),
    ("call:default", 100_000),
    ("parse:default", 0),
    ("call-and-result:default", 100),
    ("call-and-failure:default", 100),
    ("call:behavioral", 100),
    ("call:signature", 100),
    ("call:doom-loop", 100),
    ("call:turn-similarity", 100),
    ("call:turn-hash", 100),
    ("call-and-result:behavioral", 100),
    ("call-and-result:signature", 100),
    ("call-and-result:doom-loop", 100),
    ("call-and-result:turn-similarity", 100),
];
/// How many steps are measured.
const STEPS: u32 = 2000;

pub fn run() -> ExitCode {
    if !works(Command::new("valgrind").arg("--version")) {
        println!(
            "valgrind is not installed here, so instructions cannot be counted: install the package `valgrind`"
        );
        return ExitCode::FAILURE;
    }
    println!("{:<34} {:>10} {:>22}", "step", "at step", "instructions per step");
    for (what, at) in MEASURED {
        // What happens before the first measured step is in both counts.
        let (Some(few), Some(many)) = (count(what, at, STEPS), count(what, at, 2 * STEPS)) else {
            println!(
                "{what}: callgrind gave no count; run `cargo bench -p deloop-engine --bench instructions` to see why"
            );
            return ExitCode::FAILURE;
        };
        println!("{what:<34} {at:>10} {:>22}", many.saturating_sub(few) / u64::from(STEPS));
    }
    ExitCode::SUCCESS
}

/// The instructions of one whole run.
fn count(what: &str, at: u32, steps: u32) -> Option<u64> {
    let runner =
        "target.'cfg(all())'.runner = ['valgrind', '--tool=callgrind', '--callgrind-out-file=/dev/null']";
    let output = crate::tools::cargo(&[
        "--config",
        runner,
        "bench",
        "-q",
        "-p",
        "deloop-engine",
        "--bench",
        "instructions",
        "--",
    ])
    .args([what, &at.to_string(), &steps.to_string()])
    .output()
    .ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    // ==123== Collected : 4567
    text.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().replace(',', "").parse().ok())
}
