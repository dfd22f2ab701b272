//! The parts of a run: each is run, timed and reported by itself.

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use super::python::{BUILD, Python, only_wheel};
use super::{FOLDER, installations, node, python, repository, table};
use crate::output::{Show, end_of_output, output_file, run_and_keep};
use crate::tools::{cargo, target_folder, without_own_package};

/// How much of what a failed part printed is repeated, in lines.
const REPEATED_LINES: usize = 30;
const BUILD_PART: &str = "build";
const TABLE: &str = "table";

/// What is asked for.
pub(super) struct Plan {
    pub(super) quick: bool,
    /// The cargo profile of the full run.
    pub(super) profile: String,
    pub(super) update: bool,
    /// The parts to run, or none for all.
    pub(super) wanted: Vec<String>,
}

impl Plan {
    /// Lists the parts, in the order in which they are run.
    pub(super) fn parts(&self) -> Vec<String> {
        if self.quick {
            let node = ["package"].into_iter().chain(node::QUICK);
            let python = python::QUICK.map(|name| format!("Python, {name}"));
            return python.into_iter().chain(node.map(|name| format!("Node, {name}"))).collect();
        }
        let python = ["package", "installed"].map(str::to_owned).into_iter().chain(python::names());
        let node = std::iter::once("package".to_owned()).chain(node::names());
        let python = python.map(|name| format!("Python, {name}"));
        python.chain(node.map(|name| format!("Node, {name}"))).chain([TABLE.to_owned()]).collect()
    }

    /// Returns whether the quick or the full run has a part, or a group of parts, of this name.
    pub(super) fn knows(&self, name: &str) -> bool {
        let full = Self { quick: false, profile: String::new(), update: false, wanted: Vec::new() };
        self.parts().iter().chain(&full.parts()).any(|part| is_named(part, name))
    }

    fn wants(&self, part: &str) -> bool {
        self.wanted.is_empty() || self.wanted.iter().any(|name| is_named(part, name))
    }

    /// Lists the wanted parts of a group, without the package that they need.
    fn tests(&self, group: &str) -> Vec<String> {
        let of_group = |part: &String| is_named(part, group) && self.wants(part);
        let mut names: Vec<String> = self.parts().into_iter().filter(of_group).collect();
        names.retain(|part| name_in_group(part) != "package");
        names
    }

    fn wants_group(&self, group: &str) -> bool {
        self.parts().iter().any(|part| is_named(part, group) && self.wants(part))
    }
}

/// Returns whether a name is that of a part, or of the group before its comma.
fn is_named(part: &str, name: &str) -> bool {
    let group = part.split_once(", ").map_or(part, |(group, _)| group);
    [part, group].iter().any(|each| each.eq_ignore_ascii_case(name))
}

fn name_in_group(part: &str) -> &str {
    part.split_once(", ").map_or(part, |(_, name)| name)
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Passed(Duration),
    Failed(Duration),
    NotRun(String),
}

/// A run of the wanted parts.
pub(super) struct Run {
    plan: Plan,
    done: Vec<(String, Outcome)>,
}

impl Run {
    pub(super) fn new(plan: Plan) -> Self {
        Self { plan, done: Vec::new() }
    }

    /// Runs all wanted parts and reports.
    pub(super) fn all(mut self) -> ExitCode {
        let (python, node) = (self.plan.wants_group("Python"), self.plan.wants_group("Node"));
        let build = ["build", "--workspace", "--lib", "--bins", "--examples"];
        if self.plan.quick && !self.part(BUILD_PART, &mut cargo(&build)) {
            return self.report();
        }
        if python && let Err(why) = self.python() {
            self.not_run("Python", &why);
        }
        if node && let Err(why) = self.node() {
            self.not_run("Node", &why);
        }
        let all_passed = self.done.iter().all(|(_, outcome)| matches!(outcome, Outcome::Passed(_)));
        if !self.plan.quick && self.plan.wants(TABLE) {
            if all_passed {
                self.table();
            } else {
                self.done.push((TABLE.to_owned(), Outcome::NotRun("not every part has passed".to_owned())));
            }
        }
        self.report()
    }

    /// Runs a part, which ends with 2 when something isn't installed. Returns whether it passed.
    fn part(&mut self, name: &str, command: &mut Command) -> bool {
        println!("── {name}");
        let output = output_file(FOLDER, name);
        let _ = std::fs::remove_file(&output);
        #[expect(clippy::disallowed_methods, reason = "a chore may look at the clock")]
        let start = Instant::now();
        let command = without_own_package(command.current_dir(repository()));
        let code = run_and_keep(command, &output, Show::AsItComes).ok().flatten();
        let outcome = match code {
            Some(0) => Outcome::Passed(start.elapsed()),
            Some(2) => {
                let said = std::fs::read_to_string(&output).unwrap_or_default();
                let why = said.lines().last().unwrap_or("it doesn't say why");
                Outcome::NotRun(why.strip_prefix("not run: ").unwrap_or(why).to_owned())
            }
            _ => Outcome::Failed(start.elapsed()),
        };
        println!("── {}", line(name, &outcome));
        self.done.push((name.to_owned(), outcome));
        code == Some(0)
    }

    /// Notes why the tests of a group can't run.
    fn not_run(&mut self, group: &str, why: &str) {
        for part in self.plan.tests(group) {
            self.done.push((part, Outcome::NotRun(why.to_owned())));
        }
    }

    /// # Errors
    /// Why no test can run.
    fn python(&mut self) -> Result<(), String> {
        let python = Python::find()?;
        let wheel = if self.plan.quick { None } else { Some(self.wheel(&python)?) };
        for part in self.plan.tests("Python") {
            let mut command = python.command();
            match (&wheel, name_in_group(&part)) {
                (Some(wheel), "installed") => {
                    command.arg("bindings/python/tests/wheel_check.py").arg(wheel);
                    if self.plan.profile != "dist" {
                        command.arg("--any-size");
                    }
                }
                (Some(wheel), name) => {
                    command.args(["bindings/python/tests/run.py", name, "--wheel"]).arg(wheel);
                }
                (None, name) => {
                    command.args(["bindings/python/tests/run.py", name, "--built"]).arg(built());
                }
            }
            self.part(&part, &mut command);
        }
        Ok(())
    }

    /// Builds the wheel.
    fn wheel(&mut self, python: &Python) -> Result<PathBuf, String> {
        let part = "Python, package";
        if !python.has(BUILD) {
            let why = "maturin isn't installed: run `cargo xtask setup`".to_owned();
            self.done.push((part.to_owned(), Outcome::NotRun(why.clone())));
            return Err(why);
        }
        let wheels = installations().join("wheels");
        let build = ["bindings/python/build_wheel.py", "--profile", &self.plan.profile, "--out"];
        let built = self.part(part, Python::of(BUILD).args(build).arg(&wheels));
        let wheel = if built { only_wheel(&wheels) } else { None };
        wheel.ok_or_else(|| "the wheel isn't built".to_owned())
    }

    /// # Errors
    /// Why no test can run.
    fn node(&mut self) -> Result<(), String> {
        node::check()?;
        let mut build = Command::new("node");
        build.arg("bindings/node/scripts/build.mjs");
        if self.plan.quick {
            build.arg("--built").arg(built());
        } else {
            build.args(["--profile", &self.plan.profile]);
        }
        if !self.part("Node, package", &mut build) {
            return Err("the Node package isn't built".to_owned());
        }
        for part in self.plan.tests("Node") {
            let mut command = Command::new("node");
            match name_in_group(&part) {
                "core" => command.arg("bindings/node/scripts/test.mjs"),
                name => command.args(["bindings/node/test/run.mjs", name, "--package", "bindings/node"]),
            };
            self.part(&part, &mut command);
        }
        Ok(())
    }

    fn table(&mut self) {
        println!("── {TABLE}");
        let rows = installations().join("rows");
        let checked = table::check(&repository(), &rows, self.plan.update);
        if let Err(why) = &checked {
            println!("{why}");
            let _ = std::fs::write(output_file(FOLDER, TABLE), why);
        }
        let outcome = checked.map_or(Outcome::Failed(Duration::ZERO), |()| Outcome::Passed(Duration::ZERO));
        self.done.push((TABLE.to_owned(), outcome));
    }

    fn report(self) -> ExitCode {
        let is_failed = |outcome: &Outcome| matches!(outcome, Outcome::Failed(_));
        for (name, _) in self.done.iter().filter(|(_, outcome)| is_failed(outcome)) {
            print!("{}", end_of_output(name, &output_file(FOLDER, name), REPEATED_LINES));
        }
        for (name, outcome) in &self.done {
            println!("bindings: {}", line(name, outcome));
        }
        exit_code(self.done.iter().map(|(_, outcome)| outcome)).into()
    }
}

/// Returns 1 if a part failed, 2 if one wasn't run, and 0 if all passed.
fn exit_code<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> u8 {
    outcomes.fold(0, |code, outcome| match (code, outcome) {
        (1, _) | (_, Outcome::Failed(_)) => 1,
        (code, Outcome::Passed(_)) => code,
        (_, Outcome::NotRun(_)) => 2,
    })
}

fn line(name: &str, outcome: &Outcome) -> String {
    match outcome {
        Outcome::Passed(time) => format!("{name}: passed in {:.0} s", time.as_secs_f64()),
        Outcome::Failed(time) => format!("{name}: FAILED in {:.0} s", time.as_secs_f64()),
        Outcome::NotRun(why) => format!("{name}: not run, {why}"),
    }
}

/// Returns the folder of the dev profile.
fn built() -> PathBuf {
    target_folder().join("debug")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(quick: bool, wanted: &[&str]) -> Plan {
        let wanted = wanted.iter().map(|name| (*name).to_owned()).collect();
        Plan { quick, profile: "dist".to_owned(), update: false, wanted }
    }

    #[test]
    fn a_part_is_chosen_by_its_name_or_its_group() {
        let quick = ["Python, core", "Python, fake-model", "Python, openai-agents"];
        assert_eq!(plan(true, &["python"]).tests("Python"), quick);
        assert_eq!(plan(true, &["Python, core"]).tests("Python"), ["Python, core"]);
        assert!(plan(true, &["python"]).tests("Node").is_empty());
        assert_eq!(plan(false, &["python, langchain"]).tests("Python"), ["Python, langchain"]);
        assert!(plan(true, &[]).knows("Python, langchain") && !plan(false, &[]).knows("Python, nope"));
    }

    /// What the quick run names exists, and the full run has all of it.
    #[test]
    fn the_full_run_has_the_parts_of_the_quick_one() {
        let full = plan(false, &[]).parts();
        for part in plan(true, &[]).parts() {
            assert!(full.contains(&part), "{part} isn't in {full:?}");
        }
    }

    #[test]
    fn a_failure_counts_more_than_a_part_that_is_not_run() {
        let (passed, failed) = (Outcome::Passed(Duration::ZERO), Outcome::Failed(Duration::ZERO));
        let not_run = Outcome::NotRun("no npm".to_owned());
        for (outcomes, code) in [
            (vec![&passed, &passed], 0),
            (vec![&not_run, &passed], 2),
            (vec![&not_run, &failed, &not_run], 1),
        ] {
            assert_eq!(exit_code(outcomes.into_iter()), code);
        }
    }
}
