use std::borrow::Cow;

use deloop_types::limits;

use super::{Token, lex};

/// A shell command as a list of simple commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script<'a> {
    /// The simple commands in order, whatever joins them.
    pub commands: Vec<SimpleCommand<'a>>,
    /// Whether it is a single simple command without pipes, redirections, `;`, `&` or a second line.
    pub plain: bool,
    /// Whether a redirection writes to a file.
    pub redirects: bool,
    /// Whether `&` leaves a command running.
    pub leaves_running: bool,
}

/// A program and its arguments, without assignments before it and without redirections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SimpleCommand<'a> {
    /// The program, then its arguments.
    pub words: Vec<Cow<'a, str>>,
}

impl<'a> Script<'a> {
    /// Parses the first [`limits::COMMAND`] bytes of a command, in linear time.
    ///
    /// ```
    /// use deloop_detect::shell::Script;
    /// let script = Script::parse("RUST_LOG=debug cargo test 2>&1 | tail -5");
    /// assert_eq!(script.commands[0].words, ["cargo", "test"]);
    /// assert_eq!(script.commands[1].program(), "tail");
    /// assert!(!script.plain);
    /// ```
    #[must_use]
    pub fn parse(text: &'a str) -> Self {
        let mut script = Self { commands: Vec::new(), plain: true, redirects: false, leaves_running: false };
        let mut command = SimpleCommand::default();
        let mut target_of_redirect = false;
        let mut writing = false;
        let text = within(text.trim(), limits::COMMAND);
        for token in lex(text) {
            match token {
                Token::Control(operator) => {
                    script.plain = false;
                    script.leaves_running |= operator == "&";
                    target_of_redirect = false;
                    script.end(&mut command);
                }
                Token::Redirect(operator) => {
                    script.plain = false;
                    target_of_redirect = !operator.contains("<<") || operator.ends_with("<<<");
                    writing = operator.contains('>');
                }
                Token::Word(word) if target_of_redirect => {
                    target_of_redirect = false;
                    let nowhere = word.starts_with("/dev/") || word.bytes().all(|b| b.is_ascii_digit());
                    script.redirects |= writing && !nowhere;
                }
                Token::Word(word) => {
                    let before_program = command.words.is_empty();
                    if !(before_program && (is_assignment(&word) || is_reserved(&word))) {
                        command.words.push(word);
                    }
                }
            }
        }
        script.end(&mut command);
        script
    }

    fn end(&mut self, command: &mut SimpleCommand<'a>) {
        if !command.words.is_empty() {
            self.commands.push(std::mem::take(command));
        }
    }
}

impl SimpleCommand<'_> {
    /// Returns the program's name without its folder.
    #[must_use]
    pub fn program(&self) -> &str {
        program_name(self.words.first().map_or("", |w| w.as_ref()))
    }

    /// Returns the arguments.
    #[must_use]
    pub fn arguments(&self) -> &[Cow<'_, str>] {
        self.words.get(1..).unwrap_or_default()
    }
}

/// Returns a program's name without its folder.
pub(crate) fn program_name(path: &str) -> &str {
    let bytes = path.as_bytes();
    memchr::memrchr2(b'/', b'\\', bytes).map_or(path, |at| &path[at + 1..])
}

/// Returns the beginning of a text, at most this many bytes.
fn within(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.get(..end.unwrap_or(0)).unwrap_or(text)
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            && name.bytes().next().is_some_and(|b| !b.is_ascii_digit())
    })
}

fn is_reserved(word: &str) -> bool {
    matches!(
        word,
        "if" | "then"
            | "elif"
            | "else"
            | "fi"
            | "for"
            | "while"
            | "until"
            | "do"
            | "done"
            | "{"
            | "}"
            | "!"
            | "time"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn programs(text: &str) -> Vec<String> {
        Script::parse(text).commands.iter().map(|c| c.program().to_owned()).collect()
    }

    #[test]
    fn finds_the_programs() {
        assert_eq!(programs("cd /x && A=1 B=2 ./gradlew test"), ["cd", "gradlew"]);
        assert_eq!(programs("if true; then make test; fi"), ["true", "make"]);
        assert_eq!(programs("time cargo test > out.txt 2>&1"), ["cargo"]);
        assert_eq!(programs("FOO=1"), Vec::<String>::new());
        assert!(Script::parse("cat 'a|b'\n").plain);
        assert!(!Script::parse("cat a\ncat b").plain);
    }
}
