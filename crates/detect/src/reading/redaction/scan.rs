//! Scans a text word by word. What a word is depends on its name and on what precedes it.

use super::keys::{in_key, in_random, prefix_of, private_key, random_parts, shaped_token};
use super::names::is_secret_name;
use super::shapes::{JOINED, ONLY_LOGIN, SPACED};

/// What the next word is, based on what precedes it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Anything,
    /// A secret if a `:` or `=` comes first.
    AfterSign,
    Secret,
    /// `user:password`.
    Login,
    /// Everything up to the closing quote, or to the end.
    Header,
}

/// Finds secrets, word by word.
pub(super) struct Scan<'a> {
    text: &'a str,
    found: Vec<(usize, usize)>,
    next: Next,
    /// The start of the command.
    command: usize,
}

impl<'a> Scan<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, found: Vec::new(), next: Next::Anything, command: 0 }
    }

    /// Returns the positions of the secrets.
    pub(super) fn run(mut self) -> Vec<(usize, usize)> {
        let bytes = self.text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            if CUTS[usize::from(bytes[at])] {
                self.cut(bytes[at], at);
                at += 1;
                continue;
            }
            let end = bytes[at..].iter().position(|b| CUTS[usize::from(*b)]).map_or(bytes.len(), |n| at + n);
            if bytes[at..end].starts_with(b"-----BEGIN")
                && let Some(end) = private_key(&self.text[at..])
            {
                self.found.push((at, at + end));
                at += end;
                continue;
            }
            self.word(at, end);
            at = end;
        }
        self.found
    }

    /// Handles the text between two words.
    fn cut(&mut self, byte: u8, at: usize) {
        // A new command starts.
        if matches!(byte, b';' | b'|' | b'&' | b'\n' | b'(') {
            if self.next != Next::Header {
                self.next = Next::Anything;
            }
            self.command = at + 1;
        }
    }

    fn word(&mut self, start: usize, end: usize) {
        let word = &self.text[start..end];
        let next = std::mem::replace(&mut self.next, Next::Anything);
        match next {
            Next::Secret if is_sign(word) => self.next = Next::Secret,
            Next::AfterSign if is_sign(word) => self.next = Next::Secret,
            Next::AfterSign if word.starts_with(['=', ':']) => self.value(start + 1, end),
            Next::Secret if is_scheme(word) => self.next = Next::Secret,
            Next::Secret if !word.starts_with("--") => self.value(start, end),
            Next::Header if is_scheme(word) => self.next = Next::Header,
            Next::Header => {
                self.value(start, end);
                // The quote that ends the header ends the secret.
                let closes = self.text.as_bytes().get(end).is_some_and(|b| matches!(b, b'"' | b'\''));
                self.next = if closes { Next::Anything } else { Next::Header };
            }
            Next::Login => self.login(start, end),
            _ => self.plain(start, end),
        }
    }

    /// Handles a word without context.
    fn plain(&mut self, start: usize, end: usize) {
        let word = &self.text[start..end];
        if (word.starts_with('-') || word == "/p") && self.option(start, end) {
            return;
        }
        // Too short for anything below.
        if word.len() < 3 {
            return;
        }
        if is_scheme(word) {
            self.next = Next::Secret;
            return;
        }
        let signed = word.bytes().any(|b| matches!(b, b'=' | b':'));
        if signed && let Some(at) = word.find("://") {
            self.url(start + at + 3, end);
        }
        // `name=value`, `name:value`, `?name=value`.
        let mut from = 0;
        while signed && let Some(at) = word[from..].find(['=', ':']).map(|at| from + at) {
            let name = word[..at].rsplit(['?', '/', '=', ':', '@', ',', '#']).next().unwrap_or_default();
            if is_secret_name(name) && !word[at..].starts_with("://") {
                let rest = word[at + 1..].trim_start_matches(['=', ':', '>']);
                let value = end - rest.len();
                let header = word.as_bytes()[at] == b':';
                let lower = name.to_ascii_lowercase();
                let whole = header && (lower.ends_with("cookie") || lower.ends_with("authorization"));
                if rest.is_empty() {
                    self.next = if whole { Next::Header } else { Next::Secret };
                } else {
                    self.value(value, end);
                    self.next = if whole { Next::Header } else { Next::Anything };
                }
                return;
            }
            from = at + 1;
        }
        if is_secret_name(word) {
            self.next = Next::AfterSign;
        }
        self.known(start, end);
    }

    /// Handles an option. Returns whether the word is done.
    fn option(&mut self, start: usize, end: usize) -> bool {
        let word = &self.text[start..end];
        if matches!(word, "-u" | "--user" | "--proxy-user" | "-U") {
            self.next = Next::Login;
            return true;
        }
        if let Some(login) = word.strip_prefix("-u").filter(|l| l.contains(':')) {
            self.login(end - login.len(), end);
            return true;
        }
        if word.starts_with("--user=") || word.starts_with("--proxy-user=") {
            self.login(start + word.find('=').unwrap_or(0) + 1, end);
            return true;
        }
        if (word.len() == 2 || word == "--cookie") && SPACED.iter().any(|(_, option)| word == *option) {
            let takes = |program: &str| SPACED.iter().any(|(p, option)| *p == program && word == *option);
            if self.programs(start).any(|p| takes(p) && (self.logs_in(start) || !ONLY_LOGIN.contains(&p))) {
                self.next = Next::Secret;
                return true;
            }
        }
        if word.len() > 2 && word.starts_with("-p") && self.programs(start).any(|p| JOINED.contains(&p)) {
            self.value(start + 2, end);
            return true;
        }
        if word.starts_with('-') && !word.contains(['=', ':']) && is_secret_name(word) {
            self.next = Next::Secret;
            return true;
        }
        false
    }

    /// Returns the words of the command before `at`, without their folders. The program needn't be the first of them,
    /// because commands are also quoted in prose.
    fn programs(&self, at: usize) -> impl Iterator<Item = &'a str> {
        let near = self.command.max(at.saturating_sub(200));
        let from = (near..=at).find(|from| self.text.is_char_boundary(*from)).unwrap_or(at);
        let words = self.text[from..at].split(|c: char| c.is_ascii() && CUTS[c as usize]);
        words.map(|word| word.rsplit('/').next().unwrap_or(word))
    }

    fn logs_in(&self, at: usize) -> bool {
        self.programs(at).any(|word| matches!(word, "login" | "upload"))
    }

    /// Handles `user:password`; the user stays.
    fn login(&mut self, start: usize, end: usize) {
        let word = &self.text[start..end];
        match word.find([':', '%']) {
            Some(at) => self.value(start + at + 1, end),
            None => self.known(start, end),
        }
    }

    /// Handles what may precede the host after `://`: `user:password@`, or only a token.
    fn url(&mut self, start: usize, end: usize) {
        let rest = &self.text[start..end];
        let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
        let cut = end == self.text.len() && authority.len() == rest.len();
        match (authority.rfind('@'), authority.find(':')) {
            (Some(at), Some(colon)) if colon < at => self.value(start + colon + 1, start + at),
            // In `git@host`, `git` is a user.
            (Some(at), _) if at >= 10 => self.found.push((start, start + at)),
            // The end may be truncated.
            (None, Some(colon))
                if cut
                    && !authority.contains(']')
                    && !authority[colon + 1..].bytes().all(|b| b.is_ascii_digit()) =>
            {
                self.value(start + colon + 1, end);
            }
            _ => {}
        }
    }

    /// Handles a value that is a secret by its name, unless it is a placeholder.
    fn value(&mut self, start: usize, end: usize) {
        let value = &self.text[start..end];
        let stands_for = value.starts_with(['$', '{', '(', '[', '%', '<', '*', '…'])
            || value.bytes().all(|b| b.is_ascii_digit() || b == b'.')
            || ["true", "false", "null", "none", "undefined"].iter().any(|w| value.eq_ignore_ascii_case(w));
        if !stands_for && start < end {
            self.found.push((start, end));
        }
    }

    /// Finds keys of known services, and random words.
    fn known(&mut self, start: usize, end: usize) {
        const SHORTEST: usize = 10;
        if end - start < SHORTEST {
            return;
        }
        let bytes = self.text.as_bytes();
        let mut at = start;
        // The end of the run of letters that was checked last.
        let mut looked = start;
        while at + SHORTEST <= end {
            let begins =
                bytes[at].is_ascii_alphanumeric() && (at == start || !bytes[at - 1].is_ascii_alphanumeric());
            if begins && let Some(prefix) = prefix_of(&bytes[at..end]) {
                let stop = bytes[at..end]
                    .iter()
                    .skip(prefix)
                    .position(|b| !in_key(*b))
                    .map_or(end, |n| at + prefix + n);
                if stop - at >= SHORTEST {
                    self.found.push((at, stop));
                    at = stop;
                    continue;
                }
            }
            if begins && let Some(length) = shaped_token(&bytes[at..end]) {
                self.found.push((at, at + length));
                at += length;
                continue;
            }
            if begins && at >= looked {
                let is_end = |n: &usize| match bytes[at + n] {
                    // Between a name and its value; at the end of a token, it fills up.
                    b'=' => bytes[at + n + 1..end].first().is_some_and(u8::is_ascii_alphanumeric),
                    byte => !in_random(byte),
                };
                let length = (0..end - at).find(is_end).unwrap_or(end - at);
                looked = at + length;
                let before = self.found.len();
                random_parts(&bytes[at..at + length], |from, to| self.found.push((at + from, at + to)));
                if self.found.len() > before {
                    at += length;
                    continue;
                }
            }
            at += 1;
        }
    }
}

fn is_sign(word: &str) -> bool {
    word.bytes().all(|b| matches!(b, b':' | b'=' | b'>'))
}

/// Returns whether a word precedes the credentials in a header.
fn is_scheme(word: &str) -> bool {
    (5..=9).contains(&word.len())
        && ["bearer", "basic", "digest", "negotiate"].iter().any(|s| word.eq_ignore_ascii_case(s))
}

/// The bytes that end a word.
const CUTS: [bool; 256] = {
    let mut cuts = [false; 256];
    let bytes = b" \t\r\n\x0b\x0c\"'`,;&|<>(){}[]\\";
    let mut i = 0;
    while i < bytes.len() {
        cuts[bytes[i] as usize] = true;
        i += 1;
    }
    cuts
};
