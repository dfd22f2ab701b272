//! JavaScript literals as JSON.

use serde_json::{Map, Number, Value};

use super::token::{JsToken, JsTokenKind, Piece};

/// How deep a literal may nest.
const MAX_DEPTH: u8 = 32;

/// How many names are looked up for one literal. Names that stand for each other would otherwise multiply.
const MAX_NAMES: u8 = 16;

/// Reads literals out of one script.
pub(super) struct Literals<'a> {
    tokens: &'a [JsToken],
    names_left: u8,
}

/// A value and the token behind it.
type Read = Option<(Value, usize)>;

impl<'a> Literals<'a> {
    pub(super) fn new(tokens: &'a [JsToken]) -> Self {
        Self { tokens, names_left: MAX_NAMES }
    }

    /// The arguments of a call whose opening parenthesis is before token `at`: `{}` when there are none, and `None`
    /// when there are several or one is not a literal.
    pub(super) fn argument(&mut self, at: usize) -> Option<Value> {
        if self.is(at, b')') {
            return Some(Value::Object(Map::new()));
        }
        let (value, end) = self.value(at, 0)?;
        let end = end + usize::from(self.is(end, b','));
        self.is(end, b')').then_some(value)
    }

    fn is(&self, at: usize, sign: u8) -> bool {
        self.tokens.get(at).is_some_and(|token| token.is(sign))
    }

    /// A value, or values added to each other as texts.
    fn value(&mut self, at: usize, depth: u8) -> Read {
        let (mut value, mut end) = self.part(at, depth)?;
        while self.is(end, b'+') {
            let (more, after) = self.part(end + 1, depth)?;
            let (Value::String(text), Value::String(more)) = (&mut value, more) else { return None };
            text.push_str(&more);
            end = after;
        }
        Some((value, end))
    }

    fn part(&mut self, at: usize, depth: u8) -> Read {
        if depth > MAX_DEPTH {
            return None;
        }
        match &self.tokens.get(at)?.kind {
            JsTokenKind::Text(text) => Some((Value::String(text.clone()), at + 1)),
            JsTokenKind::Number(text) => Some((number(text)?, at + 1)),
            JsTokenKind::Sign(b'-') => match &self.tokens.get(at + 1)?.kind {
                JsTokenKind::Number(text) => Some((number(&format!("-{text}"))?, at + 2)),
                _ => None,
            },
            JsTokenKind::Sign(b'{') => self.object(at + 1, depth + 1),
            JsTokenKind::Sign(b'[') => self.array(at + 1, depth + 1),
            JsTokenKind::Piece(Piece::Head, head) => self.template(head, at + 1, depth + 1),
            JsTokenKind::Word(word) => Some((self.word(word, depth)?, at + 1)),
            JsTokenKind::Piece(..) | JsTokenKind::Regex | JsTokenKind::Sign(_) => None,
        }
    }

    fn word(&mut self, word: &str, depth: u8) -> Option<Value> {
        match word {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            "null" | "undefined" => Some(Value::Null),
            name => self.constant(name, depth),
        }
    }

    /// The value of a name that is given one once.
    fn constant(&mut self, name: &str, depth: u8) -> Option<Value> {
        self.names_left = self.names_left.checked_sub(1)?;
        let tokens = self.tokens;
        let mut given =
            (1..tokens.len()).filter(|&at| tokens[at].word() == Some(name) && is_given(tokens, at));
        let at = given.next().filter(|_| given.next().is_none())?;
        let declared = matches!(tokens.get(at.checked_sub(1)?)?.word(), Some("const" | "let" | "var"));
        if !declared || !self.is(at + 1, b'=') {
            return None;
        }
        let (value, end) = self.value(at + 2, depth + 1)?;
        let ends = tokens.get(end).is_none_or(|token| {
            token.is(b';') || token.is(b',') || token.begins_line && token.word().is_some()
        });
        ends.then_some(value)
    }

    fn object(&mut self, mut at: usize, depth: u8) -> Read {
        let mut object = Map::new();
        while !self.is(at, b'}') {
            let key = match &self.tokens.get(at)?.kind {
                JsTokenKind::Word(key) | JsTokenKind::Text(key) | JsTokenKind::Number(key) => key.clone(),
                JsTokenKind::Piece(..) | JsTokenKind::Regex | JsTokenKind::Sign(_) => return None,
            };
            let value = if self.is(at + 1, b':') {
                let (value, end) = self.value(at + 2, depth)?;
                at = end;
                value
            } else {
                let value = self.word(self.tokens.get(at)?.word()?, depth)?;
                at += 1;
                value
            };
            object.insert(key, value);
            at = self.next(at, b'}')?;
        }
        Some((Value::Object(object), at + 1))
    }

    fn array(&mut self, mut at: usize, depth: u8) -> Read {
        let mut array = Vec::new();
        while !self.is(at, b']') {
            let (value, end) = self.value(at, depth)?;
            array.push(value);
            at = self.next(end, b']')?;
        }
        let end = at + 1;
        self.joined(&array, end).or_else(|| (!self.is(end, b'.')).then_some((Value::Array(array), end)))
    }

    /// The next element's place, or that of what closes the list.
    fn next(&self, at: usize, close: u8) -> Option<usize> {
        if self.is(at, b',') { Some(at + 1) } else { self.is(at, close).then_some(at) }
    }

    /// `.join("...")` behind an array of texts.
    fn joined(&self, array: &[Value], at: usize) -> Read {
        let [dot, join, open, by, close] = self.tokens.get(at..at + 5)? else { return None };
        let JsTokenKind::Text(by) = &by.kind else { return None };
        if !(dot.is(b'.') && join.word() == Some("join") && open.is(b'(') && close.is(b')')) {
            return None;
        }
        let texts: Option<Vec<&str>> = array.iter().map(Value::as_str).collect();
        Some((Value::String(texts?.join(by)), at + 5))
    }

    /// A template that interpolates texts.
    fn template(&mut self, head: &str, mut at: usize, depth: u8) -> Read {
        let mut text = head.to_owned();
        loop {
            let (value, end) = self.value(at, depth)?;
            match value {
                Value::String(more) => text.push_str(&more),
                Value::Number(more) => text.push_str(&more.to_string()),
                _ => return None,
            }
            let JsTokenKind::Piece(piece, more) = &self.tokens.get(end)?.kind else { return None };
            text.push_str(more);
            at = end + 1;
            if *piece == Piece::Tail {
                return Some((Value::String(text), at));
            }
        }
    }
}

/// Whether the name at `at` is given a value there (`name =`, `name +=`) or is a parameter or part of a pattern.
fn is_given(tokens: &[JsToken], at: usize) -> bool {
    let is = |at: usize, sign: u8| tokens.get(at).is_some_and(|token| token.is(sign));
    let assigned = is(at + 1, b'=') && !is(at + 2, b'=');
    let changed =
        is(at + 2, b'=') && ["+", "-", "*", "|", "&", "?"].iter().any(|sign| is(at + 1, sign.as_bytes()[0]));
    let member = at > 0 && is(at - 1, b'.');
    (assigned || changed) && !member
}

fn number(text: &str) -> Option<Value> {
    let text = text.replace('_', "");
    if let Ok(whole) = text.parse::<i64>() {
        return Some(whole.into());
    }
    match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok().map(Value::from),
        None => Number::from_f64(text.parse().ok()?).map(Value::Number),
    }
}
