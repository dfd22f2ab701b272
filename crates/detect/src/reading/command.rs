//! Extracts the shell command from a call, if the call runs one.

use std::borrow::Cow;

use serde_json::Value;

/// The arguments that contain the command line of a shell tool, as agents name them.
pub(crate) const COMMAND_ARGUMENTS: &[&str] = &["command", "cmd", "script", "input", "bash", "commands"];

/// Returns the command line in a shell tool's arguments.
///
/// For an argument list that starts a shell (`["bash", "-lc", "ls"]`), it is the command that this shell runs.
#[must_use]
pub fn command_line(args: &Value) -> Option<Cow<'_, str>> {
    match args {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Object(map) => COMMAND_ARGUMENTS.iter().find_map(|key| match map.get(*key)? {
            Value::String(text) => Some(Cow::Borrowed(text.as_str())),
            Value::Array(words) => from_words(words),
            _ => None,
        }),
        Value::Array(words) => from_words(words),
        _ => None,
    }
}

fn from_words(words: &[Value]) -> Option<Cow<'_, str>> {
    let words: Vec<&str> = words.iter().map(Value::as_str).collect::<Option<_>>()?;
    match words.as_slice() {
        [shell, flag, script, ..]
            if is_shell_program(shell) && flag.starts_with('-') && flag.ends_with('c') =>
        {
            Some(Cow::Borrowed(script))
        }
        [] => None,
        words => match windows_script(words) {
            [script] => Some(Cow::Borrowed(script)),
            words => Some(Cow::Owned(words.join(" "))),
        },
    }
}

/// Returns the words that `cmd /c` or `powershell -Command` runs, or all words.
fn windows_script<'w, 't>(words: &'w [&'t str]) -> &'w [&'t str] {
    let [program, rest @ ..] = words else { return words };
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program).to_ascii_lowercase();
    let runs: &[&str] = match name.strip_suffix(".exe").unwrap_or(&name) {
        "cmd" => &["/c"],
        "powershell" | "pwsh" => &["-command", "-c"],
        _ => return words,
    };
    let at = rest.iter().position(|word| runs.contains(&word.to_ascii_lowercase().as_str()));
    at.map(|at| &rest[at + 1..]).filter(|script| !script.is_empty()).unwrap_or(words)
}

fn is_shell_program(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or(program);
    matches!(name, "bash" | "sh" | "zsh" | "dash" | "fish" | "ksh")
}

/// Programs that only show a file, and their options that take a value.
const READERS: &[(&str, &[&str])] = &[
    ("cat", &[]),
    ("head", &["-n", "-c", "--lines", "--bytes"]),
    ("tail", &["-n", "-c", "-s", "--lines", "--bytes", "--sleep-interval", "--pid", "--max-unchanged-stats"]),
    ("less", &["-b", "-h", "-j", "-k", "-o", "-O", "-p", "-P", "-t", "-T", "-x", "-y", "-z"]),
    ("more", &["-n", "--lines"]),
    ("wc", &["--files0-from", "--total"]),
    (
        "file",
        &[
            "-m",
            "-e",
            "-F",
            "-f",
            "-P",
            "--magic-file",
            "--exclude",
            "--separator",
            "--files-from",
            "--parameter",
        ],
    ),
    ("stat", &["-c", "--format", "--printf", "-f"]),
];

/// Returns the files that a simple command shows, if it does nothing else: `head -n 5 foo.ts` shows `foo.ts`.
#[must_use]
pub(crate) fn files_read<'a>(command: &'a super::shell::SimpleCommand<'_>) -> Option<Vec<&'a str>> {
    let (name, valued) = READERS.iter().find(|(name, _)| *name == command.program())?;
    let mut files = Vec::new();
    let mut words = command.arguments().iter().map(AsRef::as_ref);
    let mut options = true;
    while let Some(word) = words.next() {
        if options && word == "--" {
            options = false;
        } else if options && word.starts_with(['-', '+']) && word.len() > 1 {
            let takes_value = valued.contains(&word) && !(*name == "stat" && word == "-f");
            if takes_value {
                words.next();
            }
        } else {
            files.push(word);
        }
    }
    (!files.is_empty()).then_some(files)
}

/// Programs that agents use on files where a dedicated tool would do better.
#[must_use]
pub(crate) fn is_file_operation(program: &str) -> bool {
    matches!(program, "cat" | "echo" | "sed" | "head" | "tail" | "printf" | "tee")
}

#[cfg(test)]
mod tests {
    use super::super::shell::Script;
    use super::*;
    use serde_json::json;

    #[test]
    fn finds_the_command_line() {
        assert_eq!(command_line(&json!({"command": "ls"})).as_deref(), Some("ls"));
        assert_eq!(command_line(&json!({"cmd": ["bash", "-lc", "ls -a"]})).as_deref(), Some("ls -a"));
        assert_eq!(command_line(&json!(["git", "status"])).as_deref(), Some("git status"));
        assert_eq!(command_line(&json!({"path": "x"})), None);
        assert_eq!(command_line(&json!({"command": ["cmd.exe", "/c", "dir"]})).as_deref(), Some("dir"));
        assert_eq!(command_line(&json!(["pwsh", "-Command", "Get-Date"])).as_deref(), Some("Get-Date"));
    }

    #[test]
    fn finds_the_files_that_are_shown() {
        let read = |text: &str| {
            let script = Script::parse(text);
            files_read(&script.commands[0]).map(|f| f.join("+"))
        };
        assert_eq!(read("cat foo.ts").as_deref(), Some("foo.ts"));
        assert_eq!(read("head -n 5 foo.ts").as_deref(), Some("foo.ts"));
        assert_eq!(read("head -5 foo.ts").as_deref(), Some("foo.ts"));
        assert_eq!(read("tail --lines=5 -f foo.ts").as_deref(), Some("foo.ts"));
        assert_eq!(read("wc -l a b").as_deref(), Some("a+b"));
        assert_eq!(read("stat -c %s 'my file'").as_deref(), Some("my file"));
        assert_eq!(read("cat -- -n").as_deref(), Some("-n"));
        assert_eq!(read("cat"), None);
        assert_eq!(read("grep x foo.ts"), None);
    }
}
