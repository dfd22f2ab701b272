//! The project's own chores: `cargo xtask check` does all set-up and runs every test.

mod bench_scan;
mod check;
mod e2e;
mod instructions;
mod phrases;
mod pin;
mod report_test;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask check                 format, lints, every test, docs, licences, and two minutes of fuzzing where that is possible
cargo xtask e2e                   the real agents against a fake model, with deloop's hooks in them; --help says more
cargo xtask report-test           the page of `deloop scan --html` in a headless browser
cargo xtask phrases               whether each phrase of the vocabulary occurs in more than one project, where sets of sessions are there
cargo xtask pin                   whether decisions on corpus/ are the pinned ones; --help says more
cargo xtask bench-scan            how fast a scan of 1 GB is, and what memory it takes; makes its own data once
cargo xtask bench-instructions    how many instructions a step takes, where valgrind is installed
";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("check") => check::run(),
        Some("e2e") => e2e::run(arguments),
        Some("report-test") => report_test::run(),
        Some("phrases") => phrases::run(),
        Some("pin") => pin::run(arguments),
        Some("bench-scan") => bench_scan::run(arguments),
        Some("bench-instructions") => instructions::run(),
        _ => {
            eprint!("{HELP}");
            ExitCode::from(2)
        }
    }
}
