//! The project's own chores: `cargo xtask check` does all set-up and runs every test.

mod check;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask check    format, lints, every test, docs, licences, and two minutes of fuzzing where that is possible
";

fn main() -> ExitCode {
    let task = std::env::args().nth(1);
    match task.as_deref() {
        Some("check") => check::run(),
        _ => {
            eprint!("{HELP}");
            ExitCode::from(2)
        }
    }
}
