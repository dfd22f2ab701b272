//! Everything that must hold before a change lands, in the order in which it is cheapest to fail.

use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

/// How long each fuzz target runs, in seconds: four of them make two minutes.
const FUZZ_SECONDS: u32 = 30;
const FUZZ_TARGETS: [&str; 4] = ["step", "normalise", "shell", "observe"];

pub fn run() -> ExitCode {
    let mut check = Check { failed: Vec::new(), skipped: Vec::new() };
    check.step("format", cargo(&["fmt", "--all", "--check"]));
    check.step("lints", cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]));
    check.step("tests", cargo(&["test", "--workspace"]));
    let mut docs = cargo(&["doc", "--workspace", "--no-deps"]);
    docs.env("RUSTDOCFLAGS", "-D warnings");
    check.step("docs", docs);
    check.decisions();
    check.optional(
        "phrases",
        cargo(&["xtask", "phrases"]),
        "there are no sets of sessions beside the repository",
    );
    check.step("report in a browser", cargo(&["xtask", "report-test"]));
    check.agents();
    check.licences();
    check.fuzz();
    check.report()
}

struct Check {
    failed: Vec<String>,
    skipped: Vec<String>,
}

impl Check {
    fn step(&mut self, name: &str, mut command: Command) {
        println!("── {name}: {command:?}");
        #[expect(clippy::disallowed_methods, reason = "a chore may look at the clock")]
        let start = Instant::now();
        let passed = command.status().is_ok_and(|status| status.success());
        println!("── {name}: {} in {:.0?}", if passed { "passed" } else { "FAILED" }, start.elapsed());
        if !passed {
            self.failed.push(name.to_owned());
        }
    }

    /// A step that says with exit code 2 that what it needs is not here.
    fn optional(&mut self, name: &str, mut command: Command, why: &str) {
        println!("── {name}: {command:?}");
        match command.status().ok().and_then(|status| status.code()) {
            Some(0) => println!("── {name}: passed"),
            Some(2) => self.skip(name, why),
            _ => self.failed.push(name.to_owned()),
        }
    }

    fn skip(&mut self, name: &str, why: &str) {
        println!("── {name}: skipped, {why}");
        self.skipped.push(format!("{name} ({why})"));
    }

    /// Decisions on the project's own sessions are the pinned ones.
    fn decisions(&mut self) {
        let Some(deloop) = built() else { return self.skip("decisions", "deloop could not be built") };
        let mut pin = cargo(&["xtask", "pin", "--deloop"]);
        pin.arg(deloop);
        self.step("decisions", pin);
    }

    /// Real agents with deloop in them, where npm can bring them.
    fn agents(&mut self) {
        let Some(deloop) = built() else { return self.skip("agents", "deloop could not be built") };
        let mut e2e = cargo(&["xtask", "e2e", "claude-code", "codex", "gemini", "--deloop"]);
        e2e.arg(deloop);
        println!("── agents: {e2e:?}");
        let mut run = || e2e.status().ok().and_then(|status| status.code());
        let mut code = run();
        if code == Some(1) {
            // Real agents and processes that are ended in time: on a busy machine one may be late.
            println!("── agents: a case failed; all of them once more");
            code = run();
        }
        match code {
            Some(0) => println!("── agents: passed"),
            Some(2) => self.skip("agents", "they could not be brought here; see above"),
            _ => self.failed.push("agents".to_owned()),
        }
    }

    fn licences(&mut self) {
        if works(cargo(&["deny", "--version"])) {
            self.step("licences", cargo(&["deny", "check", "licenses", "bans", "sources"]));
        } else {
            self.skip("licences", "cargo-deny is not installed");
        }
    }

    fn fuzz(&mut self) {
        if !works(cargo_nightly(&["--version"])) {
            return self.skip("fuzz", "there is no nightly toolchain");
        }
        if !works(cargo_nightly(&["fuzz", "--version"])) {
            return self.skip("fuzz", "cargo-fuzz is not installed");
        }
        for target in FUZZ_TARGETS {
            let time = format!("-max_total_time={FUZZ_SECONDS}");
            let seeds = format!("fuzz/seeds/{target}");
            let corpus = format!("fuzz/corpus/{target}");
            let _ = std::fs::create_dir_all(&corpus);
            let arguments =
                ["fuzz", "run", target, &corpus, &seeds, "--", &time, "-timeout=10", "-rss_limit_mb=4096"];
            self.step(&format!("fuzz {target}"), cargo_nightly(&arguments));
        }
    }

    fn report(self) -> ExitCode {
        for skipped in &self.skipped {
            println!("skipped: {skipped}");
        }
        if self.failed.is_empty() {
            println!("everything passed");
            return ExitCode::SUCCESS;
        }
        println!("failed: {}", self.failed.join(", "));
        ExitCode::FAILURE
    }
}

/// The command that the tests were run with.
fn built() -> Option<std::path::PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    std::path::Path::new(&target).join("debug").join("deloop").canonicalize().ok()
}

pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    command
}

fn cargo_nightly(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    // The variables of the toolchain that runs this would win over the one named here.
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").arg("+nightly").args(arguments);
    command
}

fn works(mut command: Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}
