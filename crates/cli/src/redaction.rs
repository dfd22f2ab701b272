//! Makes transcript text safe to show: secrets are masked, and nothing in it can affect a terminal or a page.

use std::borrow::Cow;

/// Maximum length of text that is processed, whatever is shown in the end.
const LOOKED_AT: usize = 64 * 1024;

/// How text from transcripts is shown.
pub(crate) struct Redaction {
    /// Whether arguments and results are left out.
    pub(crate) redact: bool,
}

impl Redaction {
    pub(crate) fn new(redact: bool) -> Self {
        Self { redact }
    }

    /// Returns one line of at most `room` characters.
    pub(crate) fn line(&self, text: &str, room: usize) -> String {
        deloop_detect::clean(&harmless(&masked(text)), room.max(2))
    }

    /// Returns lines of at most `room` characters in total.
    pub(crate) fn text(&self, text: &str, room: usize) -> String {
        let text = harmless(&masked(text));
        match text.char_indices().nth(room) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        }
    }
}

fn masked(text: &str) -> Cow<'_, str> {
    let mut end = text.len().min(LOOKED_AT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    deloop_detect::redact(&text[..end])
}

/// Removes what could mislead a terminal or a reader: escape sequences, control characters other than line endings,
/// and characters that are invisible or change the direction of text. Tabs become spaces.
pub(crate) fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => skip_escape(&mut rest),
            '\u{9b}' => skip_sequence(&mut rest),
            '\n' => out.push(c),
            '\t' => out.push_str("  "),
            _ if c.is_control() || deloop_detect::is_invisible(c) => {}
            _ => out.push(c),
        }
    }
    out
}

fn skip_escape(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match rest.peek() {
        Some('[') => {
            rest.next();
            skip_sequence(rest);
        }
        // An operating system command and similar sequences end with BEL or ESC \.
        Some(']' | 'P' | 'X' | '^' | '_') => {
            while let Some(c) = rest.next() {
                if c == '\u{7}' || c == '\u{9c}' {
                    break;
                }
                if c == '\u{1b}' {
                    rest.next_if_eq(&'\\');
                    break;
                }
                if rest.peek() == Some(&'\n') {
                    break;
                }
            }
        }
        Some('(' | ')' | '*' | '+' | '#' | '%') => {
            rest.next();
            rest.next_if(|c| !c.is_control());
        }
        Some(c) if !c.is_control() => {
            rest.next();
        }
        _ => {}
    }
}

fn skip_sequence(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    while let Some(c) = rest.next_if(|c| !c.is_control()) {
        if matches!(c, '\u{40}'..='\u{7e}') {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked() {
        let redaction = Redaction::new(false);
        // Assembled here, so that secret scanners don't report this repository.
        let parts = [
            ("sk-ant-", "api03-abcdefghijklmnop"),
            ("ghp_", "abcdefghijklmnopqrstuvwxyz0123456789"),
            ("AKIA", "ABCDEFGHIJKLMNOP"),
            ("xoxb-", "123456789012-abcdefgh"),
            ("AIza", "SyA1234567890abcdefghijklmnopqrstuv"),
            ("eyJ", "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc"),
            ("glpat-", "abcdefghij0123456789"),
            ("hf_", "abcdefghijklmnopqrstuv"),
        ];
        for (start, rest) in parts {
            let text = format!("curl -H 'x: {start}{rest}' https://example.com");
            assert_eq!(redaction.line(&text, 200), "curl -H 'x: [secret]' https://example.com", "{start}");
        }
        for (text, shown) in [
            ("export API_KEY=hunter2hunter2", "export API_KEY=[secret]"),
            (r#"{"password": "correct horse"}"#, r#"{"password": "[secret] horse"}"#),
            ("curl -H 'Authorization: Bearer abcdef123456'", "curl -H 'Authorization: Bearer [secret]'"),
            ("deploy --token abcdef123456 now", "deploy --token [secret] now"),
            ("git clone https://me:hunter22@host/x", "git clone https://me:[secret]@host/x"),
            ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n", "[secret]"),
        ] {
            assert_eq!(redaction.line(text, 200), shown);
        }
    }

    #[test]
    fn what_is_no_secret_stays() {
        let redaction = Redaction::new(false);
        for text in [
            "max_tokens: 100000",
            "input_tokens=1200",
            "token=$GITHUB_TOKEN",
            "cargo test --workspace",
            "git show 3f2a1c9e0b7d4e5f6a7b8c9d0e1f2a3b4c5d6e7f",
            "a risk-assessment of task-runners",
            "3f2a1c9e-0b7d-4e5f-6a7b-8c9d0e1f2a3b",
            "secret = true_or_none(x)".split('=').next().unwrap(),
        ] {
            assert_eq!(redaction.line(text, 200), text.trim_end());
        }
    }

    #[test]
    fn nothing_acts_on_the_terminal() {
        let text = "a\u{1b}[31mred\u{1b}[0m \u{1b}]0;title\u{7}b \u{9b}2Jc \u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\ \u{202e}evil\u{202c} z\u{200b}w \r\u{8}x\u{1b}(0y";
        assert_eq!(harmless(text), "ared b c link evil zw xy");
        assert_eq!(harmless("a\u{1b}]0;never closed\nnext"), "a\nnext");
        assert_eq!(harmless("tab\there\r\nnext"), "tab  here\nnext");
    }
}
