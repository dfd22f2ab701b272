//! The one command in a model's text, where mini-SWE-agent is told to find it.

/// What comes before and after a command. The first two are for code blocks, whose marks stand on lines of their own.
const MARKS: &[(&str, &str)] = &[
    ("```mswea_bash_command", "\n```"),
    ("```bash", "\n```"),
    ("<mswea_bash_command>", "</mswea_bash_command>"),
];

/// The text without its command, and the command. Without exactly one command there is none: that is what
/// mini-SWE-agent does, too.
pub(super) fn split(text: &str) -> (String, Option<&str>) {
    for (open, close) in MARKS {
        let mut found = commands(text, open, close);
        if let Some((start, end, command)) = found.next() {
            return match found.next() {
                None if command.is_empty() => (text.to_owned(), None),
                None => (format!("{}{}", &text[..start], &text[end..]), Some(command)),
                Some(_) => (text.to_owned(), None),
            };
        }
    }
    (text.to_owned(), None)
}

/// Where each command starts and ends with its marks, and the command.
fn commands<'a>(text: &'a str, open: &str, close: &str) -> impl Iterator<Item = (usize, usize, &'a str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let start = at + text.get(at..)?.find(open)?;
            let inner = start + open.len();
            at = inner;
            let body = &text[inner..];
            let code = open.starts_with('`');
            // A mark with another word after it is another language's.
            if code && !body.trim_start_matches([' ', '\t', '\r']).starts_with('\n') {
                continue;
            }
            let length = body.find(close)?;
            at = inner + length + close.len();
            return Some((start, at, body[..length].trim()));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_command_leaves_the_text() {
        assert_eq!(
            split("THOUGHT: look.\n\n```bash\nls -a\n```"),
            ("THOUGHT: look.\n\n".to_owned(), Some("ls -a"))
        );
        assert_eq!(split("a\n```mswea_bash_command\nls\n```\nb").1, Some("ls"));
        assert_eq!(split("a <mswea_bash_command>ls</mswea_bash_command>"), ("a ".to_owned(), Some("ls")));
        assert_eq!(
            split("```bash\ncat <<'E' > a.md\n    ```\nE\n```").1,
            Some("cat <<'E' > a.md\n    ```\nE")
        );
    }

    #[test]
    fn none_or_several_are_no_command() {
        for text in [
            "no",
            "```bash\nls\n```\n```bash\npwd\n```",
            "```bashrc\nx\n```",
            "```bash\nls",
            "```python\nx\n```",
        ] {
            assert_eq!(split(text), (text.to_owned(), None));
        }
    }
}
