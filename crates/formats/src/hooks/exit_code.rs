//! Exit codes that agents put into the text of a result.

use deloop_types::Outcome;

/// How a command ended that says `MARKER N`, by the last place where it does; `None` when it does not say so.
pub(super) fn outcome_after(text: &str, marker: &str) -> Option<Outcome> {
    let rest = text[text.rfind(marker)? + marker.len()..].trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(rest.len());
    let code: i64 = rest[..end].parse().ok()?;
    Some(if code == 0 { Outcome::Ok } else { Outcome::Error })
}
