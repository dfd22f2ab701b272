//! Which commands run tests, and what a result says about them.

use serde_json::Value;

use crate::shell::Command;

const RUNNERS: [&str; 22] = [
    "cargo test",
    "cargo nextest run",
    "pytest",
    "python -m pytest",
    "python3 -m pytest",
    "python -m unittest",
    "npm test",
    "npm run test",
    "yarn test",
    "pnpm test",
    "npx jest",
    "npx vitest",
    "jest",
    "vitest",
    "go test",
    "make test",
    "mvn test",
    "gradle test",
    "./gradlew test",
    "dotnet test",
    "mix test",
    "rspec",
];

/// Whether a part of the command starts with a test runner.
pub(crate) fn runs_tests(command: &Command) -> bool {
    command.parts.iter().any(|words| {
        RUNNERS.iter().any(|runner| {
            let runner: Vec<&str> = runner.split(' ').collect();
            words.len() >= runner.len() && words.iter().zip(&runner).all(|(a, b)| a == b)
        })
    })
}

/// Whether a call succeeded, where its result says so.
pub(crate) fn succeeded(result: &Value) -> Option<bool> {
    let ok = result["ok"].as_bool();
    match (result["outcome"].as_str(), ok) {
        (Some("denied" | "cancelled" | "running"), _) => None,
        (Some("error" | "timeout" | "invalid"), _) | (_, Some(false)) => Some(false),
        (Some("ok"), _) | (_, Some(true)) => Some(true),
        _ if result["error_type"].is_string() => Some(false),
        _ => None,
    }
}

/// Whether a test run passed, where its result says so.
pub(crate) fn passed(result: &Value) -> Option<bool> {
    let closing = result["output"].as_str().and_then(|output| output.lines().rev().find_map(closing_line));
    match closing {
        Some(passed) if result["ok"] != false => Some(passed),
        _ => succeeded(result),
    }
}

/// How many tests failed, where the result's closing line gives a number.
pub(crate) fn failures(result: &Value) -> Option<u64> {
    let line = result["output"].as_str()?.lines().rev().find(|line| closing_line(line).is_some())?;
    let words: Vec<&str> = line.split([' ', ';', ',', '.']).filter(|word| !word.is_empty()).collect();
    let counts = words.windows(2).filter(|pair| ["failed", "error", "errors"].contains(&pair[1]));
    let counts: Vec<u64> = counts.filter_map(|pair| pair[0].parse().ok()).collect();
    Some(counts.iter().sum()).filter(|sum| *sum > 0)
}

/// The line with which cargo or pytest closes its report.
fn closing_line(line: &str) -> Option<bool> {
    let line = line.trim();
    if let Some(result) = line.strip_prefix("test result: ") {
        return match result.split(['.', ' ']).next() {
            Some("ok") => Some(true),
            Some("FAILED") => Some(false),
            _ => None,
        };
    }
    let (counts, _) = line.trim_matches(['=', ' ']).split_once(" in ")?;
    let mut passed = None;
    for count in counts.split(", ") {
        let (number, what) = count.split_once(' ')?;
        number.parse::<u64>().ok()?;
        match what {
            "failed" | "error" | "errors" => return Some(false),
            "passed" => passed = Some(true),
            _ => {}
        }
    }
    passed
}

#[cfg(test)]
mod tests {
    use super::closing_line;

    #[test]
    fn closing_lines() {
        let failed = "test result: FAILED. 1 passed; 2 failed; 0 ignored";
        assert_eq!(closing_line(failed), Some(false));
        assert_eq!(closing_line("test result: ok. 3 passed"), Some(true));
        assert_eq!(closing_line("== 2 failed, 3 passed in 0.1s =="), Some(false));
        assert_eq!(closing_line("=== 3 passed, 1 skipped in 0.1s ==="), Some(true));
        assert_eq!(closing_line("2 files changed in main"), None);
    }
}
