//! `cargo xtask documents`: every sentence in docs/documents has a test that exists, ran and passed.

mod page;
mod record;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use self::page::{Page, Proof};
pub(crate) use self::record::Record;
use crate::setup::Requirement;
use crate::tools::target_folder;
use crate::{e2e, sources};

const HELP: &str = "\
cargo xtask documents [--ran]

Checks the tables in docs/documents: each row names a test, and each named test exists.
  --ran          also check that each test ran and passed in the last `cargo xtask check`
                 unless this machine lacks what it needs: a row with no other test is skipped and listed
";

const FOLDER: &str = "docs/documents";
/// The pages, and the letter that their rows are numbered with.
const PAGES: [(&str, char); 5] = [
    ("behavioral", 'B'),
    ("signature", 'S'),
    ("doom-loop", 'D'),
    ("turn-similarity", 'T'),
    ("turn-hash", 'H'),
];
/// The tests that run every vector and every detector page.
const VECTORS: &str = "it::conformance::every_vector_holds";
const DETECTOR_PAGES: &str = "pages::every_page_is_true";

/// Returns the report of the tests, which nextest writes.
pub(crate) fn tests_file() -> PathBuf {
    target_folder().join("nextest/default/junit.xml")
}

/// Returns the file that the names of the check's passed examples go to, one `example::NAME` a line.
pub(crate) fn examples_file() -> PathBuf {
    target_folder().join("check/examples.txt")
}

/// Returns the file that `cargo xtask e2e` writes the names of passed cases to, one `e2e::AGENT::CASE` a line.
pub(crate) fn cases_file() -> PathBuf {
    target_folder().join("e2e/passed.txt")
}

/// Does what the arguments after `documents` say. Exit code 1: a row lacks its test.
pub(crate) fn run(arguments: impl Iterator<Item = String>) -> ExitCode {
    let arguments: Vec<String> = arguments.collect();
    let ran = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => None,
        ["--ran"] => Some(Ran::read()),
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    let workspace = sources::workspace();
    let mut exist = sources::names(&workspace);
    exist.extend(e2e::case_names());
    let known = Known { exist, ran };
    let mut report = Report::default();
    for (name, letter) in PAGES {
        let file = workspace.join(FOLDER).join(format!("{name}.md"));
        match std::fs::read_to_string(&file) {
            Ok(text) => report.add(name, &page::read(&text, letter), &known),
            Err(error) => report.mistakes.push(format!("{FOLDER}/{name}.md: {error}")),
        }
    }
    report.print(known.ran.is_some())
}

/// What ran and passed, as far as the check recorded it.
struct Ran {
    tests: Record,
    /// Examples and cases of agents.
    others: BTreeSet<String>,
    /// What this machine can't run.
    cannot_run: BTreeSet<String>,
}

impl Ran {
    fn read() -> Self {
        let text = |file: PathBuf| std::fs::read_to_string(file).unwrap_or_default();
        let lines = text(examples_file()) + &text(cases_file());
        let others = lines.lines().map(|line| line.trim().to_owned()).collect();
        let ignored = sources::ignored_tests(&sources::workspace()).into_iter();
        let ignored = ignored.filter(|test| Requirement::missing_for(&test.reason).is_some());
        let mut cannot_run: BTreeSet<String> = ignored.map(|test| test.name).collect();
        if !Requirement::Agent("claude-code").is_there() {
            cannot_run.extend(e2e::case_names());
        }
        Self { tests: Record::read(&text(tests_file())), others, cannot_run }
    }
}

/// What exists, and what ran if that is to be checked.
struct Known {
    exist: BTreeSet<String>,
    ran: Option<Ran>,
}

/// What is true of a named test.
#[derive(Debug, PartialEq, Eq)]
enum Standing {
    Good,
    Missing,
    NotRun,
    NotPassed,
    CannotRun,
}

impl Known {
    fn standing(&self, name: &str) -> Standing {
        if !self.exist.contains(name) {
            return Standing::Missing;
        }
        let Some(ran) = &self.ran else { return Standing::Good };
        if ran.cannot_run.contains(name) {
            return Standing::CannotRun;
        }
        let test = match name.split("::").next() {
            Some("vector") => VECTORS,
            Some("page") => DETECTOR_PAGES,
            Some("e2e" | "example") if ran.others.contains(name) => return Standing::Good,
            Some("e2e" | "example") => return Standing::NotRun,
            _ => name,
        };
        if ran.tests.passed.contains(test) && !ran.tests.others.contains(test) {
            Standing::Good
        } else if ran.tests.others.contains(test) {
            Standing::NotPassed
        } else {
            Standing::NotRun
        }
    }
}

#[derive(Debug, Default)]
struct Report {
    mistakes: Vec<String>,
    skipped: Vec<String>,
    counts: Vec<String>,
}

impl Report {
    fn add(&mut self, name: &str, page: &Page, known: &Known) {
        let place = format!("{FOLDER}/{name}.md");
        self.mistakes.extend(page.mistakes.iter().map(|mistake| format!("{place}: {mistake}")));
        let (mut tested, mut server) = (0, 0);
        for row in &page.rows {
            let mut wrong = |what: String| self.mistakes.push(format!("{place}: {}: {what}", row.number));
            let tests = match &row.proof {
                Proof::Tests(tests) => tests,
                Proof::Server => {
                    server += 1;
                    continue;
                }
                Proof::Open => {
                    wrong("no test yet (`open`)".to_owned());
                    continue;
                }
                Proof::Unreadable(cell) => {
                    wrong(format!(
                        "the last cell names no test: {cell:?}; write names in backticks, with commas between them"
                    ));
                    continue;
                }
            };
            let mut left = tests.len();
            for test in tests {
                match known.standing(test) {
                    Standing::Good => {}
                    Standing::Missing => wrong(format!("`{test}` doesn't exist")),
                    Standing::NotRun => wrong(format!("`{test}` didn't run")),
                    Standing::NotPassed => wrong(format!("`{test}` didn't pass")),
                    Standing::CannotRun => left -= 1,
                }
            }
            if left == 0 && !tests.is_empty() {
                self.skipped.push(format!("{} ({})", row.number, tests.join(", ")));
            } else {
                tested += 1;
            }
        }
        self.counts
            .push(format!("{name}: {} rows, {tested} with tests, {server} by a server", page.rows.len()));
    }

    fn print(&self, checked: bool) -> ExitCode {
        for line in self.counts.iter().chain(&self.mistakes) {
            println!("{line}");
        }
        for skipped in &self.skipped {
            println!("skipped, because this machine lacks what the test needs: {skipped}");
        }
        if !checked {
            println!("not checked: whether the tests ran; `cargo xtask check` does that");
        }
        if self.mistakes.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

#[cfg(test)]
mod tests;
