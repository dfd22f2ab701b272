//! The Python and Node packages: built, installed from files without Rust on the PATH, and tested inside the frameworks.

mod python;
mod table;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::output::{Show, end_of_output, output_file, run_and_keep};
use crate::tools::{target_folder, works};
use python::PythonTools;

const HELP: &str = "\
cargo xtask bindings [python] [node] [table] [--profile NAME] [--update]

Builds the Python and Node packages with this cargo profile [default: dist], installs them from files, and runs their
tests: the core, and each adapter against the real framework. Then compares the table in docs/frameworks with what the runs
measured; --update writes it. Without names, it does all of this.
";

/// How much of what a failed step printed is repeated, in lines.
const REPEATED_LINES: usize = 30;
/// The folder below the target folder that has what was built and measured.
const FOLDER: &str = "bindings";

pub fn run(arguments: impl Iterator<Item = String>) -> ExitCode {
    let mut wanted = Vec::new();
    let (mut profile, mut update) = ("dist".to_owned(), false);
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "python" | "node" | "table" => wanted.push(argument),
            "--update" => update = true,
            "--profile" => profile = arguments.next().unwrap_or_default(),
            _ => {
                print!("{HELP}");
                return ExitCode::from(if argument == "--help" { 0 } else { 2 });
            }
        }
    }
    let wants = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    let mut steps = Steps { profile, failed: Vec::new(), skipped: Vec::new() };
    if wants("python") {
        steps.python();
    }
    if wants("node") {
        steps.node();
    }
    if wants("table") && steps.failed.is_empty() && steps.skipped.is_empty() {
        steps.table(update);
    }
    steps.report()
}

/// Returns the root of the repository.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

struct Steps {
    profile: String,
    failed: Vec<String>,
    skipped: Vec<String>,
}

impl Steps {
    /// Runs a step. A program ends with 2 when the machine lacks what it needs. Returns whether it passed.
    fn step(&mut self, name: &str, command: &mut Command) -> bool {
        println!("── {name}: {command:?}");
        let output = output_file(FOLDER, name);
        let _ = std::fs::remove_file(&output);
        match run_and_keep(command.current_dir(repository()), &output, Show::AsItComes).ok().flatten() {
            Some(0) => return true,
            Some(2) => self.skipped.push(format!("{name}: its packages can't be installed; see above")),
            _ => self.failed.push(name.to_owned()),
        }
        false
    }

    /// Returns the frameworks that a program tests, which it lists one a line.
    fn listed(&mut self, name: &str, program: &mut Command) -> Vec<String> {
        let output = program.arg("--list").current_dir(repository()).output();
        let names =
            output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        if names.is_empty() {
            self.failed.push(name.to_owned());
        }
        names.lines().map(str::to_owned).collect()
    }

    fn python(&mut self) {
        let tools = match PythonTools::installed() {
            Ok(tools) => tools,
            Err(why) => return self.skipped.push(format!("Python: {why}")),
        };
        let wheels = target_folder().join("bindings/wheels");
        let build = ["bindings/python/build_wheel.py", "--profile", &self.profile, "--out"];
        if !self.step("wheel", tools.python().args(build).arg(&wheels)) {
            return;
        }
        let Some(wheel) = only_file(&wheels, ".whl") else { return self.failed.push("wheel".to_owned()) };
        self.step("wheel, installed", tools.python().arg("bindings/python/tests/wheel_check.py").arg(&wheel));
        let install = ["-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall"];
        if self.step("wheel, for the tests", tools.python().args(install).arg(&wheel)) {
            let mut core = tools.python();
            core.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "bindings/python/tests"]);
            core.args(["--ignore", "bindings/python/tests/frameworks"]);
            self.step("Python", core.env("DELOOP_BINARY", self.command()));
        }
        let frameworks = "bindings/python/tests/run.py";
        for name in self.listed("Python frameworks", tools.python().arg(frameworks)) {
            let mut test = tools.python();
            test.arg(frameworks).arg(&name).arg("--wheel").arg(&wheel);
            self.step(&format!("Python, {name}"), &mut test);
        }
    }

    fn node(&mut self) {
        let version = Command::new("node").arg("--version").output();
        let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        let major = version.ok().and_then(|text| text.strip_prefix('v')?.split('.').next()?.parse().ok());
        if major.is_none_or(|major: u32| major < 20) || !works(Command::new("npm").arg("--version")) {
            return self.skipped.push("Node: there is no Node 20 or later with npm".to_owned());
        }
        let mut build = Command::new("node");
        build.args(["bindings/node/scripts/build.mjs", "--profile", &self.profile]);
        if self.step("Node package", &mut build) {
            self.step("Node", Command::new("node").arg("bindings/node/scripts/test.mjs"));
            let frameworks = "bindings/node/test/run.mjs";
            for name in self.listed("Node frameworks", Command::new("node").arg(frameworks)) {
                self.step(&format!("Node, {name}"), Command::new("node").args([frameworks, &name]));
            }
        }
    }

    /// Returns the command of the profile, which the tests compare answers with.
    fn command(&self) -> PathBuf {
        let folder = if self.profile == "dev" { "debug" } else { &self.profile };
        target_folder().join(folder).join(format!("deloop{}", std::env::consts::EXE_SUFFIX))
    }

    fn table(&mut self, update: bool) {
        println!("── table of frameworks");
        if let Err(why) = table::check(&repository(), &target_folder().join("bindings/rows"), update) {
            println!("{why}");
            self.failed.push("table of frameworks".to_owned());
        }
    }

    fn report(self) -> ExitCode {
        for skipped in &self.skipped {
            println!("bindings: skipped, {skipped}");
        }
        if !self.failed.is_empty() {
            for name in &self.failed {
                print!("{}", end_of_output(name, &output_file(FOLDER, name), REPEATED_LINES));
            }
            println!("bindings: FAILED: {}", self.failed.join(", "));
            return ExitCode::FAILURE;
        }
        if self.skipped.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(2) }
    }
}

fn only_file(folder: &Path, ending: &str) -> Option<PathBuf> {
    let files = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let mut files = files.filter(|path| path.to_string_lossy().ends_with(ending));
    let first = files.next()?;
    files.next().is_none().then_some(first)
}
pub(crate) fn missing(_quick: bool) -> Vec<String> {
    Vec::new()
}
pub(crate) fn install(_quick: bool) -> Result<(), String> {
    Ok(())
}
