//! Package managers: what they fetch may fail once, which says nothing about the package.

use std::process::Command;
use std::time::Duration;

/// How long each try waits before it begins.
const PAUSES: [Duration; 3] = [Duration::ZERO, Duration::from_secs(2), Duration::from_secs(8)];
/// How much of what a package manager printed is repeated, in lines.
const REPEATED_LINES: usize = 12;

/// Runs a package manager until it succeeds, three times at most.
///
/// # Errors
/// The last lines that it printed.
pub(crate) fn retried(command: &mut Command) -> Result<(), String> {
    retried_with(command, &PAUSES)
}

fn retried_with(command: &mut Command, pauses: &[Duration]) -> Result<(), String> {
    let mut said = String::new();
    for pause in pauses {
        std::thread::sleep(*pause);
        match command.output() {
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => said = last_lines(&[output.stdout, output.stderr].concat()),
            Err(error) => return Err(format!("{}: {error}", command.get_program().display())),
        }
    }
    Err(said)
}

fn last_lines(output: &[u8]) -> String {
    let output = String::from_utf8_lossy(output);
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(REPEATED_LINES)..].join("\n")
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    const AT_ONCE: [Duration; 3] = [Duration::ZERO; 3];

    #[test]
    fn a_package_manager_gets_three_tries() {
        let file = std::env::temp_dir().join(format!("xtask-tries-{}", std::process::id()));
        let script = r#"echo try >> "$0"; echo "no answer" >&2; test "$(wc -l < "$0")" -eq "$1""#;
        let tried = |good: &str| {
            let _ = std::fs::remove_file(&file);
            let done = retried_with(Command::new("sh").args(["-c", script]).arg(&file).arg(good), &AT_ONCE);
            (done, std::fs::read_to_string(&file).unwrap().lines().count())
        };
        let results = [tried("3"), tried("1"), tried("4")];
        std::fs::remove_file(&file).unwrap();
        assert_eq!(results, [(Ok(()), 3), (Ok(()), 1), (Err("no answer".to_owned()), 3)]);
    }

    #[test]
    fn a_package_manager_that_is_not_there_is_named() {
        let failed = retried_with(&mut Command::new("no-such-package-manager"), &AT_ONCE).unwrap_err();
        assert!(failed.starts_with("no-such-package-manager: "), "{failed}");
    }
}
