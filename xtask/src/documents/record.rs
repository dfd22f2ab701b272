//! Which tests ran and passed, from the output of `cargo test`.

use std::collections::BTreeSet;

/// The names of tests, as `BINARY::NAME`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) passed: BTreeSet<String>,
    /// Failed or ignored.
    pub(super) others: BTreeSet<String>,
}

impl Record {
    /// Reads what cargo and the test binaries print, in the order in which they print it.
    pub(super) fn read(text: &str) -> Self {
        let mut record = Self::default();
        let mut binary: Option<String> = None;
        for line in text.lines() {
            let line = without_colours(line);
            let line = line.trim();
            if let Some(running) = line.strip_prefix("Running ") {
                binary = name_of(running);
            } else if line.starts_with("Doc-tests ") {
                binary = None;
            } else if let (Some(binary), Some((test, outcome))) = (&binary, result(line)) {
                let name = format!("{binary}::{test}");
                if outcome == "ok" {
                    record.passed.insert(name)
                } else {
                    record.others.insert(name)
                };
            }
        }
        record
    }
}

/// Drops what `CARGO_TERM_COLOR=always` puts around words.
fn without_colours(line: &str) -> String {
    let mut parts = line.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or(part, |(_, rest)| rest))
}

/// Returns the binary of `tests/it/main.rs (target/debug/deps/it-0f3c)`, without its hash.
fn name_of(running: &str) -> Option<String> {
    let (_, path) = running.rsplit_once('(')?;
    let file = path.trim_end_matches(')').rsplit(['/', '\\']).next()?;
    let (name, _) = file.rsplit_once('-')?;
    Some(name.to_owned())
}

/// Splits `test a::b - should panic ... ok` into its name and how it ended.
fn result(line: &str) -> Option<(&str, &str)> {
    let (test, outcome) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let test = test.split(" - ").next()?;
    let outcome = outcome.split([' ', ',']).next()?;
    ["ok", "FAILED", "ignored"].contains(&outcome).then_some((test, outcome))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "   Compiling a v1
     Running unittests src/lib.rs (target/debug/deps/deloop_detect-0f3c)
running 3 tests
test a::works ... ok
test a::panics - should panic ... ok
test a::is_slow ... ignored, needs an hour
test result: ok. 2 passed; 0 failed; 1 ignored
     \u{1b}[1m\u{1b}[92mRunning\u{1b}[0m tests/it/main.rs (D:\\target\\debug\\deps\\it-77.exe)
test run::fails ... FAILED
test run::works ... ok <0.5s>
   Doc-tests deloop
test src/lib.rs - (line 3) ... ok
";

    #[test]
    fn every_binary_has_its_tests() {
        let record = Record::read(OUTPUT);
        let list = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(" ");
        let passed = "deloop_detect::a::panics deloop_detect::a::works it::run::works";
        assert_eq!(list(&record.passed), passed);
        assert_eq!(list(&record.others), "deloop_detect::a::is_slow it::run::fails");
    }
}
