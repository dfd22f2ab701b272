//! What of a transcript may be seen: secrets are masked, and nothing in it can act on a terminal or a page.

use regex::{Captures, Regex};

/// No more than this of a text is looked at, whatever is shown of it in the end.
const LOOKED_AT: usize = 64 * 1024;

/// Stands for a secret.
const SECRET: &str = "[secret]";

/// Tokens that are known by how they look.
const TOKENS: &str = r"(?x)
    -----BEGIN\ [A-Z\ ]*PRIVATE\ KEY-----(?s:.*?)(?:-----END\ [A-Z\ ]*PRIVATE\ KEY-----|\z)
  | \b sk-(?:ant-|proj-|svcacct-|or-)? [A-Za-z0-9_-]{10,}
  | \b [spr]k_(?:live|test)_ [A-Za-z0-9]{8,}
  | \b gh[pousr]_ [A-Za-z0-9]{10,}
  | \b github_pat_ [A-Za-z0-9_]{10,}
  | \b glpat- [A-Za-z0-9_-]{10,}
  | \b xox[abeoprs]- [A-Za-z0-9-]{8,}
  | \b A(?:KIA|SIA) [0-9A-Z]{12,}
  | \b AIza [0-9A-Za-z_-]{20,}
  | \b ya29\. [0-9A-Za-z_-]{10,}
  | \b (?:hf|npm|dop_v1|shpat)_ [A-Za-z0-9]{16,}
  | \b pypi- [A-Za-z0-9_-]{16,}
  | \b SG\. [A-Za-z0-9_-]{10,} \. [A-Za-z0-9_-]{10,}
  | \b eyJ [A-Za-z0-9_-]{8,} \. [A-Za-z0-9_-]{8,} (?:\. [A-Za-z0-9_-]*)?
";

/// Values that are known by the name before them; the name stays.
const NAMED: &str = r#"(?xi)
    ( \b [a-z0-9_.-]* (?:api[_-]?key|secret|token|passw(?:or)?d|passphrase|credential|private[_-]?key|access[_-]?key) [a-z0-9_.-]* ["']? \s* [:=] \s* ["']?
    | --? [a-z-]* (?:token|password|secret|api-?key) [\ =]+
    | \b (?:bearer|basic) \s+
    | :// [^/\s:@]+ :
    )
    ( [^\s"'&;,@<>]{6,} )
"#;

/// How text from transcripts is shown.
pub(crate) struct Veil {
    /// Arguments and results are left out.
    pub(crate) redact: bool,
    tokens: Regex,
    named: Regex,
}

impl Veil {
    pub(crate) fn new(redact: bool) -> Self {
        let regex = |pattern| Regex::new(pattern).unwrap_or_else(|error| unreachable!("{error}"));
        Self { redact, tokens: regex(TOKENS), named: regex(NAMED) }
    }

    /// One line of at most `room` characters.
    pub(crate) fn line(&self, text: &str, room: usize) -> String {
        deloop::clean(&harmless(&self.masked(text)), room.max(2))
    }

    /// Lines, of at most `room` characters in all.
    pub(crate) fn text(&self, text: &str, room: usize) -> String {
        let text = harmless(&self.masked(text));
        match text.char_indices().nth(room) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        }
    }

    fn masked(&self, text: &str) -> String {
        let mut end = text.len().min(LOOKED_AT);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let text = self.tokens.replace_all(&text[..end], SECRET);
        let masked = self.named.replace_all(&text, |found: &Captures<'_>| {
            let value = &found[2];
            let plain = value.starts_with(['$', '{', '(', '[', '%'])
                || value.bytes().all(|b| b.is_ascii_digit() || b == b'.')
                || ["true", "false", "null", "none", "undefined"]
                    .iter()
                    .any(|w| value.eq_ignore_ascii_case(w));
            if plain { found[0].to_owned() } else { format!("{}{SECRET}", &found[1]) }
        });
        masked.into_owned()
    }
}

/// The text without what a terminal or a reader could be misled by: escape sequences, control characters other than
/// line ends, and characters that are invisible or turn the direction of writing around. Tabs become spaces.
pub(crate) fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => skip_escape(&mut rest),
            '\u{9b}' => skip_sequence(&mut rest),
            '\n' => out.push(c),
            '\t' => out.push_str("  "),
            _ if c.is_control() || misleads(c) => {}
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
        // An operating system command, and its like, ends with BEL or ESC \.
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

fn misleads(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked() {
        let veil = Veil::new(false);
        // Put together here, so that no scanner of this repository takes them for real ones.
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
            assert_eq!(veil.line(&text, 200), "curl -H 'x: [secret]' https://example.com", "{start}");
        }
        for (text, shown) in [
            ("export API_KEY=hunter2hunter2", "export API_KEY=[secret]"),
            (r#"{"password": "correct horse"}"#, r#"{"password": "[secret] horse"}"#),
            ("curl -H 'Authorization: Bearer abcdef123456'", "curl -H 'Authorization: Bearer [secret]'"),
            ("deploy --token abcdef123456 now", "deploy --token [secret] now"),
            ("git clone https://me:hunter22@host/x", "git clone https://me:[secret]@host/x"),
            ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n", "[secret]"),
        ] {
            assert_eq!(veil.line(text, 200), shown);
        }
    }

    #[test]
    fn what_is_no_secret_stays() {
        let veil = Veil::new(false);
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
            assert_eq!(veil.line(text, 200), text.trim_end());
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
