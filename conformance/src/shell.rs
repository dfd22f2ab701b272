//! As much of the shell's grammar as doom-loop needs.

use serde_json::Value;

use crate::step::Call;

const SHELLS: [&str; 18] = [
    "bash",
    "shell",
    "sh",
    "zsh",
    "terminal",
    "run_command",
    "execute_command",
    "exec",
    "exec_command",
    "run_shell_command",
    "run_terminal_command",
    "run_terminal_cmd",
    "execute_bash",
    "run_bash",
    "local_shell",
    "run_in_terminal",
    "powershell",
    "cmd",
];

const READERS: [&str; 8] = ["cat", "head", "tail", "less", "more", "wc", "file", "stat"];

/// Whether the tool runs shell commands, by its name.
pub(crate) fn is_shell(tool: &str) -> bool {
    SHELLS.contains(&tool.to_lowercase().as_str())
}

/// The command of a call to a shell.
pub(crate) fn command(call: &Call) -> Option<Command> {
    match &call.args["command"] {
        Value::String(line) if is_shell(&call.tool) => Some(Command::parse(line)),
        _ => None,
    }
}

/// A command line: the words of its parts, which unquoted `|`, `>`, `<`, `;` and `&` separate.
pub(crate) struct Command {
    pub parts: Vec<Vec<String>>,
}

impl Command {
    fn parse(line: &str) -> Self {
        let mut parts = vec![Vec::new()];
        let mut word: Option<String> = None;
        let mut quote: Option<char> = None;
        let mut chars = line.chars().peekable();
        while let Some(c) = chars.next() {
            match (quote, c) {
                (Some(open), c) if c == open => quote = None,
                (Some('"'), '\\') if chars.peek().is_some_and(|c| "\"\\$`".contains(*c)) => {
                    word.get_or_insert_default().extend(chars.next());
                }
                (Some(_), c) => word.get_or_insert_default().push(c),
                (None, '"' | '\'') => {
                    quote = Some(c);
                    word.get_or_insert_default();
                }
                (None, '\\') => word.get_or_insert_default().extend(chars.next()),
                (None, '|' | '>' | '<' | ';' | '&') => {
                    close(&mut parts, &mut word);
                    parts.push(Vec::new());
                }
                (None, c) if c.is_whitespace() => close(&mut parts, &mut word),
                (None, c) => word.get_or_insert_default().push(c),
            }
        }
        close(&mut parts, &mut word);
        Self { parts }
    }

    /// Whether it holds an unquoted operator.
    pub fn is_complex(&self) -> bool {
        self.parts.len() > 1
    }

    /// The one file that a simple reading command reads.
    pub fn file_read(&self) -> Option<&str> {
        let [words] = self.parts.as_slice() else {
            return None;
        };
        let (verb, rest) = words.split_first()?;
        if !READERS.contains(&verb.as_str()) {
            return None;
        }
        let mut files = Vec::new();
        let mut rest = rest.iter();
        while let Some(word) = rest.next() {
            if word == "--" {
                files.extend(rest.by_ref());
            } else if word.len() > 1 && word.starts_with('-') {
                if takes_value(verb, word) {
                    rest.next();
                }
            } else {
                files.push(word);
            }
        }
        match files.as_slice() {
            [file] => Some(file),
            _ => None,
        }
    }
}

fn close(parts: &mut [Vec<String>], word: &mut Option<String>) {
    if let (Some(part), Some(word)) = (parts.last_mut(), word.take()) {
        part.push(word);
    }
}

fn takes_value(verb: &str, flag: &str) -> bool {
    match verb {
        "head" | "tail" => ["-n", "-c", "--lines", "--bytes"].contains(&flag),
        "stat" => ["-c", "--format", "--printf"].contains(&flag),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::Command;

    #[test]
    fn reads_of_one_file() {
        let reads = [
            "cat foo.ts",
            "head -n 5 foo.ts",
            "tail -5 foo.ts",
            "head --lines=5 'foo.ts'",
            "cat -- foo.ts",
            "wc -l \"foo.ts\"",
        ];
        for line in reads {
            assert_eq!(Command::parse(line).file_read(), Some("foo.ts"), "{line}");
        }
        for line in ["cat foo.ts | wc", "cat", "cat a b", "ls foo.ts", "cat a; cat b"] {
            assert_eq!(Command::parse(line).file_read(), None, "{line}");
        }
    }

    #[test]
    fn quoted_operators_are_words() {
        let quoted = Command::parse("cat 'a|b' ");
        assert!(!quoted.is_complex());
        assert_eq!(quoted.file_read(), Some("a|b"));
        assert!(!Command::parse(r#"grep "x;y\"|" f \> g"#).is_complex());
        assert!(Command::parse("a && b").is_complex());
    }
}
