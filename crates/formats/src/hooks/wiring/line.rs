use super::Installable;

/// How deloop is called: the command line, without what an agent's shell needs around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookLine {
    /// `deloop`, or its path.
    pub program: String,
    /// The mode, if given.
    pub mode: Option<String>,
    /// The profile, if given.
    pub profile: Option<String>,
    /// The server, if given.
    pub server: Option<String>,
}

/// A hook found in an agent's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// How deloop is called.
    pub line: HookLine,
    /// The whole command that the agent runs, unchanged.
    pub command: String,
}

impl HookLine {
    /// Returns `deloop hook AGENT …`, quoted for a POSIX shell.
    #[must_use]
    pub fn command(&self, agent: &str) -> String {
        let mut words = vec![quoted(&self.program), "hook".to_owned(), agent.to_owned()];
        for (flag, value) in self.flags() {
            words.extend([flag.to_owned(), quoted(value)]);
        }
        words.join(" ")
    }

    /// Returns the flags that are given, with their values.
    pub fn flags(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let flags = [("--mode", &self.mode), ("--profile", &self.profile), ("--server", &self.server)];
        flags.into_iter().filter_map(|(flag, value)| Some((flag, value.as_deref()?)))
    }

    /// Parses a command that calls this agent's hook, whatever wraps it and wherever the program is.
    pub(crate) fn parse(command: &str, agent: &Installable) -> Option<Self> {
        let words = words(command);
        let at = words.windows(3).position(|w| {
            let name = w[0].rsplit(['/', '\\']).next().unwrap_or_default();
            // A release may be unpacked under its full name, `deloop-0.1.0`.
            let version = name.strip_prefix("deloop-").unwrap_or_default();
            let released = version.starts_with(|c: char| c.is_ascii_digit());
            let ours = matches!(name, "deloop" | "deloop.exe") || released;
            ours && w[1] == "hook" && agent.answers_to(&w[2])
        })?;
        Some(Self::with_flags(&words[at], &words[at + 3..]))
    }

    /// Parses a program and its flags.
    pub(crate) fn with_flags(program: &str, words: &[String]) -> Self {
        let flag = |name: &str| {
            let at = words.iter().position(|word| word == name)?;
            words.get(at + 1).cloned()
        };
        let (mode, profile, server) = (flag("--mode"), flag("--profile"), flag("--server"));
        Self { program: program.to_owned(), mode, profile, server }
    }
}

/// Quotes a word for a POSIX shell if necessary.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Splits a command into words. Operators that touch a word stay part of it; the word `deloop` never has any.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = command.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some('\''), _) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            // Windows paths keep their backslashes; before a character special to the shell, a backslash is a quote.
            (_, '\\') => match chars.clone().next() {
                Some(next) if " '\"\\$&;()|<>`".contains(next) => {
                    chars.next();
                    word.get_or_insert_default().push(next);
                }
                _ => word.get_or_insert_default().push(c),
            },
            (None, c) if c.is_whitespace() || c == ';' => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::super::installable;
    use super::*;

    #[test]
    fn a_command_is_ours_wherever_the_program_is() {
        let gemini = installable("gemini").unwrap();
        let found = |command: &str| HookLine::parse(command, &gemini);
        for ours in [
            "deloop hook gemini-cli",
            "deloop hook gemini",
            "/usr/bin/deloop hook gemini-cli --mode enforce",
            "'/opt/my tools/deloop' hook gemini-cli || exit 0",
            r#""C:\Program Files\deloop.exe" hook gemini-cli"#,
            r"C:\tools\deloop.exe hook gemini-cli",
            r"/opt/my\ tools/deloop hook gemini-cli",
            "command -v deloop >/dev/null || exit 0; exec deloop hook gemini-cli 2>/dev/null",
        ] {
            assert!(found(ours).is_some(), "{ours}");
        }
        for other in [
            "deloop hook claude-code",
            "my-deloop hook gemini-cli",
            "deloop scan gemini-cli",
            "deloop.sh hook gemini-cli",
            "echo 'deloop hook gemini-cli'",
            "",
        ] {
            assert_eq!(found(other), None, "{other}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let agent = installable("codex").unwrap();
        for program in ["deloop", "/opt/deloop-0.1.0", "/a b/deloop", "/it's/deloop", "/a\"b$c\\d/deloop"] {
            for (mode, profile, server) in [
                (None, None, None),
                (Some("enforce"), None, Some("https://deloop.example.com:7430/a?b")),
                (Some("nudge"), Some("/my profiles/a.toml"), Some("http://[::1]:7430")),
            ] {
                let line = HookLine {
                    program: program.to_owned(),
                    mode: mode.map(str::to_owned),
                    profile: profile.map(str::to_owned),
                    server: server.map(str::to_owned),
                };
                assert_eq!(HookLine::parse(&line.command("codex"), &agent), Some(line));
            }
        }
    }
}
