//! The tests, with nextest: those whose requirements are there. The rest is listed by what it needs.

use std::collections::BTreeMap;
use std::process::Command;

use super::table::Verdict;
use super::{FOLDER, of_code};
use crate::documents::{self, Record};
use crate::output::{Show, output_file, run_and_keep};
use crate::setup::{self, Requirement};
use crate::sources::{self, IgnoredTest};
use crate::tools::{NEXTEST, cargo, without_own_package};

/// A slower test is named, in seconds.
const SLOW: f32 = 5.0;
/// The tests that take `DELOOP_CASES`.
const RANDOM: &str = "test(=conformance::agrees_with_the_reference_on_random_sessions)";
/// The test that takes too long for every check.
const MEMORY: &str = "a_hundred_thousand_sessions_take_at_most_six_and_a_half_kibibytes_each";

/// Runs all tests but measurements, and those whose requirements are missing, which it lists.
pub(super) fn run(name: &'static str) -> (Verdict, String) {
    let (mut left_out, mut missing) = (Vec::new(), Vec::new());
    for IgnoredTest { path, reason, .. } in sources::ignored_tests(&sources::workspace()) {
        let absent = Requirement::missing_for(&reason);
        if absent.is_some() || Requirement::of_reason(&reason).is_none() {
            left_out.push(format!("test(={path})"));
        }
        missing.extend(absent.map(|requirement| (path, requirement)));
    }
    let filter = format!("not ({})", left_out.join(" + "));
    let mut tests = nextest(&["--run-ignored", "all", "--filterset", &filter]);
    println!("── {name}");
    let code = run_and_keep(&mut tests, &output_file(FOLDER, name), Show::AsItComes).ok().flatten();
    let record = Record::read(&std::fs::read_to_string(documents::tests_file()).unwrap_or_default());
    for (test, seconds) in record.seconds.iter().filter(|(_, seconds)| *seconds > SLOW) {
        println!("── slow: {test} took {seconds:.1} s");
    }
    for (path, requirement) in &missing {
        println!("── not run: {path} needs {}", requirement.name());
    }
    let excusable = missing.iter().all(|(_, requirement)| !requirement.can_be_installed());
    let note =
        counted(missing.iter().map(|(_, requirement)| format!("tests ({})", setup::reason(*requirement))));
    match of_code(code) {
        Verdict::Passed if record.passed.is_empty() => (Verdict::Failed, "no test ran".to_owned()),
        Verdict::Passed if !missing.is_empty() => (Verdict::PassedInPart { excusable }, note),
        verdict => (verdict, note),
    }
}

/// Runs the test of what 100,000 sessions take, alone.
pub(super) fn memory() -> Command {
    nextest(&["--run-ignored", "only", "--profile", "alone", "--filterset", &format!("test(={MEMORY})")])
}

/// Compares the engine with the reference on many more random sessions than every check does.
pub(super) fn random_sessions() -> Command {
    let mut tests = nextest(&["--run-ignored", "all", "--profile", "alone", "--filterset", RANDOM]);
    tests.env("DELOOP_CASES", "1000");
    tests
}

fn nextest(arguments: &[&str]) -> Command {
    let mut command = NEXTEST.program().map_or_else(|| cargo(&[]), Command::new);
    without_own_package(&mut command).args(["nextest", "run", "--workspace"]).args(arguments);
    command
}

/// Counts things by name, for a note.
fn counted(names: impl Iterator<Item = String>) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    counts.into_iter().map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    /// A test that is ignored without a reason that the check knows would never run.
    #[test]
    fn every_ignored_test_is_run_by_a_check_or_is_a_measurement() {
        let ignored = sources::ignored_tests(&sources::workspace());
        assert!(ignored.len() > 60, "{}", ignored.len());
        for IgnoredTest { path, reason, .. } in ignored {
            let known = Requirement::of_reason(&reason).is_some_and(|needed| needed.is_ok())
                || reason.starts_with("a measurement")
                || path == MEMORY;
            assert!(known, "{path}: {reason:?}");
        }
    }
}
