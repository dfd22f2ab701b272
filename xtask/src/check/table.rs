//! The table at the end of a check.

use std::fmt::{self, Display, Formatter, Write};

/// What came of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Passed,
    /// It passed without some of its tests.
    PassedInPart {
        /// Whether setup could not have changed that.
        excusable: bool,
    },
    Failed,
    NotRun {
        /// Whether setup could not have changed that.
        excusable: bool,
    },
}

impl Display for Verdict {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Passed | Self::PassedInPart { .. } => "passed",
            Self::Failed => "FAILED",
            Self::NotRun { .. } => "not run",
        })
    }
}

/// One line of the table.
pub(super) struct Line {
    pub(super) name: &'static str,
    pub(super) seconds: f32,
    pub(super) verdict: Verdict,
    pub(super) note: String,
}

impl Line {
    /// Whether a check may pass with this line. A strict one accepts only what setup could not have changed.
    pub(super) fn is_good(&self, strict: bool) -> bool {
        match self.verdict {
            Verdict::Passed => true,
            Verdict::Failed => false,
            Verdict::PassedInPart { excusable } | Verdict::NotRun { excusable } => excusable || !strict,
        }
    }
}

/// Returns the table: the parts that ran or should have, then those that weren't asked for and where they run.
pub(super) fn render(lines: &[Line], left_out: &[(&str, String)]) -> String {
    let names = lines.iter().map(|line| line.name).chain(left_out.iter().map(|(name, _)| *name));
    let width = names.map(str::len).max().unwrap_or_default().max(4);
    let mut text = format!("{:width$}  seconds  {:<8}  skipped\n", "part", "result");
    for line in lines {
        let Line { name, seconds, verdict, note } = line;
        let row = format!("{name:width$}  {seconds:>7.0}  {verdict:<8}  {note}");
        let _ = writeln!(text, "{}", row.trim_end());
    }
    for (name, why) in left_out {
        let _ = writeln!(text, "{name:width$}  {:>7}  {:<8}  {why}", "", "left out");
    }
    text
}

/// Returns how many parts passed, failed and didn't run.
pub(super) fn totals(lines: &[Line]) -> String {
    let count = |is: fn(Verdict) -> bool| lines.iter().filter(|line| is(line.verdict)).count();
    let passed = count(|verdict| matches!(verdict, Verdict::Passed | Verdict::PassedInPart { .. }));
    let failed = count(|verdict| verdict == Verdict::Failed);
    format!("{passed} passed, {failed} failed, {} skipped", lines.len() - passed - failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &'static str, verdict: Verdict, note: &str) -> Line {
        Line { name, seconds: 12.6, verdict, note: note.to_owned() }
    }

    #[test]
    fn the_table_says_what_did_not_run() {
        let lines = [
            line("format", Verdict::Passed, ""),
            line("tests", Verdict::PassedInPart { excusable: false }, "63 redis-server"),
            line("licences", Verdict::NotRun { excusable: false }, "cargo-deny: missing; cargo xtask setup"),
            line("documents", Verdict::Failed, ""),
        ];
        let table = render(&lines, &[("fuzzing", "cargo xtask check --all".to_owned())]);
        assert_eq!(
            table,
            "part       seconds  result    skipped\n\
             format          13  passed\n\
             tests           13  passed    63 redis-server\n\
             licences        13  not run   cargo-deny: missing; cargo xtask setup\n\
             documents       13  FAILED\n\
             fuzzing             left out  cargo xtask check --all\n"
        );
        assert_eq!(totals(&lines), "2 passed, 1 failed, 1 skipped");
    }

    /// What setup could have installed may be missing on a person's machine, and not under CI.
    #[test]
    fn only_ci_asks_for_everything() {
        for excusable in [true, false] {
            for verdict in [Verdict::NotRun { excusable }, Verdict::PassedInPart { excusable }] {
                assert!(line("tests", verdict, "").is_good(false));
                assert_eq!(line("tests", verdict, "").is_good(true), excusable);
            }
        }
        assert!(!line("tests", Verdict::Failed, "").is_good(false));
        assert!(line("tests", Verdict::Passed, "").is_good(true));
    }
}
