//! Decisions in words.

use deloop_live::RecordedDecision;
use deloop_types::Millis;

use crate::redaction::Redaction;

/// To the second, in UTC.
pub(crate) fn time(ts: Millis) -> String {
    let text = ts.to_string();
    let short = text.get(..19).unwrap_or(&text).replace('T', " ");
    format!("{short}Z")
}

/// The beginning of a session's name.
pub(super) fn short(session: &str) -> String {
    deloop_detect::clean(session, 200).chars().take(8).collect()
}

/// What was done about it.
pub(super) fn action(row: &RecordedDecision) -> String {
    match (row.action.as_str(), row.would.as_deref()) {
        ("continue", Some(would)) => format!("({would})"),
        (action, Some(would)) => format!("{action} ({would})"),
        (action, None) => action.to_owned(),
    }
}

/// Whether it reached the agent.
pub(super) fn delivery(row: &RecordedDecision) -> String {
    match (&row.held, row.action.as_str(), &row.delivered) {
        (Some(why), ..) if why == "holdout" => "held out, not carried out".to_owned(),
        (Some(_), ..) => "paused, not carried out".to_owned(),
        (None, "continue", _) => "shadow mode, not carried out".to_owned(),
        (None, _, Some(event)) => format!("delivered at {}", deloop_detect::clean(event, 40)),
        (None, _, None) => "not delivered".to_owned(),
    }
}

/// What the agent did next.
pub(super) fn outcome(row: &RecordedDecision) -> Option<&'static str> {
    Some(match row.outcome.as_deref()? {
        "left" => "left the loop",
        "continued" => "continued the loop",
        "ended" => "ended its turn",
        _ => "may or may not have left the loop",
    })
}

/// What repeated.
pub(super) fn summary(row: &RecordedDecision, redaction: &Redaction, room: usize) -> String {
    let known = row.summary.as_deref().or(row.status.as_deref()).or(row.message.as_deref());
    let text = known.unwrap_or("no reason recorded");
    redaction.line(text, room)
}

/// One line for a decision.
pub(crate) fn line(row: &RecordedDecision, redaction: &Redaction) -> String {
    let mut state = delivery(row);
    for more in [outcome(row), row.wrong.then_some("marked as wrong")].into_iter().flatten() {
        state = format!("{state}, {more}");
    }
    let subagent =
        row.subagent.as_ref().map(|s| format!("/{}", deloop_detect::clean(s, 12))).unwrap_or_default();
    format!(
        "{}  {:<11}  {:<8}  {:<7}  {}  [{state}]  {}",
        time(row.ts),
        row.agent,
        short(&row.session) + &subagent,
        action(row),
        summary(row, redaction, 160),
        row.id
    )
}
