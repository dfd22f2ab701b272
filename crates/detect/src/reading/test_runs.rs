//! Recognizes test runs and reads their results.

use super::Vocabulary;
use super::shell::Script;

/// Returns whether a shell command runs tests.
#[must_use]
pub fn is_test_command(script: &Script<'_>, vocabulary: &Vocabulary) -> bool {
    script.commands.iter().any(|command| {
        let words: Vec<&str> = command.words.iter().map(AsRef::as_ref).collect();
        runs_tests(vocabulary.unwrapped(&words))
    })
}

fn base(word: &str) -> &str {
    let name = super::shell::program_name(word);
    name.strip_suffix(".exe").or_else(|| name.strip_suffix(".cmd")).unwrap_or(name)
}

/// Returns whether a simple command, without wrappers, runs tests.
pub(crate) fn runs_tests(words: &[&str]) -> bool {
    let [first, rest @ ..] = words else { return false };
    let flagless = |from: &[&str]| from.iter().position(|w| !w.starts_with('-')).unwrap_or(from.len());
    match base(first) {
        "python" | "python3" | "py" => {
            matches!(rest, ["-m", "pytest" | "unittest" | "nose" | "nose2" | "tox", ..])
                || rest.iter().any(|w| matches!(base(w), "runtests.py" | "pytest"))
                || matches!(rest, [script, "test", ..] if base(script) == "manage.py")
        }
        "pytest" | "py.test" | "jest" | "vitest" | "rspec" | "phpunit" | "ctest" | "tox" | "nox"
        | "mocha" | "ava" | "runtests.py" | "nosetests" | "minitest" => true,
        "cargo" => cargo_tests(rest),
        "go" | "dotnet" | "deno" | "mix" | "swift" | "bazel" | "bun" | "flutter" | "dart" | "zig"
        | "stack" | "cabal" | "sbt" | "lein" | "rebar3" | "nx" | "turbo" | "just" | "task" | "ng" => {
            rest.get(flagless(rest)).is_some_and(|w| *w == "test")
        }
        "node" => rest.contains(&"--test"),
        "npm" | "pnpm" | "yarn" => {
            let mut rest = &rest[flagless(rest)..];
            if matches!(rest.first(), Some(&("run" | "run-script" | "exec" | "dlx" | "workspaces" | "-r"))) {
                rest = &rest[1..];
            }
            rest.first().is_some_and(|w| {
                *w == "test"
                    || *w == "t"
                    || w.starts_with("test:")
                    || matches!(*w, "jest" | "vitest" | "mocha")
            })
        }
        "mvn" | "mvnw" | "gradle" | "gradlew" => rest.iter().any(|w| {
            let goal = w.rsplit(':').next().unwrap_or(w);
            matches!(goal, "test" | "verify" | "check" | "integration-test")
                || w.starts_with("-Dtest")
                || (goal.ends_with("Test") && !w.starts_with('-'))
        }),
        "make" | "gmake" | "ninja" | "rake" => {
            rest.iter().any(|w| matches!(*w, "test" | "tests" | "check") || w.starts_with("test-"))
        }
        program => program.contains("runtests") || program == "test.sh",
    }
}

fn cargo_tests(rest: &[&str]) -> bool {
    let rest = rest.strip_prefix(&["+nightly"]).unwrap_or(rest);
    let at = rest.iter().position(|w| !w.starts_with(['-', '+'])).unwrap_or(rest.len());
    matches!(&rest[at..], ["test" | "t", ..] | ["nextest", "run" | "r", ..])
}

/// Returns the result in a test runner's closing lines: `Some(true)` when all tests passed, `None` when there is none.
///
/// ```
/// use deloop_detect::test_verdict;
/// assert_eq!(test_verdict("test result: FAILED. 1 passed; 1 failed; 0 ignored"), Some(false));
/// assert_eq!(test_verdict("=== 3 passed in 0.12s ==="), Some(true));
/// assert_eq!(test_verdict("hello"), None);
/// ```
#[must_use]
pub fn test_verdict(output: &str) -> Option<bool> {
    let mut verdict = None;
    for line in closing_lines(output) {
        match line_verdict(line) {
            Some(false) => return Some(false),
            Some(true) => verdict = Some(true),
            None => {}
        }
    }
    verdict
}

/// Returns the lines that can hold a runner's result, last first.
pub(super) fn closing_lines(output: &str) -> impl Iterator<Item = &str> {
    const TAIL: usize = 16 * 1024;
    let mut start = output.len().saturating_sub(TAIL);
    while !output.is_char_boundary(start) {
        start += 1;
    }
    output[start..].lines().rev().take(200).map(str::trim)
}

pub(super) fn line_verdict(line: &str) -> Option<bool> {
    let bare = line.trim_matches(['=', '-', '[', ']', ' ', '!', '.', '*']);
    // cargo test, and cargo on a compile error
    if let Some(rest) = bare.strip_prefix("test result: ") {
        return Some(rest.starts_with("ok"));
    }
    if bare.starts_with("error: could not compile") || bare.starts_with("error: test failed") {
        return Some(false);
    }
    // mvn, gradle
    if bare.contains("BUILD ") {
        if bare.contains("BUILD SUCCESS") {
            return Some(true);
        }
        if bare.contains("BUILD FAILURE") || bare.contains("BUILD FAILED") {
            return Some(false);
        }
    }
    // go test
    if bare == "FAIL" || line.starts_with("FAIL\t") || line.starts_with("--- FAIL:") {
        return Some(false);
    }
    if line.starts_with("ok  \t") || bare == "PASS" {
        return Some(true);
    }
    // unittest, phpunit, dotnet
    if bare == "OK" || bare.starts_with("OK (") || bare.starts_with("Passed!") {
        return Some(true);
    }
    if bare.starts_with("FAILED (") || bare.starts_with("FAILURES") || bare.starts_with("Failed!") {
        return Some(false);
    }
    if bare.starts_with("npm ERR! Test failed") || bare.starts_with("npm error Test failed") {
        return Some(false);
    }
    if line.starts_with("make: *** ") || line.starts_with("make[") && line.contains("]: *** ") {
        return Some(false);
    }
    counted(bare)
}

/// Reads lines with counts: "2 failed, 3 passed in 0.12s", "Tests: 1 failed, 3 total", "10 examples, 0 failures",
/// "Tests run: 3, Failures: 1, Errors: 0", "100% tests passed, 0 tests failed out of 3", "Tests  3 passed (3)".
fn counted(line: &str) -> Option<bool> {
    // The beginning of a part of each word that can follow a count; most lines contain none of them.
    let telling = |part: &[u8]| matches!(part, b"ail" | b"pas" | b"rro" | b"xam");
    if line.len() > 300 || !line.as_bytes().windows(3).any(telling) {
        return None;
    }
    let mut words =
        line.split(|c: char| !c.is_alphanumeric() && c != '%' && c != '.').filter(|w| !w.is_empty());
    let number = |w: &str| w.parse::<u64>().ok();
    let first = words.next()?;
    let summary = matches!(first, "Tests" | "Test" | "Summary" | "tests" | "test");
    if !summary && !first.ends_with('%') && number(first).is_none() {
        return None;
    }
    let (mut failed, mut passed, mut seen) = (false, false, false);
    let (mut before, mut last) = ("", first);
    for word in words {
        let count = match (before, last, word) {
            (_, _, "failed" | "failing" | "failure" | "failures" | "error" | "errors") => {
                // ctest: "67% tests passed, 1 tests failed out of 3"
                let count = number(if (last, word) == ("tests", "failed") { before } else { last });
                count.inspect(|n| failed |= *n > 0)
            }
            (_, _, "passed" | "passing" | "examples" | "example") => {
                number(last).inspect(|n| passed |= *n > 0)
            }
            (_, "Failures" | "Errors" | "Failed", _) => number(word).inspect(|n| failed |= *n > 0),
            ("", "Tests", "run") => {
                passed = true;
                None
            }
            _ => None,
        };
        seen |= count.is_some();
        (before, last) = (last, word);
    }
    (seen && (failed || passed || line.contains("0 tests failed"))).then_some(!failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_runners_are_known() {
        for yes in [
            "cargo test",
            "cargo +nightly test --all",
            "cargo nextest run",
            "RUST_LOG=x cargo -q test foo",
            "pytest -q",
            "python -m pytest tests/a.py",
            "python3 -m unittest",
            "npx jest",
            "npx vitest run",
            "yarn jest",
            "go test ./...",
            "mvn -q test",
            "./mvnw clean verify",
            "mvn -pl core surefire:test",
            "gradle test",
            "./gradlew :app:testDebugUnitTest",
            "./gradlew :core:test --info",
            "npm test",
            "npm run test",
            "npm run test:unit",
            "pnpm test",
            "pnpm -r test",
            "yarn test",
            "make test",
            "make -j4 check",
            "dotnet test",
            "bundle exec rspec",
            "rspec",
            "./vendor/bin/phpunit",
            "ctest --output-on-failure",
            "cd x && cargo test 2>&1 | tail -5",
            "timeout 60 pytest",
            "poetry run pytest",
            "python manage.py test",
            "python tests/runtests.py",
            "bun test",
            "node --test",
            "uv run pytest",
        ] {
            assert!(is_test_command(&Script::parse(yes), &Vocabulary::builtin()), "{yes}");
        }
        for no in [
            "cargo build",
            "go build ./...",
            "npm install",
            "echo cargo test",
            "cat test.py",
            "make",
            "ls tests",
            "grep pytest x",
            "mvn compile",
            "npm run build",
            "git commit -m 'cargo test'",
            "python test_data.py.bak",
            "dotnet build",
        ] {
            assert!(!is_test_command(&Script::parse(no), &Vocabulary::builtin()), "{no}");
        }
    }

    #[test]
    fn closing_lines_are_read() {
        let passed = [
            "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured",
            "     Summary [   0.1s] 10 tests run: 10 passed, 0 skipped",
            "============ 3 passed, 1 warning in 0.12s ============",
            "Tests:       3 passed, 3 total",
            "      Tests  12 passed (12)",
            "ok  \texample.com/x\t0.3s",
            "[INFO] BUILD SUCCESS",
            "BUILD SUCCESSFUL in 3s",
            "Passed!  - Failed:     0, Passed:     3, Skipped: 0",
            "10 examples, 0 failures",
            "OK (3 tests, 7 assertions)",
            "100% tests passed, 0 tests failed out of 3",
            "Ran 3 tests in 0.1s\n\nOK",
            "Tests run: 3, Failures: 0, Errors: 0, Skipped: 0",
        ];
        let failed = [
            "test result: FAILED. 1 passed; 2 failed; 0 ignored",
            "error: could not compile `x` (bin \"x\") due to 1 previous error",
            "     Summary [   0.1s] 10 tests run: 9 passed, 1 failed, 0 skipped",
            "======= 1 failed, 2 passed in 0.12s =======",
            "=== 1 error in 0.5s ===",
            "Tests:       1 failed, 2 passed, 3 total",
            "      Tests  1 failed | 11 passed (12)",
            "FAIL\texample.com/x\t0.3s",
            "[INFO] BUILD FAILURE",
            "BUILD FAILED in 3s",
            "Failed!  - Failed:     1, Passed:     2",
            "10 examples, 1 failure",
            "FAILURES!\nTests: 3, Assertions: 3, Failures: 1.",
            "67% tests passed, 1 tests failed out of 3",
            "FAILED (failures=1)",
            "Tests run: 3, Failures: 1, Errors: 0, Skipped: 0",
            "make: *** [Makefile:3: test] Error 2",
            "test result: ok. 3 passed; 0 failed\ntest result: FAILED. 0 passed; 1 failed\n",
        ];
        for line in passed {
            assert_eq!(test_verdict(line), Some(true), "{line}");
        }
        for line in failed {
            assert_eq!(test_verdict(line), Some(false), "{line}");
        }
        for line in ["", "hello", "3 files changed", "we passed 3 exams", "error: linking failed"] {
            assert_eq!(test_verdict(line), None, "{line}");
        }
    }
}
