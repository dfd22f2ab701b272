//! JavaScript as tokens, as far as it takes to find calls and read literals.

/// Code longer than this is not read.
const MAX_CODE: usize = 1 << 20;

/// One token.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct JsToken {
    pub(super) kind: JsTokenKind,
    /// Whether it is the first of its line, where a statement may end without a semicolon.
    pub(super) begins_line: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum JsTokenKind {
    /// A name or keyword.
    Word(String),
    /// A number as it is written.
    Number(String),
    /// A string, or a template without interpolation.
    Text(String),
    /// A piece of a template with interpolation.
    Piece(Piece, String),
    /// A regular expression.
    Regex,
    /// Any other character. `=>` is `>` behind `=`.
    Sign(u8),
}

/// Which piece of a template a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece {
    Head,
    Middle,
    Tail,
}

impl JsToken {
    pub(super) fn is(&self, sign: u8) -> bool {
        self.kind == JsTokenKind::Sign(sign)
    }

    pub(super) fn word(&self) -> Option<&str> {
        if let JsTokenKind::Word(word) = &self.kind { Some(word) } else { None }
    }
}

/// Splits code into tokens in one pass. Returns `None` for code that is too long or not understood, such as an
/// unterminated string.
pub(super) fn tokens(code: &str) -> Option<Vec<JsToken>> {
    if code.len() > MAX_CODE {
        return None;
    }
    let mut lexer =
        JsLexer { code, bytes: code.as_bytes(), at: 0, out: Vec::new(), braces: Vec::new(), line: true };
    while lexer.at < lexer.bytes.len() {
        lexer.step()?;
    }
    lexer.braces.is_empty().then_some(lexer.out)
}

struct JsLexer<'a> {
    code: &'a str,
    bytes: &'a [u8],
    at: usize,
    out: Vec<JsToken>,
    /// For each template that is interpolating: how many braces are open in its interpolation.
    braces: Vec<usize>,
    /// Whether a line began since the last token.
    line: bool,
}

impl JsLexer<'_> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn push(&mut self, kind: JsTokenKind) {
        self.out.push(JsToken { kind, begins_line: std::mem::take(&mut self.line) });
    }

    fn step(&mut self) -> Option<()> {
        let byte = self.peek(0)?;
        match byte {
            b'\n' => {
                self.line = true;
                self.at += 1;
            }
            _ if byte.is_ascii_whitespace() => self.at += 1,
            b'/' if self.peek(1) == Some(b'/') => self.skip_to(b"\n", 0),
            b'/' if self.peek(1) == Some(b'*') => self.skip_to(b"*/", 2),
            b'/' if self.regex_may_follow() => self.regex()?,
            b'"' | b'\'' => self.string(byte)?,
            b'`' => {
                self.at += 1;
                let raw = self.is_raw();
                self.template(true, raw)?;
            }
            b'}' if self.braces.last() == Some(&0) => {
                self.at += 1;
                self.braces.pop();
                self.template(false, false)?;
            }
            _ if byte.is_ascii_digit() => {
                let text = self.run(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_'));
                self.push(JsTokenKind::Number(text));
            }
            _ if is_word(byte) => {
                let text = self.run(|b| is_word(b) || b.is_ascii_digit());
                self.push(JsTokenKind::Word(text));
            }
            _ => {
                match (byte, self.braces.last_mut()) {
                    (b'{', Some(open)) => *open += 1,
                    (b'}', Some(open)) => *open -= 1,
                    _ => {}
                }
                self.at += 1;
                self.push(JsTokenKind::Sign(byte));
            }
        }
        Some(())
    }

    fn run(&mut self, wanted: impl Fn(u8) -> bool) -> String {
        let start = self.at;
        while self.peek(0).is_some_and(&wanted) {
            self.at += 1;
        }
        self.code.get(start..self.at).unwrap_or_default().to_owned()
    }

    /// Skips to what ends a comment, from `from` bytes on; an unfinished comment is the rest of the code.
    fn skip_to(&mut self, end: &[u8], from: usize) {
        let rest = self.bytes.get(self.at + from..).unwrap_or_default();
        let found = memchr::memmem::find(rest, end);
        let skipped = found.map_or(rest.len(), |at| if end == b"\n" { at } else { at + end.len() });
        self.line |= memchr::memchr(b'\n', rest.get(..skipped).unwrap_or_default()).is_some();
        self.at = (self.at + from + skipped).min(self.bytes.len());
    }

    /// Returns whether a slash here begins a regular expression and does not divide.
    fn regex_may_follow(&self) -> bool {
        match self.out.last().map(|token| &token.kind) {
            None => true,
            Some(JsTokenKind::Sign(sign)) => !matches!(sign, b')' | b']' | b'}'),
            Some(JsTokenKind::Word(word)) => {
                matches!(word.as_str(), "return" | "typeof" | "case" | "of" | "in")
            }
            Some(JsTokenKind::Piece(piece, _)) => *piece != Piece::Tail,
            Some(JsTokenKind::Number(_) | JsTokenKind::Text(_) | JsTokenKind::Regex) => false,
        }
    }

    fn regex(&mut self) -> Option<()> {
        let mut in_class = false;
        self.at += 1;
        loop {
            match self.peek(0)? {
                b'\n' => return None,
                b'\\' => self.at += 1,
                b'[' => in_class = true,
                b']' => in_class = false,
                b'/' if !in_class => break,
                _ => {}
            }
            self.at += 1;
        }
        self.at += 1;
        self.run(|b| b.is_ascii_alphabetic());
        self.push(JsTokenKind::Regex);
        Some(())
    }

    fn string(&mut self, quote: u8) -> Option<()> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let plain = self.at;
            let rest = self.bytes.get(self.at..)?;
            self.at += memchr::memchr3(quote, b'\\', b'\n', rest)?;
            text.push_str(self.code.get(plain..self.at)?);
            match self.peek(0)? {
                b'\n' => return None,
                b'\\' => self.escape(&mut text)?,
                _ => break,
            }
        }
        self.at += 1;
        self.push(JsTokenKind::Text(text));
        Some(())
    }

    /// Returns whether the tokens before a template are `String.raw`; they are taken away.
    fn is_raw(&mut self) -> bool {
        let [.., object, dot, method] = self.out.as_slice() else { return false };
        let raw = object.word() == Some("String") && dot.is(b'.') && method.word() == Some("raw");
        if raw {
            self.out.truncate(self.out.len() - 3);
        }
        raw
    }

    /// Reads a template's text up to its end or to its next interpolation. A raw one must not interpolate.
    fn template(&mut self, first: bool, raw: bool) -> Option<()> {
        let mut text = String::new();
        loop {
            let plain = self.at;
            let rest = self.bytes.get(self.at..)?;
            self.at += memchr::memchr3(b'`', b'\\', b'$', rest)?;
            text.push_str(self.code.get(plain..self.at)?);
            match self.peek(0)? {
                b'`' => {
                    self.at += 1;
                    self.push(if first {
                        JsTokenKind::Text(text)
                    } else {
                        JsTokenKind::Piece(Piece::Tail, text)
                    });
                    return Some(());
                }
                b'$' if self.peek(1) == Some(b'{') => {
                    self.at += 2;
                    self.braces.push(0);
                    self.push(JsTokenKind::Piece(if first { Piece::Head } else { Piece::Middle }, text));
                    return (!raw).then_some(());
                }
                b'\\' if raw => {
                    let escaped = self.code.get(self.at + 1..)?.chars().next()?;
                    text.extend(['\\', escaped]);
                    self.at += 1 + escaped.len_utf8();
                }
                b'\\' => self.escape(&mut text)?,
                _ => {
                    text.push('$');
                    self.at += 1;
                }
            }
        }
    }

    /// Decodes the escape that begins here.
    fn escape(&mut self, text: &mut String) -> Option<()> {
        self.at += 1;
        let escaped = self.code.get(self.at..)?.chars().next()?;
        self.at += escaped.len_utf8();
        match escaped {
            'n' => text.push('\n'),
            't' => text.push('\t'),
            'r' => text.push('\r'),
            'b' => text.push('\u{8}'),
            'f' => text.push('\u{c}'),
            'v' => text.push('\u{b}'),
            '0' if !self.peek(0).is_some_and(|b| b.is_ascii_digit()) => text.push('\0'),
            'x' => text.push(char::from_u32(self.hex(2)?)?),
            'u' => self.unicode(text)?,
            '\r' if self.peek(0) == Some(b'\n') => self.at += 1,
            '\n' | '\r' => {}
            other => text.push(other),
        }
        Some(())
    }

    fn unicode(&mut self, text: &mut String) -> Option<()> {
        if self.peek(0) == Some(b'{') {
            self.at += 1;
            let digits = self.run(|b| b.is_ascii_hexdigit());
            text.push(char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?);
            self.at += usize::from(self.peek(0) == Some(b'}'));
            return Some(());
        }
        let unit = self.hex(4)?;
        let is_pair =
            (0xd800..0xdc00).contains(&unit) && self.peek(0) == Some(b'\\') && self.peek(1) == Some(b'u');
        if !is_pair {
            text.push(char::from_u32(unit).unwrap_or('\u{fffd}'));
            return Some(());
        }
        self.at += 2;
        let low = self.hex(4)?;
        let both = 0x1_0000 + ((unit - 0xd800) << 10) + low.wrapping_sub(0xdc00);
        text.push(if (0xdc00..0xe000).contains(&low) { char::from_u32(both)? } else { '\u{fffd}' });
        Some(())
    }

    fn hex(&mut self, digits: usize) -> Option<u32> {
        let value = u32::from_str_radix(self.code.get(self.at..self.at + digits)?, 16).ok()?;
        self.at += digits;
        Some(value)
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(code: &str) -> Option<Vec<String>> {
        let text = |token: JsToken| match token.kind {
            JsTokenKind::Text(text) | JsTokenKind::Piece(_, text) => Some(text),
            _ => None,
        };
        tokens(code).map(|tokens| tokens.into_iter().filter_map(text).collect())
    }

    #[test]
    fn strings_are_decoded() {
        let code = r#"'it\'s' "a\n\x41\u00e9\u{1F600}\ud83d\ude00" `$5 \` b`"#;
        assert_eq!(texts(code).unwrap(), ["it's", "a\nAé😀😀", "$5 ` b"]);
        assert_eq!(texts(r"String.raw`\d\`x`").unwrap(), [r"\d\`x"]);
        assert_eq!(texts("`a${f({x:`b${1}c`})}d`").unwrap(), ["a", "b", "c", "d"]);
    }

    #[test]
    fn what_is_no_string_does_not_begin_one() {
        assert_eq!(texts("// don't\na / 2; /* it's */ x.match(/['\"/]['/]/g); 'b'").unwrap(), ["b"]);
    }

    #[test]
    fn broken_code_is_not_understood() {
        for code in [
            "'a",
            "\"a\n\"",
            "`a",
            "`${",
            "`${{}",
            "'\\",
            "'\\u12",
            "/a",
            "/a\n/",
            "`${1}",
            "String.raw`${1}`",
        ] {
            assert_eq!(texts(code), None, "{code}");
        }
        assert_eq!(texts(&" ".repeat(MAX_CODE + 1)), None);
    }

    #[test]
    fn hostile_code_takes_no_longer() {
        for code in ["`${", "{", "/*", "\\", "(", "'\\u", "}", "[", "`"] {
            let _ = tokens(&code.repeat(MAX_CODE / code.len()));
        }
    }
}
