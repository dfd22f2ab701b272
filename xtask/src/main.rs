//! The project's own chores: `cargo xtask check` does all set-up and runs every test.

mod check;
mod e2e;
mod instructions;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask check                 format, lints, every test, docs, licences, and two minutes of fuzzing where that is possible
cargo xtask e2e                   the real agents against a fake model, with deloop's hooks in them; --help says more
cargo xtask bench-instructions    how many instructions a step takes, where valgrind is installed
";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("check") => check::run(),
        Some("e2e") => e2e::run(arguments),
        Some("bench-instructions") => instructions::run(),
        _ => {
            eprint!("{HELP}");
            ExitCode::from(2)
        }
    }
}
