//! Counts the failures that a test runner reports.

use super::test_runs::{closing_lines, line_verdict};

/// Returns the number of failures in a test runner's closing lines; `None` when they don't give one.
///
/// ```
/// use deloop_detect::failed_tests;
/// assert_eq!(failed_tests("test result: FAILED. 1 passed; 2 failed; 0 ignored"), Some(2));
/// assert_eq!(failed_tests("FAILED (failures=1, errors=2)"), Some(3));
/// assert_eq!(failed_tests("error: could not compile"), None);
/// ```
#[must_use]
pub fn failed_tests(output: &str) -> Option<u64> {
    let (mut counted, mut named) = (None, 0);
    for line in closing_lines(output) {
        // go test names each failure and counts none.
        named += u64::from(line.starts_with("--- FAIL:"));
        if line_verdict(line).is_some()
            && let Some(count) = count_in(line)
        {
            counted = Some(count.saturating_add(counted.unwrap_or(0)));
        }
    }
    counted.or((named > 0).then_some(named))
}

/// Returns the sum of the failures on one line: "2 failed, 1 error", "Failures: 1, Errors: 0", "failures=1".
fn count_in(line: &str) -> Option<u64> {
    let words: Vec<(&str, bool)> = line
        .split_inclusive(|c: char| !c.is_alphanumeric())
        .filter_map(|piece| {
            let word = piece.trim_end_matches(|c: char| !c.is_alphanumeric());
            (!word.is_empty()).then_some((word, piece.ends_with([':', '='])))
        })
        .collect();
    let number = |at: Option<usize>| words.get(at?)?.0.parse::<u64>().ok();
    let mut sum = None;
    for (at, (word, introduces)) in words.iter().enumerate() {
        let fails = ["failed", "failing", "failure", "failures", "error", "errors"];
        if !fails.iter().any(|f| word.eq_ignore_ascii_case(f)) {
            continue;
        }
        let count = if *introduces {
            number(at.checked_add(1))
        } else {
            // ctest: "67% tests passed, 1 tests failed out of 3"
            number(at.checked_sub(1)).or_else(|| {
                let tests = at.checked_sub(1).and_then(|at| words.get(at)).is_some_and(|w| w.0 == "tests");
                number(at.checked_sub(2)).filter(|_| tests)
            })
        };
        sum = match (sum, count) {
            (Some(a), Some(b)) => Some(u64::saturating_add(a, b)),
            (a, b) => a.or(b),
        };
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_are_counted() {
        for (output, count) in [
            ("======= 2 failed, 3 passed, 1 error in 0.12s =======", Some(3)),
            ("Tests:       1 failed, 2 passed, 3 total", Some(1)),
            ("      Tests  4 failed | 11 passed (12)", Some(4)),
            ("Tests run: 3, Failures: 1, Errors: 2, Skipped: 0", Some(3)),
            ("67% tests passed, 1 tests failed out of 3", Some(1)),
            ("10 examples, 2 failures", Some(2)),
            ("Failed!  - Failed:     5, Passed:     2", Some(5)),
            ("test result: FAILED. 1 passed; 2 failed\ntest result: FAILED. 0 passed; 3 failed", Some(5)),
            ("test result: ok. 3 passed; 0 failed", Some(0)),
            ("--- FAIL: TestA (0.1s)\n--- FAIL: TestB (0.1s)\nFAIL\n", Some(2)),
            ("[INFO] BUILD FAILURE", None),
            ("we have 3 errors here", None),
            ("", None),
        ] {
            assert_eq!(failed_tests(output), count, "{output}");
        }
    }
}
