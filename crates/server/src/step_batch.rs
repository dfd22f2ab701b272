use deloop_formats::read_step;
use deloop_types::Decision;
use serde_json::{Value, json};

use crate::admission::STEPS;
use crate::broker::SentStep;
use crate::http_error::{HttpError, safe_error};

/// How the steps of a request are written. The answer has the same form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BatchForm {
    /// One JSON object.
    Single,
    /// A JSON array.
    Array,
    /// One JSON object per line.
    Lines,
}

/// The steps of a request. An item that isn't a step is the reason why.
pub(crate) struct StepBatch<'a> {
    pub(crate) form: BatchForm,
    items: Vec<Result<(), String>>,
    pub(crate) steps: Vec<SentStep<'a>>,
}

impl<'a> StepBatch<'a> {
    /// Reads a body. `lines` says that it is one object per line.
    pub(crate) fn read(body: &'a [u8], lines: bool) -> Result<Self, HttpError> {
        let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
        let body = body.trim_ascii();
        let is_array = body.first() == Some(&b'[');
        let (form, texts) = match (lines, is_array) {
            (true, _) => (BatchForm::Lines, non_blank_lines(body)?),
            (false, true) => (BatchForm::Array, elements(body)?),
            (false, false) => (BatchForm::Single, vec![body]),
        };
        let (mut items, mut steps) = (Vec::with_capacity(texts.len()), Vec::with_capacity(texts.len()));
        for text in texts {
            match read_step(text) {
                Ok(step) => {
                    steps.push(SentStep { step, json: text });
                    items.push(Ok(()));
                }
                Err(error) if form == BatchForm::Single => {
                    return Err(HttpError::bad_request(safe_error(&error)));
                }
                Err(error) => items.push(Err(safe_error(&error))),
            }
        }
        Ok(Self { form, items, steps })
    }

    /// Returns the number of items that aren't steps.
    pub(crate) fn malformed(&self) -> usize {
        self.items.iter().filter(|item| item.is_err()).count()
    }

    /// Writes the answer: the decision about each step, and an error in the place of each item that isn't one.
    pub(crate) fn answer(&self, decisions: &[Decision]) -> Result<Vec<u8>, serde_json::Error> {
        let mut decisions = decisions.iter();
        let mut out = Vec::with_capacity(256 * self.items.len() + 2);
        let (open, between, close): (&[u8], &[u8], &[u8]) = match self.form {
            BatchForm::Single => (b"", b"", b""),
            BatchForm::Array => (b"[", b",", b"]"),
            BatchForm::Lines => (b"", b"\n", b"\n"),
        };
        out.extend_from_slice(open);
        for (index, item) in self.items.iter().enumerate() {
            if index > 0 {
                out.extend_from_slice(between);
            }
            match (item, decisions.as_slice().first()) {
                (Ok(()), Some(decision)) => {
                    serde_json::to_writer(&mut out, decision)?;
                    decisions.next();
                }
                (Ok(()), None) => serde_json::to_writer(&mut out, &Value::Null)?,
                (Err(error), _) => serde_json::to_writer(&mut out, &json!({"error": error, "index": index}))?,
            }
        }
        if !self.items.is_empty() || self.form == BatchForm::Array {
            out.extend_from_slice(close);
        }
        Ok(out)
    }
}

fn non_blank_lines(body: &[u8]) -> Result<Vec<&[u8]>, HttpError> {
    let lines = body.split(|b| *b == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let lines: Vec<&[u8]> = lines.take(STEPS + 1).collect();
    if lines.len() > STEPS { Err(HttpError::too_many_steps()) } else { Ok(lines) }
}

/// Splits a JSON array into its elements without parsing them, so that one bad element doesn't cost the others.
fn elements(body: &[u8]) -> Result<Vec<&[u8]>, HttpError> {
    let (mut found, mut from, mut depth) = (Vec::new(), 1, 0_usize);
    let (mut in_string, mut escaped) = (false, false);
    for (at, byte) in body.iter().enumerate().skip(1) {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b',' | b']' if depth == 0 => {
                let element = body[from..at].trim_ascii();
                let is_end = *byte == b']';
                if !(is_end && element.is_empty() && found.is_empty()) {
                    found.push(element);
                }
                if found.len() > STEPS {
                    return Err(HttpError::too_many_steps());
                }
                if is_end && !body[at + 1..].trim_ascii().is_empty() {
                    return Err(HttpError::bad_request("there is text behind the array of steps"));
                }
                if is_end {
                    return Ok(found);
                }
                from = at + 1;
            }
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Err(HttpError::bad_request("the array of steps is cut off"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Option<Vec<String>> {
        let found = elements(text.as_bytes()).ok()?;
        Some(found.into_iter().map(|e| String::from_utf8(e.to_vec()).unwrap()).collect())
    }

    #[test]
    fn arrays_are_split_at_their_own_commas() {
        assert_eq!(split("[]").unwrap(), Vec::<String>::new());
        assert_eq!(
            split(r#"[ {"a":[1,2]} , {"b":"],\"}"} ]"#).unwrap(),
            [r#"{"a":[1,2]}"#, r#"{"b":"],\"}"}"#]
        );
        assert_eq!(split("[1,,2]").unwrap(), ["1", "", "2"]);
        assert_eq!(split("[1,2"), None);
        assert_eq!(split("[1] 2"), None);
        assert!(split(&format!("[{}", "[".repeat(1 << 20))).is_none());
    }
}
