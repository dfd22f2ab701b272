//! Everything that must hold before a change lands, in the order in which it is cheapest to fail.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

use crate::documents;
use crate::output::{Show, append, end_of_output, output_file, run_and_keep};
use crate::tools::{CARGO_DENY, CARGO_FUZZ, build_deloop, cargo, target_folder, works};

/// How long each fuzz target runs, in seconds: four of them make two minutes.
const FUZZ_SECONDS: &str = "30";
const FUZZ_TARGETS: [&str; 4] = ["step", "normalise", "shell", "observe"];
/// Crates that only the command needs.
const COMMAND_ONLY: [&str; 6] = ["clap", "rusqlite", "comfy_table", "indicatif", "tokio", "deloop_cli"];
/// How much of what a failed step printed is repeated at the end, in lines.
const REPEATED_LINES: usize = 80;
/// How much of what a failed test said is repeated at the end, in lines.
const FAILURE_LINES: usize = 8;
/// The folder below the target folder that has what was recorded.
const FOLDER: &str = "check";
const EXAMPLES: &str = "crates/deloop/examples";

pub fn run() -> ExitCode {
    let mut check = Check { failed: Vec::new(), skipped: Vec::new(), warned: Vec::new() };
    forget_records();
    check.step("format", &mut cargo(&["fmt", "--all", "--check"]));
    check.step("lints", &mut cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]));
    check.shape();
    check.recorded_step("tests", &mut cargo(&["test", "--workspace", "--no-fail-fast"]));
    // With `--workspace`, as above: a part of it would have other features, and everything would be built again.
    let memory = ["test", "--workspace", "--test", "memory", "--", "--ignored"];
    check.recorded_step("memory of 100,000 sessions", &mut cargo(&memory));
    check.step("docs", cargo(&["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"));
    check.examples();
    check.library();
    let publish = ["publish", "--workspace", "--dry-run", "--no-verify", "--allow-dirty", "--quiet"];
    check.step("packages", &mut cargo(&publish));
    check.through_the_command();
    check.optional("bindings", &mut cargo(&["xtask", "bindings"]), "see above");
    check.optional(
        "phrases",
        &mut cargo(&["xtask", "phrases"]),
        "there are no sets of sessions beside the repository",
    );
    check.optional("report in a browser", &mut cargo(&["xtask", "report-test"]), "see above");
    check.licences();
    check.fuzz();
    check.report()
}

struct Check {
    failed: Vec<String>,
    skipped: Vec<String>,
    warned: Vec<String>,
}

impl Check {
    fn step(&mut self, name: &str, command: &mut Command) {
        if perform_shown(name, command) != Some(0) {
            self.failed.push(name.to_owned());
        }
    }

    /// Runs tests, and records their names and results for `cargo xtask documents`.
    fn recorded_step(&mut self, name: &str, command: &mut Command) {
        if perform(name, command, &documents::tests_file(), Show::AsItComes) != Some(0) {
            self.failed.push(name.to_owned());
        }
    }

    /// Fails when a type name has two meanings, and warns when a file is too long.
    fn shape(&mut self) {
        match perform_shown("shape", &mut cargo(&["xtask", "shape"])) {
            Some(0) => {}
            Some(2) => self.warned.push("shape (a file is too long)".to_owned()),
            _ => self.failed.push("shape".to_owned()),
        }
    }

    /// Runs a step that ends with exit code 2 when the machine lacks what it needs.
    fn optional(&mut self, name: &str, command: &mut Command, why: &str) {
        match perform_shown(name, command) {
            Some(0) => {}
            Some(2) => self.skip(name, why),
            _ => self.failed.push(name.to_owned()),
        }
    }

    fn skip(&mut self, name: &str, why: &str) {
        println!("── {name}: skipped, {why}");
        self.skipped.push(format!("{name} ({why})"));
    }

    /// Runs the examples, which assert what they show.
    fn examples(&mut self) {
        self.step("examples", &mut cargo(&["build", "--workspace", "--examples"]));
        let files = std::fs::read_dir(EXAMPLES).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            files.filter_map(|file| Some(file.path().file_stem()?.to_str()?.to_owned())).collect();
        names.sort();
        for name in names {
            let mut example = Command::new(target_folder().join("debug/examples").join(&name));
            match perform_shown(&format!("example {name}"), &mut example) {
                Some(0) => append(&documents::examples_file(), &format!("example::{name}\n")),
                _ => self.failed.push(format!("example {name}")),
            }
        }
    }

    /// Checks that the library alone needs nothing of the command.
    fn library(&mut self) {
        let tree = ["tree", "--package", "deloop", "--no-default-features", "--edges", "normal"];
        let output = cargo(&tree).args(["--prefix", "none", "--format", "{lib}"]).output();
        let crates = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        let crates = crates.unwrap_or_default();
        let found: Vec<&str> = crates.lines().filter(|name| COMMAND_ONLY.contains(name)).collect();
        println!("── library: {} dependencies", crates.lines().count());
        if !found.is_empty() || !crates.contains("deloop_engine") {
            println!("── library: did not pass, it depends on {}", found.join(", "));
            self.failed.push("library".to_owned());
        }
    }

    /// Compares decisions with the pinned ones and the server with its OpenAPI document, and runs real agents with deloop in them where npm can install them.
    fn through_the_command(&mut self) {
        let Some(deloop) = build_deloop() else { return self.failed.push("build".to_owned()) };
        self.step("decisions", cargo(&["xtask", "pin", "--deloop"]).arg(&deloop));
        let mut openapi = cargo(&["xtask", "openapi-test", "--deloop"]);
        self.optional(
            "OpenAPI document",
            openapi.arg(&deloop),
            "schemathesis could not be installed; see above",
        );
        let mut e2e = cargo(&["xtask", "e2e", "claude-code", "codex", "gemini", "harness", "--deloop"]);
        let skipped = self.skipped.len();
        self.optional("agents", e2e.arg(deloop), "they could not be installed; see above");
        let mut rows = cargo(&["xtask", "documents", "--ran"]);
        if self.skipped.len() > skipped {
            rows.arg("--no-agents");
        }
        self.step("documents", &mut rows);
    }

    fn licences(&mut self) {
        match CARGO_DENY.installed() {
            Ok(deny) => {
                self.step("licences", Command::new(deny).args(["check", "licenses", "bans", "sources"]));
            }
            Err(why) => self.skip("licences", &why),
        }
    }

    /// Fuzzes with libFuzzer where there is a nightly compiler, else with random changes to the seeds.
    fn fuzz(&mut self) {
        if !works(&mut cargo_nightly(&["--version"])) {
            let mut seeds = cargo(&["test", "--package", "deloop-engine", "--test", "fuzz_seeds"]);
            return self.step("fuzz (stable)", seeds.env("DELOOP_FUZZ_SECONDS", FUZZ_SECONDS));
        }
        let tool = match CARGO_FUZZ.installed() {
            Ok(tool) => tool,
            Err(why) => return self.skip("fuzz", &why),
        };
        for target in FUZZ_TARGETS {
            let time = format!("-max_total_time={FUZZ_SECONDS}");
            let seeds = format!("fuzz/seeds/{target}");
            let corpus = format!("fuzz/corpus/{target}");
            let _ = std::fs::create_dir_all(&corpus);
            let mut fuzz = Command::new(&tool);
            fuzz.env("RUSTUP_TOOLCHAIN", "nightly").env_remove("CARGO");
            fuzz.args(["fuzz", "run", target, &corpus, &seeds, "--", &time]);
            fuzz.args(["-timeout=10", "-rss_limit_mb=4096"]);
            let name = format!("fuzz {target}");
            if perform(&name, &mut fuzz, &output_file(FOLDER, &name), Show::OnFailure) != Some(0) {
                self.failed.push(name);
            }
        }
    }

    fn report(self) -> ExitCode {
        for skipped in &self.skipped {
            println!("skipped: {skipped}");
        }
        for warned in &self.warned {
            println!("warning: {warned}");
        }
        if self.failed.is_empty() {
            println!("everything passed");
            return ExitCode::SUCCESS;
        }
        for name in &self.failed {
            let file = output_file(FOLDER, name);
            if file.exists() {
                print!("{}", end_of_output(name, &file, REPEATED_LINES));
            }
        }
        print!("{}", why_tests_failed());
        println!("failed: {}", self.failed.join(", "));
        ExitCode::FAILURE
    }
}

/// Returns what the tests that failed said, to repeat it at the end of a long output.
fn why_tests_failed() -> String {
    let output = std::fs::read_to_string(documents::tests_file()).unwrap_or_default();
    let mut lines = output.lines();
    let mut said = String::new();
    while let Some(line) = lines.next() {
        if line.starts_with("---- ") && line.ends_with(" stdout ----") {
            let what = lines.by_ref().filter(|line| !line.is_empty()).take(FAILURE_LINES);
            said.extend(std::iter::once(line).chain(what).flat_map(|line| [line, "\n"]));
        }
    }
    said
}

/// Deletes what an earlier check recorded: only what runs now counts.
fn forget_records() {
    let _ = output_file(FOLDER, "any").parent().map(std::fs::remove_dir_all);
    for file in [documents::tests_file(), documents::examples_file(), documents::cases_file()] {
        let _ = std::fs::remove_file(file);
    }
}

/// Runs a command, shows its output as it comes, and keeps it to repeat its end if the step fails.
fn perform_shown(name: &str, command: &mut Command) -> Option<i32> {
    perform(name, command, &output_file(FOLDER, name), Show::AsItComes)
}

/// Runs a command, keeps its output in a file, and prints what came of it and how long it took; its exit code.
fn perform(name: &str, command: &mut Command, file: &Path, show: Show) -> Option<i32> {
    println!("── {name}: {command:?}");
    #[expect(clippy::disallowed_methods, reason = "a chore may look at the clock")]
    let start = Instant::now();
    let code = run_and_keep(command, file, show).ok().flatten();
    let verdict = if code == Some(0) { "passed" } else { "did not pass" };
    println!("── {name}: {verdict} in {:.0?}", start.elapsed());
    code
}

fn cargo_nightly(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    // The variables of the toolchain that runs this would win over the one named here.
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").arg("+nightly").args(arguments);
    command
}
