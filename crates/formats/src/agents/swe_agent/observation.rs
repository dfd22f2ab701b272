//! What an observation says about how its action went. There is no exit code in the file, so only well-known words
//! in well-known places count, and most observations say nothing.

use deloop_types::Outcome;

use crate::timeout::says_timeout;

/// How SWE-agent's own commands begin when they refuse.
const REFUSALS: &[&str] = &[
    "Your proposed edit has introduced new syntax error(s)",
    "Your edit was not applied",
    "No replacement was performed",
    "No file open. Use the `open` command first.",
    "No edit history found for",
    "Cannot overwrite files using command `create`",
    "File already exists at:",
    "Invalid `",
    "awk: cannot open ",
    "Usage: ",
    "usage: ",
    "Error: ",
    "ERROR: ",
];

/// How SWE-agent's own commands begin when they did what they were asked for.
const DONE: &[&str] = &["[File: ", "File created successfully at:", "Here's the result of running `"];

/// What programs say last about a file or command they could not use.
const COMPLAINTS: &[&str] = &[
    "command not found",
    "No such file or directory",
    "Permission denied",
    "Is a directory",
    "Not a directory",
];

/// How the last line begins when a compiler, a build or a test run gives its verdict.
const VERDICTS: &[&str] = &[
    "error: could not compile `",
    "error: aborting due to ",
    "make: *** ",
    "npm ERR! ",
    "FAILED (",
    "BUILD FAILED",
];

/// How the call of `tool` (for the shell: of this command) ended, if the observation tells.
pub(super) fn outcome(tool: &str, command: &str, observation: &str) -> Option<Outcome> {
    let observation = observation.trim();
    let first = observation.lines().next().unwrap_or_default();
    if says_timeout(first) {
        return Some(Outcome::Timeout);
    }
    let failed = is_shell_complaint(first)
        || first == "Traceback (most recent call last):"
        || if tool == "bash" {
            is_one_complaint(observation)
                || ends_in_traceback(command, observation)
                || is_verdict(observation)
        } else {
            is_refusal(first)
        };
    if failed {
        return Some(Outcome::Error);
    }
    let done = tool != "bash"
        && (DONE.iter().any(|words| first.starts_with(words))
            || (first.starts_with("The file ") && first.contains(" has been edited.")));
    done.then_some(Outcome::Ok)
}

/// `/bin/bash: line 12: javac: command not found`: the shell itself, or a script, stumbled.
fn is_shell_complaint(first: &str) -> bool {
    let Some((who, rest)) = first.split_once(": line ") else { return false };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    !who.is_empty() && !who.contains(char::is_whitespace) && digits > 0 && rest[digits..].starts_with(": ")
}

/// `ls: cannot access 'x': No such file or directory`, and nothing else.
fn is_one_complaint(observation: &str) -> bool {
    let program = observation.split(": ").next().unwrap_or_default();
    !observation.contains('\n')
        && program.len() < observation.len()
        && !program.contains(char::is_whitespace)
        && COMPLAINTS.iter().any(|words| observation.ends_with(words))
}

/// A Python program that printed something before it died.
fn ends_in_traceback(command: &str, observation: &str) -> bool {
    command.starts_with("python") && observation.contains("\nTraceback (most recent call last):\n")
}

/// `error: could not compile ...`, `2 errors` of javac, `=== 1 failed, 3 passed in 0.12s ===` of pytest.
fn is_verdict(observation: &str) -> bool {
    let last = observation.lines().next_back().unwrap_or_default();
    let javac = last.strip_suffix(" error").or_else(|| last.strip_suffix(" errors"));
    let pytest = last.strip_prefix('=').map(|line| line.trim_matches(['=', ' ']));
    VERDICTS.iter().any(|words| last.starts_with(words))
        || javac.is_some_and(|count| count.parse::<u32>().is_ok_and(|n| n > 0))
        || pytest.is_some_and(|summary| summary.contains(" failed") && summary.contains(" in "))
}

fn is_refusal(first: &str) -> bool {
    let missing =
        first.ends_with(" not found") && (first.starts_with("File ") || first.starts_with("Directory "));
    let no_path = first.starts_with("The path ") && first.contains(" does not exist");
    missing || no_path || REFUSALS.iter().any(|words| first.starts_with(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_known_failures() {
        for (tool, observation) in [
            ("bash", "/bin/bash: line 13008: javac: command not found"),
            ("bash", "./run.sh: line 3: mvn: command not found\nlater"),
            ("bash", "ls: cannot access 'x': No such file or directory"),
            ("bash", "sudo: nano: command not found"),
            ("bash", "Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'x'"),
            (
                "bash",
                "error[E0425]: x\nerror: could not compile `shop` (bin \"shop\") due to 1 previous error",
            ),
            ("bash", "A.java:3: error: ';' expected\n1 error"),
            ("bash", "F.\n==== 1 failed, 3 passed in 0.12s ===="),
            (
                "edit",
                "Your proposed edit has introduced new syntax error(s). Please read this error message carefully",
            ),
            ("open", "File src/cart.rs not found"),
            ("search_dir", "Directory tests not found"),
            ("search_file", "Usage: search_file <search_term> [<file>]"),
            ("goto", "Error: <line> must be less than or equal to 40"),
            (
                "str_replace_editor",
                "No replacement was performed, old_str `x` did not appear verbatim in /a.",
            ),
            ("str_replace_editor", "The path /a does not exist. Please provide a valid path."),
        ] {
            assert_eq!(outcome(tool, "x", observation), Some(Outcome::Error), "{observation}");
        }
        assert_eq!(
            outcome("bash", "python a.py", "1\nTraceback (most recent call last):\n  x\nKeyError: 1"),
            Some(Outcome::Error)
        );
    }

    #[test]
    fn time_limits() {
        let cancelled = "The command 'sleep 60' was cancelled because it took more than 30 seconds.";
        assert_eq!(outcome("bash", "sleep 60", "\nEXECUTION TIMED OUT"), Some(Outcome::Timeout));
        assert_eq!(outcome("bash", "sleep 60", cancelled), Some(Outcome::Timeout));
    }

    #[test]
    fn most_say_nothing() {
        for (tool, observation) in [
            ("bash", ""),
            ("bash", "a.rs\nb.rs"),
            ("bash", "grep: x: No such file or directory\na.rs: total"),
            ("bash", "0 errors"),
            ("bash", "==== 4 passed in 0.12s ===="),
            ("bash", "the log says: command not found"),
            ("bash", "test_a.py: line 3: "),
            ("bash", "[File: /a (3 lines total)]"),
            ("search_dir", "No matches found for \"total\" in /a"),
            ("submit", "diff --git a/x b/x"),
        ] {
            assert_eq!(outcome(tool, "x", observation), None, "{observation}");
        }
        assert_eq!(outcome("edit", "", "[File: /a (3 lines total)]\n1:x"), Some(Outcome::Ok));
        assert_eq!(
            outcome("str_replace_editor", "", "The file /a has been edited. Here's"),
            Some(Outcome::Ok)
        );
    }
}
