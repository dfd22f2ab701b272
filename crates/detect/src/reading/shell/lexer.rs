use std::borrow::Cow;

/// A token of a shell command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token<'a> {
    /// A word with its quotes removed. Substitutions (`$(…)`, backticks) stay unchanged.
    Word(Cow<'a, str>),
    /// A control operator: `;`, `&`, `&&`, `|`, `||`, `(`, `)` or a newline.
    Control(&'a str),
    /// A redirection operator without its target: `>`, `2>>`, `<`, `<<<`, `>&`.
    Redirect(&'a str),
}

/// Splits a command into tokens, in linear time. Unclosed quotes end with the text.
///
/// ```
/// use deloop_detect::shell::{Token, lex};
/// let tokens = lex("grep 'a|b' x.txt | head -n 5");
/// assert_eq!(tokens.iter().filter(|t| matches!(t, Token::Control("|"))).count(), 1);
/// ```
#[must_use]
pub fn lex(text: &str) -> Vec<Token<'_>> {
    let mut lexer =
        Lexer { text, bytes: text.as_bytes(), at: 0, tokens: Vec::with_capacity(16), heredocs: Vec::new() };
    lexer.run();
    lexer.tokens
}

struct Lexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    tokens: Vec<Token<'a>>,
    /// The delimiters of here-documents whose bodies start on the next line.
    heredocs: Vec<(String, bool)>,
}

impl<'a> Lexer<'a> {
    fn run(&mut self) {
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\\' if self.peek(1) == Some(b'\n') => self.at += 2,
                b'#' => self.at = self.line_end(),
                b'\n' => {
                    self.control(1);
                    self.skip_heredocs();
                }
                b';' => self.control(if self.peek(1) == Some(b';') { 2 } else { 1 }),
                b'(' | b')' => self.control(1),
                b'|' => self.control(if matches!(self.peek(1), Some(b'|' | b'&')) { 2 } else { 1 }),
                b'&' if self.peek(1) == Some(b'>') => {
                    self.redirect(if self.peek(2) == Some(b'>') { 3 } else { 2 });
                }
                b'&' => self.control(if self.peek(1) == Some(b'&') { 2 } else { 1 }),
                b'<' | b'>' => self.redirect(self.redirect_length(self.at)),
                b'0'..=b'9' if self.numbered_redirect() > 0 => self.redirect(self.numbered_redirect()),
                _ => self.word(),
            }
        }
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn line_end(&self) -> usize {
        let rest = &self.bytes[self.at..];
        self.at + rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len())
    }

    fn control(&mut self, length: usize) {
        self.tokens.push(Token::Control(&self.text[self.at..self.at + length]));
        self.at += length;
    }

    fn redirect(&mut self, length: usize) {
        let operator = &self.text[self.at..self.at + length];
        self.tokens.push(Token::Redirect(operator));
        self.at += length;
        if operator.ends_with("<<") || operator.ends_with("<<-") {
            while matches!(self.peek(0), Some(b' ' | b'\t')) {
                self.at += 1;
            }
            let before = self.tokens.len();
            if self.peek(0).is_some_and(|b| !b.is_ascii_whitespace()) {
                self.word();
            }
            if let Some(Token::Word(end)) = self.tokens.get(before) {
                self.heredocs.push((end.to_string(), operator.ends_with('-')));
            }
        }
    }

    /// Returns the length of the redirection operator at `at`, which is `<` or `>`.
    fn redirect_length(&self, at: usize) -> usize {
        let rest = &self.bytes[at..];
        ["<<<", "<<-", "<<", "<&", "<>", ">>", ">&", ">|", "<", ">"]
            .iter()
            .find(|op| rest.starts_with(op.as_bytes()))
            .map_or(1, |op| op.len())
    }

    /// Returns the length of a redirection with its file descriptor (`2>&`) here, or 0. Reads at most three digits, so
    /// that a long run of digits isn't scanned repeatedly.
    fn numbered_redirect(&self) -> usize {
        let digits = self.bytes[self.at..].iter().take(4).take_while(|b| b.is_ascii_digit()).count();
        match self.peek(digits) {
            Some(b'<' | b'>') if digits < 4 => digits + self.redirect_length(self.at + digits),
            _ => 0,
        }
    }

    fn skip_heredocs(&mut self) {
        for (end, strip_tabs) in std::mem::take(&mut self.heredocs) {
            while self.at < self.bytes.len() {
                let stop = self.line_end();
                let line = &self.text[self.at..stop];
                let line = if strip_tabs { line.trim_start_matches('\t') } else { line };
                self.at = (stop + 1).min(self.bytes.len());
                if line.trim_end_matches('\r') == end {
                    break;
                }
            }
        }
    }

    fn word(&mut self) {
        let start = self.at;
        let mut built: Option<String> = None;
        let mut copied = start;
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')' => break,
                b'\\' => {
                    let out = built.get_or_insert_default();
                    out.push_str(&self.text[copied..self.at]);
                    self.at += 1;
                    copied = self.at;
                    match self.peek(0) {
                        Some(b'\n') => {
                            self.at += 1;
                            copied = self.at;
                        }
                        Some(_) => self.at += self.char_length(),
                        None => {}
                    }
                }
                b'\'' => {
                    let out = built.get_or_insert_default();
                    out.push_str(&self.text[copied..self.at]);
                    self.at += 1;
                    let rest = &self.bytes[self.at..];
                    let close = self.at + rest.iter().position(|b| *b == b'\'').unwrap_or(rest.len());
                    out.push_str(&self.text[self.at..close]);
                    self.at = (close + 1).min(self.bytes.len());
                    copied = self.at;
                }
                b'"' => {
                    let out = built.get_or_insert_default();
                    out.push_str(&self.text[copied..self.at]);
                    self.at += 1;
                    copied = self.at;
                    self.double_quoted(out, &mut copied);
                }
                b'$' if self.peek(1) == Some(b'(') => {
                    self.at += 1;
                    self.skip_parentheses();
                }
                b'`' => self.skip_backticks(),
                // No byte of a multi-byte character is one of those above.
                _ => self.at += 1,
            }
        }
        let word = match built {
            None => Cow::Borrowed(&self.text[start..self.at]),
            Some(mut out) => {
                out.push_str(&self.text[copied..self.at]);
                Cow::Owned(out)
            }
        };
        self.tokens.push(Token::Word(word));
    }

    fn char_length(&self) -> usize {
        self.text[self.at..].chars().next().map_or(1, char::len_utf8)
    }

    /// Reads from after the opening `"` to after the closing one.
    fn double_quoted(&mut self, out: &mut String, copied: &mut usize) {
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b'"' => {
                    out.push_str(&self.text[*copied..self.at]);
                    self.at += 1;
                    *copied = self.at;
                    return;
                }
                b'\\' if matches!(self.peek(1), Some(b'"' | b'\\' | b'$' | b'`')) => {
                    out.push_str(&self.text[*copied..self.at]);
                    *copied = self.at + 1;
                    self.at += 2;
                }
                b'$' if self.peek(1) == Some(b'(') => {
                    self.at += 1;
                    self.skip_parentheses();
                }
                b'`' => self.skip_backticks(),
                _ => self.at += 1,
            }
        }
        out.push_str(&self.text[*copied..self.at]);
        *copied = self.at;
    }

    /// Skips from an opening `(` to after its closing `)`, respecting quotes.
    fn skip_parentheses(&mut self) {
        let mut depth = 0_usize;
        while let Some(&byte) = self.bytes.get(self.at) {
            self.at += 1;
            match byte {
                b'(' => depth += 1,
                b')' => {
                    depth -= 1;
                    if depth == 0 {
                        return;
                    }
                }
                b'\\' => self.at = (self.at + 1).min(self.bytes.len()),
                b'\'' | b'"' => {
                    while let Some(&inner) = self.bytes.get(self.at) {
                        self.at += 1;
                        if inner == byte {
                            break;
                        }
                        if inner == b'\\' && byte == b'"' {
                            self.at = (self.at + 1).min(self.bytes.len());
                        }
                    }
                }
                _ => {}
            }
        }
        self.at = self.at.min(self.bytes.len());
        self.skip_to_boundary();
    }

    fn skip_backticks(&mut self) {
        self.at += 1;
        while let Some(&byte) = self.bytes.get(self.at) {
            self.at += 1;
            match byte {
                b'`' => break,
                b'\\' => self.at = (self.at + 1).min(self.bytes.len()),
                _ => {}
            }
        }
        self.skip_to_boundary();
    }

    /// Moves to a character boundary: skipping an escaped byte may have ended inside a character.
    fn skip_to_boundary(&mut self) {
        while !self.text.is_char_boundary(self.at) {
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deloop_testing::assert_reads_linearly;

    fn words(text: &str) -> Vec<String> {
        lex(text)
            .into_iter()
            .map(|t| match t {
                Token::Word(w) => format!("w:{w}"),
                Token::Control(o) => format!("c:{}", o.replace('\n', "NL")),
                Token::Redirect(o) => format!("r:{o}"),
            })
            .collect()
    }

    #[test]
    fn cuts_commands_as_a_shell_does() {
        assert_eq!(words("head -n 5 foo.ts"), ["w:head", "w:-n", "w:5", "w:foo.ts"]);
        assert_eq!(words("cat 'a|b' \"c;d\""), ["w:cat", "w:a|b", "w:c;d"]);
        assert_eq!(words("A=1 cat x|wc -l"), ["w:A=1", "w:cat", "w:x", "c:|", "w:wc", "w:-l"]);
        assert_eq!(words("a&&b||c;d&"), ["w:a", "c:&&", "w:b", "c:||", "w:c", "c:;", "w:d", "c:&"]);
        assert_eq!(words("x 2>&1 >>out"), ["w:x", "r:2>&", "w:1", "r:>>", "w:out"]);
        assert_eq!(words(r"cat a\ b \; 'it'\''s'"), ["w:cat", "w:a b", "w:;", "w:it's"]);
        assert_eq!(words("echo $(ls | wc -l) `a;b`"), ["w:echo", "w:$(ls | wc -l)", "w:`a;b`"]);
        assert_eq!(words("echo \"$(a | b)\" # not | this"), ["w:echo", "w:$(a | b)"]);
        assert_eq!(words("x=\"a\"'b'c"), ["w:x=abc"]);
        assert_eq!(words("é 'ü"), ["w:é", "w:ü"]);
    }

    #[test]
    fn a_here_document_is_not_code() {
        let text = "cat > f <<'EOF'\nrm -rf / ; ls | wc\nEOF\necho done";
        assert_eq!(words(text), ["w:cat", "r:>", "w:f", "r:<<", "w:EOF", "c:NL", "w:echo", "w:done"]);
    }

    #[test]
    fn hostile_input_stays_linear() {
        assert_reads_linearly(
            &["(", "$(", "`", "'", "\"", "\\", "<<", "<<a\n", "${", "{", "((", "1", "é\\", "$(\\é"],
            |text| drop(lex(text)),
        );
    }

    proptest::proptest! {
        #[test]
        fn never_panics(text in "[a-z0-9 '\"`$()<>|&;#\\\\\\n\\té=-]{0,80}") {
            let _ = lex(&text);
        }

        #[test]
        fn a_quoted_word_comes_back_whole(text in "\\PC{0,30}") {
            let quoted = format!("'{}'", text.replace('\'', r"'\''"));
            proptest::prop_assert_eq!(lex(&quoted), vec![Token::Word(text.into())]);
        }
    }
}
