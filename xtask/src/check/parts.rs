//! The parts of the check, in the order in which they run.

use std::process::Command;

use super::table::Verdict;
use super::{dependencies, of_code, shown, tests, unsafe_code};
use crate::bindings::Language;
use crate::documents;
use crate::output::{Show, append, output_file, run_and_keep};
use crate::setup::{Machine, Program, Quick, Requirement};
use crate::tools::{CARGO_DENY, CARGO_FUZZ, NEXTEST, build_everything, cargo, target_folder};

/// One part: a line of the table.
pub(super) struct Part {
    pub(super) name: &'static str,
    pub(super) needs: &'static [Requirement],
    /// Whether it uses what the part `build` builds.
    pub(super) is_built: bool,
    /// For a part that only the full check has: the files, and the folders with a slash behind them, that make CI run it
    /// when they have changed.
    pub(super) files: &'static [&'static str],
    pub(super) work: Work,
}

pub(super) enum Work {
    Command(fn() -> Command),
    /// A chore of this program, which ends with 2 if something is missing.
    Xtask(&'static [&'static str]),
    /// Returns what came of it, and what was skipped.
    Function(fn(&'static str) -> (Verdict, String)),
}

const NODE: Requirement = Requirement::Program(Program::Node);
const PYTHON: Requirement = Requirement::Program(Program::Python);
const CHROMIUM: Requirement = Requirement::Program(Program::Chromium);
/// A part of every check.
const fn part(name: &'static str, needs: &'static [Requirement], work: Work) -> Part {
    Part { name, needs, is_built: true, files: &[], work }
}

/// A part of every check that builds for itself.
const fn unbuilt(name: &'static str, needs: &'static [Requirement], work: Work) -> Part {
    Part { name, needs, is_built: false, files: &[], work }
}

/// A part of the full check.
const fn full(
    name: &'static str,
    needs: &'static [Requirement],
    files: &'static [&'static str],
    work: Work,
) -> Part {
    Part { name, needs, is_built: true, files, work }
}

pub(super) const PARTS: &[Part] = &[
    unbuilt("format", &[], Work::Command(|| cargo(&["fmt", "--all", "--check"]))),
    unbuilt("shape", &[], Work::Function(shape)),
    unbuilt("library", &[], Work::Function(library)),
    unbuilt("licences", &[Requirement::Tool(&CARGO_DENY)], Work::Command(licences)),
    unbuilt("yanked crates", &[], Work::Function(dependencies::yanked)),
    unbuilt(
        "advisories",
        &[Requirement::Tool(&CARGO_DENY), Requirement::Machine(Machine::AdvisoryDatabase)],
        Work::Function(dependencies::advisories),
    ),
    unbuilt("unsafe code", &[], Work::Function(unsafe_code::check)),
    unbuilt("lints", &[], Work::Command(lints)),
    unbuilt("build", &[], Work::Command(build_everything)),
    part("tests", &[Requirement::Tool(&NEXTEST)], Work::Function(tests::run)),
    part("doc tests", &[], Work::Command(|| cargo(&["test", "--workspace", "--doc"]))),
    part("examples", &[], Work::Function(examples)),
    unbuilt("docs", &[], Work::Command(docs)),
    unbuilt("packages for publishing", &[], Work::Command(packages)),
    part("decisions", &[], Work::Xtask(&["pin"])),
    part("phrases", &[Requirement::Machine(Machine::SharedSessions)], Work::Xtask(&["phrases"])),
    part("OpenAPI document", &[PYTHON, Requirement::Schemathesis], Work::Xtask(&["openapi-test"])),
    part(
        "Claude Code, harness",
        &[NODE, Requirement::Agent("claude-code")],
        Work::Xtask(&["e2e", "claude-code", "harness"]),
    ),
    part("documents", &[], Work::Xtask(&["documents", "--ran"])),
    part(
        "Python package",
        &[PYTHON, Requirement::Bindings(Language::Python, Quick(true))],
        Work::Xtask(&["bindings", "--quick", "python"]),
    ),
    part(
        "Node package",
        &[NODE, Requirement::Bindings(Language::Node, Quick(true))],
        Work::Xtask(&["bindings", "--quick", "node"]),
    ),
    full(
        "memory of 100,000 sessions",
        &[Requirement::Tool(&NEXTEST)],
        &["crates/types/", "crates/detect/", "crates/policy/", "crates/engine/", "crates/store/"],
        Work::Command(tests::memory),
    ),
    full(
        "1,000 random sessions",
        &[Requirement::Tool(&NEXTEST)],
        &["conformance/", "crates/types/", "crates/detect/", "crates/policy/", "crates/engine/"],
        Work::Command(tests::random_sessions),
    ),
    full(
        "other agents",
        &[
            NODE,
            Requirement::Agent("codex"),
            Requirement::Agent("gemini"),
            Requirement::Agent("qwen"),
            Requirement::Agent("copilot"),
            Requirement::Agent("opencode"),
        ],
        &[
            "crates/cli/src/hook/",
            "crates/cli/src/install/",
            "crates/cli/src/run/",
            "crates/formats/src/agents/",
            "crates/formats/src/hooks/",
            "crates/live/",
            "plugins/",
            "xtask/src/e2e/",
        ],
        Work::Xtask(&["e2e", "codex", "gemini", "qwen", "copilot", "opencode"]),
    ),
    full(
        "packages as handed out, all frameworks",
        &[
            PYTHON,
            NODE,
            Requirement::Bindings(Language::Python, Quick(false)),
            Requirement::Bindings(Language::Node, Quick(false)),
        ],
        &["bindings/", "crates/bind/", "docs/frameworks/", "xtask/src/bindings/", "Cargo.toml"],
        Work::Xtask(&["bindings"]),
    ),
    full(
        "report in a browser",
        &[NODE, CHROMIUM, Requirement::Playwright],
        &["crates/cli/src/scan/", "xtask/src/report_test/"],
        Work::Xtask(&["report-test"]),
    ),
    full(
        "fuzzing",
        &[Requirement::Machine(Machine::Nightly), Requirement::Tool(&CARGO_FUZZ)],
        &[
            "fuzz/",
            "crates/types/",
            "crates/detect/src/reading/",
            "crates/detect/src/history/",
            "crates/engine/",
            "crates/policy/",
            "crates/server/src/routes/",
            "crates/server/src/step_batch.rs",
            "crates/live/",
            "crates/formats/src/hooks/",
            "crates/formats/src/agents/",
        ],
        Work::Function(fuzz),
    ),
];

fn lints() -> Command {
    cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
}

fn docs() -> Command {
    let mut docs = cargo(&["doc", "--workspace", "--no-deps"]);
    docs.env("RUSTDOCFLAGS", "-D warnings");
    docs
}

fn packages() -> Command {
    cargo(&["publish", "--workspace", "--dry-run", "--no-verify", "--allow-dirty", "--quiet"])
}

fn licences() -> Command {
    let mut deny = CARGO_DENY.program().map_or_else(|| Command::new(CARGO_DENY.name), Command::new);
    deny.args(["check", "licenses", "bans", "sources"]);
    deny
}

/// Fails when a type name has two meanings, and only notes a file that is too long.
fn shape(name: &'static str) -> (Verdict, String) {
    match shown(name, &mut crate::tools::xtask(&["shape"])) {
        Some(2) => (Verdict::Passed, "a file is too long".to_owned()),
        code => (of_code(code), String::new()),
    }
}

/// Crates that only the command needs.
const COMMAND_ONLY: [&str; 6] = ["clap", "rusqlite", "comfy_table", "indicatif", "tokio", "deloop_cli"];

/// Checks that the library alone needs nothing of the command.
fn library(_: &'static str) -> (Verdict, String) {
    let tree = ["tree", "--package", "deloop", "--no-default-features", "--edges", "normal"];
    let output = cargo(&tree).args(["--prefix", "none", "--format", "{lib}"]).output();
    let crates =
        output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let found: Vec<&str> = crates.lines().filter(|name| COMMAND_ONLY.contains(name)).collect();
    if found.is_empty() && crates.contains("deloop_engine") {
        return (Verdict::Passed, String::new());
    }
    println!("── the library depends on {}", found.join(", "));
    (Verdict::Failed, String::new())
}

/// Runs the examples, which assert what they show.
fn examples(name: &'static str) -> (Verdict, String) {
    let files = std::fs::read_dir("crates/deloop/examples").into_iter().flatten().flatten();
    let mut names: Vec<String> =
        files.filter_map(|file| Some(file.path().file_stem()?.to_str()?.to_owned())).collect();
    names.sort();
    let mut verdict = if names.is_empty() { Verdict::Failed } else { Verdict::Passed };
    for example in names {
        let mut program = Command::new(target_folder().join("debug/examples").join(&example));
        if shown(name, &mut program) == Some(0) {
            append(&documents::examples_file(), &format!("example::{example}\n"));
        } else {
            verdict = Verdict::Failed;
        }
    }
    (verdict, String::new())
}

/// How long each fuzz target runs, in seconds: eight of them make less than three minutes.
const FUZZ_SECONDS: &str = "20";
const FUZZ_TARGETS: [&str; 8] =
    ["step", "normalise", "shell", "observe", "configuration", "checkpoint", "requests", "hook"];

/// Fuzzes each target with libFuzzer.
fn fuzz(name: &'static str) -> (Verdict, String) {
    let mut verdict = Verdict::Passed;
    for target in FUZZ_TARGETS {
        let corpus = format!("fuzz/corpus/{target}");
        let _ = std::fs::create_dir_all(&corpus);
        let mut fuzz = CARGO_FUZZ.program().map_or_else(|| Command::new(CARGO_FUZZ.name), Command::new);
        fuzz.env("RUSTUP_TOOLCHAIN", "nightly").env_remove("CARGO");
        fuzz.args(["fuzz", "run", target, &corpus, &format!("fuzz/seeds/{target}"), "--"]);
        fuzz.args([&format!("-max_total_time={FUZZ_SECONDS}"), "-timeout=10", "-rss_limit_mb=4096"]);
        println!("── {name}: {target}");
        // A fuzzer prints a lot that helps nobody unless it finds something.
        let code = run_and_keep(&mut fuzz, &output_file(super::FOLDER, name), Show::OnFailure).ok().flatten();
        if code != Some(0) {
            verdict = Verdict::Failed;
            break;
        }
    }
    (verdict, String::new())
}
