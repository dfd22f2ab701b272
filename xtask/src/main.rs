//! The project's own chores: `cargo xtask setup` installs what they need, and `cargo xtask check` runs every test.

mod bench_scan;
mod bench_serve;
mod bindings;
mod check;
mod documents;
mod e2e;
mod harness;
mod instructions;
mod openapi_test;
mod output;
mod phrases;
mod pin;
mod prices;
mod registry;
mod report_test;
mod setup;
mod shape;
mod sources;
mod tools;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask setup                 install what the check needs and this machine lacks; see --help
cargo xtask check                 run everything that must pass before a change is merged; see --help
cargo xtask e2e                   run real agents with deloop hooks against a fake model; see --help
cargo xtask report-test           test the page of `deloop scan --html` in a headless browser
cargo xtask openapi-test          compare a running `deloop serve` with its OpenAPI document, with schemathesis
cargo xtask bindings              test the Python and Node packages by themselves and inside the frameworks; see --help
cargo xtask documents             check that every sentence in docs/documents has a test; see --help
cargo xtask shape                 count lines and files; list long files and type names that are defined twice
cargo xtask phrases               check that each phrase of the vocabulary occurs in more than one project
cargo xtask pin                   compare decisions on corpus/ with the pinned ones; see --help
cargo xtask prices                make crates/policy/prices.tsv from LiteLLM's table; see --help
cargo xtask bench-scan            measure speed and memory of a scan of 1 GB
cargo xtask bench-serve           measure the load that `deloop serve` takes; --kept-sessions 1000000 for many sessions,
                                  --neighbours for steps beside an attack
cargo xtask bench-instructions    count the instructions of a step, with valgrind
";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("setup") => setup::run(arguments),
        Some("check") => check::run(arguments),
        Some("bindings") => bindings::run(arguments),
        Some("documents") => documents::run(arguments),
        Some("e2e") => e2e::run(arguments),
        Some("harness") => harness::run(arguments),
        Some("report-test") => report_test::run(),
        Some("openapi-test") => openapi_test::run(arguments),
        Some("phrases") => phrases::run(),
        Some("shape") => shape::run(),
        Some("pin") => pin::run(arguments),
        Some("prices") => prices::run(arguments),
        Some("bench-scan") => bench_scan::run(arguments),
        Some("bench-serve") => bench_serve::run(arguments),
        Some("bench-instructions") => instructions::run(),
        _ => {
            eprint!("{HELP}");
            ExitCode::from(2)
        }
    }
}
