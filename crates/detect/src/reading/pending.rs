//! Recognizes a result that reports a state which may pass by itself: something is pending, starting, overloaded or
//! out of reach.

use serde_json::{Map, Value};

use super::{PatternOf, Vocabulary};

/// Maximum number of bytes of an output, from its start and from its end, in which a state is looked for.
const READ: usize = 1500;
/// Statuses of HTTP that pass: accepted, conflict, locked, too early, too many requests, unavailable.
const PASSING: [u64; 6] = [202, 409, 423, 425, 429, 503];

/// A state that an output reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReportedState {
    /// It passes by itself: `pending`, `queued`, 503.
    Passing,
    /// Something couldn't be reached. Nobody knows whether that passes.
    OutOfReach,
}

/// Returns the state that an output reports, in a field if it is data, else in its words. Words count for
/// [`ReportedState::Passing`] only if the caller `trusts_words`.
pub(crate) fn reported_state(
    text: &str,
    trusts_words: bool,
    vocabulary: &Vocabulary,
) -> Option<ReportedState> {
    let text = text.trim();
    if text.starts_with('{')
        && text.len() <= 4 * READ
        && let Ok(Value::Object(fields)) = serde_json::from_str(text)
        && reports_pending(&fields, vocabulary)
    {
        return Some(ReportedState::Passing);
    }
    let (head, tail) = ends(text);
    let lower = [head, "\n", tail].concat().to_ascii_lowercase();
    let passing = || {
        !text.starts_with('{')
            && (vocabulary.says_pending(&lower)
                || names_passing_status(&lower)
                || has_pending_cell(&lower, vocabulary)
                || vocabulary.is_a(PatternOf::Pending, lower.trim_matches(['"', '\'', '\n', ' '])))
    };
    if trusts_words && passing() {
        return Some(ReportedState::Passing);
    }
    vocabulary.says_out_of_reach(&lower).then_some(ReportedState::OutOfReach)
}

fn ends(text: &str) -> (&str, &str) {
    if text.len() <= 2 * READ {
        return (text, "");
    }
    let (mut head, mut tail) = (READ, text.len() - READ);
    while !text.is_char_boundary(head) {
        head -= 1;
    }
    while !text.is_char_boundary(tail) {
        tail += 1;
    }
    (&text[..head], &text[tail..])
}

/// Returns whether a field of the data, or of an object in it, names such a state.
fn reports_pending(fields: &Map<String, Value>, vocabulary: &Vocabulary) -> bool {
    fields.iter().any(|(name, value)| match value {
        Value::String(state) => {
            vocabulary.is_a(PatternOf::StateField, name) && vocabulary.is_a(PatternOf::Pending, state)
        }
        Value::Bool(true) => vocabulary.is_a(PatternOf::Pending, name),
        Value::Bool(false) => vocabulary.is_a(PatternOf::Ready, name),
        Value::Number(status) => {
            vocabulary.is_a(PatternOf::StateField, name)
                && status.as_u64().is_some_and(|s| PASSING.contains(&s))
        }
        Value::Object(inner) => inner.iter().any(|(name, value)| {
            let state = value.as_str().unwrap_or_default();
            vocabulary.is_a(PatternOf::StateField, name) && vocabulary.is_a(PatternOf::Pending, state)
        }),
        _ => false,
    })
}

/// Returns whether a cell of a table, between tabs, is such a state: `gh pr checks` prints one to a line.
fn has_pending_cell(lower: &str, vocabulary: &Vocabulary) -> bool {
    let rows = lower.lines().filter(|line| line.contains('\t'));
    rows.flat_map(|row| row.split('\t')).any(|cell| vocabulary.is_a(PatternOf::Pending, cell))
}

/// Returns whether a passing status of HTTP stands behind a word that announces one: `error: 503`, `HTTP/1.1 429`.
fn names_passing_status(lower: &str) -> bool {
    const ANNOUNCES: [&str; 5] = ["error", "status", "code", "http", "returned"];
    PASSING.iter().any(|status| {
        let digits = status.to_string();
        lower.match_indices(&digits).any(|(at, _)| {
            let bytes = lower.as_bytes();
            let whole = at > 0
                && !bytes[at - 1].is_ascii_alphanumeric()
                && !bytes.get(at + digits.len()).is_some_and(u8::is_ascii_alphanumeric);
            let mut from = at.saturating_sub(16);
            while !lower.is_char_boundary(from) {
                from += 1;
            }
            whole && ANNOUNCES.iter().any(|word| lower[from..at].contains(word))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use deloop_testing::assert_reads_linearly;

    fn pending(text: &str) -> bool {
        reported_state(text, true, &Vocabulary::builtin()) == Some(ReportedState::Passing)
    }

    #[test]
    fn a_state_is_read_from_fields_and_words() {
        for text in [
            r#"{"building": true, "number": 512}"#,
            r#"{"status":"IN_PROGRESS"}"#,
            r#"{"job":{"state":"queued"}}"#,
            r#"{"ready": false}"#,
            r#"{"status":503,"body":"starting"}"#,
            "curl: (22) The requested URL returned error: 503",
            "Some checks are still pending",
            "error: timed out waiting for the condition",
            "HTTP/1.1 429 Too Many Requests",
            "lint\tpass\t12s\nbuild\tpending\t0",
        ] {
            assert!(pending(text), "{text}");
        }
        for text in [
            r#"{"building": false}"#,
            r#"{"status":"failed"}"#,
            r#"{"status":404}"#,
            r#"{"name":"pending"}"#,
            "expected 503 items, found 429",
            "a pending\tb",
            "error TS2322: type mismatch in queue.ts",
            "",
        ] {
            assert!(!pending(text), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_reached_may_come_back() {
        let state = |text| reported_state(text, false, &Vocabulary::builtin());
        for text in [
            "curl: (7) Failed to connect to localhost port 8080: Connection refused",
            "localhost:5432 - no response",
            r#"{"error":"connect ECONNREFUSED 127.0.0.1:5432"}"#,
        ] {
            assert_eq!(state(text), Some(ReportedState::OutOfReach), "{text}");
        }
        for text in ["bash: foo: command not found", "error TS2322: type mismatch", ""] {
            assert_eq!(state(text), None, "{text}");
        }
    }

    #[test]
    fn hostile_input_stays_linear() {
        assert_reads_linearly(&["503 ", "error 429", "{\"a\":{", "é503"], |text| {
            pending(text);
        });
    }
}
