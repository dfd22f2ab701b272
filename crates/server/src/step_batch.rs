use axum::http::StatusCode;
use deloop_formats::read_step;
use serde_json::json;

use crate::admission::STEPS;
use crate::broker::{SentStep, StepAnswer};
use crate::http_error::{HttpError, safe_error};

/// What is said of a step that came after the database failed.
const NOT_STORED: &str =
    "the database failed before this step, so it wasn't stored; send it again, and not those with a decision";

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

/// The items of a request: steps, and reasons why others aren't.
pub(crate) struct StepBatch {
    pub(crate) form: BatchForm,
    steps: usize,
    /// The items that aren't steps, by their index.
    malformed: Vec<(usize, String)>,
}

impl StepBatch {
    /// Reads a body and adds its steps to `steps`. `lines` says that it is one object per line.
    pub(crate) fn read<'a>(
        body: &'a [u8],
        lines: bool,
        steps: &mut Vec<SentStep<'a>>,
    ) -> Result<Self, HttpError> {
        let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
        let body = body.trim_ascii();
        let is_array = body.first() == Some(&b'[');
        let (form, texts) = match (lines, is_array) {
            (true, _) => (BatchForm::Lines, non_blank_lines(body)?),
            (false, true) => (BatchForm::Array, elements(body)?),
            (false, false) => {
                let step = read_step(body).map_err(|error| HttpError::bad_request(safe_error(&error)))?;
                steps.push(SentStep::new(step, body));
                return Ok(Self { form: BatchForm::Single, steps: 1, malformed: Vec::new() });
            }
        };
        let (before, mut malformed) = (steps.len(), Vec::new());
        steps.reserve(texts.len());
        for (index, text) in texts.into_iter().enumerate() {
            match read_step(text) {
                Ok(step) => steps.push(SentStep::new(step, text)),
                Err(error) => malformed.push((index, safe_error(&error))),
            }
        }
        Ok(Self { form, steps: steps.len() - before, malformed })
    }

    /// Returns the number of items that are steps.
    pub(crate) fn len(&self) -> usize {
        self.steps
    }

    /// Returns the number of items that aren't steps.
    pub(crate) fn malformed(&self) -> usize {
        self.malformed.len()
    }

    /// Writes the answer: the decision about each step, and an error in the place of each item that isn't one or is refused.
    /// Steps without a decision came after the database failed.
    pub(crate) fn answer(&self, decisions: &[StepAnswer]) -> Result<Vec<u8>, HttpError> {
        if let (BatchForm::Single, [Err(refused)]) = (self.form, decisions) {
            return Err(HttpError::new(StatusCode::FORBIDDEN, *refused));
        }
        self.items(decisions).map_err(|error| HttpError::failed(error.to_string()))
    }

    fn items(&self, decisions: &[StepAnswer]) -> Result<Vec<u8>, serde_json::Error> {
        let (mut decisions, mut malformed) = (decisions.iter(), self.malformed.iter().peekable());
        let items = self.len() + self.malformed();
        let mut out = Vec::with_capacity(256 * items + 2);
        let (open, between, close): (&[u8], &[u8], &[u8]) = match self.form {
            BatchForm::Single => (b"", b"", b""),
            BatchForm::Array => (b"[", b",", b"]"),
            BatchForm::Lines => (b"", b"\n", b"\n"),
        };
        out.extend_from_slice(open);
        for index in 0..items {
            if index > 0 {
                out.extend_from_slice(between);
            }
            let error = match malformed.next_if(|(at, _)| *at == index) {
                Some((_, error)) => error.as_str(),
                None => match decisions.next() {
                    Some(Ok(decision)) => {
                        serde_json::to_writer(&mut out, decision)?;
                        continue;
                    }
                    Some(Err(refused)) => refused,
                    None => NOT_STORED,
                },
            };
            serde_json::to_writer(&mut out, &json!({"error": error, "index": index}))?;
        }
        if items > 0 || self.form == BatchForm::Array {
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
    use deloop_types::Decision;

    use super::*;

    #[test]
    fn each_item_has_its_place_in_the_answer() {
        let step = |n: u64| format!(r#"{{"type":"turn","session":"s{n}","text":"a"}}"#);
        let decisions = ["s0", "s2"].map(|session| Ok(Decision::go_on(session.into(), 0)));
        let body = format!("[{},7,{},null]", step(0), step(2));
        let mut steps = Vec::new();
        let batch = StepBatch::read(body.as_bytes(), false, &mut steps).unwrap();
        assert_eq!((batch.len(), batch.malformed(), steps.len()), (2, 2, 2));
        let answer: serde_json::Value = serde_json::from_slice(&batch.answer(&decisions).unwrap()).unwrap();
        assert_eq!((&answer[0]["session"], &answer[2]["session"]), (&json!("s0"), &json!("s2")));
        assert_eq!((&answer[1]["index"], &answer[3]["index"]), (&json!(1), &json!(3)));
        let cut: serde_json::Value = serde_json::from_slice(&batch.answer(&decisions[..1]).unwrap()).unwrap();
        assert_eq!((&cut[0]["session"], &cut[2]["index"]), (&json!("s0"), &json!(2)));
        assert!(cut[2]["error"].as_str().unwrap().contains("wasn't stored"), "{cut}");
        let lines = format!("{}\n\n{}\n", step(0), step(2));
        let batch = StepBatch::read(lines.as_bytes(), true, &mut steps).unwrap();
        assert_eq!((batch.len(), steps.len()), (2, 4), "it adds to those that are there");
        let answer = String::from_utf8(batch.answer(&decisions).unwrap()).unwrap();
        assert_eq!(answer.lines().count(), 2);
        let refused = batch.answer(&[Err("it isn't yours"), decisions[1].clone()]).unwrap();
        let refused: Vec<serde_json::Value> =
            refused.split(|b| *b == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
        assert_eq!(refused[0], json!({"error": "it isn't yours", "index": 0}));
        assert_eq!(refused[1]["session"], "s2");
        assert!(StepBatch::read(b"7", false, &mut steps).is_err());
        assert_eq!(steps.len(), 4);
    }

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
